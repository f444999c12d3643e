//! `leftoff consume`: events on stdout. Without a group, or without saving, it reads beside whoever writes.

mod group;
mod leg;
mod printer;
mod reader;

use std::sync::Arc;

use leftoff_engine::broker::{PartitionId, View};
use leftoff_engine::disk::Disk;
use leftoff_wire::Offset;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::cli::args::Global;
use crate::cli::args::read_write::ConsumeArgs;
use crate::cli::failure::Failure;
use crate::cli::session::{disk, from_open, note, open_view};

use leg::{Leg, plan};
use printer::Printer;
use reader::Reader;

/// How often a reader at the end looks for more: every 20 ms.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Prints events.
pub fn run(global: &Global, args: &ConsumeArgs) -> Result<(), Failure> {
    if args.group.is_some() && !args.no_commit {
        return group::run(global, args);
    }
    let mut view = open_view(global)?;
    let mut legs = plan(global, args, view.state())?;
    let mut printer = Printer::stdout(global, args).map_err(Failure::stdout)?;
    let mut reader = Reader::new(global, &mut printer);
    let disk = disk(&global.data)?;
    loop {
        for leg in &mut legs {
            let log = view.state().log(&leg.partition).ok_or_else(|| gone(leg))?;
            reader.read(log, leg)?;
        }
        if reader.is_done() || legs.iter().all(Leg::is_done) {
            return reader.flush();
        }
        reader.flush()?;
        if wait_for_more(global, &mut view, &disk)? == More::ReaderGone {
            return Ok(());
        }
        if args.partitions.is_empty() {
            add_new_partitions(global, &view, &mut legs);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum More {
    /// A round has finished since the view was taken.
    Round,
    /// Nobody reads our stdout any more (`leftoff consume t --follow | head`).
    ReaderGone,
}

/// Looking costs one small read.
fn wait_for_more(global: &Global, view: &mut View, disk: &Arc<dyn Disk>) -> Result<More, Failure> {
    let stdout = std::io::stdout();
    while !view.refresh(disk).map_err(|error| from_open(&global.data, error))? {
        // Asked for nothing, it tells only that the other end is closed.
        match poll(&mut [PollFd::new(&stdout, PollFlags::empty())], Some(&LOOK_AGAIN)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(More::ReaderGone),
            Err(error) => return Err(Failure::stdout(error.into())),
        }
    }
    Ok(More::Round)
}

/// A topic may get more partitions while it is followed: those are read from their first event.
fn add_new_partitions(global: &Global, view: &View, legs: &mut Vec<Leg>) {
    let topics: Vec<_> = view.state().topics().filter(|topic| follows(legs, topic.topic_id)).collect();
    for topic in topics {
        for number in 0..topic.partitions {
            let partition = PartitionId { topic_id: topic.topic_id, partition: number };
            if legs.iter().all(|leg| leg.partition != partition) {
                note(global, &format!("{} has a new partition, {number}", topic.name));
                legs.push(Leg { topic: topic.name.clone(), partition, at: Offset::ZERO, until: None });
            }
        }
    }
}

/// Whether a topic is read without end.
fn follows(legs: &[Leg], topic_id: leftoff_wire::Uuid) -> bool {
    legs.iter().any(|leg| leg.partition.topic_id == topic_id && leg.until.is_none())
}

fn gone(leg: &Leg) -> Failure {
    Failure::cannot_reach(format!("{} was deleted while it was read", leg.topic))
}
