//! Where dead letters are, and what became of each: a topic of the directory, the file beside a `file:`, a table of a database.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use leftoff::dead_letters::{self, Found, StateOf, id_of};
use leftoff::store::events_in;
use leftoff_consumer::sink::{DeadLetter, DeadState, FileSink, Letter, PostgresUrl};
use leftoff_engine::broker::{State, Topic};

use crate::cli::args::dlq::Whose;
use crate::cli::failure::Failure;
use crate::cli::place::Place;
use crate::cli::verbs::authority::{from_sink, keeper_in};
use crate::cli::verbs::groups::standing;

/// The longest line of a letter: an event has at most 1 MiB by default, and base64 and escapes make it longer.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// One read of a topic.
const READ_BYTES: u64 = 1 << 20;

/// A place with dead letters of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Letterbox {
    /// A topic.
    Topic(Topic),
    /// `PATH.dead`, beside `PATH` and `PATH.outcomes`.
    File(PathBuf),
    /// The table `leftoff_dead`.
    Sqlite(PathBuf),
    /// The same table.
    Postgres(PostgresUrl),
}

impl Letterbox {
    /// As a person would name it.
    pub fn name(&self) -> String {
        match self {
            Letterbox::Topic(topic) => format!("topic:{}", topic.name),
            Letterbox::File(path) => format!("file:{}", dead_path(path).display()),
            Letterbox::Sqlite(path) => format!("sqlite:{}", path.display()),
            Letterbox::Postgres(url) => url.to_string(),
        }
    }
}

/// The name of the topic of a group's dead letters.
///
/// # Errors
/// Exit 2 if the group's name cannot be part of a topic's, and no topic is named.
pub fn topic_name(group: &str, named: Option<&str>) -> Result<String, Failure> {
    match named {
        Some(name) => Ok(name.to_owned()),
        None => dead_letters::topic_of(group).ok_or_else(|| {
            Failure::usage(format!("the name of group '{group}' cannot be part of a topic's name"))
                .hint("name the topic of its dead letters with --dlq-topic")
        }),
    }
}

/// All places where the group has left dead letters, as far as the group remembers or the flags say.
pub fn boxes(state: &State, whose: &Whose) -> Result<Vec<Letterbox>, Failure> {
    let mut found = Vec::new();
    match &whose.out {
        Some(place) => found.extend(box_of(place)),
        None => {
            let group = state.coordinator().known_group(&whose.group);
            for (_, _, entry) in group.iter().flat_map(|group| group.offsets()) {
                let place = keeper_in(&entry.metadata).and_then(|place| box_of(&place));
                found.extend(place.filter(|place| !found.contains(place)));
            }
        }
    }
    if whose.dlq_topic.is_some() || dead_letters::topic_of(&whose.group).is_some() {
        let name = topic_name(&whose.group, whose.dlq_topic.as_deref())?;
        let topic = state.topics().find(|topic| topic.name == name).cloned();
        if topic.is_none() && whose.dlq_topic.is_some() {
            return Err(Failure::new(
                crate::cli::failure::Exit::CannotReach,
                format!("there is no topic {name}"),
            ));
        }
        found.extend(topic.map(Letterbox::Topic));
    }
    Ok(found)
}

fn box_of(place: &Place) -> Option<Letterbox> {
    match place {
        Place::File(path) => Some(Letterbox::File(path.clone())),
        Place::Sqlite { path, .. } => Some(Letterbox::Sqlite(path.clone())),
        Place::Postgres(url) => Some(Letterbox::Postgres(url.clone())),
        Place::Topic(_) | Place::Stdout => None,
    }
}

