//! Lines appended to one file that keeps its own offset: exactly once in the recovered file.
//!
//! Beside `PATH` lie `PATH.outcomes`, the events that were handled without output, `PATH.dead` if there are dead letters, and
//! `PATH.leftoff`, which says in one of
//! two checksummed slots how long both are and up to where they hold each partition. A write appends to both and syncs
//! them, then puts the new lengths and offsets into the slot that is older, and syncs that: this is the moment at which all
//! of it counts. A claim cuts both files to what the newer slot says. The bytes are in `docs/on-disk.md`.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use leftoff_wire::Committed;

use super::line::{append_lines, check_records};
use super::outcomes::{again_ranges, outcome_lines, outcome_ranges, skipped_ranges};
use super::{
    BadRecord, ClaimPartition, Claimed, Letter, Mark, MatrixRow, Move, Outcome, Output, Promise, Sink,
    SinkError, Written, assert_moves_cover,
};
use crate::crash_point;
use crate::source::PartitionId;

mod ops;
mod recover;
mod slot;
#[cfg(test)]
mod tests;

use ops::{FileOps, OsOps, Part};
use slot::{Place, State};

pub use slot::{MAX_GROUP_BYTES, MAX_MARKED, MAX_PARTITIONS, SLOT_BYTES};

/// A file that keeps its own offset. One runner has it at a time.
#[derive(Debug)]
pub struct FileSink {
    paths: Paths,
    group: String,
    ops: Box<dyn FileOps>,
    claimed: Option<Open>,
}

/// The files.
#[derive(Clone, Debug)]
struct Paths {
    dead: PathBuf,
    data: PathBuf,
    outcomes: PathBuf,
    sidecar: PathBuf,
    /// The sidecar while it is made.
    sidecar_new: PathBuf,
}

/// The files, held, and what they hold.
#[derive(Debug)]
struct Open {
    /// Locked for as long as it is open.
    data: File,
    outcomes: File,
    sidecar: File,
    /// Made with the first dead letter.
    dead: Option<File>,
    state: State,
    /// Where `state` is; the next one goes into the other.
    slot: Place,
    /// A write failed: nobody knows what the files hold before they are claimed anew.
    broken: bool,
}

impl FileSink {
    /// Touches nothing yet; the files are opened, and made if they never existed, by the first claim.
    pub fn new(path: impl Into<PathBuf>, group: impl Into<String>) -> FileSink {
        FileSink::with_ops(path.into(), group.into(), Box::new(OsOps))
    }

    fn with_ops(path: PathBuf, group: String, ops: Box<dyn FileOps>) -> FileSink {
        FileSink { paths: Paths::new(path), group, ops, claimed: None }
    }

    /// Reads what the file at `path` holds, beside a runner or without one. `None` if there is no sidecar.
    ///
    /// # Errors
    /// [`SinkError::Refused`] if the sidecar is damaged, [`SinkError::Storage`] if it cannot be read.
    pub fn inspect(path: impl Into<PathBuf>) -> Result<Option<FileState>, SinkError> {
        let paths = Paths::new(path.into());
        let found = recover::read_sidecar(&paths)?;
        Ok(found.map(|found| FileState {
            group: found.state.group,
            claim_epoch: found.state.claim_epoch,
            data_bytes: found.state.data_bytes,
            outcomes_bytes: found.state.outcomes_bytes,
            next: found.state.next,
            marks: found.state.marks,
        }))
    }

    fn append(&mut self, outputs: &[Output], moves: &[Move]) -> Result<(), SinkError> {
        let open = self.claimed.as_mut().expect("a write follows a claim");
        let mut lines = Vec::new();
        outputs.iter().for_each(|output| append_lines(&mut lines, output));
        let outcomes = outcome_ranges(outputs);
        let decided = [again_ranges(moves), skipped_ranges(moves)].concat();
        let outcome_lines = outcome_lines(outcomes.iter().chain(&decided)).into_bytes();
        let state = open.state.after(moves, lines.len(), outcome_lines.len());
        let (ops, paths) = (self.ops.as_mut(), &self.paths);
        append_synced(ops, Part::Data, &open.data, paths, &lines, open.state.data_bytes)?;
        append_synced(ops, Part::Outcomes, &open.outcomes, paths, &outcome_lines, open.state.outcomes_bytes)?;
        if let Some(letters) = dead_lines(outputs) {
            append_dead(ops, paths, &mut open.dead, &letters)?;
        }
        let place = open.slot.other();
        crash_point::pass("file-synced");
        recover::write_slot(ops, paths, &open.sidecar, place, &state)?;
        (open.state, open.slot) = (state, place);
        Ok(())
    }
}

/// A line for each dead letter.
fn dead_lines(outputs: &[Output]) -> Option<Vec<u8>> {
    let letters = outputs.iter().filter_map(|output| match &output.outcome {
        Outcome::Dead(letter) => Some(Letter::of(letter).to_line()),
        _ => None,
    });
    // Each begins on a line of its own, whatever a crash has left of the one before.
    let lines: String = letters.map(|line| format!("\n{line}\n")).collect();
    (!lines.is_empty()).then(|| lines.into_bytes())
}

