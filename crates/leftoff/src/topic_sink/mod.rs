//! The consumer runtime's sink into a topic of the same directory: exactly once for every reader.
//!
//! Records, the evidence for events without any, and the group's offset are one commit set: one round makes all of it visible, and
//! recovery keeps it whole or cuts it whole. The bytes are in `docs/on-disk.md`.

use std::collections::{BTreeMap, BTreeSet};

use leftoff_consumer::sink::{
    BadRecord, ClaimPartition, Claimed, MatrixRow, Move, Outcome, Output, Promise, Sink, SinkError, Written,
    assert_moves_cover, outcome_lines, outcome_ranges,
};
use leftoff_consumer::source::PartitionId as SourceId;
use leftoff_engine::broker::{PartitionId, Topic};
use leftoff_engine::coordinator::Why;
use leftoff_wire::record_batch::HEADER_BYTES;
use leftoff_wire::{Committed, Offset, Uuid};

use crate::hold::{Hold, HoldError, OneOffset};
use crate::partitioner::Partitioner;
use crate::source::StoreSource;
use crate::store::random_id;

mod batches;
mod outlet;
mod record;
#[cfg(test)]
mod tests;

pub use batches::{EVIDENCE_KEY, GROUP_HEADER, TOPICS_HEADER};
pub use outlet::{NoOutlet, Outlet};

use batches::{SetBuilder, record_bytes};

/// What may be promised of a topic in the same directory.
pub const ROW: MatrixRow = MatrixRow {
    sink: "topic in the same directory",
    how: "appends the records and saves the group's offset in one commit set, with one sync",
    authority: "the group's offset, in the same directory",
    promise: Promise::ExactlyOnce,
    meaning: "each event's records are in the topic once, for every reader",
    left_over: "a reset of the group that repeats events has their records written again",
};

/// Writes into a topic of the directory that the events come from.
#[derive(Debug)]
pub struct TopicSink {
    hold: Hold,
    topic: Topic,
    follow_group: bool,
    partitioners: BTreeMap<Uuid, (i32, Partitioner)>,
    /// Where the first events without a key go.
    draw: u32,
}

impl TopicSink {
    /// For the group that `source` reads for. `follow_group` allows to go on where the group says when the topic that held its
    /// records is gone.
    ///
    /// # Errors
    /// [`SinkError::Refused`] if there is no such topic, or the group reads it: it would handle its own records for ever.
    pub fn new(source: &StoreSource, topic: &str, follow_group: bool) -> Result<TopicSink, SinkError> {
        let hold = source.hold();
        let Some(topic) = hold.store.topic(topic) else {
            return Err(SinkError::Refused(format!("there is no topic {topic:?} to write to")));
        };
        if hold.reads(topic.topic_id) {
            let (name, group) = (&topic.name, &hold.group);
            return Err(SinkError::Refused(format!(
                "topic {name:?} is read by group {group:?}, which would handle its own records for ever"
            )));
        }
        let draw = u32::from(random_id().as_bytes()[0]);
        Ok(TopicSink { hold, topic, follow_group, partitioners: BTreeMap::new(), draw })
    }

    /// What a partition's offset is kept with, and what a person should know of it.
    fn outlet(&self, claim: &ClaimPartition) -> Result<(Outlet, Option<String>), SinkError> {
        let outlet = |from| Outlet { topic: self.topic.name.clone(), topic_id: self.topic.topic_id, from };
        let Some(entry) = self.hold.entry(claim.id) else { return Ok((outlet(Offset::ZERO), None)) };
        let (partition, next) = (format!("{}/{}", claim.topic, claim.id.partition), entry.committed.next());
        match entry.metadata.parse::<Outlet>() {
            Ok(before) if before.topic_id == self.topic.topic_id => {
                // After a reset below it the records of what is repeated are in this topic, too.
                Ok((outlet(before.from.min(next)), None))
            }
            Ok(before) if before.topic == self.topic.name && !self.follow_group => {
                let (name, group) = (&self.topic.name, &self.hold.group);
                Err(SinkError::Refused(format!(
                    "topic {name:?} was made anew: the one that held what group {group:?} wrote of {partition}, up to \
                     offset {next}, is gone\nto write the records again use a new group, or reset this one; to go on \
                     where the group says: allow it"
                )))
            }
            _ => {
                let name = &self.topic.name;
                let told =
                    format!("{partition}: what was handled before offset {next} is not in topic {name}");
                Ok((outlet(next), Some(told).filter(|_| next > Offset::ZERO)))
            }
        }
    }

    /// The topic as it is now, which may have more partitions than before.
    fn topic_now(&self) -> Result<Topic, SinkError> {
        let found = self.hold.store.topic(&self.topic.name);
        found.filter(|topic| topic.topic_id == self.topic.topic_id).ok_or_else(|| {
            SinkError::Refused(format!(
                "topic {:?} was deleted while records were written to it",
                self.topic.name
            ))
        })
    }

    /// The topic that a record goes to.
    fn topic_of(&self, named: Option<&str>) -> Result<Topic, String> {
        match named {
            None => self.topic_now().map_err(|error| error.to_string()),
            Some(name) if *name == self.topic.name => self.topic_now().map_err(|error| error.to_string()),
            Some(name) => self.hold.store.topic(name).ok_or_else(|| {
                format!(
                    "it names topic {name:?}, which does not exist; `leftoff topics create {name}` makes it (an object \
                     with the keys \"topic\" and \"value\" says where it goes; as a value, put it into \"value\")"
                )
            }),
        }
    }

