//! Keys and values of the offsets log: Kafka's own bytes (`OffsetCommitKey`, `GroupMetadataKey` and their values), so that its
//! dump tool reads the log, and one type of ours, [`SourceProgress`], which that tool skips by name.
//!
//! A key is a record type and the type's fields; a value is a version and that version's fields. Every version that Kafka
//! has written is read; one is written.

use crate::primitives::{ReadError, Reader, Writer};

mod group_metadata;
mod offset_commit;
mod source_progress;
#[cfg(test)]
mod tests;

pub use group_metadata::{GroupMetadataValue, MemberMetadata};
pub use offset_commit::OffsetCommitValue;
pub use source_progress::SourceProgress;

/// What brokers before Kafka 0.9 wrote; the fields are those of [`OFFSET_COMMIT`].
const LEGACY_OFFSET_COMMIT: i16 = 0;
const OFFSET_COMMIT: i16 = 1;
const GROUP_METADATA: i16 = 2;
/// Ours: `L` and a number, far from where Kafka counts.
const SOURCE_PROGRESS: i16 = 0x4c01;

/// The key of a record in the offsets log: what the record is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// Where a group goes on in a partition; see [`OffsetCommitValue`].
    OffsetCommit {
        /// The group.
        group: String,
        /// The topic's name. Its id is in the value.
        topic: String,
        /// The partition.
        partition: i32,
    },
    /// A group's members and their assignment; see [`GroupMetadataValue`].
    GroupMetadata {
        /// The group.
        group: String,
    },
    /// How far a file has been read into a topic; see [`SourceProgress`].
    SourceProgress {
        /// What the file is called, by its reader's choice.
        source: String,
    },
    /// A record type that is not known here, such as those of Kafka's newer coordinators.
    Unknown {
        /// The type.
        type_id: i16,
        /// The key's bytes behind the type.
        rest: Vec<u8>,
    },
}

impl Key {
    /// The key in these bytes. Record types 0 and 1 are both an [`Key::OffsetCommit`]; 0 was written before Kafka 0.9.
    ///
    /// # Errors
    /// [`ConsumerOffsetsError::Read`] and [`ConsumerOffsetsError::Trailing`], if the fields are not those of the type.
    pub fn decode(bytes: &[u8]) -> Result<Key, ConsumerOffsetsError> {
        let mut reader = Reader::new(bytes);
        let key = match reader.i16()? {
            LEGACY_OFFSET_COMMIT | OFFSET_COMMIT => Key::OffsetCommit {
                group: reader.str()?.to_owned(),
                topic: reader.str()?.to_owned(),
                partition: reader.i32()?,
            },
            GROUP_METADATA => Key::GroupMetadata { group: reader.str()?.to_owned() },
            SOURCE_PROGRESS => Key::SourceProgress { source: reader.str()?.to_owned() },
            type_id => return Ok(Key::Unknown { type_id, rest: reader.rest().to_owned() }),
        };
        ends(&reader)?;
        Ok(key)
    }

    /// The key's bytes.
    ///
    /// # Panics
    /// If a string is longer than [`MAX_STR_BYTES`](crate::primitives::MAX_STR_BYTES).
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        match self {
            Key::OffsetCommit { group, topic, partition } => {
                writer.i16(OFFSET_COMMIT);
                writer.str(group);
                writer.str(topic);
                writer.i32(*partition);
            }
            Key::GroupMetadata { group } => {
                writer.i16(GROUP_METADATA);
                writer.str(group);
            }
            Key::SourceProgress { source } => {
                writer.i16(SOURCE_PROGRESS);
                writer.str(source);
            }
            Key::Unknown { type_id, rest } => {
                writer.i16(*type_id);
                writer.raw(rest);
            }
        }
        bytes
    }
}

/// Why bytes are no key or value of the offsets log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConsumerOffsetsError {
    /// A field cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A version of the value that is not known here: somebody newer wrote it.
    #[error("version {version} of {what}")]
    Version {
        /// The value's name.
        what: &'static str,
        /// Its version.
        version: i16,
    },
    /// A number that cannot be negative is.
    #[error("{field} is {value}")]
    Negative {
        /// The field's name.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// There are bytes behind the last field.
    #[error("{left_bytes} bytes behind the last field")]
    Trailing {
        /// How many.
        left_bytes: usize,
    },
}

/// The version at the front of a value, if it is one up to `last`.
fn version(reader: &mut Reader<'_>, what: &'static str, last: i16) -> Result<i16, ConsumerOffsetsError> {
    let version = reader.i16()?;
    if (0..=last).contains(&version) {
        Ok(version)
    } else {
        Err(ConsumerOffsetsError::Version { what, version })
    }
}

/// Reads the tagged fields at the end of a struct (KIP-482) and hands each one to `field`, which may ignore it.
fn tagged_fields<'a>(
    reader: &mut Reader<'a>,
    mut field: impl FnMut(u32, Reader<'a>) -> Result<(), ConsumerOffsetsError>,
) -> Result<(), ConsumerOffsetsError> {
    for _ in 0..reader.unsigned_varint()? {
        let tag = reader.unsigned_varint()?;
        let size = reader.unsigned_varint()?;
        field(tag, Reader::new(reader.take(size as usize)?))?;
    }
    Ok(())
}

fn ends(reader: &Reader<'_>) -> Result<(), ConsumerOffsetsError> {
    match reader.remaining() {
        0 => Ok(()),
        left_bytes => Err(ConsumerOffsetsError::Trailing { left_bytes }),
    }
}
