//! Compares a log with its effects and names what was lost or handled twice.

mod audit;
pub mod effects;
mod input;
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
