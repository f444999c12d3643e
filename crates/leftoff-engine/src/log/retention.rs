//! What there is to keep or delete. Which segments go is the broker's decision; it moves the log start.

use std::path::PathBuf;
use std::sync::Arc;

use leftoff_wire::Offset;

use super::{Log, LogError, segment};
use crate::disk::Disk;

/// One segment, for decisions about retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its base offset.
    pub base: Offset,
    /// The offset behind its last record: the base of the next segment, or the log's end.
    pub next: Offset,
    /// Its size in bytes, without indexes.
    pub bytes: u64,
    /// Whether it is the one that is written to.
    pub active: bool,
}

/// A segment that is no longer part of the log; its files are still there until [`RemovedSegment::unlink`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedSegment {
    /// The partition's folder.
    pub dir: PathBuf,
    /// Base offset of the segment.
    pub base: Offset,
}

impl Log {
    /// The segments, in order. Looks at the length of those that nobody asked about before.
    pub fn segments(&self) -> Result<Vec<SegmentInfo>, LogError> {
        let last = self.segments.len() - 1;
        let info = |number: usize| {
            let next = self.segments.get(number + 1).map_or(self.end, |next| next.base);
            let bytes = self.segment_bytes(number)?;
            Ok(SegmentInfo { base: self.segments[number].base, next, bytes, active: number == last })
        };
        (0..=last).map(info).collect()
    }

    /// Bytes of all segments, without indexes.
    pub fn bytes(&self) -> Result<u64, LogError> {
        (0..self.segments.len()).map(|number| self.segment_bytes(number)).sum()
    }

    /// Takes the closed segments that lie wholly below the log start out of the log.
    ///
    /// Their files are unlinked later, after the marks file was synced. Readers that have one open can go on. The
    /// segment in which the mark lies always stays.
    pub fn take_removable(&mut self) -> Vec<RemovedSegment> {
        let is_removable = |pair: &[segment::Segment]| {
            pair[1].base <= self.log_start && pair[0].base < self.high.segment_base
        };
        let count = self.segments.windows(2).take_while(|pair| is_removable(pair)).count();
        let removed: Vec<_> = self
            .segments
            .drain(..count)
            .map(|segment| RemovedSegment { dir: self.dir.clone(), base: segment.base })
            .collect();
        let first = self.segments[0].base;
        self.opened().retain(|open| open.base >= first);
        removed
    }

    fn segment_bytes(&self, number: usize) -> Result<u64, LogError> {
        if number + 1 == self.segments.len() {
            return Ok(self.end_bytes);
        }
        let segment = &self.segments[number];
        match segment.bytes.get() {
            Some(bytes) => Ok(*bytes),
            // A segment that was deleted by hand has no bytes.
            None => {
                let bytes = self.length_of(segment.base)?.unwrap_or(0);
                Ok(*segment.bytes.get_or_init(|| bytes))
            }
        }
    }
}

impl RemovedSegment {
    /// Removes the segment's files. The folder is for the caller to sync.
    pub fn unlink(&self, disk: &Arc<dyn Disk>) -> Result<(), LogError> {
        segment::remove(&**disk, &self.dir, self.base)
    }
}
