//! Output of `consume`: an event becomes a line, by a template as in kcat, as JSON, or as CSV.

use std::io::{self, Write};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leftoff_wire::Offset;
use serde_json::{Value, json};

use super::bad_value::BadValue;
use super::table::write_csv_field;

/// What the help of `-f` says.
pub const FORMAT_FORMS: &str = "\
Print each event like this, with nothing added:
%t topic    %p partition  %o offset  %T timestamp in unix ms
%k key      %s or %v value           %h headers as name=value,name=value
%K size of the key, %S size of the value, in bytes, -1 for null
%n newline  %% percent sign
\\n newline, \\t tab, \\r carriage return, \\0 zero byte, \\xNN any byte, \\\\ backslash
A null key or value prints nothing. Example: -f '%p:%o %k %s\\n'";

/// One event, borrowed from where it was read.
#[derive(Clone, Copy, Debug)]
pub struct EventView<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// Its partition.
    pub partition: i32,
    /// Its place in the partition.
    pub offset: Offset,
    /// When it happened or was appended, in unix milliseconds.
    pub timestamp_ms: i64,
    /// Its key, if any.
    pub key: Option<&'a [u8]>,
    /// Its value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    /// Names and values in order.
    pub headers: &'a [(&'a [u8], Option<&'a [u8]>)],
}

/// A template, parsed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(Vec<u8>),
    Topic,
    Partition,
    Offset,
    TimestampMs,
    Key,
    KeySize,
    Value,
    ValueSize,
    Headers,
}

impl EventFormat {
    /// The default: the value and a newline.
    pub fn value_per_line() -> EventFormat {
        EventFormat { segments: vec![Segment::Value, Segment::Literal(b"\n".to_vec())] }
    }

    /// For `--format wide`: place, time and key before the value, separated by tabs.
    pub fn wide() -> EventFormat {
        let tab = || Segment::Literal(b"\t".to_vec());
        let colon = || Segment::Literal(b":".to_vec());
        let place = [Segment::Topic, colon(), Segment::Partition, colon(), Segment::Offset];
        let rest = [tab(), Segment::TimestampMs, tab(), Segment::Key, tab(), Segment::Value];
        let end = Segment::Literal(b"\n".to_vec());
        EventFormat { segments: place.into_iter().chain(rest).chain([end]).collect() }
    }

    /// Writes one event.
    pub fn write(&self, out: &mut impl Write, event: &EventView<'_>) -> io::Result<()> {
        for segment in &self.segments {
            match segment {
                Segment::Literal(bytes) => out.write_all(bytes)?,
                Segment::Topic => out.write_all(event.topic.as_bytes())?,
                Segment::Partition => write!(out, "{}", event.partition)?,
                Segment::Offset => write!(out, "{}", event.offset)?,
                Segment::TimestampMs => write!(out, "{}", event.timestamp_ms)?,
                Segment::Key => out.write_all(event.key.unwrap_or_default())?,
                Segment::KeySize => write_size(out, event.key)?,
                Segment::Value => out.write_all(event.value.unwrap_or_default())?,
                Segment::ValueSize => write_size(out, event.value)?,
                Segment::Headers => write_headers(out, event.headers)?,
            }
        }
        Ok(())
    }
}

fn write_size(out: &mut impl Write, bytes: Option<&[u8]>) -> io::Result<()> {
    match bytes {
        Some(bytes) => write!(out, "{}", bytes.len()),
        None => out.write_all(b"-1"),
    }
}

/// `name=value,name=value`; a null value leaves out the `=`.
fn write_headers(out: &mut impl Write, headers: &[(&[u8], Option<&[u8]>)]) -> io::Result<()> {
    for (number, (name, value)) in headers.iter().enumerate() {
        if number > 0 {
            out.write_all(b",")?;
        }
        out.write_all(name)?;
        if let Some(value) = value {
            out.write_all(b"=")?;
            out.write_all(value)?;
        }
    }
    Ok(())
}

/// Writes one event as a JSON object on a line of its own: `topic`, `partition`, `offset`, `timestamp_ms`,
/// `key`, `value`, `headers`; `key_base64` and `value_base64` in place of those that are not UTF-8. `produce
/// --input json-envelope` reads it back.
pub fn write_json(out: &mut impl Write, event: &EventView<'_>) -> io::Result<()> {
    out.write_all(b"{\"topic\":")?;
    serde_json::to_writer(&mut *out, event.topic)?;
    let EventView { partition, offset, timestamp_ms, .. } = event;
    write!(out, ",\"partition\":{partition},\"offset\":{offset},\"timestamp_ms\":{timestamp_ms}")?;
    write_json_bytes(out, "key", event.key)?;
    write_json_bytes(out, "value", event.value)?;
    out.write_all(b",\"headers\":[")?;
    for (number, header) in event.headers.iter().enumerate() {
        out.write_all(if number > 0 { b"," } else { b"" })?;
        serde_json::to_writer(&mut *out, &json_header(header))?;
    }
    out.write_all(b"]}\n")
}

