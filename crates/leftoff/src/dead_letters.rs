//! Dead letters in a topic of the same directory: where sinks that keep nothing, and the sink into a topic, leave events that were
//! given up. One step with the group's offset: an event is never past and nowhere.
//!
//! A letter is a record with the event's own key, value and headers, and one header more that tells the rest. What becomes of a
//! letter is another record, without key and value. The bytes are in `docs/on-disk.md`.

use leftoff_consumer::sink::{DeadLetter, DeadState, GaveUp, Letter};
use leftoff_consumer::source::{Event, PartitionId};
use leftoff_wire::record_batch::{BatchBuilder, BatchError, Batches};
use serde::{Deserialize, Serialize};

use crate::store::now;

/// The header that makes a record a letter: what is known of it beside the event.
pub const LETTER_HEADER: &str = "leftoff_dead";
/// The header that tells what became of a letter.
pub const STATE_HEADER: &str = "leftoff_dead_state";
/// The header of an event that was produced again: which letter it was.
pub const REPLAY_HEADER: &str = "leftoff_replay_of";

/// The longest name of a topic, which Kafka has set.
const MAX_TOPIC_CHARS: usize = 249;

/// The topic of a group's dead letters, unless another is named. `None` if the group's name cannot be part of a topic's.
pub fn topic_of(group: &str) -> Option<String> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name = format!("{group}.dead");
    (group.chars().all(is_legal) && name.len() <= MAX_TOPIC_CHARS).then_some(name)
}

/// What became of a letter.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct StateOf {
    /// `TOPIC_ID/PARTITION/OFFSET`
    pub id: String,
    /// The group whose letter it is.
    pub group: String,
    /// What became of it.
    pub state: DeadState,
    /// When, milliseconds since 1970.
    pub at_ms: i64,
}

/// What the header of a letter says: all but the event's bytes.
pub(crate) fn told(letter: &DeadLetter) -> String {
    Letter { key: None, value: None, headers: Vec::new(), ..Letter::of(letter) }.to_line()
}

/// The headers of a letter's record.
pub(crate) fn headers<'a>(letter: &'a DeadLetter, told: &'a str) -> Vec<(&'a str, Option<&'a [u8]>)> {
    let own = letter.event.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref()));
    own.chain([(LETTER_HEADER, Some(told.as_bytes()))]).collect()
}

/// A batch with one letter, written by nobody else than a commit set of this producer id.
pub(crate) fn batch_of(letter: &DeadLetter, producer_id: i64) -> Result<Batches, BatchError> {
    let told = told(letter);
    let mut batch = BatchBuilder::default();
    batch.producer(producer_id, 0, 0);
    let (key, value) = (letter.event.key.as_deref(), letter.event.value.as_deref());
    batch.push(now().as_ms(), key, value, &headers(letter, &told));
    Batches::parse(batch.build()?)
}

/// What a record of a topic of dead letters is.
#[derive(Clone, Debug)]
pub enum Found {
    /// A letter.
    Letter(Box<DeadLetter>),
    /// What became of one.
    State(StateOf),
    /// Somebody else's.
    Other,
}

/// Reads a record.
///
/// # Errors
/// If it has our header, and that cannot be read.
pub fn read(event: &Event) -> Result<Found, String> {
    let header = |name: &str| {
        let found = event.headers.iter().rev().find(|(header, _)| header == name);
        found.and_then(|(_, value)| std::str::from_utf8(value.as_deref()?).ok())
    };
    if let Some(told) = header(STATE_HEADER) {
        return serde_json::from_str(told).map(Found::State).map_err(|error| error.to_string());
    }
    let Some(told) = header(LETTER_HEADER) else { return Ok(Found::Other) };
    let mut letter = Letter::from_line(told)?;
    let headers = event.headers.iter().filter(|(name, _)| name != LETTER_HEADER).cloned().collect();
    letter.event.key.clone_from(&event.key);
    letter.event.value.clone_from(&event.value);
    letter.event.headers = headers;
    Ok(Found::Letter(Box::new(letter)))
}

/// The id of a letter: which event it is.
pub fn id_of(letter: &DeadLetter) -> String {
    let PartitionId { topic_id, partition } = letter.id;
    format!("{topic_id}/{partition}/{}", letter.event.offset)
}

/// `3 attempts, too big`
pub fn shown(gave_up: &GaveUp) -> String {
    format!("{} attempts: {}", gave_up.attempts, gave_up.why)
}
