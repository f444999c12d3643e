//! The evidence for events without output, as ranges: which offsets, and what became of them. As text
//! `TOPIC_ID PARTITION FROM-TO handled|filtered|absorbed|skipped|dead|again`, a line a range, both ends included. `again`: a person gave the
//! range back, to be handled once more than before. An event that was given up has
//! a range of its own: `TOPIC_ID PARTITION OFFSET-OFFSET skipped attempts=3 WHY`.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use leftoff_wire::{Committed, Offset};

use super::{GaveUp, Move, Outcome, Output};
use crate::shorten;
use crate::source::PartitionId;

/// Offsets without output, and why they have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeRange {
    /// Which partition.
    pub id: PartitionId,
    /// The first offset.
    pub from: Offset,
    /// The last offset, itself included.
    pub to: Offset,
    /// `handled`, `filtered`, `absorbed`, `skipped`, `dead` or `again`.
    pub what: &'static str,
    /// Of a single event that was given up: how.
    pub gave_up: Option<GaveUp>,
}

impl fmt::Display for OutcomeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutcomeRange { id, from, to, what, gave_up } = self;
        write!(f, "{} {} {from}-{to} {what}", id.topic_id, id.partition)?;
        match gave_up {
            Some(GaveUp { attempts, why }) => write!(f, " attempts={attempts} {}", shorten(why.as_bytes())),
            None => Ok(()),
        }
    }
}

/// The ranges of those of `outputs` that have no record, neighbours of one kind in one range; those of a partition in the order
/// of its offsets.
pub fn outcome_ranges(outputs: &[Output]) -> Vec<OutcomeRange> {
    let mut ranges = Vec::new();
    let mut open: BTreeMap<PartitionId, OutcomeRange> = BTreeMap::new();
    for output in outputs {
        let Some((what, gave_up)) = without_output(&output.outcome) else { continue };
        let (id, offset) = (output.id, output.offset);
        match open.get_mut(&id) {
            Some(range) if range.continues(what, gave_up.as_ref(), offset) => range.to = offset,
            _ => {
                let range = OutcomeRange { id, from: offset, to: offset, what, gave_up };
                ranges.extend(open.insert(id, range));
            }
        }
    }
    ranges.extend(open.into_values());
    ranges
}

impl OutcomeRange {
    fn continues(&self, what: &str, gave_up: Option<&GaveUp>, offset: Offset) -> bool {
        self.what == what && self.to.next() == offset && self.gave_up.is_none() && gave_up.is_none()
    }
}

/// The ranges that `moves` pass over by decision.
pub fn skipped_ranges(moves: &[Move]) -> Vec<OutcomeRange> {
    let range = |m: &Move| {
        let (from, to) = m.skips?;
        let last = Committed::resolved_reset(to).before().filter(|last| *last >= from)?;
        Some(OutcomeRange { id: m.id, from, to: last, what: "skipped", gave_up: None })
    };
    moves.iter().filter_map(range).collect()
}

/// The ranges that `moves` give back, to be handled again.
pub fn again_ranges(moves: &[Move]) -> Vec<OutcomeRange> {
    let range = |m: &Move| {
        let (from, to) = m.gives_back()?;
        let last = Committed::resolved_reset(to).before()?;
        Some(OutcomeRange { id: m.id, from, to: last, what: "again", gave_up: None })
    };
    moves.iter().filter_map(range).collect()
}

/// A line for each.
pub fn outcome_lines<'a>(ranges: impl IntoIterator<Item = &'a OutcomeRange>) -> String {
    let mut text = String::new();
    for range in ranges {
        writeln!(text, "{range}").expect("a string takes every write");
    }
    text
}

fn without_output(outcome: &Outcome) -> Option<(&'static str, Option<GaveUp>)> {
    match outcome {
        Outcome::Handled { records } if records.is_empty() => Some(("handled", None)),
        Outcome::Handled { .. } => None,
        Outcome::Filtered => Some(("filtered", None)),
        Outcome::Absorbed => Some(("absorbed", None)),
        Outcome::Skipped(gave_up) => Some(("skipped", Some(gave_up.clone()))),
        Outcome::Dead(letter) => Some(("dead", Some(letter.gave_up.clone()))),
    }
}
