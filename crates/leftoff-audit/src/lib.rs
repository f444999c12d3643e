//! Compares a log with its effects and names what was lost or handled twice.
//!
//! It judges everyone, so it shares no code with what it judges, and it compares identities, not counts: a thousand events
//! and a thousand effects say nothing.
//!
//! # The rules
//!
//! An event is *handled* when there is an effect for it. An effect names its event by place
//! ([`Effect::ByPlace`]: partition, offset, number within the event) or by id ([`Effect::ById`]).
//!
//! - **Handled twice**, by place: the same partition, offset and number more than once. By id: more effects with an id than
//!   events in the log that carry it.
//! - **Produced twice**: the same id at two places of the log. Nobody but the producer is to blame. With as many effects as
//!   events each was handled; with fewer, a dedupe **absorbed** the rest, and those are not lost. By place an outcome says so.
//! - **Handled again by decision**: the same, of an event that an outcome says was given back ([`OutcomeKind::Again`]), as often as
//!   that. At or above the saved next offset it is *unfinished*, whatever it left behind.
//! - **Without effect, on purpose**: an outcome covers the event: handled without output, filtered, dead, skipped by decision.
//! - **Unfinished**: no effect, no outcome, and at or above the next offset that the group has saved: a restart handles it.
//! - **Lost**: no effect, no outcome, and below the saved next offset: nobody will come back for it.
//! - **No offset saved**: the whole log is compared. An event is lost if a later event of its partition was handled or passed
//!   on purpose, else unfinished: a consumer that works in order has passed the first and may still reach the second. An
//!   effect by an id that several events share is not taken for "later", since nobody knows whose it is.
//! - **Out of order**: first handled after a later event of the same partition was first handled. Repeats do not count, nor
//!   do ids that several events share.
//! - **Deleted before handling**: below the log start, at or above the saved next offset, no effect and no outcome; or an
//!   outcome says so. These are offsets, not events: what is gone cannot be told from a hole.
//! - **Unknown effect**: an effect for which the log has no event: an id nobody has, another topic, a partition or place that is
//!   not there, a marker or an aborted event.
//! - An outcome that calls an event *deleted* which is still in the log excuses nothing.
//!
//! Markers, holes and aborted events are nobody's fault. What cannot be told apart is not guessed: see
//! [`Verdict::cannot_tell`].
//!
//! # Memory
//!
//! Everything is compared by external sorting ([`Limits`]); only the ids of the first [`LIST_LIMIT`] culprits of each kind are
//! looked up, in a second pass.
//!
//! ```
//! use leftoff_audit::{Demand, Effect, Given, Limits, LogEntry, LogEvent, PartitionFacts, Question, Seen, audit};
//!
//! let event = |offset, id: &str| LogEntry::Event(LogEvent { partition: 0, offset, id: Some(id.to_owned()) });
//! let effect = |id: &str| Seen::Item(Effect::ById(id.to_owned()));
//! let mut evidence = Given {
//!     log: vec![event(0, "e1"), event(1, "e2"), event(2, "e3")],
//!     effects: vec![effect("e1"), effect("e1"), effect("e3")],
//!     outcomes: vec![],
//! };
//! let partitions = [PartitionFacts { partition: 0, log_start: 0, end: 3, saved_next: Some(3) }];
//! let question = Question { topic: "lesson", partitions: &partitions };
//! let verdict = audit(&question, &Limits::default(), &mut evidence)?;
//! assert_eq!(verdict.to_string(), "nothing left\nlost: ['e2'] | handled twice: ['e1']");
//! assert_eq!(verdict.exit_code(Demand::Clean), 1);
//! # Ok::<(), leftoff_audit::AuditError>(())
//! ```

mod audit;
pub mod effects;
mod input;
mod sort;
mod verdict;

pub use audit::{AuditError, Limits, Question, audit};
pub use input::{
    Effect, Evidence, Given, LogEntry, LogEvent, Outcome, OutcomeKind, PartitionFacts, Seen, SourceError,
    Stream,
};
pub use verdict::{
    AheadOfEnd, Demand, Found, LIST_LIMIT, Line, Lines, NAME_LIMIT_BYTES, PartitionSummary, Place,
    PlaceRange, Produced, ProducedTwice, UnknownEffect, UnknownEffects, UnknownWhy, Verdict, python_list,
};
