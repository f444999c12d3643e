//! What a partition's outcomes cover, and what was deleted before the group read it.

use crate::audit::records::OutcomeRange;
use crate::audit::tally::Tally;
use crate::input::{OutcomeKind, PartitionFacts};
use crate::verdict::PlaceRange;

/// Ranges must be taken in the order of their first offsets; then the highest last offset of a kind tells whether an offset
/// at or above the latest first one is covered.
pub(super) struct Passed {
    partition: u32,
    log_start: i64,
    covered_to: [Option<i64>; 7],
    /// Where ranges end that were given back and may go on.
    again_to: Vec<i64>,
    /// The next offset below the log start that may have been deleted unread.
    unread: i64,
    /// The next offset that no outcome has called deleted yet.
    deleted_next: i64,
    /// Events in the log that an outcome calls deleted.
    pub called_deleted: u64,
}

impl Passed {
    pub(super) fn new(facts: &PartitionFacts) -> Passed {
        Passed {
            partition: facts.partition,
            log_start: facts.log_start,
            covered_to: [None; 7],
            again_to: Vec::new(),
            // Without a saved offset nobody knows whether the group should have read what is gone.
            unread: facts.saved_next.unwrap_or(facts.log_start),
            deleted_next: 0,
            called_deleted: 0,
        }
    }

    pub(super) fn take(&mut self, range: &OutcomeRange, deleted: &mut Tally) {
        let (from, to) = (range.from.offset, range.to);
        self.read_to(from, to, deleted);
        let covered = &mut self.covered_to[range.kind as usize];
        *covered = (*covered).max(Some(to));
        if range.kind == OutcomeKind::Again {
            self.again_to.push(to);
        }
        if range.kind == OutcomeKind::Deleted {
            // Only what is really gone counts; an event that is still there is judged for itself.
            let (from, to) = (from.max(self.deleted_next), to.min(self.log_start - 1));
            self.add_deleted(from, to, deleted);
            self.deleted_next = self.deleted_next.max(to + 1);
        }
    }

    /// The outcome of the event at this offset.
    pub(super) fn outcome(&mut self, offset: i64) -> Option<OutcomeKind> {
        let covers = |kind: &OutcomeKind| self.covered_to[*kind as usize].is_some_and(|to| offset <= to);
        let kinds = [
            OutcomeKind::Handled,
            OutcomeKind::Filtered,
            OutcomeKind::Dead,
            OutcomeKind::Skipped,
            OutcomeKind::Absorbed,
        ];
        let kind = kinds.into_iter().find(covers);
        if kind.is_none() && covers(&OutcomeKind::Deleted) {
            self.called_deleted += 1;
        }
        kind
    }

    /// How often the event at this offset was given back by decision. Offsets must rise from call to call.
    pub(super) fn again(&mut self, offset: i64) -> u64 {
        self.again_to.retain(|to| offset <= *to);
        self.again_to.len() as u64
    }

    pub(super) fn handled_below_start(&mut self, offset: i64, deleted: &mut Tally) {
        self.read_to(offset, offset, deleted);
    }

    pub(super) fn finish(&mut self, deleted: &mut Tally) {
        self.read_to(self.log_start, self.log_start, deleted);
    }

    /// Something is known of `from` to `to`; what lies between and is gone was deleted unread.
    fn read_to(&mut self, from: i64, to: i64, deleted: &mut Tally) {
        self.add_deleted(self.unread, from.min(self.log_start) - 1, deleted);
        self.unread = self.unread.max(to.saturating_add(1));
    }

    fn add_deleted(&self, from: i64, to: i64, deleted: &mut Tally) {
        if from <= to {
            deleted.add_offsets(PlaceRange { partition: self.partition, from, to });
        }
    }
}
