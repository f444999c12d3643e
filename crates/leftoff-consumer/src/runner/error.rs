//! Why a run ends before its time, in words that name the place and the way on.

use leftoff_wire::{Committed, Offset, Run};

use super::report::Report;
use crate::handler::HandlerError;
use crate::ledger::LedgerError;
use crate::sink::{BadRecord, SinkError};
use crate::source::{Event, GapReason, PartitionId, SourceError};

/// A run that ended with an error, and how far it came.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct RunFailure {
    /// What ended it.
    #[source]
    pub error: RunError,
    /// What it did; `partitions` says what is saved.
    pub report: Report,
}

/// What ended a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It would not start, or go on, for safety. Exit code 4.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The handler could not be started. Exit code 1.
    #[error("{0}")]
    HandlerStart(#[source] HandlerError),
    /// The handler broke the rules, or died, while it had nothing to do. Exit code 1.
    #[error("between two events, {0}")]
    HandlerIdle(#[source] HandlerError),
    /// An event was not handled. Everything before it is saved, nothing past it. Exit code 1.
    #[error("{0}")]
    HandlerFailed(Box<FailedEvent>),
    /// Another runner has taken a partition over in the sink. Exit code 4.
    #[error("{place}: another runner has taken over partition {id}; nothing was written")]
    Fenced {
        /// Which partition.
        id: PartitionId,
        /// Which sink.
        place: String,
    },
    /// The sink refused (exit code 4) or its storage failed (5).
    #[error("{0}")]
    Sink(#[from] SinkError),
    /// The source refused (4), cannot be reached (3), or its storage failed (5).
    #[error("{0}")]
    Source(#[from] SourceError),
    /// The source delivered what it must not. Exit code 5.
    #[error("the source is damaged: {0}")]
    BadSource(#[from] LedgerError),
}

impl RunError {
    /// The exit code that goes with it, as the command line documents them.
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::HandlerStart(_) | RunError::HandlerIdle(_) | RunError::HandlerFailed(_) => 1,
            RunError::Source(SourceError::Unreachable(_)) | RunError::Sink(SinkError::Unreachable(_)) => 3,
            RunError::Refused(_)
            | RunError::Fenced { .. }
            | RunError::Sink(SinkError::Refused(_))
            | RunError::Source(SourceError::Refused(_) | SourceError::Ended(_)) => 4,
            RunError::Sink(SinkError::Storage { .. })
            | RunError::Source(SourceError::Storage(_))
            | RunError::BadSource(_) => 5,
        }
    }
}

/// Why a run would not start, or go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The sink keeps the offset, holds none, and the group has worked before.
    #[error(
        "{place} holds nothing for {topic}/{partition}, yet the group has saved offset {in_group} (next to read) for it\n\
         either the state beside the output was lost, or this output is new to a group that has worked before\n\
         to go on: bring the lost files back, use a new group, or allow to start where the group says"
    )]
    LostState {
        /// The topic's name.
        topic: String,
        /// The partition.
        partition: i32,
        /// The sink.
        place: String,
        /// What the group has.
        in_group: Committed,
    },
    /// Offsets that were to be read are gone.
    #[error(
        "{topic}/{partition}: {run} cannot be read: {reason}\n\
         to skip them, and have that in the group's history: --on-gap earliest",
        run = Run::new(*from, *to)
    )]
    Gap {
        /// The topic's name.
        topic: String,
        /// The partition.
        partition: i32,
        /// The first that is gone.
        from: Offset,
        /// The first that can be read.
        to: Offset,
        /// Why.
        reason: GapReason,
    },
    /// The log has another event where the sink has passed one: it is another log, under the same name and id.
    #[error(
        "{place} has passed the event at offset {other} of {topic}/{partition}, and the log has another event there\n\
         the log was brought back from an older copy, and has taken other events since: what it has below offset {in_sink}, \
         where {place} goes on, may never have been handled\n\
         to go on: bring the newer log back; or handle this one with another group and place; or, if nothing below \
         offset {in_sink} is missing: --on-other-log accept"
    )]
    OtherLog {
        /// The topic's name.
        topic: String,
        /// The partition.
        partition: i32,
        /// The sink.
        place: String,
        /// Where the sink would go on.
        in_sink: Committed,
        /// The offset of the event that is another one.
        other: Offset,
    },
    /// What was saved is behind everything there is: the log went back.
    #[error(
        "{topic}/{partition}: offset {saved} is saved as the next to read, but the log ends at {end} ({count} offsets before it)\n\
         the log went back, or this is another log; events were lost or these are others\n\
         to handle everything that is there again: --on-gap earliest",
        count = saved.next().since(*end)
    )]
    AboveEnd {
        /// The topic's name.
        topic: String,
        /// The partition.
        partition: i32,
        /// What was saved.
        saved: Committed,
        /// The high watermark.
        end: Offset,
    },
    /// Nothing is saved, and that was not to be taken for a first start.
    #[error(
        "{topic}/{partition}: nothing is saved for the group; the log has {run}\n\
         to start: --on-no-offset earliest or latest",
        run = Run::new(*log_start, *end)
    )]
    NoOffset {
        /// The topic's name.
        topic: String,
        /// The partition.
        partition: i32,
        /// The first offset that can be read.
        log_start: Offset,
        /// The high watermark.
        end: Offset,
    },
}

/// An event that was not handled.
#[derive(Debug, thiserror::Error)]
#[error(
    "{topic}/{partition} offset {offset} was not handled{}: {reason}\n  key:   {key}\n  value: {value}\n\
     everything before it is saved, nothing past it; once the cause is mended, the same command goes on with this event",
    in_attempts(*attempts),
    partition = id.partition
)]
pub struct FailedEvent {
    /// The topic's name.
    pub topic: String,
    /// Which partition.
    pub id: PartitionId,
    /// Which event.
    pub offset: Offset,
    /// Its key, shortened, as a person can read it.
    pub key: String,
    /// Its value, likewise.
    pub value: String,
    /// How often this run has tried it.
    pub attempts: u32,
    /// Why.
    #[source]
    pub reason: FailReason,
}

/// Why an event was not handled.
#[derive(Debug, thiserror::Error)]
pub enum FailReason {
    /// The handler said so.
    #[error("the handler reports: {0}")]
    Reported(String),
    /// The handler gave no answer.
    #[error("{0}")]
    Handler(#[source] HandlerError),
    /// Attempts of earlier runs: why the last one failed.
    #[error("{0}")]
    Earlier(String),
    /// The sink cannot take the handler's answer.
    #[error("{0}")]
    Record(#[source] BadRecord),
}

impl FailedEvent {
    pub(super) fn new(
        topic: String,
        id: PartitionId,
        event: &Event,
        attempts: u32,
        reason: FailReason,
    ) -> FailedEvent {
        let show =
            |bytes: &Option<Vec<u8>>| bytes.as_deref().map_or_else(|| "null".to_owned(), crate::shorten);
        FailedEvent {
            topic,
            id,
            offset: event.offset,
            key: show(&event.key),
            value: show(&event.value),
            attempts,
            reason,
        }
    }
}

fn in_attempts(attempts: u32) -> String {
    if attempts > 1 { format!(" in {attempts} attempts") } else { String::new() }
}
