//! The 61 bytes in front of a batch's records.

use super::{BatchError, BatchFault, HEADER_BYTES, LOG_OVERHEAD};
use crate::primitives::{Reader, Writer};
use crate::{Compression, Offset};

const MAGIC: i8 = 2;
const MAGIC_AT: usize = 16;
/// A batch length counts the header from its fourth field on.
const MIN_BATCH_LENGTH: i32 = (HEADER_BYTES - LOG_OVERHEAD) as i32;

/// A batch's header, checked for what can be told without the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// The offset that the records' deltas count from. What a producer sends here (0) means nothing; the broker sets it.
    pub base_offset: Offset,
    /// Bytes of the batch behind this field, at least 49.
    pub batch_length: i32,
    /// The leader epoch in which the batch was appended; -1 from a producer.
    pub partition_leader_epoch: i32,
    /// CRC-32C of everything from the attributes on.
    pub crc: u32,
    /// Compression, timestamp type and three flags.
    pub attributes: Attributes,
    /// The last record's offset minus the base offset. Stays when compaction takes that record.
    pub last_offset_delta: i32,
    /// Milliseconds since 1970 that the records' deltas count from; with a delete horizon, that horizon.
    pub base_timestamp: i64,
    /// The greatest timestamp of the records, or when the broker appended them; see [`TimestampType`].
    pub max_timestamp: i64,
    /// The producer's id; -1 if it is not idempotent.
    pub producer_id: i64,
    /// The producer's epoch; -1 if it is not idempotent.
    pub producer_epoch: i16,
    /// The first record's sequence number; -1 if the producer is not idempotent.
    pub base_sequence: i32,
    /// How many records there are. 0 for a batch that compaction emptied and kept for its producer's state.
    pub records_count: i32,
}

impl BatchHeader {
    /// The header at the front of `bytes`, of which 61 are needed.
    ///
    /// # Errors
    /// [`BatchFault::Incomplete`] for fewer bytes; else [`BatchFault::Magic`], [`BatchFault::Length`], [`BatchFault::Field`]
    /// (an unknown compression, or a negative offset, delta or count) or [`BatchFault::OffsetRange`]. Formats before v2 are
    /// recognised in fewer than 61 bytes, too, since a whole message of theirs may be as short.
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
        if let Some(&magic) = bytes.get(MAGIC_AT)
            && magic != MAGIC as u8
        {
            return Err(BatchFault::Magic { magic: magic as i8 }.at(MAGIC_AT));
        }
        let Some(mut reader) = bytes.get(..HEADER_BYTES).map(Reader::new) else {
            let fault = BatchFault::Incomplete { want_bytes: HEADER_BYTES, left_bytes: bytes.len() };
            return Err(fault.at(0));
        };
        Fields::read(&mut reader).expect("61 bytes hold all fields").check()
    }

    /// Writes all fields to the first 61 bytes of a batch.
    pub(super) fn write(&self, batch: &mut [u8]) {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        let mut writer = Writer::new(&mut bytes);
        writer.i64(self.base_offset.get());
        writer.i32(self.batch_length);
        writer.i32(self.partition_leader_epoch);
        writer.i8(MAGIC);
        writer.u32(self.crc);
        writer.i16(self.attributes.bits());
        writer.i32(self.last_offset_delta);
        writer.i64(self.base_timestamp);
        writer.i64(self.max_timestamp);
        writer.i64(self.producer_id);
        writer.i16(self.producer_epoch);
        writer.i32(self.base_sequence);
        writer.i32(self.records_count);
        batch[..HEADER_BYTES].copy_from_slice(&bytes);
    }

    /// Bytes of the whole batch.
    pub fn size_bytes(&self) -> usize {
        LOG_OVERHEAD + self.batch_length as usize
    }

    /// The offset of the last record, or of the last that there was before compaction.
    pub fn last_offset(&self) -> Offset {
        self.base_offset.plus(u64::from(self.last_offset_delta.unsigned_abs()))
    }

    /// The offset behind the batch.
    pub fn next_offset(&self) -> Offset {
        self.last_offset().next()
    }

    /// The sequence number of the last record; `None` without an idempotent producer. After 2^31 - 1 comes 0.
    pub fn last_sequence(&self) -> Option<i32> {
        let last = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        (self.base_sequence >= 0).then_some((last & i64::from(i32::MAX)) as i32)
    }

    /// From when on a compaction may drop the tombstones in this batch, in milliseconds since 1970 (KIP-534).
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        self.attributes.has_delete_horizon().then_some(self.base_timestamp)
    }
}

/// The fields as they stand in the bytes.
struct Fields {
    base_offset: i64,
    batch_length: i32,
    partition_leader_epoch: i32,
    crc: u32,
    attributes: i16,
    last_offset_delta: i32,
    base_timestamp: i64,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    records_count: i32,
}

