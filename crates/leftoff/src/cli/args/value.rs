//! Values of flags, parsed into types at the door. A refusal names the flag, the value, what was expected and
//! an example, and is ours from the first word: clap's own would repeat the raw value, which may hold a
//! password.

use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command};
use leftoff_wire::Offset;

use crate::cli::bad_value::BadValue;

/// A parser of one kind of value for clap.
#[derive(Clone)]
pub struct Parsed<T> {
    parse: fn(&str) -> Result<T, BadValue>,
}

/// The values that `parse` makes.
pub fn parsed<T>(parse: fn(&str) -> Result<T, BadValue>) -> Parsed<T> {
    Parsed { parse }
}

/// The values of a type that parses itself.
pub fn value<T: FromStr<Err = BadValue>>() -> Parsed<T> {
    Parsed { parse: T::from_str }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Parsed<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let text = value.to_str().ok_or_else(|| {
            let bad = BadValue::refuse(
                format!("'{}' is not UTF-8", value.to_string_lossy()),
                "write it in UTF-8, for example café and not its Latin-1 bytes",
            );
            refusal(command, arg, &bad)
        })?;
        (self.parse)(text).map_err(|bad| refusal(command, arg, &bad))
    }
}

fn refusal(command: &Command, arg: Option<&Arg>, bad: &BadValue) -> clap::Error {
    let place = arg.map(|arg| format!("{arg}: ")).unwrap_or_default();
    let message = format!("{place}{}\nhint: {}\n", bad.problem(), bad.hint());
    clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
}

/// The name of a topic: Kafka's rules, because its name is a folder's (Kafka `Topic.validate`).
pub fn topic_name(text: &str) -> Result<String, BadValue> {
    const MAX_BYTES: usize = 249;
    let is_legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if text.is_empty() || text.len() > MAX_BYTES || text == "." || text == ".." || !text.bytes().all(is_legal)
    {
        return Err(BadValue::new(
            text,
            "a topic name",
            "1 to 249 of the letters a-z, A-Z, 0-9, '.', '_' and '-'",
            "quakes",
        ));
    }
    Ok(text.to_string())
}

/// The name of a group: any text that is not empty and fits Kafka's 16-bit length.
pub fn group_name(text: &str) -> Result<String, BadValue> {
    if text.trim().is_empty() || text.len() > i16::MAX as usize {
        return Err(BadValue::new(text, "a group name", "1 to 32767 bytes that are not all blank", "alerts"));
    }
    Ok(text.to_string())
}

/// The number of a partition, from 0.
pub fn partition(text: &str) -> Result<i32, BadValue> {
    let bad = || BadValue::new(text, "a partition", "a number from 0 to 2147483647", "0");
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().map_err(|_| bad()) } else { Err(bad()) }
}

/// How many partitions a topic has. The limit keeps a slip from making a million folders.
pub fn partition_count(text: &str) -> Result<i32, BadValue> {
    const MAX_PARTITIONS: i32 = 10_000;
    match partition(text) {
        Ok(count) if (1..=MAX_PARTITIONS).contains(&count) => Ok(count),
        _ => Err(BadValue::new(text, "a number of partitions", "a number from 1 to 10000", "4")),
    }
}

/// How many events, at least one.
pub fn event_count(text: &str) -> Result<u64, BadValue> {
    match text.parse() {
        Ok(count) if count > 0 && text.bytes().all(|b| b.is_ascii_digit()) => Ok(count),
        _ => Err(BadValue::new(text, "a number of events", "a whole number from 1", "100")),
    }
}

/// An offset as a plain number from 0.
pub fn offset(text: &str) -> Result<Offset, BadValue> {
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    let number = if is_number { text.parse().ok() } else { None };
    number.and_then(Offset::new).ok_or_else(|| BadValue::new(text, "an offset", "a number from 0", "42"))
}

/// A distance in offsets, backwards if negative.
pub fn shift(text: &str) -> Result<i64, BadValue> {
    text.parse().map_err(|_| BadValue::new(text, "a distance in offsets", "a whole number", "-10 or 10"))
}

/// One topic, whole or some of its partitions: `T` or `T:0,1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPartitions {
    /// The topic.
    pub topic: String,
    /// The partitions, rising and each once; all of the topic's if empty.
    pub partitions: Vec<i32>,
}

impl FromStr for TopicPartitions {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<TopicPartitions, BadValue> {
        let Some((topic, list)) = text.split_once(':') else {
            return Ok(TopicPartitions { topic: topic_name(text)?, partitions: Vec::new() });
        };
        let numbers: Result<Vec<i32>, BadValue> = list.split(',').map(partition).collect();
        let mut partitions = numbers.map_err(|_| {
            BadValue::new(text, "a topic with partitions", "TOPIC or TOPIC:PARTITION,PARTITION", "quakes:0,1")
        })?;
        partitions.sort_unstable();
        partitions.dedup();
        Ok(TopicPartitions { topic: topic_name(topic)?, partitions })
    }
}

/// A setting of a topic: `key=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Kafka's name of it, such as `retention.ms`.
    pub key: String,
    /// Its value as text; empty takes the setting back to its default (in alter).
    pub value: String,
}

impl FromStr for Setting {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Setting, BadValue> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Setting { key: key.trim().to_string(), value: value.trim().to_string() })
            }
            _ => Err(BadValue::new(text, "a setting", "key=value", "retention.ms=604800000")),
        }
    }
}

/// How long the events of a topic are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Never deleted because of their age.
    Forever,
    /// So many milliseconds from the moment their segment was closed.
    For {
        /// The length in milliseconds.
        ms: i64,
    },
}

impl FromStr for Retention {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Retention, BadValue> {
        if text == "forever" {
            return Ok(Retention::Forever);
        }
        let bad = |_| BadValue::new(text, "a retention", "forever or a duration (12h, 7d, P7D)", "7d");
        let length = crate::cli::time::parse_duration(text).map_err(bad)?;
        let ms = i64::try_from(length.as_millis()).expect("a parsed duration fits 63 bits of milliseconds");
        Ok(Retention::For { ms })
    }
}

#[cfg(test)]
mod tests;
