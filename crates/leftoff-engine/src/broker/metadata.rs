//! What the metadata log says: topics, their ids and settings, log starts, segment roll times, the leader epoch.
//!
//! Handlers of the broker append records made here; only [`Metadata::replay`] changes the state, on the way in and at
//! a start alike. Bytes are in `docs/on-disk.md`.

use std::collections::{BTreeMap, BTreeSet};

use leftoff_wire::Offset;
use leftoff_wire::Uuid;
use leftoff_wire::primitives::{ReadError, Reader, Writer};

use crate::broker::PartitionId;
use crate::broker::settings::Settings;
use crate::types::Timestamp;

/// A topic as the metadata log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Its name; unique among live topics.
    pub name: String,
    /// Its id; never used again for another topic.
    pub topic_id: Uuid,
    /// How many partitions it has, from 0 up.
    pub partitions: i32,
    /// When it was made.
    pub created: Timestamp,
    /// The settings that were given for it.
    pub settings: Settings,
}

/// Why a log start moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStartReason {
    /// Segments older than `retention.ms`.
    Age,
    /// Segments beyond `retention.bytes`.
    Bytes,
    /// Somebody asked for it.
    Asked,
}

/// One change, as a record of the metadata log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A topic is made, or its settings or number of partitions changed.
    Topic(Topic),
    /// A topic is deleted.
    TopicDeleted(Uuid),
    /// Everything below an offset is deleted.
    LogStart {
        /// Whose start.
        partition: PartitionId,
        /// The new start.
        offset: Offset,
        /// Why.
        reason: LogStartReason,
    },
    /// A segment was closed: its age counts from here.
    Rolled {
        /// In which partition.
        partition: PartitionId,
        /// The base offset of the segment that was closed.
        segment_base: Offset,
        /// When, by the broker's clock.
        at: Timestamp,
    },
    /// The leader epoch from here on.
    Epoch(i32),
    /// Producer ids below this one may have been given out.
    ProducerIds(i64),
    /// All settings that were given for something that is no topic; none: it has none any more.
    Kept {
        /// For what.
        of: KeptFor,
        /// Name and value, in the order of names.
        settings: Vec<(String, String)>,
    },
}

/// What settings are kept for, besides topics. Nothing here goes by them: they are shown to those who gave them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptFor {
    /// Kafka's `ConfigResource.Type`: 4 a broker, 32 a group.
    pub resource_type: i8,
    /// Its name.
    pub name: String,
}

const TOPIC: i16 = 1;
const LOG_START: i16 = 2;
const ROLLED: i16 = 3;
const EPOCH: i16 = 4;
const PRODUCER_IDS: i16 = 5;
const KEPT: i16 = 6;
const VALUE_VERSION: i16 = 0;

/// A record of the metadata log that cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// The bytes end too early or hold an impossible length.
    #[error("metadata record: {0}")]
    Read(#[from] ReadError),
    /// A type, version or value that this version of Leftoff does not know.
    #[error("metadata record: unknown {what} {value}; the directory was written by a newer version")]
    Unknown {
        /// Which field.
        what: &'static str,
        /// Its value.
        value: i64,
    },
}

