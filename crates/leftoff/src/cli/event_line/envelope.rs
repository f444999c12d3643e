//! `--input json-envelope`: one JSON object that holds the parts of an event.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Event, Header, Line, as_text, not_json, text_of, wrong};
use crate::cli::failure::Failure;

/// The names of an envelope that carry something.
const NAMES: [&str; 7] =
    ["key", "key_base64", "value", "value_base64", "headers", "timestamp_ms", "partition"];
/// Names that `consume` prints and that say nothing about where the event goes now.
const IGNORED: [&str; 2] = ["topic", "offset"];

/// The event that the envelope on `line` describes, with `headers` before its own.
pub fn parse<'a>(line: &Line<'a>, headers: &'a [Header]) -> Result<Event<'a>, Failure> {
    let json = text_of(line)?;
    let envelope: Envelope<'a> = serde_json::from_str(json).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => wrong(line, "JSON, but no object").hint(HINT),
        _ => not_json(line, &error),
    })?;
    if let Some(name) = &envelope.unknown {
        return Err(wrong(line, &format!("an envelope has no '{name}'")).hint(HINT));
    }
    envelope.event(headers).map_err(|what| wrong(line, &what).hint(HINT))
}

const HINT: &str = "an envelope is {\"key\": …, \"value\": …, \"headers\": [[\"name\", \"text\"]], \
    \"timestamp_ms\": …, \"partition\": …}; --input json-each-row takes any object as the value";

/// The parts as written, by their place in [`NAMES`].
struct Envelope<'a> {
    parts: [Option<&'a RawValue>; NAMES.len()],
    unknown: Option<String>,
}

impl<'a> Envelope<'a> {
    fn event(&self, headers: &'a [Header]) -> Result<Event<'a>, String> {
        let [key, key_base64, value, value_base64, own_headers, timestamp_ms, partition] = self.parts;
        let key = one_of("key", key, key_base64)?.flatten();
        let value =
            one_of("value", value, value_base64)?.ok_or("an envelope needs a value, or null for none")?;
        let headers = match own_headers {
            None => Cow::Borrowed(headers),
            Some(own) => Cow::Owned([headers.to_vec(), parse_headers(own)?].concat()),
        };
        let timestamp_ms = timestamp_ms.map(|raw| integer("timestamp_ms", raw)).transpose()?;
        let partition = partition.map(|raw| integer("partition", raw)).transpose()?;
        let partition = match partition.map(i32::try_from) {
            None => None,
            Some(Ok(partition)) if partition >= 0 => Some(partition),
            Some(_) => return Err("partition is not a number from 0 to 2147483647".to_string()),
        };
        Ok(Event { key, value, headers, timestamp_ms, partition })
    }
}

/// Bytes that may be null.
type Bytes<'a> = Option<Cow<'a, [u8]>>;

/// The bytes under `name` or under `name_base64`; `None` if neither is there.
fn one_of<'a>(
    name: &str,
    text: Option<&'a RawValue>,
    base64: Option<&'a RawValue>,
) -> Result<Option<Bytes<'a>>, String> {
    match (text, base64) {
        (None, None) => Ok(None),
        (Some(text), None) => bytes_of(name, text).map(Some),
        (None, Some(base64)) => {
            let text: String =
                serde_json::from_str(base64.get()).map_err(|_| format!("{name}_base64 is no text"))?;
            let bytes =
                STANDARD.decode(text).map_err(|error| format!("{name}_base64 is not base64 ({error})"))?;
            Ok(Some(Some(Cow::Owned(bytes))))
        }
        (Some(_), Some(_)) => Err(format!("both {name} and {name}_base64")),
    }
}

/// Text without its quotes, null as null, other JSON as written.
fn bytes_of<'a>(name: &str, raw: &'a RawValue) -> Result<Bytes<'a>, String> {
    if raw.get() == "null" {
        return Ok(None);
    }
    let text = as_text(raw).map_err(|_| format!("{name} holds an escape that is no character"))?;
    Ok(Some(match text {
        None => Cow::Borrowed(raw.get().as_bytes()),
        Some(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
        Some(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
    }))
}

fn integer(name: &str, raw: &RawValue) -> Result<i64, String> {
    raw.get().parse().map_err(|_| format!("{name} is not a whole number"))
}

/// `[["name", "text"], …]`, in which names may repeat, or `{"name": "text"}`. A value is text, null, or
/// `{"base64": "…"}`.
fn parse_headers(raw: &RawValue) -> Result<Vec<Header>, String> {
    const WRONG: &str = "headers are not a list of [\"name\", \"text\"]";
    let value: Value = serde_json::from_str(raw.get()).map_err(|_| WRONG)?;
    let pairs: Vec<(String, Value)> = match value {
        Value::Object(map) => map.into_iter().collect(),
        Value::Array(_) => serde_json::from_value(value).map_err(|_| WRONG)?,
        Value::Null => Vec::new(),
        _ => return Err(WRONG.to_string()),
    };
    let header =
        |(name, value)| header_value(&value).map(|value| Header { name, value }).ok_or(WRONG.to_string());
    pairs.into_iter().map(header).collect()
}

fn header_value(value: &Value) -> Option<Option<Vec<u8>>> {
    match value {
        Value::Null => Some(None),
        Value::String(text) => Some(Some(text.clone().into_bytes())),
        Value::Object(map) if map.len() == 1 => STANDARD.decode(map.get("base64")?.as_str()?).ok().map(Some),
        _ => None,
    }
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Parts)
    }
}

struct Parts;

impl<'de> Visitor<'de> for Parts {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
        let mut envelope = Envelope { parts: [None; NAMES.len()], unknown: None };
        while let Some(name) = map.next_key::<String>()? {
            let value: &'de RawValue = map.next_value()?;
            match NAMES.iter().position(|known| *known == name) {
                Some(number) => envelope.parts[number] = Some(value),
                None if IGNORED.contains(&name.as_str()) => {}
                None => envelope.unknown = envelope.unknown.or(Some(name)),
            }
        }
        Ok(envelope)
    }
}
