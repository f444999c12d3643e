//! The evidence for events without output: `TOPIC_ID PARTITION FROM-TO handled|filtered|skipped`, a line a range, both ends
//! included.
//! One that was given up has a line of its own: `TOPIC_ID PARTITION OFFSET-OFFSET skipped attempts=3 WHY`.

use std::collections::BTreeMap;
use std::fmt::Write;

use leftoff_wire::{Committed, Offset};

use super::{GaveUp, Move, Outcome, Output};
use crate::shorten;
use crate::source::PartitionId;

#[derive(Clone, Copy)]
struct Range {
    from: Offset,
    to: Offset,
    what: &'static str,
}

/// The lines for those of `outputs` that have none of their own, neighbours of one kind in one range.
pub fn outcome_lines(outputs: &[Output]) -> String {
    let mut text = String::new();
    let mut open: BTreeMap<PartitionId, Range> = BTreeMap::new();
    for output in outputs {
        if let Outcome::Skipped(gave_up) = &output.outcome {
            close(&mut text, &mut open, output.id);
            push_given_up(&mut text, output, "skipped", gave_up);
        }
        let Some(what) = without_output(&output.outcome) else { continue };
        let (id, offset) = (output.id, output.offset);
        match open.get_mut(&id) {
            Some(range) if range.what == what && range.to.next() == offset => range.to = offset,
            _ => {
                if let Some(closed) = open.insert(id, Range { from: offset, to: offset, what }) {
                    push(&mut text, id, closed);
                }
            }
        }
    }
    open.into_iter().for_each(|(id, range)| push(&mut text, id, range));
    text
}

fn without_output(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Handled { records } if records.is_empty() => Some("handled"),
        Outcome::Handled { .. } => None,
        Outcome::Filtered => Some("filtered"),
        Outcome::Skipped(_) => None,
    }
}

/// Ends the partition's open range, so that its lines stay in offset order.
fn close(text: &mut String, open: &mut BTreeMap<PartitionId, Range>, id: PartitionId) {
    if let Some(closed) = open.remove(&id) {
        push(text, id, closed);
    }
}

fn push_given_up(text: &mut String, output: &Output, what: &'static str, gave_up: &GaveUp) {
    let Output { id, offset, .. } = output;
    let GaveUp { attempts, why } = gave_up;
    let why = shorten(why.as_bytes());
    writeln!(text, "{} {} {offset}-{offset} {what} attempts={attempts} {why}", id.topic_id, id.partition)
        .expect("a string takes every write");
}

fn push(text: &mut String, id: PartitionId, range: Range) {
    let Range { from, to, what } = range;
    writeln!(text, "{} {} {from}-{to} {what}", id.topic_id, id.partition)
        .expect("a string takes every write");
}

/// The lines for what `moves` pass over by decision: `TOPIC_ID PARTITION FROM-TO skipped`.
pub fn skipped_lines(moves: &[Move]) -> String {
    let mut text = String::new();
    for (id, (from, to)) in moves.iter().filter_map(|m| Some((m.id, m.skips?))) {
        if let Some(last) = Committed::resolved_reset(to).before().filter(|last| *last >= from) {
            push(&mut text, id, Range { from, to: last, what: "skipped" });
        }
    }
    text
}
