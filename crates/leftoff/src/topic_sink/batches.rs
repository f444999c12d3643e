//! The data batches of a commit set: records with what tells where they came from, and evidence for events without any.

use std::collections::{BTreeMap, BTreeSet};

use leftoff_consumer::sink::{DeadLetter, ID_KEY};
use leftoff_engine::broker::{PartitionId, RESERVED_PRODUCER_ID, Topic};
use leftoff_wire::record_batch::{BatchBuilder, Batches};
use leftoff_wire::{Offset, Uuid};

use super::record::NewEvent;
use crate::dead_letters;
use crate::store::now;

/// The header that names the group which wrote a record.
pub const GROUP_HEADER: &str = "leftoff_group";
/// The header, of evidence, that names the other topics which records of the same set went to.
pub const TOPICS_HEADER: &str = "leftoff_topics";
/// The key of evidence, which is a control record: version 0 and our own type.
pub const EVIDENCE_KEY: [u8; 4] = [0, 0, 0x4c, 0x02];

/// A batch is closed at this size, or at what its topic takes.
const BATCH_BYTES: usize = 4 << 20;
/// The text of one record of evidence has at most about so many bytes.
const EVIDENCE_BYTES: usize = 64 << 10;
/// The most that a record takes beside key, value and headers: seven varints and a byte.
const RECORD_OVERHEAD_BYTES: usize = 40;
/// The most that a header takes beside name and value: two varints.
const HEADER_OVERHEAD_BYTES: usize = 10;
/// The most bytes of a `leftoff_id`.
const ID_BYTES: usize = 22 + 1 + 10 + 1 + 19 + 1 + 20;

/// The most that a record of this event takes in a batch.
pub(super) fn record_bytes(event: &NewEvent, group: &str) -> usize {
    let len = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
    let headers = event.headers.iter().map(|(name, value)| name.len() + len(value) + HEADER_OVERHEAD_BYTES);
    let own = [ID_KEY.len() + ID_BYTES, GROUP_HEADER.len() + group.len()];
    let own = own.into_iter().map(|bytes| bytes + HEADER_OVERHEAD_BYTES);
    RECORD_OVERHEAD_BYTES + len(&event.key) + len(&event.value) + headers.sum::<usize>() + own.sum::<usize>()
}

/// Collects the batches of one commit set.
pub(super) struct SetBuilder<'a> {
    group: &'a str,
    producer_id: i64,
    timestamp_ms: i64,
    open: BTreeMap<PartitionId, BatchBuilder>,
    full: Vec<(PartitionId, Batches)>,
}

impl<'a> SetBuilder<'a> {
    /// `at` is the end of the offsets log: the ids of sets rise with it.
    pub(super) fn new(group: &'a str, at: Offset) -> SetBuilder<'a> {
        SetBuilder {
            group,
            producer_id: RESERVED_PRODUCER_ID.saturating_add(at.get()),
            timestamp_ms: now().as_ms(),
            open: BTreeMap::new(),
            full: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, to: PartitionId, topic: &Topic, event: &NewEvent, id: &str) {
        let own = [(ID_KEY, Some(id.as_bytes())), (GROUP_HEADER, Some(self.group.as_bytes()))];
        let given = event.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref()));
        let headers: Vec<(&str, Option<&[u8]>)> = given.chain(own).collect();
        let room = record_bytes(event, self.group);
        self.push_record(to, topic, room, (event.key.as_deref(), event.value.as_deref()), &headers);
    }

