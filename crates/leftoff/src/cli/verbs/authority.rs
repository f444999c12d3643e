//! Places that keep the offset themselves: how a group remembers where they are, and what they say.
//!
//! `run` keeps `out=file:/absolute/path` in the metadata of each offset that it saves, behind what it may say of attempts, so
//! that the other verbs find the sidecar, whose word counts (the group's offset is a mirror of it).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry::Vacant;
use std::path::{Path, PathBuf};

use leftoff_consumer::runner::own_words;
use leftoff_consumer::sink::file::FileState;
use leftoff_consumer::sink::{FileSink, SinkError};
use leftoff_consumer::source::PartitionId;
use leftoff_engine::coordinator::{Group, MAX_METADATA_BYTES, PartitionKey};
use leftoff_wire::Committed;

use crate::cli::failure::Failure;
use crate::cli::place::Place;

const PREFIX: &str = "out=file:";

/// What is kept with a group's offsets, for a place. Empty where the group's own offset counts, or the path does not fit.
pub fn metadata_of(place: &Place) -> String {
    let Place::File(path) = place else { return String::new() };
    let absolute = std::path::absolute(path).ok();
    let text = absolute.as_deref().and_then(Path::to_str).map(|path| format!("{PREFIX}{path}"));
    text.filter(|text| text.len() <= MAX_METADATA_BYTES).unwrap_or_default()
}

/// The file that a metadata text names.
pub fn file_in(metadata: &str) -> Option<PathBuf> {
    own_words(metadata).1.strip_prefix(PREFIX).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// What the files say that keep a group's offsets.
#[derive(Debug, Default)]
pub struct Authorities {
    group: String,
    files: BTreeMap<PathBuf, Option<FileState>>,
}

impl Authorities {
    /// Reads the sidecars that the group's offsets name. A file that is gone, or is another group's by now, says nothing.
    ///
    /// # Errors
    /// Exit 4 if one is damaged, 5 if it cannot be read.
    pub fn of(group: &Group) -> Result<Authorities, Failure> {
        let mut files = BTreeMap::new();
        for path in group.offsets().filter_map(|(_, _, entry)| file_in(&entry.metadata)) {
            if let Vacant(unread) = files.entry(path) {
                let state = FileSink::inspect(unread.key()).map_err(from_sink)?;
                unread.insert(state.filter(|state| state.group == group.name()));
            }
        }
        Ok(Authorities { group: group.name().to_owned(), files })
    }

    /// Whose offsets they are.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The file whose word counts for a partition, if there is one, and where it goes on.
    pub fn next(&self, metadata: &str, key: &PartitionKey) -> Option<(PathBuf, Option<Committed>)> {
        let path = file_in(metadata)?;
        let state = self.files.get(&path)?.as_ref()?;
        let id = PartitionId { topic_id: key.topic_id, partition: key.partition };
        Some((path, state.next.get(&id).copied()))
    }

    /// Refuses to move the group's offset where a file's word counts: the move would change nothing.
    ///
    /// # Errors
    /// Exit 4, with the ways to go on.
    pub fn refuse_move(&self, metadata: &str, key: &PartitionKey) -> Result<(), Failure> {
        let Some((path, _)) = self.next(metadata, key) else { return Ok(()) };
        let (group, path) = (&self.group, path.display());
        Err(Failure::refused(format!(
            "{key} of group '{group}' keeps its offset in file:{path}, together with the output: moving the group's copy \
             would change nothing, and moving the file's would put lines into it twice or leave some out"
        ))
        .hint(format!(
            "to handle events again, run with another group and another --out; or move {path}, {path}.outcomes and \
             {path}.leftoff away, reset, and run with --on-lost-state group"
        )))
    }
}

/// What a sink's error means to a person.
pub fn from_sink(error: SinkError) -> Failure {
    match error {
        SinkError::Refused(text) => Failure::refused(text),
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
        assert_eq!(file_in(&metadata), Some(PathBuf::from("/tmp/a b.ndjson")));
        assert!(
            file_in(&metadata_of(&Place::File("a.ndjson".into()))).is_some_and(|path| path.is_absolute())
        );
        assert_eq!(file_in("tried=7:1:why begun=7 out=file:/tmp/a"), Some(PathBuf::from("/tmp/a")));
        for other in ["", "out=file:", "tried=7:1:why", "out=stdout", "whatever a client wrote"] {
            assert_eq!(file_in(other), None, "{other}");
        }
        assert_eq!(metadata_of(&Place::Stdout), "");
        assert_eq!(metadata_of(&Place::File("x".repeat(MAX_METADATA_BYTES).into())), "");
    }
}
