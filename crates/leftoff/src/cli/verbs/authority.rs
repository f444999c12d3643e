//! Places that keep the offset themselves: how a group remembers where they are, and what they say.
//!
//! `run` keeps `out=file:/absolute/path`, or `out=sqlite:/absolute/path`, in the metadata of each offset that it saves, behind what
//! it may say of attempts, so that the other verbs find the place, whose word counts (the group's offset is a mirror of it).

use std::collections::BTreeMap;
use std::path::Path;

use leftoff::source::event_in;
use leftoff_consumer::runner::own_words;
use leftoff_consumer::sink::{FileSink, Mark, PostgresUrl, SinkError, fingerprint};
use leftoff_consumer::source::PartitionId;
use leftoff_engine::broker::State;
use leftoff_engine::coordinator::{Entry, Group, MAX_METADATA_BYTES, PartitionKey};
use leftoff_wire::{Committed, Offset};

use crate::cli::args::Global;
use crate::cli::failure::{Exit, Failure};
use crate::cli::place::Place;
use crate::cli::session::note;

const PREFIX: &str = "out=";

/// Where each partition goes on, by the word of a place.
pub type Next = BTreeMap<PartitionId, Committed>;
/// What a place keeps of each partition beside that.
pub type Marks = BTreeMap<PartitionId, Mark>;

/// What is kept with a group's offsets, for a place. Empty where the group's own offset counts, or the path does not fit.
pub fn metadata_of(place: &Place) -> String {
    let absolute = |path: &Path| std::path::absolute(path).ok();
    let absolute = match place {
        Place::File(path) => absolute(path).map(Place::File),
        Place::Sqlite { path, table } => {
            absolute(path).map(|path| Place::Sqlite { path, table: table.clone() })
        }
        // Its password, if the address has one, is not kept.
        Place::Postgres(_) => Some(place.clone()),
        Place::Topic(_) | Place::Stdout => None,
    };
    // What is shown of a path that is not UTF-8 would name another one.
    let absolute = absolute.filter(|place| path_of(place).is_none_or(|path| path.to_str().is_some()));
    let text = absolute.map(|place| format!("{PREFIX}{place}"));
    text.filter(|text| text.len() <= MAX_METADATA_BYTES).unwrap_or_default()
}

/// The place with an offset of its own that a metadata text names.
pub fn keeper_in(metadata: &str) -> Option<Place> {
    let place = own_words(metadata).1.strip_prefix(PREFIX)?.parse().ok()?;
    keeps_offset(&place).then_some(place)
}

/// Whether a place's own word counts.
pub fn keeps_offset(place: &Place) -> bool {
    matches!(place, Place::File(_) | Place::Sqlite { .. } | Place::Postgres(_))
}

fn path_of(place: &Place) -> Option<&Path> {
    match place {
        Place::File(path) | Place::Sqlite { path, .. } => Some(path),
        Place::Postgres(_) | Place::Topic(_) | Place::Stdout => None,
    }
}

/// What a place says of a group; `None` if there is no such place, or it says nothing of the group.
///
/// # Errors
/// Exit 4 if it is damaged, 5 if it cannot be read.
pub fn next_in(place: &Place, group: &str) -> Result<Option<Next>, Failure> {
    match place {
        Place::File(path) => {
            let state = FileSink::inspect(path).map_err(from_sink)?;
            Ok(state.filter(|state| state.group == group).map(|state| state.next))
        }
        Place::Sqlite { path, .. } => sqlite_next(path, group),
        Place::Postgres(url) => postgres_next(url, group),
        Place::Topic(_) | Place::Stdout => Ok(None),
    }
}

#[cfg(feature = "sqlite")]
fn sqlite_next(path: &Path, group: &str) -> Result<Option<Next>, Failure> {
    use leftoff_consumer::sink::sqlite::SqliteReader;

    let Some(reader) = SqliteReader::open(path, group).map_err(from_sink)? else { return Ok(None) };
    let is_claimed = reader.is_claimed().map_err(from_sink)?;
    is_claimed.then(|| reader.next().map_err(from_sink)).transpose()
}

#[cfg(not(feature = "sqlite"))]
fn sqlite_next(_path: &Path, _group: &str) -> Result<Option<Next>, Failure> {
    Err(no_sqlite())
}

#[cfg(feature = "postgres")]
fn postgres_next(url: &PostgresUrl, group: &str) -> Result<Option<Next>, Failure> {
    use leftoff_consumer::sink::postgres::PostgresReader;

    let Some(reader) = PostgresReader::open(url, group).map_err(from_sink)? else { return Ok(None) };
    let is_claimed = reader.is_claimed().map_err(from_sink)?;
    is_claimed.then(|| reader.next().map_err(from_sink)).transpose()
}

