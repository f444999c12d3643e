//! What is to be read of one partition: from where, up to where.

use leftoff::store::now;
use leftoff_engine::broker::{PartitionId, State, Topic};
use leftoff_engine::coordinator::PartitionKey;
use leftoff_engine::log::Log;
use leftoff_wire::{Offset, Run};

use crate::cli::args::Global;
use crate::cli::args::read_write::ConsumeArgs;
use crate::cli::failure::Failure;
use crate::cli::offset_spec::{Bounds, OffsetSpec, Point};
use crate::cli::session::{find_topic, note};
use crate::cli::verbs::chosen_partitions;

/// A part of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    /// The topic's name.
    pub topic: String,
    /// Which partition.
    pub partition: PartitionId,
    /// The next offset to read.
    pub at: Offset,
    /// The first offset not to read; `None`: whatever comes.
    pub until: Option<Offset>,
}

impl Leg {
    /// `topic/partition`, for messages.
    pub fn place(&self) -> String {
        format!("{}/{}", self.topic, self.partition.partition)
    }

    /// Whether nothing is left to read, ever.
    pub fn is_done(&self) -> bool {
        self.until.is_some_and(|until| self.at >= until)
    }
}

/// The legs that the command line asks for: topics as given, partitions in order.
pub fn plan(global: &Global, args: &ConsumeArgs, state: &State) -> Result<Vec<Leg>, Failure> {
    let spec = args.offset()?;
    let known: Vec<&Topic> = state.topics().collect();
    let mut legs = Vec::new();
    for name in &args.topics {
        let topic = find_topic(known.iter().copied(), name)?;
        for number in chosen_partitions(&topic, &args.partitions)? {
            let id = PartitionId { topic_id: topic.topic_id, partition: number };
            if legs.iter().all(|(leg, _): &Planned| leg.partition != id) {
                legs.push(leg(global, args, state, &topic, id, spec)?);
            }
        }
    }
    pass_missing(global, legs)
}

/// A leg, and what is to be said if its first offset is not there.
type Planned = (Leg, Option<Failure>);

/// One offset seldom fits all partitions: those that lack it give what they have behind it, and it is said. Where none has
/// it the offset is wrong.
fn pass_missing(global: &Global, mut legs: Vec<Planned>) -> Result<Vec<Leg>, Failure> {
    if legs.iter().all(|(_, missing)| missing.is_some())
        && let Some(missing) = legs.first_mut().and_then(|(_, missing)| missing.take())
    {
        return Err(missing);
    }
    for missing in legs.iter().filter_map(|(_, missing)| missing.as_ref()) {
        note(global, &missing.to_string());
    }
    Ok(legs.into_iter().map(|(leg, _)| leg).collect())
}

fn leg(
    global: &Global,
    args: &ConsumeArgs,
    state: &State,
    topic: &Topic,
    id: PartitionId,
    spec: OffsetSpec,
) -> Result<Planned, Failure> {
    let log = log_of(state, topic, id)?;
    let key = PartitionKey { topic: topic.name.clone(), topic_id: topic.topic_id, partition: id.partition };
    let entry = args.group.as_ref().and_then(|group| state.coordinator().entry(group, &key));
    let stored = entry.map(|entry| entry.committed);
    let partition = Partition {
        global,
        place: key.to_string(),
        log,
        bounds: bounds(log, stored),
        group: args.group.as_deref(),
    };
    let (at, missing) = partition.start(spec.from)?;
    let until = match spec.until {
        Some(point) => Some(partition.stop(point, args.follow)?),
        None if args.follow => None,
        None => Some(partition.bounds.end),
    };
    Ok((Leg { topic: topic.name.clone(), partition: id, at, until }, missing))
}

/// The log of a partition of a live topic.
pub fn log_of<'a>(state: &'a State, topic: &Topic, id: PartitionId) -> Result<&'a Log, Failure> {
    state.log(&id).ok_or_else(|| Failure::storage(format!("{}/{} has no log", topic.name, id.partition)))
}

fn bounds(log: &Log, stored: Option<leftoff_wire::Committed>) -> Bounds {
    Bounds { start: log.log_start(), end: log.high_watermark(), stored }
}

/// What points of one partition are resolved against.
struct Partition<'a> {
    global: &'a Global,
    place: String,
    log: &'a Log,
    bounds: Bounds,
    group: Option<&'a str>,
}

impl Partition<'_> {
    /// Where to start, and what is to be said if that is not there.
    fn start(&self, point: Point) -> Result<(Offset, Option<Failure>), Failure> {
        let Bounds { start, end, .. } = self.bounds;
        let Some(at) = self.resolve(point)? else {
            let group = self.group.unwrap_or_default();
            note(self.global, &format!("{}: {group} has no offset yet, so it begins at {start}", self.place));
            return Ok((start, None));
        };
        if (start..=end).contains(&at) {
            return Ok((at, None));
        }
        let there = self.there();
        if point == Point::Stored {
            let group = self.group.unwrap_or_default();
            return Err(Failure::refused(format!(
                "{}: {group} goes on with offset {at}, and {there}",
                self.place
            ))
            .hint(format!(
                "name the place to go on, for example -o {start}, or see `leftoff groups describe {group}`"
            )));
        }
        let missing = Failure::usage(format!("{}: offset {at} is not there; {there}", self.place))
            .hint("-o start, -o end or -o -10 fit any partition; -p chooses partitions");
        // What is not there yet is waited for with --follow.
        Ok((at.max(start), Some(missing)))
    }

    /// Where to stop. Beyond the end is a wish for what has not come yet.
    fn stop(&self, point: Point, follow: bool) -> Result<Offset, Failure> {
        let Bounds { start, end, .. } = self.bounds;
        let until = self.resolve(point)?.unwrap_or(start);
        if until > end && !follow {
            let place = &self.place;
            note(self.global, &format!("{place} ends at {end}, before {until}; --follow waits for the rest"));
            return Ok(end);
        }
        Ok(until)
    }

    fn resolve(&self, point: Point) -> Result<Option<Offset>, Failure> {
        let by_time = |ms| {
            let found = self.log.offset_for_time(ms)?;
            Ok(found.map_or(self.bounds.end, |(offset, _)| offset))
        };
        point.resolve(self.bounds, now().as_ms(), by_time).map_err(|error: leftoff_engine::log::LogError| {
            Failure::storage(format!("{}: {error}", self.place))
        })
    }

    /// What there is to read, in words.
    fn there(&self) -> String {
        let Bounds { start, end, .. } = self.bounds;
        match start < end {
            true => format!("the partition has {}", Run::new(start, end)),
            false => format!("the partition is empty, its next offset is {end}"),
        }
    }
}
