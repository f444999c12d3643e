//! `leftoff groups …`: where groups stand, how they got there, and what moves them.

mod delete;
mod describe;
mod history;
mod import;
pub mod ls;
mod moving;
mod peek;
mod plan;
mod reset;
mod skip;
pub mod standing;
mod undo;

use leftoff::store::host_name;
use leftoff_engine::broker::State;
use leftoff_engine::coordinator::{Group, PartitionKey, Who};

use crate::cli::args::Global;
use crate::cli::args::groups::GroupsCommand;
use crate::cli::args::value::TopicPartitions;
use crate::cli::failure::Failure;
use crate::cli::nearest::did_you_mean;
use crate::cli::session::find_topic;

/// Does what the words behind `groups` say.
pub fn run(global: &Global, command: &GroupsCommand) -> Result<(), Failure> {
    match command {
        GroupsCommand::Ls => ls::ls(global),
        GroupsCommand::Describe(args) => describe::describe(global, args),
        GroupsCommand::Peek(args) => peek::peek(global, args),
        GroupsCommand::History(args) => history::history(global, args),
        GroupsCommand::Reset(args) => reset::reset(global, args),
        GroupsCommand::Skip(args) => skip::skip(global, args),
        GroupsCommand::Undo(args) => undo::undo(global, args),
        GroupsCommand::Delete(args) => delete::delete(global, args),
        GroupsCommand::DeleteOffsets(args) => delete::delete_offsets(global, args),
        GroupsCommand::Export(args) => import::export(global, args),
        GroupsCommand::Import(args) => import::import(global, args),
    }
}

/// A group by name, or a failure that names the nearest one.
pub fn find_group<'a>(state: &'a State, name: &str) -> Result<&'a Group, Failure> {
    state.coordinator().group(name).ok_or_else(|| no_group(state, name))
}

fn no_group(state: &State, name: &str) -> Failure {
    let names = || state.coordinator().groups().map(Group::name);
    let failure = Failure::cannot_reach(format!("there is no group '{name}'"));
    match did_you_mean(name, names()) {
        Some(hint) => failure.hint(hint),
        None if names().next().is_none() => failure.hint("there is none yet; `leftoff run` makes one"),
        None => failure.hint("`leftoff groups ls` lists them"),
    }
}

/// Whether `-t` asks for a partition; without `-t` all are meant.
fn is_wanted(filter: &[TopicPartitions], topic: &str, partition: i32) -> bool {
    let names = |one: &TopicPartitions| {
        one.topic == topic && (one.partitions.is_empty() || one.partitions.contains(&partition))
    };
    filter.is_empty() || filter.iter().any(names)
}

/// The partitions of live topics that `-t` names.
pub fn named_partitions(state: &State, named: &[TopicPartitions]) -> Result<Vec<PartitionKey>, Failure> {
    let mut keys = Vec::new();
    for TopicPartitions { topic, partitions } in named {
        let found = find_topic(state.topics().collect::<Vec<_>>().into_iter(), topic)?;
        for number in super::chosen_partitions(&found, partitions)? {
            keys.push(PartitionKey {
                topic: found.name.clone(),
                topic_id: found.topic_id,
                partition: number,
            });
        }
    }
    keys.sort();
    keys.dedup();
    Ok(keys)
}

/// Who it is that moves or deletes something from the command line.
fn person() -> Who {
    let uid = || format!("uid-{}", rustix::process::getuid().as_raw());
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| uid());
    Who::new("", &user, &host_name(), concat!("leftoff/", env!("CARGO_PKG_VERSION")))
}
