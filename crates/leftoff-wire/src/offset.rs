//! Two types for two meanings: a record's place, and the next one to read.
//!
//! Kafka uses one 64-bit number for both, and many a pipeline has lost or repeated one event because somebody added one too
//! few or one too many. Here the one cannot be passed for the other: [`Offset`] says where a record *is*, [`Committed`] says
//! where a reader *goes on*, and the latter is made only by constructors that say what it was made from.

use std::fmt;

#[cfg(test)]
mod tests;

/// A record's place in a partition: 0 for the first one ever appended, never negative.
///
/// It also names places *between* records, as Kafka does: a log start, a high watermark, a log end are the offset of the
/// record that is, or will be, there. It is not a place in a file; those are `position_bytes`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(i64);

impl Offset {
    /// The first offset of every partition.
    pub const ZERO: Offset = Offset(0);

    /// The offset with this number; `None` if it is negative.
    pub const fn new(offset: i64) -> Option<Offset> {
        if offset >= 0 { Some(Offset(offset)) } else { None }
    }

    /// The number, never negative.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The offset behind this one.
    ///
    /// # Panics
    /// Above 2^63 - 1, which a log reaches never: one event a nanosecond takes 292 years.
    pub fn next(self) -> Offset {
        self.plus(1)
    }

    /// The offset that is `count` behind this one.
    ///
    /// # Panics
    /// Above 2^63 - 1. For a count that comes from outside there is [`Offset::checked_plus`].
    pub fn plus(self, count: u64) -> Offset {
        self.checked_plus(count).expect("offsets end at 2^63 - 1")
    }

    /// The offset that is `count` behind this one; `None` above 2^63 - 1.
    pub fn checked_plus(self, count: u64) -> Option<Offset> {
        self.0.checked_add_unsigned(count).map(Offset)
    }

    /// How many offsets lie from `start` to this one, this one excluded; 0 if `start` is behind it.
    pub fn since(self, start: Offset) -> u64 {
        self.0.saturating_sub(start.0).max(0).unsigned_abs()
    }
}

/// A run of offsets as people read it: first to last, both included, with their number. `offset 8`, `offsets 3 to 9 (7)`,
/// `no offsets`. Everything that is printed of a run goes through here, so that no two places count differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first one.
    pub from: Offset,
    /// The one behind the last.
    pub to: Offset,
}

impl Run {
    /// From the first one up to the one behind the last.
    pub const fn new(from: Offset, to: Offset) -> Run {
        Run { from, to }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to.since(self.from) {
            0 => f.write_str("no offsets"),
            1 => write!(f, "offset {}", self.from),
            count => write!(f, "offsets {} to {} ({count})", self.from, self.to.0 - 1),
        }
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Offset({})", self.0)
    }
}

/// A committed offset: the *next* offset that a group reads from a partition. Everything below it is done with.
///
/// There is no constructor from a bare number and none from any [`Offset`]: each says where the number comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Committed(Offset);

impl Committed {
    /// Go on behind the event that was handled last.
    ///
    /// # Panics
    /// For the offset 2^63 - 1, which has none behind it.
    pub fn after(last_handled: Offset) -> Committed {
        Committed(last_handled.next())
    }

    /// Go on behind a batch that is done, by its own word for what comes next: that lies behind compacted offsets, too.
    pub fn end_of_batch(next: Offset) -> Committed {
        Committed(next)
    }

    /// Go on at the log start offset: read everything there is.
    pub fn log_start(log_start: Offset) -> Committed {
        Committed(log_start)
    }

    /// Go on where a reset (`--to-offset`, a timestamp, the end) was resolved to.
    pub fn resolved_reset(target: Offset) -> Committed {
        Committed(target)
    }

    /// The number as it stands in requests and in the offsets log; `None` if it is negative (-1 there is "no offset").
    pub fn from_wire(committed: i64) -> Option<Committed> {
        Offset::new(committed).map(Committed)
    }

    /// The offset to read next. This is the number for the wire.
    pub fn next(self) -> Offset {
        self.0
    }

    /// The offset before the next one; `None` if reading starts at 0. Whether there is an event at it, and whether it was
    /// handled, is not known here.
    pub fn before(self) -> Option<Offset> {
        Offset::new(self.0.0 - 1)
    }
}

/// Prints the next offset to read.
impl fmt::Display for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Committed(next {})", self.0)
    }
}
