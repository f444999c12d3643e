//! `leftoff groups delete` and `delete-offsets`. What was there stays in the history, and can be undone.

use std::collections::BTreeSet;

use leftoff_engine::broker::Request;
use leftoff_engine::coordinator::Group;
use leftoff_engine::types::TopicPartition;

use super::moving::Quiet;
use super::{find_group, is_wanted, person};
use crate::cli::args::Global;
use crate::cli::args::groups::{DeleteArgs, DeleteOffsetsArgs};
use crate::cli::args::value::TopicPartitions;
use crate::cli::confirm::confirm;
use crate::cli::failure::Failure;
use crate::cli::session::{from_store, note, open_view};
use crate::cli::verbs::authority::keeper_in;

/// Deletes groups.
pub fn delete(global: &Global, args: &DeleteArgs) -> Result<(), Failure> {
    for name in &args.groups {
        let view = open_view(global)?;
        let group = find_group(view.state(), name)?;
        let count = group.offsets().count();
        confirm(&format!("delete group '{name}' with its offsets of {count} partitions?"), args.noconfirm)?;
        tell_of_places(global, group, &[]);
        let quiet = Quiet::open(global, "groups delete", name)?;
        let request = Request::DeleteGroup { group: name.clone(), who: person(), note: None };
        quiet.store.request(request).map_err(|error| from_store(&global.data, error))?;
        quiet.close()?;
        note(
            global,
            &format!("deleted group '{name}'; `leftoff groups undo {name}` brings its offsets back"),
        );
    }
    Ok(())
}

/// Deletes a group's offsets of some partitions.
pub fn delete_offsets(global: &Global, args: &DeleteOffsetsArgs) -> Result<(), Failure> {
    let name = &args.group;
    let view = open_view(global)?;
    let group = find_group(view.state(), name)?;
    // By the topic's name: the topic may be gone.
    let named = group.offsets().filter(|(topic, number, _)| is_wanted(&args.topics, topic, *number));
    let partitions: Vec<_> =
        named.map(|(topic, partition, _)| TopicPartition { topic: topic.to_owned(), partition }).collect();
    if partitions.is_empty() {
        return Err(Failure::cannot_reach(format!("group '{name}' has no offsets there"))
            .hint(format!("`leftoff groups describe {name}` shows those that it has")));
    }
    let count = partitions.len();
    confirm(&format!("delete the offsets of group '{name}' for {count} partitions?"), args.noconfirm)?;
    tell_of_places(global, group, &args.topics);
    let quiet = Quiet::open(global, "groups delete-offsets", name)?;
    let request = Request::DeleteOffsets { group: name.clone(), partitions, who: person(), note: None };
    quiet.store.request(request).map_err(|error| from_store(&global.data, error))?;
    quiet.close()?;
    note(global, &format!("deleted {count} offsets; `leftoff groups undo {name}` brings them back"));
    Ok(())
}

/// A place that keeps the offset itself is not touched, and a run with it goes on where it says.
fn tell_of_places(global: &Global, group: &Group, filter: &[TopicPartitions]) {
    let named = group.offsets().filter(|(topic, number, _)| is_wanted(filter, topic, *number));
    let places = named.filter_map(|(_, _, entry)| keeper_in(&entry.metadata));
    let places: BTreeSet<String> = places.map(|place| place.to_string()).collect();
    for place in places {
        note(global, &format!("{place} keeps its own offset; a run with it goes on where the place says"));
    }
}
