//! Walks the batches of a stretch of a segment and tells good ones from damage.
//!
//! The checksum of a batch does not cover its base offset, so a batch is also judged by its neighbours: offsets
//! continue, unless a repair left a hole.

use std::io;
use std::sync::Arc;

use leftoff_wire::Offset;
use leftoff_wire::record_batch::BatchHeader;

use super::window::Window;
use crate::disk::DiskFile;

/// Bytes of a segment file that begin with a batch and end behind one, as far as is known.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    pub file: Arc<dyn DiskFile>,
    /// Where the first batch begins.
    pub position_bytes: u64,
    /// Where the last batch ends.
    pub end_bytes: u64,
    /// The offset with which the first batch should begin.
    pub base: Offset,
    /// The offset with which the batch behind the stretch begins or will begin.
    pub next: Offset,
}

/// How closely a walk looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// Headers, and whether they continue; a checksum only where they do not.
    Headers,
    /// Every checksum.
    Checksums,
}

/// One step of a walk.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// A good batch. Its base offset may be above the end of the one before: then there is a hole.
    Batch { position_bytes: u64, header: BatchHeader },
    /// Bytes that are no good batch, up to the next one or the end; the offsets from `from` to `to` are lost.
    Damage { position_bytes: u64, len_bytes: u64, from: Offset, to: Offset },
}

/// The walk. It knows at any moment where it is: the next position and the offset that should be there.
#[derive(Debug)]
pub(super) struct Scan {
    stretch: Stretch,
    check: Check,
    window: Window,
}

impl Scan {
    pub fn new(stretch: Stretch, check: Check) -> Scan {
        let window = Window::new(stretch.file.clone(), stretch.end_bytes);
        Scan { stretch, check, window }
    }

    /// The next batch or damage; `None` at the end of the stretch.
    pub fn step(&mut self) -> io::Result<Option<Step>> {
        let position_bytes = self.stretch.position_bytes;
        if position_bytes >= self.stretch.end_bytes {
            return Ok(None);
        }
        let step = match self.window.header(position_bytes)? {
            Some(header) if self.is_good(&header)? => Step::Batch { position_bytes, header },
            header => self.damage(header)?,
        };
        match &step {
            Step::Batch { header, .. } => {
                self.stretch.position_bytes += header.size_bytes() as u64;
                self.stretch.base = header.next_offset();
            }
            Step::Damage { len_bytes, to, .. } => {
                self.stretch.position_bytes += len_bytes;
                self.stretch.base = *to;
            }
        }
        Ok(Some(step))
    }

    /// All bytes of a batch that a step has shown.
    pub fn read(&mut self, position_bytes: u64, header: &BatchHeader) -> io::Result<Vec<u8>> {
        self.window.take(position_bytes, header.size_bytes())
    }

    fn is_good(&mut self, header: &BatchHeader) -> io::Result<bool> {
        let Stretch { position_bytes, end_bytes, base: expected, next, .. } = self.stretch;
        let base = header.base_offset;
        if base < expected || header.next_offset() > next {
            return Ok(false);
        }
        let behind = position_bytes + header.size_bytes() as u64;
        let follows = match behind == end_bytes {
            true => Some(next),
            false => self.window.header(behind)?.map(|header| header.base_offset),
        };
        let continues = base == expected && follows == Some(header.next_offset());
        if continues && self.check == Check::Headers {
            return Ok(true);
        }
        // A hole is believed only if the base offset, which no checksum covers, fits what comes behind.
        let fits = base == expected || follows.is_none_or(|follows| follows >= header.next_offset());
        Ok(fits && self.window.checksum_holds(position_bytes, header)?)
    }

    /// What is lost here. The header's length is believed if it leads to a batch (or the end) that has as many offsets
    /// before it as the header claims; else the next valid batch is searched for.
    fn damage(&mut self, header: Option<BatchHeader>) -> io::Result<Step> {
        let Stretch { position_bytes, end_bytes, base: from, next, .. } = self.stretch;
        let damage = |end: u64, to: Offset| {
            let len_bytes = end - position_bytes;
            Step::Damage { position_bytes, len_bytes, from, to }
        };
        if let Some(header) = header {
            let offsets = u64::from(header.last_offset_delta.unsigned_abs()) + 1;
            let behind = position_bytes + header.size_bytes() as u64;
            let to = if behind == end_bytes { Some(next) } else { self.valid_at(behind)? };
            if let Some(to) = to.filter(|to| to.since(from) == offsets) {
                return Ok(damage(behind, to));
            }
        }
        let mut search = position_bytes + 1;
        while let Some(candidate) = self.window.find_header(search)? {
            if let Some(to) = self.valid_at(candidate)? {
                return Ok(damage(candidate, to));
            }
            search = candidate + 1;
        }
        Ok(damage(end_bytes, next))
    }

    /// The base offset of the batch at this place, if it is one that can follow.
    fn valid_at(&mut self, position_bytes: u64) -> io::Result<Option<Offset>> {
        let Some(header) = self.window.header(position_bytes)? else { return Ok(None) };
        let base = header.base_offset;
        let plausible = base > self.stretch.base && header.next_offset() <= self.stretch.next;
        Ok((plausible && self.window.checksum_holds(position_bytes, &header)?).then_some(base))
    }
}
