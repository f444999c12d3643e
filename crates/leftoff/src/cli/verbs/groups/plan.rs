//! What a move of a group would do, before anybody does it: shown to people and scripts, and carried out as shown.

use std::fmt::Write as _;
use std::path::Path;

use leftoff::store::{Event, events_in};
use leftoff::topic_sink::Outlet;
use leftoff_engine::broker::State;
use leftoff_engine::coordinator::{
    Bounds, OffsetToCommit, PartitionKey, Passed, PlanError, Planned, ResetTo, Span, passed, plan,
};
use leftoff_wire::Committed;

use super::history::{from_walk, record};
use super::ls::count;
use super::standing::{count_events, log};
use crate::cli::args::Global;
use crate::cli::bad_value::shorten;
use crate::cli::failure::Failure;
use crate::cli::place::Place;
use crate::cli::session::from_store;
use crate::cli::table::{Cell, Column, Format, Table};
use crate::cli::verbs::authority::{Authorities, keeper_in};
use crate::cli::verbs::printed;

/// So many events of a run that repeats or is skipped are shown.
const SHOWN_EVENTS: usize = 3;
/// How far back the history is asked what was handled, in moves of a partition.
const LOOK_BACK: usize = 100_000;

const COLUMNS: &[Column] = &[
    Column { title: "TOPIC", key: "topic", is_wide: false },
    Column { title: "PARTITION", key: "partition", is_wide: false },
    Column { title: "NEXT(before)", key: "next_before", is_wide: false },
    Column { title: "NEXT(after)", key: "next_after", is_wide: false },
    Column { title: "REPEATED", key: "repeated_events", is_wide: false },
    Column { title: "SKIPPED", key: "skipped_events", is_wide: false },
    Column { title: "NOTE", key: "note", is_wide: false },
    Column { title: "REPEATED-FROM", key: "repeated_from", is_wide: true },
    Column { title: "REPEATED-TO", key: "repeated_to", is_wide: true },
    Column { title: "SKIPPED-FROM", key: "skipped_from", is_wide: true },
    Column { title: "SKIPPED-TO", key: "skipped_to", is_wide: true },
    Column { title: "DELETED-UNREAD", key: "deleted_unread_offsets", is_wide: true },
    Column { title: "FIRST-TIME", key: "first_time_events", is_wide: true },
    Column { title: "PASSED-AGAIN", key: "passed_again_events", is_wide: true },
];

/// A move of one partition.
#[derive(Debug)]
pub struct Step {
    /// Which partition.
    pub key: PartitionKey,
    /// The group's offset before.
    pub before: Option<Committed>,
    /// The group's offset after; `None` if it is deleted.
    pub after: Option<Committed>,
    planned: Option<Planned>,
    /// Events that were handled, and come again.
    repeated: Vec<Affected>,
    /// Events that it goes back to, and that were never handled: an earlier move passed them over.
    first_time: Vec<Affected>,
    /// Events that it passes over and that were never handled.
    skipped: Vec<Affected>,
    /// Events that it passes over and that were handled before an earlier move went back.
    passed_again: Vec<Affected>,
    /// The place that keeps the offset, which the next run takes there.
    place: Option<Place>,
    /// An earlier reset has not reached it yet.
    waits: bool,
    /// The words that stay with the offset.
    metadata: String,
}

/// Events that a move handles again or passes over.
#[derive(Debug)]
struct Affected {
    span: Span,
    events: Option<u64>,
    first: Vec<Event>,
}

