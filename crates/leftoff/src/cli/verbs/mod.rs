//! The verbs, a file each.

pub mod authority;
pub mod backup;
pub mod check;
pub mod consume;
pub mod demo;
pub mod dlq;
pub mod doctor;
pub mod groups;
pub mod produce;
pub mod run;
pub mod serve;
pub mod topics;
pub mod wait;

use std::io::{self, Write};

use leftoff_engine::broker::Topic;

use super::failure::Failure;

/// Writes to stdout in one piece; a reader that has gone is no error.
pub fn printed(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    write(&mut bytes).and_then(|()| io::stdout().write_all(&bytes)).map_err(Failure::stdout)
}

/// The partitions that `-p` names, or all of the topic's; in order and each once.
pub fn chosen_partitions(topic: &Topic, asked: &[i32]) -> Result<Vec<i32>, Failure> {
    if let Some(number) = asked.iter().find(|number| **number >= topic.partitions) {
        return Err(no_partition(topic, *number));
    }
    let mut chosen: Vec<i32> =
        if asked.is_empty() { (0..topic.partitions).collect() } else { asked.to_vec() };
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

/// `-p` or an event names a partition that the topic does not have.
pub fn no_partition(topic: &Topic, number: i32) -> Failure {
    let last = topic.partitions - 1;
    let failure = Failure::usage(format!("{} has no partition {number}", topic.name));
    if last == 0 {
        failure.hint("it has one, 0; `leftoff topics alter` gives it more")
    } else {
        failure.hint(format!("it has 0 to {last}; `leftoff topics alter` gives it more"))
    }
}

/// `1 event`, `1707 events`
pub fn events(count: u64) -> String {
    if count == 1 { "1 event".to_owned() } else { format!("{count} events") }
}
