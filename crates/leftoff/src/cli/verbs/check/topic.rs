//! Effects in a topic of the same directory: records that name their event, and evidence for events without any.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::Peekable;

use leftoff::topic_sink::{EVIDENCE_KEY, GROUP_HEADER, Outlet, TOPICS_HEADER};
use leftoff_audit::effects::{NameBy, OutcomeLines};
use leftoff_audit::{Effect, Outcome, OutcomeKind, Seen, SourceError, Stream};
use leftoff_consumer::sink::ID_KEY;
use leftoff_engine::broker::{RESERVED_PRODUCER_ID, State, Topic};
use leftoff_engine::coordinator::{PartitionKey, Why};
use leftoff_engine::log::{Log, ReadBatch};
use leftoff_wire::consumer_offsets::{Key, OffsetCommitValue};
use leftoff_wire::record_batch::{Batch, Limits, RecordView};
use leftoff_wire::{Offset, Uuid};

use super::evidence::Effects;
use crate::cli::verbs::groups::standing;

/// What a group wrote into a topic, and into those that its handler named.
pub struct TopicEffects<'a> {
    group: String,
    /// All partitions that may hold records of the group.
    logs: Vec<&'a Log>,
    /// For each partition of the topic of which the beginning is deleted: the first event of each partition that the group
    /// reads of which something is left.
    left: Vec<BTreeMap<Source, i64>>,
    /// What decisions have passed over, and from where on they are known.
    decided: BTreeMap<Source, Decided>,
}

/// A partition that the group reads: its topic's id, and its number.
type Source = (String, u32);

#[derive(Default)]
struct Decided {
    /// Ranges, the last offset included.
    skipped: Vec<(i64, i64)>,
    /// Decisions below this offset may be deleted.
    known_from: i64,
}

impl<'a> TopicEffects<'a> {
    /// Reads the topic once, to learn where else records went.
    pub fn new(state: &'a State, topic: &Topic, group: &str) -> Result<TopicEffects<'a>, SourceError> {
        let log = |number| standing::log(state, topic.topic_id, number);
        let mut logs: Vec<&Log> = (0..topic.partitions).map(log).collect();
        let mut elsewhere = BTreeSet::new();
        let mut left = Vec::new();
        for log in &logs {
            let mut first = BTreeMap::new();
            for found in Findings::new(log, group) {
                for found in found?.1 {
                    match found {
                        Found::Record { source, offset, .. } => {
                            first.entry(source).or_insert(offset);
                        }
                        Found::Evidence { lines, topics } => {
                            elsewhere.extend(topics);
                            first_of_lines(&lines, &mut first);
                        }
                    }
                }
            }
            if log.log_start() > Offset::ZERO {
                left.push(first);
            }
        }
        for other in state.topics().filter(|other| elsewhere.contains(&other.topic_id)) {
            logs.extend((0..other.partitions).map(|number| standing::log(state, other.topic_id, number)));
        }
        let decided = decisions(state, group)?;
        Ok(TopicEffects { group: group.to_owned(), logs, left, decided })
    }

    /// From which offset of a partition on all evidence is there: what lies below cannot be judged. `saved_next` is the
    /// group's offset.
    pub fn judged_from(&self, outlet: Option<&Outlet>, key: &PartitionKey, saved_next: i64) -> i64 {
        let source = (key.topic_id.to_string(), key.partition.unsigned_abs());
        let deleted = self.left.iter().map(|first| first.get(&source).copied().unwrap_or(saved_next));
        let decided = self.decided.get(&source).map_or(0, |decided| decided.known_from);
        let begun = outlet.map_or(0, |outlet| outlet.from.get());
        deleted.chain([decided, begun]).max().unwrap_or(0).min(saved_next)
    }
}

impl Effects for TopicEffects<'_> {
    fn by_place(&self) -> bool {
        true
    }

    fn effects<'a>(&'a self, name_by: &'a NameBy) -> Result<Stream<'a, Seen<Effect>>, SourceError> {
        let NameBy::Line { topic_id } = name_by else { return Err("records name places".into()) };
        let effect = move |found: Found| match found {
            Found::Record { source: (id, partition), offset, n } if id == *topic_id => {
                Some(Seen::Item(Effect::ByPlace { partition, offset, n }))
            }
            Found::Record { source: (id, partition), offset, n } => {
                Some(Seen::Item(Effect::OtherTopic(format!("{id}/{partition}/{offset}/{n}"))))
            }
            Found::Evidence { .. } => None,
        };
        let found = InOrder::new(&self.logs, &self.group);
        Ok(Box::new(found.filter_map(move |found| found.map(effect).transpose())))
    }

