//! Effects in a file of lines: JSON objects with a `leftoff_id`, JSON objects with an id of the user's own, or plain ids.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::lines::{DEFAULT_LINE_LIMIT_BYTES, RawLine, RawLines};
use super::template::IdTemplate;
use crate::input::{Effect, Seen};

/// How lines name the event that they are an effect of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameBy {
    /// A JSON object by its `leftoff_id` (`TOPIC_ID/PARTITION/OFFSET/N`), any other line by its trimmed text, which is
    /// the event's id. A place in a topic with another id than this one is an effect of another topic.
    Line {
        /// The topic's id as `leftoff_id` writes it.
        topic_id: String,
    },
    /// A JSON object by what the template makes of it, any other line by its trimmed text.
    Template(IdTemplate),
}

/// A file of effects, as long as it was when it was opened.
#[derive(Debug, Clone)]
pub struct EffectFile {
    path: PathBuf,
    length_bytes: u64,
    name_by: NameBy,
    line_limit_bytes: usize,
}

impl EffectFile {
    /// Notes how long the file is now; later lines are not read.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn open(path: &Path, name_by: NameBy) -> io::Result<EffectFile> {
        let length_bytes = File::open(path)?.metadata()?.len();
        let line_limit_bytes = DEFAULT_LINE_LIMIT_BYTES;
        Ok(EffectFile { path: path.to_owned(), length_bytes, name_by, line_limit_bytes })
    }

    /// Starts a pass over the lines.
    ///
    /// # Errors
    /// When the file is gone.
    pub fn lines(&self) -> io::Result<EffectLines<'_, BufReader<Take<File>>>> {
        let reader = BufReader::new(File::open(&self.path)?.take(self.length_bytes));
        Ok(EffectLines::new(reader, &self.name_by, self.line_limit_bytes))
    }
}

/// One pass over effects in lines. Empty lines are passed over.
#[derive(Debug)]
pub struct EffectLines<'a, R> {
    lines: RawLines<R>,
    name_by: &'a NameBy,
}

impl<'a, R: BufRead> EffectLines<'a, R> {
    /// Effects from a reader; a line longer than `line_limit_bytes` is unreadable.
    pub fn new(reader: R, name_by: &'a NameBy, line_limit_bytes: usize) -> EffectLines<'a, R> {
        EffectLines { lines: RawLines::new(reader, line_limit_bytes), name_by }
    }
}

impl<R: BufRead> Iterator for EffectLines<'_, R> {
    type Item = io::Result<Seen<Effect>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (line, raw) = match self.lines.next()? {
                Ok(numbered) => numbered,
                Err(error) => return Some(Err(error)),
            };
            let seen = match raw {
                RawLine::Torn => Seen::Torn { line },
                RawLine::TooLong => Seen::Unreadable { line, why: "the line is too long".to_owned() },
                RawLine::Whole(bytes) if bytes.trim_ascii().is_empty() => continue,
                RawLine::Whole(bytes) => match effect_in(&bytes, self.name_by) {
                    Ok(effect) => Seen::Item(effect),
                    Err(why) => Seen::Unreadable { line, why },
                },
            };
            return Some(Ok(seen));
        }
    }
}

fn effect_in(line: &[u8], name_by: &NameBy) -> Result<Effect, String> {
    let is_object = line.trim_ascii_start().starts_with(b"{");
    match name_by {
        NameBy::Template(template) if is_object => {
            let value = serde_json::from_slice(line).map_err(|error| format!("not JSON: {error}"))?;
            template
                .id_of(&value)
                .map(Effect::ById)
                .ok_or_else(|| "no id where the template looks".to_owned())
        }
        NameBy::Line { topic_id } if is_object => {
            let object: WithPlace<'_> =
                serde_json::from_slice(line).map_err(|error| format!("not JSON: {error}"))?;
            let place = object.leftoff_id.ok_or("no leftoff_id, and no id template was given")?;
            effect_at(&place, topic_id)
        }
        NameBy::Line { .. } | NameBy::Template(_) => {
            let text = std::str::from_utf8(line).map_err(|_| "not UTF-8")?;
            Ok(Effect::ById(text.trim().to_owned()))
        }
    }
}

#[derive(Deserialize)]
struct WithPlace<'a> {
    #[serde(borrow, default)]
    leftoff_id: Option<Cow<'a, str>>,
}

/// `TOPIC_ID/PARTITION/OFFSET/N`.
fn effect_at(place: &str, topic_id: &str) -> Result<Effect, String> {
    let malformed = || format!("leftoff_id {place:?} is not TOPIC_ID/PARTITION/OFFSET/N");
    let parts: Vec<&str> = place.split('/').collect();
    let [topic, partition, offset, n] = parts[..] else { return Err(malformed()) };
    let partition = partition.parse().map_err(|_| malformed())?;
    let offset = offset.parse().ok().filter(|offset: &i64| *offset >= 0).ok_or_else(malformed)?;
    let n = n.parse().map_err(|_| malformed())?;
    if topic != topic_id {
        return Ok(Effect::OtherTopic(place.to_owned()));
    }
    Ok(Effect::ByPlace { partition, offset, n })
}
