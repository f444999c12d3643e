//! `check --expect FILE`: the log against the truth that somebody has elsewhere, by the rules of the audit: the lines of the
//! file are what should be there, the events of the log are what became of them.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use leftoff_audit::effects::{DEFAULT_LINE_LIMIT_BYTES, EffectLines, NameBy};
use leftoff_audit::{
    Effect, Evidence, Limits, LogEntry, LogEvent, PartitionFacts, Question, Seen, SourceError, Stream,
    Verdict, audit,
};
use leftoff_engine::broker::{State, Topic};
use serde::Serialize;

use super::evidence::{Ids, log_entries};
use crate::cli::failure::Failure;
use crate::cli::table::Format;

/// So many unexpected events are named.
const SHOWN: usize = 10;

/// How the log differs from what was expected.
#[derive(Debug, Serialize)]
pub struct Expected {
    /// Events that were expected.
    expected: u64,
    /// Events of the log that have a name.
    in_log: u64,
    /// Expected, and not in the log.
    missing: leftoff_audit::Found,
    /// In the log, and not as often as expected.
    too_rarely: leftoff_audit::Found,
    /// In the log more often than expected.
    too_often: leftoff_audit::Found,
    /// In the log, and not expected: how many, and the first names.
    unexpected: u64,
    unexpected_first: Vec<String>,
    /// Events of the log without a name, which cannot be compared.
    without_name: u64,
}

/// Compares a file of names with the log.
///
/// # Errors
/// Exit 2 if the file cannot be read or has a line that is no name, 5 if the log cannot be read.
pub fn compare(state: &State, topics: &[Topic], path: &Path, ids: Ids<'_>) -> Result<Expected, Failure> {
    let shown = path.display();
    let names = Names::new(path, ids);
    let mut lines = 0;
    for line in names.lines().map_err(|error| Failure::usage(format!("cannot open {shown}: {error}")))? {
        match line.map_err(|error| Failure::usage(format!("cannot read {shown}: {error}")))? {
            Seen::Item(Effect::ById(_)) => lines += 1,
            Seen::Item(_) => {
                return Err(Failure::usage(format!("{shown} names places of a topic, and not events")));
            }
            Seen::Torn { .. } => unreachable!("an end of line was put behind the file"),
            Seen::Unreadable { line, why } => {
                return Err(Failure::usage(format!("{shown} line {line} names no event: {why}"))
                    .hint("a line is a name, or with --id a JSON object that has the fields"));
            }
        }
    }
    let facts = [PartitionFacts { partition: 0, log_start: 0, end: lines, saved_next: Some(lines) }];
    let question = Question { topic: &shown.to_string(), partitions: &facts };
    let mut evidence = FileAndLog { state, topics, ids, names };
    let verdict = audit(&question, &Limits::default(), &mut evidence)
        .map_err(|error| Failure::storage(format!("{shown}: {error}")).because(error))?;
    Ok(Expected::of(verdict))
}

impl Expected {
    fn of(verdict: Verdict) -> Expected {
        let unknown = verdict.unknown_effects;
        Expected {
            expected: verdict.events,
            in_log: verdict.effects,
            missing: verdict.lost,
            too_rarely: verdict.absorbed,
            too_often: verdict.handled_twice,
            unexpected: unknown.count,
            unexpected_first: unknown.named.into_iter().take(SHOWN).map(|one| one.name).collect(),
            without_name: verdict.unreadable_lines.count,
        }
    }

    /// Before the verdicts on the effects.
    pub fn write(&self, out: &mut Vec<u8>, format: Format) -> io::Result<()> {
        match format {
            Format::Json | Format::Jsonl => {
                serde_json::to_writer(&mut *out, &serde_json::json!({ "expect": self }))?;
                writeln!(out)
            }
            Format::Text | Format::Wide | Format::Csv => {
                writeln!(
                    out,
                    "expected: {} events, and the log has {} with a name",
                    self.expected, self.in_log
                )?;
                if self.without_name > 0 {
                    writeln!(out, "cannot tell: {} events of the log have no name", self.without_name)?;
                }
                if self.unexpected > 0 {
                    let first = leftoff_audit::python_list(&self.unexpected_first);
                    writeln!(out, "not expected: {} events, the first {first}", self.unexpected)?;
                }
                if self.too_rarely.count > 0 {
                    writeln!(out, "in the log too rarely: {}", self.too_rarely)?;
                }
                writeln!(out, "not in the log: {} | in it too often: {}", self.missing, self.too_often)
            }
        }
    }

    /// Exit 1 if the log lacks something, or has something too often or that was not expected.
    pub fn answer(&self) -> Result<(), Failure> {
        let counts = [
            ("not in the log", self.missing.count),
            ("in the log too rarely", self.too_rarely.count),
            ("in the log too often", self.too_often.count),
            ("not expected", self.unexpected),
        ];
        let told: Vec<String> = counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        if told.is_empty() {
            return Ok(());
        }
        Err(Failure::check_failed(format!("the check failed: {}", told.join(", "))))
    }
}

/// The names in a file.
struct Names<'a> {
    path: &'a Path,
    name_by: NameBy,
}

impl<'a> Names<'a> {
    fn new(path: &'a Path, ids: Ids<'_>) -> Names<'a> {
        let name_by = match ids {
            Ids::Template(template) => NameBy::Template(template.clone()),
            Ids::KeyOrValue => NameBy::Line { topic_id: String::new() },
        };
        Names { path, name_by }
    }

    /// One pass; a last line without its end counts, too.
    fn lines(&self) -> io::Result<impl Iterator<Item = io::Result<Seen<Effect>>> + '_> {
        let reader = BufReader::new(File::open(self.path)?.chain(&b"\n"[..]));
        Ok(EffectLines::new(reader, &self.name_by, DEFAULT_LINE_LIMIT_BYTES))
    }
}

/// The file in the place of the log, and the log in that of the effects.
struct FileAndLog<'a> {
    state: &'a State,
    topics: &'a [Topic],
    ids: Ids<'a>,
    names: Names<'a>,
}

impl Evidence for FileAndLog<'_> {
    fn log(&mut self) -> Result<Stream<'_, LogEntry>, SourceError> {
        let lines = self.names.lines()?.filter_map(|line| match line {
            Ok(Seen::Item(Effect::ById(id))) => Some(Ok(id)),
            // Lines that are none were refused.
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        });
        Ok(Box::new(
            (0..)
                .zip(lines)
                .map(|(offset, id)| Ok(LogEntry::Event(LogEvent { partition: 0, offset, id: Some(id?) }))),
        ))
    }

    fn effects(&mut self) -> Result<Stream<'_, Seen<Effect>>, SourceError> {
        let (state, ids) = (self.state, self.ids);
        let entries = self.topics.iter().flat_map(move |topic| log_entries(state, topic, Some(ids)));
        let events = entries.filter_map(|entry| match entry {
            Ok(LogEntry::Event(event)) => Some(Ok(event)),
            Ok(LogEntry::Aborted { .. } | LogEntry::Marker { .. }) => None,
            Err(error) => Some(Err(error)),
        });
        Ok(Box::new((1..).zip(events).map(|(line, event)| {
            Ok(match event?.id {
                Some(id) => Seen::Item(Effect::ById(id)),
                None => Seen::Unreadable { line, why: "an event without a name".to_owned() },
            })
        })))
    }
}