/// `,"name":"text"`, or `,"name_base64":"…"` where the bytes are no text.
fn write_json_bytes(out: &mut impl Write, name: &str, bytes: Option<&[u8]>) -> io::Result<()> {
    match bytes.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => write!(out, ",\"{name}\":null"),
        Some((_, Ok(text))) => {
            write!(out, ",\"{name}\":")?;
            serde_json::to_writer(out, text).map_err(io::Error::from)
        }
        Some((bytes, Err(_))) => write!(out, ",\"{name}_base64\":\"{}\"", STANDARD.encode(bytes)),
    }
}

/// `["name", "text"]`; a value that is not UTF-8 is `{"base64": "…"}`.
fn json_header((name, value): &(&[u8], Option<&[u8]>)) -> Value {
    let value = match value.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => Value::Null,
        Some((_, Ok(text))) => text.into(),
        Some((bytes, Err(_))) => json!({ "base64": STANDARD.encode(bytes) }),
    };
    json!([String::from_utf8_lossy(name), value])
}

/// The first line of CSV.
pub fn write_csv_header(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"topic,partition,offset,timestamp_ms,key,value\n")
}

/// Writes one event as a line of CSV, bytes as they are. A null is empty, an empty text `""`.
pub fn write_csv(out: &mut impl Write, event: &EventView<'_>) -> io::Result<()> {
    write!(out, "{},{},{},{}", event.topic, event.partition, event.offset, event.timestamp_ms)?;
    for bytes in [event.key, event.value] {
        out.write_all(b",")?;
        write_csv_field(out, bytes)?;
    }
    out.write_all(b"\n")
}

impl FromStr for EventFormat {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<EventFormat, BadValue> {
        let mut segments = Segments::default();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '%' => match rest.next() {
                    Some('t') => segments.push(Segment::Topic),
                    Some('p') => segments.push(Segment::Partition),
                    Some('o') => segments.push(Segment::Offset),
                    Some('T') => segments.push(Segment::TimestampMs),
                    Some('k') => segments.push(Segment::Key),
                    Some('K') => segments.push(Segment::KeySize),
                    Some('s' | 'v') => segments.push(Segment::Value),
                    Some('S') => segments.push(Segment::ValueSize),
                    Some('h') => segments.push(Segment::Headers),
                    Some('n') => segments.byte(b'\n'),
                    Some('%') => segments.byte(b'%'),
                    other => return Err(unknown(text, c, other)),
                },
                '\\' => match rest.next() {
                    Some('n') => segments.byte(b'\n'),
                    Some('t') => segments.byte(b'\t'),
                    Some('r') => segments.byte(b'\r'),
                    Some('0') => segments.byte(0),
                    Some('\\') => segments.byte(b'\\'),
                    Some('x') => {
                        let digits: String = rest.by_ref().take(2).collect();
                        segments.byte(hex_byte(&digits).ok_or_else(|| unknown(text, c, Some('x')))?);
                    }
                    other => return Err(unknown(text, c, other)),
                },
                _ => segments.text(c),
            }
        }
        Ok(EventFormat { segments: segments.done })
    }
}

/// Segments so far; literals side by side become one.
#[derive(Default)]
struct Segments {
    done: Vec<Segment>,
}

impl Segments {
    fn push(&mut self, segment: Segment) {
        self.done.push(segment);
    }

    fn byte(&mut self, byte: u8) {
        if let Some(Segment::Literal(bytes)) = self.done.last_mut() {
            bytes.push(byte);
        } else {
            self.done.push(Segment::Literal(vec![byte]));
        }
    }

    fn text(&mut self, c: char) {
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            self.byte(byte);
        }
    }
}

fn hex_byte(digits: &str) -> Option<u8> {
    let is_hex = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

fn unknown(text: &str, sign: char, after: Option<char>) -> BadValue {
    let what = match after {
        Some(after) => format!("'{sign}{after}' in '{text}' is not known"),
        None => format!("'{text}' ends within '{sign}'"),
    };
    BadValue::refuse(
        what,
        "use %t %p %o %T %k %K %s %S %h %n %% and \\n \\t \\r \\0 \\xNN \\\\, for example '%p:%o %k %s\\n'",
    )
}

#[cfg(test)]
mod tests;
