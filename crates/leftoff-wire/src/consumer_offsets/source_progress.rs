//! How far a file has been read into a topic.

use super::{ConsumerOffsetsError, ends, version};
use crate::Uuid;
use crate::primitives::{Reader, Writer};

const WHAT: &str = "SourceProgress";
const WRITTEN: i16 = 0;

/// Up to where a source (a file of `produce --source`) has been appended to a topic, so that the next run goes on there.
///
/// Bytes: version i16 = 0, position i64, lines i64, fingerprint u64, topic id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceProgress {
    /// The place in the source behind the last line that was appended.
    pub position_bytes: u64,
    /// How many lines lie before that place.
    pub lines: u64,
    /// Of the source's first bytes, to tell it from another one of its name.
    pub fingerprint: u64,
    /// The topic.
    pub topic_id: Uuid,
}

impl SourceProgress {
    /// The value in these bytes.
    ///
    /// # Errors
    /// [`ConsumerOffsetsError`].
    pub fn decode(bytes: &[u8]) -> Result<SourceProgress, ConsumerOffsetsError> {
        let mut reader = Reader::new(bytes);
        version(&mut reader, WHAT, WRITTEN)?;
        let progress = SourceProgress {
            position_bytes: unsigned("position", reader.i64()?)?,
            lines: unsigned("lines", reader.i64()?)?,
            fingerprint: reader.u64()?,
            topic_id: reader.uuid()?,
        };
        ends(&reader)?;
        Ok(progress)
    }

    /// The value's bytes.
    ///
    /// # Panics
    /// If the position or the lines pass 2^63 - 1.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(42);
        let mut writer = Writer::new(&mut bytes);
        writer.i16(WRITTEN);
        writer.i64(i64::try_from(self.position_bytes).expect("files end at 2^63 - 1"));
        writer.i64(i64::try_from(self.lines).expect("files end at 2^63 - 1"));
        writer.u64(self.fingerprint);
        writer.uuid(&self.topic_id);
        bytes
    }
}

fn unsigned(field: &'static str, value: i64) -> Result<u64, ConsumerOffsetsError> {
    u64::try_from(value).map_err(|_| ConsumerOffsetsError::Negative { field, value })
}
