//! Lines become units: record batches for the partitions that they go to, and the place in the input behind them.
//!
//! A unit is what is written, and acknowledged, in one step. It ends when it is large, or when the input pauses, so that a
//! single line does not wait for others.

use std::borrow::Cow;

use leftoff_engine::broker::Topic;
use leftoff_wire::consumer_offsets::SourceProgress;
use leftoff_wire::record_batch::{BatchBuilder, Batches};

use crate::cli::event_line::{Event, EventParser, Line};
use crate::cli::failure::Failure;
use crate::cli::verbs::no_partition;
use leftoff::partitioner::Partitioner;

/// A unit is passed on when it has so many bytes.
const UNIT_BYTES: usize = 4 * 1024 * 1024;
/// The least number of bytes that a record takes beside key, value and headers, and the most: seven varints and a byte.
const RECORD_OVERHEAD_BYTES: usize = 40;

/// What is written in one step.
#[derive(Debug)]
pub struct Unit {
    /// Batches by partition, in order; a partition may come more than once.
    pub appends: Vec<(i32, Batches)>,
    /// How many events are in them.
    pub events: u64,
    /// How many bytes of input they were.
    pub input_bytes: u64,
    /// How many lines of input lie before the end of this unit.
    pub lines: u64,
    /// How far the source is read with them, if it is one that remembers.
    pub progress: Option<SourceProgress>,
}

/// Collects lines.
#[derive(Debug)]
pub struct Units {
    parser: EventParser,
    topic: Topic,
    partitioner: Partitioner,
    partition: Option<i32>,
    /// The largest batch that the topic takes.
    batch_bytes: usize,
    /// One for each partition.
    builders: Vec<BatchBuilder>,
    full: Vec<(i32, Batches)>,
    bytes: usize,
    events: u64,
    from_bytes: u64,
}

impl Units {
    /// For events of `topic`. `producer_id` marks those that belong to commit sets. Events without a key begin at a
    /// partition drawn by `draw`.
    pub fn new(
        parser: EventParser,
        topic: &Topic,
        partition: Option<i32>,
        producer_id: Option<i64>,
        draw: u32,
    ) -> Result<Units, Failure> {
        if let Some(number) = partition.filter(|number| *number >= topic.partitions) {
            return Err(no_partition(topic, number));
        }
        let mut builder = BatchBuilder::default();
        if let Some(id) = producer_id {
            builder.producer(id, 0, 0);
        }
        let count = usize::try_from(topic.partitions).expect("a topic has at least one partition");
        Ok(Units {
            parser,
            partitioner: Partitioner::new(topic.partitions, draw),
            partition,
            batch_bytes: usize::try_from(topic.settings.max_message_bytes())
                .unwrap_or(usize::MAX)
                .min(UNIT_BYTES),
            topic: topic.clone(),
            builders: vec![builder; count],
            full: Vec::new(),
            bytes: 0,
            events: 0,
            from_bytes: 0,
        })
    }

    /// Where in the input the first unit begins.
    pub fn begin_at(&mut self, position_bytes: u64) {
        self.from_bytes = position_bytes;
    }

    /// Adds the event on a line. After an error the line is in no unit; those before it are.
    pub fn add(&mut self, line: &Line<'_>, now_ms: i64) -> Result<(), Failure> {
        let Some(event) = self.parser.parse(line)? else { return Ok(()) };
        let key = event.key.as_deref();
        let value = event.value.as_deref();
        let partition = match self.partition.or(event.partition) {
            None => self.partitioner.partition(key, value.map_or(0, <[u8]>::len)),
            Some(number) if number < self.topic.partitions => number,
            Some(number) => {
                let hint = format!("it has {}, counted from 0", self.topic.partitions);
                let name = &self.topic.name;
                return Err(Failure::usage(format!(
                    "line {}: {name} has no partition {number}",
                    line.number
                ))
                .hint(hint));
            }
        };
        let size = size_bytes(&event);
        let builder = &mut self.builders[index(partition)];
        if builder.bytes_estimate() + size > self.batch_bytes {
            if !builder.is_empty() {
                self.full.push((partition, built(builder)));
            }
            if builder.bytes_estimate() + size > self.batch_bytes {
                return Err(too_large(line, &self.topic.name, size, self.batch_bytes));
            }
        }
        let headers: Vec<(&str, Option<&[u8]>)> =
            event.headers.iter().map(|header| (header.name.as_str(), header.value.as_deref())).collect();
        builder.push(event.timestamp_ms.unwrap_or(now_ms), key, value, &headers);
        self.bytes += size;
        self.events += 1;
        Ok(())
    }

    /// Whether the unit is large enough to be passed on.
    pub fn is_full(&self) -> bool {
        self.bytes >= UNIT_BYTES
    }

    /// Whether there is nothing to pass on.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// The unit, which ends at this place in the input; the next one begins.
    pub fn take(&mut self, lines: u64, position_bytes: u64) -> Unit {
        let mut appends = std::mem::take(&mut self.full);
        for (builder, partition) in self.builders.iter_mut().zip(0..) {
            if !builder.is_empty() {
                appends.push((partition, built(builder)));
            }
        }
        self.bytes = 0;
        let from_bytes = std::mem::replace(&mut self.from_bytes, position_bytes);
        Unit {
            appends,
            events: std::mem::take(&mut self.events),
            input_bytes: position_bytes - from_bytes,
            lines,
            progress: None,
        }
    }
}

fn index(partition: i32) -> usize {
    usize::try_from(partition).expect("partitions are counted from 0")
}

/// The most that the event's record can take in a batch.
fn size_bytes(event: &Event<'_>) -> usize {
    let bytes = |part: &Option<Cow<'_, [u8]>>| part.as_ref().map_or(0, |bytes| bytes.len());
    let headers: usize = event
        .headers
        .iter()
        .map(|header| header.name.len() + header.value.as_ref().map_or(0, Vec::len) + 10)
        .sum();
    RECORD_OVERHEAD_BYTES + bytes(&event.key) + bytes(&event.value) + headers
}

fn built(builder: &mut BatchBuilder) -> Batches {
    let bytes = builder.build().expect("it has records, and fewer bytes than a length field can tell");
    Batches::parse(bytes).expect("what was built just now is whole")
}

fn too_large(line: &Line<'_>, topic: &str, size: usize, limit: usize) -> Failure {
    let number = line.number;
    Failure::usage(format!(
        "line {number}: the event takes up to {size} bytes, and a batch of {topic} at most {limit}"
    ))
    .hint(format!("raise it with `leftoff topics alter {topic} -c max.message.bytes=…`, or split the event"))
}
