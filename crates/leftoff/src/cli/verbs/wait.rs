//! `leftoff wait`: until a group has handled events up to a place. Exit 1 if it has not in time.

use std::time::{Duration, Instant};

use leftoff::store::now;
use leftoff_engine::broker::{State, View};
use leftoff_engine::coordinator::PartitionKey;
use leftoff_wire::Offset;

use super::authority::Authorities;
use super::groups::{named_partitions, standing};
use crate::cli::args::Global;
use crate::cli::args::upkeep::{Until, WaitArgs};
use crate::cli::args::value::TopicPartitions;
use crate::cli::failure::Failure;
use crate::cli::session::{disk, from_open, from_store, note, open_view};
use crate::cli::time::format_duration;

/// How often it looks. One look reads the marks, and the sidecars of files that keep an offset.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A partition, and where the group has to be in it.
struct Goal {
    key: PartitionKey,
    /// The next offset to read, at least.
    next: Offset,
}

/// Waits for a group.
pub fn wait(global: &Global, args: &WaitArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let disk = disk(&global.data)?;
    let mut view = open_view(global)?;
    let mut goals = if args.topics.is_empty() { Vec::new() } else { goals(view.state(), args)? };
    loop {
        if goals.is_empty() {
            goals = self::goals(view.state(), args)?;
        }
        let left = left(view.state(), &args.group, &goals)?;
        if left.is_empty() && !goals.is_empty() {
            note(global, &format!("group '{}' is there", args.group));
            return Ok(());
        }
        if global.timeout.is_some_and(|timeout| started.elapsed() >= timeout) {
            return Err(too_late(args, started.elapsed(), &left));
        }
        std::thread::sleep(LOOK_EVERY);
        let round = View::peek_round(&disk).map_err(|error| from_open(&global.data, error))?;
        if round != view.round() {
            view = open_view(global)?;
        }
    }
}

/// Where the group has to be: in what `-t` names, or in all partitions of the topics that it has offsets for. Empty as long
/// as there is no such group.
fn goals(state: &State, args: &WaitArgs) -> Result<Vec<Goal>, Failure> {
    let named = if args.topics.is_empty() { topics_of(state, &args.group) } else { args.topics.clone() };
    let goal = |key: PartitionKey| Ok(Goal { next: goal(state, &key, args.until)?, key });
    named_partitions(state, &named)?.into_iter().map(goal).collect()
}

/// The live topics that a group has offsets for.
pub fn topics_of(state: &State, group: &str) -> Vec<TopicPartitions> {
    let group = state.coordinator().group(group);
    let mut topics: Vec<&str> =
        group.iter().flat_map(|group| group.offsets()).map(|(topic, _, _)| topic).collect();
    topics.dedup();
    topics.retain(|topic| state.topic(topic).is_some());
    topics
        .into_iter()
        .map(|topic| TopicPartitions { topic: topic.to_owned(), partitions: Vec::new() })
        .collect()
}

fn goal(state: &State, key: &PartitionKey, until: Until) -> Result<Offset, Failure> {
    let log = standing::log(state, key.topic_id, key.partition);
    Ok(match until {
        Until::End => log.high_watermark(),
        Until::Offset(offset) => offset,
        Until::Time(time) => {
            let found = log.offset_for_time(time.unix_ms(now().as_ms()));
            let found = found.map_err(|error| from_store(log.dir(), error.into()))?;
            found.map_or(log.high_watermark(), |(offset, _)| offset)
        }
    })
}

/// The partitions in which the group is not there yet, and where it is.
fn left(state: &State, group: &str, goals: &[Goal]) -> Result<Vec<String>, Failure> {
    let Some(found) = state.coordinator().group(group) else {
        return Ok(goals.iter().map(nowhere).collect());
    };
    let authorities = Authorities::of(found)?;
    let mut left = Vec::new();
    for goal in goals {
        let Goal { key, next } = goal;
        let entry = found.entry(key);
        let in_file = entry.and_then(|entry| authorities.next(&entry.metadata, key));
        let at = in_file.map_or(entry.map(|entry| entry.committed), |(_, at)| at);
        match at {
            Some(at) if at.next() >= *next => {}
            // An empty partition needs no offset.
            None if *next == standing::log(state, key.topic_id, key.partition).log_start() => {}
            Some(at) => left.push(format!("{key} has offset {at} as the next to read, and not yet {next}")),
            None => left.push(nowhere(goal)),
        }
    }
    Ok(left)
}

fn nowhere(goal: &Goal) -> String {
    format!("{} has no offset, and should have {} as the next to read", goal.key, goal.next)
}

fn too_late(args: &WaitArgs, waited: Duration, left: &[String]) -> Failure {
    let waited = format_duration(i64::try_from(waited.as_millis()).unwrap_or(i64::MAX));
    let group = &args.group;
    let what = match left {
        [] => format!("there is no group '{group}' with an offset"),
        [one] => format!("group '{group}' has not come so far: {one}"),
        [first, rest @ ..] => {
            format!("group '{group}' has not come so far: {first} (and {} more)", rest.len())
        }
    };
    Failure::check_failed(format!("{what}, after {waited}"))
        .hint(format!("`leftoff groups describe {group}` shows where it is and who holds it"))
}
