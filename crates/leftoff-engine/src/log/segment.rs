//! One segment: its three files, and what is known of it without opening them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use leftoff_wire::Offset;
use leftoff_wire::record_batch::BatchHeader;

use super::LogError;
use super::index::{Index, Indexed, OffsetEntry, TimeEntry};
use super::window::Window;
use crate::disk::{Disk, DiskFile, OpenHow};

/// The kinds of file that a segment has.
pub(super) const LOG: &str = "log";
pub(super) const INDEX: &str = "index";
pub(super) const TIME_INDEX: &str = "timeindex";

/// The path of one of a segment's files.
pub(super) fn path(dir: &Path, base: Offset, kind: &str) -> PathBuf {
    dir.join(format!("{:020}.{kind}", base.get()))
}

/// The base offset in the name of a segment file.
pub(super) fn base_of(name: &str) -> Option<Offset> {
    let digits = name.strip_suffix(".log")?;
    let all_digits = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| digits.parse().ok().and_then(Offset::new)).flatten()
}

/// A segment in the list of a log.
#[derive(Debug)]
pub(super) struct Segment {
    pub base: Offset,
    /// Its size once it is closed and somebody asked.
    pub bytes: OnceLock<u64>,
    /// Its greatest timestamp once it is closed and somebody looked.
    pub max_timestamp_ms: OnceLock<i64>,
}

impl Segment {
    pub fn new(base: Offset) -> Segment {
        Segment { base, bytes: OnceLock::new(), max_timestamp_ms: OnceLock::new() }
    }
}

/// A segment whose files are open.
#[derive(Debug)]
pub(super) struct OpenSegment {
    pub base: Offset,
    pub log: Arc<dyn DiskFile>,
    pub indexes: Mutex<Indexes>,
}

/// Both indexes of a segment.
#[derive(Debug)]
pub(super) struct Indexes {
    pub offsets: Index<OffsetEntry>,
    pub times: Index<TimeEntry>,
    pub origin: Origin,
}

/// Where the indexes of an open segment come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// From their files.
    Files,
    /// A file is missing; there are no entries yet.
    Missing,
    /// From the log, since the segment was opened.
    Rebuilt,
}

impl OpenSegment {
    pub fn lock(&self) -> MutexGuard<'_, Indexes> {
        self.indexes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last offset of a batch, less the base, and its place; `None` if that does not fit the index.
    pub fn indexed(&self, position_bytes: u64, header: &BatchHeader) -> Option<Indexed> {
        indexed(self.base, position_bytes, header)
    }

    /// The header of the batch that an entry names, if the entry is right.
    pub fn batch_of(&self, entry: OffsetEntry, end_bytes: u64) -> io::Result<Option<BatchHeader>> {
        let mut window = Window::new(self.log.clone(), end_bytes);
        let header = window.header(u64::from(entry.position_bytes))?;
        Ok(header.filter(|header| header.last_offset() == self.offset(entry.relative_offset)))
    }

    /// The offset that an index entry means.
    pub fn offset(&self, relative_offset: u32) -> Offset {
        self.base.plus(u64::from(relative_offset))
    }
}

impl Indexes {
    pub fn in_memory(origin: Origin) -> Indexes {
        Indexes { offsets: Index::in_memory(), times: Index::in_memory(), origin }
    }

    /// The index files of a segment; `None` if one is missing.
    pub fn open(disk: &dyn Disk, dir: &Path, base: Offset, how: OpenHow) -> io::Result<Option<Indexes>> {
        let open = |kind| match disk.open(&path(dir, base, kind), how) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let (Some(offsets), Some(times)) = (open(INDEX)?, open(TIME_INDEX)?) else { return Ok(None) };
        Ok(Some(Indexes {
            offsets: Index::on_file(offsets)?,
            times: Index::on_file(times)?,
            origin: if how == OpenHow::CreateOrTruncate { Origin::Rebuilt } else { Origin::Files },
        }))
    }

    /// Writes what waits. Times come first: an offset entry then says that the times up to it are written, too.
    pub fn flush(&mut self) -> io::Result<()> {
        self.times.flush()?;
        self.offsets.flush()
    }

    /// The two files.
    pub fn files(&self) -> impl Iterator<Item = Arc<dyn DiskFile>> + '_ {
        self.offsets.file().into_iter().chain(self.times.file()).cloned()
    }
}

/// What an index keeps of a batch; `None` if the offset does not fit into 32 bits.
pub(super) fn indexed(base: Offset, position_bytes: u64, header: &BatchHeader) -> Option<Indexed> {
    Some(Indexed {
        relative_offset: u32::try_from(header.last_offset().since(base)).ok()?,
        position_bytes: u32::try_from(position_bytes).ok()?,
        size_bytes: header.size_bytes() as u64,
        max_timestamp_ms: header.max_timestamp,
    })
}

/// Makes the files of a new segment. If that fails, those that were made are removed again.
pub(super) fn create(disk: &dyn Disk, dir: &Path, base: Offset) -> Result<OpenSegment, LogError> {
    let log_path = path(dir, base, LOG);
    let log = disk.open(&log_path, OpenHow::CreateNew).map_err(LogError::io("create", &log_path))?;
    // Index files of a segment that was taken back can be left over; the log file decides.
    let indexes = Indexes::open(disk, dir, base, OpenHow::CreateOrTruncate);
    match indexes {
        Ok(Some(indexes)) => Ok(OpenSegment { base, log, indexes: Mutex::new(indexes) }),
        failed => {
            let source = failed.err().unwrap_or_else(|| io::ErrorKind::NotFound.into());
            remove(disk, dir, base)?;
            Err(LogError::Io { action: "create the indexes of", path: log_path, source })
        }
    }
}

/// Removes the files of a segment, the log last, so that what is left after a failure is still recognised.
pub(super) fn remove(disk: &dyn Disk, dir: &Path, base: Offset) -> Result<(), LogError> {
    for kind in [TIME_INDEX, INDEX, LOG] {
        let path = path(dir, base, kind);
        match disk.remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(LogError::Io { action: "remove", path, source });
            }
            Ok(()) | Err(_) => {} // Absent is what was asked for.
        }
    }
    Ok(())
}
