//! What the audit found, for people and for scripts.

use std::fmt;

use serde::Serialize;

mod display;
pub use display::python_list;

/// How many names, ranges or lines each list of a [`Verdict`] holds at most; its `count` is always the whole.
pub const LIST_LIMIT: usize = 1_000;

/// How many bytes of an id are kept as a name.
pub const NAME_LIMIT_BYTES: usize = 1_024;

/// What became of each event. The rules are those of the [crate].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The topic that was judged.
    pub topic: String,
    /// Its partitions, in ascending order.
    pub partitions: Vec<PartitionSummary>,
    /// Events in the log that were judged; markers and aborted events are not among them.
    pub events: u64,
    /// Events of aborted transactions, nobody's fault.
    pub aborted: u64,
    /// Effects that were read.
    pub effects: u64,
    /// Events with at least one effect.
    pub with_effect: u64,
    /// Passed by the group and without a trace.
    pub lost: Found,
    /// The same effect more than once; `surplus` counts the effects that are too many.
    pub handled_twice: Found,
    /// Handled again because a person gave them back; `surplus` counts the effects of that.
    pub repeated_by_decision: Found,
    /// First handled after a later event of their partition.
    pub out_of_order: Found,
    /// Not handled yet; a restart would handle them.
    pub unfinished: Found,
    /// Handled, and there was nothing to write.
    pub without_output: Found,
    /// Filtered by the handler.
    pub filtered: Found,
    /// Given up and set aside.
    pub dead: Found,
    /// Passed by decision.
    pub skipped: Found,
    /// Deleted from the log before the group had read them. Counts offsets: what is gone cannot be told from a hole.
    pub deleted_before_handling: Found,
    /// No effect of their own, but the same identity was handled at another place: absorbed by a dedupe, or an outcome says so.
    pub absorbed: Found,
    /// The same identity at more than one place: the producer's doing, never the consumer's.
    pub produced_twice: ProducedTwice,
    /// Effects for which there is no event.
    pub unknown_effects: UnknownEffects,
    /// Effects of places below the log start, which can no longer be compared with their events.
    pub effects_of_deleted: u64,
    /// Partitions whose saved offset is above the end: what is appended next would be passed unread.
    pub ahead_of_end: Vec<AheadOfEnd>,
    /// Last lines without their end, which are no effects.
    pub torn_lines: Lines,
    /// Lines that could not be understood.
    pub unreadable_lines: Lines,
    /// What the evidence does not allow to tell, in sentences.
    pub cannot_tell: Vec<String>,
}

impl Verdict {
    /// Nothing lost, nothing handled twice, nothing out of order.
    pub fn clean(&self) -> bool {
        self.lost.is_empty() && self.handled_twice.is_empty() && self.out_of_order.is_empty()
    }

    /// Clean, and nothing is left to handle.
    pub fn drained(&self) -> bool {
        self.clean() && self.unfinished.is_empty()
    }

    /// The exit code of a check: 0, or 1 if the demand is not met.
    pub fn exit_code(&self, demand: Demand) -> u8 {
        let met = match demand {
            Demand::Clean => self.clean(),
            Demand::Drained => self.drained(),
        };
        u8::from(!met)
    }

    /// `lost: [] | handled twice: []`.
    pub fn last_line(&self) -> String {
        format!("lost: {} | handled twice: {}", self.lost, self.handled_twice)
    }
}

/// What a check asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Nothing lost, handled twice or out of order. What is not handled yet is fine.
    Clean,
    /// As [`Demand::Clean`], and nothing unfinished.
    Drained,
}

/// Numbers of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PartitionSummary {
    /// The partition.
    pub partition: u32,
    /// Log start offset.
    pub log_start: i64,
    /// The end up to which it was judged.
    pub end: i64,
    /// The next offset the group would read, if it has saved one.
    pub saved_next: Option<i64>,
    /// Events judged.
    pub events: u64,
    /// Events with an effect.
    pub with_effect: u64,
    /// Events lost.
    pub lost: u64,
    /// Events not handled yet.
    pub unfinished: u64,
}

/// Events (or offsets) of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    /// How many in all.
    pub count: u64,
    /// Effects too many, for events handled twice; else 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub surplus: u64,
    /// The first of them as ranges, by partition and offset.
    pub ranges: Vec<PlaceRange>,
    /// The first of them by name: the id, or `TOPIC/PARTITION/OFFSET` (`/FROM-TO`) where there is none.
    pub names: Vec<String>,
    /// How many of `count` no entry of `names` stands for.
    pub unnamed: u64,
}

impl Found {
    /// None of this kind.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Neighbouring offsets of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PlaceRange {
    /// The partition.
    pub partition: u32,
    /// First offset.
    pub from: i64,
    /// Last offset, itself included.
    pub to: i64,
}

impl PlaceRange {
    /// How many offsets.
    pub fn offsets(&self) -> u64 {
        (self.to - self.from) as u64 + 1
    }
}

/// A place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// The partition.
    pub partition: u32,
    /// The offset.
    pub offset: i64,
}

/// Identities that more than one event carries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProducedTwice {
    /// How many identities.
    pub count: u64,
    /// The first of them, by place.
    pub ids: Vec<Produced>,
}

/// One identity at several places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Produced {
    /// The identity.
    pub id: String,
    /// How many events carry it.
    pub events: u64,
    /// The first few of its places.
    pub places: Vec<Place>,
}

/// Effects without an event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UnknownEffects {
    /// How many effects.
    pub count: u64,
    /// The first of them in the order in which they were read, each name once.
    pub named: Vec<UnknownEffect>,
}

/// An effect without an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnknownEffect {
    /// The id or place that it names.
    pub name: String,
    /// Why there is no event for it.
    pub why: UnknownWhy,
}

/// Why there is no event for an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownWhy {
    /// No event in the log carries this id.
    NoSuchId,
    /// It names another topic.
    OtherTopic,
    /// The topic has no such partition.
    NoSuchPartition,
    /// It names a place at or above the end.
    PastTheEnd,
    /// At that place there is a marker, an aborted event or a hole.
    NotAnEvent,
}

impl fmt::Display for UnknownWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnknownWhy::NoSuchId => "no event has this id",
            UnknownWhy::OtherTopic => "of another topic",
            UnknownWhy::NoSuchPartition => "no such partition",
            UnknownWhy::PastTheEnd => "past the end of the log",
            UnknownWhy::NotAnEvent => "no event at that offset",
        })
    }
}

/// A saved offset above the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AheadOfEnd {
    /// The partition.
    pub partition: u32,
    /// The next offset the group would read.
    pub saved_next: i64,
    /// The end of the log.
    pub end: i64,
}

/// Lines of a source that are no items.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Lines {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Vec<Line>,
}

impl Lines {
    pub(crate) fn push(&mut self, line: Line) {
        self.count += 1;
        if self.first.len() < LIST_LIMIT {
            self.first.push(line);
        }
    }
}

/// A line that is no item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Which source it stands in: `effects` or `outcomes`.
    pub source: &'static str,
    /// Line number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}
