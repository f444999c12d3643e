//! The consumer runtime's source over a data directory in this process.
//!
//! The runner is a member of its group like any other, one generation higher at each start; the directory's lock proves
//! that earlier ones are dead, and a commit of theirs would be refused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use leftoff_consumer::runner::own_words;
use leftoff_consumer::source::{
    Event, GapReason, GroupSaver, PartitionId as SourceId, Reset, Save, Source, SourceError, SourceEvent,
};
use leftoff_engine::broker::{PartitionId, RESERVED_PRODUCER_ID, Refusal, Reply, Request, State};
use leftoff_engine::coordinator::{Entry, PartitionKey, Who, Why};
use leftoff_engine::log::{Fetched, LogError};
use leftoff_wire::{Offset, Uuid};

use crate::dead_letters;
use crate::hold::{Hold, HoldError, OneOffset};
use crate::store::{Chunk, HandlerLock, LockError, ReadError, Store, StoreError, events_in, random_id};

/// One read asks for about so much.
const READ_BYTES: u64 = 1024 * 1024;
/// The embedded runner has the directory to itself, so one assignment lasts for the whole run, under this number.
pub const OWNERSHIP: u64 = 1;

/// Reads the partitions of some topics for a group.
#[derive(Debug)]
pub struct StoreSource {
    store: Store,
    hold: Hold,
    ready: VecDeque<SourceEvent>,
    partitions: BTreeMap<SourceId, Reading>,
    stop: Arc<AtomicBool>,
    /// The partition that is looked at first in the next poll: each gets its turn.
    turn: usize,
    /// Nobody else works for the group for as long as this is held, also while the directory is given away.
    _lock: HandlerLock,
}

#[derive(Debug)]
struct Reading {
    topic: String,
    /// `None` until the runner has said where to start.
    position: Option<Offset>,
    /// The high watermark at which the end was told.
    told_end: Option<Offset>,
    paused: bool,
}

impl StoreSource {
    /// Joins the group and takes all partitions of the topics. `stop` is the runner's: it ends waiting for the directory.
    ///
    /// # Errors
    /// [`StoreError::GroupInUse`] if another process works for the group, [`StoreError::Refused`] for an unknown topic or a
    /// bad group name.
    pub fn join(
        store: &Store,
        group: &str,
        topics: &[String],
        client_id: &str,
        stop: Arc<AtomicBool>,
    ) -> Result<StoreSource, StoreError> {
        let lock =
            HandlerLock::take(store.root(), group, client_id, Duration::ZERO).map_err(
                |error| match error {
                    LockError::Held { holder, .. } => {
                        StoreError::GroupInUse { group: group.to_owned(), holder }
                    }
                    error @ LockError::Io { .. } => error.into(),
                },
            )?;
        StoreSource::join_with(lock, store, group, topics, client_id, stop)
    }

    /// As [`StoreSource::join`], with the group's lock taken already: a child handler shares it.
    ///
    /// # Errors
    /// [`StoreError::Refused`].
    pub fn join_with(
        lock: HandlerLock,
        store: &Store,
        group: &str,
        topics: &[String],
        client_id: &str,
        stop: Arc<AtomicBool>,
    ) -> Result<StoreSource, StoreError> {
        let member = format!("{client_id}-{}", random_id());
        let software = concat!("leftoff/", env!("CARGO_PKG_VERSION"));
        let host = format!("{}:{}", crate::store::host_name(), std::process::id());
        let who = Who::new(&member, client_id, &host, software);
        let mut ready = VecDeque::new();
        let mut partitions = BTreeMap::new();
        for name in topics {
            let topic = store.topic(name).ok_or_else(|| Refusal::UnknownTopic(name.clone()))?;
            for number in 0..topic.partitions {
                let id = SourceId { topic_id: topic.topic_id, partition: number };
                partitions.insert(
                    id,
                    Reading { topic: name.clone(), position: None, told_end: None, paused: false },
                );
            }
        }
        // Whoever gives the group back is no member any more.
        let unclean = store.with_state(|state| {
            state.coordinator().known_group(group).is_some_and(|group| !group.members().is_empty())
        });
        let held = match store.request(Request::Join { group: group.to_owned(), who: who.clone() })? {
            Reply::Joined(held) => held,
            other => unreachable!("a join is answered with an ownership, not {other:?}"),
        };
        for (id, reading) in &partitions {
            ready.push_back(assigned(store, group, *id, &reading.topic, unclean));
        }
        let names = partitions.iter().map(|(id, reading)| (*id, reading.topic.clone())).collect();
        let hold = Hold::new(store, group, held, who, names);
        Ok(StoreSource { store: store.clone(), hold, ready, partitions, stop, turn: 0, _lock: lock })
    }

