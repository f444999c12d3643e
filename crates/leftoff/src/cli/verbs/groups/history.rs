//! `leftoff groups history`: every move of a group, oldest first. Both numbers are the *next* offset to read.

use std::collections::HashMap;

use leftoff::store::events_in;
use leftoff_engine::broker::State;
use leftoff_engine::coordinator::{Group, Move, RawRecord, WalkError, Why, walk};
use leftoff_engine::types::Timestamp;
use leftoff_wire::{Committed, Offset};

use super::standing::name;
use super::{is_wanted, no_group};
use crate::cli::args::Global;
use crate::cli::args::groups::HistoryArgs;
use crate::cli::args::value::TopicPartitions;
use crate::cli::failure::Failure;
use crate::cli::session::{from_store, note, open_view};
use crate::cli::table::{Cell, Column, Format, Table};
use crate::cli::verbs::printed;

/// The most moves of one partition that are read, newest first.
const MOVES_PER_PARTITION: usize = 100_000;

const COLUMNS: &[Column] = &[
    Column { title: "TIME", key: "time", is_wide: false },
    Column { title: "TOPIC", key: "topic", is_wide: false },
    Column { title: "PARTITION", key: "partition", is_wide: false },
    Column { title: "NEXT(before)", key: "next_before", is_wide: false },
    Column { title: "NEXT(after)", key: "next_after", is_wide: false },
    Column { title: "WHY", key: "why", is_wide: false },
    Column { title: "MOVES", key: "moves", is_wide: false },
    Column { title: "WHO", key: "who", is_wide: false },
    Column { title: "FLAGS", key: "flags", is_wide: false },
    Column { title: "NOTE", key: "note", is_wide: false },
    Column { title: "GENERATION", key: "generation", is_wide: true },
    Column { title: "MEMBER", key: "member", is_wide: true },
    Column { title: "SOFTWARE", key: "software", is_wide: true },
    Column { title: "METADATA", key: "metadata", is_wide: true },
    Column { title: "RECORD", key: "record", is_wide: true },
];

/// A partition's move.
pub struct Told {
    /// The topic's name.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The move.
    pub found: Move,
}

/// A line for each move; in plain text, saves of one member in a row are one line.
pub fn history(global: &Global, args: &HistoryArgs) -> Result<(), Failure> {
    let view = open_view(global)?;
    let state = view.state();
    let group = state.coordinator().known_group(&args.group).ok_or_else(|| no_group(state, &args.group))?;
    let (moves, is_cut) = moves(state, group, &args.topics, MOVES_PER_PARTITION)?;
    let format = Format::from(global.format);
    let mut lines = match format {
        Format::Text => in_a_row(moves),
        Format::Wide | Format::Json | Format::Jsonl | Format::Csv => {
            moves.into_iter().map(Line::one).collect()
        }
    };
    let last = args.last.map_or(usize::MAX, |last| usize::try_from(last).unwrap_or(usize::MAX));
    lines.drain(..lines.len().saturating_sub(last));
    if is_cut && args.last.is_none() {
        note(global, "older moves are not in the log any more, or too many to show");
    }
    let mut table = Table::new(COLUMNS);
    lines.into_iter().for_each(|line| table.push(line.cells()));
    printed(|out| table.write(out, format, !global.no_headers))
}

/// The moves of a group, oldest first, and whether there were more.
pub fn moves(
    state: &State,
    group: &Group,
    filter: &[TopicPartitions],
    limit: usize,
) -> Result<(Vec<Told>, bool), Failure> {
    let (mut told, mut is_cut) = (Vec::new(), false);
    for head in group.heads().filter(|head| is_wanted(filter, head.topic, head.partition)) {
        let walked = walk(head.at, &mut |at| record(state, at), limit).map_err(from_walk)?;
        is_cut |= walked.truncated || walked.next.is_some();
        let moves = walked.moves.into_iter();
        told.extend(moves.map(|found| Told {
            topic: head.topic.to_owned(),
            partition: head.partition,
            found,
        }));
    }
    told.sort_by_key(|told| told.found.at);
    Ok((told, is_cut))
}

/// The record at an offset of the offsets log; `None` if it is deleted.
pub(super) fn record(state: &State, at: Offset) -> Result<Option<RawRecord>, Failure> {
    let log = state.offsets_log();
    if at < log.log_start() {
        return Ok(None);
    }
    let failed = |error| from_store(log.dir(), error);
    let fetched = log.fetch(at, 1).map_err(|error| failed(error.into()))?;
    let chunk = events_in(&fetched, at).map_err(|error| failed(error.into()))?;
    let event = chunk.events.into_iter().find(|event| event.offset == at);
    Ok(event.map(|event| RawRecord {
        timestamp: Timestamp::from_ms(event.timestamp_ms),
        key: event.key.unwrap_or_default(),
        value: event.value,
        headers: event.headers.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect(),
    }))
}

pub(super) fn from_walk(error: WalkError<Failure>) -> Failure {
    match error {
        WalkError::Read(failure) => failure,
        error => Failure::storage(error.to_string()),
    }
}

/// A line of the table: a move, or saves of one member in a row.
struct Line {
    told: Told,
    moves: i64,
    before: Option<Committed>,
}

impl Line {
    fn one(told: Told) -> Line {
        Line { moves: 1, before: told.found.old, told }
    }

    fn takes(&self, next: &Told) -> bool {
        let is_save =
            |found: &Move| found.why == Why::Commit && found.flags.is_empty() && found.note.is_none();
        is_save(&self.told.found) && is_save(&next.found) && self.told.found.who == next.found.who
    }

    fn cells(self) -> Vec<Cell> {
        let Told { topic, partition, found } = self.told;
        let text = |text: &str| if text.is_empty() || text == "-" { Cell::Missing } else { text.into() };
        vec![
            Cell::Time(found.timestamp.as_ms()),
            topic.into(),
            partition.into(),
            self.before.map(Committed::next).into(),
            found.new.map(Committed::next).into(),
            found.why.to_string().into(),
            self.moves.into(),
            text(&name(&found.who).replace("-@-", "-")),
            text(&found.flags.to_string()),
            found.note.into(),
            found.generation.into(),
            text(found.who.member_id()),
            text(found.who.software()),
            text(&found.metadata),
            found.at.into(),
        ]
    }
}

fn in_a_row(moves: Vec<Told>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut last: HashMap<(String, i32), usize> = HashMap::new();
    for told in moves {
        let place = (told.topic.clone(), told.partition);
        match last.get(&place).map(|at| &mut lines[*at]).filter(|line| line.takes(&told)) {
            Some(line) => {
                line.moves += 1;
                line.told = told;
            }
            None => {
                last.insert(place, lines.len());
                lines.push(Line::one(told));
            }
        }
    }
    lines.sort_by_key(|line| line.told.found.at);
    lines
}