/// Whoever reads them takes those that the outcomes name: one that was written, and whose event was given back by a crash
/// before the slot, is there twice or too much.
fn append_dead(
    ops: &mut dyn FileOps,
    paths: &Paths,
    dead: &mut Option<File>,
    lines: &[u8],
) -> Result<(), SinkError> {
    let path = &paths.dead;
    if dead.is_none() {
        let file = ops.create(Part::Dead, path).map_err(storage("cannot open", path))?;
        ops.sync_folder(paths.folder()).map_err(storage("cannot sync", paths.folder()))?;
        *dead = Some(file);
    }
    let file = dead.as_ref().expect("it was opened just now");
    ops.append(Part::Dead, file, lines).map_err(storage("cannot write", path))?;
    ops.sync(Part::Dead, file).map_err(storage("cannot sync", path))
}

fn append_synced(
    ops: &mut dyn FileOps,
    part: Part,
    file: &File,
    paths: &Paths,
    bytes: &[u8],
    position_bytes: u64,
) -> Result<(), SinkError> {
    if bytes.is_empty() {
        return Ok(());
    }
    let path = paths.of(part);
    ops.write_all_at(part, file, bytes, position_bytes).map_err(storage("cannot write", path))?;
    crash_point::pass("file-written");
    ops.sync(part, file).map_err(storage("cannot sync", path))
}

impl Sink for FileSink {
    fn claim(&mut self, partitions: &[ClaimPartition]) -> Result<Claimed, SinkError> {
        let mut notices = Vec::new();
        let open = match &mut self.claimed {
            Some(open) => open,
            none => none.insert(recover::claim(self.ops.as_mut(), &self.paths, &self.group, &mut notices)?),
        };
        let next: BTreeMap<_, _> =
            partitions.iter().map(|claim| (claim.id, open.state.next.get(&claim.id).copied())).collect();
        let new = next.values().filter(|next| next.is_none()).count();
        if open.state.next.len() + new > MAX_PARTITIONS {
            let data = self.paths.data.display();
            return Err(SinkError::Refused(format!(
                "{data} would hold more than {MAX_PARTITIONS} partitions, which is the most for one file"
            )));
        }
        if open.state.next.len() + new > MAX_MARKED {
            notices.push(format!(
                "{} holds more than {MAX_MARKED} partitions: it does not keep the last event of each, so a log that was \
                 brought back from an older copy is not known again, and resets do not reach it",
                self.paths.data.display()
            ));
        }
        let marks = partitions.iter().filter_map(|claim| Some((claim.id, *open.state.marks.get(&claim.id)?)));
        let marks = marks.collect();
        Ok(Claimed { authority: true, next, marks, notices })
    }

    fn keeps_dead_letters(&self) -> bool {
        true
    }

    fn check(&self, output: &Output) -> Result<(), BadRecord> {
        check_records(output)
    }

    fn write(&mut self, outputs: &[Output], moves: &[Move]) -> Result<Written, SinkError> {
        let open = self.claimed.as_mut().expect("a write follows a claim");
        if open.broken {
            let what = format!("{} is not written any more, since a write failed", self.paths.data.display());
            return Err(SinkError::Storage { what, error: std::io::ErrorKind::Other.into() });
        }
        if let Some(moved) = moves.iter().find(|m| open.state.next.get(&m.id).copied() != m.expected) {
            return Ok(Written::Fenced { id: moved.id });
        }
        assert_moves_cover(outputs, moves);
        open.broken = true;
        self.append(outputs, moves)?;
        self.claimed.as_mut().expect("it is claimed").broken = false;
        Ok(Written::Written)
    }

    fn row(&self) -> MatrixRow {
        MatrixRow {
            sink: "file, append",
            how: "appends and syncs, then puts length and offset into the older of two checksummed slots and syncs it; cuts to the slot's length when claimed",
            authority: "the slots in the file beside it",
            promise: Promise::ExactlyOnce,
            meaning: "each event's lines are in the recovered file once",
            left_over: "who reads it while a runner works, or after a crash before the next run, may see lines that are cut later; editing it by hand",
        }
    }

    fn place(&self) -> String {
        format!("file:{}", self.paths.data.display())
    }
}

/// What a file sink's sidecar says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// The group it belongs to.
    pub group: String,
    /// How often it was claimed.
    pub claim_epoch: u64,
    /// How much of the data file counts. What lies behind is cut by the next claim.
    pub data_bytes: u64,
    /// How much of the outcomes file counts.
    pub outcomes_bytes: u64,
    /// Where each partition goes on.
    pub next: BTreeMap<PartitionId, Committed>,
    /// What else it keeps of them.
    pub marks: BTreeMap<PartitionId, Mark>,
}

impl Paths {
    fn new(data: PathBuf) -> Paths {
        let beside = |suffix: &str| {
            let mut path = data.clone().into_os_string();
            path.push(suffix);
            PathBuf::from(path)
        };
        Paths {
            outcomes: beside(".outcomes"),
            sidecar: beside(".leftoff"),
            sidecar_new: beside(".leftoff.new"),
            dead: beside(".dead"),
            data,
        }
    }

    fn of(&self, part: Part) -> &Path {
        match part {
            Part::Data => &self.data,
            Part::Outcomes => &self.outcomes,
            Part::Sidecar => &self.sidecar,
            Part::Dead => &self.dead,
        }
    }

    /// The folder they are in.
    fn folder(&self) -> &Path {
        match self.data.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }
}

fn storage<'a>(what: &'a str, path: &'a Path) -> impl Fn(std::io::Error) -> SinkError + 'a {
    move |error| SinkError::Storage { what: format!("{what} {}", path.display()), error }
}
