//! Where outcomes go, and who holds the offset that counts.
//!
//! A sink with *authority* keeps the offset beside the outputs, moved in one step with them. Where it says to go on is
//! where the runner goes on; the group's offset is then a mirror that is never ahead of it. A sink without authority leaves
//! that to the group, and its outputs may be there twice after a crash.

use std::collections::BTreeMap;
use std::fmt;

use leftoff_wire::{Committed, Offset};

use crate::handler::Record;
use crate::source::{Event, PartitionId};

mod dead;
pub mod file;
mod line;
mod mark;
mod outcomes;
#[cfg(feature = "postgres")]
pub mod postgres;
mod postgres_url;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod stdout;

pub use dead::{DeadState, Letter};
pub use file::FileSink;
pub use line::ID_KEY;
pub use mark::{LastEvent, Mark, fingerprint};
pub use outcomes::{OutcomeRange, again_ranges, outcome_lines, outcome_ranges, skipped_ranges};
#[cfg(feature = "postgres")]
pub use postgres::PostgresSink;
pub use postgres_url::{PostgresUrl, SslMode};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteSink;
pub use stdout::StdoutSink;

/// A partition to claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimPartition {
    /// Which one.
    pub id: PartitionId,
    /// Its topic's name, for messages.
    pub topic: String,
}

/// What a claim found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// True if this sink's offset is the one that counts.
    pub authority: bool,
    /// For each partition claimed: where to go on; `None` if the sink has never held anything for it.
    pub next: BTreeMap<PartitionId, Option<Committed>>,
    /// What it keeps of them beside that, where it keeps something.
    pub marks: BTreeMap<PartitionId, Mark>,
    /// What a person should know: a torn tail that was cut, a slot that was damaged.
    pub notices: Vec<String>,
}

/// What came of one event.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Which partition.
    pub id: PartitionId,
    /// The event's offset.
    pub offset: Offset,
    /// What tells it from others wherever it is in the log, if that is asked for ([`Sink::has_taken`]).
    pub event_id: Option<Vec<u8>>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an event that is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Handled; these records are its output.
    Handled {
        /// In order; may be empty.
        records: Vec<Record>,
    },
    /// Left out on purpose.
    Filtered,
    /// Not given to the handler: the sink has the outcome of another event with the same id.
    Absorbed,
    /// Not handled, and passed by: a decision of the policy for failed events.
    Skipped(GaveUp),
    /// The same, but the event is kept as a dead letter.
    Dead(Box<DeadLetter>),
}

/// How an event was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GaveUp {
    /// How often it was tried, earlier runs included.
    pub attempts: u32,
    /// Why the last attempt failed, shortened, on one line.
    pub why: String,
}

/// An event that was given up, whole, so that it can be looked at and handled later whatever becomes of its topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// How it was given up.
    pub gave_up: GaveUp,
    /// The group that gave it up.
    pub group: String,
    /// Its topic's name.
    pub topic: String,
    /// Its partition, by its topic's id.
    pub id: PartitionId,
    /// The event.
    pub event: Event,
    /// When it was given up, milliseconds since 1970.
    pub at_ms: i64,
}

/// How far a partition moves in a [`Sink::write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which partition.
    pub id: PartitionId,
    /// Where the sink must stand now; `None` if it holds nothing for it. Anything else means that somebody else has written.
    pub expected: Option<Committed>,
    /// Where it stands afterwards. Behind all outputs of this partition in the same write.
    pub next: Committed,
    /// Leader epoch of the last event handled (KIP-320); -1 if unknown.
    pub leader_epoch: i32,
    /// The offsets that this move passes over by decision, from the first up to the second, which is not passed.
    pub skips: Option<(Offset, Offset)>,
    /// What the sink keeps of the partition from now on, if it has authority.
    pub mark: Mark,
}

impl Move {
    /// The offsets that a move back gives back, from the first up to the second, which is not; by decision of a person.
    pub fn gives_back(&self) -> Option<(Offset, Offset)> {
        let from = self.expected?.next();
        (self.next.next() < from).then(|| (self.next.next(), from))
    }
}

