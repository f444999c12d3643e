//! What was asked, acknowledged and seen while a workload ran: all that an oracle needs to judge what is left of it.
//!
//! A log keeps what was written in order, so what survives of each log is a *prefix* of what was asked, and at least up
//! to the last thing that was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leftoff_engine::broker::{PartitionId, RequestId, State, Topic};
use leftoff_engine::coordinator::Group;
use leftoff_wire::Uuid;

/// Everything that is known.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Changes of the metadata log that were asked for, in order.
    pub topics: Vec<Fact<TopicChange>>,
    /// Events, by partition.
    pub partitions: BTreeMap<PartitionId, Events>,
    /// Batches that were taken back, of requests that were not told so: a power cut may bring them back as long as nothing
    /// else has their place.
    pub ghosts: Vec<(PartitionId, Fact<BatchFact>)>,
    /// Changes of the offsets log that were asked for, in order.
    pub offsets: Vec<Fact<OffsetsChange>>,
}

/// Something that was asked for.
#[derive(Debug, Clone)]
pub struct Fact<T> {
    /// By which request.
    pub request: RequestId,
    /// Whether anybody was told that it is so.
    pub is_known: bool,
    /// What.
    pub what: T,
}

/// A change of topics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicChange {
    /// It is made, or has more partitions.
    Made {
        /// Its id.
        topic_id: Uuid,
        /// Its name.
        name: String,
        /// How many partitions from here on.
        partitions: i32,
    },
    /// It is deleted.
    Deleted {
        /// Its id.
        topic_id: Uuid,
    },
}

/// Live topics: name and number of partitions.
pub type Topics = BTreeMap<Uuid, (String, i32)>;

/// The events of one partition.
#[derive(Debug, Clone, Default)]
pub struct Events {
    /// In order, without holes.
    pub batches: Vec<Fact<BatchFact>>,
    /// Batches behind them that may be back.
    pub ghosts: Vec<BatchFact>,
    /// The highest log start that anybody saw.
    pub seen_start: i64,
    /// The highest log start that anything that was asked for could lead to.
    pub possible_start: i64,
    /// The highest end that anybody could read up to.
    pub seen_end: i64,
}

/// A batch as it must be found.
#[derive(Debug, Clone)]
pub struct BatchFact {
    /// Its first offset.
    pub base: i64,
    /// One behind its last offset.
    pub next: i64,
    /// All of it as it was given; base offset and leader epoch differ on the disk.
    pub bytes: Arc<[u8]>,
}

/// A change of groups and sources, in one batch of the offsets log.
#[derive(Debug, Clone, Default)]
pub struct OffsetsChange {
    /// Each key's new value; `None`: it has none any more.
    pub values: Vec<(Key, Option<Value>)>,
    /// The partitions of the commit set's data batches, which are those of the same request.
    pub outputs: Vec<PartitionId>,
}

/// What the offsets log keeps a value for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Group, topic name, partition.
    Offset(String, String, i32),
    /// Who holds a group.
    Owner(String),
    /// A source.
    Source(String),
}

/// What it keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// The next offset to read, of this incarnation of the topic.
    Next(Uuid, i64),
    /// Member and generation.
    Held(String, i32),
    /// How many bytes of a source were read.
    Bytes(u64),
}

/// Every value.
pub type Values = BTreeMap<Key, Value>;

impl History {
    /// The request was acknowledged.
    pub fn acknowledge(&mut self, request: RequestId) {
        known(&mut self.topics, request);
        known(&mut self.offsets, request);
        for events in self.partitions.values_mut() {
            known(&mut events.batches, request);
        }
    }

    /// The request was taken back, and may not be told so.
    pub fn make_ghosts(&mut self, request: RequestId) {
        for (partition, events) in &self.partitions {
            let ghosts = events.batches.iter().filter(|fact| fact.request == request);
            self.ghosts.extend(ghosts.map(|fact| (*partition, fact.clone())));
        }
        let ghosts = std::mem::take(&mut self.ghosts);
        self.forget(request);
        self.ghosts = ghosts;
    }

    /// The request was refused: nothing of it may ever be seen.
    pub fn forget(&mut self, request: RequestId) {
        self.ghosts.retain(|(_, fact)| fact.request != request);
        self.topics.retain(|fact| fact.request != request);
        self.offsets.retain(|fact| fact.request != request);
        for events in self.partitions.values_mut() {
            events.batches.retain(|fact| fact.request != request);
            events.close_ranks();
        }
    }

    /// One behind the last offset of what a request appends to a partition.
    pub fn end_of(&self, request: RequestId, partition: &PartitionId) -> Option<i64> {
        let batches = &self.partitions.get(partition)?.batches;
        batches.iter().rev().find(|fact| fact.request == request).map(|fact| fact.what.next)
    }

    /// The same, as somebody knows it who was told of these requests only.
    pub fn as_told(&self, told: &BTreeSet<RequestId>) -> History {
        let mut history = self.clone();
        history.topics.iter_mut().for_each(|fact| fact.is_known = told.contains(&fact.request));
        history.offsets.iter_mut().for_each(|fact| fact.is_known = told.contains(&fact.request));
        for events in history.partitions.values_mut() {
            events.batches.iter_mut().for_each(|fact| fact.is_known = told.contains(&fact.request));
            (events.seen_start, events.seen_end) = (0, 0);
        }
        history
    }

    /// The topics after the first `count` changes.
    pub fn topics_after(&self, count: usize) -> Topics {
        let mut topics = Topics::new();
        for fact in &self.topics[..count] {
            match &fact.what {
                TopicChange::Made { topic_id, name, partitions } => {
                    topics.insert(*topic_id, (name.clone(), *partitions));
                }
                TopicChange::Deleted { topic_id } => {
                    topics.remove(topic_id);
                }
            }
        }
        topics
    }

