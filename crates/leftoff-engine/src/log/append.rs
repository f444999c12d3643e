//! Appending, rolling, and taking back what was appended.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use leftoff_wire::record_batch::Batches;
use leftoff_wire::{Offset, record_batch::BatchHeader};

use super::epochs::Epochs;
use super::index::IndexRule;
use super::lookup::View;
use super::scan::{Check, Scan, Step, Stretch};
use super::segment::{self, Indexes, OpenSegment, Segment};
use super::{Access, Log, LogError, MAX_SEGMENT_BYTES, Mark};
use crate::disk::{DiskFile, OpenHow};

/// Index entries are written to their file when so many wait.
const MAX_WAITING_ENTRIES: usize = 512;

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The offset of the first record.
    pub base: Offset,
    /// The offset behind the last record.
    pub next: Offset,
    /// Bytes written to the segment.
    pub bytes: u64,
    /// Base offset of the segment that was closed to make room, if one was.
    pub rolled: Option<Offset>,
}

/// A place to go back to with [`Log::undo_to`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint {
    end: Mark,
}

/// What a sync must cover so that everything appended so far is on the disk.
#[derive(Debug, Default)]
pub struct Dirty {
    /// Files: segments, and indexes of segments that were closed.
    pub files: Vec<Arc<dyn DiskFile>>,
    /// Folders in which files were made.
    pub dirs: Vec<PathBuf>,
}

/// The segment that is written to, and the rule that says which of its batches are indexed.
#[derive(Debug)]
pub(super) struct Active {
    pub segment: Arc<OpenSegment>,
    pub rule: IndexRule,
}

impl Log {
    /// Gives the batches their offsets and writes them, all to one segment.
    ///
    /// A segment that they would make too large is closed first; batches larger than a segment get one of their own.
    ///
    /// # Errors
    /// [`LogError::Write`]: nothing was appended and the log is as before; a later append may work.
    /// [`LogError::Sync`], [`LogError::Latched`]: it takes no more. [`LogError::TooLarge`], [`LogError::MarkDamaged`],
    /// [`LogError::TailNotSettled`], [`LogError::ReadOnly`]: refused.
    ///
    /// # Panics
    /// If the leader epoch falls.
    pub fn append(&mut self, mut batches: Batches, leader_epoch: i32) -> Result<Appended, LogError> {
        self.must_take_appends()?;
        let bytes = batches.size_bytes() as u64;
        if bytes > MAX_SEGMENT_BYTES {
            return Err(LogError::TooLarge { bytes, limit_bytes: MAX_SEGMENT_BYTES });
        }
        let base = self.end;
        let next = batches.assign(base, leader_epoch);
        if let Err(error) = self.begin_epoch(leader_epoch, base) {
            self.latched |= matches!(error, LogError::Sync { .. });
            return Err(self.as_write_error(error));
        }
        let savepoint = self.savepoint();
        match self.write(&batches, next) {
            Ok(rolled) => Ok(Appended { base, next, bytes, rolled }),
            Err(error) => {
                self.undo_to(savepoint)?;
                Err(self.as_write_error(error))
            }
        }
    }

    /// Closes the active segment if there is anything in it, and returns its base offset. The new one is empty.
    ///
    /// # Errors
    /// As [`Log::append`]; [`LogError::Io`] leaves the segment open.
    pub fn roll(&mut self) -> Result<Option<Offset>, LogError> {
        self.must_take_appends()?;
        if self.end_bytes == 0 {
            return Ok(None);
        }
        let closed = self.active()?.segment.clone();
        self.finish_indexes()?;
        let created = segment::create(&*self.disk, &self.dir, self.end)?;
        self.dirty.extend(closed.lock().files().map(|file| (closed.base, file)));
        if !self.active_is_dirty {
            // A process that was killed may have cut the file without a sync; nobody looks behind its end again.
            self.dirty.push((closed.base, closed.log.clone()));
        }
        self.dir_is_dirty = true;
        let last = self.segments.last().expect("a log has an active segment");
        last.bytes.set(self.end_bytes).expect("the size is not known before the segment is closed");
        self.keep_open(closed.clone());
        self.segments.push(Segment::new(self.end));
        let rule = IndexRule::new(self.config.index_interval_bytes);
        self.active = Some(Active { segment: Arc::new(created), rule });
        self.active_is_dirty = false;
        self.end_bytes = 0;
        Ok(Some(closed.base))
    }

