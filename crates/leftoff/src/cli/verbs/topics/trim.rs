//! `leftoff topics trim`: deletes the events before an offset.

use leftoff::store::{Store, now};
use leftoff_engine::broker::{PartitionId, Request, Topic};
use leftoff_wire::Offset;

use super::{closed, known};
use crate::cli::args::Global;
use crate::cli::args::topics::TrimArgs;
use crate::cli::confirm::confirm;
use crate::cli::failure::Failure;
use crate::cli::offset_spec::{Bounds, Point};
use crate::cli::session::{from_store, note, open_existing};
use crate::cli::verbs::chosen_partitions;

/// One partition's part of the work.
struct Cut {
    partition: PartitionId,
    start: Offset,
    before: Offset,
}

/// Looks first, asks, and only then deletes.
pub fn run(global: &Global, args: &TrimArgs) -> Result<(), Failure> {
    if args.offset == Point::Stored {
        return Err(Failure::usage("-o stored: there is no group to ask").hint("name an offset or a time"));
    }
    let store = open_existing(global, "topics trim")?;
    let topic = known(&store, &args.topic)?;
    let partitions = chosen_partitions(&topic, &args.partitions)?;
    let cuts: Vec<Cut> = partitions
        .into_iter()
        .map(|partition| cut(&store, &topic, partition, args.offset))
        .collect::<Result<_, Failure>>()?;
    let events: u64 = cuts.iter().map(|cut| cut.before.since(cut.start.min(cut.before))).sum();
    if events == 0 {
        note(global, &format!("nothing of {} lies before {}", topic.name, args.offset));
        return closed(store);
    }
    confirm(&format!("delete {events} events of {} before {}?", topic.name, args.offset), args.noconfirm)?;
    for cut in &cuts {
        let request = Request::Trim { partition: cut.partition, before: cut.before };
        store.request(request).map_err(|error| from_store(store.root(), error))?;
        let (name, number) = (&topic.name, cut.partition.partition);
        note(global, &format!("{name}/{number} begins at offset {} now", cut.before.max(cut.start)));
    }
    closed(store)
}

fn cut(store: &Store, topic: &Topic, number: i32, point: Point) -> Result<Cut, Failure> {
    let partition = PartitionId { topic_id: topic.topic_id, partition: number };
    store.with_state(|state| {
        let log = state.log(&partition).expect("a live topic has its logs");
        let bounds = Bounds { start: log.log_start(), end: log.high_watermark(), stored: None };
        let by_time =
            |ms| log.offset_for_time(ms).map(|found| found.map_or(bounds.end, |(offset, _)| offset));
        let before = point
            .resolve(bounds, now().as_ms(), by_time)
            .map_err(|error| Failure::storage(error.to_string()))?
            .expect("only `stored` can be nowhere");
        if before > bounds.end {
            let name = &topic.name;
            return Err(Failure::usage(format!(
                "{name}/{number}: offset {before} is above the end, {}",
                bounds.end
            ))
            .hint("-o end deletes everything there is"));
        }
        Ok(Cut { partition, start: bounds.start, before })
    })
}