/// Calls `visit` for each letter of a group in a box, with what became of it. A letter that is there twice, since a crash has
/// given its event back, comes once.
pub fn each(
    state: &State,
    group: &str,
    place: &Letterbox,
    mut visit: impl FnMut(&DeadLetter, DeadState) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match place {
        Letterbox::Topic(topic) => {
            let mut states = BTreeMap::new();
            each_record(state, topic, |found| {
                if let Found::State(told) = found
                    && told.group == group
                {
                    states.insert(told.id, told.state);
                }
                Ok(())
            })?;
            each_record(state, topic, |found| match found {
                Found::Letter(letter) if letter.group == group => {
                    visit(&letter, states.get(&id_of(&letter)).copied().unwrap_or_default())
                }
                _ => Ok(()),
            })
        }
        Letterbox::File(path) => in_file(path, group, visit),
        Letterbox::Sqlite(path) => in_sqlite(path, group, visit),
        Letterbox::Postgres(url) => in_postgres(url, group, visit),
    }
}

fn each_record(
    state: &State,
    topic: &Topic,
    mut visit: impl FnMut(Found) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::storage(format!("topic {}: {error}", topic.name));
    for number in 0..topic.partitions {
        let log = standing::log(state, topic.topic_id, number);
        let mut at = log.log_start();
        while at < log.high_watermark() {
            let fetched = log.fetch(at, READ_BYTES).map_err(|error| failed(&error))?;
            let chunk = events_in(&fetched, at).map_err(|error| failed(&error))?;
            for event in &chunk.events {
                let found = dead_letters::read(event).map_err(|error| {
                    Failure::storage(format!("{}/{number} offset {}: {error}", topic.name, event.offset))
                })?;
                visit(found)?;
            }
            at = chunk.next;
        }
    }
    Ok(())
}

fn dead_path(path: &Path) -> PathBuf {
    beside(path, ".dead")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn in_file(
    path: &Path,
    group: &str,
    mut visit: impl FnMut(&DeadLetter, DeadState) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some(sidecar) = FileSink::inspect(path).map_err(from_sink)? else { return Ok(()) };
    let letters = dead_path(path);
    if sidecar.group != group {
        return Ok(());
    }
    let mut missing = dead_in(&beside(path, ".outcomes"), sidecar.outcomes_bytes)?;
    let (mut states, mut last) = (BTreeMap::new(), BTreeMap::new());
    if !letters.exists() {
        return all_there(&missing, &letters);
    }
    let dead = missing.clone();
    each_line(&letters, |number, line| {
        if let Ok(told) = serde_json::from_str::<StateOf>(line) {
            states.insert(told.id, told.state);
        } else if let Ok(letter) = Letter::from_line(line) {
            last.insert(id_of(&letter), number);
        }
        Ok(())
    })?;
    each_line(&letters, |number, line| {
        let Ok(letter) = Letter::from_line(line) else { return Ok(()) };
        let id = id_of(&letter);
        // What a crash gave back does not count before the outcomes name it.
        if last.get(&id) != Some(&number) || !dead.contains(&id) {
            return Ok(());
        }
        missing.remove(&id);
        visit(&letter, states.get(&id).copied().unwrap_or_default())
    })?;
    all_there(&missing, &letters)
}

/// An event that the outcomes name as dead, and of which there is no letter, is not kept anywhere but in its topic.
fn all_there(missing: &BTreeSet<String>, letters: &Path) -> Result<(), Failure> {
    let Some(first) = missing.first() else { return Ok(()) };
    let (count, path) = (missing.len(), letters.display());
    Err(Failure::storage(format!(
        "{count} dead letters are not in {path}, {first} first: the file was lost or damaged"
    ))
    .hint("their events are in their topic for as long as that keeps them"))
}

/// The events that the outcomes name as dead.
fn dead_in(path: &Path, bytes: u64) -> Result<BTreeSet<String>, Failure> {
    let failed = |error| Failure::storage(format!("cannot read {}: {error}", path.display()));
    let mut dead = BTreeSet::new();
    for line in BufReader::new(File::open(path).map_err(failed)?.take(bytes)).lines() {
        let line = line.map_err(failed)?;
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        if let [topic_id, partition, range, "dead", ..] = words[..]
            && let Some((offset, _)) = range.split_once('-')
        {
            dead.insert(format!("{topic_id}/{partition}/{offset}"));
        }
    }
    Ok(dead)
}

/// Whole lines; one that a crash has cut is not read.
fn each_line(path: &Path, mut visit: impl FnMut(u64, &str) -> Result<(), Failure>) -> Result<(), Failure> {
    let failed = |error| Failure::storage(format!("cannot read {}: {error}", path.display()));
    let mut reader = BufReader::new(File::open(path).map_err(failed)?);
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            return Ok(());
        }
        number += 1;
        if line.len() as u64 == MAX_LINE_BYTES && line.last() != Some(&b'\n') {
            let why = format!("{}: line {number} is longer than {MAX_LINE_BYTES} bytes", path.display());
            return Err(Failure::storage(why));
        }
        if let Ok(text) = std::str::from_utf8(&line)
            && text.ends_with('\n')
            && text.len() > 1
        {
            visit(number, text.trim_end())?;
        }
    }
}

