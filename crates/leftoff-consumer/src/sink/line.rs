//! An output line: the handler's record, and the id that tells which event it came from.

use std::fmt;

use leftoff_wire::Offset;
use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};

use super::{BadRecord, Outcome, Output};
use crate::handler::Record;
use crate::source::PartitionId;

/// The key that an output line carries its id under: `TOPIC_ID/PARTITION/OFFSET/N`, N being the record's number within the
/// event, from 0.
pub const ID_KEY: &str = "leftoff_id";

/// Appends the output's records to `bytes`, a line each. An object gets its id as the last key; anything else becomes
/// `{"value": …, "leftoff_id": …}`.
pub(super) fn append_lines(bytes: &mut Vec<u8>, output: &Output) {
    let Outcome::Handled { records } = &output.outcome else { return };
    for (number, record) in records.iter().enumerate() {
        append_line(bytes, record, output.id, output.offset, number);
    }
}

fn append_line(bytes: &mut Vec<u8>, record: &Record, id: PartitionId, offset: Offset, number: usize) {
    let json = record.json();
    match json.strip_suffix('}').filter(|_| json.starts_with('{')) {
        Some(object) => {
            bytes.extend_from_slice(object.as_bytes());
            let is_empty = object[1..].trim_ascii().is_empty();
            bytes.extend_from_slice(if is_empty { b"" } else { b"," });
        }
        None => {
            bytes.extend_from_slice(b"{\"value\":");
            bytes.extend_from_slice(json.as_bytes());
            bytes.push(b',');
        }
    }
    // A topic id is base64url: nothing in an id needs escaping.
    bytes.extend_from_slice(format!("\"{ID_KEY}\":\"{id}/{offset}/{number}\"}}\n").as_bytes());
}

/// Refuses records that have the id's key already: the line would have two.
pub(super) fn check_records(output: &Output) -> Result<(), BadRecord> {
    let Outcome::Handled { records } = &output.outcome else { return Ok(()) };
    match records.iter().position(has_id_key) {
        None => Ok(()),
        Some(number) => {
            Err(BadRecord { number, why: format!("it has a key {ID_KEY:?}, which is Leftoff's own") })
        }
    }
}

fn has_id_key(record: &Record) -> bool {
    let json = record.json();
    json.starts_with('{')
        && serde_json::Deserializer::from_str(json).deserialize_map(FindIdKey).is_ok_and(|found| found)
}

struct FindIdKey;

impl<'de> Visitor<'de> for FindIdKey {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            found |= key == ID_KEY;
            map.next_value::<IgnoredAny>()?;
        }
        Ok(found)
    }
}
