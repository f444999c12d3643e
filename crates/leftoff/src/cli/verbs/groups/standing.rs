//! Where a group stands in a partition, and what is left, taken in one order: what the files say that keep the offset
//! themselves, then group and log of one moment. So no lag is ever below zero.

use std::collections::BTreeSet;

use leftoff::store::{Event, HandlerLock, events_in, now};
use leftoff::topic_sink::Outlet;
use leftoff_engine::broker::{PartitionId, State, View};
use leftoff_engine::coordinator::{Bounds, Entry, Group, Lag, PartitionKey, Who};
use leftoff_engine::log::{Log, ReadBatch};
use leftoff_wire::record_batch::{Batch, BatchHeader, Limits};
use leftoff_wire::{Committed, Offset, Uuid};

use super::{find_group, is_wanted};
use crate::cli::args::Global;
use crate::cli::args::value::TopicPartitions;
use crate::cli::failure::Failure;
use crate::cli::place::Place;
use crate::cli::session::{from_store, open_view};
use crate::cli::verbs::authority::{Authorities, keeper_in};

/// To count events the log is read; where more than so much lies between, it is left at the number of offsets.
const COUNT_LIMIT_BYTES: usize = 64 << 20;

/// A group in one partition.
#[derive(Debug)]
pub struct Standing {
    /// The topic's name.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// What the group has saved, if anything.
    pub entry: Option<Entry>,
    /// The place whose word counts, if one does, and where it goes on.
    pub authority: Option<(Place, Option<Committed>)>,
    /// The group's offset is a reset that the next run takes to the place.
    pub reset_waits: bool,
    /// What can be read; `None` if the topic is gone.
    pub bounds: Option<Bounds>,
    /// What is left.
    pub lag: Option<Lag>,
    /// Events among the offsets that wait, where they could be counted.
    pub waiting_events: Option<u64>,
    /// For how long the first event that waits has been there, in milliseconds.
    pub waiting_ms: Option<i64>,
}

impl Standing {
    /// The next offset to read: where a restart goes on.
    pub fn next(&self) -> Option<Committed> {
        match &self.authority {
            Some((_, next)) => *next,
            None => self.entry.as_ref().map(|entry| entry.committed),
        }
    }

    /// The last event that was handled, where that is known.
    pub fn last_handled(&self) -> Option<Offset> {
        let entry = self.entry.as_ref();
        match self.next() {
            next if next == entry.map(|entry| entry.committed) => entry.and_then(Entry::last_handled),
            next => next.and_then(Committed::before),
        }
    }

    /// Where the offset is kept, and how far the group's copy is, if that is elsewhere.
    pub fn stored_in(&self) -> String {
        let copy = self.entry.as_ref().map(|entry| entry.committed);
        match &self.authority {
            Some((place, _)) if self.reset_waits => {
                let to = copy.map_or_else(String::new, |copy| format!(" to {copy}"));
                format!("{place} (a reset{to} waits for the next run)")
            }
            Some((place, next)) if *next == copy => place.to_string(),
            Some((place, _)) => match copy {
                Some(copy) => format!("{place} (the group's copy: next to read {copy})"),
                None => format!("{place} (the group has no copy)"),
            },
            None => match self.entry.as_ref().and_then(|entry| keeper_in(&entry.metadata)) {
                Some(place) => format!("group (nothing is left of {place})"),
                None => match self.entry.as_ref().and_then(|entry| entry.metadata.parse::<Outlet>().ok()) {
                    Some(Outlet { topic, .. }) => format!("group, in one step with topic:{topic}"),
                    None => "group".to_owned(),
                },
            },
        }
    }
}

