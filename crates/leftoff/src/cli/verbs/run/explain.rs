//! `leftoff run --explain`: what may be promised, and where each partition would start. Nothing is opened for writing.

use std::io::{self, Write};

use leftoff::source::reset_of;
use leftoff_consumer::runner::{Facts, RunOptions, Start, decide, own_words};
use leftoff_consumer::sink::{FileSink, MatrixRow};
use leftoff_consumer::source::PartitionId;
use leftoff_engine::broker::{State, Topic};
use leftoff_engine::coordinator::PartitionKey;
use leftoff_wire::{Committed, Offset};

use super::{backfill, handlers, out};
use crate::cli::args::Global;
use crate::cli::args::run::{Order, RunArgs};
use crate::cli::failure::Failure;
use crate::cli::place::Place;
use crate::cli::session::{find_topic, open_view};
use crate::cli::table::{Cell, Column, Format, Table};
use crate::cli::verbs::authority::{from_sink, keeps_offset, marks_in, metadata_of, next_in, other_event_at};
use crate::cli::verbs::printed;

const COLUMNS: &[Column] = &[
    Column { title: "TOPIC", key: "topic", is_wide: false },
    Column { title: "PARTITION", key: "partition", is_wide: false },
    Column { title: "STARTS-AT", key: "starts_at", is_wide: false },
    Column { title: "END", key: "end", is_wide: false },
    Column { title: "WHY", key: "why", is_wide: false },
    Column { title: "OUT", key: "out", is_wide: true },
    Column { title: "PROMISE", key: "promise", is_wide: true },
];

/// Prints the row of the matrix and the starts; fails as the run would.
pub fn explain(global: &Global, args: &RunArgs) -> Result<(), Failure> {
    out::check(args)?;
    let (row, place) = (out::row(args), args.out.to_string());
    // What the place says comes first: the log can only be further.
    refuse_other_group(&args.out, &args.group)?;
    let in_place = next_in(&args.out, &args.group)?;
    let marks = marks_in(&args.out, &args.group)?;
    let view = open_view(global)?;
    let mut options = args.options();
    options.start_from = args.from.map(|time| backfill::start(args, time, view.state())).transpose()?;
    let mut table = Table::new(COLUMNS);
    let mut refusal = None;
    for name in &args.topics {
        let topic = find_topic(view.state().topics().collect::<Vec<_>>().into_iter(), name)?;
        for number in 0..topic.partitions {
            let keeper = keeps_offset(&args.out).then_some(place.as_str());
            let id = PartitionId { topic_id: topic.topic_id, partition: number };
            let stand = Stand {
                place: keeper,
                next: in_place.as_ref().and_then(|next| next.get(&id).copied()),
                other_event_at: other_event_at(view.state(), &marks, id)?,
                reset: marks.get(&id).and_then(|mark| mark.reset),
            };
            let start = start(view.state(), (args, &options), &topic, number, &stand);
            let (at, why) = match &start {
                Ok(Start { at, decision: Some(decision) }) => (Some(at.next()), decision.to_string()),
                Ok(Start { at, decision: None }) => (Some(at.next()), "saved".to_owned()),
                Err(error) => (None, error.to_string().lines().next().unwrap_or_default().to_owned()),
            };
            let key = PartitionKey { topic: topic.name.clone(), topic_id: topic.topic_id, partition: number };
            table.push(vec![
                topic.name.as_str().into(),
                number.into(),
                at.into(),
                view.state().bounds(&key).map(|bounds| bounds.end).into(),
                why.into(),
                place.as_str().into(),
                row.promise.to_string().into(),
            ]);
            refusal = refusal.or_else(|| start.err());
        }
    }
    let format = Format::from(global.format);
    printed(|out| {
        if matches!(format, Format::Text | Format::Wide) {
            write_row(out, &[place_words(&row).as_slice(), &hand_words(args)].concat(), &place)?;
        }
        table.write(out, format, !global.no_headers)
    })?;
    refusal.map_or(Ok(()), |refusal| Err(Failure::refused(refusal.to_string())))
}

/// Where a place that keeps the offset stands.
struct Stand<'a> {
    place: Option<&'a str>,
    next: Option<Committed>,
    other_event_at: Option<Offset>,
    /// The last reset that reached it.
    reset: Option<Offset>,
}

fn start(
    state: &State,
    (args, options): (&RunArgs, &RunOptions),
    topic: &Topic,
    number: i32,
    stand: &Stand<'_>,
) -> Result<Start, leftoff_consumer::runner::Refusal> {
    let key = PartitionKey { topic: topic.name.clone(), topic_id: topic.topic_id, partition: number };
    let bounds = state.bounds(&key).expect("each partition of a live topic has a log");
    let entry = state.coordinator().entry(&args.group, &key);
    let in_group = entry.map(|entry| entry.committed);
    // For the place that the effects go to, and no other.
    let reset =
        entry.filter(|entry| own_words(&entry.metadata).1 == metadata_of(&args.out)).and_then(reset_of);
    let reset = reset.filter(|reset| stand.reset < Some(reset.number));
    let has_others = state
        .coordinator()
        .known_group(&args.group)
        .is_some_and(|group| group.offsets().any(|(_, _, entry)| entry.topic_id == topic.topic_id));
    let facts = Facts {
        topic: &topic.name,
        partition: number,
        added: in_group.is_none() && has_others,
        place: stand.place,
        in_sink: stand.next,
        other_event_at: stand.other_event_at,
        reset: reset.as_ref(),
        in_group,
        log_start: bounds.log_start,
        end: bounds.end,
    };
    decide(&facts, options)
}

fn refuse_other_group(place: &Place, group: &str) -> Result<(), Failure> {
    let Place::File(path) = place else { return Ok(()) };
    match FileSink::inspect(path).map_err(from_sink)? {
        Some(state) if state.group != group => {
            Err(Failure::refused(format!("{place} belongs to group '{}', not to '{group}'", state.group))
                .hint("use another file, or that group"))
        }
        _ => Ok(()),
    }
}

fn place_words(row: &MatrixRow) -> [(&'static str, String); 5] {
    [
        ("promise", row.promise.to_string()),
        ("that is", row.meaning.to_owned()),
        ("how", row.how.to_owned()),
        ("goes on by", row.authority.to_owned()),
        ("left over", row.left_over.to_owned()),
    ]
}

/// What handlers do beside their records, and how events are handed out where it is not one after the other.
fn hand_words(args: &RunArgs) -> Vec<(&'static str, String)> {
    let (concurrency, pipeline) = (args.concurrency, args.pipeline);
    let mut rows: Vec<_> =
        handlers::effects(args).map(|text| ("effects", text.to_owned())).into_iter().collect();
    if concurrency == 1 && pipeline == 1 {
        return rows;
    }
    let order = match args.order {
        Order::Partition => "those of a partition one after the other",
        Order::Key => "those of a partition with the same key one after the other",
        Order::None => "in any order",
    };
    let at_a_time = match (concurrency, pipeline) {
        (commands, 1) => format!("by {commands} commands side by side"),
        (1, events) => format!("by a command that has up to {events} at a time"),
        (commands, events) => format!("by {commands} commands that have up to {events} at a time each"),
    };
    let words = format!("{at_a_time}, {order}; records are written in the order of the offsets");
    rows.push(("handled", words));
    rows
}

fn write_row(out: &mut Vec<u8>, words: &[(&str, String)], place: &str) -> io::Result<()> {
    writeln!(out, "{place}")?;
    for (name, text) in words {
        writeln!(out, "  {name:<10}  {text}")?;
    }
    writeln!(out)
}
