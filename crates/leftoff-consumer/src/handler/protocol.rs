//! The lines between runner and child: one JSON object each. Unknown keys are ignored, so that both sides can grow.
//!
//! | line | meaning |
//! | --- | --- |
//! | → `{"leftoff": 1, "topic": …, "group": …}` | the hello; an answer `{"leftoff": 1}` is welcome and not needed |
//! | → `{"id", "topic", "topic_id", "partition", "offset", "timestamp_ms", "key", "value", "headers", "attempt"}` | an event |
//! | ← `{"id": …}` with `records`, `filtered`, or `error` and `retry` | its answer |
//! | → `{"stop": true}` | no more events |
//!
//! `key` and `value` are text or `null`; what is not UTF-8 stands as base64 under `key_base64`, `value_base64`. Headers are
//! pairs; a value that is not UTF-8 is `{"base64": …}`.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Answer, Delivery, HandlerError, Record};
use crate::{shorten, visible};

#[cfg(test)]
mod tests;

/// The most of a handler's own words on a failure that is kept.
const MAX_ERROR_CHARS: usize = 2_000;

/// The first line to a child.
pub(super) fn hello(topic: &str, group: &str) -> Vec<u8> {
    line(&json!({ "leftoff": 1, "topic": topic, "group": group }))
}

/// The last line to a child.
pub(super) fn stop() -> Vec<u8> {
    line(&json!({ "stop": true }))
}

/// The name of a delivery. A child that is kept alive gets it with a token behind it, so that nobody can count on to the next.
pub(super) fn event_id(delivery: &Delivery<'_>) -> String {
    let Delivery { topic, id, event, attempt } = delivery;
    format!("{topic}/{}/{}#{attempt}", id.partition, event.offset)
}

/// An event as a line.
pub(super) fn event(id: &str, delivery: &Delivery<'_>) -> Vec<u8> {
    let event = delivery.event;
    let (key, key_base64) = text_or_base64(event.key.as_deref());
    let (value, value_base64) = text_or_base64(event.value.as_deref());
    let headers =
        event.headers.iter().map(|(name, value)| (name.as_str(), HeaderValue::of(value.as_deref())));
    let line = EventLine {
        id,
        topic: delivery.topic,
        topic_id: delivery.id.topic_id.to_string(),
        partition: delivery.id.partition,
        offset: event.offset.get(),
        timestamp_ms: event.timestamp_ms,
        key,
        key_base64,
        value,
        value_base64,
        headers: headers.collect(),
        attempt: delivery.attempt,
    };
    let mut bytes = serde_json::to_vec(&line).expect("texts and numbers have a JSON form");
    bytes.push(b'\n');
    bytes
}

#[derive(Serialize)]
struct EventLine<'a> {
    id: &'a str,
    topic: &'a str,
    topic_id: String,
    partition: i32,
    offset: i64,
    timestamp_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_base64: Option<String>,
    headers: Vec<(&'a str, HeaderValue<'a>)>,
    attempt: u32,
}

/// Text or null; or, where it is neither, base64 in its place.
fn text_or_base64(bytes: Option<&[u8]>) -> (Option<Option<&str>>, Option<String>) {
    match bytes.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => (Some(None), None),
        Some((_, Ok(text))) => (Some(Some(text)), None),
        Some((bytes, Err(_))) => (None, Some(STANDARD.encode(bytes))),
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum HeaderValue<'a> {
    Text(Option<&'a str>),
    Bytes { base64: String },
}

impl HeaderValue<'_> {
    fn of(bytes: Option<&[u8]>) -> HeaderValue<'_> {
        match text_or_base64(bytes) {
            (_, Some(base64)) => HeaderValue::Bytes { base64 },
            (text, None) => HeaderValue::Text(text.flatten()),
        }
    }
}

