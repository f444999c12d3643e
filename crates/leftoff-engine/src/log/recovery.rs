//! What a start does about the bytes above the mark: a crash may have torn them, and no sync has vouched for them.
//!
//! Any of these steps may be cut short by another crash. The mark has not moved then, so the next start walks the same
//! tail again and finds it as it was or shorter.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use leftoff_wire::Offset;
use leftoff_wire::record_batch::BatchHeader;

use super::segment::{self, Segment};
use super::window::{Window, read_exact};
use super::{Access, Dirty, Log, LogError, Mark, MarkDamage};
use crate::disk::{DiskFile, OpenHow};

/// Kept bytes are written again in steps of this size.
const REWRITE_BYTES: usize = 1 << 20;

/// One whole valid batch above the mark.
#[derive(Debug)]
pub struct TailBatch<'a> {
    /// Its header.
    pub header: BatchHeader,
    /// All of it, header included.
    pub bytes: &'a [u8],
}

/// What a walk over the tail found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailEnd {
    /// The end of the last valid batch, or the mark's end.
    pub valid_end: Offset,
    /// Bytes behind it, later segments included.
    pub torn_bytes: u64,
}

/// What [`Log::settle_tail`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// Bytes above the mark that were kept, written again and synced.
    pub kept_bytes: u64,
    /// Bytes that were cut.
    pub cut_bytes: u64,
}

/// What lies above the mark.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: u64,
    /// Base offsets of segments behind the marked one.
    later: Vec<Offset>,
}

/// Bytes of one segment that are kept.
#[derive(Debug)]
struct Kept {
    base: Offset,
    file: Arc<dyn DiskFile>,
    from_bytes: u64,
    end_bytes: u64,
    end: Offset,
}

impl Log {
    /// Bytes above the mark; 0: there is nothing to recover. Always 0 for a reader, and where the mark is damaged.
    pub fn tail_bytes(&self) -> u64 {
        self.tail.bytes
    }

