//! Commit sets: records and offsets in one atomic step, without transactions.
//!
//! The offsets batch of a set carries a manifest of its data batches; recovery keeps a set whole or cuts all of it.
//! Bytes and the recovery rule are in `docs/on-disk.md`.

use leftoff_wire::Offset;
use leftoff_wire::primitives::{ReadError, Reader, Writer};

use crate::broker::PartitionId;

/// Producer ids from here on belong to commit sets and are refused from anybody else.
pub const RESERVED_PRODUCER_ID: i64 = 1 << 62;
/// The record header that holds a manifest.
pub const MANIFEST_HEADER: &str = "manifest";

const VERSION: u8 = 1;
/// Bytes of one batch in a manifest.
const ENTRY_BYTES: usize = 16 + 4 + 8 + 8 + 4;

/// One data batch of a commit set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Where it is.
    pub partition: PartitionId,
    /// Its first offset.
    pub base: Offset,
    /// Its last offset.
    pub last: Offset,
    /// Its own checksum.
    pub crc: u32,
}

/// A manifest that cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Bytes end too early.
    #[error("manifest: {0}")]
    Read(#[from] ReadError),
    /// A field that cannot be.
    #[error("manifest: {what} {value} cannot be")]
    Field {
        /// Which.
        what: &'static str,
        /// Its value.
        value: i64,
    },
}

/// The header's bytes.
pub fn encode_manifest(entries: &[ManifestEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(5 + entries.len() * ENTRY_BYTES);
    let mut out = Writer::new(&mut bytes);
    out.u8(VERSION);
    out.u32(entries.len() as u32);
    for entry in entries {
        out.uuid(&entry.partition.topic_id);
        out.i32(entry.partition.partition);
        out.i64(entry.base.get());
        out.i64(entry.last.get());
        out.u32(entry.crc);
    }
    bytes
}

/// Reads a manifest back; the count is bounded by the bytes that are there.
///
/// # Errors
/// [`ManifestError`].
pub fn decode_manifest(bytes: &[u8]) -> Result<Vec<ManifestEntry>, ManifestError> {
    let mut input = Reader::new(bytes);
    let version = input.u8()?;
    if version != VERSION {
        return Err(ManifestError::Field { what: "version", value: version.into() });
    }
    let count = input.u32()? as usize;
    if count * ENTRY_BYTES != input.remaining() {
        return Err(ManifestError::Field { what: "count", value: count as i64 });
    }
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let partition = PartitionId { topic_id: input.uuid()?, partition: input.i32()? };
        let mut offset = || -> Result<Offset, ManifestError> {
            let value = input.i64()?;
            Offset::new(value).ok_or(ManifestError::Field { what: "offset", value })
        };
        let (base, last) = (offset()?, offset()?);
        entries.push(ManifestEntry { partition, base, last, crc: input.u32()? });
    }
    Ok(entries)
}
