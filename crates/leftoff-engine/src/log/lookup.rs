//! From an offset to a batch: which segment, its index, then a short walk.

use std::io;
use std::sync::{Arc, Mutex};

use leftoff_wire::Offset;
use leftoff_wire::record_batch::BatchHeader;

use super::index::{IndexRule, TimeEntry};
use super::scan::{Check, Scan, Step, Stretch};
use super::segment::{self, Indexes, OpenSegment, Origin, indexed};
use super::{Access, Damaged, Log, LogError, MAX_OPEN_CLOSED_SEGMENTS};
use crate::disk::OpenHow;

/// A walk from an index entry that is longer than this (and than many intervals) shows that entries are missing.
const LONG_WALK_BYTES: u64 = 1 << 20;
const LONG_WALK_INTERVALS: u64 = 16;
const LONG_WALK_BATCHES: u64 = 64;

/// An open segment, and the part of it that may be read.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub segment: Arc<OpenSegment>,
    pub whole: Stretch,
}

/// A batch and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub position_bytes: u64,
    pub header: BatchHeader,
}

/// What a look-up in one segment comes to.
enum Sought {
    Batch(Found),
    Damage(Damaged),
    /// All batches end at or below this offset, which is at or below the one sought.
    End(Offset),
    /// The index does not tell the truth, or too little of it.
    WrongIndex,
}

impl Log {
    /// The number of the segment that has this offset, if it were there; `None` below the first segment.
    pub(super) fn segment_of(&self, offset: Offset) -> Option<usize> {
        let visible = self.visible_segments();
        self.segments[..visible].partition_point(|segment| segment.base <= offset).checked_sub(1)
    }

    /// How many segments have something below the high watermark, or could have.
    pub(super) fn visible_segments(&self) -> usize {
        self.segments.partition_point(|segment| segment.base <= self.high.segment_base)
    }

    /// Opens a segment. `from` is where the caller wants to read, for the report if the file is gone.
    pub(super) fn view(&self, number: usize, from: Offset) -> Result<View, LogError> {
        let base = self.segments[number].base;
        if let Some(damage) = self.mark_damage
            && damage.segment == base
            && damage.found_bytes.is_none()
        {
            return Err(self.damaged(Damaged {
                from: from.max(base),
                to: self.high.end,
                segment: base,
                position_bytes: 0,
                len_bytes: 0,
            }));
        }
        let path = segment::path(&self.dir, base, segment::LOG);
        let io = || LogError::io("read", &path);
        let segment = self.open_segment(base)?;
        let end_bytes = match self.mark_damage.filter(|damage| damage.segment == base) {
            Some(damage) => damage.found_bytes.unwrap_or(0),
            None if base == self.high.segment_base => self.high.position_bytes,
            None => match self.segments[number].bytes.get() {
                Some(bytes) => *bytes,
                None => segment.log.len().map_err(io())?,
            },
        };
        let next = match self.segments.get(number + 1) {
            Some(next) if base < self.high.segment_base => next.base,
            _ => self.high.end,
        };
        let whole = Stretch { file: segment.log.clone(), position_bytes: 0, end_bytes, base, next };
        let view = View { segment, whole };
        let missing = view.segment.lock().origin == Origin::Missing;
        if missing {
            self.rebuild_indexes(&view)?;
        }
        Ok(view)
    }

    /// The first batch of a segment that ends above `offset`; `Err` with the end of its batches if there is none.
    pub(super) fn seek(&self, view: &View, offset: Offset) -> Result<Result<Found, Offset>, LogError> {
        let mut sought = self.try_seek(view, offset, true)?;
        if matches!(sought, Sought::WrongIndex) {
            self.rebuild_indexes(view)?;
            sought = self.try_seek(view, offset, true)?;
        }
        if matches!(sought, Sought::WrongIndex) {
            sought = self.try_seek(view, offset, false)?;
        }
        match sought {
            Sought::Batch(found) => Ok(Ok(found)),
            Sought::Damage(damaged) => Err(self.damaged(damaged)),
            Sought::End(end) if self.is_short(view) => Err(self.damaged(Damaged {
                from: end.max(offset),
                to: view.whole.next,
                segment: view.segment.base,
                position_bytes: view.whole.end_bytes,
                len_bytes: 0,
            })),
            Sought::End(end) => Ok(Err(end)),
            Sought::WrongIndex => unreachable!("without an index there is no wrong one"),
        }
    }