impl Change {
    /// The record's key and value; a null value deletes.
    pub fn encode(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let (mut key_bytes, mut value_bytes) = (Vec::new(), Vec::new());
        let (mut key, mut value) = (Writer::new(&mut key_bytes), Writer::new(&mut value_bytes));
        value.i16(VALUE_VERSION);
        match self {
            Change::Topic(topic) => {
                key.i16(TOPIC);
                key.uuid(&topic.topic_id);
                value.str(&topic.name);
                value.i32(topic.partitions);
                value.i64(topic.created.as_ms());
                write_settings(&mut value, topic.settings.given());
            }
            Change::TopicDeleted(topic_id) => {
                key.i16(TOPIC);
                key.uuid(topic_id);
                return (key_bytes, None);
            }
            Change::LogStart { partition, offset, reason } => {
                key.i16(LOG_START);
                write_partition(&mut key, partition);
                value.i64(offset.get());
                value.i8(match reason {
                    LogStartReason::Age => 1,
                    LogStartReason::Bytes => 2,
                    LogStartReason::Asked => 3,
                });
            }
            Change::Rolled { partition, segment_base, at } => {
                key.i16(ROLLED);
                write_partition(&mut key, partition);
                key.i64(segment_base.get());
                value.i64(at.as_ms());
            }
            Change::Epoch(epoch) => {
                key.i16(EPOCH);
                value.i32(*epoch);
            }
            Change::ProducerIds(end) => {
                key.i16(PRODUCER_IDS);
                value.i64(*end);
            }
            Change::Kept { of, settings } => {
                key.i16(KEPT);
                key.i8(of.resource_type);
                key.str(&of.name);
                write_settings(&mut value, settings);
            }
        }
        (key_bytes, Some(value_bytes))
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// [`MetadataError`] with what was not understood.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Change, MetadataError> {
        let mut key = Reader::new(key);
        let kind = key.i16()?;
        let Some(value) = value else {
            return match kind {
                TOPIC => Ok(Change::TopicDeleted(key.uuid()?)),
                other => Err(MetadataError::Unknown { what: "deletion of type", value: other.into() }),
            };
        };
        let mut value = Reader::new(value);
        let version = value.i16()?;
        if version != VALUE_VERSION {
            return Err(MetadataError::Unknown { what: "value version", value: version.into() });
        }
        Ok(match kind {
            TOPIC => {
                let topic_id = key.uuid()?;
                let name = value.str()?.to_owned();
                let partitions = value.i32()?;
                let created = Timestamp::from_ms(value.i64()?);
                let settings = Settings::from_log(read_settings(&mut value)?);
                Change::Topic(Topic { name, topic_id, partitions, created, settings })
            }
            LOG_START => {
                let partition = read_partition(&mut key)?;
                let offset = read_offset(value.i64()?, "log start")?;
                let reason = match value.i8()? {
                    1 => LogStartReason::Age,
                    2 => LogStartReason::Bytes,
                    3 => LogStartReason::Asked,
                    other => return Err(MetadataError::Unknown { what: "reason", value: other.into() }),
                };
                Change::LogStart { partition, offset, reason }
            }
            ROLLED => {
                let partition = read_partition(&mut key)?;
                let segment_base = read_offset(key.i64()?, "segment base")?;
                Change::Rolled { partition, segment_base, at: Timestamp::from_ms(value.i64()?) }
            }
            EPOCH => Change::Epoch(value.i32()?),
            PRODUCER_IDS => Change::ProducerIds(value.i64()?),
            KEPT => {
                let of = KeptFor { resource_type: key.i8()?, name: key.str()?.to_owned() };
                Change::Kept { of, settings: read_settings(&mut value)? }
            }
            other => return Err(MetadataError::Unknown { what: "type", value: other.into() }),
        })
    }
}

fn write_settings(value: &mut Writer, settings: &[(String, String)]) {
    value.u16(u16::try_from(settings.len()).expect("there are only so many settings"));
    for (name, given) in settings {
        value.str(name);
        value.str(given);
    }
}

fn read_settings(value: &mut Reader<'_>) -> Result<Vec<(String, String)>, MetadataError> {
    let count = value.u16()?;
    let mut given = Vec::new();
    for _ in 0..count {
        given.push((value.str()?.to_owned(), value.str()?.to_owned()));
    }
    Ok(given)
}

fn write_partition(key: &mut Writer, partition: &PartitionId) {
    key.uuid(&partition.topic_id);
    key.i32(partition.partition);
}

fn read_partition(key: &mut Reader<'_>) -> Result<PartitionId, MetadataError> {
    Ok(PartitionId { topic_id: key.uuid()?, partition: key.i32()? })
}

fn read_offset(value: i64, what: &'static str) -> Result<Offset, MetadataError> {
    Offset::new(value).ok_or(MetadataError::Unknown { what, value })
}

/// The state that the metadata log adds up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    topics: BTreeMap<Uuid, Topic>,
    names: BTreeMap<String, Uuid>,
    deleted: BTreeSet<Uuid>,
    log_starts: BTreeMap<PartitionId, Offset>,
    /// Per partition: the base of each closed segment and when it was closed.
    rolled: BTreeMap<PartitionId, BTreeMap<Offset, Timestamp>>,
    leader_epoch: i32,
    producer_ids: i64,
    kept: BTreeMap<KeptFor, Vec<(String, String)>>,
}

