//! Kafka's record batch v2 (KIP-98): the unit that producers send, segments hold and consumers fetch.
//!
//! ```text
//!  0 base offset i64          21 attributes i16             43 producer id i64
//!  8 batch length i32         23 last offset delta i32      51 producer epoch i16
//! 12 partition leader epoch   27 base timestamp i64         53 base sequence i32
//! 16 magic i8 = 2             35 max timestamp i64          57 records count i32
//! 17 crc u32 of all from 21                                 61 the records, maybe compressed
//! ```
//! The batch length counts from byte 12. Base offset and leader epoch lie before the checksum's range, so a broker sets them
//! in place. Offsets and timestamps of the records are deltas to the header's.
//!
//! Three steps of trust: [`BatchHeader::parse`] checks that the header can be; [`Batch::parse`] that the batch is whole and
//! as its checksum says; [`Batch::validate_records`] that its records are what the header claims.

use crate::compression::CompressionError;
use crate::{Compression, crc32c};

mod batches;
mod builder;
mod control;
mod error;
mod header;
mod records;
#[cfg(test)]
mod tests;

pub use batches::Batches;
pub use builder::BatchBuilder;
pub use control::{EndTxnMarker, EndTxnResult};
pub use error::{BatchError, BatchFault, RecordFault};
pub use header::{Attributes, BatchHeader, TimestampType};
pub use records::{Headers, HeadersIter, RecordIter, RecordView, Records};

/// Bytes of a batch before its records.
pub const HEADER_BYTES: usize = 61;
/// Bytes of a batch that its length field does not count: base offset and the field itself.
pub const LOG_OVERHEAD: usize = 12;

/// The place of the first byte that the checksum covers.
const CRC_FROM: usize = 21;

/// One whole batch in bytes that somebody else owns; its header has been checked, and its checksum.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// The batch at the front of `bytes`, and what comes behind it.
    ///
    /// # Errors
    /// As [`BatchHeader::parse`]; [`BatchFault::Incomplete`] if the bytes end before the batch does; [`BatchFault::Crc`].
    pub fn parse(bytes: &'a [u8]) -> Result<(Batch<'a>, &'a [u8]), BatchError> {
        let header = BatchHeader::parse(bytes)?;
        let Some((bytes, rest)) = bytes.split_at_checked(header.size_bytes()) else {
            let fault = BatchFault::Incomplete { want_bytes: header.size_bytes(), left_bytes: bytes.len() };
            return Err(fault.at(0));
        };
        let computed = checksum(bytes);
        if computed != header.crc {
            return Err(BatchFault::Crc { stored: header.crc, computed }.at(0));
        }
        Ok((Batch { header, bytes }, rest))
    }

    /// The header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch, header included.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The records: borrowed if they are not compressed, else decompressed here, as far as `limits` allow.
    ///
    /// # Errors
    /// [`BatchFault::Compression`], or [`BatchFault::RecordsCount`] if there is no room for as many records as claimed.
    pub fn records(&self, limits: &Limits) -> Result<Records<'a>, BatchError> {
        let stored = &self.bytes[HEADER_BYTES..];
        match self.header.attributes.compression() {
            Compression::None => Records::new(self.header, stored.into()),
            codec => {
                let plain =
                    codec.decompress(stored, limits.max_decompressed_bytes).map_err(compression_fault)?;
                Records::new(self.header, plain.into())
            }
        }
    }

    /// Checks that the records are what the header claims: their number, their offset deltas (rising, from 0 to the last
    /// offset delta), and that nothing lies between or behind them.
    ///
    /// # Errors
    /// The first [`BatchError`] that [`Batch::records`] or its iterator gives.
    pub fn validate_records(&self, limits: &Limits) -> Result<(), BatchError> {
        self.records(limits)?.iter().try_for_each(|record| record.map(drop))
    }
}

/// Bounds on what reading a batch may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes that the compressed records of one batch may inflate to.
    pub max_decompressed_bytes: usize,
}

impl Default for Limits {
    /// 64 MiB, some sixty times Kafka's default `max.message.bytes`.
    fn default() -> Limits {
        Limits { max_decompressed_bytes: 64 * 1024 * 1024 }
    }
}

fn checksum(batch: &[u8]) -> u32 {
    crc32c(&batch[CRC_FROM..])
}

fn compression_fault(error: CompressionError) -> BatchError {
    BatchFault::Compression(error).at(HEADER_BYTES)
}