    /// Words to be kept with each offset from now on, such as where the effects go. At most 4,096 bytes.
    pub fn set_metadata(&mut self, metadata: impl Into<String>) {
        self.hold.set_words(metadata.into());
    }

    /// The topic that dead letters go to, where the sink does not keep them. It must be there when one is to be kept.
    pub fn set_dead_letters_to(&mut self, topic: impl Into<String>) {
        self.hold.set_dead_letters(topic.into());
    }

    /// What a sink in the same directory needs to save the group's offset together with its records.
    pub(crate) fn hold(&self) -> Hold {
        self.hold.clone()
    }

    /// Gives the group back: a clean stop.
    ///
    /// # Errors
    /// [`StoreError`] when storage failed; the next join ends this membership anyway.
    pub fn leave(self) -> Result<(), StoreError> {
        self.store.request(Request::Leave { group: self.hold.group, ownership: self.hold.ownership })?;
        Ok(())
    }

    /// A reset is for the place that the group's effects went to when it was asked for, and for no other.
    fn next_ready(&mut self) -> Option<SourceEvent> {
        let mut event = self.ready.pop_front()?;
        if let SourceEvent::Assigned { metadata, reset, .. } = &mut event
            && own_words(metadata).1 != self.hold.words()
        {
            *reset = None;
        }
        Some(event)
    }

    /// Partitions that the topics have got since are this member's, too.
    fn take_added(&mut self) {
        let topics: BTreeMap<Uuid, String> =
            self.partitions.iter().map(|(id, reading)| (id.topic_id, reading.topic.clone())).collect();
        for (topic_id, name) in topics {
            // One that was made anew under its name is another one, whose partitions are nobody's here.
            let Some(topic) = self.store.topic(&name).filter(|topic| topic.topic_id == topic_id) else {
                continue;
            };
            for partition in 0..topic.partitions {
                let id = SourceId { topic_id, partition };
                if self.partitions.contains_key(&id) {
                    continue;
                }
                let reading = Reading { topic: name.clone(), position: None, told_end: None, paused: false };
                self.partitions.insert(id, reading);
                self.hold.add(id, name.clone());
                self.ready.push_back(assigned(&self.store, &self.hold.group, id, &name, false));
            }
        }
    }

    /// The next events of one partition, its end, or a gap; `None` if there is nothing new to say.
    fn read(&mut self, id: SourceId) -> Result<Option<SourceEvent>, SourceError> {
        let partition = PartitionId { topic_id: id.topic_id, partition: id.partition };
        let reading = self.partitions.get_mut(&id).expect("ids come from this map");
        let Some(position) = reading.position.filter(|_| !reading.paused) else { return Ok(None) };
        let bounds = self
            .store
            .with_state(|state| state.log(&partition).map(|log| (log.log_start(), log.high_watermark())));
        let Some((log_start, end)) = bounds else {
            return Ok(Some(SourceEvent::Lost { id, ownership: OWNERSHIP }));
        };
        if position < log_start {
            let reason = GapReason::Deleted;
            return Ok(Some(SourceEvent::Gap {
                id,
                ownership: OWNERSHIP,
                from: position,
                to: log_start,
                reason,
            }));
        }
        if position >= end {
            let news = reading.told_end != Some(end);
            reading.told_end = Some(end);
            return Ok(news.then_some(SourceEvent::End { id, ownership: OWNERSHIP, end }));
        }
        match self.store.read(&partition, position, READ_BYTES) {
            Ok(chunk) => {
                reading.position = Some(chunk.next);
                let Chunk { events, next, high_watermark: end, .. } = chunk;
                Ok(Some(SourceEvent::Batch { id, ownership: OWNERSHIP, events, next, end }))
            }
            Err(error) => match damage(&error) {
                Some((from, to)) => {
                    let reason = GapReason::Damaged(error.to_string());
                    Ok(Some(SourceEvent::Gap {
                        id,
                        ownership: OWNERSHIP,
                        from: from.max(position),
                        to,
                        reason,
                    }))
                }
                None => Err(SourceError::Storage(error.to_string())),
            },
        }
    }
}

