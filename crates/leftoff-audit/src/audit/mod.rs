//! One audit from the evidence to the verdict: gather, join by identity, walk by place, judge the order, name.

use std::io;
use std::path::PathBuf;

use crate::input::{Evidence, PartitionFacts, SourceError};
use crate::sort::{Record, Sorter};
use crate::verdict::{AheadOfEnd, Verdict};

mod by_id;
mod gather;
mod names;
mod order;
mod parts;
mod records;
mod tally;
mod walk;

use parts::Parts;
use records::IdHasher;

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
    /// Bytes that each of its sorted sets holds in memory before it goes to a temporary file; a set that is read
    /// takes as much once more (at least 4 KiB for each of at most 256 runs). At most six sets are in use at a time.
    pub sort_bytes: usize,
    /// Folder for temporary files; the system's by default.
    pub temp_dir: Option<PathBuf>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { sort_bytes: 4 << 20, temp_dir: None }
    }
}

impl Limits {
    fn sorter<T: Record>(&self) -> Sorter<'_, T> {
        Sorter::new(self.sort_bytes, self.temp_dir.as_deref())
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
    /// A source gave fewer items at its second pass.
    #[error("the {0} changed between two passes")]
    Changed(&'static str),
}

impl AuditError {
    fn source(what: &'static str) -> impl Fn(SourceError) -> AuditError {
        move |error| AuditError::Source { what, error }
    }
}

/// Judges the log by the effects, by the rules of the [crate].
///
/// # Errors
/// When a source or a temporary file cannot be read, or the log contradicts the question.
pub fn audit(
    question: &Question<'_>,
    limits: &Limits,
    evidence: &mut dyn Evidence,
) -> Result<Verdict, AuditError> {
    let parts = Parts::new(question)?;
    let hasher = IdHasher::new();
    let mut verdict = Verdict { topic: question.topic.to_owned(), ..Verdict::default() };
    verdict.ahead_of_end = ahead_of_end(&parts);
    let gathered = gather::gather(&parts, &hasher, limits, evidence, &mut verdict)?;
    let joined = by_id::join(&parts, &gathered, limits)?;
    let walked = walk::walk(&parts, gathered, joined, limits, &mut verdict)?;
    names::finish(walked, &parts, evidence, &mut verdict)?;
    Ok(verdict)
}

fn ahead_of_end(parts: &Parts<'_>) -> Vec<AheadOfEnd> {
    let ahead = parts.facts().iter().filter_map(|facts| {
        let saved_next = facts.saved_next.filter(|saved| *saved > facts.end)?;
        Some(AheadOfEnd { partition: facts.partition, saved_next, end: facts.end })
    });
    ahead.collect()
}
