//! Claiming the files: what is found is told apart, and everything doubtful is refused with nothing changed.
//!
//! | sidecar | data file | what it means |
//! | --- | --- | --- |
//! | missing | missing or empty | a first run |
//! | missing | has bytes | somebody else's file, or the state was lost: refused |
//! | empty, or no slot whole | any | damage: refused |
//! | good | shorter than it says | the file was cut or exchanged: refused |
//! | good, of another group | any | refused |
//! | good | at least as long | cut to what the slot says |

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;

use super::ops::{FileOps, Part};
use super::slot::{self, Found, MAX_GROUP_BYTES, Place, SLOT_BYTES, State};
use super::{Open, Paths, storage};
use crate::crash_point;
use crate::sink::SinkError;

/// Takes the files over, after which they hold exactly what the newest slot says.
pub(super) fn claim(
    ops: &mut dyn FileOps,
    paths: &Paths,
    group: &str,
    notices: &mut Vec<String>,
) -> Result<Open, SinkError> {
    check_group_name(group)?;
    let data = open_data(ops, paths)?;
    lock(&data, &paths.data)?;
    let found = match read_sidecar(paths)? {
        Some(found) => found,
        None => first_run(ops, paths, group, &data)?,
    };
    check_group(&found.state, group, paths)?;
    let outcomes =
        ops.create(Part::Outcomes, &paths.outcomes).map_err(storage("cannot open", &paths.outcomes))?;
    check_length(&data, found.state.data_bytes, &paths.data, paths)?;
    check_length(&outcomes, found.state.outcomes_bytes, &paths.outcomes, paths)?;
    if found.other_is_damaged {
        let sidecar = paths.sidecar.display();
        notices.push(format!("{sidecar}: the last save was torn; goes on from the one before it"));
    }
    settle(ops, paths, &found, data, outcomes, notices)
}

/// What the sidecar says.
pub(super) struct Newest {
    pub(super) state: State,
    pub(super) place: Place,
    pub(super) other_is_damaged: bool,
}

/// Reads the sidecar. `None` if there is none.
pub(super) fn read_sidecar(paths: &Paths) -> Result<Option<Newest>, SinkError> {
    let path = &paths.sidecar;
    check_not_special(path)?;
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(storage("cannot open", path)(error)),
        Ok(file) => {
            file.take(2 * SLOT_BYTES as u64).read_to_end(&mut bytes).map_err(storage("cannot read", path))?
        }
    };
    let (a, b) = bytes.split_at(bytes.len().min(SLOT_BYTES));
    match (slot::parse(a), slot::parse(b)) {
        (Found::Version(version), _) | (_, Found::Version(version)) => Err(refused(format!(
            "{} has format version {version}, which this Leftoff does not know; use the one that wrote it, or a newer one",
            path.display()
        ))),
        (Found::Good(a), Found::Good(b)) if a.seq > b.seq => Ok(Some(newest(a, Place::A, false))),
        (Found::Good(_), Found::Good(b)) => Ok(Some(newest(b, Place::B, false))),
        (Found::Good(a), other) => Ok(Some(newest(a, Place::A, other == Found::Damaged))),
        (other, Found::Good(b)) => Ok(Some(newest(b, Place::B, other == Found::Damaged))),
        (Found::Empty | Found::Damaged, Found::Empty | Found::Damaged) => Err(damaged(paths)),
    }
}

fn newest(state: State, place: Place, other_is_damaged: bool) -> Newest {
    Newest { state, place, other_is_damaged }
}

/// Opens the data file. It is made only where a first run is possible.
fn open_data(ops: &mut dyn FileOps, paths: &Paths) -> Result<File, SinkError> {
    let path = &paths.data;
    check_not_special(path)?;
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if read_sidecar(paths)?.is_some_and(|found| found.state.data_bytes > 0) {
                return Err(refused(format!(
                    "{} is missing, but {} says what it holds\n\
                     bring it back, or move the files beside it away and use a new group",
                    path.display(),
                    paths.sidecar.display()
                )));
            }
            ops.create(Part::Data, path).map_err(storage("cannot make", path))
        }
        Err(error) => Err(storage("cannot open", path)(error)),
    }
}

/// Opening a FIFO would wait for whoever is at its other end, so it is not opened to find that out.
fn check_not_special(path: &Path) -> Result<(), SinkError> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(refused(format!(
            "{} is no regular file; what is written there could not be cut back",
            path.display()
        ))),
        // What is wrong with it is told when it is opened.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// For so long a lock may be held by a process that is about to become another program: between its `fork` and its `exec` it has
/// the files of the one before.
const BETWEEN_FORK_AND_EXEC: Duration = Duration::from_millis(300);

/// The lock is on the data file, since the sidecar does not exist before the first run. It goes with the process: the file
/// is not inherited by a child.
fn lock(data: &File, path: &Path) -> Result<(), SinkError> {
    let deadline = Instant::now() + BETWEEN_FORK_AND_EXEC;
    loop {
        match rustix::fs::flock(data, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(refused(format!("{} is in use by another `leftoff run`", path.display())));
            }
            Err(error) => return Err(storage("cannot lock", path)(error.into())),
        }
    }
}

