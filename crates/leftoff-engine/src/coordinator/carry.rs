//! Keeping what is live when the oldest segment of the offsets log goes.

use leftoff_wire::{Offset, consumer_offsets::OffsetCommitValue};

use super::{
    Coordinator, Entry, Group, Record, Source, Who, Why,
    outcome::{group_record, offset_record, source_record},
    story::Story,
};

impl Coordinator {
    /// The live values whose last record lies below an offset of the offsets log, to be appended again before what lies below is deleted.
    /// They keep their time, their committer, their flags and their note; `was` keeps why they were written first.
    pub fn carry(&self, below: Offset) -> Vec<Record> {
        let mut records = Vec::new();
        for group in self.groups.values() {
            records.extend(carried_membership(group, below));
            records.extend(
                group
                    .offsets()
                    .filter(|(_, _, entry)| entry.at < below)
                    .map(|(topic, partition, entry)| carried_offset(group, topic, partition, entry)),
            );
        }
        records.extend(
            self.sources()
                .filter(|(_, source)| source.at < below)
                .map(|(name, source)| carried_source(name, source)),
        );
        records
    }

    /// Forgets the tombstones whose record lies below the log start: a coordinator that is fed the log from there would not know them
    /// either. To be called once the carried records are replayed and the log start has moved.
    ///
    /// # Panics
    /// If a live value lies below: it should have been carried.
    pub fn trimmed(&mut self, log_start: Offset) {
        assert!(self.carry(log_start).is_empty(), "live values below {log_start} were not carried");
        self.groups.retain(|_, group| group.forget_tombstones(log_start));
        self.sources.retain(|_, slot| slot.is_kept(log_start));
    }
}

fn carried_membership(group: &Group, below: Offset) -> Option<Record> {
    let slot = group.metadata_slot().filter(|slot| slot.at < below)?;
    slot.live?;
    let value = group.metadata_value()?;
    let who = group.members().first().cloned().unwrap_or_else(Who::unknown);
    let story =
        Story { generation: Some(group.generation()), prev: Some(slot.at), ..Story::new(Why::Carried, &who) };
    Some(group_record(group.name(), Some(value), &story))
}

fn carried_offset(group: &Group, topic: &str, partition: i32, entry: &Entry) -> Record {
    let story = Story {
        was: Some(entry.why),
        generation: entry.generation,
        old: Some(entry.committed),
        prev: Some(entry.at),
        flags: entry.flags,
        note: entry.note.clone(),
        reset: entry.reset,
        ..Story::new(Why::Carried, &entry.who)
    };
    let value = OffsetCommitValue {
        committed: entry.committed,
        leader_epoch: entry.leader_epoch,
        metadata: entry.metadata.clone(),
        commit_timestamp_ms: entry.commit_timestamp.as_ms(),
        topic_id: Some(entry.topic_id),
    };
    offset_record(group.name(), topic, partition, Some(&value), &story)
}

fn carried_source(name: &str, source: &Source) -> Record {
    let story = Story { prev: Some(source.at), ..Story::new(Why::Carried, &source.who) };
    source_record(name, &source.progress, &story)
}
