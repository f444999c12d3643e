//! What a handler's record means to a topic: an event, and perhaps the topic that it names.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Names of headers that begin so are Leftoff's own.
const OWN_HEADERS: &str = "leftoff_";

/// An event to be appended, as far as the record tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NewEvent {
    /// The topic that the record names; the sink's own without one.
    pub topic: Option<String>,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<Header>,
}

/// A header's name and value.
type Header = (String, Option<Vec<u8>>);

/// Reads a record. An object that has the key `topic`, and besides no other keys than `key`, `key_base64`, `value`,
/// `value_base64` and `headers`, says where the event goes and what it consists of; any other value is the event's value.
///
/// As a key or a value, a text stands for its bytes, `null` for none, and anything else for its JSON.
pub(super) fn read(json: &str) -> Result<NewEvent, String> {
    if !json.starts_with('{') {
        return Ok(NewEvent { value: bytes(json)?, ..NewEvent::default() });
    }
    match serde_json::from_str(json).map_err(|error| error.to_string())? {
        Parsed::Value => Ok(NewEvent { value: Some(json.as_bytes().to_vec()), ..NewEvent::default() }),
        Parsed::Envelope(envelope) => envelope.event(),
    }
}

enum Parsed<'a> {
    /// An object that is no envelope.
    Value,
    Envelope(Envelope<'a>),
}

#[derive(Default)]
struct Envelope<'a> {
    topic: Option<&'a RawValue>,
    key: Option<&'a RawValue>,
    key_base64: Option<&'a RawValue>,
    value: Option<&'a RawValue>,
    value_base64: Option<&'a RawValue>,
    headers: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for Parsed<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Parsed<'de>, D::Error> {
        deserializer.deserialize_map(ReadEnvelope)
    }
}

struct ReadEnvelope;

impl<'de> Visitor<'de> for ReadEnvelope {
    type Value = Parsed<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed<'de>, A::Error> {
        let mut envelope = Envelope::default();
        let (mut is_value, mut twice) = (false, None);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let value = map.next_value::<&'de RawValue>()?;
            let field = match key.as_ref() {
                "topic" => &mut envelope.topic,
                "key" => &mut envelope.key,
                "key_base64" => &mut envelope.key_base64,
                "value" => &mut envelope.value,
                "value_base64" => &mut envelope.value_base64,
                "headers" => &mut envelope.headers,
                _ => {
                    is_value = true;
                    continue;
                }
            };
            if field.replace(value).is_some() {
                twice = Some(key);
            }
        }
        match twice {
            _ if is_value || envelope.topic.is_none() => Ok(Parsed::Value),
            Some(key) => Err(A::Error::custom(format!("it has {key:?} twice"))),
            None => Ok(Parsed::Envelope(envelope)),
        }
    }
}

impl Envelope<'_> {
    fn event(self) -> Result<NewEvent, String> {
        let topic = self.topic.map_or("null", RawValue::get);
        let topic: String = serde_json::from_str(topic).map_err(|_| {
            format!(
                "its topic is {topic}, not a text; an object with these keys as a value goes into \"value\""
            )
        })?;
        Ok(NewEvent {
            topic: Some(topic),
            key: part("key", self.key, self.key_base64)?,
            value: part("value", self.value, self.value_base64)?,
            headers: self.headers.map_or(Ok(Vec::new()), headers)?,
        })
    }
}

fn part(name: &str, plain: Option<&RawValue>, base64: Option<&RawValue>) -> Result<Option<Vec<u8>>, String> {
    match (plain, base64) {
        (Some(_), Some(_)) => Err(format!("it has both {name:?} and \"{name}_base64\"")),
        (Some(plain), None) => bytes(plain.get()),
        (None, Some(base64)) => {
            from_base64(base64.get()).map(Some).ok_or_else(|| format!("its {name}_base64 is not base64"))
        }
        (None, None) => Ok(None),
    }
}

/// A text as its bytes, `null` as none, anything else as its JSON.
fn bytes(json: &str) -> Result<Option<Vec<u8>>, String> {
    match json.as_bytes().first() {
        Some(b'"') => {
            let text: String = serde_json::from_str(json).map_err(|error| error.to_string())?;
            Ok(Some(text.into_bytes()))
        }
        Some(b'n') => Ok(None),
        _ => Ok(Some(json.as_bytes().to_vec())),
    }
}