impl Metadata {
    /// Applies one change; the only way in which the state changes.
    pub fn replay(&mut self, change: Change) {
        match change {
            Change::Topic(topic) => {
                self.names.insert(topic.name.clone(), topic.topic_id);
                self.topics.insert(topic.topic_id, topic);
            }
            Change::TopicDeleted(topic_id) => {
                if let Some(topic) = self.topics.remove(&topic_id) {
                    self.names.remove(&topic.name);
                    self.log_starts.retain(|partition, _| partition.topic_id != topic_id);
                    self.rolled.retain(|partition, _| partition.topic_id != topic_id);
                }
                self.deleted.insert(topic_id);
            }
            Change::LogStart { partition, offset, .. } => {
                self.log_starts.insert(partition, offset);
                if let Some(rolled) = self.rolled.get_mut(&partition) {
                    // The segment that holds the log start, and those behind it, still need their times.
                    let kept = rolled.range(..=offset).next_back().map_or(Offset::ZERO, |(base, _)| *base);
                    *rolled = rolled.split_off(&kept);
                }
            }
            Change::Rolled { partition, segment_base, at } => {
                self.rolled.entry(partition).or_default().insert(segment_base, at);
            }
            Change::Epoch(epoch) => self.leader_epoch = epoch,
            // Never back: an id is given out once.
            Change::ProducerIds(end) => self.producer_ids = self.producer_ids.max(end),
            Change::Kept { of, settings } if settings.is_empty() => {
                self.kept.remove(&of);
            }
            Change::Kept { of, settings } => {
                self.kept.insert(of, settings);
            }
        }
    }

    /// Live topics, by id.
    pub fn topics(&self) -> impl Iterator<Item = &Topic> {
        self.topics.values()
    }

    /// A live topic by name.
    pub fn by_name(&self, name: &str) -> Option<&Topic> {
        self.names.get(name).and_then(|id| self.topics.get(id))
    }

    /// A live topic by id.
    pub fn by_id(&self, topic_id: &Uuid) -> Option<&Topic> {
        self.topics.get(topic_id)
    }

    /// True for a partition of a live topic.
    pub fn has_partition(&self, partition: &PartitionId) -> bool {
        let topic = self.topics.get(&partition.topic_id);
        topic.is_some_and(|topic| (0..topic.partitions).contains(&partition.partition))
    }

    /// True for the id of a topic that was once made and is deleted.
    pub fn is_deleted(&self, topic_id: &Uuid) -> bool {
        self.deleted.contains(topic_id)
    }

    /// Where a partition's log starts; everything below is deleted.
    pub fn log_start(&self, partition: &PartitionId) -> Offset {
        self.log_starts.get(partition).copied().unwrap_or(Offset::ZERO)
    }

    /// When a closed segment was closed, where the log still says so.
    pub fn rolled_at(&self, partition: &PartitionId, segment_base: Offset) -> Option<Timestamp> {
        self.rolled.get(partition)?.get(&segment_base).copied()
    }

    /// When the active segment of a partition was begun: when the one before it was closed, else when the topic was made.
    pub fn active_since(&self, partition: &PartitionId) -> Option<Timestamp> {
        let last = self.rolled.get(partition).and_then(|rolled| rolled.values().next_back().copied());
        last.or_else(|| self.topics.get(&partition.topic_id).map(|topic| topic.created))
    }

    /// The leader epoch that new batches get.
    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// Producer ids from here on were never given out; 0: none was.
    pub fn producer_ids(&self) -> i64 {
        self.producer_ids
    }

    /// The settings that are kept for something that is no topic.
    pub fn kept(&self, of: &KeptFor) -> &[(String, String)] {
        self.kept.get(of).map_or(&[], Vec::as_slice)
    }

    /// What settings are kept for, in order.
    pub fn keepers(&self) -> impl ExactSizeIterator<Item = &KeptFor> {
        self.kept.keys()
    }
}
