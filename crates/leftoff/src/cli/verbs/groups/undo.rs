//! `leftoff groups undo`: takes back the last jump of a group, in all partitions that it touched.

use leftoff_engine::broker::State;
use leftoff_engine::coordinator::{self, Move, PartitionKey, ResetTo, Undo, UndoError, UndoTo, Why};

use super::history::moves;
use super::moving::Moving;
use super::no_group;
use super::plan::Step;
use crate::cli::args::Global;
use crate::cli::args::groups::UndoArgs;
use crate::cli::failure::Failure;
use crate::cli::verbs::authority::Authorities;

/// How far back a jump is looked for, in moves of a partition.
const LOOK_BACK: usize = 100_000;

/// Shows what an undo repeats and skips; with `--execute` does it.
pub fn undo(global: &Global, args: &UndoArgs) -> Result<(), Failure> {
    let moving = Moving {
        verb: "groups undo",
        group: &args.group,
        why: Why::Undo,
        note: "undo".to_owned(),
        execute: args.execute,
    };
    moving.go(global, |state, authorities| steps(state, args, authorities))
}

fn steps(state: &State, args: &UndoArgs, authorities: &Authorities) -> Result<Vec<Step>, Failure> {
    let found = last_of(candidates(state, args, authorities)?);
    if found.is_empty() {
        return Err(Failure::refused(UndoError::NoMoves.to_string()));
    }
    let step = |(key, undo): &(PartitionKey, Undo)| match waiting(state, args, authorities, key)
        .or(undo.to.reset())
    {
        Some(to) => Step::to(state, &args.group, authorities, key, to),
        None => Step::forget(state, &args.group, authorities, key),
    };
    found.iter().map(step).collect()
}

/// A reset that has not reached its place is taken back by leaving the place where it is.
fn waiting(state: &State, args: &UndoArgs, authorities: &Authorities, key: &PartitionKey) -> Option<ResetTo> {
    let entry = state.coordinator().entry(&args.group, key)?;
    let (_, next) = authorities.next(&entry.metadata, key).filter(|_| authorities.waits(entry, key))?;
    next.map(ResetTo::Committed)
}

/// What could be taken back in each partition.
fn candidates(
    state: &State,
    args: &UndoArgs,
    authorities: &Authorities,
) -> Result<Vec<(PartitionKey, Undo)>, Failure> {
    let group = state.coordinator().known_group(&args.group).ok_or_else(|| no_group(state, &args.group))?;
    let (told, _) = moves(state, group, &args.topics, LOOK_BACK)?;
    let mut found = Vec::new();
    for head in group.heads() {
        let of_head =
            told.iter().rev().filter(|told| told.topic == head.topic && told.partition == head.partition);
        let moves: Vec<Move> = of_head.map(|told| told.found.clone()).collect();
        let Some(topic) = state.topic(head.topic).filter(|_| !moves.is_empty()) else { continue };
        let key =
            PartitionKey { topic: topic.name.clone(), topic_id: topic.topic_id, partition: head.partition };
        match coordinator::undo(&moves, topic.topic_id) {
            Ok(undo) => {
                let entry = state.coordinator().entry(&args.group, &key);
                let is_kept = entry.is_some_and(|entry| authorities.next(&entry.metadata, &key).is_some());
                found.push((key, if is_kept { from_the_place(undo, &moves) } else { undo }));
            }
            Err(UndoError::NoMoves) => {}
            Err(error @ UndoError::OtherTopic { .. }) if args.topics.is_empty() => {
                // Another partition may have moved since.
                drop(error);
            }
            Err(error) => return Err(Failure::refused(format!("{key}: {error}"))),
        }
    }
    Ok(found)
}

/// Where a place keeps the offset, a jump that another one replaced before a run took it there has never been: what was before
/// them is what the place had.
fn from_the_place(undo: Undo, moves: &[Move]) -> Undo {
    let since = moves.iter().skip_while(|found| found.at != undo.of.at);
    let first = since.take_while(|found| found.why.is_jump()).last();
    let to = first.map_or(undo.to, |first| first.old.map_or(UndoTo::NoOffset, UndoTo::Offset));
    Undo { to, ..undo }
}

/// Those whose move is the newest, or was made together with it.
fn last_of(mut found: Vec<(PartitionKey, Undo)>) -> Vec<(PartitionKey, Undo)> {
    let Some(newest) = found.iter().map(|(_, undo)| undo.of.clone()).max_by_key(|of| of.at) else {
        return found;
    };
    let is_together = |of: &Move| {
        (of.timestamp, of.why, &of.who, &of.note) == (newest.timestamp, newest.why, &newest.who, &newest.note)
    };
    found.retain(|(_, undo)| is_together(&undo.of));
    found
}