fn from_base64(json: &str) -> Option<Vec<u8>> {
    let text: String = serde_json::from_str(json).ok()?;
    STANDARD.decode(text).ok()
}

/// Pairs of a name and a text, `null`, or `{"base64": …}`: as an event's headers come to a handler.
fn headers(json: &RawValue) -> Result<Vec<Header>, String> {
    let pairs: Vec<(String, &RawValue)> = serde_json::from_str(json.get())
        .map_err(|_| "its headers are not a list of pairs, [[\"name\", \"value\"]]".to_owned())?;
    pairs.into_iter().map(|(name, value)| header(name, value.get())).collect()
}

fn header(name: String, value: &str) -> Result<Header, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Base64 {
        base64: String,
    }
    if name.starts_with(OWN_HEADERS) {
        return Err(format!("its header {name:?} is Leftoff's own"));
    }
    let value = match value.as_bytes().first() {
        Some(b'"' | b'n') => bytes(value)?,
        _ => {
            let wrapped = serde_json::from_str::<Base64>(value).ok();
            let bytes = wrapped.and_then(|wrapped| STANDARD.decode(wrapped.base64).ok());
            Some(bytes.ok_or_else(|| {
                format!("the value of its header {name:?} is neither a text, null nor {{\"base64\": …}}")
            })?)
        }
    };
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(json: &str) -> String {
        let text = |bytes: Option<Vec<u8>>| {
            bytes.map_or("-".to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        match read(json) {
            Err(why) => why,
            Ok(event) => {
                let headers =
                    event.headers.into_iter().map(|(name, value)| format!(" {name}={}", text(value)));
                let topic = event.topic.unwrap_or_default();
                format!("{topic}|{}|{}{}", text(event.key), text(event.value), headers.collect::<String>())
            }
        }
    }

    #[test]
    fn a_record_is_a_value_or_an_envelope() {
        let table = [
            (r#"{"v":1}"#, r#"|-|{"v":1}"#),
            (r#""plain""#, "|-|plain"),
            ("1.50", "|-|1.50"),
            ("null", "|-|-"),
            ("[1]", "|-|[1]"),
            // Not an envelope: another key, or no topic.
            (r#"{"topic":"t","value":1,"more":2}"#, r#"|-|{"topic":"t","value":1,"more":2}"#),
            (r#"{"key":"k","value":1}"#, r#"|-|{"key":"k","value":1}"#),
            (r#"{"topic":"t","key":"k","value":{"a":1.0}}"#, r#"t|k|{"a":1.0}"#),
            (r#"{"topic":"t","key":7,"value":"text\n"}"#, "t|7|text\n"),
            (r#"{"topic":"t","key":null,"value":null}"#, "t|-|-"),
            (r#"{"topic":"t"}"#, "t|-|-"),
            (r#"{"topic":"t","key_base64":"aGk=","value_base64":"aG8="}"#, "t|hi|ho"),
            (
                r#"{"topic":"t","headers":[["a","b"],["c",null],["d",{"base64":"aGk="}]]}"#,
                "t|-|- a=b c=- d=hi",
            ),
        ];
        for (json, expect) in table {
            assert_eq!(show(json), expect, "{json}");
        }
    }

    #[test]
    fn what_cannot_be_written_says_why() {
        let table = [
            (r#"{"topic":7,"value":1}"#, "its topic is 7, not a text"),
            (r#"{"topic":"t","value":1,"value":2}"#, "it has \"value\" twice"),
            (
                r#"{"topic":"t","value":1,"value_base64":"aGk="}"#,
                "it has both \"value\" and \"value_base64\"",
            ),
            (r#"{"topic":"t","key_base64":"?"}"#, "its key_base64 is not base64"),
            (r#"{"topic":"t","headers":{"a":"b"}}"#, "its headers are not a list of pairs"),
            (r#"{"topic":"t","headers":[["a",7]]}"#, "the value of its header \"a\" is neither"),
            (r#"{"topic":"t","headers":[["leftoff_id","x"]]}"#, "its header \"leftoff_id\" is Leftoff's own"),
        ];
        for (json, expect) in table {
            let shown = show(json);
            assert!(shown.starts_with(expect), "{json}\n is {shown}\nnot {expect}");
        }
    }
}
