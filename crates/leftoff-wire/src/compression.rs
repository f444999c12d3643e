//! The four codecs of a record batch. Reading is bounded by an output limit: what inflates beyond it costs no more than the
//! limit and ends as [`CompressionError::TooBig`].

use std::io::{Read, Write};

mod snappy;
#[cfg(test)]
mod tests;

/// How the records of a batch are compressed, with Kafka's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// As they are.
    #[default]
    None = 0,
    /// RFC 1952, at zlib's default level.
    Gzip = 1,
    /// Snappy blocks of 32 KiB in the framing of the Java library (xerial). The bare format is read, too, as some clients send it.
    Snappy = 2,
    /// An LZ4 frame of independent blocks of 64 KiB.
    Lz4 = 3,
    /// Zstandard at level 3 (KIP-110).
    Zstd = 4,
}

impl Compression {
    /// All of them, in the order of their codes.
    pub const ALL: [Compression; 5] =
        [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

    /// The codec with this code in a batch's attributes.
    pub fn from_code(code: u8) -> Option<Compression> {
        Compression::ALL.get(usize::from(code)).copied()
    }

    /// The code in a batch's attributes.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The name as Kafka's `compression.type` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }

    /// Appends the compressed form of `bytes` to `out`.
    ///
    /// # Errors
    /// [`CompressionError::Failed`] if the codec refuses, which none is known to do while there is memory.
    pub fn compress(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
        match self {
            Compression::None => {
                out.extend_from_slice(bytes);
                Ok(())
            }
            Compression::Gzip => gzip(bytes, out).map_err(|error| self.failed(error)),
            Compression::Snappy => snappy::compress(bytes, out).map_err(|error| self.failed(error)),
            Compression::Lz4 => lz4(bytes, out).map_err(|error| self.failed(error)),
            Compression::Zstd => zstd(bytes, out).map_err(|error| self.failed(error)),
        }
    }

    /// What `bytes` were before they were compressed.
    ///
    /// Memory: at most twice `limit_bytes` for the output, plus the codec's own window, which is bounded as well (128 MiB of
    /// address space for zstd's largest, touched only as far as output fills it; 8 MiB for lz4).
    ///
    /// # Errors
    /// [`CompressionError::TooBig`] if there is more than `limit_bytes`, [`CompressionError::Failed`] if the bytes are not of
    /// this codec, damaged or cut short.
    pub fn decompress(self, bytes: &[u8], limit_bytes: usize) -> Result<Vec<u8>, CompressionError> {
        match self {
            Compression::None if bytes.len() > limit_bytes => Err(CompressionError::TooBig { limit_bytes }),
            Compression::None => Ok(bytes.to_vec()),
            Compression::Gzip => {
                self.read_all(flate2::bufread::MultiGzDecoder::new(bytes), bytes, limit_bytes)
            }
            Compression::Snappy => snappy::decompress(bytes, limit_bytes),
            Compression::Lz4 => self.read_lz4(bytes, limit_bytes),
            Compression::Zstd => {
                let decoder =
                    zstd::stream::read::Decoder::with_buffer(bytes).map_err(|error| self.failed(error))?;
                self.read_all(decoder, bytes, limit_bytes)
            }
        }
    }

    fn read_all(
        self,
        decoder: impl Read,
        bytes: &[u8],
        limit_bytes: usize,
    ) -> Result<Vec<u8>, CompressionError> {
        // Records shrink to a third or so; room for that saves most of the growing and is paid for by bytes that are here.
        let mut out = Vec::with_capacity(bytes.len().saturating_mul(3).min(limit_bytes));
        // One byte more than allowed tells "too big" from "just fits".
        let within = (limit_bytes as u64).saturating_add(1);
        decoder.take(within).read_to_end(&mut out).map_err(|error| self.failed(error))?;
        if out.len() > limit_bytes {
            return Err(CompressionError::TooBig { limit_bytes });
        }
        Ok(out)
    }

    fn read_lz4(self, bytes: &[u8], limit_bytes: usize) -> Result<Vec<u8>, CompressionError> {
        // The decoder takes a frame that is cut between two blocks for a whole one. So an end mark is put behind the bytes: a
        // whole frame has its own and leaves this one alone.
        const END_MARK: [u8; 4] = [0; 4];
        let mut decoder = lz4_flex::frame::FrameDecoder::new(bytes.chain(&END_MARK[..]));
        let out = self.read_all(&mut decoder, bytes, limit_bytes)?;
        match decoder.get_ref().get_ref() {
            ([], rest) if rest.len() == END_MARK.len() => Ok(out),
            ([], _) => Err(self.failed("the frame is cut short")),
            (rest, _) => Err(self.failed(format!("{} bytes behind the frame", rest.len()))),
        }
    }

    fn failed(self, reason: impl ToString) -> CompressionError {
        CompressionError::Failed { codec: self, reason: reason.to_string() }
    }
}

impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

fn gzip(bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish().map(drop)
}

fn lz4(bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    // What the Java client writes, and the only form that librdkafka before 1.4 and Kafka's own reader both take.
    let frame = FrameInfo::new().block_mode(BlockMode::Independent).block_size(BlockSize::Max64KB);
    let mut encoder = FrameEncoder::with_frame_info(frame, out);
    encoder.write_all(bytes)?;
    encoder.finish().map(drop).map_err(std::io::Error::from)
}

fn zstd(bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    const LEVEL: i32 = 3;
    let compressed = zstd::bulk::compress(bytes, LEVEL)?;
    out.extend_from_slice(&compressed);
    Ok(())
}

/// Why bytes could not be compressed or decompressed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// The output is larger than the limit.
    #[error("inflates to more than {limit_bytes} bytes")]
    TooBig {
        /// The limit that was given.
        limit_bytes: usize,
    },
    /// The codec's own complaint: damaged, cut short, or not of this codec.
    #[error("{codec}: {reason}")]
    Failed {
        /// The codec.
        codec: Compression,
        /// What it said.
        reason: String,
    },
}