impl Source for StoreSource {
    fn poll(&mut self, wait: Duration) -> Result<SourceEvent, SourceError> {
        if let Some(event) = self.next_ready() {
            return Ok(event);
        }
        self.between_events()?;
        self.take_added();
        if let Some(event) = self.next_ready() {
            return Ok(event);
        }
        let ids: Vec<SourceId> = self.partitions.keys().copied().collect();
        for waited in [false, true] {
            for step in 0..ids.len() {
                let at = (self.turn + step) % ids.len();
                if let Some(event) = self.read(ids[at])? {
                    self.turn = at + 1;
                    return Ok(event);
                }
            }
            if !waited {
                self.store.tick();
                self.store.wait_for_change(wait);
            }
        }
        Ok(SourceEvent::Idle)
    }

    fn between_events(&mut self) -> Result<(), SourceError> {
        // Nothing of ours is in flight here. The membership outlasts the pause: the group's lock keeps others out.
        match self.store.give_way(&self.stop) {
            Ok(_) => Ok(()),
            Err(error @ StoreError::Lock(_)) => Err(SourceError::Unreachable(error.to_string())),
            Err(error) => Err(SourceError::Storage(error.to_string())),
        }
    }

    fn seek(&mut self, id: SourceId, to: Offset) -> Result<(), SourceError> {
        let reading = self.partitions.get_mut(&id).ok_or(SourceError::Ended(id))?;
        reading.position = Some(to);
        reading.told_end = None;
        Ok(())
    }

    fn event_at(&mut self, id: SourceId, offset: Offset) -> Result<Option<Event>, SourceError> {
        let fetched = self.store.with_state(|state| fetch_one(state, id, offset));
        whole(fetched, offset).map_err(|error| SourceError::Storage(error.to_string()))
    }

    fn pause(&mut self, id: SourceId, paused: bool) {
        if let Some(reading) = self.partitions.get_mut(&id) {
            reading.paused = paused;
        }
    }

    fn save(&mut self, saves: &[Save]) -> Result<(), SourceError> {
        save(&self.hold, saves)
    }

    fn saver(&self) -> Option<Box<dyn GroupSaver>> {
        Some(Box::new(Saver(self.hold.clone())))
    }
}

/// The event at this very offset, if the log has it.
///
/// # Errors
/// When it cannot be read; damage is no error here: whoever comes to it is told.
pub fn event_in(state: &State, id: SourceId, offset: Offset) -> Result<Option<Event>, StoreError> {
    whole(fetch_one(state, id, offset), offset)
}

fn whole(fetched: Option<Result<Fetched, StoreError>>, offset: Offset) -> Result<Option<Event>, StoreError> {
    match fetched {
        None => Ok(None),
        Some(Ok(fetched)) => one_event(&fetched, offset),
        Some(Err(error)) if damage(&error).is_some() => Ok(None),
        Some(Err(error)) => Err(error),
    }
}

/// Where that event lies; read outside the store's lock.
fn fetch_one(state: &State, id: SourceId, offset: Offset) -> Option<Result<Fetched, StoreError>> {
    let log = state.log(&PartitionId { topic_id: id.topic_id, partition: id.partition })?;
    let is_there = (log.log_start()..log.high_watermark()).contains(&offset);
    is_there.then(|| log.fetch(offset, 1).map_err(StoreError::from))
}