/// A group in every partition of the topics that it has offsets for, and of those that `filter` names.
pub fn standings(
    state: &State,
    group: &Group,
    authorities: &Authorities,
    filter: &[TopicPartitions],
) -> Result<Vec<Standing>, Failure> {
    let mut places: BTreeSet<(String, i32)> =
        group.offsets().map(|(topic, number, _)| (topic.to_owned(), number)).collect();
    let topics: BTreeSet<String> = places.iter().map(|(topic, _)| topic.clone()).collect();
    let named = filter.iter().map(|one| one.topic.clone());
    for topic in topics.into_iter().chain(named).filter_map(|name| state.topic(&name)) {
        places.extend((0..topic.partitions).map(|number| (topic.name.clone(), number)));
    }
    places.retain(|(topic, number)| is_wanted(filter, topic, *number));
    places.into_iter().map(|(topic, number)| standing(state, group, authorities, topic, number)).collect()
}

fn standing(
    state: &State,
    group: &Group,
    authorities: &Authorities,
    topic: String,
    partition: i32,
) -> Result<Standing, Failure> {
    let live = state.topic(&topic).filter(|found| partition < found.partitions);
    let Some(topic_id) = live.map(|found| found.topic_id) else {
        let entry = group.entry_by_name(&topic, partition).cloned();
        return Ok(Standing { topic, partition, entry, ..Standing::unknown() });
    };
    let key = PartitionKey { topic: topic.clone(), topic_id, partition };
    let entry = group.entry(&key).cloned();
    let authority = entry.as_ref().and_then(|entry| authorities.next(&entry.metadata, &key));
    let reset_waits = entry.as_ref().is_some_and(|entry| authorities.waits(entry, &key));
    let log = log(state, topic_id, partition);
    let bounds = Bounds { log_start: log.log_start(), end: log.high_watermark() };
    let mut standing = Standing {
        topic,
        partition,
        entry,
        authority,
        reset_waits,
        bounds: Some(bounds),
        ..Standing::unknown()
    };
    let lag = Lag::of(standing.next(), bounds, bounds.end);
    let from = standing.next().map_or(bounds.log_start, Committed::next).max(bounds.log_start);
    standing.lag = Some(lag);
    standing.waiting_events = count_events(log, from, bounds.end)?;
    if lag.waiting > 0 {
        let waits = first_at(log, from)?;
        standing.waiting_ms = waits.map(|event| now().as_ms().saturating_sub(event.timestamp_ms).max(0));
    }
    Ok(standing)
}

impl Standing {
    fn unknown() -> Standing {
        Standing {
            topic: String::new(),
            partition: 0,
            entry: None,
            authority: None,
            reset_waits: false,
            bounds: None,
            lag: None,
            waiting_events: None,
            waiting_ms: None,
        }
    }
}

/// The log of a partition of a live topic.
pub fn log(state: &State, topic_id: Uuid, partition: i32) -> &Log {
    state.log(&PartitionId { topic_id, partition }).expect("each partition of a live topic has a log")
}

/// How many events lie from one offset up to another; `None` if that is too much to read.
pub fn count_events(log: &Log, from: Offset, to: Offset) -> Result<Option<u64>, Failure> {
    let (mut events, mut bytes_read) = (0, 0);
    if from >= to {
        return Ok(Some(0));
    }
    for step in log.read_batches(from) {
        match step.map_err(|error| from_store(log.dir(), error.into()))? {
            ReadBatch::Batch { header, .. } if header.base_offset >= to => break,
            ReadBatch::Batch { header, bytes } => {
                events += events_in_batch(log, &header, &bytes, from, to)?;
                bytes_read += bytes.len();
                if bytes_read > COUNT_LIMIT_BYTES {
                    return Ok(None);
                }
            }
            ReadBatch::Damaged(_) | ReadBatch::Gap { .. } => {}
        }
    }
    Ok(Some(events))
}

