//! Owned batches on their way into a log.

use super::{Batch, BatchError, BatchFault, BatchHeader, TimestampType, checksum};
use crate::Offset;

/// At least one whole batch, one behind the other, each checked as by [`Batch::parse`]; and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    bytes: Vec<u8>,
}

impl Batches {
    /// Checks bytes that must be whole batches to the end.
    ///
    /// # Errors
    /// That of the first bad batch, with its position; [`BatchFault::Empty`] for no bytes.
    pub fn parse(bytes: Vec<u8>) -> Result<Batches, BatchError> {
        if bytes.is_empty() {
            return Err(BatchFault::Empty.at(0));
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let position_bytes = bytes.len() - rest.len();
            (_, rest) = Batch::parse(rest).map_err(|error| error.moved_by(position_bytes))?;
        }
        Ok(Batches { bytes })
    }

    /// Each batch's place in the bytes, and its header.
    pub fn headers(&self) -> impl Iterator<Item = (usize, BatchHeader)> + '_ {
        self.iter().map(|(position_bytes, batch)| (position_bytes, *batch.header()))
    }

    /// Each batch's place in the bytes, and the batch.
    pub fn iter(&self) -> impl Iterator<Item = (usize, Batch<'_>)> + '_ {
        let mut position_bytes = 0;
        std::iter::from_fn(move || {
            let rest = self.bytes.get(position_bytes..).filter(|rest| !rest.is_empty())?;
            let header = BatchHeader::parse(rest).expect("checked when it was parsed");
            let batch = Batch { header, bytes: &rest[..header.size_bytes()] };
            let at = position_bytes;
            position_bytes += header.size_bytes();
            Some((at, batch))
        })
    }

    /// Gives the batches their place in a log: the first one `base`, each other one the offset behind the one before, all of
    /// them this leader epoch. Both fields lie outside the checksum. Returns the offset behind the last batch.
    ///
    /// # Panics
    /// If the offsets pass 2^63 - 1.
    pub fn assign(&mut self, base: Offset, leader_epoch: i32) -> Offset {
        let (mut next, mut position_bytes) = (base, 0);
        while position_bytes < self.bytes.len() {
            let batch = &mut self.bytes[position_bytes..];
            batch[..8].copy_from_slice(&next.get().to_be_bytes());
            batch[12..16].copy_from_slice(&leader_epoch.to_be_bytes());
            let header =
                BatchHeader::parse(batch).expect("checked when it was parsed, and offsets end at 2^63 - 1");
            next = header.next_offset();
            position_bytes += header.size_bytes();
        }
        next
    }

    /// Gives each batch this clock and greatest timestamp (milliseconds since 1970), and the checksum that goes with them.
    /// With log append time that is what readers see of every record (KIP-32).
    pub fn set_timestamps(&mut self, timestamp_type: TimestampType, max_timestamp_ms: i64) {
        let mut position_bytes = 0;
        while position_bytes < self.bytes.len() {
            let rest = &mut self.bytes[position_bytes..];
            let mut header = BatchHeader::parse(rest).expect("checked when it was parsed");
            let batch = &mut rest[..header.size_bytes()];
            header.attributes = header.attributes.with_timestamp_type(timestamp_type);
            header.max_timestamp = max_timestamp_ms;
            header.write(batch);
            header.crc = checksum(batch);
            header.write(batch);
            position_bytes += header.size_bytes();
        }
    }

    /// How many bytes there are.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, given away.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
