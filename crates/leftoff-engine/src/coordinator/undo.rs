//! Which move an undo takes back, and to what.

use leftoff_wire::{Committed, Uuid};

use super::{Move, ResetTo, Why};

/// A move to take back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undo {
    /// The move: the last jump, or the last move if there was no jump.
    pub of: Move,
    /// What was there before it.
    pub to: UndoTo,
}

/// What was there before a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoTo {
    /// An offset; what going back to it repeats or skips tells [`plan`](super::plan()), by [`UndoTo::reset`].
    Offset(Committed),
    /// No offset: to undo it is to delete the offset.
    NoOffset,
}

/// Why there is nothing to undo.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    /// No move is known.
    #[error("no move is known: there is nothing to undo")]
    NoMoves,
    /// The only jump is where the group began, and it has handled events since: to take that back would be to handle them all
    /// again, which is a reset, and not what an undo is for.
    #[error(
        "the group has only gone forward since it began: there is no reset, import or deletion to take back"
    )]
    OnlyProgress,
    /// The last jump moved an offset of a topic that was deleted since.
    #[error("the last move (record {}, {}) was of an earlier topic of that name", of.at, of.why)]
    OtherTopic {
        /// The move.
        of: Box<Move>,
    },
}

impl UndoTo {
    /// The reset that goes back there; `None` if it is a deletion.
    pub fn reset(self) -> Option<ResetTo> {
        match self {
            UndoTo::Offset(committed) => Some(ResetTo::Committed(committed)),
            UndoTo::NoOffset => None,
        }
    }
}

/// Finds what an undo takes back, in moves as [`walk`](super::walk()) gives them, newest first: the last jump (a reset, an undo, an import, a
/// deletion or a commit that went backwards), or else the last move. A second undo takes back the first.
///
/// # Errors
/// [`UndoError`] if no move is known, or if it was a move of another topic than `topic_id`: numbers of one are nothing to the other (OF-050).
pub fn undo(moves: &[Move], topic_id: Uuid) -> Result<Undo, UndoError> {
    let place = moves
        .iter()
        .position(Move::is_jump)
        .or_else(|| moves.iter().position(|found| found.why != Why::Carried))
        .ok_or(UndoError::NoMoves)?;
    let of = moves[place].clone();
    if of.why == Why::Reset && of.old.is_none() && moves[..place].iter().any(|since| since.why == Why::Commit)
    {
        return Err(UndoError::OnlyProgress);
    }
    let moved = moves[place..].iter().find_map(|found| found.topic_id);
    if moved.is_some_and(|moved| moved != topic_id) {
        return Err(UndoError::OtherTopic { of: Box::new(of) });
    }
    let to = of.old.map_or(UndoTo::NoOffset, UndoTo::Offset);
    Ok(Undo { of, to })
}
