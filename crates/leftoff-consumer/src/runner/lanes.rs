//! Events that are fetched and not done, in lanes: those of one lane are handled one after the other, in offset order;
//! lanes take turns. An event that waits for another attempt holds up its lane, and no other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::policy::Tries;
use crate::ledger::Ticket;
use crate::source::{Event, PartitionId};

#[cfg(test)]
mod tests;

/// An event on its way to a handler.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) ticket: Ticket,
    pub(super) event: Event,
    pub(super) tries: Tries,
}

/// What is handled one after the other: a partition, for as long as it is owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LaneId {
    id: PartitionId,
    ownership: u64,
}

#[derive(Debug, Default)]
struct Lane {
    /// The first of it is in a handler's hands: taken, and not finished.
    in_hand: bool,
    /// Until when the first one waits for another attempt.
    due: Option<Duration>,
    queue: VecDeque<Work>,
    bytes: usize,
}

/// All lanes.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: BTreeMap<LaneId, Lane>,
    /// Those whose first event can be taken, in the order of their turns.
    ready: VecDeque<LaneId>,
    /// Those whose first event waits for another attempt.
    waiting: BTreeSet<(Duration, LaneId)>,
    events: usize,
    bytes: usize,
}

impl Lanes {
    /// Behind all others of its lane.
    pub(super) fn push(&mut self, work: Work) {
        let lane_id = lane_of(&work);
        let size = size_bytes(&work.event);
        let lane = self.lanes.entry(lane_id).or_default();
        if lane.queue.is_empty() && !lane.in_hand {
            self.ready.push_back(lane_id);
        }
        lane.queue.push_back(work);
        lane.bytes += size;
        self.events += 1;
        self.bytes += size;
    }

    /// The next event whose turn it is. Its lane stands still until it is [finished](Lanes::finished) or comes
    /// [again](Lanes::again).
    pub(super) fn take(&mut self, now: impl FnOnce() -> Duration) -> Option<Work> {
        self.wake(now);
        let lane_id = self.ready.pop_front()?;
        let lane = self.lanes.get_mut(&lane_id).expect("a lane that is ready exists");
        let work = lane.queue.pop_front().expect("a lane that is ready has an event");
        lane.in_hand = true;
        let size = size_bytes(&work.event);
        lane.bytes -= size;
        self.events -= 1;
        self.bytes -= size;
        Some(work)
    }

    fn wake(&mut self, now: impl FnOnce() -> Duration) {
        if self.waiting.is_empty() {
            return;
        }
        let now = now();
        while let Some((_, lane_id)) = self.waiting.first().copied().filter(|(due, _)| *due <= now) {
            self.waiting.pop_first();
            self.lanes.get_mut(&lane_id).expect("a lane that waits exists").due = None;
            self.ready.push_back(lane_id);
        }
    }

    /// The event that was taken from this lane is done, or given up; the next one of the lane can be taken. Nothing, if the
    /// lane is gone.
    pub(super) fn finished(&mut self, ticket: &Ticket) {
        let lane_id = lane_of_ticket(ticket);
        let Some(lane) = self.lanes.get_mut(&lane_id) else { return };
        lane.in_hand = false;
        if lane.queue.is_empty() {
            self.lanes.remove(&lane_id);
        } else {
            self.ready.push_back(lane_id);
        }
    }

    /// The event that was taken comes again at `due`, before all others of its lane.
    pub(super) fn again(&mut self, work: Work, due: Duration) {
        let lane_id = lane_of(&work);
        let Some(lane) = self.lanes.get_mut(&lane_id) else { return };
        let size = size_bytes(&work.event);
        lane.in_hand = false;
        lane.due = Some(due);
        lane.queue.push_front(work);
        lane.bytes += size;
        self.events += 1;
        self.bytes += size;
        self.waiting.insert((due, lane_id));
    }

    /// Forgets a partition, what is taken of it too.
    pub(super) fn drop_partition(&mut self, id: PartitionId) {
        let dropped: Vec<LaneId> = self.lanes.keys().copied().filter(|lane| lane.id == id).collect();
        for lane_id in dropped {
            let lane = self.lanes.remove(&lane_id).expect("its key was just found");
            self.events -= lane.queue.len();
            self.bytes -= lane.bytes;
            self.ready.retain(|ready| *ready != lane_id);
            if let Some(due) = lane.due {
                self.waiting.remove(&(due, lane_id));
            }
        }
    }

    /// When the first event that waits for another attempt is to be taken.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.waiting.first().map(|(due, _)| *due)
    }

    /// True if nothing is in a lane and nothing is taken.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// How many events are in lanes, and about how many bytes they take.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.events, self.bytes)
    }

    /// How many events of a partition are in lanes.
    pub(super) fn events_of(&self, id: PartitionId) -> usize {
        self.lanes.iter().filter(|(lane, _)| lane.id == id).map(|(_, lane)| lane.queue.len()).sum()
    }
}

fn lane_of(work: &Work) -> LaneId {
    lane_of_ticket(&work.ticket)
}

fn lane_of_ticket(ticket: &Ticket) -> LaneId {
    LaneId { id: ticket.id, ownership: ticket.ownership }
}

/// About what an event takes in memory.
fn size_bytes(event: &Event) -> usize {
    let of = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
    let headers: usize = event.headers.iter().map(|(name, value)| name.len() + of(value)).sum();
    std::mem::size_of::<Work>() + of(&event.key) + of(&event.value) + headers
}
