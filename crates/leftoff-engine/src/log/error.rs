//! What can go wrong in a log, told so that the broker can answer and `doctor` can point at the place.

use std::io;
use std::path::{Path, PathBuf};

use leftoff_wire::{Offset, Run};

/// An error of one partition's log. Offsets are records' places, positions are bytes in a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The disk refused; nothing of the log has changed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// An append could not be written. The log was cut back and is as it was before; a later append may work.
    #[error("cannot write to {path}: {source}")]
    Write {
        /// The partition's folder.
        path: PathBuf,
        /// What the disk said; [`LogError::is_no_space`] knows a full disk.
        source: io::Error,
    },
    /// A sync that the log does itself failed (of the leader epochs, or in recovery). What it should have covered may
    /// be lost although it can be read, so nothing more is appended until the next start.
    #[error("cannot sync {path}: {source}")]
    Sync {
        /// The file or folder.
        path: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// A write failed and what it left could not be cut off. Nothing more is appended until the next start.
    #[error("{path} takes no more writes: a failed write could not be undone")]
    Latched {
        /// The partition's folder.
        path: PathBuf,
    },
    /// An append, roll or repair through a log that was opened for reading.
    #[error("{path} was opened for reading only")]
    ReadOnly {
        /// The partition's folder.
        path: PathBuf,
    },
    /// An append before [`settle_tail`](super::Log::settle_tail) had decided about the bytes above the mark.
    #[error("{path} has {tail_bytes} bytes above its mark that recovery has not settled")]
    TailNotSettled {
        /// The partition's folder.
        path: PathBuf,
        /// Bytes above the mark.
        tail_bytes: u64,
    },
    /// [`settle_tail`](super::Log::settle_tail) was asked to end where no batch ends.
    #[error("{path} has no batch above its mark that ends at {end}")]
    NoSuchEnd {
        /// The partition's folder.
        path: PathBuf,
        /// The end that was asked for.
        end: Offset,
    },
    /// Synced bytes are gone: the marked segment is missing or shorter than the mark says. What is there can be read.
    #[error("{path} is damaged: {damage}")]
    MarkDamaged {
        /// The partition's folder.
        path: PathBuf,
        /// What the mark promised and what was found.
        damage: MarkDamage,
    },
    /// The records asked for are damaged. Those from `to` on can be read.
    #[error("{path}: {damaged}")]
    Damaged {
        /// The partition's folder.
        path: PathBuf,
        /// Which records, and where they lie.
        damaged: Damaged,
    },
    /// Below the log start or above the high watermark.
    #[error("offset {offset} is outside {log_start}..={high_watermark} of {path}")]
    OutOfRange {
        /// The partition's folder.
        path: PathBuf,
        /// The offset asked for.
        offset: Offset,
        /// The first offset that can be read.
        log_start: Offset,
        /// The offset behind the last one that can be read.
        high_watermark: Offset,
    },
    /// The batches do not fit into a segment: positions in a file are 31 bits in Kafka's indexes.
    #[error("{bytes} bytes of batches exceed the {limit_bytes} bytes of a segment file")]
    TooLarge {
        /// The size of the append.
        bytes: u64,
        /// The most that a segment file can hold.
        limit_bytes: u64,
    },
    /// The segment is still written to, or the mark lies in it: roll, sync and publish first.
    #[error("segment {segment} of {path} is not closed")]
    NotClosed {
        /// The partition's folder.
        path: PathBuf,
        /// Base offset of the segment.
        segment: Offset,
    },
    /// A repair was asked for with a finding that is not true, or not any more: look again.
    #[error("segment {segment} of {path} has no such damage at position {position_bytes}")]
    NoSuchDamage {
        /// The partition's folder.
        path: PathBuf,
        /// Base offset of the segment.
        segment: Offset,
        /// Where the finding says the damage begins.
        position_bytes: u64,
    },
}

impl LogError {
    /// Whether the disk was full (or a quota was used up).
    pub fn is_no_space(&self) -> bool {
        match self {
            LogError::Io { source, .. } | LogError::Write { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            _ => false,
        }
    }

    /// Whether nothing more can be done until the next start: what is on the disk is not known any more.
    pub fn is_final(&self) -> bool {
        matches!(self, LogError::Sync { .. } | LogError::Latched { .. })
    }

    pub(super) fn sync(path: &Path) -> impl FnOnce(io::Error) -> LogError {
        move |source| LogError::Sync { path: path.to_owned(), source }
    }

    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
        move |source| LogError::Io { action, path: path.to_owned(), source }
    }
}

/// Records that cannot be read although they were once synced. They are kept, reported, and never renumbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("damage at {run} (segment {segment}, position {position_bytes}, {len_bytes} bytes)", run = Run::new(*from, *to))]
pub struct Damaged {
    /// The first offset that is lost.
    pub from: Offset,
    /// The offset with which the next good batch begins; all below it and not below `from` is lost.
    pub to: Offset,
    /// Base offset of the segment.
    pub segment: Offset,
    /// Where the damage begins in the segment file.
    pub position_bytes: u64,
    /// How many bytes of the file it takes; 0 where the bytes are missing altogether.
    pub len_bytes: u64,
}

/// The file that holds the synced end does not reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkDamage {
    /// Base offset of the segment in which the synced end lies.
    pub segment: Offset,
    /// How many bytes of it were synced.
    pub marked_bytes: u64,
    /// How many bytes there are; `None` if the file is gone.
    pub found_bytes: Option<u64>,
}

impl std::fmt::Display for MarkDamage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let MarkDamage { segment, marked_bytes, found_bytes } = self;
        match found_bytes {
            Some(found) => {
                write!(f, "segment {segment} has {found} bytes of {marked_bytes} that were synced")
            }
            None => write!(f, "segment {segment} with {marked_bytes} synced bytes is missing"),
        }
    }
}