impl Fields {
    fn read(reader: &mut Reader<'_>) -> Result<Fields, crate::primitives::ReadError> {
        let base_offset = reader.i64()?;
        let batch_length = reader.i32()?;
        let partition_leader_epoch = reader.i32()?;
        let _magic = reader.i8()?;
        Ok(Fields {
            base_offset,
            batch_length,
            partition_leader_epoch,
            crc: reader.u32()?,
            attributes: reader.i16()?,
            last_offset_delta: reader.i32()?,
            base_timestamp: reader.i64()?,
            max_timestamp: reader.i64()?,
            producer_id: reader.i64()?,
            producer_epoch: reader.i16()?,
            base_sequence: reader.i32()?,
            records_count: reader.i32()?,
        })
    }

    fn check(self) -> Result<BatchHeader, BatchError> {
        let wrong = |field, value| BatchFault::Field { field, value };
        if self.batch_length < MIN_BATCH_LENGTH {
            return Err(BatchFault::Length { batch_length: self.batch_length }.at(8));
        }
        let attributes = Attributes::from_bits(self.attributes)
            .ok_or_else(|| wrong("compression code", i64::from(self.attributes & COMPRESSION_MASK)).at(21))?;
        if self.last_offset_delta < 0 {
            return Err(wrong("last offset delta", i64::from(self.last_offset_delta)).at(23));
        }
        if self.records_count < 0 {
            return Err(wrong("records count", i64::from(self.records_count)).at(57));
        }
        let base_offset =
            Offset::new(self.base_offset).ok_or_else(|| wrong("base offset", self.base_offset).at(0))?;
        // The offset behind the last one must be an offset, too.
        let offsets = u64::from(self.last_offset_delta.unsigned_abs()) + 1;
        if base_offset.checked_plus(offsets).is_none() {
            let (base_offset, last_offset_delta) = (self.base_offset, self.last_offset_delta);
            return Err(BatchFault::OffsetRange { base_offset, last_offset_delta }.at(0));
        }
        Ok(BatchHeader {
            base_offset,
            batch_length: self.batch_length,
            partition_leader_epoch: self.partition_leader_epoch,
            crc: self.crc,
            attributes,
            last_offset_delta: self.last_offset_delta,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
            records_count: self.records_count,
        })
    }
}

/// Whose clock a batch's timestamps are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TimestampType {
    /// The producer's: each record has its own.
    #[default]
    CreateTime,
    /// The broker's, when it appended the batch: all records have the batch's max timestamp (KIP-32).
    LogAppendTime,
}

/// A batch's attributes: a compression that is known, and flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Attributes(i16);

const COMPRESSION_MASK: i16 = 0x07;
const LOG_APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
const DELETE_HORIZON: i16 = 1 << 6;

impl Attributes {
    /// The attributes with these bits; `None` if the compression is unknown. Unknown flags are kept, as Kafka does.
    pub fn from_bits(bits: i16) -> Option<Attributes> {
        Compression::from_code((bits & COMPRESSION_MASK) as u8).map(|_| Attributes(bits))
    }

    /// The bits as in the batch.
    pub const fn bits(self) -> i16 {
        self.0
    }

    /// How the records are compressed.
    pub fn compression(self) -> Compression {
        Compression::from_code((self.0 & COMPRESSION_MASK) as u8).expect("checked by the constructors")
    }

    /// Whose clock the timestamps are from.
    pub fn timestamp_type(self) -> TimestampType {
        if self.has(LOG_APPEND_TIME) { TimestampType::LogAppendTime } else { TimestampType::CreateTime }
    }

    /// Part of a transaction: readable once that is committed.
    pub fn is_transactional(self) -> bool {
        self.has(TRANSACTIONAL)
    }

    /// Written by the broker itself, as the end of a transaction; never shown to applications.
    pub fn is_control(self) -> bool {
        self.has(CONTROL)
    }

    /// The base timestamp is a delete horizon (KIP-534).
    pub fn has_delete_horizon(self) -> bool {
        self.has(DELETE_HORIZON)
    }

    const fn has(self, flag: i16) -> bool {
        self.0 & flag != 0
    }

    pub(super) fn new(compression: Compression) -> Attributes {
        Attributes(i16::from(compression.code()))
    }

    pub(super) fn with_timestamp_type(self, timestamp_type: TimestampType) -> Attributes {
        self.set(LOG_APPEND_TIME, timestamp_type == TimestampType::LogAppendTime)
    }

    pub(super) fn with_transactional(self, on: bool) -> Attributes {
        self.set(TRANSACTIONAL, on)
    }

    pub(super) fn with_control(self, on: bool) -> Attributes {
        self.set(CONTROL, on)
    }

    pub(super) fn with_delete_horizon(self, on: bool) -> Attributes {
        self.set(DELETE_HORIZON, on)
    }

    const fn set(self, flag: i16, on: bool) -> Attributes {
        Attributes(if on { self.0 | flag } else { self.0 & !flag })
    }
}

impl std::fmt::Debug for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Attributes({:#x})", self.0)
    }
}
