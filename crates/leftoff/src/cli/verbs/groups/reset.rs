//! `leftoff groups reset`

use std::fs::File;
use std::io::BufReader;

use leftoff::store::now;
use leftoff_engine::broker::State;
use leftoff_engine::coordinator::{self, Group, PartitionKey, Why};

use super::moving::Moving;
use super::plan::Step;
use super::standing::log;
use super::{find_group, is_wanted, named_partitions};
use crate::cli::args::Global;
use crate::cli::args::groups::{ResetArgs, ResetTo};
use crate::cli::args::value::TopicPartitions;
use crate::cli::failure::Failure;
use crate::cli::offset_lines::{OffsetLine, read_offset_lines};
use crate::cli::session::from_store;

/// Shows what a reset repeats and skips; with `--execute` does it.
pub fn reset(global: &Global, args: &ResetArgs) -> Result<(), Failure> {
    let to = args.to();
    let lines = match &to {
        ResetTo::File(path) => {
            let file = File::open(path)
                .map_err(|error| Failure::usage(format!("cannot open {}: {error}", path.display())))?;
            read_offset_lines(BufReader::new(file))?
        }
        _ => Vec::new(),
    };
    let moving = Moving {
        verb: "groups reset",
        group: &args.group,
        why: Why::Reset,
        note: flag(&to),
        execute: args.execute,
    };
    moving.go(global, |state, authorities| {
        let mut steps = Vec::new();
        for key in partitions(state, args, &lines)? {
            if let Some(to) = target(state, &to, &key, &lines)? {
                steps.push(Step::to(state, &args.group, authorities, &key, to)?);
            }
        }
        if steps.is_empty() {
            return Err(Failure::usage(format!("{} gives no offset for any of the partitions", flag(&to))));
        }
        Ok(steps)
    })
}

/// The partitions to move.
fn partitions(state: &State, args: &ResetArgs, lines: &[OffsetLine]) -> Result<Vec<PartitionKey>, Failure> {
    if !args.topics.is_empty() {
        return named_partitions(state, &args.topics);
    }
    let topics: Vec<String> = match args.all_topics {
        true => find_group(state, &args.group)?.offsets().map(|(topic, _, _)| topic.to_owned()).collect(),
        false => lines.iter().map(|line| line.topic.clone()).collect(),
    };
    let live = |topic: &String| !args.all_topics || state.topic(topic).is_some();
    let named = |topic: String| TopicPartitions { topic, partitions: Vec::new() };
    let named: Vec<_> = topics.into_iter().filter(live).map(named).collect();
    named_partitions(state, &named)
}

/// Where one partition goes; `None` if the file or the other group says nothing of it.
fn target(
    state: &State,
    to: &ResetTo,
    key: &PartitionKey,
    lines: &[OffsetLine],
) -> Result<Option<coordinator::ResetTo>, Failure> {
    use coordinator::ResetTo as To;
    Ok(Some(match to {
        ResetTo::Earliest => To::Earliest,
        ResetTo::Latest => To::Latest,
        ResetTo::Current => To::Current,
        ResetTo::Offset(offset) => To::Offset(offset.get()),
        ResetTo::ShiftBy(by) => To::ShiftBy(*by),
        ResetTo::Time(time) => {
            let log = log(state, key.topic_id, key.partition);
            let found = log.offset_for_time(time.unix_ms(now().as_ms()));
            // Nothing that late: behind the last event, as Kafka has it.
            let found = found.map_err(|error| from_store(log.dir(), error.into()))?;
            To::Resolved(found.map_or(log.high_watermark(), |(offset, _)| offset))
        }
        ResetTo::File(_) => {
            let is_it = |line: &&OffsetLine| line.topic == key.topic && line.partition == key.partition;
            let Some(line) = lines.iter().find(is_it) else { return Ok(None) };
            To::Offset(line.next.get())
        }
        ResetTo::Group(other) => {
            let other: &Group = find_group(state, other)?;
            let Some(entry) = other.entry(key) else { return Ok(None) };
            To::Committed(entry.committed)
        }
    }))
}

/// The flag as the user wrote it, for the history.
fn flag(to: &ResetTo) -> String {
    match to {
        ResetTo::Earliest => "--to-earliest".to_owned(),
        ResetTo::Latest => "--to-latest".to_owned(),
        ResetTo::Current => "--to-current".to_owned(),
        ResetTo::Offset(offset) => format!("--to-offset {offset}"),
        ResetTo::ShiftBy(by) => format!("--shift-by {by}"),
        ResetTo::Time(time) => {
            let at = crate::cli::time::format_time(time.unix_ms(now().as_ms()));
            format!("--to-datetime {at}")
        }
        ResetTo::File(path) => format!("--from-file {}", path.display()),
        ResetTo::Group(group) => format!("--to-group {group}"),
    }
}

/// For imports: every line must be of a partition that is there.
pub fn check_lines(state: &State, lines: &[OffsetLine]) -> Result<Vec<PartitionKey>, Failure> {
    let named: Vec<_> = lines
        .iter()
        .map(|line| TopicPartitions { topic: line.topic.clone(), partitions: vec![line.partition] })
        .collect();
    let keys = named_partitions(state, &named)?;
    assert!(keys.iter().all(|key| is_wanted(&named, &key.topic, key.partition)), "what was named was found");
    Ok(keys)
}
