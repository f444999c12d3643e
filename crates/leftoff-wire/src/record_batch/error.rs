//! What can be wrong with a record batch.

use crate::compression::CompressionError;
use crate::primitives::ReadFault;

/// Why bytes are no record batch, or records make none, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {position_bytes}: {fault}")]
pub struct BatchError {
    /// The place in the bytes that were given. For a [`BatchFault::Record`] it is the place in the batch's records, after
    /// they were decompressed.
    pub position_bytes: usize,
    /// What is wrong there.
    pub fault: BatchFault,
}

impl BatchError {
    /// True if the bytes end before the batch does and nothing else is wrong with them: more bytes may make it whole.
    pub fn is_incomplete(&self) -> bool {
        matches!(self.fault, BatchFault::Incomplete { .. })
    }

    /// The same fault as seen from `bytes` further in front.
    pub(super) fn moved_by(self, bytes: usize) -> BatchError {
        BatchError { position_bytes: self.position_bytes + bytes, ..self }
    }
}

/// What is wrong with a batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchFault {
    /// The bytes end before the batch does.
    #[error("a batch of at least {want_bytes} bytes, of which {left_bytes} are here")]
    Incomplete {
        /// What the batch needs: its size if that is known, else what it takes to know it.
        want_bytes: usize,
        /// What there is.
        left_bytes: usize,
    },
    /// A message format other than v2.
    #[error("message format {magic}, only 2 is supported")]
    Magic {
        /// The format's number.
        magic: i8,
    },
    /// A length field that is too small for a header.
    #[error("a batch length of {batch_length}, at least 49 is needed")]
    Length {
        /// The field's value.
        batch_length: i32,
    },
    /// A field of the header that cannot have this value.
    #[error("{field} is {value}")]
    Field {
        /// The field's name.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// The offsets of the batch pass 2^63 - 1.
    #[error("base offset {base_offset} plus {last_offset_delta} is no offset")]
    OffsetRange {
        /// The base offset.
        base_offset: i64,
        /// The last offset delta.
        last_offset_delta: i32,
    },
    /// The checksum does not match: the bytes have changed since they were written.
    #[error("checksum {computed:#010x}, the header says {stored:#010x}")]
    Crc {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The records could not be decompressed, or compressed.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// The header claims more records than its bytes can hold.
    #[error("{records_count} records claimed in {left_bytes} bytes")]
    RecordsCount {
        /// The claim.
        records_count: i32,
        /// The bytes of all records.
        left_bytes: usize,
    },
    /// One record is wrong.
    #[error("record {index}: {fault}")]
    Record {
        /// Which, counted from 0.
        index: i32,
        /// What is wrong with it.
        fault: RecordFault,
    },
    /// There are bytes behind the last record.
    #[error("{left_bytes} bytes behind the last record")]
    Trailing {
        /// How many.
        left_bytes: usize,
    },
    /// No batch where at least one must be.
    #[error("no records")]
    Empty,
    /// Records that do not fit into one batch.
    #[error("a batch of {size_bytes} bytes, its length field ends at 2147483647")]
    TooLarge {
        /// The size that it would have.
        size_bytes: usize,
    },
}

impl BatchFault {
    pub(super) fn at(self, position_bytes: usize) -> BatchError {
        BatchError { position_bytes, fault: self }
    }
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// One of its values cannot be read.
    #[error(transparent)]
    Read(#[from] ReadFault),
    /// Its offset delta is not above the one before, or is above the header's last offset delta.
    #[error("offset delta {offset_delta} is not in {min}..={max}")]
    OffsetDelta {
        /// Its offset delta.
        offset_delta: i32,
        /// The least that it may be.
        min: i64,
        /// The most that it may be.
        max: i32,
    },
    /// Its length says more than its fields take.
    #[error("{left_bytes} bytes behind its last field")]
    Trailing {
        /// How many.
        left_bytes: usize,
    },
}
