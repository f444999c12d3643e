//! Which bytes answer a fetch.

use std::sync::Arc;

use leftoff_wire::Offset;

use super::lookup::{Found, View};
use super::scan::{Check, Scan, Step, Stretch};
use super::{Damaged, Log, LogError, segment};
use crate::disk::DiskFile;

/// Whole batches in a file.
#[derive(Debug, Clone)]
pub struct FileRange {
    /// The segment file; it stays readable when the segment is deleted.
    pub file: Arc<dyn DiskFile>,
    /// Where the first batch begins.
    pub position_bytes: u64,
    /// How many bytes.
    pub len_bytes: u64,
    /// Base offset of the segment.
    pub segment: Offset,
    /// Base offset of the first batch; may be below the offset that was asked for.
    pub base: Offset,
    /// The offset behind the range.
    pub next: Offset,
}

/// What a fetch may send.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// In order; empty at the high watermark.
    pub ranges: Vec<FileRange>,
    /// The offset behind the last record that can be read.
    pub high_watermark: Offset,
    /// The first offset that can be read.
    pub log_start: Offset,
}

impl Log {
    /// Where the batches from the one that contains `offset` on lie, up to about `max_bytes`.
    ///
    /// The first batch is whole whatever its size (KIP-74), and so are all others; nothing is above the high
    /// watermark. At the high watermark the answer is empty. Where offsets are missing it begins with the next batch.
    /// The bytes are not checked.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`]; [`LogError::Damaged`] where `offset` lies in damage that shows without a checksum.
    pub fn fetch(&self, offset: Offset, max_bytes: u64) -> Result<Fetched, LogError> {
        let (high_watermark, log_start) = (self.high.end, self.log_start);
        if offset < log_start || offset > high_watermark {
            return Err(LogError::OutOfRange { path: self.dir.clone(), offset, log_start, high_watermark });
        }
        let mut ranges = Vec::new();
        let mut at = offset;
        let mut left_bytes = max_bytes;
        let mut number = if at < high_watermark { self.first_segment_for(at)? } else { self.segments.len() };
        while at < high_watermark && number < self.visible_segments() {
            let range = match self.range(number, at, left_bytes, ranges.is_empty()) {
                // What comes first is served; the next fetch begins at the damage and says so.
                Err(LogError::Damaged { .. }) if !ranges.is_empty() => break,
                range => range?,
            };
            if let Some(range) = range {
                at = range.next;
                left_bytes = left_bytes.saturating_sub(range.len_bytes);
                ranges.push(range);
            }
            let next_base = self.segments.get(number + 1).map(|segment| segment.base);
            if left_bytes == 0 || next_base.is_some_and(|base| at < base && !ranges.is_empty()) {
                break;
            }
            number += 1;
        }
        Ok(Fetched { ranges, high_watermark, log_start })
    }

    fn first_segment_for(&self, offset: Offset) -> Result<usize, LogError> {
        let first = self.segments[0].base;
        self.segment_of(offset).ok_or_else(|| {
            self.damaged(Damaged { from: offset, to: first, segment: first, position_bytes: 0, len_bytes: 0 })
        })
    }

    /// The batches of one segment from the one with this offset on; `None` if there are none, or none that fits and
    /// none that must be served whatever its size.
    fn range(
        &self,
        number: usize,
        from: Offset,
        max_bytes: u64,
        must_serve: bool,
    ) -> Result<Option<FileRange>, LogError> {
        let view = self.view(number, from)?;
        let Ok(first) = self.seek(&view, from)? else { return Ok(None) };
        let size = first.header.size_bytes() as u64;
        if size > max_bytes && !must_serve {
            return Ok(None);
        }
        let Found { position_bytes, header } = first;
        let Stretch { end_bytes, next, .. } = view.whole;
        let (end_bytes, next) = if max_bytes >= end_bytes - position_bytes && !self.is_short(&view) {
            (end_bytes, next)
        } else if size >= max_bytes {
            (position_bytes + size, header.next_offset())
        } else {
            self.last_end(&view, &first, position_bytes + max_bytes)?
        };
        Ok(Some(FileRange {
            file: view.whole.file,
            position_bytes,
            len_bytes: end_bytes - position_bytes,
            segment: view.segment.base,
            base: header.base_offset,
            next,
        }))
    }

    /// The last end of a batch that is not above `limit_bytes`: place and offset.
    fn last_end(&self, view: &View, first: &Found, limit_bytes: u64) -> Result<(u64, Offset), LogError> {
        let path = segment::path(&self.dir, view.segment.base, segment::LOG);
        let io = || LogError::io("read", &path);
        let mut end_bytes = first.position_bytes + first.header.size_bytes() as u64;
        let mut next = first.header.next_offset();
        let entry = view
            .segment
            .lock()
            .offsets
            .last_where(|entry| u64::from(entry.position_bytes) <= limit_bytes)
            .map_err(io())?;
        if let Some(entry) = entry.filter(|entry| u64::from(entry.position_bytes) > end_bytes)
            && let Some(header) = view.segment.batch_of(entry, view.whole.end_bytes).map_err(io())?
        {
            end_bytes = u64::from(entry.position_bytes);
            next = header.base_offset;
        }
        let rest = Stretch { position_bytes: end_bytes, base: next, ..view.whole.clone() };
        let mut scan = Scan::new(rest, Check::Headers);
        while let Some(Step::Batch { position_bytes, header }) = scan.step().map_err(io())? {
            let behind = position_bytes + header.size_bytes() as u64;
            if behind > limit_bytes {
                break;
            }
            (end_bytes, next) = (behind, header.next_offset());
        }
        Ok((end_bytes, next))
    }
}