impl Step {
    /// Plans a move of a group to an offset. Where a place's word counts, it goes from there, and the next run takes it to the
    /// place.
    pub fn to(
        state: &State,
        group: &str,
        authorities: &Authorities,
        key: &PartitionKey,
        to: ResetTo,
    ) -> Result<Step, Failure> {
        let entry = state.coordinator().entry(group, key);
        let metadata = entry.map(|entry| entry.metadata.clone()).unwrap_or_default();
        authorities.refuse_other_log(state, &metadata, key)?;
        let place = authorities.next(&metadata, key);
        let in_group = entry.map(|entry| entry.committed);
        let current = place.as_ref().map_or(in_group, |(_, next)| *next);
        let waits = entry.is_some_and(|entry| authorities.waits(entry, key));
        let log = log(state, key.topic_id, key.partition);
        let bounds = Bounds { log_start: log.log_start(), end: log.high_watermark() };
        let planned = plan(current, to, bounds).map_err(|error: PlanError| {
            Failure::usage(format!("{key}: {error}")).hint("for example with --to-earliest or --to-latest")
        })?;
        let affected = |spans: &[Span]| -> Result<Vec<Affected>, Failure> {
            spans.iter().map(|span| Affected::of(state, key, *span)).collect()
        };
        let (repeats, first_time) = match planned.repeats {
            None => (Vec::new(), Vec::new()),
            Some(span) => match passed_in(state, group, key, span)? {
                None => (vec![span], Vec::new()),
                Some(passed) => (passed.handled, passed.unhandled),
            },
        };
        let (passed_again, skips) = match planned.skips {
            None => (Vec::new(), Vec::new()),
            Some(span) => match passed_in(state, group, key, span)? {
                None => (Vec::new(), vec![span]),
                Some(passed) => (passed.handled, passed.unhandled),
            },
        };
        Ok(Step {
            key: key.clone(),
            before: current,
            after: Some(planned.to),
            planned: Some(planned),
            repeated: affected(&repeats)?,
            first_time: affected(&first_time)?,
            skipped: affected(&skips)?,
            passed_again: affected(&passed_again)?,
            waits,
            // A place that is gone does not come back by a reset.
            metadata: match &place {
                None if keeper_in(&metadata).is_some() => String::new(),
                _ => metadata,
            },
            place: place.map(|(place, _)| place),
        })
    }

    /// Plans a deletion of a group's offset.
    pub fn forget(
        state: &State,
        group: &str,
        authorities: &Authorities,
        key: &PartitionKey,
    ) -> Result<Step, Failure> {
        let entry = state.coordinator().entry(group, key);
        let metadata = entry.map(|entry| entry.metadata.clone()).unwrap_or_default();
        authorities.refuse_move(&metadata, key)?;
        Ok(Step {
            key: key.clone(),
            before: entry.map(|entry| entry.committed),
            after: None,
            planned: None,
            repeated: Vec::new(),
            first_time: Vec::new(),
            skipped: Vec::new(),
            passed_again: Vec::new(),
            waits: false,
            place: None,
            metadata,
        })
    }

    /// Whether there is nothing to do.
    pub fn is_unchanged(&self) -> bool {
        self.before == self.after && !self.waits
    }

    /// What is to be saved; `None` if it is a deletion.
    pub fn to_commit(&self) -> Option<OffsetToCommit> {
        let (key, metadata) = (self.key.clone(), self.metadata.clone());
        self.after.map(|committed| OffsetToCommit { key, committed, leader_epoch: None, metadata })
    }

    fn cells(&self, format: Format) -> Vec<Cell> {
        let events = |affected: &[Affected]| {
            let events = affected.iter().try_fold(0, |sum, affected| Some(sum + affected.events?));
            match events {
                None if matches!(format, Format::Text | Format::Wide) => {
                    let offsets: u64 = affected.iter().map(|affected| affected.span.count()).sum();
                    format!("{offsets} offsets").into()
                }
                events => count(events),
            }
        };
        let ends = |affected: &[Affected]| -> [Cell; 2] {
            let (first, last) = (affected.first(), affected.last());
            [
                first.map(|affected| affected.span.from).into(),
                last.map(|affected| affected.span.to.get() - 1).into(),
            ]
        };
        let [repeated_from, repeated_to] = ends(&self.repeated);
        let [skipped_from, skipped_to] = ends(&self.skipped);
        vec![
            self.key.topic.as_str().into(),
            self.key.partition.into(),
            self.before.map(Committed::next).into(),
            self.after.map(Committed::next).into(),
            events(&self.repeated),
            events(&self.skipped),
            self.note().into(),
            repeated_from,
            repeated_to,
            skipped_from,
            skipped_to,
            count(self.planned.map(|planned| planned.deleted_unread.map_or(0, Span::count))),
            events(&self.first_time),
            events(&self.passed_again),
        ]
    }