fn one_event(fetched: &Fetched, offset: Offset) -> Result<Option<Event>, StoreError> {
    match events_in(fetched, offset).map_err(StoreError::from) {
        Ok(chunk) => Ok(chunk.events.into_iter().find(|event| event.offset == offset)),
        Err(error) if damage(&error).is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Saves for the group from another thread.
struct Saver(Hold);

impl GroupSaver for Saver {
    fn save(&mut self, saves: &[Save]) -> Result<(), SourceError> {
        save(&self.0, saves)
    }
}

fn save(hold: &Hold, saves: &[Save]) -> Result<(), SourceError> {
    // What a topic sink has saved together with its records is done. A decision is another kind of record than a plain
    // move, with its reason; each kind is one commit.
    let (decided, plain): (Vec<&Save>, Vec<&Save>) = saves.iter().partition(|save| save.decision.is_some());
    let plain: Vec<&Save> = plain
        .into_iter()
        .filter(|save| !save.metadata.is_empty() || !hold.is_saved(save.id, save.committed))
        .collect();
    if !plain.is_empty() {
        commit(hold, &plain, Why::Commit, None)?;
    }
    for save in decided {
        let note = save.decision.as_ref().map(ToString::to_string);
        let why = match &save.decision {
            // The jump is the person's, and undo is to find that one.
            Some(decision) if decision.follows => Why::Commit,
            _ => Why::Reset,
        };
        commit(hold, &[save], why, note)?;
    }
    Ok(())
}

fn commit(hold: &Hold, saves: &[&Save], why: Why, note: Option<String>) -> Result<(), SourceError> {
    let offsets = saves.iter().map(|save| OneOffset {
        id: save.id,
        committed: save.committed,
        leader_epoch: save.leader_epoch,
        words: &save.metadata,
    });
    let offsets: Vec<OneOffset<'_>> = offsets.collect();
    let mut appends = Vec::new();
    for letter in saves.iter().filter_map(|save| save.dead.as_deref()) {
        let (to, _) = hold.dead_letters_to().map_err(SourceError::Refused)?;
        let at = hold.store.with_state(|state| state.offsets_log().end());
        let batch = dead_letters::batch_of(letter, RESERVED_PRODUCER_ID.saturating_add(at.get()));
        appends.push((to, batch.map_err(|error| SourceError::Refused(error.to_string()))?));
    }
    hold.save(&offsets, appends, why, note).map_err(|error| match error {
        HoldError::Ended => SourceError::Ended(saves[0].id),
        HoldError::NotHeld(id) => SourceError::Ended(id),
        HoldError::Refused(refusal) => SourceError::Refused(refusal.to_string()),
        HoldError::Storage(error) => SourceError::Storage(error.to_string()),
    })
}

fn assigned(store: &Store, group: &str, id: SourceId, topic: &str, unclean: bool) -> SourceEvent {
    let key = PartitionKey { topic: topic.to_owned(), topic_id: id.topic_id, partition: id.partition };
    store.with_state(|state| {
        let bounds =
            state.bounds(&key).expect("the partition was found a moment ago, and nobody else deletes");
        let entry = state.coordinator().entry(group, &key);
        let has_others = || {
            let group = state.coordinator().known_group(group);
            group.is_some_and(|group| group.offsets().any(|(_, _, entry)| entry.topic_id == id.topic_id))
        };
        SourceEvent::Assigned {
            topic: topic.to_owned(),
            id,
            ownership: OWNERSHIP,
            committed: entry.map(|entry| entry.committed),
            metadata: entry.map_or_else(String::new, |entry| entry.metadata.clone()),
            reset: entry.and_then(reset_of),
            unclean,
            added: entry.is_none() && has_others(),
            log_start: bounds.log_start,
            end: bounds.end,
        }
    })
}

/// The reset that a group's offset is, if a person moved it.
pub fn reset_of(entry: &Entry) -> Option<Reset> {
    let what = entry.note.clone().unwrap_or_default();
    let what = if what.starts_with(entry.why.as_str()) { what } else { format!("{} {what}", entry.why) };
    entry.reset.map(|number| Reset { number, what: what.trim_end().to_owned() })
}

/// The offsets that damage has taken, if it is damage.
fn damage(error: &StoreError) -> Option<(Offset, Offset)> {
    match error {
        StoreError::Read(ReadError::Damaged { from, to, .. } | ReadError::Hole { from, to }) => {
            Some((*from, *to))
        }
        StoreError::Log(LogError::Damaged { damaged, .. })
        | StoreError::Read(ReadError::Log(LogError::Damaged { damaged, .. })) => {
            Some((damaged.from, damaged.to))
        }
        _ => None,
    }
}
