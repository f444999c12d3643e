//! Saving offsets: commits of consumers, and resets, undos and imports of people.

use std::collections::BTreeSet;

use leftoff_wire::{Committed, Offset, consumer_offsets::OffsetCommitValue};

use super::{
    Bounds, CommitError, Coordinator, Entry, Flag, Flags, Group, GroupError, Outcome, Ownership,
    PartitionKey, Record, Who, Why,
    error::check_name,
    story::{self, Story, check_note},
};
use crate::types::Timestamp;

/// The most bytes of a commit's metadata: Kafka's `offset.metadata.max.bytes`.
pub const MAX_METADATA_BYTES: usize = 4096;

/// Offsets to save in one step: all of them, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The group.
    pub group: String,
    /// The committer's hold on the group. `None` is for a group without members.
    pub fence: Option<Ownership>,
    /// What to save; each partition once.
    pub offsets: Vec<OffsetToCommit>,
    /// Who saves it.
    pub who: Who,
    /// [`Why::Commit`], [`Why::Reset`], [`Why::Undo`] or [`Why::Import`]. A start that was resolved before anything was handled is a reset.
    pub why: Why,
    /// The reason that a person gave, at most [`MAX_NOTE_BYTES`](super::MAX_NOTE_BYTES).
    pub note: Option<String>,
    /// Whether an offset above the end is refused rather than flagged. Kafka takes it, so what comes over the wire is not strict.
    pub strict: bool,
}

/// One offset to save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetToCommit {
    /// The partition, of which incarnation of the topic.
    pub key: PartitionKey,
    /// The next offset to read.
    pub committed: Committed,
    /// The leader epoch of the last handled event, if it is known (KIP-320).
    pub leader_epoch: Option<i32>,
    /// Whatever the committer wants to find again, at most [`MAX_METADATA_BYTES`].
    pub metadata: String,
}

impl Coordinator {
    /// Saves offsets; the reply says for each, in order, what was odd about it. `bounds` tells what can be read of a partition, `None` if
    /// there is no such partition of that incarnation.
    ///
    /// The broker takes the last commit that arrives: a lower offset than before is legal, and flagged (OF-033).
    ///
    /// # Errors
    /// If one offset is refused the whole commit is, and nothing changes.
    ///
    /// # Panics
    /// If `why` is not one of the four that save an offset.
    pub fn commit(
        &self,
        now: Timestamp,
        commit: &Commit,
        bounds: &dyn Fn(&PartitionKey) -> Option<Bounds>,
    ) -> Result<Outcome<Vec<Flags>>, CommitError> {
        assert!(
            matches!(commit.why, Why::Commit | Why::Reset | Why::Undo | Why::Import),
            "{} does not save an offset",
            commit.why
        );
        check_name("group", &commit.group)?;
        check_note(commit.note.as_deref())?;
        let group = self.known_group(&commit.group);
        check_fence(group, commit)?;
        check_named_once(&commit.offsets)?;

        let mut outcome = Outcome { reply: Vec::new(), records: Vec::new() };
        for (number, offset) in (0..).zip(&commit.offsets) {
            let before = group.and_then(|group| group.entry(&offset.key));
            let flags = judge(commit, offset, before, bounds)?;
            // A member's own decision has reached its place already.
            let is_for_a_place = commit.fence.is_none() && commit.why != Why::Commit;
            let reset = is_for_a_place.then(|| self.next_number(number));
            outcome.records.push(record(now, commit, offset, group, (flags, reset)));
            outcome.reply.push(flags);
        }
        Ok(outcome)
    }
}

impl Coordinator {
    /// A number greater than that of any reset before: no record that was replayed has this offset, or a later one.
    fn next_number(&self, number: i64) -> Offset {
        let behind = self.last_replayed.map_or(0, |last| last.get() + 1);
        Offset::new(behind.saturating_add(number)).unwrap_or(Offset::ZERO)
    }
}

/// A hold that is shown must be the current one; without one nobody may hold the group, for whoever does would not notice the move.
fn check_fence(group: Option<&Group>, commit: &Commit) -> Result<(), GroupError> {
    match &commit.fence {
        Some(held) => super::membership::check_held(group, &commit.group, held),
        None => super::membership::check_free(group, &commit.group),
    }
}

/// Two records of one key could not both name the one before them.
fn check_named_once(offsets: &[OffsetToCommit]) -> Result<(), GroupError> {
    let mut seen = BTreeSet::new();
    for OffsetToCommit { key, .. } in offsets {
        if !seen.insert((key.topic.as_str(), key.partition)) {
            return Err(GroupError::NamedTwice { topic: key.topic.clone(), partition: key.partition });
        }
    }
    Ok(())
}

/// What is odd about an offset, or why it is refused.
pub(super) fn judge(
    commit: &Commit,
    offset: &OffsetToCommit,
    before: Option<&Entry>,
    bounds: &dyn Fn(&PartitionKey) -> Option<Bounds>,
) -> Result<Flags, CommitError> {
    let OffsetToCommit { key, committed, metadata, .. } = offset;
    if metadata.len() > MAX_METADATA_BYTES {
        return Err(CommitError::MetadataTooLarge { key: key.clone(), bytes: metadata.len() });
    }
    let bounds = bounds(key).ok_or_else(|| CommitError::UnknownPartition { key: key.clone() })?;
    let above_end = committed.next() > bounds.end;
    if above_end && commit.strict {
        return Err(CommitError::AboveEnd { key: key.clone(), committed: *committed, bounds });
    }
    let backwards = commit.why == Why::Commit && before.is_some_and(|before| *committed < before.committed);
    Ok([
        (above_end, Flag::AboveEnd),
        (committed.next() < bounds.log_start, Flag::BelowStart),
        (backwards, Flag::Backwards),
    ]
    .into_iter()
    .filter_map(|(is_so, flag)| is_so.then_some(flag))
    .collect())
}

pub(super) fn record(
    now: Timestamp,
    commit: &Commit,
    offset: &OffsetToCommit,
    group: Option<&Group>,
    (flags, reset): (Flags, Option<Offset>),
) -> Record {
    let OffsetToCommit { key, committed, leader_epoch, metadata } = offset;
    let story = Story {
        generation: Some(group.map_or(0, Group::generation)),
        old: group.and_then(|group| group.entry(key)).map(|before| before.committed),
        prev: group.and_then(|group| group.slot(&key.topic, key.partition)).map(|slot| slot.at),
        flags,
        note: story::note(commit.note.as_deref()),
        reset,
        ..Story::new(commit.why, &commit.who)
    };
    let value = OffsetCommitValue {
        committed: *committed,
        leader_epoch: *leader_epoch,
        metadata: metadata.clone(),
        commit_timestamp_ms: now.as_ms(),
        topic_id: Some(key.topic_id),
    };
    super::outcome::offset_record(&commit.group, &key.topic, key.partition, Some(&value), &story)
}
