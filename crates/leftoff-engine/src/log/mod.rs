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

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use leftoff_wire::{Offset, Uuid};

use crate::disk::{Disk, DiskFile, OpenHow};

mod append;
mod epochs;
mod error;
mod fetch;
mod index;
mod lookup;
mod reader;
mod recovery;
mod repair;
mod retention;
mod scan;
mod segment;
mod time;
mod verify;
mod window;

#[cfg(test)]
mod tests;

pub use append::{Appended, Dirty, Savepoint};
pub use error::{Damaged, LogError, MarkDamage};
pub use fetch::{Fetched, FileRange};
pub use reader::{BatchReader, ReadBatch};
pub use recovery::{Settled, TailBatch, TailEnd};
pub use retention::{RemovedSegment, SegmentInfo};
pub use verify::{Finding, FindingKind, Verified};

use append::Active;
use epochs::Epochs;
use recovery::Tail;
use segment::{OpenSegment, Segment};

/// How many closed segments of one log stay open; the one opened first goes first.
const MAX_OPEN_CLOSED_SEGMENTS: usize = 4;
/// The most bytes in a segment file: positions in Kafka's indexes are 31 bits.
const MAX_SEGMENT_BYTES: u64 = i32::MAX as u64;

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
    access: Access,
    /// In order and never empty; the last one is the active one.
    segments: Vec<Segment>,
    /// The mark up to which may be read; its end is the high watermark.
    high: Mark,
    /// The offset of the next record, and its place in the active segment.
    end: Offset,
    end_bytes: u64,
    log_start: Offset,
    mark_damage: Option<MarkDamage>,
    tail: Tail,
    /// The active segment, once something was appended to it.
    active: Option<Active>,
    /// Segments that are open for reading.
    opened: Mutex<VecDeque<Arc<OpenSegment>>>,
    epochs: OnceLock<Epochs>,
    /// Files to sync, with the base offset of the segment they belong to.
    dirty: Vec<(Offset, Arc<dyn DiskFile>)>,
    /// Whether the active segment is among them.
    active_is_dirty: bool,
    dir_is_dirty: bool,
    latched: bool,
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
        disk.create_dir(dir).map_err(LogError::io("create", dir))?;
        let first = segment::create(&**disk, dir, Offset::ZERO)?;
        let mut files = vec![
            small_file(&**disk, &dir.join(epochs::CHECKPOINT), &Epochs::default().text())?,
            small_file(&**disk, &dir.join(METADATA), &metadata_text(topic_id))?,
        ];
        files.extend(first.lock().files());
        files.push(first.log);
        disk.sync(&files, &[dir.to_owned()]).map_err(LogError::sync(dir))?;
        Log::open(disk, dir, topic_id, config, Mark::START, Offset::ZERO, Access::Writer)
    }

    /// Opens a partition at its mark. Lists the folder and looks at the length of the marked segment and of those
    /// behind it; opens nothing yet.
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
        let entries = disk.list(dir).map_err(LogError::io("list", dir))?;
        let mut bases: Vec<_> = entries.iter().filter_map(|entry| segment::base_of(&entry.name)).collect();
        let later = bases.split_off(bases.partition_point(|base| *base <= mark.segment_base));
        if bases.last() != Some(&mark.segment_base) {
            bases.push(mark.segment_base);
        }
        let mut log = Log {
            disk: disk.clone(),
            dir: dir.to_owned(),
            topic_id,
            config,
            access,
            segments: bases.into_iter().map(Segment::new).collect(),
            high: mark,
            end: mark.end,
            end_bytes: mark.position_bytes,
            log_start,
            mark_damage: None,
            tail: Tail::default(),
            active: None,
            opened: Mutex::default(),
            epochs: OnceLock::new(),
            dirty: Vec::new(),
            active_is_dirty: false,
            dir_is_dirty: false,
            latched: false,
        };
        log.measure_tail(later)?;
        Ok(log)
    }

    /// The damage at the mark that was found at opening; appends are refused then.
    pub fn mark_damage(&self) -> Option<MarkDamage> {
        self.mark_damage
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

    /// The offset that the next record gets.
    pub fn end(&self) -> Offset {
        self.end
    }

    /// The mark that holds when everything appended so far is synced.
    pub fn end_mark(&self) -> Mark {
        let segment_base = self.active_base();
        Mark { segment_base, end: self.end, position_bytes: self.end_bytes }
    }

    /// Moves the high watermark up to a mark that is now synced.
    ///
    /// # Panics
    /// If it would fall, or pass the end.
    pub fn publish(&mut self, mark: Mark) {
        assert!(mark.end >= self.high.end, "the high watermark never falls");
        assert!(mark.segment_base >= self.high.segment_base, "marks move on through the segments");
        assert!(mark.end <= self.end, "what is synced was appended");
        self.high = mark;
    }

    /// The offset behind the last record that may be read: the synced end.
    pub fn high_watermark(&self) -> Offset {
        self.high.end
    }

    /// The mark whose end is the high watermark.
    pub fn high_mark(&self) -> Mark {
        self.high
    }

    /// The first offset that may be read; it can lie within a batch.
    pub fn log_start(&self) -> Offset {
        self.log_start
    }

    /// Moves the log start up. Lower values are ignored.
    ///
    /// # Panics
    /// Above the high watermark.
    pub fn advance_log_start(&mut self, offset: Offset) {
        assert!(offset <= self.high.end, "only what may be read can be deleted");
        self.log_start = self.log_start.max(offset);
    }

    fn active_base(&self) -> Offset {
        self.segments.last().expect("a log has an active segment").base
    }

    fn opened(&self) -> MutexGuard<'_, VecDeque<Arc<OpenSegment>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what is open of the segments from this one on.
    fn drop_opened(&mut self, from: Offset) {
        self.opened().retain(|segment| segment.base < from);
        if self.active.as_ref().is_some_and(|active| active.segment.base >= from) {
            self.active = None;
        }
    }
}

/// The file with the topic's id, in Kafka's text format.
const METADATA: &str = "partition.metadata";

fn metadata_text(topic_id: Uuid) -> String {
    format!("version: 0\ntopic_id: {topic_id}\n")
}

fn small_file(disk: &dyn Disk, path: &Path, text: &str) -> Result<Arc<dyn DiskFile>, LogError> {
    let file = disk.open(path, OpenHow::CreateNew).map_err(LogError::io("create", path))?;
    file.write_all_at(text.as_bytes(), 0).map_err(LogError::io("write", path))?;
    Ok(file)
}