    /// Topics of which a deletion is among the first `count` changes.
    pub fn deleted_after(&self, count: usize) -> BTreeSet<Uuid> {
        let deleted = self.topics[..count].iter().filter_map(|fact| match fact.what {
            TopicChange::Deleted { topic_id } => Some(topic_id),
            TopicChange::Made { .. } => None,
        });
        deleted.collect()
    }

    /// Groups and sources after the first `count` changes.
    pub fn values_after(&self, count: usize) -> Values {
        let mut values = Values::new();
        for fact in &self.offsets[..count] {
            for (key, value) in &fact.what.values {
                match value {
                    Some(value) => values.insert(key.clone(), value.clone()),
                    None => values.remove(key),
                };
            }
        }
        values
    }

    /// The topic of that name after everything that was asked for: its id and number of partitions.
    pub fn topic(&self, name: &str) -> Option<(Uuid, i32)> {
        let topics = self.topics_after(self.topics.len());
        topics.iter().find(|(_, (live, _))| live == name).map(|(id, (_, partitions))| (*id, *partitions))
    }

    /// Takes note of what anybody can read now.
    pub fn see(&mut self, state: &State) {
        for (partition, events) in &mut self.partitions {
            if let Some(log) = state.log(partition) {
                events.seen_start = events.seen_start.max(log.log_start().get());
                events.seen_end = events.seen_end.max(log.high_watermark().get());
            }
        }
    }

    /// Retention may take everything that can be read now.
    pub fn allow_retention(&mut self, state: &State) {
        for (partition, events) in &mut self.partitions {
            if let Some(log) = state.log(partition) {
                events.possible_start = events.possible_start.max(log.high_watermark().get());
            }
        }
    }

    /// A power cut may bring back what was taken back.
    pub fn let_ghosts_be(&mut self) {
        for (partition, ghost) in std::mem::take(&mut self.ghosts) {
            if let Some(events) = self.partitions.get_mut(&partition)
                && events.end() <= ghost.what.base
            {
                events.ghosts.push(ghost.what);
            }
        }
    }

    /// After a start: what survived is settled, what did not never was.
    pub fn settle(&mut self, state: &State, topics: usize, offsets: usize) {
        self.topics.truncate(topics);
        self.topics.iter_mut().for_each(|fact| fact.is_known = true);
        self.offsets.truncate(offsets);
        self.offsets.iter_mut().for_each(|fact| fact.is_known = true);
        let live = self.topics_after(topics);
        self.partitions.retain(|partition, _| live.contains_key(&partition.topic_id));
        for (partition, events) in &mut self.partitions {
            let end = state.log(partition).map_or(0, |log| log.high_watermark().get());
            events.batches.retain(|fact| fact.what.next <= end);
            events.batches.iter_mut().for_each(|fact| fact.is_known = true);
            events.possible_start = state.log(partition).map_or(0, |log| log.log_start().get());
        }
        // A start syncs what it found, and what it did not find stays away.
        self.ghosts.clear();
        self.see(state);
    }
}

impl Events {
    /// Whether a request appends here.
    pub fn has(&self, request: RequestId) -> bool {
        self.batches.iter().any(|fact| fact.request == request)
    }

    /// The batches behind one that was refused have its place: it was taken back before they were written.
    fn close_ranks(&mut self) {
        let mut base = self.batches.first().map_or(0, |first| first.what.base);
        if self.batches.first().is_some_and(|first| !first.is_known) {
            base = 0;
        }
        for fact in &mut self.batches {
            let count = fact.what.next - fact.what.base;
            (fact.what.base, fact.what.next) = (base, base + count);
            base += count;
        }
    }

    /// Where the log ends at most.
    pub fn possible_end(&self) -> i64 {
        self.ghosts.iter().map(|ghost| ghost.next).fold(self.end(), i64::max)
    }

    /// What may be found at an offset.
    pub fn at(&self, base: i64) -> impl Iterator<Item = &BatchFact> {
        self.batches.iter().map(|fact| &fact.what).chain(&self.ghosts).filter(move |batch| batch.base == base)
    }

    /// Where the next batch goes.
    pub fn end(&self) -> i64 {
        self.batches.last().map_or(0, |fact| fact.what.next)
    }

    /// The end of what was acknowledged or seen.
    pub fn known_end(&self) -> i64 {
        let known = self.batches.iter().rev().find(|fact| fact.is_known).map_or(0, |fact| fact.what.next);
        known.max(self.seen_end)
    }
}

/// The shortest prefix that holds all that somebody was told of.
pub fn least<T>(facts: &[Fact<T>]) -> usize {
    facts.iter().rposition(|fact| fact.is_known).map_or(0, |last| last + 1)
}

/// Topics as a broker has them.
pub fn topics_of<'a>(topics: impl Iterator<Item = &'a Topic>) -> Topics {
    topics.map(|topic| (topic.topic_id, (topic.name.clone(), topic.partitions))).collect()
}

/// Values as groups have them.
pub fn values_of<'a>(groups: impl Iterator<Item = &'a Group>) -> Values {
    let mut values = Values::new();
    for group in groups {
        for (topic, partition, entry) in group.offsets() {
            let key = Key::Offset(group.name().to_owned(), topic.to_owned(), partition);
            values.insert(key, Value::Next(entry.topic_id, entry.committed.next().get()));
        }
        if let Some(owner) = group.owner() {
            values
                .insert(Key::Owner(group.name().to_owned()), Value::Held(owner.member_id, owner.generation));
        }
    }
    values
}

fn known<T>(facts: &mut [Fact<T>], request: RequestId) {
    facts.iter_mut().filter(|fact| fact.request == request).for_each(|fact| fact.is_known = true);
}
