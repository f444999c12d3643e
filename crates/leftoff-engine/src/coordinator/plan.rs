//! What a reset would do, before anybody does it.

use std::fmt;

use leftoff_wire::{Committed, Offset};

use super::Bounds;

/// Where a reset goes. Times are looked up by the caller, who has the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetTo {
    /// The log start.
    Earliest,
    /// The end.
    Latest,
    /// Where it is, brought into what can be read.
    Current,
    /// An offset that a person named.
    Offset(i64),
    /// So many offsets on, or back.
    ShiftBy(i64),
    /// An offset that was looked up, for example by time.
    Resolved(Offset),
    /// An offset that was committed elsewhere: in a file, in another group, or here before.
    Committed(Committed),
}

/// A run of offsets, the end not included, that has at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first offset.
    pub from: Offset,
    /// The one behind the last.
    pub to: Offset,
}

/// Why a reset does not go where it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clamped {
    /// What was asked for is deleted: it goes to the log start.
    BelowStart {
        /// The offset asked for; it may be below 0.
        asked: i128,
        /// The log start.
        log_start: Offset,
    },
    /// What was asked for is not written yet: it goes to the end.
    AboveEnd {
        /// The offset asked for.
        asked: i128,
        /// The end.
        end: Offset,
    },
}

/// A reset, decided but not done: from where to where, and what that means for the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Where the group is; `None` if it has committed nothing here.
    pub from: Option<Committed>,
    /// Where it would be.
    pub to: Committed,
    /// Why it does not go where it was told, if so.
    pub clamped: Option<Clamped>,
    /// Offsets that would be handled again.
    pub repeats: Option<Span>,
    /// Offsets that can be read and would never be handled.
    pub skips: Option<Span>,
    /// Offsets that were deleted before the group came to them, whatever the reset does.
    pub deleted_unread: Option<Span>,
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It was to start from the committed offset, and there is none. Taking the end instead, as Kafka's tool does, would skip silently.
    #[error("the group has no committed offset here: say where to go instead")]
    NoCommit,
}

/// Plans a reset of a group that has committed `current` on a partition with `bounds`. It never leaves what can be read.
///
/// # Errors
/// [`PlanError::NoCommit`] for a reset relative to an offset that is not there.
pub fn plan(current: Option<Committed>, to: ResetTo, bounds: Bounds) -> Result<Planned, PlanError> {
    let asked = asked(current, to, bounds)?;
    let (target, clamped) = clamp(asked, bounds);
    // Without a commit the group stands, as its first start would, where the log starts: what lies below the target is skipped.
    let place = current.map_or(bounds.log_start, Committed::next);
    let reader = place.max(bounds.log_start);
    Ok(Planned {
        from: current,
        to: Committed::resolved_reset(target),
        clamped,
        repeats: current.and_then(|_| Span::between(target, place.min(bounds.end))),
        skips: Span::between(reader, target),
        deleted_unread: Span::between(place, bounds.log_start),
    })
}

impl Planned {
    /// Whether the group stays where it is, so that there is nothing to write.
    pub fn is_unchanged(&self) -> bool {
        self.from == Some(self.to)
    }
}

impl Span {
    /// The offsets from `from` up to `to`, if there are any.
    pub fn between(from: Offset, to: Offset) -> Option<Span> {
        (from < to).then_some(Span { from, to })
    }

    /// What is left of it in front of `other` and behind it.
    pub(super) fn without(self, other: Span) -> [Option<Span>; 2] {
        [Span::between(self.from, self.to.min(other.from)), Span::between(self.from.max(other.to), self.to)]
    }

    /// How many offsets. Not all of them need be events.
    pub fn count(self) -> u64 {
        self.to.since(self.from)
    }
}

fn asked(current: Option<Committed>, to: ResetTo, bounds: Bounds) -> Result<i128, PlanError> {
    let place = || current.map(|current| i128::from(current.next().get())).ok_or(PlanError::NoCommit);
    Ok(match to {
        ResetTo::Earliest => bounds.log_start.get().into(),
        ResetTo::Latest => bounds.end.get().into(),
        ResetTo::Current => place()?,
        ResetTo::Offset(offset) => offset.into(),
        ResetTo::ShiftBy(by) => place()? + i128::from(by),
        ResetTo::Resolved(offset) => offset.get().into(),
        ResetTo::Committed(committed) => committed.next().get().into(),
    })
}

fn clamp(asked: i128, bounds: Bounds) -> (Offset, Option<Clamped>) {
    let Bounds { log_start, end } = bounds;
    if asked < log_start.get().into() {
        return (log_start, Some(Clamped::BelowStart { asked, log_start }));
    }
    match i64::try_from(asked).ok().and_then(Offset::new).filter(|offset| *offset <= end) {
        Some(offset) => (offset, None),
        None => (end, Some(Clamped::AboveEnd { asked, end })),
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.to.get() - 1;
        match self.count() {
            1 => write!(f, "{last} (1 offset)"),
            count => write!(f, "{} to {last} ({count} offsets)", self.from),
        }
    }
}

impl fmt::Display for Clamped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Clamped::BelowStart { asked, log_start } => {
                write!(f, "{asked} is below the log start, so {log_start}")
            }
            Clamped::AboveEnd { asked, end } => write!(f, "{asked} is above the end, so {end}"),
        }
    }
}
