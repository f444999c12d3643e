//! `leftoff groups describe`: where groups stand. It reads beside a runner, so it works while one runs.

use leftoff_engine::coordinator::Lag;
use leftoff_wire::Committed;

use super::find_group;
use super::ls::count;
use super::standing::{Holder, Standing, look_at_all, standings};
use crate::cli::args::Global;
use crate::cli::args::groups::DescribeArgs;
use crate::cli::failure::Failure;
use crate::cli::table::{Cell, Column, Format, Table};
use crate::cli::verbs::printed;

const COLUMNS: &[Column] = &[
    Column { title: "GROUP", key: "group", is_wide: false },
    Column { title: "TOPIC", key: "topic", is_wide: false },
    Column { title: "PARTITION", key: "partition", is_wide: false },
    Column { title: "LAST-HANDLED", key: "last_handled", is_wide: false },
    Column { title: "NEXT", key: "next", is_wide: false },
    Column { title: "END", key: "end", is_wide: false },
    Column { title: "LAG(events)", key: "lag_events", is_wide: false },
    Column { title: "LAG(time)", key: "lag_ms", is_wide: false },
    Column { title: "HELD-BY", key: "held_by", is_wide: false },
    Column { title: "STORED-IN", key: "stored_in", is_wide: false },
    Column { title: "WAITING(offsets)", key: "waiting_offsets", is_wide: true },
    Column { title: "DELETED-UNREAD", key: "deleted_unread_offsets", is_wide: true },
    Column { title: "BEHIND-OPEN-TXN", key: "behind_open_transaction_offsets", is_wide: true },
    Column { title: "NO-COMMIT", key: "no_commit", is_wide: true },
    Column { title: "AHEAD-OF-END", key: "ahead_of_end_offsets", is_wide: true },
    Column { title: "LOG-START", key: "log_start", is_wide: true },
    Column { title: "GROUP-NEXT", key: "group_next", is_wide: true },
    Column { title: "RESET-WAITS", key: "reset_waits", is_wide: true },
    Column { title: "SAVED-AT", key: "saved_at", is_wide: true },
    Column { title: "WHY", key: "why", is_wide: true },
];

/// A line for each partition.
pub fn describe(global: &Global, args: &DescribeArgs) -> Result<(), Failure> {
    let format = Format::from(global.format);
    let mut table = Table::new(COLUMNS);
    let (view, authorities) = look_at_all(global, &args.groups)?;
    for (name, authorities) in args.groups.iter().zip(&authorities) {
        let group = find_group(view.state(), name)?;
        let holder = Holder::of(global, group)?;
        for row in standings(view.state(), group, authorities, &args.topics)? {
            let has_lag = row.lag.is_some_and(|lag| lag.waiting > 0 || lag.no_commit);
            if has_lag || !args.only_lag {
                table.push(cells(name, &holder, &row, format));
            }
        }
    }
    printed(|out| table.write(out, format, !global.no_headers))
}

fn cells(group: &str, holder: &Holder, row: &Standing, format: Format) -> Vec<Cell> {
    let words = |word: fn(Lag) -> u64| count(row.lag.map(word));
    let entry = row.entry.as_ref();
    vec![
        group.into(),
        row.topic.as_str().into(),
        row.partition.into(),
        row.last_handled().into(),
        row.next().map(Committed::next).into(),
        row.bounds.map(|bounds| bounds.end).into(),
        lag_events(row, format),
        row.waiting_ms.map_or(Cell::Missing, Cell::Duration),
        holder.text().into(),
        row.stored_in().into(),
        words(|lag| lag.waiting),
        words(|lag| lag.deleted_unread),
        words(|lag| lag.behind_open_transaction),
        row.lag.map(|lag| lag.no_commit).into(),
        words(|lag| lag.ahead_of_end),
        row.bounds.map(|bounds| bounds.log_start).into(),
        entry.map(|entry| entry.committed.next()).into(),
        row.reset_waits.into(),
        entry.map_or(Cell::Missing, |entry| Cell::Time(entry.commit_timestamp.as_ms())),
        entry.map(|entry| entry.why.to_string()).into(),
    ]
}

/// Events; where there are too many to count them a person gets the offsets, labelled.
fn lag_events(row: &Standing, format: Format) -> Cell {
    match (row.waiting_events, row.lag) {
        (None, Some(lag)) if matches!(format, Format::Text | Format::Wide) => {
            format!("{} offsets", lag.waiting).into()
        }
        (events, _) => count(events),
    }
}