    fn check_record(&self, json: &str) -> Result<(), String> {
        let event = record::read(json)?;
        let topic = self.topic_of(event.topic.as_deref())?;
        let size = HEADER_BYTES + record_bytes(&event, &self.hold.group);
        let limit = topic.settings.max_message_bytes();
        if size as u64 > limit {
            let name = topic.name;
            return Err(format!(
                "it takes up to {size} bytes, and a batch of topic {name} at most {limit}: raise max.message.bytes"
            ));
        }
        Ok(())
    }

    /// The records and the evidence of a write.
    fn fill(&mut self, outputs: &[Output], set: &mut SetBuilder<'_>) -> Result<(), SinkError> {
        let mut elsewhere = BTreeSet::new();
        let mut without = Vec::new();
        for output in outputs {
            let Outcome::Handled { records } = &output.outcome else {
                if let Outcome::Dead(letter) = &output.outcome {
                    let (to, topic) = self.hold.dead_letters_to().map_err(SinkError::Refused)?;
                    set.push_letter(to, &topic, letter);
                }
                without.push(output.clone());
                continue;
            };
            let mut is_here = false;
            for (number, json) in records.iter().enumerate() {
                let event = record::read(json.json()).expect("it passed the check");
                let topic = self.topic_of(event.topic.as_deref()).map_err(SinkError::Refused)?;
                is_here |= topic.topic_id == self.topic.topic_id;
                if topic.topic_id != self.topic.topic_id {
                    elsewhere.insert(topic.topic_id);
                }
                let id = format!("{}/{}/{number}", output.id, output.offset);
                let partition = self.partition(&topic, &event);
                set.push(partition, &topic, &event, &id);
            }
            if !is_here {
                let outcome = Outcome::Handled { records: Vec::new() };
                without.push(Output { outcome, event_id: None, ..*output });
            }
        }
        let topic = self.topic_now()?;
        let number = outputs.first().map_or(0, |output| output.id.partition) % topic.partitions;
        let unless = PartitionId { topic_id: topic.topic_id, partition: number };
        set.push_evidence(&topic, unless, &outcome_lines(&outcome_ranges(&without)), &elsewhere);
        Ok(())
    }

    fn partition(&mut self, topic: &Topic, event: &record::NewEvent) -> PartitionId {
        let draw = self.draw;
        let fresh = || (topic.partitions, Partitioner::new(topic.partitions, draw));
        let entry = self.partitioners.entry(topic.topic_id).or_insert_with(fresh);
        if entry.0 != topic.partitions {
            *entry = fresh();
        }
        let size = event.value.as_ref().map_or(0, Vec::len);
        let partition = entry.1.partition(event.key.as_deref(), size);
        PartitionId { topic_id: topic.topic_id, partition }
    }
}

impl Sink for TopicSink {
    fn claim(&mut self, partitions: &[ClaimPartition]) -> Result<Claimed, SinkError> {
        let mut claimed = Claimed::default();
        for claim in partitions {
            let (outlet, notice) = self.outlet(claim)?;
            self.hold.set_words_of(claim.id, outlet.to_string());
            claimed.notices.extend(notice);
            claimed.next.insert(claim.id, None);
        }
        Ok(claimed)
    }

    fn keeps_dead_letters(&self) -> bool {
        true
    }

    fn check(&self, output: &Output) -> Result<(), BadRecord> {
        let Outcome::Handled { records } = &output.outcome else { return Ok(()) };
        for (number, record) in records.iter().enumerate() {
            self.check_record(record.json()).map_err(|why| BadRecord { number, why })?;
        }
        Ok(())
    }

    /// Saves the group's offset behind the last output of each partition. Moves without outputs are left to the source's
    /// save, which follows: decisions have their own kind of record.
    fn write(&mut self, outputs: &[Output], moves: &[Move]) -> Result<Written, SinkError> {
        assert_moves_cover(outputs, moves);
        let stands = |id: SourceId| self.hold.entry(id).map(|entry| entry.committed);
        if let Some(moved) = moves.iter().find(|m| stands(m.id) != m.expected) {
            return Ok(Written::Fenced { id: moved.id });
        }
        let last: BTreeMap<SourceId, Offset> =
            outputs.iter().map(|output| (output.id, output.offset)).collect();
        let Some(first) = outputs.first() else { return Ok(Written::Written) };
        let group = self.hold.group.clone();
        let mut set = SetBuilder::new(&group, self.hold.store.with_state(|state| state.offsets_log().end()));
        self.fill(outputs, &mut set)?;
        let offsets = moves.iter().filter_map(|m| {
            let committed = Committed::after(*last.get(&m.id)?);
            Some(OneOffset { id: m.id, committed, leader_epoch: m.leader_epoch, words: "" })
        });
        let offsets: Vec<OneOffset<'_>> = offsets.collect();
        match self.hold.save(&offsets, set.build(), Why::Commit, None) {
            Ok(()) => {}
            Err(HoldError::Ended) => return Ok(Written::Fenced { id: first.id }),
            Err(HoldError::NotHeld(id)) => return Ok(Written::Fenced { id }),
            Err(HoldError::Refused(refusal)) => return Err(SinkError::Refused(refusal.to_string())),
            Err(HoldError::Storage(error)) => {
                let what = format!("cannot write to topic {}", self.topic.name);
                return Err(SinkError::Storage { what, error: std::io::Error::other(error) });
            }
        }
        offsets.iter().for_each(|one| self.hold.note_saved(one.id, one.committed));
        Ok(Written::Written)
    }

    fn row(&self) -> MatrixRow {
        ROW
    }

    fn place(&self) -> String {
        format!("topic:{}", self.topic.name)
    }
}
