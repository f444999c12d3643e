//! Record batches, compression and coordinator records: bytes to values and back, no I/O.
//!
//! Everything read here may come from a socket or a broken disk. So each count and length is bounded by the bytes that are
//! left, each decompression by an output limit, and what does not fit is a typed error; nothing panics on bytes.
//!
//! - [`Offset`] and [`Committed`]: a record's place, and the next offset to read
//! - [`record_batch`]: Kafka's record batch v2, parsed in place and built without an allocation a record
//! - [`compression`]: the four codecs of a record batch
//! - [`messages`]: Kafka's requests and responses
//! - [`consumer_offsets`]: keys and values of the offsets log
//! - [`primitives`]: the integers, strings and varints that all of it is made of

mod checksum;
pub mod compression;
pub mod consumer_offsets;
pub mod messages;
pub mod offset;
pub mod primitives;
pub mod record_batch;
pub mod uuid;

pub use checksum::crc32c;
pub use compression::Compression;
pub use offset::{Committed, Offset, Run};
pub use uuid::Uuid;
