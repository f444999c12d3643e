//! Why a record of the offsets log was written, and what was odd about it: the headers `why` and `flag`.

use std::fmt;

/// Why a record was written: the header `why`. A closed list; a word that is not on it is refused on the way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// A consumer saved its progress.
    Commit,
    /// A person or a rule moved the offset.
    Reset,
    /// A move was taken back.
    Undo,
    /// The offset came from a file or from another cluster.
    Import,
    /// The value was appended again because the segment of its last record is about to go.
    Carried,
    /// The offset went because of its age.
    Expired,
    /// A person deleted the offset, or the group.
    Deleted,
    /// A member took the group.
    Join,
    /// The member let the group go.
    Leave,
    /// A source was read further.
    Progress,
}

impl Why {
    /// Every reason, in the order in which they are documented.
    pub const ALL: [Why; 10] = [
        Why::Commit,
        Why::Reset,
        Why::Undo,
        Why::Import,
        Why::Carried,
        Why::Expired,
        Why::Deleted,
        Why::Join,
        Why::Leave,
        Why::Progress,
    ];

    /// The word on disk and on screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Why::Commit => "commit",
            Why::Reset => "reset",
            Why::Undo => "undo",
            Why::Import => "import",
            Why::Carried => "carried",
            Why::Expired => "expired",
            Why::Deleted => "deleted",
            Why::Join => "join",
            Why::Leave => "leave",
            Why::Progress => "progress",
        }
    }

    /// The reason that a word names, if it names one.
    pub fn parse(word: &str) -> Option<Why> {
        Why::ALL.into_iter().find(|why| why.as_str() == word)
    }

    /// Whether a person or a rule moved the offset, rather than progress: what undo looks for.
    pub const fn is_jump(self) -> bool {
        match self {
            Why::Reset | Why::Undo | Why::Import | Why::Expired | Why::Deleted => true,
            Why::Commit | Why::Carried | Why::Join | Why::Leave | Why::Progress => false,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One thing about a commit that is odd and was let pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// The committed offset lies above the end of the partition. Kafka takes it, so do we (OF-056), but it is shown.
    AboveEnd,
    /// The committed offset lies below the log start: what it points to is deleted.
    BelowStart,
    /// The committed offset is lower than the one before. Legal, and worth knowing (OF-033).
    Backwards,
    /// The member had fetched nothing when it committed. Set by a caller that knows.
    NoRead,
}

impl Flag {
    /// Every flag, in the order in which they are written.
    pub const ALL: [Flag; 4] = [Flag::AboveEnd, Flag::BelowStart, Flag::Backwards, Flag::NoRead];

    /// The word on disk and on screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Flag::AboveEnd => "above-end",
            Flag::BelowStart => "below-start",
            Flag::Backwards => "backwards",
            Flag::NoRead => "no-read",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of [`Flag`]s: the header `flag`, comma separated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// Nothing odd.
    pub const NONE: Flags = Flags(0);

    /// This set and one more.
    #[must_use]
    pub const fn with(self, flag: Flag) -> Flags {
        Flags(self.0 | flag.bit())
    }

    /// Whether `flag` is in the set.
    pub const fn contains(self, flag: Flag) -> bool {
        self.0 & flag.bit() != 0
    }

    /// Whether nothing was odd.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The flags in the set.
    pub fn iter(self) -> impl Iterator<Item = Flag> {
        Flag::ALL.into_iter().filter(move |flag| self.contains(*flag))
    }

    /// Reads the text of the header; `None` if a word is not a flag. The empty text is the empty set.
    pub fn parse(text: &str) -> Option<Flags> {
        if text.is_empty() {
            return Some(Flags::NONE);
        }
        text.split(',').try_fold(Flags::NONE, |flags, word| {
            Flag::ALL.into_iter().find(|flag| flag.as_str() == word).map(|flag| flags.with(flag))
        })
    }
}

impl FromIterator<Flag> for Flags {
    fn from_iter<I: IntoIterator<Item = Flag>>(flags: I) -> Flags {
        flags.into_iter().fold(Flags::NONE, Flags::with)
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(Flag::as_str).collect();
        f.pad(&words.join(","))
    }
}