    /// Where the log ends now, to come back to. Good until the next [`Log::take_dirty`].
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { end: self.end_mark() }
    }

    /// Cuts what was appended since the savepoint; a segment that was closed since is open again.
    ///
    /// # Errors
    /// [`LogError::Latched`] if that fails.
    ///
    /// # Panics
    /// If the savepoint is not of this log's recent past.
    pub fn undo_to(&mut self, savepoint: Savepoint) -> Result<(), LogError> {
        let Mark { segment_base, end, position_bytes } = savepoint.end;
        assert!(self.high.end <= end && end <= self.end, "only what was not published can be undone");
        self.drop_opened(segment_base);
        self.dirty.retain(|(base, _)| *base <= segment_base);
        match self.cut_back(segment_base, position_bytes) {
            // The cut is synced with what comes next, so that a power cut does not bring back what was refused.
            Ok(file) => self.dirty.push((segment_base, file)),
            Err(_) => {
                // That the log takes no more is what matters; why the cut failed, the disk has told others, too.
                self.latched = true;
                return Err(LogError::Latched { path: self.dir.clone() });
            }
        }
        self.active_is_dirty = true;
        let last = self.segments.last_mut().expect("a log has an active segment");
        *last = Segment::new(segment_base);
        self.end = end;
        self.end_bytes = position_bytes;
        if let Some(epochs) = self.epochs.get_mut() {
            epochs.cut(end);
        }
        Ok(())
    }

    /// What a sync must cover so that [`Log::end_mark`] holds; the list starts anew.
    pub fn take_dirty(&mut self) -> Dirty {
        let files = std::mem::take(&mut self.dirty).into_iter().map(|(_, file)| file).collect();
        self.active_is_dirty = false;
        let dirs = if std::mem::take(&mut self.dir_is_dirty) { vec![self.dir.clone()] } else { Vec::new() };
        Dirty { files, dirs }
    }

    /// Writes the index entries that wait to their files: a clean stop.
    pub fn close(&mut self) -> Result<(), LogError> {
        if self.active.is_some() { self.finish_indexes() } else { Ok(()) }
    }

    /// The greatest leader epoch not above `epoch` that has records, and the offset behind its last one (KIP-101).
    pub fn epoch_end(&self, epoch: i32) -> Result<Option<(i32, Offset)>, LogError> {
        Ok(self.epochs()?.end_of(epoch, self.high.end))
    }

    /// The leader epoch of the last record, if there is one.
    pub fn last_epoch(&self) -> Result<Option<i32>, LogError> {
        Ok(self.epochs()?.last())
    }

    /// Each leader epoch that has records, with its first offset.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub fn epoch_starts(&self) -> Result<&[(i32, Offset)], LogError> {
        Ok(self.epochs()?.entries())
    }

    fn must_take_appends(&mut self) -> Result<(), LogError> {
        let path = self.dir.clone();
        if self.access == Access::Reader {
            return Err(LogError::ReadOnly { path });
        }
        if self.latched {
            return Err(LogError::Latched { path });
        }
        if let Some(damage) = self.mark_damage {
            return Err(LogError::MarkDamaged { path, damage });
        }
        match self.tail_bytes() {
            0 => self.remove_empty_tail(),
            tail_bytes => Err(LogError::TailNotSettled { path, tail_bytes }),
        }
    }

    fn write(&mut self, batches: &Batches, next: Offset) -> Result<Option<Offset>, LogError> {
        let rolled = if self.is_room_for(batches, next) { None } else { self.roll()? };
        let (path, position_bytes) = (self.dir.clone(), self.end_bytes);
        let active = self.active()?;
        let segment = active.segment.clone();
        segment
            .log
            .write_all_at(batches.bytes(), position_bytes)
            .map_err(|source| LogError::Write { path, source })?;
        let mut indexes = segment.lock();
        for (at, header) in batches.headers() {
            active.add(&mut indexes, position_bytes + at as u64, &header);
        }
        if indexes.offsets.waiting() >= MAX_WAITING_ENTRIES {
            // An index is a hint: what cannot be written now waits on, and the append stands.
            let _ = indexes.flush();
        }
        if !self.active_is_dirty {
            self.dirty.push((segment.base, segment.log.clone()));
            self.active_is_dirty = true;
        }
        self.end = next;
        self.end_bytes += batches.size_bytes() as u64;
        Ok(rolled)
    }

    fn is_room_for(&self, batches: &Batches, next: Offset) -> bool {
        let segment_bytes = self.config.segment_bytes.min(MAX_SEGMENT_BYTES);
        let fits = self.end_bytes + batches.size_bytes() as u64 <= segment_bytes;
        self.end_bytes == 0 || (fits && next.since(self.active_base()) <= MAX_SEGMENT_BYTES)
    }

    /// The active segment, opened if it was not.
    fn active(&mut self) -> Result<&mut Active, LogError> {
        if self.active.is_none() {
            let base = self.active_base();
            self.drop_opened(base);
            self.active = Some(self.open_for_append(base, self.end_bytes, self.end)?);
        }
        Ok(self.active.as_mut().expect("opened just now"))
    }

    /// Opens a segment that is written to up to `end_bytes`, and brings its indexes up to there.
    ///
    /// Entries that are wrong or above the end are dropped, and those that a crash took are made again.
    pub(super) fn open_for_append(
        &self,
        base: Offset,
        end_bytes: u64,
        end: Offset,
    ) -> Result<Active, LogError> {
        let path = segment::path(&self.dir, base, segment::LOG);
        let io = || LogError::io("open", &path);
        let log = self.disk.open(&path, OpenHow::Write).map_err(io())?;
        let indexes = match Indexes::open(&*self.disk, &self.dir, base, OpenHow::Write).map_err(io())? {
            Some(indexes) => indexes,
            None => Indexes::open(&*self.disk, &self.dir, base, OpenHow::CreateOrTruncate)
                .map_err(io())?
                .expect("both files were made just now"),
        };
        let whole = Stretch { file: log.clone(), position_bytes: 0, end_bytes, base, next: end };
        let segment = Arc::new(OpenSegment { base, log, indexes: Mutex::new(indexes) });
        let rule = IndexRule::new(self.config.index_interval_bytes);
        let mut active = Active { segment: segment.clone(), rule };
        active.catch_up(&View { segment, whole }).map_err(LogError::io("index", &path))?;
        Ok(active)
    }

    fn finish_indexes(&mut self) -> Result<(), LogError> {
        let path = segment::path(&self.dir, self.active_base(), segment::INDEX);
        let active = self.active()?;
        active.finish().map_err(LogError::io("write", &path))
    }

    fn cut_back(&mut self, segment_base: Offset, position_bytes: u64) -> Result<Arc<dyn DiskFile>, LogError> {
        while self.active_base() > segment_base {
            segment::remove(&*self.disk, &self.dir, self.active_base())?;
            self.segments.pop();
            self.dir_is_dirty = true;
        }
        assert_eq!(self.active_base(), segment_base, "a savepoint names a segment of the log");
        let path = segment::path(&self.dir, segment_base, segment::LOG);
        let io = || LogError::io("cut", &path);
        let file = self.disk.open(&path, OpenHow::Write).map_err(io())?;
        if file.len().map_err(io())? > position_bytes {
            file.set_len(position_bytes).map_err(io())?;
        }
        Ok(file)
    }

    fn begin_epoch(&mut self, epoch: i32, start: Offset) -> Result<(), LogError> {
        let epochs = self.epochs()?;
        if epochs.last() == Some(epoch) {
            return Ok(());
        }
        let mut epochs = epochs.clone();
        epochs.begin(epoch, start);
        epochs.save(&*self.disk, &self.dir)?;
        self.epochs = epochs.into();
        Ok(())
    }

    /// The leader epochs; made from the batches if the checkpoint is lost.
    pub(super) fn epochs(&self) -> Result<&Epochs, LogError> {
        if let Some(epochs) = self.epochs.get() {
            return Ok(epochs);
        }
        let mut epochs = match Epochs::load(&*self.disk, &self.dir)? {
            Some(epochs) => epochs,
            None => self.epochs_from_batches()?,
        };
        if self.tail_bytes() == 0 {
            epochs.cut(self.end);
        }
        Ok(self.epochs.get_or_init(|| epochs))
    }

    fn epochs_from_batches(&self) -> Result<Epochs, LogError> {
        let mut epochs = Epochs::default();
        self.for_each_batch(&mut |header: &BatchHeader| {
            let epoch = header.partition_leader_epoch;
            if epochs.last().is_none_or(|last| last < epoch) {
                epochs.begin(epoch, header.base_offset);
            }
        })?;
        Ok(epochs)
    }

    fn as_write_error(&self, error: LogError) -> LogError {
        match error {
            LogError::Io { source, path, .. } => LogError::Write { path, source },
            other => other,
        }
    }
}

