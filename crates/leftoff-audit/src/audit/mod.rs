//! One audit from the evidence to the verdict.

use std::io;
use std::path::PathBuf;

use crate::input::{Evidence, PartitionFacts, SourceError};
use crate::verdict::Verdict;

/// What is to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The topic's name, for the names of events without an id.
    pub topic: &'a str,
    /// Its partitions, in any order.
    pub partitions: &'a [PartitionFacts],
}

/// How much an audit may hold.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes that each of its sorted sets holds in memory before it goes to a temporary file. There are at most eight
    /// such sets at a time.
    pub sort_bytes: usize,
    /// Folder for temporary files; the system's by default.
    pub temp_dir: Option<PathBuf>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { sort_bytes: 4 << 20, temp_dir: None }
    }
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A source could not be read.
    #[error("cannot read the {what}")]
    Source {
        /// `log`, `effects` or `outcomes`.
        what: &'static str,
        /// The source's own error.
        #[source]
        error: SourceError,
    },
    /// The temporary files failed.
    #[error("cannot sort in temporary files")]
    Temporary(#[from] io::Error),
    /// The log has an entry of a partition that the question does not know.
    #[error("the log has partition {0}, of which nothing else is known")]
    UnknownPartition(u32),
    /// A partition is described twice or its numbers contradict each other.
    #[error("the facts of partition {0} contradict each other")]
    Facts(u32),
    /// The log gave the same place twice.
    #[error("the log gave partition {partition} offset {offset} twice")]
    PlaceTwice {
        /// The partition.
        partition: u32,
        /// The offset.
        offset: i64,
    },
    /// A source gave something else at its second pass.
    #[error("the {0} changed between two passes")]
    Changed(&'static str),
}

/// Judges the log by the effects.
///
/// # Errors
/// When a source or a temporary file cannot be read, or the log contradicts the question.
pub fn audit(
    _question: &Question<'_>,
    _limits: &Limits,
    _evidence: &mut dyn Evidence,
) -> Result<Verdict, AuditError> {
    todo!("lands within the hour")
}