    fn note(&self) -> Option<String> {
        let clamped = self.planned.and_then(|planned| planned.clamped).map(|clamped| clamped.to_string());
        let unchanged = self.is_unchanged().then(|| "stays where it is".to_owned());
        let outlet = self.repeated.first().and_then(|_| self.metadata.parse::<Outlet>().ok());
        let again = outlet.map(|outlet| format!("their records are written to topic:{} again", outlet.topic));
        let deleted = self.after.is_none().then(|| "the offset is deleted".to_owned());
        let reaches = self.place.as_ref().filter(|_| !self.is_unchanged()).map(|place| self.reaches(place));
        let notes: Vec<String> =
            [clamped.or(unchanged).or(again).or(deleted), reaches].into_iter().flatten().collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    /// What becomes of a move that a place is to follow.
    fn reaches(&self, place: &Place) -> String {
        let what = match (self.repeated.is_empty(), place) {
            (true, _) if self.before == self.after => "takes an earlier one back before it reaches",
            (true, _) => "reaches",
            (false, Place::File(_)) => "their lines are appended again; it reaches",
            (false, _) => "their rows are deleted and written again; it reaches",
        };
        format!("{what} {place} with the next run")
    }

    fn examples(&self) -> String {
        let mut text = String::new();
        let told = [
            ("handled again", &self.repeated),
            ("handled for the first time, since an earlier move passed them over", &self.first_time),
            ("passed over and never handled", &self.skipped),
            ("passed over, and handled before an earlier move went back", &self.passed_again),
        ];
        let told = told.iter().flat_map(|(words, affected)| affected.iter().map(move |one| (words, one)));
        for (words, affected) in told {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "\n{}: {words}: {}", self.key, affected.span);
            for event in &affected.first {
                let bytes = |bytes: &Option<Vec<u8>>| match bytes {
                    Some(bytes) => shorten(&String::from_utf8_lossy(bytes)),
                    None => "null".to_owned(),
                };
                let _ = writeln!(text, "  {}  {}  {}", event.offset, bytes(&event.key), bytes(&event.value));
            }
            if affected.span.count() > affected.first.len() as u64 {
                text.push_str("  …\n");
            }
        }
        text
    }
}

/// What the group's history says of a span; `None` where it does not tell, or there is none.
fn passed_in(state: &State, group: &str, key: &PartitionKey, span: Span) -> Result<Option<Passed>, Failure> {
    let head = state.coordinator().known_group(group).and_then(|group| {
        group.heads().find(|head| head.topic == key.topic && head.partition == key.partition)
    });
    let Some(head) = head else { return Ok(None) };
    passed(head.at, key.topic_id, span, &mut |at| record(state, at), LOOK_BACK).map_err(from_walk)
}

impl Affected {
    fn of(state: &State, key: &PartitionKey, span: Span) -> Result<Affected, Failure> {
        let log = log(state, key.topic_id, key.partition);
        let failed = |error| from_store(Path::new(log.dir()), error);
        let events = count_events(log, span.from, span.to)?;
        let fetched = log.fetch(span.from, 1).map_err(|error| failed(error.into()))?;
        let mut first = events_in(&fetched, span.from).map_err(|error| failed(error.into()))?.events;
        first.retain(|event| event.offset < span.to);
        first.truncate(SHOWN_EVENTS);
        Ok(Affected { span, events, first })
    }
}

/// Prints a plan: a table, and for people the first events that it repeats or skips.
pub fn show(global: &Global, steps: &[Step]) -> Result<(), Failure> {
    let format = Format::from(global.format);
    let mut table = Table::new(COLUMNS);
    steps.iter().for_each(|step| table.push(step.cells(format)));
    printed(|out| {
        table.write(out, format, !global.no_headers)?;
        if matches!(format, Format::Text | Format::Wide) {
            steps.iter().for_each(|step| out.extend_from_slice(step.examples().as_bytes()));
        }
        Ok(())
    })
}
