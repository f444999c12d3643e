//! OffsetCommit (versions 2 to 9), OffsetFetch (1 to 9) and OffsetDelete (0).
//!
//! Each partition is judged by itself, unlike an embedded commit, and Kafka's rules hold: an offset above the end and a move backwards are taken
//! and flagged, unless commits are strict. A commit counts as a heartbeat.

use std::collections::BTreeMap;

use leftoff_wire::{Committed, Uuid, primitives::MAX_STR_BYTES};

use super::asks::{CommitOffsets, FetchOffsets, FetchedGroup, FetchedOffset, OffsetToSave};
use super::live::{GroupState, LiveGroup};
use super::subscription::subscribes;
use super::{Classic, ErrorCode};
use crate::coordinator::commit::{judge, record};
use crate::coordinator::delete;
use crate::coordinator::outcome::offset_record;
use crate::coordinator::story::Story;
use crate::coordinator::{
    Bounds, Commit, CommitError, Coordinator, Entry, Flag, Flags, OffsetToCommit, Outcome, PartitionKey, Who,
    Why,
};
use crate::types::{Timestamp, TopicPartition};

/// What the topics are: the id and the bounds of a partition, by the topic's name.
pub type Topics<'a> = &'a dyn Fn(&str, i32) -> Option<(Uuid, Bounds)>;

impl Classic {
    /// Saves what can be saved; the reply says for each, in order, what was odd about it or why it is refused.
    pub fn commit(
        &mut self,
        now: Timestamp,
        lasting: &Coordinator,
        topics: Topics<'_>,
        request: CommitOffsets,
    ) -> Outcome<Vec<Result<Flags, ErrorCode>>> {
        if let Err(error) = self.check_commit(lasting, &request) {
            return Outcome { reply: vec![Err(error); request.offsets.len()], records: Vec::new() };
        }
        if let Some(group) = self.groups.get_mut(&request.group).filter(|group| !group.members.is_empty()) {
            group.touch(now, &request.member_id);
        }
        let group = lasting.known_group(&request.group);
        let who = request.client.who(&request.member_id);
        let commit = Commit {
            group: request.group,
            fence: None,
            offsets: Vec::new(),
            who,
            why: Why::Commit,
            note: None,
            strict: self.config.strict_commits,
        };
        let mut reply = Vec::new();
        // Of a partition that is named twice the last offset counts, as it does in Kafka.
        let mut records = BTreeMap::new();
        for offset in request.offsets {
            let judged = offset_to_commit(offset, topics).and_then(|offset| {
                let before = group.and_then(|group| group.entry(&offset.key));
                let bounds = |key: &PartitionKey| topics(&key.topic, key.partition).map(|(_, bounds)| bounds);
                let flags = judge(&commit, &offset, before, &bounds).map_err(|error| code(&error))?;
                if commit.strict && flags.contains(Flag::Backwards) {
                    return Err(ErrorCode::PolicyViolation);
                }
                Ok((offset, flags))
            });
            reply.push(judged.map(|(offset, flags)| {
                let key = (offset.key.topic.clone(), offset.key.partition);
                records.insert(key, record(now, &commit, &offset, group, (flags, None)));
                flags
            }));
        }
        Outcome { reply, records: records.into_values().collect() }
    }

