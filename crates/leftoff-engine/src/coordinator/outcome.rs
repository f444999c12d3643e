//! What a handler gives back: the reply, and the records that make it so.

use leftoff_wire::consumer_offsets::{GroupMetadataValue, Key, OffsetCommitValue, SourceProgress};

use super::story::Story;

/// One record of the offsets log, to be appended in the order given and replayed with the offset that it got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Kafka's own bytes for the key.
    pub key: Vec<u8>,
    /// Kafka's own bytes for the value; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
    /// The story of the record, see `docs/on-disk.md`. Keys are static names.
    pub headers: Vec<(&'static str, Vec<u8>)>,
}

/// A decision: what to answer once the records are on disk.
///
/// The records of one outcome have different keys and go into the log next to each other. They are to be replayed before another handler
/// decides about the same group or source, because a record names the record before it under its key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a decision without its records did not happen"]
pub struct Outcome<T> {
    /// The answer, true from the moment the records are durable.
    pub reply: T,
    /// What makes it true.
    pub records: Vec<Record>,
}

/// A record of a group's offset; without a value a tombstone.
pub(super) fn offset_record(
    group: &str,
    topic: &str,
    partition: i32,
    value: Option<&OffsetCommitValue>,
    story: &Story,
) -> Record {
    let key = Key::OffsetCommit { group: group.to_owned(), topic: topic.to_owned(), partition };
    Record { key: key.encode(), value: value.map(OffsetCommitValue::encode), headers: story.to_headers() }
}

/// A record of a group's membership; without a value a tombstone.
pub(super) fn group_record(group: &str, value: Option<&GroupMetadataValue>, story: &Story) -> Record {
    let key = Key::GroupMetadata { group: group.to_owned() };
    Record { key: key.encode(), value: value.map(GroupMetadataValue::encode), headers: story.to_headers() }
}

/// A record of a source's progress.
pub(super) fn source_record(source: &str, progress: &SourceProgress, story: &Story) -> Record {
    let key = Key::SourceProgress { source: source.to_owned() };
    Record { key: key.encode(), value: Some(progress.encode()), headers: story.to_headers() }
}
