//! Who did it: the header `who`, four words joined by one space each.

use std::fmt;

/// The most bytes that one part of [`Who`] keeps; what is longer is cut at a character.
pub const MAX_WHO_PART_BYTES: usize = 255;

const UNKNOWN: &str = "-";

/// Who wrote a record: member id, client id, host and client software. A part that is not known is `-`.
///
/// Each part is one word (blanks and control characters become `_`) of at most [`MAX_WHO_PART_BYTES`], so the text reads back
/// as the same four parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Who {
    member_id: String,
    client_id: String,
    host: String,
    software: String,
}

impl Who {
    /// Makes the four parts into words. An empty part becomes `-`.
    pub fn new(member_id: &str, client_id: &str, host: &str, software: &str) -> Who {
        Who {
            member_id: word(member_id),
            client_id: word(client_id),
            host: word(host),
            software: word(software),
        }
    }

    /// Nothing is known.
    pub fn unknown() -> Who {
        Who::new("", "", "", "")
    }

    /// The member id, or `-`.
    pub fn member_id(&self) -> &str {
        &self.member_id
    }

    /// The client id, or `-`.
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// The host, or `-`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The client software and its version, or `-`.
    pub fn software(&self) -> &str {
        &self.software
    }

    /// Whether a member id is known.
    pub fn is_member(&self) -> bool {
        self.member_id != UNKNOWN
    }

    /// Reads the text of the header; `None` unless it is four words with one space between.
    pub fn parse(text: &str) -> Option<Who> {
        let mut parts = text.split(' ');
        let mut next = || parts.next().filter(|part| *part == word(part)).map(str::to_owned);
        let who = Who { member_id: next()?, client_id: next()?, host: next()?, software: next()? };
        parts.next().is_none().then_some(who)
    }
}

impl Default for Who {
    fn default() -> Who {
        Who::unknown()
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.member_id, self.client_id, self.host, self.software)
    }
}

fn word(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MAX_WHO_PART_BYTES));
    for c in text.chars() {
        let c = if c.is_whitespace() || c.is_control() { '_' } else { c };
        if out.len() + c.len_utf8() > MAX_WHO_PART_BYTES {
            break;
        }
        out.push(c);
    }
    if out.is_empty() { UNKNOWN.to_owned() } else { out }
}
