//! The only place where what lasts changes: a record of the offsets log becomes state.

use leftoff_wire::{
    Offset, Uuid,
    consumer_offsets::{GroupMetadataValue, Key, OffsetCommitValue, SourceProgress},
};

use super::{Coordinator, Entry, Group, Record, ReplayError, Source, Who, group::Slot, story::Story};
use crate::types::Timestamp;

/// What replay has passed over, since this coordinator was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records replayed, the skipped ones too.
    pub records: u64,
    /// Records of a type that is not known here, which Kafka and later versions may write.
    pub unknown_records: u64,
    /// Records that name a record of their key which is not in the log: it was taken out, or the log was damaged there.
    pub missing_records: u64,
}

impl Coordinator {
    /// Takes in the record at `at` of the offsets log, at start-up and in live traffic alike. Records of unknown types are skipped and
    /// counted.
    ///
    /// # Errors
    /// [`ReplayError`] if the record cannot be one that this log holds; nothing has changed then.
    pub fn replay<'a>(
        &mut self,
        at: Offset,
        key: &[u8],
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    ) -> Result<(), ReplayError> {
        if let Some(last) = self.last_replayed.filter(|last| *last >= at) {
            return Err(ReplayError::NotRising { at, last });
        }
        match decode_key(at, key)? {
            Key::OffsetCommit { group, topic, partition } => {
                let story = Story::parse(at, headers)?;
                self.replay_offset(at, &group, &topic, partition, value, story)?;
            }
            Key::GroupMetadata { group } => {
                let story = Story::parse(at, headers)?;
                self.replay_membership(at, &group, value, &story)?;
            }
            Key::SourceProgress { source } => {
                let story = Story::parse(at, headers)?;
                self.replay_source(at, source, value, story)?;
            }
            Key::Unknown { .. } => self.counts.unknown_records += 1,
        }
        self.counts.records += 1;
        self.last_replayed = Some(at);
        Ok(())
    }

    /// Takes in a record that a handler has just decided and that got the offset `at`.
    ///
    /// # Errors
    /// As [`Coordinator::replay`].
    pub fn replay_record(&mut self, at: Offset, record: &Record) -> Result<(), ReplayError> {
        let headers = record.headers.iter().map(|(name, value)| (name.as_bytes(), Some(value.as_slice())));
        self.replay(at, &record.key, record.value.as_deref(), headers)
    }

    fn replay_offset(
        &mut self,
        at: Offset,
        group: &str,
        topic: &str,
        partition: i32,
        value: Option<&[u8]>,
        story: Story,
    ) -> Result<(), ReplayError> {
        let last = self.known_group(group).and_then(|group| group.slot(topic, partition)).map(|slot| slot.at);
        let missing = check_chain(at, &story, last)?;
        let live = value.map(|value| entry(at, value, story)).transpose()?;
        self.group_mut(group).put_offset(topic, partition, Slot { at, live });
        self.counts.missing_records += missing;
        Ok(())
    }

    fn replay_membership(
        &mut self,
        at: Offset,
        group: &str,
        value: Option<&[u8]>,
        story: &Story,
    ) -> Result<(), ReplayError> {
        let known = self.known_group(group);
        let missing = check_chain(at, story, known.and_then(Group::metadata_slot).map(|slot| slot.at))?;
        let last = known.map_or(0, Group::generation);
        let membership = membership(at, value, story, last)?;
        if membership.generation < last {
            let generation = membership.generation;
            return Err(ReplayError::GenerationFell { at, group: group.to_owned(), generation, last });
        }
        let slot = Slot { at, live: membership.since };
        let Membership { generation, members, value, .. } = membership;
        self.group_mut(group).put_metadata(slot, generation, members, value);
        self.counts.missing_records += missing;
        Ok(())
    }

    fn replay_source(
        &mut self,
        at: Offset,
        source: String,
        value: Option<&[u8]>,
        story: Story,
    ) -> Result<(), ReplayError> {
        let missing = check_chain(at, &story, self.sources.get(&source).map(|slot| slot.at))?;
        let progress = value.map(SourceProgress::decode).transpose().map_err(|error| bad(at, error))?;
        let live = progress.map(|progress| Source { progress, at, who: story.who });
        self.sources.insert(source, Slot { at, live });
        self.counts.missing_records += missing;
        Ok(())
    }

    fn group_mut(&mut self, group: &str) -> &mut Group {
        self.groups.entry(group.to_owned()).or_insert_with(|| Group::new(group))
    }
}

struct Membership {
    since: Option<Timestamp>,
    generation: i32,
    members: Vec<Who>,
    value: Option<GroupMetadataValue>,
}

/// A record names the one before it under its key. Whoever was decided before that one was replayed names an older one: a fork, which we
/// never write. Naming one that is not there means that it was taken out: returned as a count.
///
/// A key of which nothing is known yet may name any record (the log start has passed it), and Kafka's own records name none.
fn check_chain(at: Offset, story: &Story, last: Option<Offset>) -> Result<u64, ReplayError> {
    let Some(last) = last.filter(|_| story.why.is_some()) else { return Ok(0) };
    match story.prev {
        Some(prev) if prev >= last => Ok(u64::from(prev > last)),
        prev => Err(ReplayError::ForkedChain { at, prev, last }),
    }
}

fn entry(at: Offset, value: &[u8], story: Story) -> Result<Entry, ReplayError> {
    let value = decode_offset(at, value)?;
    Ok(Entry {
        topic_id: value.topic_id.unwrap_or(Uuid::ZERO),
        committed: value.committed,
        leader_epoch: value.leader_epoch,
        metadata: value.metadata,
        commit_timestamp: Timestamp::from_ms(value.commit_timestamp_ms),
        at,
        why: story.origin(),
        who: story.who,
        generation: story.generation,
        flags: story.flags,
        note: story.note,
        reset: story.reset,
    })
}

/// A tombstone keeps the generation, by its header or by what was known, so that it never falls.
fn membership(at: Offset, value: Option<&[u8]>, story: &Story, last: i32) -> Result<Membership, ReplayError> {
    let Some(value) = value else {
        let generation = story.generation.unwrap_or(last);
        return Ok(Membership { since: None, generation, members: Vec::new(), value: None });
    };
    let value = GroupMetadataValue::decode(value).map_err(|error| bad(at, error))?;
    let software = |member_id: &str| {
        if member_id == story.who.member_id() { story.who.software() } else { "" }
    };
    let members = value
        .members
        .iter()
        .map(|m| Who::new(&m.member_id, &m.client_id, &m.client_host, software(&m.member_id)))
        .collect();
    let since = Some(Timestamp::from_ms(value.current_state_timestamp_ms));
    Ok(Membership { since, generation: value.generation, members, value: Some(value) })
}

pub(super) fn decode_key(at: Offset, key: &[u8]) -> Result<Key, ReplayError> {
    Key::decode(key).map_err(|error| bad(at, error))
}

pub(super) fn decode_offset(at: Offset, value: &[u8]) -> Result<OffsetCommitValue, ReplayError> {
    OffsetCommitValue::decode(value).map_err(|error| bad(at, error))
}

fn bad(at: Offset, what: impl ToString) -> ReplayError {
    ReplayError::BadRecord { at, what: what.to_string() }
}
