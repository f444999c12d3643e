//! `leftoff backup`

use std::collections::BTreeSet;

use leftoff_engine::broker::View;
use leftoff_engine::broker::backup::{BackupError, backup as copy};

use crate::cli::args::Global;
use crate::cli::args::upkeep::BackupArgs;
use crate::cli::failure::Failure;
use crate::cli::notes::Notes;
use crate::cli::progress::Progress;
use crate::cli::session;
use crate::cli::verbs::authority::keeper_in;

/// Copies the directory as it is at one moment.
pub fn backup(global: &Global, args: &BackupArgs) -> Result<(), Failure> {
    let from = session::disk(&global.data)?;
    std::fs::create_dir_all(&args.to)
        .map_err(|error| Failure::storage(format!("cannot make {}: {error}", args.to.display())))?;
    let to = session::disk(&args.to)?;
    let progress = Progress::bytes(None, global.quiet);
    let copied = copy(&from, &to, &mut |bytes| progress.advance(bytes));
    drop(progress);
    let copied = copied.map_err(|error| from_backup(global, error))?;
    Notes::new(global.quiet).note(&format!(
        "{} with {}, {} bytes, copied to {}; it is a data directory, for --data",
        counted(copied.topics, "topic"),
        counted(copied.partitions, "partition"),
        copied.bytes,
        args.to.display(),
    ));
    let view = View::open(&to).map_err(|error| session::from_open(&args.to, error))?;
    let places = places(&view);
    if !places.is_empty() {
        // A place that is older than the log has its events handled again, each once; one that is newer is refused.
        session::note(
            global,
            &format!(
                "not in it are the places that keep offsets of their own: {}; copy those before the directory, so that none \
                 is ahead of the log",
                places.into_iter().collect::<Vec<_>>().join(", ")
            ),
        );
    }
    Ok(())
}

/// The places that the groups' offsets name.
fn places(view: &View) -> BTreeSet<String> {
    let entries = view.state().coordinator().groups().flat_map(|group| group.offsets());
    entries.filter_map(|(_, _, entry)| keeper_in(&entry.metadata)).map(|place| place.to_string()).collect()
}

fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn from_backup(global: &Global, error: BackupError) -> Failure {
    match error {
        BackupError::Open(error) => session::from_open(&global.data, error),
        BackupError::Target(_) | BackupError::TargetInUse => Failure::refused(error.to_string()),
        BackupError::NotOfOneMoment
        | BackupError::Log(_)
        | BackupError::Marks(_)
        | BackupError::Io { .. } => Failure::storage(error.to_string()),
    }
}
