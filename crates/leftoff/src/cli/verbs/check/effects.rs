//! The file with the effects, as long as it was when the check began.

use std::fs::File;
use std::io::{self, BufReader, Read, Take};
use std::path::{Path, PathBuf};

use leftoff_audit::effects::{DEFAULT_LINE_LIMIT_BYTES, EffectLines, NameBy, OutcomeLines};
use leftoff_audit::{Effect, Outcome, Seen, SourceError, Stream};
use leftoff_consumer::sink::file::FileState;

use super::evidence::Effects;
use crate::cli::failure::Failure;

/// A file of effects, and how much of it counts.
#[derive(Debug)]
pub struct FileEffects {
    path: PathBuf,
    outcomes_path: PathBuf,
    /// How much is judged.
    bytes: u64,
    outcomes_bytes: u64,
    /// Bytes behind that, which the sidecar does not count.
    uncounted_bytes: u64,
    /// Bytes that the sidecar counts and the file has not.
    missing_bytes: u64,
    /// Whether `run` wrote it: each line names the place of its event.
    by_place: bool,
}

impl FileEffects {
    /// Notes how much of the file counts: what the sidecar says, or all of it where there is none.
    pub fn open(path: &Path, state: Option<&FileState>) -> Result<FileEffects, Failure> {
        // A FIFO would wait for whoever writes to it, so it is not opened to find that out.
        let length = match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => metadata.len(),
            Ok(_) => return Err(Failure::usage(format!("{} is not a plain file", path.display()))),
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && state.is_some_and(|s| s.data_bytes == 0) =>
            {
                0
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Failure::cannot_reach(format!("there is no file {}", path.display())));
            }
            Err(error) => return Err(Failure::storage(format!("cannot open {}: {error}", path.display()))),
        };
        let mut outcomes_path = path.as_os_str().to_owned();
        outcomes_path.push(".outcomes");
        Ok(FileEffects {
            path: path.to_owned(),
            outcomes_path: outcomes_path.into(),
            bytes: state.map_or(length, |state| state.data_bytes),
            outcomes_bytes: state.map_or(0, |state| state.outcomes_bytes),
            uncounted_bytes: state.map_or(0, |state| length.saturating_sub(state.data_bytes)),
            missing_bytes: state.map_or(0, |state| state.data_bytes.saturating_sub(length)),
            by_place: state.is_some(),
        })
    }

    /// How many bytes at the end are not judged, if any.
    pub fn uncounted_bytes(&self) -> Option<u64> {
        (self.uncounted_bytes > 0).then_some(self.uncounted_bytes)
    }

    /// How many bytes that the sidecar counts are not there, if any.
    pub fn missing_bytes(&self) -> Option<u64> {
        (self.missing_bytes > 0).then_some(self.missing_bytes)
    }
}

impl Effects for FileEffects {
    fn by_place(&self) -> bool {
        self.by_place
    }

    fn effects<'a>(&'a self, name_by: &'a NameBy) -> Result<Stream<'a, Seen<Effect>>, SourceError> {
        let reader = first_bytes(&self.path, self.bytes)?;
        Ok(Box::new(EffectLines::new(reader, name_by, DEFAULT_LINE_LIMIT_BYTES).map(|line| Ok(line?))))
    }

    fn outcomes<'a>(&'a self, topic_id: &'a str) -> Result<Stream<'a, Seen<Outcome>>, SourceError> {
        let reader = first_bytes(&self.outcomes_path, self.outcomes_bytes)?;
        Ok(Box::new(OutcomeLines::new(reader, topic_id).map(|line| Ok(line?))))
    }
}

fn first_bytes(path: &Path, bytes: u64) -> Result<BufReader<Take<Box<dyn Read>>>, SourceError> {
    let file: Box<dyn Read> = if bytes == 0 { Box::new(io::empty()) } else { Box::new(File::open(path)?) };
    Ok(BufReader::new(file.take(bytes)))
}
