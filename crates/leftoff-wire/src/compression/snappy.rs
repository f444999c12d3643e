//! Snappy as Kafka means it: blocks in the framing of the Java library `snappy-java` (xerial), not Google's frame format.
//!
//! ```text
//! magic 8 bytes, version i32 = 1, lowest compatible version i32 = 1, then for each block: length i32, a raw snappy block
//! ```
//! Bytes without the magic are one raw snappy block: some clients sent that, and Kafka's reader takes it.

use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};

use super::{Compression, CompressionError};
use crate::primitives::Reader;

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
const HEADER_BYTES: usize = MAGIC.len() + VERSIONS.len();
/// What the Java library takes at once.
const BLOCK_BYTES: usize = 32 * 1024;
/// The most that a byte of snappy can stand for: a copy of 64 bytes takes 3.
const MAX_RATIO: usize = 22;

pub(super) fn compress(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), snap::Error> {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSIONS);
    let mut encoder = Encoder::new();
    for block in bytes.chunks(BLOCK_BYTES) {
        let length_at = out.len();
        let block_at = length_at + 4;
        out.resize(block_at + max_compress_len(block.len()), 0);
        let written = encoder.compress(block, &mut out[block_at..])?;
        out.truncate(block_at + written);
        out[length_at..block_at].copy_from_slice(&(written as u32).to_be_bytes());
    }
    Ok(())
}

pub(super) fn decompress(bytes: &[u8], limit_bytes: usize) -> Result<Vec<u8>, CompressionError> {
    let mut out = Vec::new();
    if !bytes.starts_with(&MAGIC) {
        append_block(bytes, limit_bytes, &mut out)?;
        return Ok(out);
    }
    let mut reader = Reader::new(bytes);
    // The versions have never been anything else, and Kafka's reader does not look at them either.
    reader.take(HEADER_BYTES).map_err(failed)?;
    while !reader.is_empty() {
        if reader.rest().starts_with(&MAGIC) {
            // Streams that were put one behind the other, which the Java reader takes.
            reader.take(HEADER_BYTES).map_err(failed)?;
            continue;
        }
        append_block(reader.bytes().map_err(failed)?, limit_bytes, &mut out)?;
    }
    Ok(out)
}

fn append_block(block: &[u8], limit_bytes: usize, out: &mut Vec<u8>) -> Result<(), CompressionError> {
    let claimed = decompress_len(block).map_err(failed)?;
    if claimed > limit_bytes - out.len() {
        return Err(CompressionError::TooBig { limit_bytes });
    }
    if claimed > block.len().saturating_mul(MAX_RATIO) {
        return Err(failed(format!("{} bytes cannot stand for {claimed}", block.len())));
    }
    let start = out.len();
    out.resize(start + claimed, 0);
    Decoder::new().decompress(block, &mut out[start..]).map_err(failed)?;
    Ok(())
}

fn failed(reason: impl ToString) -> CompressionError {
    Compression::Snappy.failed(reason)
}