/// Makes the files. The sidecar comes to its name whole, and last.
fn first_run(ops: &mut dyn FileOps, paths: &Paths, group: &str, data: &File) -> Result<Newest, SinkError> {
    refuse_bytes(length(data, &paths.data)?, &paths.data, paths)?;
    let outcomes =
        ops.create(Part::Outcomes, &paths.outcomes).map_err(storage("cannot make", &paths.outcomes))?;
    refuse_bytes(length(&outcomes, &paths.outcomes)?, &paths.outcomes, paths)?;
    let (new, state) = (&paths.sidecar_new, State::new(group));
    let sidecar = ops.create(Part::Sidecar, new).map_err(storage("cannot make", new))?;
    ops.set_len(Part::Sidecar, &sidecar, 0).map_err(storage("cannot make", new))?;
    ops.set_len(Part::Sidecar, &sidecar, 2 * SLOT_BYTES as u64).map_err(storage("cannot make", new))?;
    write_slot(ops, paths, &sidecar, Place::A, &state)?;
    ops.rename(new, &paths.sidecar).map_err(storage("cannot rename", new))?;
    Ok(newest(state, Place::A, false))
}

/// Makes the files agree with the slot, durably, and puts the claim on top.
fn settle(
    ops: &mut dyn FileOps,
    paths: &Paths,
    found: &Newest,
    data: File,
    outcomes: File,
    notices: &mut Vec<String>,
) -> Result<Open, SinkError> {
    let sidecar = OpenOptions::new().read(true).write(true).open(&paths.sidecar);
    let sidecar = sidecar.map_err(storage("cannot open", &paths.sidecar))?;
    // Names first: no slot may ever speak of a file whose name a power cut takes away.
    let folder = paths.folder();
    ops.sync_folder(folder).map_err(storage("cannot sync", folder))?;
    // It may stand in the page cache only, even after a sync that failed: so it is written again, the same bytes in the same
    // place, before the other slot is given up.
    write_slot(ops, paths, &sidecar, found.place, &found.state)?;
    cut(ops, Part::Data, &data, paths, found.state.data_bytes, notices)?;
    cut(ops, Part::Outcomes, &outcomes, paths, found.state.outcomes_bytes, notices)?;
    let (state, slot) = (found.state.claimed(), found.place.other());
    write_slot(ops, paths, &sidecar, slot, &state)?;
    Ok(Open { data, outcomes, sidecar, dead: None, state, slot, broken: false })
}

fn cut(
    ops: &mut dyn FileOps,
    part: Part,
    file: &File,
    paths: &Paths,
    counts_bytes: u64,
    notices: &mut Vec<String>,
) -> Result<(), SinkError> {
    let path = paths.of(part);
    let tail = length(file, path)? - counts_bytes;
    if tail == 0 {
        return Ok(());
    }
    ops.set_len(part, file, counts_bytes).map_err(storage("cannot cut", path))?;
    ops.sync(part, file).map_err(storage("cannot sync", path))?;
    if part == Part::Data {
        notices.push(format!("{}: cut {tail} bytes that were written and not saved", path.display()));
    }
    Ok(())
}

pub(super) fn write_slot(
    ops: &mut dyn FileOps,
    paths: &Paths,
    sidecar: &File,
    place: Place,
    state: &State,
) -> Result<(), SinkError> {
    let path = &paths.sidecar;
    ops.write_all_at(Part::Sidecar, sidecar, &state.encode(), place.position_bytes())
        .map_err(storage("cannot write", path))?;
    crash_point::pass("slot-written");
    ops.sync(Part::Sidecar, sidecar).map_err(storage("cannot sync", path))
}

fn length(file: &File, path: &Path) -> Result<u64, SinkError> {
    Ok(file.metadata().map_err(storage("cannot read", path))?.len())
}

fn check_group_name(group: &str) -> Result<(), SinkError> {
    if group.len() <= MAX_GROUP_BYTES {
        Ok(())
    } else {
        Err(refused(format!(
            "the group's name has more than {MAX_GROUP_BYTES} bytes, too many for a file sink"
        )))
    }
}

fn check_group(state: &State, group: &str, paths: &Paths) -> Result<(), SinkError> {
    if state.group == group {
        return Ok(());
    }
    Err(refused(format!(
        "{} belongs to group {}, not to {group}\nuse another file for {group}, or run with -g {}",
        paths.data.display(),
        state.group,
        state.group
    )))
}

fn check_length(file: &File, counts_bytes: u64, path: &Path, paths: &Paths) -> Result<(), SinkError> {
    let has = length(file, path)?;
    if has >= counts_bytes {
        return Ok(());
    }
    Err(refused(format!(
        "{} has {has} bytes, but {} says that {counts_bytes} were written: it was cut or exchanged\n\
         bring it back, or move all three files away and use a new group",
        path.display(),
        paths.sidecar.display()
    )))
}

fn refuse_bytes(has: u64, path: &Path, paths: &Paths) -> Result<(), SinkError> {
    if has == 0 {
        return Ok(());
    }
    Err(refused(format!(
        "{} exists with {has} bytes, but {}, which says what it holds, does not\n\
         if it was lost, bring it back; if the file is not from here, choose another name or move it away",
        path.display(),
        paths.sidecar.display()
    )))
}

fn damaged(paths: &Paths) -> SinkError {
    refused(format!(
        "{} is damaged: neither of its two slots is whole, so nobody knows how much of {} counts\n\
         nothing was changed; bring it back from a copy, or move all three files away and use a new group",
        paths.sidecar.display(),
        paths.data.display()
    ))
}

fn refused(text: String) -> SinkError {
    SinkError::Refused(text)
}