fn line(object: &Value) -> Vec<u8> {
    let mut line = object.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// What the runner and the child have between them when a line comes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expected<'a> {
    /// The event that the child has.
    pub(super) in_flight: Option<&'a str>,
    /// The one it answered for last.
    pub(super) answered: Option<&'a str>,
    /// True once the hello is answered, or an event is: then no more answers to it are taken.
    pub(super) greeted: bool,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    records: Option<Vec<&'a RawValue>>,
    filtered: Option<bool>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    retry: Option<bool>,
    leftoff: Option<IgnoredAny>,
}

/// A line that is a JSON object as the protocol has it.
pub(super) struct Parsed<'a>(Line<'a>, &'a [u8]);

impl<'a> Parsed<'a> {
    /// Reads a line of the child, without its end.
    pub(super) fn new(line: &'a [u8]) -> Result<Parsed<'a>, HandlerError> {
        let text = std::str::from_utf8(line).map_err(|_| no_answer(line, "it is not UTF-8"))?;
        if !text.trim_start().starts_with('{') {
            return Err(no_answer(line, "it is not a JSON object"));
        }
        let parsed = serde_json::from_str(text).map_err(|error| no_answer(line, &error.to_string()))?;
        Ok(Parsed(parsed, line))
    }

    /// The event that it answers for.
    pub(super) fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    /// What it says. `None` is an answer to the hello.
    pub(super) fn answer(self, expected: Expected<'_>) -> Result<Option<Answer>, HandlerError> {
        let Parsed(parsed, line) = self;
        let Some(id) = &parsed.id else {
            let is_hello = parsed.leftoff.is_some() && !expected.greeted;
            return if is_hello { Ok(None) } else { Err(no_answer(line, "it has no id")) };
        };
        if expected.in_flight != Some(id) {
            return Err(wrong_id(id, line, expected));
        }
        parsed.answer().map(Some).map_err(|why| no_answer(line, why))
    }

    /// What it says, where it can be about one event only.
    #[cfg(feature = "http")]
    pub(super) fn only_answer(self) -> Result<Answer, &'static str> {
        self.0.answer()
    }
}

/// Reads a line of the child, without its end. `None` is an answer to the hello.
pub(super) fn answer(line: &[u8], expected: Expected<'_>) -> Result<Option<Answer>, HandlerError> {
    Parsed::new(line)?.answer(expected)
}

fn no_answer(line: &[u8], why: &str) -> HandlerError {
    HandlerError::NoAnswer { line: shorten(line), why: why.to_owned(), on_fd: None }
}

fn wrong_id(id: &str, line: &[u8], expected: Expected<'_>) -> HandlerError {
    let (id, line) = (id.to_owned(), shorten(line));
    if expected.answered == Some(id.as_str()) {
        HandlerError::AnsweredTwice { id, line }
    } else {
        let in_flight = expected.in_flight.unwrap_or("none").to_owned();
        HandlerError::UnknownId { id: shorten(id.as_bytes()), in_flight, line }
    }
}

impl Line<'_> {
    fn answer(self) -> Result<Answer, &'static str> {
        let filtered = self.filtered == Some(true);
        match (self.error, self.records) {
            (Some(_), Some(_)) => Err("it has both an error and records"),
            (Some(_), None) if filtered => Err("it has both an error and filtered"),
            (None, Some(_)) if filtered => Err("it has both records and filtered"),
            (Some(error), None) => {
                Ok(Answer::Failed { error: error_text(error), retry: self.retry != Some(false) })
            }
            (None, _) if filtered => Ok(Answer::Filtered),
            (None, records) => {
                let records = records.unwrap_or_default().into_iter();
                Ok(Answer::Handled { records: records.map(|json| Record(json.to_owned())).collect() })
            }
        }
    }
}

/// A string as it is; anything else as its JSON.
fn error_text(error: &RawValue) -> String {
    let text = serde_json::from_str(error.get()).unwrap_or_else(|_| error.get().to_owned());
    visible(&text, MAX_ERROR_CHARS)
}
