//! Deleting offsets and groups: tombstones, through which the history goes on.

use std::collections::BTreeSet;

use leftoff_wire::Committed;

use super::{
    Coordinator, Group, GroupError, Outcome, Who, Why,
    error::check_name,
    membership::check_free,
    outcome::{group_record, offset_record},
    story::{self, Story, check_note},
};
use crate::types::TopicPartition;

impl Coordinator {
    /// Deletes the offsets of some partitions, by the topic's name: the topic may be gone. The reply says what each one was, in order.
    ///
    /// # Errors
    /// Refused as a whole while a member holds the group, or if one of them has no offset.
    pub fn delete_offsets(
        &self,
        group: &str,
        partitions: &[TopicPartition],
        who: &Who,
        note: Option<&str>,
    ) -> Result<Outcome<Vec<Committed>>, GroupError> {
        let known = self.deletable(group, note)?;
        let mut outcome = Outcome { reply: Vec::new(), records: Vec::new() };
        let mut seen = BTreeSet::new();
        for TopicPartition { topic, partition } in partitions {
            if !seen.insert((topic, partition)) {
                return Err(GroupError::NamedTwice { topic: topic.clone(), partition: *partition });
            }
            let entry = known.entry_by_name(topic, *partition).ok_or_else(|| GroupError::NoOffset {
                group: group.to_owned(),
                topic: topic.clone(),
                partition: *partition,
            })?;
            let story = Story { old: Some(entry.committed), prev: Some(entry.at), ..story(known, who, note) };
            outcome.records.push(offset_record(group, topic, *partition, None, &story));
            outcome.reply.push(entry.committed);
        }
        Ok(outcome)
    }

    /// Deletes a group: its offsets and what says who held it. Its history stays in the log for as long as the log does.
    ///
    /// # Errors
    /// Refused while a member holds the group, or if there is none.
    pub fn delete_group(
        &self,
        group: &str,
        who: &Who,
        note: Option<&str>,
    ) -> Result<Outcome<Vec<Committed>>, GroupError> {
        let known = self.deletable(group, note)?;
        let mut outcome = Outcome { reply: Vec::new(), records: Vec::new() };
        for (topic, partition, entry) in known.offsets() {
            let story = Story { old: Some(entry.committed), prev: Some(entry.at), ..story(known, who, note) };
            outcome.records.push(offset_record(group, topic, partition, None, &story));
            outcome.reply.push(entry.committed);
        }
        if let Some(slot) = known.metadata_slot().filter(|slot| slot.live.is_some()) {
            let story = Story { prev: Some(slot.at), ..story(known, who, note) };
            outcome.records.push(group_record(group, None, &story));
        }
        Ok(outcome)
    }

    fn deletable(&self, group: &str, note: Option<&str>) -> Result<&Group, GroupError> {
        check_name("group", group)?;
        check_note(note)?;
        let known = self.group(group).ok_or_else(|| GroupError::UnknownGroup { group: group.to_owned() })?;
        check_free(Some(known), group)?;
        Ok(known)
    }
}

/// The generation goes along, so that a group of the same name goes on above it.
pub(super) fn story(group: &Group, who: &Who, note: Option<&str>) -> Story {
    Story { generation: Some(group.generation()), note: story::note(note), ..Story::new(Why::Deleted, who) }
}