fn events_in_batch(
    log: &Log,
    header: &BatchHeader,
    bytes: &[u8],
    from: Offset,
    to: Offset,
) -> Result<u64, Failure> {
    let damaged = |error| Failure::storage(format!("{}: {error}", log.dir().display()));
    if header.attributes.is_control() {
        return Ok(0);
    }
    let (first, behind) = (header.base_offset.max(from), header.next_offset().min(to));
    if i64::from(header.records_count) == i64::from(header.last_offset_delta) + 1 {
        return Ok(behind.since(first));
    }
    let (batch, _) = Batch::parse(bytes).map_err(damaged)?;
    let records = batch.records(&Limits::default()).map_err(damaged)?;
    let mut events = 0;
    for record in records.iter() {
        let offset = record.map_err(damaged)?.offset(header);
        events += u64::from(first <= offset && offset < behind);
    }
    Ok(events)
}

/// The first event at or behind an offset.
pub fn first_at(log: &Log, from: Offset) -> Result<Option<Event>, Failure> {
    const BATCHES_WITHOUT_EVENTS: usize = 1_000;
    let mut at = from;
    for _ in 0..BATCHES_WITHOUT_EVENTS {
        if at >= log.high_watermark() {
            break;
        }
        let Ok(fetched) = log.fetch(at, 1) else { break };
        // Damage is for the doctor; here it only means that the age is not known.
        let Ok(chunk) = events_in(&fetched, at) else { break };
        if let Some(event) = chunk.events.into_iter().next() {
            return Ok(Some(event));
        }
        at = chunk.next;
    }
    Ok(None)
}

/// Looks at a group: first what the files say that it keeps its offsets in, then at everything else.
pub fn look_at(global: &Global, group: &str) -> Result<(View, Authorities), Failure> {
    let before = open_view(global)?;
    let authorities = Authorities::of(find_group(before.state(), group)?)?;
    Ok((open_view(global)?, authorities))
}

/// The same for several that are only shown, at the price of one.
pub fn look_at_all(global: &Global, groups: &[impl AsRef<str>]) -> Result<(View, Vec<Authorities>), Failure> {
    let before = open_view(global)?;
    let authorities = groups
        .iter()
        .map(|group| Authorities::as_far_as_reached(global, find_group(before.state(), group.as_ref())?));
    let authorities = authorities.collect::<Result<Vec<_>, _>>()?;
    Ok((open_view(global)?, authorities))
}

/// Who holds a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Nobody.
    Nobody,
    /// A process that works for it.
    Alive(String),
    /// A member whose process is gone without having left.
    Gone(String),
}

impl Holder {
    /// Looks at the group's member and at its lock: a member whose lock is free is dead.
    pub fn of(global: &Global, group: &Group) -> Result<Holder, Failure> {
        let lock = HandlerLock::holder(&global.data, group.name())
            .map_err(|error| Failure::storage(error.to_string()).because(error))?;
        Ok(match (group.members().first(), lock) {
            (Some(member), Some(holder)) if is_of(member, &holder) => {
                // It is gone, and its handler works on: the group is held.
                let left = holder.split_once(", gone").map_or("", |(_, left)| left.trim_end_matches(')'));
                match left {
                    "" => Holder::Alive(name(member)),
                    left => Holder::Alive(format!("{} (gone{left})", name(member))),
                }
            }
            // It has the lock and has not joined yet: the member is the one before it.
            (Some(_), Some(holder)) => Holder::Alive(holder),
            (Some(member), None) => Holder::Gone(name(member)),
            (None, Some(holder)) => Holder::Alive(holder),
            (None, None) => Holder::Nobody,
        })
    }

    /// For a cell of a table.
    pub fn text(&self) -> Option<String> {
        match self {
            Holder::Nobody => None,
            Holder::Alive(name) => Some(name.clone()),
            Holder::Gone(name) => Some(format!("{name} (gone)")),
        }
    }
}

/// Whether the text of a lock is of that member's process.
fn is_of(member: &Who, holder: &str) -> bool {
    member.host().rsplit_once(':').is_some_and(|(_, pid)| holder.starts_with(&format!("pid {pid} ")))
}

/// `run@host:4711`
pub fn name(member: &Who) -> String {
    format!("{}@{}", member.client_id(), member.host())
}
