//! What the audit is given: the log of one topic, and the effects.

use leftoff_audit::effects::{IdTemplate, NameBy};
use leftoff_audit::{
    Effect, Evidence, LogEntry, LogEvent, NAME_LIMIT_BYTES, Outcome, Seen, SourceError, Stream,
};
use leftoff_engine::broker::{State, Topic};
use leftoff_engine::log::{Log, ReadBatch};
use leftoff_wire::record_batch::{Batch, Limits, RecordView};

use crate::cli::verbs::groups::standing;

/// Where effects are. Each method is one pass over them.
pub trait Effects {
    /// Whether each effect names the place of its event.
    fn by_place(&self) -> bool;

    /// The effects, in the order in which they happened.
    fn effects<'a>(&'a self, name_by: &'a NameBy) -> Result<Stream<'a, Seen<Effect>>, SourceError>;

    /// What was handled without an effect, or passed on purpose.
    fn outcomes<'a>(&'a self, topic_id: &'a str) -> Result<Stream<'a, Seen<Outcome>>, SourceError>;
}

/// The log of one topic, and effects that may be of several.
pub struct LogAndEffects<'a> {
    state: &'a State,
    topic: &'a Topic,
    effects: &'a dyn Effects,
    ids: Ids<'a>,
    name_by: NameBy,
    topic_id: String,
    /// Effects of these are judged with their own topic.
    other_topics: Vec<String>,
}

impl<'a> LogAndEffects<'a> {
    /// The evidence for `topic`, one of those that the effects are of.
    pub fn new(
        state: &'a State,
        topic: &'a Topic,
        topics: &[Topic],
        effects: &'a dyn Effects,
        ids: Ids<'a>,
    ) -> LogAndEffects<'a> {
        let topic_id = topic.topic_id.to_string();
        let others = topics.iter().map(|other| other.topic_id.to_string());
        let other_topics = others.filter(|other| *other != topic_id).map(|other| other + "/").collect();
        let name_by = match ids {
            Ids::Template(template) if !effects.by_place() => NameBy::Template(template.clone()),
            Ids::Template(_) | Ids::KeyOrValue => NameBy::Line { topic_id: topic_id.clone() },
        };
        LogAndEffects { state, topic, effects, ids, name_by, topic_id, other_topics }
    }

    fn is_of_another(other_topics: &[String], seen: &Seen<Effect>) -> bool {
        match seen {
            Seen::Item(Effect::OtherTopic(place)) => {
                other_topics.iter().any(|other| place.starts_with(other))
            }
            Seen::Item(Effect::ByPlace { .. } | Effect::ById(_))
            | Seen::Torn { .. }
            | Seen::Unreadable { .. } => false,
        }
    }
}

impl Evidence for LogAndEffects<'_> {
    fn log(&mut self) -> Result<Stream<'_, LogEntry>, SourceError> {
        let ids = (!self.effects.by_place()).then_some(self.ids);
        Ok(log_entries(self.state, self.topic, ids))
    }

    fn effects(&mut self) -> Result<Stream<'_, Seen<Effect>>, SourceError> {
        let other_topics = &self.other_topics;
        let lines = self.effects.effects(&self.name_by)?;
        Ok(Box::new(lines.filter(move |line| {
            !line.as_ref().is_ok_and(|seen| LogAndEffects::is_of_another(other_topics, seen))
        })))
    }

    fn outcomes(&mut self) -> Result<Stream<'_, Seen<Outcome>>, SourceError> {
        self.effects.outcomes(&self.topic_id)
    }
}

/// The log of a topic, one partition after the other; with the names of its events, if they are needed.
pub fn log_entries<'a>(state: &'a State, topic: &'a Topic, ids: Option<Ids<'a>>) -> Stream<'a, LogEntry> {
    Box::new((0..topic.partitions).flat_map(move |number| {
        let log = standing::log(state, topic.topic_id, number);
        log.read_batches(log.log_start()).flat_map(move |step| match step {
            Ok(step) => entries(log, number.unsigned_abs(), step, ids),
            Err(error) => vec![Err(error.into())],
        })
    }))
}

fn entries(
    log: &Log,
    partition: u32,
    step: ReadBatch,
    ids: Option<Ids<'_>>,
) -> Vec<Result<LogEntry, SourceError>> {
    match step {
        ReadBatch::Batch { bytes, .. } => match read(partition, &bytes, log, ids) {
            Ok(entries) => entries.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        },
        // Nobody can tell any more what was there.
        ReadBatch::Damaged(damaged) => {
            let dir = log.dir().display();
            vec![Err(format!("{dir}: {damaged}").into())]
        }
        ReadBatch::Gap { .. } => Vec::new(),
    }
}

fn read(partition: u32, bytes: &[u8], log: &Log, ids: Option<Ids<'_>>) -> Result<Vec<LogEntry>, SourceError> {
    let (batch, _) = Batch::parse(bytes)?;
    let header = batch.header();
    let is_control = header.attributes.is_control();
    let mut entries = Vec::new();
    for record in batch.records(&Limits::default())?.iter() {
        let record = record?;
        let offset = record.offset(header);
        // The first batch may begin before the log does.
        if offset < log.log_start() {
            continue;
        }
        let offset = offset.get();
        entries.push(match is_control {
            true => LogEntry::Marker { partition, offset },
            false => LogEntry::Event(LogEvent { partition, offset, id: ids.and_then(|ids| ids.of(&record)) }),
        });
    }
    Ok(entries)
}

/// What an effect without a place calls its event.
#[derive(Clone, Copy, Debug)]
pub enum Ids<'a> {
    /// The key, or without one the value, where that is a short text.
    KeyOrValue,
    /// What the template makes of the value; none where it is no JSON, or lacks a field.
    Template(&'a IdTemplate),
}

impl Ids<'_> {
    fn of(self, record: &RecordView<'_>) -> Option<String> {
        let text = match self {
            Ids::KeyOrValue => std::str::from_utf8(record.key.or(record.value)?).ok()?.trim().to_owned(),
            Ids::Template(template) => template.id_of_json(record.value?)?,
        };
        (!text.is_empty() && text.len() <= NAME_LIMIT_BYTES).then_some(text)
    }
}
