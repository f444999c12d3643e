//! Events that their handlers are done with, and that wait for others before them, or for the sink: nothing is entered that
//! would stand before an unfinished event.

use std::collections::BTreeMap;

use leftoff_wire::Offset;

use super::lanes::{Work, size_bytes};
use crate::sink::{GaveUp, Outcome};
use crate::source::PartitionId;

/// So many events of a partition may wait behind an unfinished one.
const MAX_EVENTS: usize = 10_000;
/// The most bytes of all of them, their records included.
const MAX_BYTES: usize = 64 << 20;

/// What came of an event.
#[derive(Debug)]
pub(super) enum End {
    Done(Outcome),
    GivenUp(GaveUp),
}

/// All that wait.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    of: BTreeMap<PartitionId, BTreeMap<Offset, (Work, End)>>,
    events: usize,
    bytes: usize,
}

impl Arrived {
    pub(super) fn push(&mut self, work: Work, end: End) {
        self.events += 1;
        self.bytes += size(&work, &end);
        self.of.entry(work.ticket.id).or_default().insert(work.ticket.offset, (work, end));
    }

    pub(super) fn pop(&mut self, id: PartitionId, offset: Offset) -> Option<(Work, End)> {
        let found = self.of.get_mut(&id)?.remove(&offset)?;
        if self.of[&id].is_empty() {
            self.of.remove(&id);
        }
        self.count_out(&found);
        Some(found)
    }

    /// Those of the same lane that come after an event.
    pub(super) fn take_behind(&mut self, work: &Work) -> Vec<Work> {
        let Some(waiting) = self.of.get_mut(&work.ticket.id) else { return Vec::new() };
        let behind: Vec<Offset> = waiting
            .range(work.ticket.offset.next()..)
            .filter(|(_, (later, _))| later.shares_lane_with(work))
            .map(|(offset, _)| *offset)
            .collect();
        behind.into_iter().filter_map(|offset| Some(self.pop(work.ticket.id, offset)?.0)).collect()
    }

    /// Returns how many were dropped.
    pub(super) fn drop_partition(&mut self, id: PartitionId) -> u64 {
        let dropped = self.of.remove(&id).unwrap_or_default();
        dropped.values().for_each(|one| self.count_out(one));
        dropped.len() as u64
    }

    fn count_out(&mut self, (work, end): &(Work, End)) {
        self.events -= 1;
        self.bytes -= size(work, end);
    }

    pub(super) fn partitions(&self) -> impl Iterator<Item = PartitionId> {
        self.of.keys().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.events
    }

    pub(super) fn len_of(&self, id: PartitionId) -> usize {
        self.of.get(&id).map_or(0, BTreeMap::len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// True if no more may come to wait, from any partition.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= MAX_BYTES
    }

    /// True if no more of this partition may come to wait.
    pub(super) fn is_full_of(&self, id: PartitionId) -> bool {
        self.len_of(id) >= MAX_EVENTS
    }
}

fn size(work: &Work, end: &End) -> usize {
    let records = match end {
        End::Done(Outcome::Handled { records }) => records.iter().map(|record| record.json().len()).sum(),
        End::Done(Outcome::Filtered | Outcome::Absorbed | Outcome::Skipped(_) | Outcome::Dead(_))
        | End::GivenUp(_) => 0,
    };
    size_bytes(&work.event) + records
}
