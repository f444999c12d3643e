//! A hold on a group, and what it takes to save its offsets: shared by the source that reads for the group and the sink that
//! writes for it in the same directory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leftoff_consumer::source::PartitionId as SourceId;
use leftoff_engine::broker::{CommitSet, PartitionId, Position, Refusal, Request, Topic};
use leftoff_engine::coordinator::{
    Commit, CommitError, Entry, GroupError, MAX_METADATA_BYTES, OffsetToCommit, Ownership, PartitionKey, Who,
    Why,
};
use leftoff_wire::Committed;
use leftoff_wire::record_batch::Batches;

use crate::store::{Store, StoreError};

/// A member's hold on its group. Clones are the same hold.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) store: Store,
    pub(crate) group: String,
    pub(crate) ownership: Ownership,
    who: Who,
    /// The name of each partition's topic.
    topics: Arc<Mutex<BTreeMap<SourceId, String>>>,
    kept: Arc<Mutex<Kept>>,
}

/// What source and sink tell each other.
#[derive(Debug, Default)]
struct Kept {
    /// Kept with each offset.
    words: String,
    /// The same for one partition.
    words_of: BTreeMap<SourceId, String>,
    /// The topic of dead letters.
    dead_letters: String,
    /// What the sink has saved together with its records.
    saved: BTreeMap<SourceId, Committed>,
}

/// One offset to save.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneOffset<'a> {
    pub(crate) id: SourceId,
    pub(crate) committed: Committed,
    /// -1 if unknown.
    pub(crate) leader_epoch: i32,
    /// Its own words, before those of the partition, or the group.
    pub(crate) words: &'a str,
}

/// Why offsets were not saved. None of them was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HoldError {
    /// Somebody else holds the group now.
    #[error("another member has taken the group over")]
    Ended,
    /// The partition is not one that this member reads.
    #[error("partition {0} is not read by this member")]
    NotHeld(SourceId),
    /// Refused for safety.
    #[error("{0}")]
    Refused(Refusal),
    /// Anything else.
    #[error("{0}")]
    Storage(StoreError),
}

impl Hold {
    pub(crate) fn new(
        store: &Store,
        group: &str,
        ownership: Ownership,
        who: Who,
        topics: BTreeMap<SourceId, String>,
    ) -> Hold {
        let (store, group, topics) = (store.clone(), group.to_owned(), Arc::new(Mutex::new(topics)));
        Hold { store, group, ownership, who, topics, kept: Arc::default() }
    }

    /// Saves offsets, and appends records in the same step. Returns when all of it is on disk.
    pub(crate) fn save(
        &self,
        offsets: &[OneOffset<'_>],
        appends: Vec<(PartitionId, Batches)>,
        why: Why,
        note: Option<String>,
    ) -> Result<(), HoldError> {
        let offsets = offsets.iter().map(|one| self.to_commit(one)).collect::<Result<_, _>>()?;
        let (group, fence, who) = (self.group.clone(), Some(self.ownership.clone()), self.who.clone());
        let commit = Commit { group, fence, offsets, who, why, note, strict: true };
        let set = CommitSet { appends, position: Position::Group(commit) };
        match self.store.request(Request::CommitSet(set)) {
            Ok(_) => Ok(()),
            Err(StoreError::Refused(Refusal::Commit(CommitError::Group(GroupError::FencedGeneration {
                ..
            })))) => Err(HoldError::Ended),
            Err(StoreError::Refused(
                refusal @ (Refusal::Commit(_)
                | Refusal::Group(_)
                | Refusal::TooLarge { .. }
                | Refusal::UnknownPartition(_)),
            )) => Err(HoldError::Refused(refusal)),
            Err(error) => Err(HoldError::Storage(error)),
        }
    }

    fn to_commit(&self, one: &OneOffset<'_>) -> Result<OffsetToCommit, HoldError> {
        let key = self.key(one.id).ok_or(HoldError::NotHeld(one.id))?;
        let kept = self.kept();
        let place = kept.words_of.get(&one.id).unwrap_or(&kept.words);
        Ok(OffsetToCommit {
            key,
            committed: one.committed,
            leader_epoch: Some(one.leader_epoch).filter(|epoch| *epoch >= 0),
            metadata: joined(one.words, place),
        })
    }

    /// A partition that the topic has got since.
    pub(crate) fn add(&self, id: SourceId, topic: String) {
        self.topics().insert(id, topic);
    }

    fn topics(&self) -> MutexGuard<'_, BTreeMap<SourceId, String>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A partition that this member reads, by name and id.
    pub(crate) fn key(&self, id: SourceId) -> Option<PartitionKey> {
        let topic = self.topics().get(&id)?.clone();
        Some(PartitionKey { topic, topic_id: id.topic_id, partition: id.partition })
    }

    /// Whether this member reads a topic.
    pub(crate) fn reads(&self, topic_id: leftoff_wire::Uuid) -> bool {
        self.topics().keys().any(|id| id.topic_id == topic_id)
    }

    /// What the group has for a partition that this member reads.
    pub(crate) fn entry(&self, id: SourceId) -> Option<Entry> {
        let key = self.key(id)?;
        self.store.with_state(|state| state.coordinator().entry(&self.group, &key).cloned())
    }

    /// What is kept with each offset, unless its partition has words of its own.
    pub(crate) fn words(&self) -> String {
        self.kept().words.clone()
    }

    pub(crate) fn set_words(&self, words: String) {
        self.kept().words = words;
    }

    pub(crate) fn set_words_of(&self, id: SourceId, words: String) {
        self.kept().words_of.insert(id, words);
    }

    pub(crate) fn set_dead_letters(&self, topic: String) {
        self.kept().dead_letters = topic;
    }

    /// Where dead letters are appended.
    pub(crate) fn dead_letters_to(&self) -> Result<(PartitionId, Topic), String> {
        let name = self.kept().dead_letters.clone();
        let topic = self.store.topic(&name).ok_or_else(|| {
            format!("dead letters go to topic {name:?}, which does not exist; `leftoff topics create {name}` makes it")
        })?;
        Ok((PartitionId { topic_id: topic.topic_id, partition: 0 }, topic))
    }

    /// The sink has saved this one.
    pub(crate) fn note_saved(&self, id: SourceId, committed: Committed) {
        self.kept().saved.insert(id, committed);
    }

    /// Whether the sink has saved this one already.
    pub(crate) fn is_saved(&self, id: SourceId, committed: Committed) -> bool {
        self.kept().saved.get(&id) == Some(&committed)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The runner's words and those of the place; the former are left out where both do not fit.
fn joined(words: &str, place: &str) -> String {
    if words.is_empty() || words.len() + 1 + place.len() > MAX_METADATA_BYTES {
        return place.to_owned();
    }
    if place.is_empty() { words.to_owned() } else { format!("{words} {place}") }
}
