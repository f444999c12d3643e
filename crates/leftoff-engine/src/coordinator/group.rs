//! A group: its generation, its members and its offsets.

use std::collections::BTreeMap;

use leftoff_wire::consumer_offsets::GroupMetadataValue;
use leftoff_wire::{Committed, Offset, Uuid};

use super::{Flags, Ownership, PartitionKey, Who, Why};
use crate::types::Timestamp;

/// A group and all that the offsets log says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    name: String,
    generation: i32,
    members: Vec<Who>,
    /// The last group metadata record; its value is the time in it.
    metadata: Option<Slot<Timestamp>>,
    /// What that record says, unless it is a tombstone.
    metadata_value: Option<GroupMetadataValue>,
    /// Topic, then partition: Kafka's key, so that a topic made anew replaces the offsets of the one before.
    offsets: BTreeMap<String, BTreeMap<i32, Slot<Entry>>>,
}

/// The offset that a group has committed for a partition, with its story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The incarnation of the topic; [`Uuid::ZERO`] if the record does not say. Offsets of a topic that is gone stay here until a newer one replaces them: callers filter.
    pub topic_id: Uuid,
    /// The next offset to read.
    pub committed: Committed,
    /// The leader epoch of the last handled event, if it is known (KIP-320).
    pub leader_epoch: Option<i32>,
    /// The committer's own words, returned as they came.
    pub metadata: String,
    /// When the value was decided. A carried value keeps the time of the first.
    pub commit_timestamp: Timestamp,
    /// The offset of its record in the offsets log: where its history begins.
    pub at: Offset,
    /// Why the value was written; of a carried value, why it was written first.
    pub why: Why,
    /// Who wrote it.
    pub who: Who,
    /// The generation of the group at that time, if the record says so.
    pub generation: Option<i32>,
    /// What was odd about it.
    pub flags: Flags,
    /// The reason that a person gave.
    pub note: Option<String>,
    /// The number of the reset that the value is, where a person moved the offset (a reset, an undo, an import): rising, and
    /// kept when the value is carried. A place that keeps the offset itself is moved by it once, and notes the number.
    pub reset: Option<Offset>,
}

/// The newest record of a key: where to begin a walk through its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The topic's name.
    pub topic: &'a str,
    /// The partition's number.
    pub partition: i32,
    /// The offset of the record in the offsets log.
    pub at: Offset,
    /// Whether the record is a value rather than a tombstone.
    pub is_live: bool,
}

/// What is known of one key: where its last record lies, and the value unless that record is a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot<T> {
    pub(super) at: Offset,
    pub(super) live: Option<T>,
}

impl Group {
    /// The group's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The generation: one higher with each join, 0 for a group that never had a member.
    pub fn generation(&self) -> i32 {
        self.generation
    }

    /// The members, now.
    pub fn members(&self) -> &[Who] {
        &self.members
    }

    /// The entries by topic and partition, sorted.
    pub fn offsets(&self) -> impl Iterator<Item = (&str, i32, &Entry)> {
        self.slots().filter_map(|(topic, partition, slot)| Some((topic, partition, slot.live.as_ref()?)))
    }

    /// The entry for a partition of this very incarnation of the topic.
    pub fn entry(&self, key: &PartitionKey) -> Option<&Entry> {
        self.entry_by_name(&key.topic, key.partition).filter(|entry| entry.topic_id == key.topic_id)
    }

    /// The entry for a partition by the topic's name, of whichever incarnation.
    pub fn entry_by_name(&self, topic: &str, partition: i32) -> Option<&Entry> {
        self.slot(topic, partition)?.live.as_ref()
    }

