//! Dead letters as text, one JSON object on one line: what a file and a database keep of them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use leftoff_wire::{Offset, Uuid};
use serde::{Deserialize, Serialize};

use super::{DeadLetter, GaveUp};
use crate::source::{Event, PartitionId};

/// A dead letter's line.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Letter {
    /// `TOPIC_ID/PARTITION/OFFSET`
    pub id: String,
    /// The topic's name.
    pub topic: String,
    /// The group that gave the event up.
    pub group: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Why the last attempt failed.
    pub why: String,
    /// When it was given up, milliseconds since 1970.
    pub at_ms: i64,
    /// The event's own timestamp, milliseconds since 1970.
    pub timestamp_ms: i64,
    /// The key, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Bytes>,
    /// The value; `None` is a tombstone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Bytes>,
    /// The headers, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, Option<Bytes>)>,
}

/// Text as it is, or `{"base64": …}`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Bytes {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Other {
        /// RFC 4648, with padding.
        base64: String,
    },
}

impl Bytes {
    fn of(bytes: &[u8]) -> Bytes {
        match std::str::from_utf8(bytes) {
            Ok(text) => Bytes::Text(text.to_owned()),
            Err(_) => Bytes::Other { base64: STANDARD.encode(bytes) },
        }
    }

    fn to_vec(&self) -> Result<Vec<u8>, String> {
        match self {
            Bytes::Text(text) => Ok(text.clone().into_bytes()),
            Bytes::Other { base64 } => {
                STANDARD.decode(base64).map_err(|error| format!("{base64:?} is no base64: {error}"))
            }
        }
    }
}

/// What became of a dead letter.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeadState {
    /// Nothing yet.
    #[default]
    Open,
    /// Its event was produced again.
    Replayed,
    /// It is not wanted any more.
    Dropped,
}

impl fmt::Display for DeadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeadState::Open => "open",
            DeadState::Replayed => "replayed",
            DeadState::Dropped => "dropped",
        })
    }
}

impl Letter {
    /// All that is known of it.
    pub fn of(letter: &DeadLetter) -> Letter {
        let DeadLetter { gave_up: GaveUp { attempts, why }, group, topic, id, event, at_ms } = letter;
        let header =
            |(name, value): &(String, Option<Vec<u8>>)| (name.clone(), value.as_deref().map(Bytes::of));
        Letter {
            id: format!("{id}/{}", event.offset),
            topic: topic.clone(),
            group: group.clone(),
            attempts: *attempts,
            why: why.clone(),
            at_ms: *at_ms,
            timestamp_ms: event.timestamp_ms,
            key: event.key.as_deref().map(Bytes::of),
            value: event.value.as_deref().map(Bytes::of),
            headers: event.headers.iter().map(header).collect(),
        }
    }

    /// One line, without its end.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers have a JSON form")
    }

    /// The letter of a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_line(line: &str) -> Result<DeadLetter, String> {
        let letter: Letter = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let (id, offset) =
            place(&letter.id).ok_or_else(|| format!("{:?} is no id of an event", letter.id))?;
        let header =
            |(name, value): (String, Option<Bytes>)| Ok((name, value.map(|v| v.to_vec()).transpose()?));
        let event = Event {
            offset,
            timestamp_ms: letter.timestamp_ms,
            key: letter.key.map(|key| key.to_vec()).transpose()?,
            value: letter.value.map(|value| value.to_vec()).transpose()?,
            headers: letter.headers.into_iter().map(header).collect::<Result<_, String>>()?,
            leader_epoch: -1,
        };
        Ok(DeadLetter {
            gave_up: GaveUp { attempts: letter.attempts, why: letter.why },
            group: letter.group,
            topic: letter.topic,
            id,
            event,
            at_ms: letter.at_ms,
        })
    }
}

fn place(id: &str) -> Option<(PartitionId, Offset)> {
    let mut words = id.split('/');
    let topic_id: Uuid = words.next()?.parse().ok()?;
    let partition = words.next()?.parse().ok()?;
    let offset = Offset::new(words.next()?.parse().ok()?)?;
    words.next().is_none().then_some((PartitionId { topic_id, partition }, offset))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::testing::{event, id};

    #[test]
    fn a_letter_keeps_every_byte() {
        let headers =
            vec![("h".to_owned(), None), ("h".to_owned(), Some(vec![0xff])), (String::new(), Some(vec![]))];
        for (key, value) in
            [(None, None), (Some(b"k".to_vec()), Some(vec![0, 159, 146, 150])), (Some(vec![]), None)]
        {
            let letter = DeadLetter {
                gave_up: GaveUp { attempts: 3, why: "too\nbig".to_owned() },
                group: "g".to_owned(),
                topic: "t".to_owned(),
                id: id(2),
                event: Event { key, value, headers: headers.clone(), leader_epoch: -1, ..event(7) },
                at_ms: 12,
            };
            let line = Letter::of(&letter).to_line();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Letter::from_line(&line), Ok(letter));
        }
        for bad in [
            "",
            "{}",
            "[]",
            r#"{"id":"x","topic":"t","group":"g","attempts":1,"why":"","at_ms":1,"timestamp_ms":1}"#,
        ] {
            assert!(Letter::from_line(bad).is_err(), "{bad}");
        }
    }
}