    /// An event that was given up, with what tells of that.
    pub(super) fn push_letter(&mut self, to: PartitionId, topic: &Topic, letter: &DeadLetter) {
        let told = dead_letters::told(letter);
        let headers = dead_letters::headers(letter, &told);
        let (key, value) = (letter.event.key.as_deref(), letter.event.value.as_deref());
        let len = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len) + HEADER_OVERHEAD_BYTES;
        let room = headers.iter().map(|(name, value)| name.len() + len(*value)).sum::<usize>();
        self.push_record(
            to,
            topic,
            RECORD_OVERHEAD_BYTES + room + len(key) + len(value),
            (key, value),
            &headers,
        );
    }

    fn push_record(
        &mut self,
        to: PartitionId,
        topic: &Topic,
        room_bytes: usize,
        (key, value): (Option<&[u8]>, Option<&[u8]>),
        headers: &[(&str, Option<&[u8]>)],
    ) {
        let limit =
            usize::try_from(topic.settings.max_message_bytes()).unwrap_or(usize::MAX).min(BATCH_BYTES);
        let builder = self.open.entry(to).or_default();
        if !builder.is_empty() && builder.bytes_estimate() + room_bytes > limit {
            self.full.push((to, built(builder)));
        }
        builder.producer(self.producer_id, 0, 0);
        builder.push(self.timestamp_ms, key, value, headers);
    }

    /// Evidence, into a partition of `topic` that gets records anyway, or the one given.
    pub(super) fn push_evidence(
        &mut self,
        topic: &Topic,
        unless: PartitionId,
        lines: &str,
        elsewhere: &BTreeSet<Uuid>,
    ) {
        if lines.is_empty() && elsewhere.is_empty() {
            return;
        }
        let here = |id: &&PartitionId| id.topic_id == topic.topic_id;
        let to = self.open.keys().find(here).copied().unwrap_or(unless);
        let topics: Vec<String> = elsewhere.iter().map(Uuid::to_string).collect();
        let topics = topics.join(",");
        let mut headers = vec![(GROUP_HEADER, Some(self.group.as_bytes()))];
        if !topics.is_empty() {
            headers.push((TOPICS_HEADER, Some(topics.as_bytes())));
        }
        self.close(to);
        let most = usize::try_from(topic.settings.max_message_bytes() / 2).unwrap_or(EVIDENCE_BYTES);
        for part in parts(lines, most.min(EVIDENCE_BYTES)) {
            let mut batch = BatchBuilder::default();
            batch.producer(self.producer_id, 0, 0).control(true);
            batch.push(self.timestamp_ms, Some(&EVIDENCE_KEY), Some(part.as_bytes()), &headers);
            self.full.push((to, built(&mut batch)));
        }
    }

    /// The batches of each partition in the order in which they are to be appended.
    pub(super) fn build(mut self) -> Vec<(PartitionId, Batches)> {
        let open: Vec<PartitionId> = self.open.keys().copied().collect();
        open.into_iter().for_each(|id| self.close(id));
        self.full
    }

    fn close(&mut self, id: PartitionId) {
        if let Some(mut builder) = self.open.remove(&id).filter(|builder| !builder.is_empty()) {
            self.full.push((id, built(&mut builder)));
        }
    }
}

/// Whole lines, about `most` bytes at a time; at least one part.
fn parts(lines: &str, most: usize) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), lines);
    while rest.len() > most {
        // By bytes: the reason in a line may have any character at the limit.
        let is_end = |byte: &u8| *byte == b'\n';
        let (near, bytes) = (&rest.as_bytes()[..most], rest.as_bytes());
        let end = near.iter().rposition(is_end).or_else(|| bytes.iter().position(is_end));
        let end = end.map_or(rest.len(), |at| at + 1);
        let (part, behind) = rest.split_at(end);
        parts.push(part);
        rest = behind;
    }
    if parts.is_empty() || !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

fn built(builder: &mut BatchBuilder) -> Batches {
    let bytes = builder.build().expect("it has records, and fewer bytes than a length field can tell");
    Batches::parse(bytes).expect("what was built just now is whole")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_cut_between_lines() {
        let table: [(&str, usize, &[&str]); 7] = [
            ("a…\nb\n", 3, &["a…\n", "b\n"]),
            ("", 4, &[""]),
            ("ab\n", 4, &["ab\n"]),
            ("ab\ncd\nef\n", 4, &["ab\n", "cd\n", "ef\n"]),
            ("ab\ncd\nef\n", 6, &["ab\ncd\n", "ef\n"]),
            ("ab\ncd\nef\n", 9, &["ab\ncd\nef\n"]),
            ("abcdefgh\nij\n", 4, &["abcdefgh\n", "ij\n"]),
        ];
        for (lines, most, expect) in table {
            assert_eq!(parts(lines, most), expect, "{lines:?} {most}");
        }
    }
}
