//! One partition's log: segments of record batches in Kafka's format, and the offsets that bound them.
//!
//! ```text
//!            log start                     high watermark        end
//!               |                                |                |
//!   [ segment ] [ segment ] [ active segment …   |   not synced   ]
//! ```
//!
//! What lies below the *mark* was synced once: a bad batch there is damage, and is kept and reported. What lies above
//! it at a start is a tail that a crash may have torn: it is walked, settled and synced before anybody reads it. Nobody
//! reads above the high watermark, which is the mark of the last finished round.
//!
//! A log never reads a clock and never syncs on its own but where a method says so; the broker collects what is dirty
//! ([`Log::take_dirty`]), has it synced, and then moves the high watermark ([`Log::publish`]).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use leftoff_wire::record_batch::{BatchHeader, Batches};
use leftoff_wire::{Offset, Uuid};

use crate::disk::{Disk, DiskFile};

mod error;

pub use error::{Damaged, LogError, MarkDamage};

/// The synced end of a log: everything below is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Base offset of the segment in which the end lies.
    pub segment_base: Offset,
    /// The next offset: everything below it is synced.
    pub end: Offset,
    /// The end in the file of that segment.
    pub position_bytes: u64,
}

impl Mark {
    /// The mark of a log that was just created.
    pub const START: Mark = Mark { segment_base: Offset::ZERO, end: Offset::ZERO, position_bytes: 0 };
}

/// Settings of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogConfig {
    /// A segment is closed before an append would make it larger than this. At most `i32::MAX`; no least size.
    pub segment_bytes: u64,
    /// One index entry for each so many bytes of log.
    pub index_interval_bytes: u32,
}

impl Default for LogConfig {
    /// Kafka's defaults: 1 GiB, 4096 bytes.
    fn default() -> LogConfig {
        LogConfig { segment_bytes: 1 << 30, index_interval_bytes: 4096 }
    }
}

/// What a log is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads up to the mark, beside a writer of another process. Never writes, not even an index.
    Reader,
    /// The only writer.
    Writer,
}

/// One partition's log. One caller at a time changes it; reading needs `&self` only.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    topic_id: Uuid,
    config: LogConfig,
}

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
    mark: Mark,
}