/// Notes in a file what became of letters, on disk when this returns.
pub fn mark_in_file(path: &Path, states: &[StateOf]) -> Result<(), Failure> {
    let path = dead_path(path);
    let lines: String = states
        .iter()
        .map(|state| format!("\n{}\n", serde_json::to_string(state).expect("texts have a JSON form")))
        .collect();
    let written = File::options().append(true).open(&path).and_then(|mut file| {
        file.write_all(lines.as_bytes())?;
        file.sync_data()
    });
    written.map_err(|error| Failure::storage(format!("cannot write {}: {error}", path.display())))
}

#[cfg(feature = "sqlite")]
fn in_sqlite(
    path: &Path,
    group: &str,
    mut visit: impl FnMut(&DeadLetter, DeadState) -> Result<(), Failure>,
) -> Result<(), Failure> {
    use leftoff_consumer::sink::sqlite::SqliteReader;

    let Some(reader) = SqliteReader::open(path, group).map_err(from_sink)? else { return Ok(()) };
    let mut ended = Ok(());
    let read = reader.letters(|line, state| {
        ended = Letter::from_line(line)
            .map_err(|why| Failure::storage(format!("{}: leftoff_dead: {why}", path.display())))
            .and_then(|letter| visit(&letter, state));
        ended.is_ok()
    });
    read.map_err(from_sink)?;
    ended
}

#[cfg(not(feature = "sqlite"))]
fn in_sqlite(
    _path: &Path,
    _group: &str,
    _visit: impl FnMut(&DeadLetter, DeadState) -> Result<(), Failure>,
) -> Result<(), Failure> {
    Err(crate::cli::verbs::authority::no_sqlite())
}

#[cfg(feature = "postgres")]
fn in_postgres(
    url: &PostgresUrl,
    group: &str,
    mut visit: impl FnMut(&DeadLetter, DeadState) -> Result<(), Failure>,
) -> Result<(), Failure> {
    use leftoff_consumer::sink::postgres::PostgresReader;

    let Some(reader) = PostgresReader::open(url, group).map_err(from_sink)? else { return Ok(()) };
    let mut ended = Ok(());
    let read = reader.letters(|line, state| {
        ended = Letter::from_line(line)
            .map_err(|why| Failure::storage(format!("{url}: leftoff_dead: {why}")))
            .and_then(|letter| visit(&letter, state));
        ended.is_ok()
    });
    read.map_err(from_sink)?;
    ended
}

#[cfg(not(feature = "postgres"))]
fn in_postgres(
    _url: &PostgresUrl,
    _group: &str,
    _visit: impl FnMut(&DeadLetter, DeadState) -> Result<(), Failure>,
) -> Result<(), Failure> {
    Err(crate::cli::verbs::authority::no_postgres())
}
