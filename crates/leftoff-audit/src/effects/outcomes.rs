//! Ranges that were passed without an effect, in lines: `TOPIC_ID PARTITION FROM-TO handled|filtered|dead|skipped|absorbed|deleted|again`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};
use std::path::{Path, PathBuf};

use super::lines::{RawLine, RawLines};
use crate::input::{Outcome, OutcomeKind, Seen};

/// An outcome line is short.
const LINE_LIMIT_BYTES: usize = 4 << 10;

/// A file of outcomes, as long as it was when it was opened.
#[derive(Debug, Clone)]
pub struct OutcomeFile {
    path: PathBuf,
    length_bytes: u64,
    topic_id: String,
}

impl OutcomeFile {
    /// Notes how long the file is now; later lines are not read. A file that does not exist has no outcomes. Lines
    /// of topics with another id than this one are passed over.
    ///
    /// # Errors
    /// When the file is there and cannot be opened.
    pub fn open(path: &Path, topic_id: &str) -> io::Result<OutcomeFile> {
        let length_bytes = match File::open(path) {
            Ok(file) => file.metadata()?.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        Ok(OutcomeFile { path: path.to_owned(), length_bytes, topic_id: topic_id.to_owned() })
    }

    /// Starts a pass over the lines.
    ///
    /// # Errors
    /// When the file is gone.
    pub fn lines(&self) -> io::Result<OutcomeLines<'_, Box<dyn BufRead>>> {
        let reader: Box<dyn BufRead> = match self.length_bytes {
            0 => Box::new(io::empty()),
            length => Box::new(BufReader::new(take(&self.path, length)?)),
        };
        Ok(OutcomeLines::new(reader, &self.topic_id))
    }
}

fn take(path: &Path, length_bytes: u64) -> io::Result<Take<File>> {
    Ok(File::open(path)?.take(length_bytes))
}

/// One pass over outcomes in lines. Empty lines and lines of other topics are passed over, words after the kind too.
#[derive(Debug)]
pub struct OutcomeLines<'a, R> {
    lines: RawLines<R>,
    topic_id: &'a str,
}

impl<'a, R: BufRead> OutcomeLines<'a, R> {
    /// Outcomes of one topic from a reader.
    pub fn new(reader: R, topic_id: &'a str) -> OutcomeLines<'a, R> {
        OutcomeLines { lines: RawLines::new(reader, LINE_LIMIT_BYTES), topic_id }
    }
}

impl<R: BufRead> Iterator for OutcomeLines<'_, R> {
    type Item = io::Result<Seen<Outcome>>;

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
                RawLine::Whole(bytes) => match outcome_in(&bytes, self.topic_id) {
                    Ok(Some(outcome)) => Seen::Item(outcome),
                    Ok(None) => continue,
                    Err(why) => Seen::Unreadable { line, why },
                },
            };
            return Some(Ok(seen));
        }
    }
}

fn outcome_in(line: &[u8], topic_id: &str) -> Result<Option<Outcome>, String> {
    let text = std::str::from_utf8(line).map_err(|_| "not UTF-8")?;
    let mut words = text.split_ascii_whitespace();
    let mut word = |what: &str| words.next().ok_or_else(|| format!("no {what}"));
    let topic = word("topic id")?;
    let partition = word("partition")?;
    let partition = partition.parse().map_err(|_| format!("{partition:?} is no partition"))?;
    let range = word("range")?;
    let (from, to) = range_in(range).ok_or_else(|| format!("{range:?} is no range FROM-TO"))?;
    let kind = kind_in(word("kind")?)?;
    Ok((topic == topic_id).then_some(Outcome { partition, from, to, kind }))
}

/// `FROM-TO`, both included, or a single offset.
fn range_in(text: &str) -> Option<(i64, i64)> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    (0 <= from && from <= to).then_some((from, to))
}

fn kind_in(word: &str) -> Result<OutcomeKind, String> {
    match word {
        "handled" => Ok(OutcomeKind::Handled),
        "filtered" => Ok(OutcomeKind::Filtered),
        "dead" => Ok(OutcomeKind::Dead),
        "skipped" => Ok(OutcomeKind::Skipped),
        "absorbed" => Ok(OutcomeKind::Absorbed),
        "deleted" => Ok(OutcomeKind::Deleted),
        "again" => Ok(OutcomeKind::Again),
        other => Err(format!("{other:?} is no kind of outcome")),
    }
}
