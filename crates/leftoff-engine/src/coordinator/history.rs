//! The history of a key: its chain of records, walked back.

use leftoff_wire::{Committed, Offset, Uuid, consumer_offsets::Key};

use super::{
    Flag, Flags, ReplayError, Span, Who, Why,
    replay::{decode_key, decode_offset},
    story::Story,
};
use crate::types::Timestamp;

/// One change of a committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The offset of the record in the offsets log.
    pub at: Offset,
    /// When the record was written.
    pub timestamp: Timestamp,
    /// Why it was written.
    pub why: Why,
    /// Of a carried value: why it was written first.
    pub was: Option<Why>,
    /// Who wrote it.
    pub who: Who,
    /// The generation of the group at that time, if the record says so.
    pub generation: Option<i32>,
    /// The offset before, of the same incarnation of the topic; `None` if there was none.
    pub old: Option<Committed>,
    /// The offset from then on; `None` if it was deleted or expired.
    pub new: Option<Committed>,
    /// The incarnation of the topic. A deletion does not say: it is that of the move before.
    pub topic_id: Option<Uuid>,
    /// What was odd about it.
    pub flags: Flags,
    /// The reason that a person gave.
    pub note: Option<String>,
    /// The committer's own words; empty for a deletion.
    pub metadata: String,
}

/// One record of the offsets log, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawRecord {
    /// The record's timestamp.
    pub timestamp: Timestamp,
    /// The bytes of the key.
    pub key: Vec<u8>,
    /// The bytes of the value; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
    /// The headers, in order.
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// What a walk has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walked {
    /// The moves, newest first.
    pub moves: Vec<Move>,
    /// Where to go on, if the limit ended the walk.
    pub next: Option<Offset>,
    /// Whether the chain goes on into a part of the log that is deleted.
    pub truncated: bool,
}

/// Why a walk failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalkError<E> {
    /// The log could not be read.
    #[error("{0}")]
    Read(E),
    /// A record does not read; a chain that does not fall, and so could loop, is such a record.
    #[error(transparent)]
    Record(#[from] ReplayError),
    /// The chain left its key.
    #[error(
        "offsets log: record {at} is of another key than record {head}, from which the chain leads to it"
    )]
    OtherKey {
        /// The record.
        at: Offset,
        /// The record from which the walk began.
        head: Offset,
    },
    /// The record is not a committed offset.
    #[error("offsets log: record {at} is no committed offset")]
    NotAnOffset {
        /// The record.
        at: Offset,
    },
}

impl Move {
    /// Whether this is a jump rather than progress or upkeep: what undo takes back.
    pub fn is_jump(&self) -> bool {
        self.why.is_jump() || (self.why == Why::Commit && self.flags.contains(Flag::Backwards))
    }
}

/// Walks the history of a key from its newest record (a [`Head`](super::Head) of the group) back, at most `limit` moves. `read` gives the
/// record at an offset of the offsets log, `None` below its start.
///
/// # Errors
/// [`WalkError`] if the log cannot be read or the chain is broken. It always ends: every step goes to a lower offset.
pub fn walk<E>(
    head: Offset,
    read: &mut dyn FnMut(Offset) -> Result<Option<RawRecord>, E>,
    limit: usize,
) -> Result<Walked, WalkError<E>> {
    let mut walked = Walked { moves: Vec::new(), next: Some(head), truncated: false };
    let mut first_key = None;
    while let Some(at) = walked.next.filter(|_| walked.moves.len() < limit) {
        let Some(record) = read(at).map_err(WalkError::Read)? else {
            walked.next = None;
            walked.truncated = true;
            break;
        };
        let key = first_key.get_or_insert_with(|| record.key.clone());
        if *key != record.key {
            return Err(WalkError::OtherKey { at, head });
        }
        let (found, prev) = read_move(at, record)?;
        walked.moves.push(found);
        walked.next = prev;
    }
    Ok(walked)
}

/// What a walk tells of the offsets of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Those that saved progress went over, in order: they were handled, or passed by a handler's policy.
    pub handled: Vec<Span>,
    /// Those that no progress went over: a reset did, or nothing yet.
    pub unhandled: Vec<Span>,
}

/// Splits a span of offsets by what the group's history from `head` back says of it, in about `limit` moves at most: see [`walk`].
/// `None` where the history does not go back far enough to tell.
///
/// # Errors
/// As [`walk`].
pub fn passed<E>(
    head: Offset,
    topic_id: Uuid,
    span: Span,
    read: &mut dyn FnMut(Offset) -> Result<Option<RawRecord>, E>,
    limit: usize,
) -> Result<Option<Passed>, WalkError<E>> {
    /// Moves that are read before it is asked again whether they are enough: a save of each event is a move of one.
    const STEP: usize = 512;
    let mut left = vec![span];
    let (mut next, mut walked_moves) = (Some(head), 0);
    while let Some(at) = next.filter(|_| !left.is_empty()) {
        let walked = walk(at, read, STEP)?;
        walked_moves += walked.moves.len();
        let of_topic =
            |found: &&Move| found.why == Why::Commit && found.topic_id.is_none_or(|id| id == topic_id);
        for found in walked.moves.iter().filter(of_topic) {
            let from = found.old.map_or(Offset::ZERO, Committed::next);
            if let Some(progress) = found.new.and_then(|new| Span::between(from, new.next())) {
                left = left.into_iter().flat_map(|part| part.without(progress)).flatten().collect();
            }
        }
        next = walked.next;
        let is_cut = walked.truncated || (next.is_some() && walked_moves >= limit);
        if is_cut && !left.is_empty() {
            return Ok(None);
        }
    }
    let mut handled = vec![span];
    for part in &left {
        handled = handled.into_iter().flat_map(|whole| whole.without(*part)).flatten().collect();
    }
    Ok(Some(Passed { handled, unhandled: left }))
}

fn read_move<E>(at: Offset, record: RawRecord) -> Result<(Move, Option<Offset>), WalkError<E>> {
    let Key::OffsetCommit { .. } = decode_key(at, &record.key)? else {
        return Err(WalkError::NotAnOffset { at });
    };
    let headers = record.headers.iter().map(|(name, value)| (name.as_slice(), value.as_deref()));
    let story = Story::parse(at, headers)?;
    let value = record.value.as_deref().map(|value| decode_offset(at, value)).transpose()?;
    let new = value.as_ref().map(|value| value.committed);
    let found = Move {
        at,
        timestamp: record.timestamp,
        why: story.why.unwrap_or(if new.is_some() { Why::Commit } else { Why::Deleted }),
        was: story.was,
        who: story.who,
        generation: story.generation,
        old: story.old,
        new,
        topic_id: value.as_ref().and_then(|value| value.topic_id),
        flags: story.flags,
        note: story.note,
        metadata: value.map(|value| value.metadata).unwrap_or_default(),
    };
    Ok((found, story.prev))
}
