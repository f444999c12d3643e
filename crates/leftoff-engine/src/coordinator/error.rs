//! What a handler refuses, and what replay cannot read.

use leftoff_wire::{Committed, Offset, primitives::MAX_STR_BYTES};

use super::{Bounds, Ownership, PartitionKey};

/// Why a group was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// A group, or a source, needs a name.
    #[error("the name of the {of} is empty")]
    EmptyName {
        /// `group` or `source`.
        of: &'static str,
    },
    /// The name does not fit into the key of a record.
    #[error("the name of the {of} has {bytes} bytes, at most {MAX_STR_BYTES} fit")]
    NameTooLong {
        /// `group` or `source`.
        of: &'static str,
        /// The bytes of the name.
        bytes: usize,
    },
    /// A join without a member id.
    #[error("a member of group {group} needs a member id")]
    NoMemberId {
        /// The group.
        group: String,
    },
    /// The hold that was shown is not the one on the group.
    #[error("fenced: {held} is not current in group {group}, which {}", now_is(*generation, owner.as_deref()))]
    FencedGeneration {
        /// The group.
        group: String,
        /// What was shown.
        held: Ownership,
        /// The generation of the group.
        generation: i32,
        /// The member that holds the group now.
        owner: Option<String>,
    },
    /// Somebody holds the group and would not notice.
    #[error("group {group} is held by {owner}: stop it first")]
    MemberPresent {
        /// The group.
        group: String,
        /// Who holds it.
        owner: Ownership,
    },
    /// No such group.
    #[error("there is no group {group}")]
    UnknownGroup {
        /// The group.
        group: String,
    },
    /// Nothing to delete.
    #[error("group {group} has no offset for {topic}/{partition}")]
    NoOffset {
        /// The group.
        group: String,
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
    },
    /// One call names a partition twice; which of the two is meant?
    #[error("{topic}/{partition} is named twice")]
    NamedTwice {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
    },
    /// The note does not fit.
    #[error("the note has {bytes} bytes, at most {} fit", super::MAX_NOTE_BYTES)]
    NoteTooLong {
        /// The bytes of the note.
        bytes: usize,
    },
    /// The generation cannot rise any more.
    #[error("group {group} has had its last generation, {generation}: delete the group or take another name")]
    NoMoreGenerations {
        /// The group.
        group: String,
        /// The generation.
        generation: i32,
    },
}

/// Why a commit was refused, as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The group does not take it.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The topic or the partition does not exist, or the topic was made anew.
    #[error("unknown partition {key} (topic id {})", key.topic_id)]
    UnknownPartition {
        /// The partition.
        key: PartitionKey,
    },
    /// The offset lies above the end, and the commit was strict.
    #[error("{key}: cannot commit {committed}, which lies above the end; readable is {bounds}")]
    AboveEnd {
        /// The partition.
        key: PartitionKey,
        /// What was to be committed.
        committed: Committed,
        /// What can be read.
        bounds: Bounds,
    },
    /// The metadata is longer than Kafka's limit.
    #[error("{key}: metadata of {bytes} bytes, at most {} fit", super::MAX_METADATA_BYTES)]
    MetadataTooLarge {
        /// The partition.
        key: PartitionKey,
        /// The bytes of the metadata.
        bytes: usize,
    },
}

/// Why a record of the offsets log cannot be replayed, or read as history. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The offsets of the records must rise.
    #[error("offsets log: record {at} comes after record {last}")]
    NotRising {
        /// The record.
        at: Offset,
        /// The one replayed before.
        last: Offset,
    },
    /// Key or value is not what the record's type says.
    #[error("offsets log: record {at}: {what}")]
    BadRecord {
        /// The record.
        at: Offset,
        /// What is wrong with it.
        what: String,
    },
    /// A header does not read.
    #[error("offsets log: record {at}: header {name} says {value:?}")]
    BadHeader {
        /// The record.
        at: Offset,
        /// The header's name.
        name: &'static str,
        /// Its value, cut if long.
        value: String,
    },
    /// Two records name the same record as the one before them: the second was decided before the first was replayed.
    #[error("offsets log: record {at} follows record {prev:?} of its key, but record {last} came between")]
    ForkedChain {
        /// The record.
        at: Offset,
        /// What it names.
        prev: Option<Offset>,
        /// The key's last record.
        last: Offset,
    },
    /// A generation must never fall.
    #[error("offsets log: record {at}: generation {generation} of group {group} after {last}")]
    GenerationFell {
        /// The record.
        at: Offset,
        /// The group.
        group: String,
        /// The record's generation.
        generation: i32,
        /// The generation before.
        last: i32,
    },
}

/// Refuses a name that a record's key cannot hold.
pub(super) fn check_name(of: &'static str, name: &str) -> Result<(), GroupError> {
    match name.len() {
        0 => Err(GroupError::EmptyName { of }),
        bytes if bytes > MAX_STR_BYTES => Err(GroupError::NameTooLong { of, bytes }),
        _ => Ok(()),
    }
}

fn now_is(generation: i32, owner: Option<&str>) -> String {
    match owner {
        Some(member) => format!("is held by member {member} of generation {generation}"),
        None => format!("has generation {generation} and no member"),
    }
}
