//! What is asked about groups over the wire, by Kafka's rules: each partition and each group for itself, rather than all or nothing.

use leftoff_wire::Uuid;

use crate::broker::{Answer, Broker, Refusal, Reply, State};
use crate::coordinator::classic::{CommitOffsets, ErrorCode, GroupReply, GroupRequest};
use crate::coordinator::{Bounds, PartitionKey, Record, Who};
use crate::types::{Timestamp, TopicPartition};

impl Broker {
    pub(super) fn group_request(&mut self, now: Timestamp, request: GroupRequest) -> Result<Answer, Refusal> {
        let state = &self.state;
        let lasting = &state.coordinator;
        let topics = |topic: &str, partition: i32| partition_of(state, topic, partition);
        let reply = match request {
            GroupRequest::Commit(request) => return self.commit_offsets(now, request),
            GroupRequest::Delete { groups, who } => return self.delete_groups(now, &groups, &who),
            GroupRequest::DeleteOffsets { group, partitions, who } => {
                return self.delete_group_offsets(now, &group, &partitions, &who);
            }
            GroupRequest::Fetch(groups) => GroupReply::Fetch(
                groups.into_iter().map(|group| lasting.fetch_offsets(&topics, group)).collect(),
            ),
            GroupRequest::Describe(groups) => GroupReply::Describe(
                groups.iter().map(|group| self.classic.describe(lasting, group)).collect(),
            ),
            GroupRequest::List(filter) => GroupReply::List(self.classic.list(lasting, &filter)),
        };
        Ok(Answer::Reports(Reply::Group(reply)))
    }

    fn commit_offsets(&mut self, now: Timestamp, request: CommitOffsets) -> Result<Answer, Refusal> {
        let state = &self.state;
        let topics = |topic: &str, partition: i32| partition_of(state, topic, partition);
        let group = request.group.clone();
        let outcome = self.classic.commit(now, &state.coordinator, &topics, request);
        let mut reply = outcome.reply;
        let is_in = self.write_group(now, &group, &outcome.records)?;
        if !is_in {
            let refused = |judged: Result<_, _>| judged.and(Err(ErrorCode::CoordinatorNotAvailable));
            reply = reply.into_iter().map(refused).collect();
        }
        Ok(answer(!outcome.records.is_empty(), GroupReply::Commit(reply)))
    }

    fn delete_groups(&mut self, now: Timestamp, groups: &[String], who: &Who) -> Result<Answer, Refusal> {
        let mut reply = Vec::new();
        let mut has_changed = false;
        for group in groups {
            reply.push(match self.delete_one(now, group, who)? {
                Ok(has_written) => {
                    has_changed |= has_written;
                    ErrorCode::None
                }
                Err(error) => error,
            });
        }
        Ok(answer(has_changed, GroupReply::Delete(reply)))
    }

    fn delete_one(
        &mut self,
        now: Timestamp,
        group: &str,
        who: &Who,
    ) -> Result<Result<bool, ErrorCode>, Refusal> {
        if !self.drop_dead_holder(now, group)? {
            return Ok(Err(ErrorCode::CoordinatorNotAvailable));
        }
        let outcome = match self.classic.delete(&self.state.coordinator, group, who) {
            Ok(outcome) => outcome,
            Err(error) => return Ok(Err(error)),
        };
        if !self.write_group(now, group, &outcome.records)? {
            return Ok(Err(ErrorCode::CoordinatorNotAvailable));
        }
        self.classic.deleted(group);
        Ok(Ok(!outcome.records.is_empty()))
    }

    fn delete_group_offsets(
        &mut self,
        now: Timestamp,
        group: &str,
        partitions: &[TopicPartition],
        who: &Who,
    ) -> Result<Answer, Refusal> {
        let state = &self.state;
        let topics = |topic: &str, partition: i32| partition_of(state, topic, partition);
        let outcome = self.classic.delete_offsets(&state.coordinator, &topics, group, (partitions, who));
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return Ok(answer(false, GroupReply::DeleteOffsets(Err(error)))),
        };
        let is_in = self.write_group(now, group, &outcome.records)?;
        let reply = if is_in { Ok(outcome.reply) } else { Err(ErrorCode::CoordinatorNotAvailable) };
        Ok(answer(!outcome.records.is_empty(), GroupReply::DeleteOffsets(reply)))
    }

    /// Appends records about a group; `false` if they could not be written, which is no harm but to them.
    fn write_group(&mut self, now: Timestamp, group: &str, records: &[Record]) -> Result<bool, Refusal> {
        if records.is_empty() {
            return Ok(true);
        }
        if !self.drop_dead_holder(now, group)? {
            return Ok(false);
        }
        self.try_write(now, records)
    }

    /// An embedded runner that holds the group in the log and not in this process is dead, or waits for the directory: whoever changes the
    /// group now fences it first.
    fn drop_dead_holder(&mut self, now: Timestamp, group: &str) -> Result<bool, Refusal> {
        let coordinator = &self.state.coordinator;
        let known = coordinator.group(group).filter(|known| known.is_held_embedded());
        let Some(owner) = known.and_then(|known| known.owner()) else { return Ok(true) };
        if self.classic.is_held_embedded(group) {
            return Ok(true);
        }
        let outcome = coordinator.leave(now, group, &owner)?;
        self.try_write(now, &outcome.records)
    }

    fn try_write(&mut self, now: Timestamp, records: &[Record]) -> Result<bool, Refusal> {
        match self.append_offsets(now, records, &[]) {
            Ok(()) => Ok(true),
            Err(refusal) if refusal.is_final() => Err(refusal),
            Err(_) => Ok(false),
        }
    }
}

fn answer(has_changed: bool, reply: GroupReply) -> Answer {
    let reply = Reply::Group(reply);
    if has_changed { Answer::WithRound(reply) } else { Answer::Reports(reply) }
}

fn partition_of(state: &State, topic: &str, partition: i32) -> Option<(Uuid, Bounds)> {
    let topic_id = state.topic(topic)?.topic_id;
    let bounds = state.bounds(&PartitionKey { topic: topic.to_owned(), topic_id, partition })?;
    Some((topic_id, bounds))
}