impl Active {
    /// Takes a batch that was written, or found, at this place.
    pub fn add(&mut self, indexes: &mut Indexes, position_bytes: u64, header: &BatchHeader) {
        if let Some(batch) = self.segment.indexed(position_bytes, header) {
            self.rule.add(batch, &mut indexes.offsets, &mut indexes.times);
        }
    }

    /// Nothing more will be appended, or not soon.
    pub fn finish(&mut self) -> io::Result<()> {
        let mut indexes = self.segment.lock();
        self.rule.push_time(&mut indexes.times);
        indexes.flush()
    }

    /// Brings the indexes up to the end of the segment.
    fn catch_up(&mut self, view: &View) -> io::Result<()> {
        let mut indexes = view.segment.lock();
        let valid = indexes.cut_to_valid(view)?;
        self.rule.resume(valid.last_time);
        let mut rest = view.whole.clone();
        if let Some((position_bytes, base)) = valid.walk_from {
            rest = Stretch { position_bytes, base, ..rest };
        }
        self.add_all(&mut indexes, rest, valid.last_entry_bytes)
    }

    /// Walks batches; those below the last entry that is in the index only count for the greatest timestamp.
    fn add_all(
        &mut self,
        indexes: &mut Indexes,
        stretch: Stretch,
        last_entry: Option<u64>,
    ) -> io::Result<()> {
        let mut scan = Scan::new(stretch, Check::Headers);
        while let Some(step) = scan.step()? {
            let Step::Batch { position_bytes, header } = step else { continue };
            match self.segment.indexed(position_bytes, &header) {
                Some(batch) if last_entry.is_some_and(|last| position_bytes <= last) => {
                    self.rule.entry_is_there(batch);
                }
                Some(batch) => self.rule.add(batch, &mut indexes.offsets, &mut indexes.times),
                None => {}
            }
        }
        Ok(())
    }
}