#[cfg(not(feature = "postgres"))]
fn postgres_next(_url: &PostgresUrl, _group: &str) -> Result<Option<Next>, Failure> {
    Err(no_postgres())
}

/// What a place keeps of a group's partitions beside their offsets.
///
/// # Errors
/// As [`next_in`].
pub fn marks_in(place: &Place, group: &str) -> Result<Marks, Failure> {
    match place {
        Place::File(path) => {
            let state = FileSink::inspect(path).map_err(from_sink)?;
            Ok(state.filter(|state| state.group == group).map(|state| state.marks).unwrap_or_default())
        }
        #[cfg(feature = "sqlite")]
        Place::Sqlite { path, .. } => {
            let reader =
                leftoff_consumer::sink::sqlite::SqliteReader::open(path, group).map_err(from_sink)?;
            reader.map_or(Ok(Marks::new()), |reader| reader.marks().map_err(from_sink))
        }
        #[cfg(not(feature = "sqlite"))]
        Place::Sqlite { .. } => Err(no_sqlite()),
        #[cfg(feature = "postgres")]
        Place::Postgres(url) => {
            let reader =
                leftoff_consumer::sink::postgres::PostgresReader::open(url, group).map_err(from_sink)?;
            reader.map_or(Ok(Marks::new()), |reader| reader.marks().map_err(from_sink))
        }
        #[cfg(not(feature = "postgres"))]
        Place::Postgres(_) => Err(no_postgres()),
        Place::Topic(_) | Place::Stdout => Ok(Marks::new()),
    }
}

/// The last event of a partition that a place has passed, if the log has another one at its offset: then the place counts in
/// another log.
///
/// # Errors
/// Exit 5 if the log cannot be read.
pub fn other_event_at(state: &State, marks: &Marks, id: PartitionId) -> Result<Option<Offset>, Failure> {
    let Some(last) = marks.get(&id).and_then(|mark| mark.last) else { return Ok(None) };
    let event = event_in(state, id, last.offset).map_err(|error| Failure::storage(error.to_string()))?;
    Ok(event.filter(|event| fingerprint(event) != last.fingerprint).map(|event| event.offset))
}

/// What a build without PostgreSQL says of its places.
#[cfg(not(feature = "postgres"))]
pub fn no_postgres() -> Failure {
    Failure::usage("this build cannot use postgres: places").hint("build it with the feature postgres")
}

/// What a build without SQLite says of its places.
#[cfg(not(feature = "sqlite"))]
pub fn no_sqlite() -> Failure {
    Failure::usage("this build cannot use sqlite: places").hint("build it with the feature sqlite")
}

/// What the places say that keep a group's offsets.
#[derive(Debug, Default)]
pub struct Authorities {
    group: String,
    /// By the metadata that names them.
    places: BTreeMap<String, (Place, Option<(Next, Marks)>)>,
}

impl Authorities {
    /// Reads the places that the group's offsets name. One that is gone, or is another group's by now, says nothing.
    ///
    /// # Errors
    /// Exit 4 if one is damaged, 5 if it cannot be read.
    pub fn of(group: &Group) -> Result<Authorities, Failure> {
        Authorities::read(group, Err)
    }

    /// The same for those who only show it: a server that cannot be reached is told of, and says nothing.
    ///
    /// # Errors
    /// As [`Authorities::of`].
    pub fn as_far_as_reached(global: &Global, group: &Group) -> Result<Authorities, Failure> {
        Authorities::read(group, |failure| {
            if failure.exit_code() != Exit::CannotReach as u8 {
                return Err(failure);
            }
            let name = group.name();
            note(
                global,
                &format!(
                    "{failure}\ngroup '{name}' is shown by its own offsets, which are never ahead of the place's"
                ),
            );
            Ok(None)
        })
    }

    fn read(
        group: &Group,
        on_failure: impl Fn(Failure) -> Result<Option<(Next, Marks)>, Failure>,
    ) -> Result<Authorities, Failure> {
        let mut places = BTreeMap::new();
        for (_, _, entry) in group.offsets() {
            if let Some(place) = keeper_in(&entry.metadata).filter(|_| !places.contains_key(&entry.metadata))
            {
                let read = || {
                    let next = next_in(&place, group.name())?;
                    next.map(|next| Ok((next, marks_in(&place, group.name())?))).transpose()
                };
                let found = read().or_else(&on_failure)?;
                places.insert(entry.metadata.clone(), (place, found));
            }
        }
        Ok(Authorities { group: group.name().to_owned(), places })
    }

