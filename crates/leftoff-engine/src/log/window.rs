//! Reads batches from a segment file with bounded memory.

use std::io;
use std::sync::Arc;

use crc_fast::{CrcAlgorithm, Digest};
use leftoff_wire::record_batch::{BatchHeader, HEADER_BYTES};

use crate::disk::DiskFile;

/// How much is read at once for headers; small batches are served from it whole.
const WINDOW_BYTES: usize = 8 << 10;
/// The checksum of a larger batch is computed in steps of this size before memory is taken for the batch, so that a
/// wrong length takes none.
const STEP_BYTES: usize = 1 << 20;
/// Where, in a batch, the bytes begin that its checksum covers.
const CHECKSUM_FROM: usize = 21;
/// Where the magic byte is, and its value.
const MAGIC_AT: usize = 16;
const MAGIC: u8 = 2;

/// A view of a file up to some end, with the bytes around the last place that was looked at.
#[derive(Debug)]
pub(super) struct Window {
    file: Arc<dyn DiskFile>,
    end_bytes: u64,
    start_bytes: u64,
    bytes: Vec<u8>,
    /// The batch whose checksum was computed last, if it was not larger than a step.
    batch: Option<(u64, Vec<u8>)>,
}

impl Window {
    pub fn new(file: Arc<dyn DiskFile>, end_bytes: u64) -> Window {
        Window { file, end_bytes, start_bytes: 0, bytes: Vec::new(), batch: None }
    }

    /// The header at this place, if there is one and its batch does not pass the end.
    pub fn header(&mut self, position_bytes: u64) -> io::Result<Option<BatchHeader>> {
        let end_bytes = self.end_bytes;
        let Some(bytes) = self.get(position_bytes, HEADER_BYTES)? else { return Ok(None) };
        let header = BatchHeader::parse(bytes).ok();
        Ok(header.filter(|header| position_bytes + header.size_bytes() as u64 <= end_bytes))
    }

    /// The first place from `position_bytes` on where a header could be.
    pub fn find_header(&mut self, mut position_bytes: u64) -> io::Result<Option<u64>> {
        while let Some(bytes) = self.get(position_bytes, HEADER_BYTES)? {
            if bytes[MAGIC_AT] == MAGIC && self.header(position_bytes)?.is_some() {
                return Ok(Some(position_bytes));
            }
            position_bytes += 1;
        }
        Ok(None)
    }

    /// Whether the checksum of the batch with this header is right.
    pub fn checksum_holds(&mut self, position_bytes: u64, header: &BatchHeader) -> io::Result<bool> {
        let size = header.size_bytes();
        if size <= STEP_BYTES {
            let bytes = self.copy(position_bytes, size)?;
            let holds = crc_fast::crc32_iscsi(&bytes[CHECKSUM_FROM..]) == header.crc;
            self.batch = Some((position_bytes, bytes));
            return Ok(holds);
        }
        let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
        let end_bytes = position_bytes + size as u64;
        let mut position_bytes = position_bytes + CHECKSUM_FROM as u64;
        let mut step = vec![0; STEP_BYTES];
        while position_bytes < end_bytes {
            let take = STEP_BYTES.min(usize::try_from(end_bytes - position_bytes).unwrap_or(STEP_BYTES));
            read_exact(&*self.file, &mut step[..take], position_bytes)?;
            digest.update(&step[..take]);
            position_bytes += take as u64;
        }
        Ok(digest.finalize() == u64::from(header.crc))
    }

    /// `len` bytes from this place on, owned. For a batch whose checksum was computed just now this reads nothing.
    pub fn take(&mut self, position_bytes: u64, len: usize) -> io::Result<Vec<u8>> {
        match self.batch.take() {
            Some((at, bytes)) if at == position_bytes && bytes.len() == len => Ok(bytes),
            _ => self.copy(position_bytes, len),
        }
    }

    fn copy(&mut self, position_bytes: u64, len: usize) -> io::Result<Vec<u8>> {
        if let Some(bytes) = self.held(position_bytes, len) {
            return Ok(bytes.to_vec());
        }
        let mut bytes = vec![0; len];
        read_exact(&*self.file, &mut bytes, position_bytes)?;
        Ok(bytes)
    }

    /// A few bytes from this place on; `None` if the end comes first.
    fn get(&mut self, position_bytes: u64, len: usize) -> io::Result<Option<&[u8]>> {
        if position_bytes + len as u64 > self.end_bytes {
            return Ok(None);
        }
        if self.held(position_bytes, len).is_none() {
            let left = usize::try_from(self.end_bytes - position_bytes).unwrap_or(usize::MAX);
            self.start_bytes = position_bytes;
            self.bytes.resize(WINDOW_BYTES.min(left), 0);
            let read = self.file.read_at(&mut self.bytes, position_bytes);
            self.bytes.truncate(*read.as_ref().unwrap_or(&0));
            read?;
        }
        Ok(self.held(position_bytes, len))
    }

    fn held(&self, position_bytes: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(position_bytes.checked_sub(self.start_bytes)?).ok()?;
        self.bytes.get(start..start.checked_add(len)?)
    }
}

/// Fills `buffer` from a file.
pub(super) fn read_exact(file: &dyn DiskFile, buffer: &mut [u8], position_bytes: u64) -> io::Result<()> {
    match file.read_at(buffer, position_bytes)? {
        read if read == buffer.len() => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
