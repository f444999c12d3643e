//! `leftoff groups skip`: passes one event by, by name, and has that in the history.

use leftoff_engine::broker::State;
use leftoff_engine::coordinator::{PartitionKey, ResetTo, Why};
use leftoff_wire::{Committed, Offset};

use super::moving::Moving;
use super::plan::Step;
use super::standing::{first_at, log};
use super::{find_group, named_partitions};
use crate::cli::args::Global;
use crate::cli::args::groups::SkipArgs;
use crate::cli::failure::Failure;
use crate::cli::verbs::authority::Authorities;

/// Shows the event; with `--execute` passes it by.
pub fn skip(global: &Global, args: &SkipArgs) -> Result<(), Failure> {
    let moving = Moving {
        verb: "groups skip",
        group: &args.group,
        why: Why::Reset,
        note: args.offset.map_or_else(|| "skip".to_owned(), |offset| format!("skip of offset {offset}")),
        execute: args.execute,
    };
    moving.go(global, |state, authorities| {
        let keys = named_partitions(state, std::slice::from_ref(&args.topic))?;
        let [key] = keys.as_slice() else {
            let topic = &args.topic.topic;
            return Err(Failure::usage(format!(
                "one event is passed by at a time: name one partition of {topic}"
            ))
            .hint(format!("as in -t {topic}:0")));
        };
        let event = next_event(state, args, authorities, key)?;
        let to = ResetTo::Committed(Committed::after(event));
        Ok(vec![Step::to(state, &args.group, authorities, key, to)?])
    })
}

/// The first event that the group has not handled.
fn next_event(
    state: &State,
    args: &SkipArgs,
    authorities: &Authorities,
    key: &PartitionKey,
) -> Result<Offset, Failure> {
    let entry = find_group(state, &args.group)?.entry(key);
    let Some(entry) = entry else {
        return Err(Failure::refused(format!(
            "group '{}' has no offset for {key}: no event is its next",
            args.group
        )));
    };
    let in_place = authorities.next(&entry.metadata, key).and_then(|(_, next)| next);
    let log = log(state, key.topic_id, key.partition);
    let next = in_place.unwrap_or(entry.committed).next().max(log.log_start());
    let Some(event) = first_at(log, next)?.map(|event| event.offset) else {
        return Err(Failure::refused(format!(
            "group '{}' has handled all of {key}: there is no next event",
            args.group
        )));
    };
    match args.offset {
        Some(meant) if meant != event => Err(Failure::refused(format!(
            "offset {meant} of {key} is not the next event to handle, which is {event}: nothing in between is passed by with it"
        ))
        .hint(format!("`leftoff groups peek {}` shows the events around; reset moves by more than one", args.group))),
        _ => Ok(event),
    }
}
