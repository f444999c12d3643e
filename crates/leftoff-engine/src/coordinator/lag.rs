//! Lag in five words instead of one number.

use leftoff_wire::{Committed, Offset};

use super::Bounds;

/// How far a group is from the end of a partition. Every count is in offsets; a caller that knows how many of them are no events
/// (markers, compacted) takes those off.
///
/// The five never mix: what is deleted is not waiting (OF-131), no commit is not a number (OF-132), being ahead of the end is not zero
/// (OF-133), and what lies behind an open transaction cannot be read yet (OF-134).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Readable and not handled.
    pub waiting: u64,
    /// Deleted before the group came to it.
    pub deleted_unread: u64,
    /// Written, but readable only when an open transaction has ended.
    pub behind_open_transaction: u64,
    /// The group has committed nothing here: the counts above are seen from the log start.
    pub no_commit: bool,
    /// The committed offset lies so far above the end. 0 if it does not.
    pub ahead_of_end: u64,
}

impl Lag {
    /// The lag of a group that has `committed`, on a partition with `bounds`, whose last stable offset is `last_stable`.
    ///
    /// All three are to be taken in one step; samples of different times give a lag that never was.
    pub fn of(committed: Option<Committed>, bounds: Bounds, last_stable: Offset) -> Lag {
        let place = committed.map_or(bounds.log_start, Committed::next);
        let reader = place.max(bounds.log_start);
        let readable_end = last_stable.min(bounds.end);
        Lag {
            waiting: readable_end.since(reader),
            deleted_unread: bounds.log_start.since(place),
            behind_open_transaction: bounds.end.since(reader.max(readable_end)),
            no_commit: committed.is_none(),
            ahead_of_end: place.since(bounds.end),
        }
    }

    /// Whether the group has handled all that it could.
    pub fn is_caught_up(&self) -> bool {
        self.waiting == 0 && !self.no_commit
    }
}
