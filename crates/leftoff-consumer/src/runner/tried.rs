//! What is kept of attempts beside a group's offset, so that it survives a crash: words in the offset's metadata.
//!
//! | word | meaning |
//! | --- | --- |
//! | `tried=812:2:too%20big` | offset 812 was tried twice in vain; why it failed last |
//! | `begun=812` | an attempt of offset 812 has begun |
//! | `start=800:1:alone` | a run started at offset 800, the second without progress after a run that did not end well; `alone` (or `many`) says whether one event at a time was handled and saved |
//!
//! They stand first, each followed by a space or the end. What follows them is somebody else's. Words that cannot be read are
//! passed over: nothing but a count of attempts is at stake.

use std::collections::BTreeMap;
use std::fmt::Write;

use leftoff_wire::Offset;

#[cfg(test)]
mod tests;

/// The most events of a partition whose attempts are kept: those with the lowest offsets.
const MAX_EVENTS: usize = 8;
/// After so many unclean ends without progress in a row, a run goes one event at a time, with a record before each.
const CAREFUL_AFTER: u32 = 3;
/// The most bytes that a reason takes.
const MAX_REASON_BYTES: usize = 240;

/// What is kept for one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tried {
    /// Events that were tried in vain and are not done.
    pub(super) events: BTreeMap<Offset, Attempts>,
    /// The event whose attempt has begun; only kept by a run that is careful.
    pub(super) begun: Option<Offset>,
    /// Where this run started, if the one before did not end well.
    pub(super) start: Option<Start>,
}

/// How often an event was tried in vain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attempts {
    pub(super) failed: u32,
    /// Why, the last time.
    pub(super) why: String,
}

/// The start of a run after one that did not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) at: Offset,
    /// How many runs before it started there, too, and ended without progress.
    pub(super) unclean: u32,
    /// The run handles one event at a time and saves after each, so it is known which one it had.
    pub(super) alone: bool,
}

impl Tried {
    /// What a run that starts at `at` takes over. `unclean`: the run before was killed, or lost its machine.
    pub(super) fn at_start(metadata: &str, at: Offset, unclean: bool, alone: bool, has_event: bool) -> Tried {
        let mut tried = Tried::decode(metadata);
        tried.events.retain(|offset, _| *offset >= at);
        let before = tried.start.take().filter(|start| unclean && start.at == at);
        let mut counts = before.map_or(0, |before| before.unclean.saturating_add(1));
        if let Some(begun) = tried.begun.take().filter(|begun| unclean && *begun >= at) {
            tried.ended_with(begun);
            // The run before was careful, and that was right.
            counts = counts.max(CAREFUL_AFTER);
        } else if before.is_some_and(|before| before.alone) && has_event {
            tried.ended_with(at);
        }
        if unclean && has_event {
            tried.start = Some(Start { at, unclean: counts, alone });
        }
        tried
    }

    fn ended_with(&mut self, offset: Offset) {
        self.failed(offset, "the runner was killed, or lost its machine, while the handler had it");
    }

    /// True if it is to be found out which event ends the runner.
    pub(super) fn asks_for_care(&self) -> bool {
        self.start.is_some_and(|start| start.unclean >= CAREFUL_AFTER)
    }

    /// One attempt more.
    pub(super) fn failed(&mut self, offset: Offset, why: &str) {
        let attempts = self.events.entry(offset).or_default();
        attempts.failed = attempts.failed.saturating_add(1);
        attempts.why = why.to_owned();
    }

    /// The event is done.
    pub(super) fn done(&mut self, offset: Offset) {
        self.events.remove(&offset);
        self.begun = self.begun.filter(|begun| *begun != offset);
        self.start = self.start.filter(|start| start.at != offset);
    }

    /// The words.
    pub(super) fn encode(&self) -> String {
        let mut words = String::new();
        for (offset, Attempts { failed, why }) in self.events.iter().take(MAX_EVENTS) {
            push(&mut words, format_args!("tried={offset}:{failed}:{}", escaped(why)));
        }
        if let Some(begun) = self.begun {
            push(&mut words, format_args!("begun={begun}"));
        }
        if let Some(Start { at, unclean, alone }) = self.start {
            let how = if alone { "alone" } else { "many" };
            push(&mut words, format_args!("start={at}:{unclean}:{how}"));
        }
        words
    }

    fn decode(metadata: &str) -> Tried {
        let mut tried = Tried::default();
        for word in own_words(metadata).0.split(' ') {
            // A word of another version, or damage; see above.
            let _understood = tried.take_word(word);
        }
        tried
    }

    fn take_word(&mut self, word: &str) -> Option<()> {
        let (name, value) = word.split_once('=')?;
        let mut fields = value.splitn(3, ':');
        let offset = Offset::new(fields.next()?.parse().ok()?)?;
        match name {
            "tried" if self.events.len() < MAX_EVENTS => {
                let failed = fields.next()?.parse().ok()?;
                let why = unescaped(fields.next()?);
                self.events.insert(offset, Attempts { failed, why });
            }
            "begun" => self.begun = Some(offset),
            "start" => {
                let unclean = fields.next()?.parse().ok()?;
                self.start = Some(Start { at: offset, unclean, alone: fields.next()? == "alone" });
            }
            _ => {}
        }
        Some(())
    }
}

/// Parts the runner's own words in an offset's metadata from what follows them.
pub fn own_words(metadata: &str) -> (&str, &str) {
    let mut at = 0;
    while let Some(word) = metadata[at..]
        .split(' ')
        .next()
        .filter(|word| ["tried=", "begun=", "start="].iter().any(|name| word.starts_with(name)))
    {
        at = (at + word.len() + 1).min(metadata.len());
    }
    (metadata[..at].trim_end_matches(' '), &metadata[at..])
}

fn push(words: &mut String, word: std::fmt::Arguments<'_>) {
    if !words.is_empty() {
        words.push(' ');
    }
    words.write_fmt(word).expect("a string takes every write");
}

/// Without spaces and control characters, and cut.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for char in text.chars() {
        let before = out.len();
        if char == '%' || char.is_whitespace() || char.is_control() {
            let mut bytes = [0; 4];
            for byte in char.encode_utf8(&mut bytes).bytes() {
                write!(out, "%{byte:02x}").expect("a string takes every write");
            }
        } else {
            out.push(char);
        }
        if out.len() > MAX_REASON_BYTES {
            out.truncate(before);
            break;
        }
    }
    out
}

fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let escape = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