    fn outcomes<'a>(&'a self, topic_id: &'a str) -> Result<Stream<'a, Seen<Outcome>>, SourceError> {
        let lines = self.logs.iter().flat_map(|log| Findings::new(log, &self.group));
        let lines = lines.flat_map(move |found| match found {
            Ok((_, found)) => found.into_iter().flat_map(|found| outcomes_in(found, topic_id)).collect(),
            Err(error) => vec![Err(error)],
        });
        let decided = self.decided.iter().filter(move |((id, _), _)| id == topic_id);
        let skipped = decided.flat_map(|((_, partition), decided)| {
            let outcome = |(from, to): &(i64, i64)| {
                let kind = OutcomeKind::Skipped;
                Ok(Seen::Item(Outcome { partition: *partition, from: *from, to: *to, kind }))
            };
            decided.skipped.iter().map(outcome).collect::<Vec<_>>()
        });
        Ok(Box::new(lines.chain(skipped)))
    }
}

fn outcomes_in(found: Found, topic_id: &str) -> Vec<Result<Seen<Outcome>, SourceError>> {
    let Found::Evidence { lines, .. } = found else { return Vec::new() };
    OutcomeLines::new(lines.as_bytes(), topic_id).map(|line| Ok(line?)).collect()
}

/// The first offset of each partition that evidence speaks of.
fn first_of_lines(lines: &str, first: &mut BTreeMap<Source, i64>) {
    for line in lines.lines() {
        let mut words = line.split(' ');
        let (id, number, range) = (words.next(), words.next(), words.next());
        let number = number.and_then(|number| number.parse().ok());
        let from = range.and_then(|range| range.split('-').next()?.parse().ok());
        if let (Some(id), Some(number), Some(from)) = (id, number, from) {
            first.entry((id.to_owned(), number)).or_insert(from);
        }
    }
}

/// What a batch of a commit set says.
enum Found {
    Record { source: Source, offset: i64, n: u32 },
    Evidence { lines: String, topics: Vec<Uuid> },
}

/// The batches that a group wrote into one partition, each with the number of its commit set.
struct Findings<'a> {
    steps: Stream<'a, (i64, Vec<Found>)>,
}

impl<'a> Findings<'a> {
    fn new(log: &'a Log, group: &'a str) -> Findings<'a> {
        let steps = log.read_batches(log.log_start()).filter_map(move |step| match step {
            Ok(ReadBatch::Batch { header, bytes }) if header.producer_id >= RESERVED_PRODUCER_ID => {
                let found = read(&bytes, log, group);
                found.map(|found| (!found.is_empty()).then_some((header.producer_id, found))).transpose()
            }
            Ok(ReadBatch::Batch { .. } | ReadBatch::Gap { .. }) => None,
            // Nobody can tell any more what was there.
            Ok(ReadBatch::Damaged(damaged)) => {
                let dir = log.dir().display();
                Some(Err(format!("{dir}: {damaged}").into()))
            }
            Err(error) => Some(Err(error.into())),
        });
        Findings { steps: Box::new(steps) }
    }
}

impl Iterator for Findings<'_> {
    type Item = Result<(i64, Vec<Found>), SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.steps.next()
    }
}

fn read(bytes: &[u8], log: &Log, group: &str) -> Result<Vec<Found>, SourceError> {
    let (batch, _) = Batch::parse(bytes)?;
    let header = batch.header();
    let mut all = Vec::new();
    for record in batch.records(&Limits::default())?.iter() {
        let record = record?;
        let text = |name: &str| {
            // The sink's own come behind those of the handler.
            let of_name = record.headers.iter().filter(|(is, _)| *is == name.as_bytes());
            std::str::from_utf8(of_name.last()?.1?).ok().map(str::to_owned)
        };
        // The first batch may begin before the log does.
        if record.offset(header) < log.log_start() || text(GROUP_HEADER).as_deref() != Some(group) {
            continue;
        }
        if header.attributes.is_control() {
            all.extend(evidence(&record, text(TOPICS_HEADER)));
        } else {
            let id = text(ID_KEY).unwrap_or_default();
            let at = || format!("{}: offset {}", log.dir().display(), record.offset(header));
            all.push(place(&id).ok_or_else(|| format!("{}: {ID_KEY} {id:?} names no event", at()))?);
        }
    }
    Ok(all)
}