/// What is asserted of a runner before its outputs are made to count: each lies between where its partition stands and where
/// it is moved to.
///
/// # Panics
/// If not.
pub fn assert_moves_cover(outputs: &[Output], moves: &[Move]) {
    let mut behind: BTreeMap<PartitionId, (Option<Committed>, Committed)> =
        moves.iter().map(|m| (m.id, (m.expected, m.next))).collect();
    assert_eq!(behind.len(), moves.len(), "a partition is moved once");
    for Output { id, offset, .. } in outputs {
        let (at, next) = behind.get_mut(id).expect("the partition of an output is moved");
        assert!(at.is_none_or(|at| *offset >= at.next()), "{id}: offset {offset} is written again");
        assert!(*offset < next.next(), "{id}: offset {offset} lies above the move to {next}");
        *at = Some(Committed::after(*offset));
    }
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// All of it is durable: outputs, outcomes and offsets.
    Written,
    /// None of it: another runner has claimed a partition, or the sink does not stand where expected.
    Fenced {
        /// Which partition.
        id: PartitionId,
    },
}

/// A place for outcomes. Synchronous; called by one thread at a time, but not always the same: a write may go on while
/// events are handled.
pub trait Sink: Send {
    /// Takes these partitions over: from now on nobody who claimed them before can write them.
    ///
    /// # Errors
    /// [`SinkError::Refused`] if what the sink holds is damaged, lost or another group's; it is left as it is.
    fn claim(&mut self, partitions: &[ClaimPartition]) -> Result<Claimed, SinkError>;

    /// Says whether the sink can take this output. Asked right after the handler's answer, so that what it cannot take
    /// counts as a failure of that event.
    ///
    /// # Errors
    /// Why not.
    fn check(&self, output: &Output) -> Result<(), BadRecord> {
        let _ = output;
        Ok(())
    }

    /// Whether a write keeps dead letters in one step with the rest. If not, the source does, with the group's offset
    /// ([`Save::dead`](crate::source::Save::dead)).
    fn keeps_dead_letters(&self) -> bool {
        false
    }

    /// Whether an event with this id, at another place of the same topic, has its outcome in the sink, or checked for the next
    /// write: then this one was produced twice. Never, for a sink that keeps no ids.
    ///
    /// # Errors
    /// If the sink's storage failed.
    fn has_taken(&self, id: PartitionId, offset: Offset, event_id: &[u8]) -> Result<bool, SinkError> {
        let _ = (id, offset, event_id);
        Ok(false)
    }

    /// Writes outputs, in order, and moves the partitions: all or nothing. Outputs passed [`Sink::check`]; those of one
    /// partition rise in offset. A move without outputs is a decision, or passes holes.
    ///
    /// # Errors
    /// After an error nothing is known of this write until the partitions are claimed anew by a new sink.
    fn write(&mut self, outputs: &[Output], moves: &[Move]) -> Result<Written, SinkError>;

    /// The row of the matrix that tells what may be promised.
    fn row(&self) -> MatrixRow;

    /// Where it is, for messages: `file:alerts.ndjson`.
    fn place(&self) -> String;

    /// Done with it.
    ///
    /// # Errors
    /// If something written could not be completed.
    fn close(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

/// What may be promised of a sink, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixRow {
    /// The sink's kind.
    pub sink: &'static str,
    /// How it writes.
    pub how: &'static str,
    /// Who holds the offset that counts.
    pub authority: &'static str,
    /// The promise.
    pub promise: Promise,
    /// The promise in a sentence.
    pub meaning: &'static str,
    /// What can still go wrong.
    pub left_over: &'static str,
}

/// How often the effect of an event is in the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Never lost; after a crash some may be there twice.
    AtLeastOnce,
    /// Each once.
    ExactlyOnce,
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Promise::AtLeastOnce => "at least once",
            Promise::ExactlyOnce => "exactly once",
        })
    }
}

/// A record that a sink cannot take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {number} of the answer: {why}")]
pub struct BadRecord {
    /// Its number within the event, from 0.
    pub number: usize,
    /// Why not.
    pub why: String,
}

/// Why a sink cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// It does not do what is asked, for safety: the text names the file and what to do. Nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// It cannot be reached, or went away and stayed away. Nothing is lost; the text says what is known.
    #[error("{0}")]
    Unreachable(String),
    /// Its storage failed.
    #[error("{what}: {error}")]
    Storage {
        /// What was done, with the file's name.
        what: String,
        /// What came back.
        #[source]
        error: std::io::Error,
    },
}
