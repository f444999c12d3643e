//! Small values that several parts of the engine share: time, and the name of a partition.

use std::fmt;

/// Wall time in milliseconds since 1970-01-01 UTC, as in Kafka's records. −1 means "none" there.
///
/// It is never compared with a deadline: those are [`Millis`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Kafka's "no timestamp", −1.
    pub const NONE: Timestamp = Timestamp(-1);

    /// A timestamp of so many milliseconds since 1970-01-01 UTC.
    pub const fn from_ms(ms: i64) -> Timestamp {
        Timestamp(ms)
    }

    /// Milliseconds since 1970-01-01 UTC.
    pub const fn as_ms(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Monotonic time in milliseconds since some moment that only the shell knows. Deadlines are of this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(u64);

impl Millis {
    /// So many milliseconds after the shell's own zero.
    pub const fn new(ms: u64) -> Millis {
        Millis(ms)
    }

    /// Milliseconds after the shell's own zero.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The moment `ms` milliseconds later.
    pub const fn plus(self, ms: u64) -> Millis {
        Millis(self.0.saturating_add(ms))
    }
}

/// A partition by its topic's name. The name can be given to another topic later; where that matters, the topic's id goes along.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: String,
    /// The partition's number, from 0.
    pub partition: i32,
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.partition)
    }
}