    /// Whose offsets they are.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The place whose word counts for a partition, if there is one, and where it goes on.
    pub fn next(&self, metadata: &str, key: &PartitionKey) -> Option<(Place, Option<Committed>)> {
        let (place, found) = self.places.get(metadata)?;
        let id = PartitionId { topic_id: key.topic_id, partition: key.partition };
        Some((place.clone(), found.as_ref()?.0.get(&id).copied()))
    }

    /// Refuses to move a place whose last event is another one in the log: the numbers of the move would be those of another log.
    ///
    /// # Errors
    /// Exit 4, or 5 if the log cannot be read.
    pub fn refuse_other_log(&self, state: &State, metadata: &str, key: &PartitionKey) -> Result<(), Failure> {
        let Some((place, Some((_, marks)))) = self.places.get(metadata) else { return Ok(()) };
        let id = PartitionId { topic_id: key.topic_id, partition: key.partition };
        let Some(other) = other_event_at(state, marks, id)? else { return Ok(()) };
        Err(Failure::refused(format!(
            "{place} has passed the event at offset {other} of {key}, and the log has another event there: this is not the \
             log that its offset counts in, and events of this one may never have been handled"
        ))
        .hint("bring the newer log back, or handle this one with another group and place"))
    }

    /// Whether a group's offset is a reset that has not reached the place that it is for.
    pub fn waits(&self, entry: &Entry, key: &PartitionKey) -> bool {
        let Some((_, Some((_, marks)))) = self.places.get(&entry.metadata) else { return false };
        let id = PartitionId { topic_id: key.topic_id, partition: key.partition };
        entry.reset.is_some() && marks.get(&id).and_then(|mark| mark.reset) < entry.reset
    }

    /// Refuses to delete the group's offset where a place's word counts: it would come back.
    ///
    /// # Errors
    /// Exit 4, with the ways to go on.
    pub fn refuse_move(&self, metadata: &str, key: &PartitionKey) -> Result<(), Failure> {
        let Some((place, _)) = self.next(metadata, key) else { return Ok(()) };
        let group = &self.group;
        let away = match &place {
            Place::File(path) => {
                let path = path.display();
                format!("move {path}, {path}.outcomes and {path}.leftoff away")
            }
            place => format!("delete what the group has in the tables of {place}, leftoff_offsets first"),
        };
        Err(Failure::refused(format!(
            "{key} of group '{group}' keeps its offset in {place}, together with the output: without the group's copy \
             of it a run would go on there all the same"
        ))
        .hint(format!("to move it: `leftoff groups reset`; to forget it, {away} first")))
    }
}

/// What a sink's error means to a person.
pub fn from_sink(error: SinkError) -> Failure {
    match error {
        SinkError::Refused(text) => Failure::refused(text),
        SinkError::Unreachable(text) => Failure::cannot_reach(text),
        error @ SinkError::Storage { .. } => Failure::storage(error.to_string()).because(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_names_the_file_and_reads_back() {
        let metadata = metadata_of(&Place::File("/tmp/a b.ndjson".into()));
        assert_eq!(metadata, "out=file:/tmp/a b.ndjson");
        assert_eq!(keeper_in(&metadata), Some(Place::File("/tmp/a b.ndjson".into())));
        let there = keeper_in(&metadata_of(&Place::File("a.ndjson".into())));
        assert!(there.is_some_and(|place| path_of(&place).is_some_and(Path::is_absolute)));
        let sqlite = Place::Sqlite { path: "/tmp/a.db".into(), table: Some("t".to_owned()) };
        assert_eq!(metadata_of(&sqlite), "out=sqlite:/tmp/a.db?table=t");
        assert_eq!(keeper_in(&metadata_of(&sqlite)), Some(sqlite));
        let behind = keeper_in("tried=7:1:why begun=7 out=file:/tmp/a");
        assert_eq!(behind, Some(Place::File("/tmp/a".into())));
        for other in
            ["", "out=file:", "tried=7:1:why", "out=stdout", "out=topic:t", "whatever a client wrote"]
        {
            assert_eq!(keeper_in(other), None, "{other}");
        }
        let postgres =
            metadata_of(&"postgres://u:hunter2@localhost/db?table=t".parse().expect("it is a place"));
        assert_eq!(postgres, "out=postgres://u@localhost/db?table=t");
        assert_eq!(keeper_in(&postgres), postgres[4..].parse().ok());
        assert_eq!(metadata_of(&Place::Stdout), "");
        assert_eq!(metadata_of(&Place::File("x".repeat(MAX_METADATA_BYTES).into())), "");
    }
}
