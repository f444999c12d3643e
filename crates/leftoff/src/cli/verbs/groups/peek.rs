//! `leftoff groups peek`: the events around the place where a group stands, so that nobody has to guess which one a number is.

use std::collections::VecDeque;

use leftoff::store::{Event, events_in};
use leftoff_engine::log::{Log, LogError};
use leftoff_wire::{Committed, Offset};

use super::find_group;
use super::standing::{Standing, log, look_at, standings};
use crate::cli::args::Global;
use crate::cli::args::groups::PeekArgs;
use crate::cli::bad_value::shorten;
use crate::cli::failure::Failure;
use crate::cli::session::from_store;
use crate::cli::table::{Cell, Column, Format, Table};
use crate::cli::verbs::printed;

/// Where there are holes, so many offsets more are looked through for events before the place.
const LOOK_BACK: i64 = 1_000;

const COLUMNS: &[Column] = &[
    Column { title: "TOPIC", key: "topic", is_wide: false },
    Column { title: "PARTITION", key: "partition", is_wide: false },
    Column { title: "OFFSET", key: "offset", is_wide: false },
    Column { title: "IS", key: "is", is_wide: false },
    Column { title: "TIME", key: "time", is_wide: false },
    Column { title: "KEY", key: "key", is_wide: false },
    Column { title: "VALUE", key: "value", is_wide: false },
];

/// A line for each event.
pub fn peek(global: &Global, args: &PeekArgs) -> Result<(), Failure> {
    let (view, authorities) = look_at(global, &args.group)?;
    let group = find_group(view.state(), &args.group)?;
    let format = Format::from(global.format);
    let mut table = Table::new(COLUMNS);
    for row in standings(view.state(), group, &authorities, &args.topics)? {
        let (Some(topic), Some(bounds)) = (view.state().topic(&row.topic), row.bounds) else { continue };
        let log = log(view.state(), topic.topic_id, row.partition);
        let next = row.next().map_or(bounds.log_start, Committed::next).clamp(bounds.log_start, bounds.end);
        for event in around(log, next, args)? {
            table.push(cells(&row, next, &event, format));
        }
    }
    printed(|out| table.write(out, format, !global.no_headers))
}

/// The events before an offset, and from there on.
fn around(log: &Log, next: Offset, args: &PeekArgs) -> Result<Vec<Event>, Failure> {
    let (before, after) = (usize::from(args.before), usize::from(args.after));
    let back = if before == 0 { 0 } else { LOOK_BACK + i64::from(args.before) };
    let mut at = Offset::new(next.get() - back).map_or(log.log_start(), |from| from.max(log.log_start()));
    let (mut earlier, mut later) = (VecDeque::new(), Vec::new());
    while at < log.high_watermark() && later.len() < after.max(1) {
        let fetched = match log.fetch(at, 1) {
            Ok(fetched) => fetched,
            // What lies behind can be shown all the same.
            Err(LogError::Damaged { damaged, .. }) => {
                at = damaged.to;
                continue;
            }
            Err(error) => return Err(from_store(log.dir(), error.into())),
        };
        let chunk = events_in(&fetched, at).map_err(|error| from_store(log.dir(), error.into()))?;
        for event in chunk.events {
            if event.offset >= next {
                later.push(event);
                continue;
            }
            earlier.push_back(event);
            if earlier.len() > before {
                earlier.pop_front();
            }
        }
        if chunk.next <= at {
            break;
        }
        at = chunk.next;
    }
    later.truncate(after);
    Ok(earlier.into_iter().chain(later).collect())
}

fn cells(row: &Standing, next: Offset, event: &Event, format: Format) -> Vec<Cell> {
    let is_text = matches!(format, Format::Text | Format::Wide);
    let text = |bytes: &Option<Vec<u8>>| match bytes {
        None => Cell::Missing,
        Some(bytes) if is_text => shorten(&String::from_utf8_lossy(bytes)).into(),
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
    };
    let is = if row.last_handled() == Some(event.offset) {
        Some("last handled".to_owned())
    } else if event.offset == next {
        Some("next".to_owned())
    } else {
        None
    };
    vec![
        row.topic.as_str().into(),
        row.partition.into(),
        event.offset.into(),
        is.into(),
        Cell::Time(event.timestamp_ms),
        text(&event.key),
        text(&event.value),
    ]
}
