//! Group offsets, ownership and history.
//!
//! A pure state machine, as Kafka's `GroupCoordinatorShard`: a handler (`&self`) decides and returns an [`Outcome`], a reply plus records
//! of the offsets log; only [`Coordinator::replay`] changes what lasts. Start-up and live traffic take the same path, so a fresh
//! coordinator fed the log equals the live one. It knows neither log nor disk nor clock.
//!
//! The caller appends the records of an outcome, replays them with the offsets that they got, and only then has the next thing decided about
//! the same group or source: each record names the record before it under the same key. What may be shown to whom before the sync is the
//! caller's business.

mod carry;
pub mod classic;
mod commit;
mod delete;
mod error;
mod export;
mod group;
mod history;
mod lag;
mod membership;
mod outcome;
mod plan;
mod progress;
mod replay;
mod story;
#[cfg(test)]
mod tests;
mod undo;
mod who;
mod why;

use std::collections::BTreeMap;

use leftoff_wire::{Offset, Uuid};

pub use commit::{Commit, MAX_METADATA_BYTES, OffsetToCommit};
pub use error::{CommitError, GroupError, ReplayError};
pub use export::ExportRow;
pub use group::{Entry, Group, Head};
pub use history::{Move, Passed, RawRecord, WalkError, Walked, passed, walk};
pub use lag::Lag;
pub use outcome::{Outcome, Record};
pub use plan::{Clamped, PlanError, Planned, ResetTo, Span, plan};
pub use progress::Source;
pub use replay::Counts;
pub use story::MAX_NOTE_BYTES;
pub use undo::{Undo, UndoError, UndoTo, undo};
pub use who::{MAX_WHO_PART_BYTES, Who};
pub use why::{Flag, Flags, Why};

use group::Slot;

/// The state of all groups, as the offsets log tells it.
///
/// Two coordinators are equal if they know the same groups, offsets and sources from the same records; what they merely counted
/// ([`Counts`]) is left out.
#[derive(Clone, Debug, Default)]
pub struct Coordinator {
    groups: BTreeMap<String, Group>,
    sources: BTreeMap<String, Slot<Source>>,
    last_replayed: Option<Offset>,
    counts: Counts,
}

/// A partition of one incarnation of a topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionKey {
    /// The topic's name, which is in Kafka's key.
    pub topic: String,
    /// The topic's id: a topic made anew under the same name has another one, and its offsets start over (OF-050).
    pub topic_id: Uuid,
    /// The partition's number.
    pub partition: i32,
}

/// What can be read of a partition, taken in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first offset that is not deleted.
    pub log_start: Offset,
    /// The offset behind the last one that is readable, or will be in the same round.
    pub end: Offset,
}

/// A member's hold on its group: what a commit must show. It ends with the next join or leave.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ownership {
    /// The member, as the join answered it.
    pub member_id: String,
    /// The generation of the group that the join began.
    pub generation: i32,
}

impl Coordinator {
    /// The groups that exist (they have an offset, or have had a member and were not deleted), sorted by name.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.values().filter(|group| group.exists())
    }

    /// The group of that name, if it exists.
    pub fn group(&self, group: &str) -> Option<&Group> {
        self.known_group(group).filter(|group| group.exists())
    }

    /// The group of that name, even if it was deleted and only its history is left.
    pub fn known_group(&self, group: &str) -> Option<&Group> {
        self.groups.get(group)
    }

    /// The entry of a group for a partition of this very incarnation of the topic.
    pub fn entry(&self, group: &str, key: &PartitionKey) -> Option<&Entry> {
        self.known_group(group)?.entry(key)
    }

    /// Where the newest record of each key lies, tombstones too, rising. Fed these alone, a fresh coordinator equals this one.
    pub fn newest_records(&self) -> Vec<Offset> {
        let groups = self.groups.values();
        let mut newest: Vec<Offset> = groups
            .flat_map(|group| {
                group.heads().map(|head| head.at).chain(group.metadata_slot().map(|slot| slot.at))
            })
            .chain(self.sources.values().map(|slot| slot.at))
            .collect();
        newest.sort_unstable();
        newest
    }

    /// What replay has passed over so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

impl PartialEq for Coordinator {
    fn eq(&self, other: &Coordinator) -> bool {
        self.groups == other.groups && self.sources == other.sources
    }
}

impl Eq for Coordinator {}

impl std::fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.topic, self.partition)
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} to {}", self.log_start, self.end)
    }
}

impl std::fmt::Display for Ownership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "member {} of generation {}", self.member_id, self.generation)
    }
}
