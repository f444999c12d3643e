//! What the runner knows of the partitions it holds, beside their progress in the ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use leftoff_wire::{Committed, Offset};

use super::policy::Tries;
use super::report::{About, PartitionReport, PartitionStatus};
use super::tried::Tried;
use crate::ledger::Ledger;
use crate::sink::{DeadLetter, Mark};
use crate::source::{Decision, PartitionId, Reset};

/// What an assignment says beside what is held.
pub(super) struct Assigned {
    pub(super) log_start: Offset,
    pub(super) metadata: String,
    pub(super) unclean: bool,
    pub(super) added: bool,
    pub(super) reset: Option<Reset>,
}

/// A partition that is held.
pub(super) struct Held {
    pub(super) topic: Arc<str>,
    pub(super) ownership: u64,
    /// Where the sink stands: what may be mirrored. Without authority: what the group has.
    pub(super) saved: Option<Committed>,
    /// What the group has.
    pub(super) mirrored: Option<Committed>,
    /// The high watermark as last known.
    pub(super) end: Offset,
    /// The high watermark at the assignment: what `--until-end` waits for.
    pub(super) end_at_start: Offset,
    /// The source said that there is nothing more up to here.
    pub(super) reached: Option<Offset>,
    pub(super) started_at: Committed,
    /// Leader epoch of the last event handled, -1 if none.
    pub(super) leader_epoch: i32,
    /// What the sink keeps of it beside the offset, as of the last event that was entered.
    pub(super) mark: Mark,
    /// A jump that is not in the group's history yet.
    pub(super) decision: Option<Decision>,
    /// An event that was passed by, whose move is not in the group's history yet. Its outcome is the sink's, too.
    pub(super) passed_by: Option<Decision>,
    /// The dead letter that goes with it, where the sink does not keep it.
    pub(super) dead: Option<Box<DeadLetter>>,
    /// Attempts of events that are not done.
    pub(super) tried: Tried,
    /// The words that the group has with the offset.
    pub(super) mirrored_words: String,
    /// The source was asked not to deliver more of it.
    pub(super) paused: bool,
    pub(super) handled: u64,
}

impl Held {
    pub(super) fn new(topic: Arc<str>, ownership: u64, in_group: Option<Committed>, end: Offset) -> Held {
        Held {
            topic,
            ownership,
            saved: None,
            mirrored: in_group,
            end,
            end_at_start: end,
            reached: None,
            started_at: Committed::log_start(Offset::ZERO),
            leader_epoch: -1,
            mark: Mark::default(),
            decision: None,
            passed_by: None,
            dead: None,
            tried: Tried::default(),
            mirrored_words: String::new(),
            paused: false,
            handled: 0,
        }
    }

    /// What a notice about this partition is about.
    pub(super) fn about(&self, event: &'static str, id: PartitionId, offset: Option<Offset>) -> About<'_> {
        About { event, topic: &self.topic, partition: id.partition, offset }
    }

    /// How often an event was tried by earlier runs.
    pub(super) fn tries(&self, offset: Offset) -> Tries {
        Tries { failed: self.tried.events.get(&offset).map_or(0, |tried| tried.failed), failed_here: 0 }
    }

    /// Why it failed the last time.
    pub(super) fn why(&self, offset: Offset) -> String {
        self.tried.events.get(&offset).map_or_else(String::new, |tried| tried.why.clone())
    }

    /// True if the group does not have what it is to have.
    pub(super) fn is_ahead_of_the_group(&self) -> bool {
        self.saved != self.mirrored
            || self.decision.is_some()
            || self.passed_by.is_some()
            || self.tried.encode() != self.mirrored_words
    }

    pub(super) fn moved_end(&mut self, end: Offset) {
        self.end = self.end.max(end);
    }

    pub(super) fn reached(&mut self, end: Offset) {
        self.moved_end(end);
        self.reached = Some(end);
    }

    fn at_end(&self, position: Offset) -> bool {
        position >= self.end_at_start || self.reached.is_some_and(|end| position >= end)
    }

    pub(super) fn report(self, id: PartitionId, committed: Option<Committed>) -> PartitionReport {
        PartitionReport {
            topic: self.topic.to_string(),
            id,
            started_at: self.started_at,
            committed,
            end: self.end,
            handled: self.handled,
        }
    }
}

/// All partitions that are held.
#[derive(Default)]
pub(super) struct Partitions(BTreeMap<PartitionId, Held>);

impl Partitions {
    pub(super) fn insert(&mut self, id: PartitionId, held: Held) {
        self.0.insert(id, held);
    }

    pub(super) fn remove(&mut self, id: PartitionId) -> Option<Held> {
        self.0.remove(&id)
    }

    pub(super) fn get(&self, id: PartitionId) -> Option<&Held> {
        self.0.get(&id)
    }

    /// One that is owned according to the ledger: both are entered and left together.
    pub(super) fn held(&mut self, id: PartitionId) -> &mut Held {
        self.0.get_mut(&id).expect("a partition in the ledger is held")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (PartitionId, &Held)> {
        self.0.iter().map(|(id, held)| (*id, held))
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = (PartitionId, Held)> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }

    /// True if there are partitions and nothing is left in any of what was there at the assignment.
    pub(super) fn all_at_end(&self, ledger: &Ledger) -> bool {
        !self.0.is_empty()
            && self.iter().all(|(id, held)| ledger.position(id).is_some_and(|position| held.at_end(position)))
    }

    /// How each stands.
    pub(super) fn status(&self, ledger: &Ledger) -> Vec<PartitionStatus> {
        let status = |(id, held): (PartitionId, &Held)| {
            let (topic, saved, end) = (held.topic.clone(), held.saved, held.end);
            Some(PartitionStatus { topic, id, handled: ledger.committed(id)?, saved, end })
        };
        self.iter().filter_map(status).collect()
    }

    pub(super) fn lag_offsets(&self, ledger: &Ledger) -> u64 {
        let lag = |(id, held): (PartitionId, &Held)| {
            ledger.committed(id).map_or(0, |committed| held.end.since(committed.next()))
        };
        self.iter().map(lag).sum()
    }
}
