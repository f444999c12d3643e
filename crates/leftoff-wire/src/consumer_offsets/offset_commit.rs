//! Where a group goes on in a partition.

use super::{ConsumerOffsetsError, ends, tagged_fields, version};
use crate::primitives::{Reader, Writer};
use crate::{Committed, Uuid};

const WHAT: &str = "OffsetCommitValue";
/// The version that is written: the first with the topic's id.
const WRITTEN: i16 = 4;
const TOPIC_ID_TAG: u32 = 0;

/// Kafka's `OffsetCommitValue`: a committed offset. Versions 0 to 4 are read, 4 is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommitValue {
    /// The offset to read next.
    pub committed: Committed,
    /// The leader epoch of the last record that was handled, if the client told (KIP-320); not negative.
    pub leader_epoch: Option<i32>,
    /// What the client wants to be kept with the offset; may be empty.
    pub metadata: String,
    /// When it was committed, in milliseconds since 1970.
    pub commit_timestamp_ms: i64,
    /// The topic's id, so that a topic of the same name made later does not inherit the offset.
    pub topic_id: Option<Uuid>,
}

impl OffsetCommitValue {
    /// The value in these bytes. The expiry time that version 1 had is left out: offsets do not expire by a date that a
    /// client chose.
    ///
    /// # Errors
    /// [`ConsumerOffsetsError`]; a negative offset is [`ConsumerOffsetsError::Negative`].
    pub fn decode(bytes: &[u8]) -> Result<OffsetCommitValue, ConsumerOffsetsError> {
        let mut reader = Reader::new(bytes);
        let version = version(&mut reader, WHAT, WRITTEN)?;
        let offset = reader.i64()?;
        let committed = Committed::from_wire(offset)
            .ok_or(ConsumerOffsetsError::Negative { field: "offset", value: offset })?;
        let leader_epoch = if version >= 3 { Some(reader.i32()?) } else { None };
        let metadata = if version >= 4 { reader.compact_str()? } else { reader.str()? };
        let commit_timestamp_ms = reader.i64()?;
        if version == 1 {
            let _expire_timestamp_ms = reader.i64()?;
        }
        let topic_id = if version >= 4 { topic_id(&mut reader)? } else { None };
        ends(&reader)?;
        Ok(OffsetCommitValue {
            committed,
            leader_epoch: leader_epoch.filter(|epoch| *epoch >= 0),
            metadata: metadata.to_owned(),
            commit_timestamp_ms,
            topic_id,
        })
    }

    /// The value's bytes, version 4.
    ///
    /// # Panics
    /// If the metadata is longer than [`MAX_STR_BYTES`](crate::primitives::MAX_STR_BYTES).
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + self.metadata.len());
        let mut writer = Writer::new(&mut bytes);
        writer.i16(WRITTEN);
        writer.i64(self.committed.next().get());
        writer.i32(self.leader_epoch.unwrap_or(-1));
        writer.compact_str(&self.metadata);
        writer.i64(self.commit_timestamp_ms);
        match self.topic_id.filter(|id| !id.is_zero()) {
            Some(id) => {
                writer.unsigned_varint(1);
                writer.unsigned_varint(TOPIC_ID_TAG);
                writer.unsigned_varint(id.as_bytes().len() as u32);
                writer.uuid(&id);
            }
            None => writer.unsigned_varint(0),
        }
        bytes
    }
}

fn topic_id(reader: &mut Reader<'_>) -> Result<Option<Uuid>, ConsumerOffsetsError> {
    let mut topic_id = Uuid::ZERO;
    tagged_fields(reader, |tag, mut field| {
        if tag == TOPIC_ID_TAG {
            topic_id = field.uuid()?;
            ends(&field)?;
        }
        Ok(())
    })?;
    Ok(Some(topic_id).filter(|id| !id.is_zero()))
}