    /// Whether the committer may, by Kafka's `ClassicGroup.validateOffsetCommit`.
    fn check_commit(&self, lasting: &Coordinator, request: &CommitOffsets) -> Result<(), ErrorCode> {
        if request.group.len() > MAX_STR_BYTES {
            return Err(ErrorCode::InvalidGroupId);
        }
        if self.embedded.contains(&request.group) {
            return Err(ErrorCode::UnknownMemberId);
        }
        let CommitOffsets { generation, member_id, group_instance_id, .. } = request;
        match self.groups.get(&request.group) {
            None if *generation < 0 => Ok(()),
            None if lasting.group(&request.group).is_some() => Err(ErrorCode::UnknownMemberId),
            None => Err(ErrorCode::IllegalGeneration),
            Some(group) if *generation < 0 && group.state == GroupState::Empty => Ok(()),
            Some(group) => {
                let is_simple = *generation < 0 && member_id.is_empty() && group_instance_id.is_none();
                if is_simple {
                    return Err(ErrorCode::UnknownMemberId);
                }
                group.check_member(member_id, group_instance_id.as_deref())?;
                match group.state {
                    _ if *generation != group.generation => Err(ErrorCode::IllegalGeneration),
                    // It has heard of the new generation, and not yet what its part in it is.
                    GroupState::CompletingRebalance => Err(ErrorCode::RebalanceInProgress),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Deletes offsets of a group. A topic that a member subscribes to keeps its offsets.
    ///
    /// # Errors
    /// [`ErrorCode::GroupIdNotFound`], or [`ErrorCode::NonEmptyGroup`] if its members are no consumers.
    pub fn delete_offsets(
        &self,
        lasting: &Coordinator,
        topics: Topics<'_>,
        group: &str,
        (partitions, who): (&[TopicPartition], &Who),
    ) -> Result<Outcome<Vec<ErrorCode>>, ErrorCode> {
        let live = self.groups.get(group);
        let known = lasting.group(group);
        if live.is_none() && known.is_none() {
            return Err(ErrorCode::GroupIdNotFound);
        }
        let has_members = live.filter(|live| live.state != GroupState::Empty);
        let is_consumers = has_members.is_none_or(|live| live.protocol_type.as_deref() == Some("consumer"));
        if self.embedded.contains(group) || !is_consumers {
            return Err(ErrorCode::NonEmptyGroup);
        }
        let mut records = BTreeMap::new();
        let mut delete_one = |TopicPartition { topic, partition }: &TopicPartition| {
            if topics(topic, *partition).is_none() {
                return ErrorCode::UnknownTopicOrPartition;
            }
            if has_members.is_some_and(|live| is_subscribed(live, topic)) {
                return ErrorCode::GroupSubscribedToTopic;
            }
            let entry = known.and_then(|known| Some((known, known.entry_by_name(topic, *partition)?)));
            if let Some((known, entry)) = entry {
                let story = Story {
                    old: Some(entry.committed),
                    prev: Some(entry.at),
                    ..delete::story(known, who, None)
                };
                let record = offset_record(group, topic, *partition, None, &story);
                records.insert((topic.clone(), *partition), record);
            }
            ErrorCode::None
        };
        let reply = partitions.iter().map(&mut delete_one).collect();
        Ok(Outcome { reply, records: records.into_values().collect() })
    }
}

impl Coordinator {
    /// The saved offsets of a group, by the topics as they are now: what was saved for an earlier topic of a name is none.
    pub fn fetch_offsets(&self, topics: Topics<'_>, request: FetchOffsets) -> FetchedGroup {
        let group = self.group(&request.group);
        let live_entry = |topic: &str, partition: i32| {
            let entry = group?.entry_by_name(topic, partition)?;
            let (topic_id, _) = topics(topic, partition)?;
            (entry.topic_id == topic_id || entry.topic_id == Uuid::ZERO).then_some(entry)
        };
        let asked = match request.topics {
            Some(topics) => topics,
            None => {
                let mut all: Vec<(String, Vec<i32>)> = Vec::new();
                let entries = group.into_iter().flat_map(|group| group.offsets());
                for (topic, partition, _) in
                    entries.filter(|(topic, number, _)| live_entry(topic, *number).is_some())
                {
                    match all.last_mut() {
                        Some((last, partitions)) if last == topic => partitions.push(partition),
                        _ => all.push((topic.to_owned(), vec![partition])),
                    }
                }
                all
            }
        };
        let fetched = |(topic, partitions): (String, Vec<i32>)| {
            let offsets =
                partitions.iter().map(|number| fetched(*number, live_entry(&topic, *number))).collect();
            (topic, offsets)
        };
        FetchedGroup { group: request.group, topics: asked.into_iter().map(fetched).collect() }
    }
}

fn offset_to_commit(offset: OffsetToSave, topics: Topics<'_>) -> Result<OffsetToCommit, ErrorCode> {
    let OffsetToSave { topic, partition, committed, leader_epoch, metadata } = offset;
    let (topic_id, _) = topics(&topic, partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let committed = Committed::from_wire(committed).ok_or(ErrorCode::InvalidRequest)?;
    let leader_epoch = (leader_epoch >= 0).then_some(leader_epoch);
    Ok(OffsetToCommit { key: PartitionKey { topic, topic_id, partition }, committed, leader_epoch, metadata })
}

fn code(error: &CommitError) -> ErrorCode {
    match error {
        CommitError::UnknownPartition { .. } => ErrorCode::UnknownTopicOrPartition,
        CommitError::AboveEnd { .. } => ErrorCode::OffsetOutOfRange,
        CommitError::MetadataTooLarge { .. } => ErrorCode::OffsetMetadataTooLarge,
        CommitError::Group(_) => ErrorCode::InvalidRequest,
    }
}

/// A member whose subscription does not read may read anything.
fn is_subscribed(group: &LiveGroup, topic: &str) -> bool {
    let protocol = group.protocol.as_deref();
    group.members.values().any(|member| match protocol {
        Some(protocol) => subscribes(member.metadata(protocol), topic),
        None => member.protocols.iter().any(|protocol| subscribes(&protocol.metadata, topic)),
    })
}

fn fetched(partition: i32, entry: Option<&Entry>) -> FetchedOffset {
    FetchedOffset {
        partition,
        committed: entry.map_or(-1, |entry| entry.committed.next().get()),
        leader_epoch: entry.and_then(|entry| entry.leader_epoch).unwrap_or(-1),
        metadata: entry.map(|entry| entry.metadata.clone()).unwrap_or_default(),
    }
}
