//! The headers of a record: who wrote it, why, and what was there before. The bytes are in `docs/on-disk.md`.

use leftoff_wire::{Committed, Offset};

use super::{Flags, GroupError, ReplayError, Who, Why};

/// The most bytes of a note.
pub const MAX_NOTE_BYTES: usize = 1024;

/// How much of a bad header an error shows.
const SHOWN_BYTES: usize = 80;

/// The headers of one record, read. A record of Kafka's own has none, which is [`Story::default`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Story {
    /// `None`: the record is not ours.
    pub(super) why: Option<Why>,
    /// Of a carried record: why the value was written first.
    pub(super) was: Option<Why>,
    pub(super) who: Who,
    pub(super) generation: Option<i32>,
    pub(super) old: Option<Committed>,
    pub(super) prev: Option<Offset>,
    pub(super) flags: Flags,
    pub(super) note: Option<String>,
    /// The number of the reset that the value is: see [`Entry::reset`](super::Entry::reset).
    pub(super) reset: Option<Offset>,
}

impl Story {
    pub(super) fn new(why: Why, who: &Who) -> Story {
        Story { why: Some(why), who: who.clone(), ..Story::default() }
    }

    /// The headers as they are written, in the documented order; what is absent is left out.
    pub(super) fn to_headers(&self) -> Vec<(&'static str, Vec<u8>)> {
        let text = |name, value: Option<String>| value.map(|value| (name, value.into_bytes()));
        [
            text("why", self.why.map(|why| why.to_string())),
            text("was", self.was.map(|was| was.to_string())),
            text("who", Some(self.who.to_string())),
            text("gen", self.generation.map(|generation| generation.to_string())),
            text("old", self.old.map(|old| old.to_string())),
            text("prev", self.prev.map(|prev| prev.to_string())),
            text("flag", (!self.flags.is_empty()).then(|| self.flags.to_string())),
            text("note", self.note.clone()),
            text("reset", self.reset.map(|reset| reset.to_string())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Reads the headers of the record at `at`. Names that are not known are passed over; of a name that comes twice the last one counts.
    ///
    /// # Errors
    /// [`ReplayError::BadHeader`] if a known header does not read.
    pub(super) fn parse<'a>(
        at: Offset,
        headers: impl IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    ) -> Result<Story, ReplayError> {
        let mut story = Story::default();
        for (name, value) in headers {
            story.take(at, name, value.unwrap_or_default())?;
        }
        let falls = story.prev.is_none_or(|prev| prev < at);
        if !falls {
            return Err(bad(at, "prev", &story.prev.unwrap_or(at).to_string()));
        }
        Ok(story)
    }

    fn take(&mut self, at: Offset, name: &[u8], value: &[u8]) -> Result<(), ReplayError> {
        match name {
            b"why" => self.why = Some(read(at, "why", value, Why::parse)?),
            b"was" => self.was = Some(read(at, "was", value, Why::parse)?),
            b"who" => self.who = read(at, "who", value, Who::parse)?,
            b"gen" => self.generation = Some(read(at, "gen", value, generation)?),
            b"old" => self.old = Some(read(at, "old", value, committed)?),
            b"prev" => self.prev = Some(read(at, "prev", value, offset)?),
            b"flag" => self.flags = read(at, "flag", value, Flags::parse)?,
            b"reset" => self.reset = Some(read(at, "reset", value, offset)?),
            b"note" => self.note = Some(read(at, "note", value, |text| Some(text.to_owned()))?),
            _ => {}
        }
        Ok(())
    }

    /// Why the value was decided: of a carried one, why it was written first. A commit through Kafka's own bytes is a commit.
    pub(super) fn origin(&self) -> Why {
        match (self.why, self.was) {
            (Some(Why::Carried), was) => was.unwrap_or(Why::Carried),
            (why, _) => why.unwrap_or(Why::Commit),
        }
    }
}

/// The note of a person, as it is stored: an empty one is none.
pub(super) fn note(note: Option<&str>) -> Option<String> {
    note.filter(|note| !note.is_empty()).map(str::to_owned)
}

/// Refuses a note that is too long.
pub(super) fn check_note(note: Option<&str>) -> Result<(), GroupError> {
    match note.map_or(0, str::len) {
        bytes if bytes > MAX_NOTE_BYTES => Err(GroupError::NoteTooLong { bytes }),
        _ => Ok(()),
    }
}

fn generation(text: &str) -> Option<i32> {
    text.parse().ok()
}

fn offset(text: &str) -> Option<Offset> {
    text.parse().ok().and_then(Offset::new)
}

fn committed(text: &str) -> Option<Committed> {
    text.parse().ok().and_then(Committed::from_wire)
}

fn read<T>(
    at: Offset,
    name: &'static str,
    value: &[u8],
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, ReplayError> {
    std::str::from_utf8(value)
        .ok()
        .and_then(parse)
        .ok_or_else(|| bad(at, name, &String::from_utf8_lossy(&value[..value.len().min(SHOWN_BYTES)])))
}

fn bad(at: Offset, name: &'static str, value: &str) -> ReplayError {
    ReplayError::BadHeader { at, name, value: value.to_owned() }
}
