//! What the audit is given: the log, the facts of its partitions, the effects and the outcomes.

use std::iter;

/// Why a source of evidence could not be read; the caller's own error.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// One pass over a source of evidence.
pub type Stream<'a, T> = Box<dyn Iterator<Item = Result<T, SourceError>> + 'a>;

/// Where the audit reads from. Each method starts a pass from the beginning; the log and the effects are passed over
/// a second time only to learn the names of culprits, so a pass must give the same items in the same order
/// (more may follow at the end).
///
/// Take the parts of a group that is running in this order, or the audit compares samples of different times:
/// the saved offsets, then the length of the effects, then log start and end, then the log.
pub trait Evidence {
    /// The log. In offset order within a partition; partitions may be interleaved.
    ///
    /// # Errors
    /// The caller's own, when the log cannot be opened.
    fn log(&mut self) -> Result<Stream<'_, LogEntry>, SourceError>;

    /// The effects in the order in which they happened.
    ///
    /// # Errors
    /// The caller's own, when the effects cannot be opened.
    fn effects(&mut self) -> Result<Stream<'_, Seen<Effect>>, SourceError>;

    /// Ranges that were passed on purpose without an effect, in any order. None by default.
    ///
    /// # Errors
    /// The caller's own, when the outcomes cannot be opened.
    fn outcomes(&mut self) -> Result<Stream<'_, Seen<Outcome>>, SourceError> {
        Ok(Box::new(iter::empty()))
    }
}

/// Evidence that is small enough to be held in memory.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// The log.
    pub log: Vec<LogEntry>,
    /// The effects in the order in which they happened.
    pub effects: Vec<Seen<Effect>>,
    /// Ranges that were passed on purpose.
    pub outcomes: Vec<Seen<Outcome>>,
}

impl Evidence for Given {
    fn log(&mut self) -> Result<Stream<'_, LogEntry>, SourceError> {
        Ok(Box::new(self.log.iter().cloned().map(Ok)))
    }

    fn effects(&mut self) -> Result<Stream<'_, Seen<Effect>>, SourceError> {
        Ok(Box::new(self.effects.iter().cloned().map(Ok)))
    }

    fn outcomes(&mut self) -> Result<Stream<'_, Seen<Outcome>>, SourceError> {
        Ok(Box::new(self.outcomes.iter().cloned().map(Ok)))
    }
}

/// One place of the log as a reader of committed data sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEntry {
    /// An event that somebody should handle.
    Event(LogEvent),
    /// An event of an aborted transaction: nobody may handle it and nobody is to blame that it was not handled.
    Aborted {
        /// The partition.
        partition: u32,
        /// Its place.
        offset: i64,
    },
    /// A control record. May as well be left out.
    Marker {
        /// The partition.
        partition: u32,
        /// Its place.
        offset: i64,
    },
}

/// An event in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEvent {
    /// The partition.
    pub partition: u32,
    /// Its place in the partition.
    pub offset: i64,
    /// Its identity, if events carry one. Needed for effects by id, for events produced twice, and for names that
    /// people know; without it an event is called `TOPIC/PARTITION/OFFSET`.
    pub id: Option<String>,
}

/// What is known of a partition. All three numbers are next offsets: the first that is *not* below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionFacts {
    /// The partition.
    pub partition: u32,
    /// Everything below has been deleted. Log entries below are not judged.
    pub log_start: i64,
    /// The end up to which the log is judged; log entries at or above it are not.
    pub end: i64,
    /// The next offset that the group would read, `None` if it has saved none.
    pub saved_next: Option<i64>,
}

/// Something that a handler left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It names the place of its event.
    ByPlace {
        /// The partition of the event.
        partition: u32,
        /// The offset of the event.
        offset: i64,
        /// Its number among the effects of that event.
        n: u32,
    },
    /// It names the identity of its event.
    ById(String),
    /// It names a place in another topic (the text it carried).
    OtherTopic(String),
}

/// A range that was passed on purpose without an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The partition.
    pub partition: u32,
    /// First offset.
    pub from: i64,
    /// Last offset, itself included.
    pub to: i64,
    /// Why it has no effect.
    pub kind: OutcomeKind,
}

/// Why a range was passed without an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutcomeKind {
    /// The handler was done and had nothing to write.
    Handled,
    /// The handler said that the event is none of its business.
    Filtered,
    /// Given up after its attempts and set aside.
    Dead,
    /// A person or a policy decided to pass it.
    Skipped,
    /// The group found it deleted. Does not excuse an event that is still in the log.
    Deleted,
    /// Produced twice: the place has taken the event under another offset.
    Absorbed,
    /// A person gave the range back: its events may be handled once more than before. No outcome of theirs.
    Again,
}

/// An item of a source, or a line in its place that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen<T> {
    /// An item.
    Item(T),
    /// A last line without its end: its writer stopped in the middle, so it is no item.
    Torn {
        /// Line number, from 1.
        line: u64,
    },
    /// A line that says nothing the audit understands.
    Unreadable {
        /// Line number, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
}