/// What a sync must cover so that everything appended so far is on the disk.
#[derive(Debug, Default)]
pub struct Dirty {
    /// Files: segments, and indexes of segments that were closed.
    pub files: Vec<Arc<dyn DiskFile>>,
    /// Folders in which files were made.
    pub dirs: Vec<PathBuf>,
}

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
    /// Makes the folder of a partition with an empty first segment, and syncs all but the folder's own name.
    ///
    /// The parent folder is for the caller to sync. Fails with [`LogError::Io`] if the folder is already there.
    pub fn create(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        topic_id: Uuid,
        config: LogConfig,
    ) -> Result<Log, LogError> {
        todo!("{disk:?} {dir:?} {topic_id} {config:?}")
    }

    /// Opens a partition at its mark. Lists the folder and looks at one file's length; opens nothing yet.
    ///
    /// A marked segment that is missing or too short does not fail the opening: see [`Log::mark_damage`].
    pub fn open(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        topic_id: Uuid,
        config: LogConfig,
        mark: Mark,
        log_start: Offset,
        access: Access,
    ) -> Result<Log, LogError> {
        todo!("{disk:?} {dir:?} {topic_id} {config:?} {mark:?} {log_start} {access:?}")
    }

    /// The damage at the mark that was found at opening; appends are refused then.
    pub fn mark_damage(&self) -> Option<MarkDamage> {
        todo!()
    }

    /// The partition's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The id of the partition's topic.
    pub fn topic_id(&self) -> Uuid {
        self.topic_id
    }

    /// Settings from here on.
    pub fn set_config(&mut self, config: LogConfig) {
        self.config = config;
    }

    /// Bytes above the mark; 0: there is nothing to recover. Always 0 for a reader.
    pub fn tail_bytes(&self) -> u64 {
        todo!()
    }

    /// Walks the batches above the mark, up to the first that is not valid or does not follow the one before.
    pub fn read_tail(&self, visit: &mut dyn FnMut(TailBatch<'_>)) -> Result<TailEnd, LogError> {
        let _ = visit;
        todo!()
    }

    /// Ends the log at `end` (the mark's end, or the end of a batch that [`Log::read_tail`] showed), and syncs.
    ///
    /// Everything behind is cut. What is kept above the mark is written again in place before it is synced, since
    /// after a failed sync the page cache can show what the disk lacks. Afterwards `end` is the high watermark.
    pub fn settle_tail(&mut self, end: Offset) -> Result<Settled, LogError> {
        todo!("{end}")
    }

    /// Gives the batches their offsets and writes them.
    ///
    /// # Errors
    /// [`LogError::Write`]: nothing was appended and the log is as before. [`LogError::Latched`]: it takes no more.
    pub fn append(&mut self, batches: Batches, leader_epoch: i32) -> Result<Appended, LogError> {
        let _ = (batches, leader_epoch);
        todo!()
    }

    /// Closes the active segment if there is anything in it, and returns its base offset.
    pub fn roll(&mut self) -> Result<Option<Offset>, LogError> {
        todo!()
    }

    /// Where the log ends now, to come back to. Good until the next [`Log::take_dirty`].
    pub fn savepoint(&self) -> Savepoint {
        todo!()
    }

    /// Cuts what was appended since the savepoint.
    ///
    /// # Errors
    /// [`LogError::Latched`] if that fails.
    pub fn undo_to(&mut self, savepoint: Savepoint) -> Result<(), LogError> {
        todo!("{savepoint:?}")
    }

    /// What a sync must cover so that [`Log::end_mark`] holds; the list starts anew.
    pub fn take_dirty(&mut self) -> Dirty {
        todo!()
    }

    /// The offset that the next record gets.
    pub fn end(&self) -> Offset {
        todo!()
    }

    /// The mark that holds when everything appended so far is synced.
    pub fn end_mark(&self) -> Mark {
        todo!()
    }

    /// Moves the high watermark up to a mark that is now synced.
    ///
    /// # Panics
    /// If it would fall, or pass the end.
    pub fn publish(&mut self, mark: Mark) {
        todo!("{mark:?}")
    }

    /// The offset behind the last record that may be read: the synced end.
    pub fn high_watermark(&self) -> Offset {
        todo!()
    }

    /// The first offset that may be read; it can lie within a batch.
    pub fn log_start(&self) -> Offset {
        todo!()
    }

    /// Bytes of all segments, without indexes.
    pub fn bytes(&self) -> Result<u64, LogError> {
        todo!()
    }

    /// Moves the log start up. Lower values are ignored.
    ///
    /// # Panics
    /// Above the high watermark.
    pub fn advance_log_start(&mut self, offset: Offset) {
        todo!("{offset}")
    }

    /// Where the batches from the one that contains `offset` on lie, up to about `max_bytes`.
    ///
    /// The first batch is whole whatever its size (KIP-74); nothing is above the high watermark. At the high
    /// watermark the answer is empty.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`]; [`LogError::Damaged`] where `offset` lies in damage that shows without a checksum.
    pub fn fetch(&self, offset: Offset, max_bytes: u64) -> Result<Fetched, LogError> {
        todo!("{offset} {max_bytes}")
    }

    /// The first offset whose timestamp is at or after `timestamp_ms`, and that timestamp.
    pub fn offset_for_time(&self, timestamp_ms: i64) -> Result<Option<(Offset, i64)>, LogError> {
        todo!("{timestamp_ms}")
    }

    /// The record with the greatest timestamp, the first of them: its offset and timestamp (KIP-734).
    pub fn max_timestamp(&self) -> Result<Option<(Offset, i64)>, LogError> {
        todo!()
    }

    /// The segments, in order.
    pub fn segments(&self) -> Result<Vec<SegmentInfo>, LogError> {
        todo!()
    }

    /// Takes the closed segments that lie wholly below the log start out of the log.
    ///
    /// Their files are unlinked later, after the marks file was synced. Readers that have one open can go on.
    pub fn take_removable(&mut self) -> Vec<RemovedSegment> {
        todo!()
    }

    /// Writes the index entries that wait to their files: a clean stop.
    pub fn close(&mut self) -> Result<(), LogError> {
        todo!()
    }

    /// Looks at every byte below the high watermark, and at the indexes, and tells what is wrong.
    pub fn verify(&self, visit: &mut dyn FnMut(Finding)) -> Result<Verified, LogError> {
        let _ = visit;
        todo!()
    }

    /// Takes what a finding is about out of the way: damaged bytes are copied to a file in `aside_dir`, synced, and
    /// the segment is rewritten without them, so that readers see a gap. Offsets stay. Wrong indexes are made anew.
    ///
    /// `None`: there is nothing to be done about this kind of finding.
    ///
    /// # Errors
    /// [`LogError::NotClosed`] for the segment in which the mark lies: [`Log::roll`], sync and [`Log::publish`], and
    /// save the mark, before.
    pub fn set_aside(&mut self, finding: &Finding, aside_dir: &Path) -> Result<Option<PathBuf>, LogError> {
        todo!("{finding:?} {aside_dir:?}")
    }

    /// Reads checked batches one by one, from the one that contains `from`, up to the high watermark.
    pub fn read_batches(&self, from: Offset) -> BatchReader<'_> {
        let _ = from;
        todo!()
    }
}

/// What [`Log::verify`] looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verified {
    /// Segments.
    pub segments: u64,
    /// Good batches.
    pub batches: u64,
    /// Bytes of segments, good or not.
    pub bytes: u64,
    /// How many findings were reported.
    pub findings: u64,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// Base offset of the segment.
    pub segment: Offset,
    /// Where in the file (the segment's or the index's) it begins.
    pub position_bytes: u64,
    /// How many bytes it takes.
    pub len_bytes: u64,
    /// The first offset it is about.
    pub from: Offset,
    /// The offset behind the last one it is about.
    pub to: Offset,
}

/// The kinds of [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// Bytes of the segment that are no valid batch.
    Damage,
    /// The segment ends before the offset, or the mark, up to which it was synced.
    Short,
    /// Offsets that no batch holds.
    Hole,
    /// A batch with a lower leader epoch than one before it.
    EpochFell,
    /// The offset index is missing or has an entry that names no batch.
    OffsetIndex,
    /// The time index is missing or has an entry that names no batch.
    TimeIndex,
}

impl RemovedSegment {
    /// Removes the segment's files. The folder is for the caller to sync.
    pub fn unlink(&self, disk: &Arc<dyn Disk>) -> Result<(), LogError> {
        todo!("{disk:?}")
    }
}

/// Reads a log batch by batch, each checked, with the memory of one batch. Damage is reported and passed.
#[derive(Debug)]
pub struct BatchReader<'a> {
    log: &'a Log,
}

/// One step of a [`BatchReader`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadBatch {
    /// A whole batch whose checksum holds.
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

impl Iterator for BatchReader<'_> {
    type Item = Result<ReadBatch, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        let _ = self.log;
        todo!()
    }
}