    /// The batch that a time entry names, if the entry is right.
    pub(super) fn batch_of_time(&self, view: &View, entry: TimeEntry) -> Result<Option<Found>, LogError> {
        let last_offset = view.segment.offset(entry.relative_offset);
        if last_offset >= view.whole.next {
            return Ok(None);
        }
        let found = match self.seek(view, last_offset) {
            Ok(found) => found.ok(),
            Err(LogError::Damaged { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(found.filter(|found| {
            found.header.last_offset() == last_offset && found.header.max_timestamp == entry.timestamp_ms
        }))
    }

    /// Makes the indexes of a segment anew: in their files if this is the writer and the segment is closed, else in
    /// memory. The segment that is written to keeps its own.
    pub(super) fn rebuild_indexes(&self, view: &View) -> Result<(), LogError> {
        let base = view.segment.base;
        let is_written_to = self.active.as_ref().is_some_and(|active| active.segment.base == base);
        if is_written_to || view.segment.lock().origin == Origin::Rebuilt {
            return Ok(());
        }
        let closed = base < self.high.segment_base;
        let indexes = match self.access {
            Access::Writer if closed => {
                Indexes::open(&*self.disk, &self.dir, base, OpenHow::CreateOrTruncate).ok().flatten()
            }
            Access::Writer | Access::Reader => None,
        };
        let mut indexes = indexes.unwrap_or_else(|| Indexes::in_memory(Origin::Rebuilt));
        let path = segment::path(&self.dir, base, segment::LOG);
        let mut rule = IndexRule::new(self.config.index_interval_bytes);
        let mut scan = Scan::new(view.whole.clone(), Check::Headers);
        while let Some(step) = scan.step().map_err(LogError::io("read", &path))? {
            if let Step::Batch { position_bytes, header } = step
                && let Some(batch) = indexed(base, position_bytes, &header)
            {
                rule.add(batch, &mut indexes.offsets, &mut indexes.times);
            }
        }
        if closed {
            rule.push_time(&mut indexes.times);
        }
        // What cannot be written stays in memory, where it is as good.
        let _ = indexes.flush();
        *view.segment.lock() = indexes;
        Ok(())
    }

    /// Calls `visit` with each batch below the high watermark, in order; damage is passed.
    pub(super) fn for_each_batch(&self, visit: &mut dyn FnMut(&BatchHeader)) -> Result<(), LogError> {
        for number in 0..self.visible_segments() {
            let view = match self.view(number, self.segments[number].base) {
                Err(LogError::Damaged { .. }) => continue,
                view => view?,
            };
            let path = segment::path(&self.dir, view.segment.base, segment::LOG);
            let mut scan = Scan::new(view.whole, Check::Headers);
            while let Some(step) = scan.step().map_err(LogError::io("read", &path))? {
                if let Step::Batch { header, .. } = step {
                    visit(&header);
                }
            }
        }
        Ok(())
    }

    /// Calls `visit` with the header of each batch below the high watermark, from the one that holds `from` on; damage is
    /// passed. Nothing of the records is read.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub fn headers_from(&self, from: Offset, visit: &mut dyn FnMut(&BatchHeader)) -> Result<(), LogError> {
        if from >= self.high.end {
            return Ok(());
        }
        let first = self.segment_of(from).unwrap_or(0);
        for number in first..self.visible_segments() {
            let view = match self.view(number, from) {
                Err(LogError::Damaged { .. }) => continue,
                view => view?,
            };
            let path = segment::path(&self.dir, view.segment.base, segment::LOG);
            let mut stretch = view.whole.clone();
            // Where the offset lies in damage the whole segment is walked.
            if let Ok(Ok(found)) = self.seek(&view, from) {
                stretch.position_bytes = found.position_bytes;
                stretch.base = found.header.base_offset;
            }
            let mut scan = Scan::new(stretch, Check::Headers);
            while let Some(step) = scan.step().map_err(LogError::io("read", &path))? {
                if let Step::Batch { header, .. } = step
                    && header.next_offset() > from
                {
                    visit(&header);
                }
            }
        }
        Ok(())
    }

    /// Keeps a closed segment open for readers, in place of the one that was opened first.
    pub(super) fn keep_open(&self, segment: Arc<OpenSegment>) {
        let mut opened = self.opened();
        if opened.len() >= MAX_OPEN_CLOSED_SEGMENTS {
            opened.pop_front();
        }
        opened.push_back(segment);
    }

    pub(super) fn damaged(&self, damaged: Damaged) -> LogError {
        LogError::Damaged { path: self.dir.clone(), damaged }
    }

    /// Whether synced bytes are missing at the end of this segment.
    pub(super) fn is_short(&self, view: &View) -> bool {
        self.mark_damage.is_some_and(|damage| damage.segment == view.segment.base)
    }

    fn open_segment(&self, base: Offset) -> Result<Arc<OpenSegment>, LogError> {
        if let Some(active) = self.active.as_ref().filter(|active| active.segment.base == base) {
            return Ok(active.segment.clone());
        }
        if let Some(open) = self.opened().iter().find(|open| open.base == base) {
            return Ok(open.clone());
        }
        let path = segment::path(&self.dir, base, segment::LOG);
        let io = || LogError::io("open", &path);
        let log = self.disk.open(&path, OpenHow::Read).map_err(io())?;
        let indexes = Indexes::open(&*self.disk, &self.dir, base, OpenHow::Read).map_err(io())?;
        let indexes = indexes.unwrap_or_else(|| Indexes::in_memory(Origin::Missing));
        let open = Arc::new(OpenSegment { base, log, indexes: Mutex::new(indexes) });
        self.keep_open(open.clone());
        Ok(open)
    }

    fn try_seek(&self, view: &View, offset: Offset, by_index: bool) -> Result<Sought, LogError> {
        let path = segment::path(&self.dir, view.segment.base, segment::LOG);
        let indexes = view.segment.lock();
        let interval_bytes = u64::from(self.config.index_interval_bytes);
        let long_walk = LONG_WALK_BYTES.max(interval_bytes * LONG_WALK_INTERVALS);
        let patience = if indexes.origin == Origin::Rebuilt || !by_index { u64::MAX } else { long_walk };
        seek(view, by_index.then_some(&*indexes), offset, patience).map_err(LogError::io("read", &path))
    }
}

/// What of an index holds, when a writer opens its segment.
#[derive(Debug, Default)]
pub(super) struct Valid {
    /// The last time entry.
    pub last_time: Option<TimeEntry>,
    /// Where the batch of the last offset entry is.
    pub last_entry_bytes: Option<u64>,
    /// From which batch on the log must be walked to know the rest; `None`: from the first one.
    pub walk_from: Option<(u64, Offset)>,
}

impl Indexes {
    /// Drops the entries above the end of the segment, or all if the others do not rise or the last of them is wrong.
    pub fn cut_to_valid(&mut self, view: &View) -> io::Result<Valid> {
        let Stretch { end_bytes, next, .. } = view.whole;
        let segment = &view.segment;
        let offsets = self.offsets.count_where(|entry| u64::from(entry.position_bytes) < end_bytes)?;
        let times = self.times.count_where(|entry| segment.offset(entry.relative_offset) < next)?;
        self.offsets.truncate(offsets)?;
        self.times.truncate(times)?;
        let valid = self.valid(view)?;
        if valid.is_none() {
            self.offsets.truncate(0)?;
            self.times.truncate(0)?;
        }
        Ok(valid.unwrap_or_default())
    }

    fn valid(&self, view: &View) -> io::Result<Option<Valid>> {
        if !self.offsets.is_rising()? || !self.times.is_rising()? {
            return Ok(None);
        }
        let (Some(offset), Some(time)) = (self.offsets.last()?, self.times.last()?) else {
            return Ok((self.offsets.len() + self.times.len() == 0).then(Valid::default));
        };
        let Some(entry_header) = view.segment.batch_of(offset, view.whole.end_bytes)? else {
            return Ok(None);
        };
        let last_offset = view.segment.offset(time.relative_offset);
        let Sought::Batch(found) = seek(view, Some(self), last_offset, u64::MAX)? else { return Ok(None) };
        if found.header.last_offset() != last_offset || found.header.max_timestamp != time.timestamp_ms {
            return Ok(None);
        }
        let entry_bytes = u64::from(offset.position_bytes);
        let entry = (entry_bytes, entry_header.base_offset);
        let greatest = (found.position_bytes, found.header.base_offset);
        Ok(Some(Valid {
            last_time: Some(time),
            last_entry_bytes: Some(entry_bytes),
            walk_from: Some(entry.min(greatest)),
        }))
    }
}

fn seek(view: &View, indexes: Option<&Indexes>, offset: Offset, patience: u64) -> io::Result<Sought> {
    let Some(mut stretch) = start(view, indexes, offset)? else { return Ok(Sought::WrongIndex) };
    let from_bytes = stretch.position_bytes;
    let mut end = stretch.base;
    let mut walked = 0;
    stretch.file = view.segment.log.clone();
    let mut scan = Scan::new(stretch, Check::Headers);
    while let Some(step) = scan.step()? {
        match step {
            Step::Batch { position_bytes, header } if header.next_offset() > offset => {
                return Ok(Sought::Batch(Found { position_bytes, header }));
            }
            Step::Damage { position_bytes, len_bytes, from, to } if to > offset => {
                let segment = view.segment.base;
                return Ok(Sought::Damage(Damaged { from, to, segment, position_bytes, len_bytes }));
            }
            Step::Batch { position_bytes, header } => {
                end = header.next_offset();
                walked += 1;
                if walked > LONG_WALK_BATCHES && position_bytes - from_bytes > patience {
                    return Ok(Sought::WrongIndex);
                }
            }
            Step::Damage { to, .. } => end = to,
        }
    }
    Ok(Sought::End(end))
}

/// From where to walk to find an offset; `None` if the index is wrong.
fn start(view: &View, indexes: Option<&Indexes>, offset: Offset) -> io::Result<Option<Stretch>> {
    let mut stretch = view.whole.clone();
    let Some(indexes) = indexes else { return Ok(Some(stretch)) };
    let end_bytes = stretch.end_bytes;
    let entry = indexes.offsets.last_where(|entry| {
        u64::from(entry.position_bytes) < end_bytes && view.segment.offset(entry.relative_offset) <= offset
    })?;
    if let Some(entry) = entry {
        let Some(header) = view.segment.batch_of(entry, end_bytes)? else { return Ok(None) };
        stretch.position_bytes = u64::from(entry.position_bytes);
        stretch.base = header.base_offset;
    }
    Ok(Some(stretch))
}
