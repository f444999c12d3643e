//! Records into a batch, straight into one buffer.

use super::{Attributes, BatchError, BatchFault, BatchHeader, HEADER_BYTES, LOG_OVERHEAD, TimestampType};
use super::{checksum, compression_fault};
use crate::primitives::{Writer, varint_bytes_size, varint_size, varlong_size};
use crate::{Compression, Offset};

/// The most room that is made for a batch because the one before needed it.
const MAX_RESERVE_BYTES: usize = 1024 * 1024;

/// Builds one batch after the other. What the setters set stays for the next one; the records do not.
///
/// Without compression, the buffer that the records are encoded into becomes the batch: nothing is copied, nothing is
/// allocated a record.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    base_offset: Offset,
    partition_leader_epoch: i32,
    attributes: Attributes,
    log_append_time_ms: i64,
    delete_horizon_ms: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    /// Room for a header, then the records; empty until the first record.
    buffer: Vec<u8>,
    /// How large the last batch was before compression: the next one is likely as large.
    last_bytes: usize,
    records_count: usize,
    last_offset_delta: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl BatchBuilder {
    /// A builder of batches as a plain producer makes them: base offset 0, no leader epoch, no producer id.
    pub fn new(compression: Compression) -> BatchBuilder {
        BatchBuilder {
            base_offset: Offset::ZERO,
            partition_leader_epoch: -1,
            attributes: Attributes::new(compression),
            log_append_time_ms: -1,
            delete_horizon_ms: -1,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            buffer: Vec::new(),
            last_bytes: 0,
            records_count: 0,
            last_offset_delta: -1,
            base_timestamp: -1,
            max_timestamp: -1,
        }
    }

    /// The first record's offset.
    pub fn base_offset(&mut self, base_offset: Offset) -> &mut BatchBuilder {
        self.base_offset = base_offset;
        self
    }

    /// The leader epoch, for a batch that does not go through [`Batches::assign`](super::Batches::assign).
    pub fn partition_leader_epoch(&mut self, epoch: i32) -> &mut BatchBuilder {
        self.partition_leader_epoch = epoch;
        self
    }

    /// An idempotent producer's id and epoch, and the first record's sequence number; -1 for none.
    pub fn producer(&mut self, id: i64, epoch: i16, base_sequence: i32) -> &mut BatchBuilder {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (id, epoch, base_sequence);
        self
    }

    /// Whether the batch is part of a transaction.
    pub fn transactional(&mut self, on: bool) -> &mut BatchBuilder {
        self.attributes = self.attributes.with_transactional(on);
        self
    }

    /// Whether the batch holds control records; see [`EndTxnMarker`](super::EndTxnMarker).
    pub fn control(&mut self, on: bool) -> &mut BatchBuilder {
        self.attributes = self.attributes.with_control(on);
        self
    }

    /// Gives the batch log append time: readers see this timestamp (milliseconds since 1970) instead of each record's own.
    /// `None` goes back to the records' own.
    pub fn log_append_time_ms(&mut self, timestamp_ms: Option<i64>) -> &mut BatchBuilder {
        let kind = timestamp_ms.map_or(TimestampType::CreateTime, |_| TimestampType::LogAppendTime);
        self.attributes = self.attributes.with_timestamp_type(kind);
        self.log_append_time_ms = timestamp_ms.unwrap_or(-1);
        self
    }

    /// From when on the batch's tombstones may go (KIP-534), in milliseconds since 1970. It takes the place of the base
    /// timestamp.
    ///
    /// # Panics
    /// If there are records already: their deltas count from the base timestamp.
    pub fn delete_horizon_ms(&mut self, timestamp_ms: Option<i64>) -> &mut BatchBuilder {
        assert!(self.is_empty(), "the delete horizon comes before the records");
        self.attributes = self.attributes.with_delete_horizon(timestamp_ms.is_some());
        self.delete_horizon_ms = timestamp_ms.unwrap_or(-1);
        self
    }

    /// Adds a record at the next offset.
    ///
    /// # Panics
    /// For the record behind offset delta 2^31 - 1; a batch of them is far too large to be built.
    pub fn push(
        &mut self,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&str, Option<&[u8]>)],
    ) {
        let offset_delta = self.last_offset_delta.checked_add(1).expect("2^31 records in one batch");
        self.push_at(offset_delta, timestamp_ms, key, value, headers);
    }

    /// Adds a record at an offset that leaves a gap, as compaction does.
    ///
    /// # Panics
    /// If the offset delta is not above the last one.
    pub fn push_at(
        &mut self,
        offset_delta: i32,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&str, Option<&[u8]>)],
    ) {
        assert!(offset_delta > self.last_offset_delta, "offset delta {offset_delta} goes back");
        if self.is_empty() {
            self.start(timestamp_ms);
        }
        // Wraps as Java does; the reader's sum wraps back.
        let timestamp_delta = timestamp_ms.wrapping_sub(self.base_timestamp);
        let length = record_length(timestamp_delta, offset_delta, key, value, headers);
        self.buffer.reserve(varint_size(length as i32) + length);
        let mut writer = Writer::new(&mut self.buffer);
        // Lengths above 2^31 are cut here; `build` refuses such a batch before anybody can read them.
        writer.varint(length as i32);
        writer.i8(0);
        writer.varlong(timestamp_delta);
        writer.varint(offset_delta);
        writer.varint_bytes(key);
        writer.varint_bytes(value);
        writer.varint(headers.len() as i32);
        for (key, value) in headers {
            writer.varint_bytes(Some(key.as_bytes()));
            writer.varint_bytes(*value);
        }
        self.last_offset_delta = offset_delta;
        self.max_timestamp = self.max_timestamp.max(timestamp_ms);
        self.records_count += 1;
    }

    fn start(&mut self, first_timestamp_ms: i64) {
        let with_horizon = self.attributes.has_delete_horizon();
        self.base_timestamp = if with_horizon { self.delete_horizon_ms } else { first_timestamp_ms };
        self.max_timestamp = first_timestamp_ms;
        self.buffer.reserve(self.last_bytes.clamp(HEADER_BYTES, MAX_RESERVE_BYTES));
        self.buffer.resize(HEADER_BYTES, 0);
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records_count
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.records_count == 0
    }

    /// Bytes of the batch as it is now, before compression.
    pub fn bytes_estimate(&self) -> usize {
        self.buffer.len().max(HEADER_BYTES)
    }

    /// The batch. The builder has no records afterwards, also after an error.
    ///
    /// # Errors
    /// [`BatchFault::Empty`] without records, [`BatchFault::TooLarge`] if the length field has no room for it, compressed or
    /// not, [`BatchFault::OffsetRange`] if its offsets pass 2^63 - 1, [`BatchFault::Compression`].
    pub fn build(&mut self) -> Result<Vec<u8>, BatchError> {
        let header = self.header();
        let built = if self.is_empty() { Err(BatchFault::Empty.at(0)) } else { self.finish(header) };
        self.last_bytes = self.last_bytes.max(self.buffer.len());
        self.buffer.clear();
        (self.records_count, self.last_offset_delta) = (0, -1);
        built
    }

    fn header(&self) -> BatchHeader {
        let log_append = self.attributes.timestamp_type() == TimestampType::LogAppendTime;
        BatchHeader {
            base_offset: self.base_offset,
            batch_length: 0,
            partition_leader_epoch: self.partition_leader_epoch,
            crc: 0,
            attributes: self.attributes,
            last_offset_delta: self.last_offset_delta,
            base_timestamp: self.base_timestamp,
            max_timestamp: if log_append { self.log_append_time_ms } else { self.max_timestamp },
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
            records_count: self.records_count as i32,
        }
    }

    fn finish(&mut self, mut header: BatchHeader) -> Result<Vec<u8>, BatchError> {
        fits(self.buffer.len())?;
        let offsets = u64::from(header.last_offset_delta.unsigned_abs()) + 1;
        if header.base_offset.checked_plus(offsets).is_none() {
            let (base_offset, last_offset_delta) = (header.base_offset.get(), header.last_offset_delta);
            return Err(BatchFault::OffsetRange { base_offset, last_offset_delta }.at(0));
        }
        let mut batch = self.stored()?;
        header.batch_length = fits(batch.len())?;
        header.write(&mut batch);
        header.crc = checksum(&batch);
        header.write(&mut batch);
        Ok(batch)
    }

    /// The records as they go into the batch, behind room for its header.
    fn stored(&mut self) -> Result<Vec<u8>, BatchError> {
        match self.attributes.compression() {
            Compression::None => {
                self.last_bytes = self.buffer.len();
                Ok(std::mem::take(&mut self.buffer))
            }
            codec => {
                let mut batch = vec![0; HEADER_BYTES];
                codec.compress(&self.buffer[HEADER_BYTES..], &mut batch).map_err(compression_fault)?;
                Ok(batch)
            }
        }
    }
}

impl Default for BatchBuilder {
    /// Without compression.
    fn default() -> BatchBuilder {
        BatchBuilder::new(Compression::None)
    }
}

/// A record's bytes behind its length field.
fn record_length(
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[(&str, Option<&[u8]>)],
) -> usize {
    let headers_bytes: usize = headers
        .iter()
        .map(|(key, value)| varint_bytes_size(Some(key.as_bytes())) + varint_bytes_size(*value))
        .sum();
    1 + varlong_size(timestamp_delta)
        + varint_size(offset_delta)
        + varint_bytes_size(key)
        + varint_bytes_size(value)
        + varint_size(headers.len() as i32)
        + headers_bytes
}

/// The batch length of a batch of so many bytes.
fn fits(size_bytes: usize) -> Result<i32, BatchError> {
    i32::try_from(size_bytes - LOG_OVERHEAD).map_err(|_| BatchFault::TooLarge { size_bytes }.at(0))
}
