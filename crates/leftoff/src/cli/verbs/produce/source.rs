//! `--source FILE`: which file it is, how far it was read, and whether it is still the same one.
//!
//! A path alone is no identity: files are rotated, cut and written anew. So the progress carries a fingerprint of bytes that
//! were read, and before going on they must still be there. What cannot be told is a change in the middle of a file
//! that leaves its first 4 KiB and the last 4 KiB before the place as they were.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use leftoff_engine::broker::Topic;
use leftoff_wire::consumer_offsets::SourceProgress;
use leftoff_wire::{Uuid, crc32c};

use crate::cli::event_line::{LineReader, PASSED_BYTES};
use crate::cli::failure::Failure;

/// A file that is read line by line, and whose place is remembered.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    name: String,
    file: File,
    topic_id: Uuid,
    /// The first bytes, as far as they were looked at.
    head: Vec<u8>,
}

/// Where a run begins.
#[derive(Debug)]
pub struct Start {
    /// The lines from there on.
    pub lines: LineReader<File>,
    /// What a person should know about the choice.
    pub remark: Option<String>,
}

/// Refuses what no place can be remembered in. It is not opened for that: a FIFO would wait for somebody who writes.
pub fn check_plain(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => {
            Err(Failure::usage(format!("{shown} is not a plain file, so no place in it can be remembered"))
                .hint("leave out --source and send the lines to stdin"))
        }
        Err(error) => Err(Failure::usage(format!("cannot read {shown}: {error}")).because(error)),
    }
}

impl Source {
    /// Opens the file; its name in the offsets log is made of the topic and the path behind all links.
    pub fn open(path: &Path, topic: &Topic) -> Result<Source, Failure> {
        let shown = path.display();
        let unreadable =
            |error: std::io::Error| Failure::usage(format!("cannot read {shown}: {error}")).because(error);
        check_plain(path)?;
        let file = File::open(path).map_err(unreadable)?;
        let whole = path.canonicalize().map_err(unreadable)?;
        let Some(text) = whole.to_str() else {
            return Err(Failure::usage(format!("the path {} is not UTF-8", whole.display()))
                .hint("give the file a name in UTF-8; its place is kept under that name"));
        };
        let name = format!("{}:{text}", topic.name);
        Ok(Source { path: path.to_owned(), name, file, topic_id: topic.topic_id, head: Vec::new() })
    }

    /// Its name in the offsets log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many bytes the file has.
    pub fn len_bytes(&self) -> Result<u64, Failure> {
        Ok(self.file.metadata().map_err(|error| self.unreadable(error))?.len())
    }

    /// The lines from where the last run stopped.
    ///
    /// # Errors
    /// Exit 4 if it is not the file that was read then.
    pub fn start(&mut self, saved: Option<&SourceProgress>, from_start: bool) -> Result<Start, Failure> {
        let shown = self.path.display();
        let (at, remark) = match saved {
            None => (None, None),
            Some(_) if from_start => (None, Some(format!("reading {shown} from its beginning, as asked"))),
            Some(saved) if saved.topic_id != self.topic_id => {
                let remark = format!("the topic was made anew, so {shown} is read from its beginning");
                (None, Some(remark))
            }
            Some(saved) => {
                self.must_be_the_same(saved)?;
                (Some(saved), None)
            }
        };
        let (position_bytes, lines) = at.map_or((0, 0), |saved| (saved.position_bytes, saved.lines));
        let mut file = self.file.try_clone().map_err(|error| self.unreadable(error))?;
        file.seek(SeekFrom::Start(position_bytes)).map_err(|error| self.unreadable(error))?;
        Ok(Start { lines: LineReader::resume(file, position_bytes, lines), remark })
    }

    /// How far `lines` have come, to be saved with the events of those lines.
    ///
    /// # Errors
    /// Exit 4 if the file holds other bytes now than were read.
    pub fn progress(&mut self, lines: &LineReader<File>) -> Result<SourceProgress, Failure> {
        let position_bytes = lines.position_bytes();
        let Ends { head, tail } = self.ends(position_bytes)?;
        if !head.starts_with(&self.head) || !tail.ends_with(lines.passed()) {
            let (shown, number) = (self.path.display(), lines.lines());
            return Err(Failure::refused(format!("{shown} was written anew while line {number} was read"))
                .hint("files that are read must only grow; move them away and begin a new one instead"));
        }
        self.head.clone_from(&head);
        Ok(SourceProgress {
            position_bytes,
            lines: lines.lines(),
            fingerprint: fingerprint(&head, &tail),
            topic_id: self.topic_id,
        })
    }

    fn must_be_the_same(&mut self, saved: &SourceProgress) -> Result<(), Failure> {
        let (shown, lines, read_bytes) = (self.path.display(), saved.lines, saved.position_bytes);
        let has_bytes = self.len_bytes()?;
        let changed = |what: String| {
            Err(Failure::refused(what).hint(
                "if this is a new file, read it from its beginning with --from-start, or give it another name; \
                 if it was changed by mistake, bring the old one back",
            ))
        };
        if has_bytes < read_bytes {
            return changed(format!(
                "{shown} has {has_bytes} bytes, but {read_bytes} ({lines} lines) were read from it before"
            ));
        }
        let Ends { head, tail } = self.ends(read_bytes)?;
        let now = fingerprint(&head, &tail);
        if now != saved.fingerprint {
            let is_head = now >> 32 != saved.fingerprint >> 32;
            let place = if is_head { "at its beginning" } else { "just before line" };
            let place = if is_head { place.to_owned() } else { format!("{place} {}", lines + 1) };
            return changed(format!(
                "{shown} is not as it was when {lines} lines were read from it: it differs {place}"
            ));
        }
        self.head = head;
        Ok(())
    }

    /// The bytes that the fingerprint of a place is made of.
    fn ends(&self, position_bytes: u64) -> Result<Ends, Failure> {
        let length = usize::try_from(position_bytes).unwrap_or(usize::MAX).min(PASSED_BYTES);
        let read = |from: u64| {
            let mut bytes = vec![0; length];
            self.file.read_exact_at(&mut bytes, from).map(|()| bytes)
        };
        let head = read(0).map_err(|error| self.unreadable(error))?;
        let tail = read(position_bytes - length as u64).map_err(|error| self.unreadable(error))?;
        Ok(Ends { head, tail })
    }

    fn unreadable(&self, error: std::io::Error) -> Failure {
        let shown = self.path.display();
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            return Failure::refused(format!("{shown} became shorter while it was read"))
                .hint("files that are read must only grow; move them away and begin a new one instead");
        }
        Failure::usage(format!("cannot read {shown}: {error}")).because(error)
    }
}

struct Ends {
    head: Vec<u8>,
    tail: Vec<u8>,
}

/// See `docs/on-disk.md`.
fn fingerprint(head: &[u8], tail: &[u8]) -> u64 {
    u64::from(crc32c(head)) << 32 | u64::from(crc32c(tail))
}
