//! A consistent cut of a directory, copied while its writer goes on.
//!
//! The marks of one moment say where each log ended in one and the same round; up to there nothing changes any more. So
//! the copy needs no lock: it reads those bytes, and makes a directory whose marks are exactly those ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::broker::directory::{self, DirectoryError, Found};
use crate::broker::marks::{Marks, MarksError};
use crate::broker::recovery::OpenError;
use crate::broker::{MARKS_FILE, RESERVE_FILE, View, make_reserve};
use crate::disk::{Disk, OpenHow};
use crate::log::{Log, LogError, Mark};

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackedUp {
    /// Topics.
    pub topics: usize,
    /// Partitions of them.
    pub partitions: usize,
    /// Bytes of segments.
    pub bytes: u64,
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The source cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The target is not an empty or new directory.
    #[error("the target of a backup must be new or empty: {0}")]
    Target(#[from] DirectoryError),
    /// The target has a backup or a directory in it already.
    #[error("the target of a backup must be new or empty, and it is a Leftoff directory")]
    TargetInUse,
    /// The source's writer died while it wrote its marks: where one moment ended is only known after a recovery.
    #[error(
        "the writer of this directory died in the middle of a round; open it once (any verb that writes does) and try again"
    )]
    NotOfOneMoment,
    /// A log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The target's marks failed.
    #[error(transparent)]
    Marks(#[from] MarksError),
    /// The disk failed.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Copies `from` into the empty directory `to`; `copied` hears of bytes as they are copied.
///
/// # Errors
/// [`BackupError`]; what was begun in the target is not a Leftoff directory until the last step.
pub fn backup(
    from: &Arc<dyn Disk>,
    to: &Arc<dyn Disk>,
    copied: &mut dyn FnMut(u64),
) -> Result<BackedUp, BackupError> {
    if directory::inspect(to)? != Found::Empty {
        return Err(BackupError::TargetInUse);
    }
    let view = View::open(from)?;
    if !view.is_of_one_moment() {
        return Err(BackupError::NotOfOneMoment);
    }
    let state = view.state();
    let mut marks = Marks::create(to)?;
    let mut ends = Vec::new();
    let mut bytes = 0;
    for (partition, log) in &state.logs {
        bytes += copy_log(from, to, log, copied)?;
        ends.push((*partition, log.end_mark()));
    }
    marks.add(&ends).and_then(|()| marks.sync_added()).map_err(io(Path::new(MARKS_FILE)))?;
    make_reserve(to).map_err(io(Path::new(RESERVE_FILE)))?;
    to.sync_dir(Path::new("")).map_err(io(Path::new("")))?;
    directory::write_meta(to, state.cluster_id())?;
    let partitions = state.topics().map(|topic| usize::try_from(topic.partitions).unwrap_or_default()).sum();
    Ok(BackedUp { topics: state.topics().count(), partitions, bytes })
}

/// Copies one partition's folder up to its mark. Indexes are rebuilt from the log when they are first needed.
fn copy_log(
    from: &Arc<dyn Disk>,
    to: &Arc<dyn Disk>,
    log: &Log,
    copied: &mut dyn FnMut(u64),
) -> Result<u64, BackupError> {
    let dir = log.dir();
    to.create_dir(dir).map_err(io(dir))?;
    let Mark { segment_base, position_bytes, .. } = log.end_mark();
    let mut bytes = 0;
    for segment in log.segments()? {
        let limit = if segment.base == segment_base { position_bytes } else { segment.bytes };
        bytes += copy_file(from, to, &dir.join(format!("{:020}.log", segment.base.get())), limit, copied)?;
    }
    for name in ["partition.metadata", "leader-epoch-checkpoint"] {
        let path = dir.join(name);
        if let Some(meta) = from.metadata(&path).map_err(io(&path))? {
            copy_file(from, to, &path, meta.len_bytes, copied)?;
        }
    }
    to.sync_dir(dir).map_err(io(dir))?;
    Ok(bytes)
}

fn copy_file(
    from: &Arc<dyn Disk>,
    to: &Arc<dyn Disk>,
    path: &Path,
    len: u64,
    copied: &mut dyn FnMut(u64),
) -> Result<u64, BackupError> {
    const BUFFER_BYTES: usize = 1024 * 1024;
    let source = from.open(path, OpenHow::Read).map_err(io(path))?;
    let target = to.open(path, OpenHow::CreateNew).map_err(io(path))?;
    let mut buffer = vec![0u8; BUFFER_BYTES.min(usize::try_from(len).unwrap_or(BUFFER_BYTES)).max(1)];
    let mut position = 0;
    while position < len {
        let want = buffer.len().min(usize::try_from(len - position).unwrap_or(usize::MAX));
        let got = source.read_at(&mut buffer[..want], position).map_err(io(path))?;
        if got == 0 {
            let short = std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                "shorter than its mark; run `leftoff doctor`",
            );
            return Err(io(path)(short));
        }
        target.write_all_at(&buffer[..got], position).map_err(io(path))?;
        position += got as u64;
        copied(got as u64);
    }
    target.sync_data().map_err(io(path))?;
    Ok(len)
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Io { path, source }
}