    /// The newest record of every key, tombstones too: where the histories begin.
    pub fn heads(&self) -> impl Iterator<Item = Head<'_>> {
        self.slots().map(|(topic, partition, slot)| Head {
            topic,
            partition,
            at: slot.at,
            is_live: slot.live.is_some(),
        })
    }

    /// When the group's membership changed last, if it ever had a member.
    pub fn membership_timestamp(&self) -> Option<Timestamp> {
        self.metadata.as_ref()?.live
    }

    /// What the last group metadata record says: protocol, leader, members with subscription and assignment.
    pub fn metadata_value(&self) -> Option<&GroupMetadataValue> {
        self.metadata_value.as_ref()
    }

    /// Whether an embedded runner holds the group, or held it when its process died.
    pub fn is_held_embedded(&self) -> bool {
        self.metadata_value.as_ref().is_some_and(super::membership::is_embedded)
    }

    /// Who holds the group, if somebody does.
    pub fn owner(&self) -> Option<Ownership> {
        let member = self.members.first()?;
        Some(Ownership { member_id: member.member_id().to_owned(), generation: self.generation })
    }

    /// Whether `ownership` is a hold on the group as it is now.
    pub fn is_held_by(&self, ownership: &Ownership) -> bool {
        ownership.generation == self.generation && self.member(&ownership.member_id).is_some()
    }

    /// The member of that id.
    pub fn member(&self, member_id: &str) -> Option<&Who> {
        self.members.iter().find(|member| member.member_id() == member_id)
    }

    pub(super) fn new(name: &str) -> Group {
        Group {
            name: name.to_owned(),
            generation: 0,
            members: Vec::new(),
            metadata: None,
            metadata_value: None,
            offsets: BTreeMap::new(),
        }
    }

    /// Whether anything but history is left.
    pub(super) fn exists(&self) -> bool {
        self.membership_timestamp().is_some() || self.offsets().next().is_some()
    }

    pub(super) fn slot(&self, topic: &str, partition: i32) -> Option<&Slot<Entry>> {
        self.offsets.get(topic)?.get(&partition)
    }

    pub(super) fn metadata_slot(&self) -> Option<&Slot<Timestamp>> {
        self.metadata.as_ref()
    }

    fn slots(&self) -> impl Iterator<Item = (&str, i32, &Slot<Entry>)> {
        self.offsets.iter().flat_map(|(topic, partitions)| {
            partitions.iter().map(|(partition, slot)| (topic.as_str(), *partition, slot))
        })
    }

    /// For replay only.
    pub(super) fn put_offset(&mut self, topic: &str, partition: i32, slot: Slot<Entry>) {
        if let Some(partitions) = self.offsets.get_mut(topic) {
            partitions.insert(partition, slot);
        } else {
            self.offsets.insert(topic.to_owned(), BTreeMap::from([(partition, slot)]));
        }
    }

    /// For replay only. The generation never falls, not even through a deletion, as long as the log remembers it.
    pub(super) fn put_metadata(
        &mut self,
        slot: Slot<Timestamp>,
        generation: i32,
        members: Vec<Who>,
        value: Option<GroupMetadataValue>,
    ) {
        assert!(generation >= self.generation, "the generation of group {} fell", self.name);
        self.generation = generation;
        self.members = members;
        self.metadata = Some(slot);
        self.metadata_value = value;
    }

    /// For replay only: forgets tombstones whose record lies below. Whether anything is left.
    pub(super) fn forget_tombstones(&mut self, below: Offset) -> bool {
        self.offsets.retain(|_, partitions| {
            partitions.retain(|_, slot| slot.is_kept(below));
            !partitions.is_empty()
        });
        if self.metadata.as_ref().is_some_and(|slot| !slot.is_kept(below)) {
            self.metadata = None;
            self.generation = 0;
        }
        self.metadata.is_some() || !self.offsets.is_empty()
    }
}

impl Entry {
    /// The last event that was handled, where the value says so: it was committed as progress, and lies behind an event.
    ///
    /// `None` after a reset, an undo or an import (nothing was handled there), and at 0. Where the offset before is a hole or a marker, that
    /// number is returned all the same: only the log knows.
    pub fn last_handled(&self) -> Option<Offset> {
        match self.why {
            Why::Commit => self.committed.before(),
            _ => None,
        }
    }
}

impl<T> Slot<T> {
    pub(super) fn is_kept(&self, below: Offset) -> bool {
        self.live.is_some() || self.at >= below
    }
}
