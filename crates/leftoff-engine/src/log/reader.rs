//! Reads a log batch by batch, checked.

use std::collections::VecDeque;

use leftoff_wire::Offset;
use leftoff_wire::record_batch::BatchHeader;

use super::fetch::FileRange;
use super::scan::{Check, Scan, Step, Stretch};
use super::{Damaged, Log, LogError, segment};

/// How many bytes of the log a reader looks up at once.
const LOOK_UP_BYTES: u64 = 4 << 20;

/// Reads a log batch by batch, each checked, with the memory of one batch. Damage is reported and passed.
#[derive(Debug)]
pub struct BatchReader<'a> {
    log: &'a Log,
    at: Offset,
    ranges: VecDeque<FileRange>,
    range: Option<(FileRange, Scan)>,
    ready: Option<ReadBatch>,
    failed: bool,
}

/// One step of a [`BatchReader`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadBatch {
    /// A whole batch whose checksum holds. The first one may begin below the offset that was asked for.
    Batch {
        /// Its header.
        header: BatchHeader,
        /// All of it, header included.
        bytes: Vec<u8>,
    },
    /// Records that are lost; the next step is the batch at `to`.
    Damaged(Damaged),
    /// No batch holds the offsets from `from` to `to`: a repair took them out, or a file was cut.
    Gap {
        /// The first offset that is not there.
        from: Offset,
        /// The next offset that is there, or the high watermark.
        to: Offset,
    },
}

impl Log {
    /// Reads checked batches one by one, from the one that contains `from`, up to the high watermark.
    ///
    /// `from` below the log start, or above the high watermark, is the first item's [`LogError::OutOfRange`].
    pub fn read_batches(&self, from: Offset) -> BatchReader<'_> {
        BatchReader { log: self, at: from, ranges: VecDeque::new(), range: None, ready: None, failed: false }
    }
}

impl BatchReader<'_> {
    /// The offset behind everything that was returned so far.
    pub fn position(&self) -> Offset {
        self.at
    }

    fn step(&mut self) -> Result<Option<ReadBatch>, LogError> {
        loop {
            if let Some(ready) = self.ready.take() {
                return Ok(Some(self.pass(ready)));
            }
            if let Some(step) = self.step_in_range()? {
                return Ok(Some(step));
            }
            if self.range.is_none() && !self.look_up()? {
                return Ok(None);
            }
        }
    }

    /// The next batch of the range at hand, or `None` if another range is wanted or something is `ready`.
    fn step_in_range(&mut self) -> Result<Option<ReadBatch>, LogError> {
        let Some((range, scan)) = &mut self.range else { return Ok(None) };
        let path = segment::path(&self.log.dir, range.segment, segment::LOG);
        let io = || LogError::io("read", &path);
        let (segment, range_end) = (range.segment, range.next);
        let found = match scan.step().map_err(io())? {
            Some(Step::Batch { position_bytes, header }) => {
                let bytes = scan.read(position_bytes, &header).map_err(io())?;
                (header.base_offset, Some(ReadBatch::Batch { header, bytes }))
            }
            Some(Step::Damage { position_bytes, len_bytes, from, to }) => {
                let from = from.max(self.at);
                let damaged = Damaged { from, to, segment, position_bytes, len_bytes };
                (from, (to > self.at).then_some(ReadBatch::Damaged(damaged)))
            }
            None => {
                self.range = None;
                (range_end, None)
            }
        };
        let (base, read) = found;
        if base > self.at {
            self.ready = read;
            return Ok(Some(self.pass(ReadBatch::Gap { from: self.at, to: base })));
        }
        Ok(read.map(|read| self.pass(read)))
    }

    fn pass(&mut self, read: ReadBatch) -> ReadBatch {
        let next = match &read {
            ReadBatch::Batch { header, .. } => header.next_offset(),
            ReadBatch::Damaged(damaged) => damaged.to,
            ReadBatch::Gap { to, .. } => *to,
        };
        self.at = self.at.max(next);
        read
    }

    /// Takes the next range; `false` at the high watermark.
    fn look_up(&mut self) -> Result<bool, LogError> {
        if self.ranges.is_empty() {
            match self.log.fetch(self.at, LOOK_UP_BYTES) {
                Ok(fetched) => self.ranges = fetched.ranges.into(),
                Err(LogError::Damaged { damaged, .. }) => {
                    self.ready = Some(ReadBatch::Damaged(damaged));
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        match self.ranges.pop_front() {
            Some(range) => {
                let stretch = Stretch {
                    file: range.file.clone(),
                    position_bytes: range.position_bytes,
                    end_bytes: range.position_bytes + range.len_bytes,
                    base: range.base,
                    next: range.next,
                };
                self.range = Some((range, Scan::new(stretch, Check::Checksums)));
                Ok(true)
            }
            None if self.at < self.log.high.end => {
                self.ready = Some(ReadBatch::Gap { from: self.at, to: self.log.high.end });
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

impl Iterator for BatchReader<'_> {
    type Item = Result<ReadBatch, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let step = self.step();
        self.failed = step.is_err();
        step.transpose()
    }
}
