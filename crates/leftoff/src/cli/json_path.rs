//! Finding one field in a line of JSON without building the rest of it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::bad_value::BadValue;

/// A path into a JSON document: `id`, `a.b[0].c`, `a["odd.name"]`, each also with `$.` in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
}

impl JsonPath {
    /// The value at the path as it is written in `json`, or `None` where there is nothing. The whole document
    /// is checked on the way. Where a name is given twice, the last one counts, as in JavaScript and Python.
    pub fn find<'a>(&self, json: &'a str) -> Result<Option<&'a RawValue>, serde_json::Error> {
        let mut at: Option<&'a RawValue> = Some(serde_json::from_str(json)?);
        for step in &self.steps {
            let Some(value) = at else { return Ok(None) };
            at = step.of(value.get())?;
        }
        Ok(at)
    }
}

impl Step {
    fn of<'a>(&self, json: &'a str) -> Result<Option<&'a RawValue>, serde_json::Error> {
        let mut document = serde_json::Deserializer::from_str(json);
        match (self, json.as_bytes().first()) {
            (Step::Field(name), Some(b'{')) => document.deserialize_map(FieldNamed(name)),
            (Step::Index(index), Some(b'[')) => document.deserialize_seq(ElementAt(*index)),
            _ => Ok(None),
        }
    }
}

/// Keeps the value of one name of an object.
struct FieldNamed<'p>(&'p str);

impl<'de> Visitor<'de> for FieldNamed<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_it) = map.next_key_seed(NameIs(self.0))? {
            if is_it {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Compares a name in place, without a copy of it.
struct NameIs<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for NameIs<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameIs<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

/// Keeps one element of an array.
struct ElementAt(usize);

impl<'de> Visitor<'de> for ElementAt {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        let mut number = 0;
        while let Some(element) = elements.next_element::<&'de RawValue>()? {
            if number == self.0 {
                found = Some(element);
            }
            number += 1;
        }
        Ok(found)
    }
}

/// What a JSON string says, borrowed where it holds no escapes; `None` if `value` is no string.
pub fn as_text(value: &RawValue) -> Result<Option<Cow<'_, str>>, serde_json::Error> {
    match value.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        None => Ok(None),
        Some(inside) if !inside.contains('\\') => Ok(Some(Cow::Borrowed(inside))),
        Some(_) => serde_json::from_str(value.get()).map(|text| Some(Cow::Owned(text))),
    }
}

impl FromStr for JsonPath {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<JsonPath, BadValue> {
        let mut rest = text.strip_prefix('$').filter(|rest| rest.starts_with(['.', '['])).unwrap_or(text);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = next_step(rest, steps.is_empty()).ok_or_else(|| {
                BadValue::new(text, "a JSON path", "names and indexes", "id, a.b[0].c or a[\"odd.name\"]")
            })?;
            steps.push(step);
            rest = after;
        }
        if steps.is_empty() {
            return Err(BadValue::new(text, "a JSON path", "names and indexes", "id or a.b[0].c"));
        }
        Ok(JsonPath { text: text.to_string(), steps })
    }
}

/// The step at the front of `rest` and what follows it.
fn next_step(rest: &str, is_first: bool) -> Option<(Step, &str)> {
    if let Some(quoted) = rest.strip_prefix("[\"") {
        let (name, after) = quoted.split_once("\"]")?;
        return Some((Step::Field(name.to_string()), after));
    }
    if let Some(index) = rest.strip_prefix('[') {
        let (digits, after) = index.split_once(']')?;
        let is_number = digits.bytes().all(|b| b.is_ascii_digit());
        return is_number.then(|| digits.parse().ok()).flatten().map(|index| (Step::Index(index), after));
    }
    let name = match rest.strip_prefix('.') {
        Some(name) => name,
        None if is_first => rest,
        None => return None,
    };
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (name, after) = name.split_at(end);
    (!name.is_empty() && !name.contains(']')).then(|| (Step::Field(name.to_string()), after))
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