fn evidence(record: &RecordView<'_>, topics: Option<String>) -> Option<Found> {
    if record.key != Some(&EVIDENCE_KEY[..]) {
        return None;
    }
    let lines = String::from_utf8_lossy(record.value.unwrap_or_default()).into_owned();
    let topics = topics.iter().flat_map(|ids| ids.split(',')).filter_map(|id| id.parse().ok()).collect();
    Some(Found::Evidence { lines, topics })
}

/// `TOPIC_ID/PARTITION/OFFSET/N`
fn place(id: &str) -> Option<Found> {
    let mut parts = id.split('/');
    let topic = parts.next()?.to_owned();
    let (partition, offset, n) =
        (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(Found::Record { source: (topic, partition), offset, n })
}

/// What lies in several partitions, in the order of the commit sets. Within a set the records of a partition that the group
/// reads are in the order of their events: that is asserted when it is written.
struct InOrder<'a> {
    logs: Vec<Peekable<Findings<'a>>>,
    ready: VecDeque<Found>,
}

impl<'a> InOrder<'a> {
    fn new(logs: &[&'a Log], group: &'a str) -> InOrder<'a> {
        let logs = logs.iter().map(|log| Findings::new(log, group).peekable()).collect();
        InOrder { logs, ready: VecDeque::new() }
    }

    fn next_set(&mut self) -> Result<Option<Vec<Found>>, SourceError> {
        let heads = self.logs.iter_mut().filter_map(Peekable::peek);
        let Some(number) = heads.map(|head| head.as_ref().map_or(i64::MIN, |(number, _)| *number)).min()
        else {
            return Ok(None);
        };
        let mut set = Vec::new();
        for log in &mut self.logs {
            while let Some(step) = log.next_if(|step| step.as_ref().map_or(i64::MIN, |(at, _)| *at) == number)
            {
                set.extend(step?.1);
            }
        }
        set.sort_by(|a, b| order(a).cmp(&order(b)));
        Ok(Some(set))
    }
}

fn order(found: &Found) -> Option<(&Source, i64, u32)> {
    match found {
        Found::Record { source, offset, n } => Some((source, *offset, *n)),
        Found::Evidence { .. } => None,
    }
}

impl Iterator for InOrder<'_> {
    type Item = Result<Found, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.ready.pop_front() {
                return Some(Ok(found));
            }
            match self.next_set() {
                Ok(None) => return None,
                Ok(Some(set)) => self.ready = set.into(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// What resets have passed over in the partitions of a group, as far as the offsets log still tells. A move back takes
/// from what was passed what is handled then.
fn decisions(state: &State, group: &str) -> Result<BTreeMap<Source, Decided>, SourceError> {
    let log = state.offsets_log();
    let mut decided: BTreeMap<Source, Decided> = BTreeMap::new();
    for step in log.read_batches(log.log_start()) {
        let ReadBatch::Batch { bytes, .. } = step? else { continue };
        let (batch, _) = Batch::parse(&bytes)?;
        for record in batch.records(&Limits::default())?.iter() {
            let record = record?;
            if record.offset(batch.header()) >= log.log_start() {
                decision(&record, group, log.log_start(), &mut decided);
            }
        }
    }
    Ok(decided)
}

fn decision(
    record: &RecordView<'_>,
    group: &str,
    log_start: Offset,
    decided: &mut BTreeMap<Source, Decided>,
) {
    let (Some(Ok(Key::OffsetCommit { group: of, partition, .. })), Some(value)) =
        (record.key.map(Key::decode), record.value)
    else {
        return;
    };
    let Ok(value) = OffsetCommitValue::decode(value) else { return };
    let Some(topic_id) = value.topic_id.filter(|_| of == group) else { return };
    let header = |name: &str| {
        let value = record.headers.iter().find(|(is, _)| *is == name.as_bytes())?.1?;
        std::str::from_utf8(value).ok()
    };
    let source = (topic_id.to_string(), partition.unsigned_abs());
    let is_first = !decided.contains_key(&source);
    let of_source = decided.entry(source).or_default();
    let number = |name| header(name).and_then(|text| text.parse::<i64>().ok());
    let (old, new) = (number("old").unwrap_or(0), value.committed.next().get());
    let is_cut = number("prev").is_some_and(|prev| prev < log_start.get());
    if is_first && is_cut {
        of_source.known_from = old.min(new);
    }
    let why = header("why").and_then(Why::parse);
    if matches!(why, Some(Why::Reset | Why::Undo | Why::Import)) {
        if new > old {
            of_source.skipped.push((old, new - 1));
        } else {
            of_source.skipped.retain(|(from, _)| *from < new);
            of_source.skipped.iter_mut().for_each(|(_, to)| *to = (*to).min(new - 1));
        }
    }
}
