//! Input of `produce`: a line becomes an event. [`LineReader`] finds the lines, [`EventParser`] reads them.

mod envelope;
mod line_reader;

use std::borrow::Cow;
use std::str::FromStr;

use super::bad_value::{BadValue, shorten};
use super::failure::Failure;
pub use super::json_path::JsonPath;
use super::json_path::as_text;
pub use line_reader::{Line, LineReader, MAX_LINE_BYTES, PASSED_BYTES};

/// What the help of `--input` says.
pub const INPUT_FORMS: &str = "\
What a line is:
lines          each line is a value, whatever bytes it holds; an empty line is an empty value
json-each-row  each line is one JSON object, which is the value as written; blank lines are skipped
json-envelope  each line is one JSON object that describes the event, as consume --format json prints it:
               {\"key\": …, \"value\": …, \"headers\": [[\"name\", \"text\"]], \"timestamp_ms\": …, \"partition\": …};
               value is needed, text is taken without its quotes, other JSON as written, null is null;
               key_base64 and value_base64 hold other bytes; topic and offset are ignored

A line ends with LF or CR LF, which are no part of it; the last one may end without. A line longer than
1,047,552 bytes is an error";

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputForm {
    /// The value, whatever bytes it holds.
    Lines,
    /// A JSON object that is the value.
    JsonEachRow,
    /// A JSON object that holds the parts of the event.
    JsonEnvelope,
}

/// Where the key of an event comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyFrom {
    /// Events have no key (or the one in the envelope).
    Nowhere,
    /// Every event has this key.
    Literal(Vec<u8>),
    /// From the JSON on the line.
    Field(JsonPath),
}

/// A header of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its bytes, or null.
    pub value: Option<Vec<u8>>,
}

/// What one line says. It borrows from the line and from the parser where it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Decides the partition; events of one key stay in order.
    pub key: Option<Cow<'a, [u8]>>,
    /// The bytes of the event; `None` is Kafka's tombstone.
    pub value: Option<Cow<'a, [u8]>>,
    /// In the order given, those of the flags first.
    pub headers: Cow<'a, [Header]>,
    /// When it happened, where the envelope says so (unix milliseconds).
    pub timestamp_ms: Option<i64>,
    /// The partition that the envelope names.
    pub partition: Option<i32>,
}

/// Makes events of lines.
#[derive(Clone, Debug)]
pub struct EventParser {
    form: InputForm,
    key: KeyFrom,
    headers: Vec<Header>,
}

impl EventParser {
    /// A parser of lines of one form. A key cannot come from two places.
    pub fn new(form: InputForm, key: KeyFrom, headers: Vec<Header>) -> Result<EventParser, Failure> {
        if form == InputForm::JsonEnvelope && key != KeyFrom::Nowhere {
            return Err(Failure::usage("with --input json-envelope the key is in the envelope")
                .hint("leave out -k and --key-field, or use --input json-each-row"));
        }
        Ok(EventParser { form, key, headers })
    }

    /// The event on `line`; `None` for a blank line where JSON is expected.
    pub fn parse<'a>(&'a self, line: &Line<'a>) -> Result<Option<Event<'a>>, Failure> {
        let is_json = self.form != InputForm::Lines || matches!(self.key, KeyFrom::Field(_));
        if is_json && line.bytes.trim_ascii().is_empty() {
            return Ok(None);
        }
        match self.form {
            InputForm::Lines => self.whole_line(line).map(Some),
            InputForm::JsonEachRow => {
                check_object(line)?;
                self.whole_line(line).map(Some)
            }
            InputForm::JsonEnvelope => envelope::parse(line, &self.headers).map(Some),
        }
    }

    fn whole_line<'a>(&'a self, line: &Line<'a>) -> Result<Event<'a>, Failure> {
        Ok(Event {
            key: self.key_of(line)?,
            value: Some(Cow::Borrowed(line.bytes)),
            headers: Cow::Borrowed(&self.headers),
            timestamp_ms: None,
            partition: None,
        })
    }

    fn key_of<'a>(&'a self, line: &Line<'a>) -> Result<Option<Cow<'a, [u8]>>, Failure> {
        match &self.key {
            KeyFrom::Nowhere => Ok(None),
            KeyFrom::Literal(key) => Ok(Some(Cow::Borrowed(key))),
            KeyFrom::Field(path) => key_at(path, line),
        }
    }
}

/// The key that the JSON on the line holds at `path`.
fn key_at<'a>(path: &JsonPath, line: &Line<'a>) -> Result<Option<Cow<'a, [u8]>>, Failure> {
    let json = text_of(line)?;
    let found = path.find(json).map_err(|error| not_json(line, &error))?;
    let Some(value) = found else {
        return Err(wrong(line, &format!("no field '{path}'"))
            .hint("every line needs the field; without --key-field events have no key"));
    };
    if let Some(text) = as_text(value).map_err(|error| not_json(line, &error))? {
        return Ok(Some(match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }));
    }
    match value.get().as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'{' | b'[') => {
            Err(wrong(line, &format!("the field '{path}' is an object or an array")).hint(format!(
                "a key is text, a number, true or false; go further in, for example {path}.id or {path}[0]"
            )))
        }
        _ => Ok(Some(Cow::Borrowed(value.get().as_bytes()))),
    }
}

/// A row must be an object; anything else on the line is a slip better seen now than by a reader.
fn check_object(line: &Line<'_>) -> Result<(), Failure> {
    let json = text_of(line)?;
    serde_json::from_str::<serde::de::IgnoredAny>(json).map_err(|error| not_json(line, &error))?;
    if json.trim_start().starts_with('{') {
        return Ok(());
    }
    Err(wrong(line, "JSON, but no object").hint("--input lines takes any line as it is"))
}

fn text_of<'a>(line: &Line<'a>) -> Result<&'a str, Failure> {
    std::str::from_utf8(line.bytes).map_err(|error| {
        wrong(line, &format!("not UTF-8 from byte {}", error.valid_up_to() + 1))
            .hint("JSON is UTF-8; --input lines without --key-field takes any bytes")
    })
}

fn not_json(line: &Line<'_>, error: &serde_json::Error) -> Failure {
    let why = error.to_string();
    let why = why.split(" at line ").next().unwrap_or(&why);
    wrong(line, &format!("not JSON ({why}, column {})", error.column()))
        .hint("write one JSON object per line, for example {\"id\": \"e1\"}")
}

/// `line 7: WHAT: the line shortened`.
fn wrong(line: &Line<'_>, what: &str) -> Failure {
    let shown = shorten(&String::from_utf8_lossy(&line.bytes[..line.bytes.len().min(400)]));
    Failure::usage(format!("line {}: {what}: {shown}", line.number))
}

impl FromStr for Header {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Header, BadValue> {
        match text.split_once(':') {
            Some((name, value)) if !name.trim().is_empty() => Ok(Header {
                name: name.trim().to_string(),
                value: Some(value.strip_prefix(' ').unwrap_or(value).as_bytes().to_vec()),
            }),
            _ => Err(BadValue::new(text, "a header", "NAME:VALUE", "origin:usgs")),
        }
    }
}

#[cfg(test)]
mod tests;