    /// Walks the batches above the mark, up to the first that is not valid or does not follow the one before.
    ///
    /// Valid batches behind it do not count: late pages reach a disk out of order.
    pub fn read_tail(&self, visit: &mut dyn FnMut(TailBatch<'_>)) -> Result<TailEnd, LogError> {
        let kept = self.walk_tail(&mut |header, bytes| {
            visit(TailBatch { header: *header, bytes });
            ControlFlow::Continue(())
        })?;
        let valid_end = kept.last().map_or(self.high.end, |kept| kept.end);
        Ok(TailEnd { valid_end, torn_bytes: self.tail.bytes - kept_bytes(&kept) })
    }

    /// Ends the log at `end` (the mark's end, or the end of a batch that [`Log::read_tail`] showed), and syncs.
    ///
    /// Everything behind is cut. What is kept above the mark is written again in place before it is synced, since
    /// after a failed sync the page cache can show what the disk lacks. Afterwards `end` is the high watermark.
    ///
    /// # Errors
    /// [`LogError::NoSuchEnd`]; [`LogError::Io`] or [`LogError::Sync`], after which the log is to be opened anew.
    pub fn settle_tail(&mut self, end: Offset) -> Result<Settled, LogError> {
        let mut unsynced = Dirty::default();
        let settled = self.settle_tail_unsynced(end, &mut unsynced)?;
        self.disk.sync(&unsynced.files, &unsynced.dirs).map_err(LogError::sync(&self.dir))?;
        Ok(settled)
    }

    /// As [`Log::settle_tail`], but what is to be synced before anybody may read is added to `unsynced`: a start with many
    /// tails syncs all of them at once.
    ///
    /// # Errors
    /// As [`Log::settle_tail`].
    pub fn settle_tail_unsynced(&mut self, end: Offset, unsynced: &mut Dirty) -> Result<Settled, LogError> {
        let path = self.dir.clone();
        if self.access == Access::Reader {
            return Err(LogError::ReadOnly { path });
        }
        if let Some(damage) = self.mark_damage {
            return Err(LogError::MarkDamaged { path, damage });
        }
        if self.tail.bytes == 0 && self.tail.later.is_empty() && end == self.high.end {
            return Ok(Settled { kept_bytes: 0, cut_bytes: 0 });
        }
        let mut epochs = self.epochs()?.clone();
        let had = epochs.clone();
        epochs.cut(end);
        let mut kept = Vec::new();
        if end > self.high.end {
            kept = self.walk_tail(&mut |header, _| {
                if epochs.last().is_none_or(|last| last < header.partition_leader_epoch) {
                    epochs.begin(header.partition_leader_epoch, header.base_offset);
                }
                if header.next_offset() < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        if kept.is_empty() {
            kept.push(self.kept_up_to_mark()?);
        }
        if kept.last().is_none_or(|kept| kept.end != end) {
            return Err(LogError::NoSuchEnd { path, end });
        }
        self.cut_behind(&kept)?;
        if epochs != had {
            epochs.save(&*self.disk, &self.dir)?;
        }
        unsynced.files.extend(self.write_again(&kept)?);
        unsynced.dirs.push(path);
        self.epochs = epochs.into();
        Ok(self.settled(&kept))
    }

    /// The file in which the log ends, if it is there.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn end_file(&self) -> Result<Option<Arc<dyn DiskFile>>, LogError> {
        let path = segment::path(&self.dir, self.high.segment_base, segment::LOG);
        match self.disk.open(&path, OpenHow::Write) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LogError::io("open", &path)(error)),
        }
    }

    /// Looks at the lengths of the marked segment and of those behind it.
    pub(super) fn measure_tail(&mut self, later: Vec<Offset>) -> Result<(), LogError> {
        let Mark { segment_base, position_bytes, .. } = self.high;
        let found_bytes = self.length_of(segment_base)?;
        match found_bytes {
            Some(found) if found >= position_bytes => {
                if self.access == Access::Writer {
                    let mut bytes = found - position_bytes;
                    for base in &later {
                        bytes += self.length_of(*base)?.unwrap_or(0);
                    }
                    self.tail = Tail { bytes, later };
                }
            }
            _ => {
                let damage = MarkDamage { segment: segment_base, marked_bytes: position_bytes, found_bytes };
                self.mark_damage = Some(damage);
            }
        }
        Ok(())
    }

    /// Removes segments behind the mark that a crash left without any byte.
    pub(super) fn remove_empty_tail(&mut self) -> Result<(), LogError> {
        if self.tail.later.is_empty() { Ok(()) } else { self.settle_tail(self.high.end).map(drop) }
    }

    pub(super) fn length_of(&self, base: Offset) -> Result<Option<u64>, LogError> {
        let path = segment::path(&self.dir, base, segment::LOG);
        let meta = self.disk.metadata(&path).map_err(LogError::io("look at", &path))?;
        Ok(meta.map(|meta| meta.len_bytes))
    }

    /// Walks the valid batches above the mark until `visit` has enough; tells which bytes they are.
    fn walk_tail(
        &self,
        visit: &mut dyn FnMut(&BatchHeader, &[u8]) -> ControlFlow<()>,
    ) -> Result<Vec<Kept>, LogError> {
        let mut all = Vec::new();
        if self.tail.bytes == 0 {
            return Ok(all);
        }
        let mut end = self.high.end;
        let mut epoch = self.epochs()?.at(end).unwrap_or(i32::MIN);
        let mut from_bytes = self.high.position_bytes;
        let bases = std::iter::once(self.high.segment_base).chain(self.tail.later.iter().copied());
        for base in bases {
            if base != self.high.segment_base && base != end {
                break;
            }
            let path = segment::path(&self.dir, base, segment::LOG);
            let io = || LogError::io("read", &path);
            let file = self.disk.open(&path, OpenHow::Write).map_err(io())?;
            let len_bytes = file.len().map_err(io())?;
            let mut kept = Kept { base, file, from_bytes, end_bytes: from_bytes, end };
            let mut flow = ControlFlow::Continue(());
            let mut window = Window::new(kept.file.clone(), len_bytes);
            while flow.is_continue()
                && let Some(header) = window.header(kept.end_bytes).map_err(io())?
                && header.base_offset == kept.end
                && header.partition_leader_epoch >= epoch
                && window.checksum_holds(kept.end_bytes, &header).map_err(io())?
            {
                let bytes = window.take(kept.end_bytes, header.size_bytes()).map_err(io())?;
                kept.end_bytes += bytes.len() as u64;
                kept.end = header.next_offset();
                epoch = header.partition_leader_epoch;
                flow = visit(&header, &bytes);
            }
            end = kept.end;
            from_bytes = 0;
            let whole = kept.end_bytes == len_bytes;
            all.push(kept);
            if flow.is_break() || !whole {
                break;
            }
        }
        Ok(all)
    }

    fn kept_up_to_mark(&self) -> Result<Kept, LogError> {
        let Mark { segment_base: base, end, position_bytes } = self.high;
        let path = segment::path(&self.dir, base, segment::LOG);
        let file = self.disk.open(&path, OpenHow::Write).map_err(LogError::io("open", &path))?;
        Ok(Kept { base, file, from_bytes: position_bytes, end_bytes: position_bytes, end })
    }

    /// Removes later segments, the last one first, and cuts the one that becomes the active one.
    fn cut_behind(&self, kept: &[Kept]) -> Result<(), LogError> {
        let last = kept.last().expect("there is always a segment to keep");
        for base in self.tail.later.iter().rev().filter(|base| **base > last.base) {
            segment::remove(&*self.disk, &self.dir, *base)?;
        }
        let path = segment::path(&self.dir, last.base, segment::LOG);
        let io = || LogError::io("cut", &path);
        if last.file.len().map_err(io())? > last.end_bytes {
            last.file.set_len(last.end_bytes).map_err(io())?;
        }
        Ok(())
    }

    /// Writes the kept bytes again, and the index entries that are missing; tells what is to be synced.
    fn write_again(&self, kept: &[Kept]) -> Result<Vec<Arc<dyn DiskFile>>, LogError> {
        let mut files = Vec::new();
        for kept in kept {
            let path = segment::path(&self.dir, kept.base, segment::LOG);
            rewrite(kept).map_err(LogError::io("write", &path))?;
            let mut active = self.open_for_append(kept.base, kept.end_bytes, kept.end)?;
            active.finish().map_err(LogError::io("index", &path))?;
            files.push(kept.file.clone());
            files.extend(active.segment.lock().files());
        }
        Ok(files)
    }

    fn settled(&mut self, kept: &[Kept]) -> Settled {
        let last = kept.last().expect("there is always a segment to keep");
        self.drop_opened(self.high.segment_base);
        let later = kept.iter().map(|kept| kept.base).filter(|base| *base > self.high.segment_base);
        self.segments.extend(later.map(Segment::new));
        let mark = Mark { segment_base: last.base, end: last.end, position_bytes: last.end_bytes };
        let kept_bytes = kept_bytes(kept);
        let cut_bytes = self.tail.bytes - kept_bytes;
        self.tail = Tail::default();
        self.high = mark;
        self.end = mark.end;
        self.end_bytes = mark.position_bytes;
        Settled { kept_bytes, cut_bytes }
    }
}

fn kept_bytes(kept: &[Kept]) -> u64 {
    kept.iter().map(|kept| kept.end_bytes - kept.from_bytes).sum()
}

fn rewrite(kept: &Kept) -> io::Result<()> {
    let mut position_bytes = kept.from_bytes;
    let mut step = Vec::new();
    while position_bytes < kept.end_bytes {
        let left = usize::try_from(kept.end_bytes - position_bytes).unwrap_or(REWRITE_BYTES);
        step.resize(left.min(REWRITE_BYTES), 0);
        read_exact(&*kept.file, &mut step, position_bytes)?;
        kept.file.write_all_at(&step, position_bytes)?;
        position_bytes += step.len() as u64;
    }
    Ok(())
}
