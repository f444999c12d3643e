//! `leftoff doctor`

use std::path::PathBuf;

use leftoff::store::{DirectoryLock, random_id};
use leftoff_engine::broker::directory::{METADATA_DIR, OFFSETS_DIR};
use leftoff_engine::broker::doctor::{Diagnosis, examine};
use leftoff_engine::broker::{Broker, BrokerConfig};

use crate::cli::args::upkeep::DoctorArgs;
use crate::cli::args::{FormatArg, Global};
use crate::cli::failure::Failure;
use crate::cli::notes::Notes;
use crate::cli::session::{self, WAIT_FOR_LOCK};
use crate::cli::table::{Column, Table};
use crate::cli::verbs::printed;

const COLUMNS: [Column; 4] = [
    Column { title: "PLACE", key: "place", is_wide: false },
    Column { title: "SEVERITY", key: "severity", is_wide: false },
    Column { title: "FINDING", key: "finding", is_wide: false },
    Column { title: "REPAIRED", key: "repaired", is_wide: false },
];

/// Looks for damage; exit 5 if some is left.
pub fn doctor(global: &Global, args: &DoctorArgs) -> Result<(), Failure> {
    let data = &global.data;
    let disk = session::disk(data)?;
    let notes = Notes::new(global.quiet);
    let lock = if args.repair {
        let wait = global.timeout.unwrap_or(WAIT_FOR_LOCK);
        let lock = DirectoryLock::take(data, "doctor", wait);
        let lock = lock.map_err(|error| session::from_store(data, error.into()))?;
        // A start settles tails and commit sets first; where it cannot, the repair says why below.
        match restart(&disk) {
            Ok(set_aside) => tell_lost(notes, &set_aside),
            Err(why) => notes.note(&format!("before the repair: {why}")),
        }
        Some(lock)
    } else {
        None
    };
    let mut found: Vec<Diagnosis> = Vec::new();
    let examined = examine(&disk, args.repair, &mut |diagnosis| found.push(diagnosis));
    let examined = examined.map_err(|error| session::from_open(data, error))?;
    let mut table = Table::new(&COLUMNS);
    for diagnosis in &found {
        let severity = if diagnosis.ailment.is_damage() { "damage" } else { "remark" };
        table.push(vec![
            diagnosis.place.as_str().into(),
            severity.into(),
            diagnosis.ailment.to_string().into(),
            diagnosis.repaired.as_deref().into(),
        ]);
    }
    if !found.is_empty() || !matches!(global.format, FormatArg::Text | FormatArg::Wide) {
        printed(|out| table.write(out, global.format.into(), !global.no_headers))?;
    }
    notes.note(&format!(
        "looked at {} partitions, {} segments, {} batches, {} bytes",
        examined.partitions, examined.segments, examined.batches, examined.bytes
    ));
    if args.repair {
        let set_aside = restart(&disk);
        let set_aside = set_aside.map_err(|why| still_shut(&why))?;
        tell_lost(notes, &set_aside);
    }
    drop(lock);
    let left = found.iter().filter(|it| it.ailment.is_damage() && it.repaired.is_none()).count();
    match left {
        0 => {
            if found.iter().all(|it| !it.ailment.is_damage()) {
                notes.note("no damage");
            }
            Ok(())
        }
        left if args.repair => Err(Failure::storage(format!("{left} findings could not be repaired"))),
        left => Err(Failure::storage(format!("{left} findings of damage"))
            .hint("`leftoff doctor --repair` sets damaged bytes aside, so that the rest can be served; nothing is deleted")),
    }
}

/// What a repair could not do, in words that say what is lost without it.
fn still_shut(why: &str) -> Failure {
    let failure = Failure::storage(format!("after the repair: {why}"));
    match why {
        _ if why.contains(OFFSETS_DIR) => failure.hint(format!(
            "the offsets and the history of all groups were in {OFFSETS_DIR}: bring that folder back from a backup; \
             the events of all topics are untouched"
        )),
        _ if why.contains(METADATA_DIR) => failure.hint(format!(
            "the names and settings of all topics were in {METADATA_DIR}: bring that folder back from a backup; \
             the events are untouched, in the folders TOPIC-N"
        )),
        _ => failure,
    }
}

/// Opens and closes the directory; the folders that no topic claimed, and that were moved away.
fn restart(disk: &std::sync::Arc<dyn leftoff_engine::disk::Disk>) -> Result<Vec<PathBuf>, String> {
    let broker = Broker::open(disk.clone(), leftoff::store::now(), random_id(), BrokerConfig::default());
    let broker = broker.map_err(|error| error.to_string())?;
    let set_aside = broker.recovered().set_aside.clone();
    broker.close().map_err(|error| error.to_string())?;
    Ok(set_aside)
}

/// A record of the metadata log that was damaged may have been the one that made a topic. Its events are all there.
fn tell_lost(notes: Notes, set_aside: &[PathBuf]) {
    for path in set_aside {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let kept = path.display();
        notes.warn(
            &format!("no record of a topic claims {name} any more; its events are kept in {kept}"),
            "make the topic again with `leftoff topics create` and append them anew, or bring back a backup",
        );
    }
}
