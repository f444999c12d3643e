//! `leftoff topics describe`: each partition's bounds and sizes, and the settings.

use std::io::{self, Write};

use leftoff_engine::broker::{State, Topic};
use leftoff_engine::log::{Log, LogError};
use serde_json::{Value, json};

use super::logs;
use crate::cli::args::Global;
use crate::cli::args::topics::DescribeArgs;
use crate::cli::failure::Failure;
use crate::cli::session::{find_topic, note, open_view};
use crate::cli::table::{Cell, Column, Format, Table};
use crate::cli::time::format_time;
use crate::cli::verbs::printed;

const PARTITIONS: &[Column] = &[
    Column { title: "TOPIC", key: "topic", is_wide: false },
    Column { title: "PARTITION", key: "partition", is_wide: false },
    Column { title: "START", key: "log_start", is_wide: false },
    Column { title: "END", key: "end", is_wide: false },
    Column { title: "EVENTS", key: "events", is_wide: false },
    Column { title: "BYTES", key: "bytes", is_wide: false },
    Column { title: "SEGMENTS", key: "segments", is_wide: false },
    Column { title: "EARLIEST", key: "earliest", is_wide: false },
    Column { title: "LATEST", key: "latest", is_wide: false },
];

const SETTINGS: &[Column] = &[
    Column { title: "SETTING", key: "setting", is_wide: false },
    Column { title: "VALUE", key: "value", is_wide: false },
    Column { title: "FROM", key: "from", is_wide: false },
];

/// One partition in numbers.
struct Partition {
    number: i32,
    log_start: i64,
    end: i64,
    bytes: i64,
    segments: i64,
    earliest_ms: Option<i64>,
    latest_ms: Option<i64>,
}

/// Prints the topics. Text and CSV have a line a partition; JSON has an object a topic, with its settings.
pub fn run(global: &Global, args: &DescribeArgs) -> Result<(), Failure> {
    let view = open_view(global)?;
    let state = view.state();
    let known: Vec<&Topic> = state.topics().collect();
    let mut topics = Vec::new();
    for name in &args.topics {
        let topic = find_topic(known.iter().copied(), name)?;
        let partitions = partitions(state, &topic).map_err(|error| Failure::storage(error.to_string()))?;
        for (id, log) in logs(state, &topic) {
            if let Some(damage) = log.mark_damage() {
                note(global, &format!("{name}/{}: damaged: {damage}; see `leftoff doctor`", id.partition));
            }
        }
        topics.push((topic, partitions));
    }
    let with_headers = !global.no_headers;
    printed(|out| match Format::from(global.format) {
        format @ (Format::Text | Format::Wide) => write_text(out, &topics, format, with_headers),
        Format::Csv => table(&topics).write(out, Format::Csv, with_headers),
        Format::Json => {
            let all: Vec<Value> = topics.iter().map(object).collect();
            serde_json::to_writer_pretty(&mut *out, &all)?;
            writeln!(out)
        }
        Format::Jsonl => topics.iter().try_for_each(|topic| {
            serde_json::to_writer(&mut *out, &object(topic))?;
            writeln!(out)
        }),
    })
}

fn partitions(state: &State, topic: &Topic) -> Result<Vec<Partition>, LogError> {
    logs(state, topic).map(|(id, log)| partition(id.partition, log)).collect()
}

fn partition(number: i32, log: &Log) -> Result<Partition, LogError> {
    let segments = log.segments()?;
    Ok(Partition {
        number,
        log_start: log.log_start().get(),
        end: log.high_watermark().get(),
        bytes: segments.iter().map(|segment| i64::try_from(segment.bytes).unwrap_or(i64::MAX)).sum(),
        segments: i64::try_from(segments.len()).unwrap_or(i64::MAX),
        earliest_ms: log.offset_for_time(i64::MIN)?.map(|(_, timestamp_ms)| timestamp_ms),
        latest_ms: log.max_timestamp()?.map(|(_, timestamp_ms)| timestamp_ms),
    })
}

fn table(topics: &[(Topic, Vec<Partition>)]) -> Table {
    let mut table = Table::new(PARTITIONS);
    for (topic, partitions) in topics {
        for partition in partitions {
            table.push(vec![
                topic.name.as_str().into(),
                partition.number.into(),
                partition.log_start.into(),
                partition.end.into(),
                (partition.end - partition.log_start).into(),
                partition.bytes.into(),
                partition.segments.into(),
                partition.earliest_ms.map_or(Cell::Missing, Cell::Time),
                partition.latest_ms.map_or(Cell::Missing, Cell::Time),
            ]);
        }
    }
    table
}

fn write_text(
    out: &mut impl Write,
    topics: &[(Topic, Vec<Partition>)],
    format: Format,
    with_headers: bool,
) -> io::Result<()> {
    table(topics).write(out, format, with_headers)?;
    for (topic, _) in topics {
        let created = format_time(topic.created.as_ms());
        writeln!(out, "\n{} was made at {created}, its id is {}", topic.name, topic.topic_id)?;
        let mut settings = Table::new(SETTINGS);
        for (name, value, is_given) in topic.settings.all() {
            let from = if is_given { "given" } else { "default" };
            let value = match value.parse::<i64>() {
                Ok(number) => number.into(),
                Err(_) => value.into(),
            };
            settings.push(vec![name.into(), value, from.into()]);
        }
        settings.write(out, format, with_headers)?;
    }
    Ok(())
}

fn object((topic, partitions): &(Topic, Vec<Partition>)) -> Value {
    let settings: serde_json::Map<String, Value> = topic
        .settings
        .all()
        .into_iter()
        .map(|(name, value, is_given)| {
            let value = value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number));
            (name.to_owned(), json!({ "value": value, "given": is_given }))
        })
        .collect();
    let partitions: Vec<Value> = partitions
        .iter()
        .map(|partition| {
            json!({
                "partition": partition.number,
                "log_start": partition.log_start,
                "end": partition.end,
                "events": partition.end - partition.log_start,
                "bytes": partition.bytes,
                "segments": partition.segments,
                "earliest": partition.earliest_ms.map(format_time),
                "latest": partition.latest_ms.map(format_time),
            })
        })
        .collect();
    json!({
        "topic": topic.name,
        "topic_id": topic.topic_id.to_string(),
        "created": format_time(topic.created.as_ms()),
        "partitions": partitions,
        "settings": settings,
    })
}
