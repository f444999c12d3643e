//! `leftoff check` without `--out`: what the offsets alone tell. Whether something was lost or handled twice they do not.

use std::io::Write;

use leftoff_engine::coordinator::Lag;
use leftoff_wire::Committed;

use crate::cli::args::Global;
use crate::cli::args::upkeep::CheckArgs;
use crate::cli::failure::Failure;
use crate::cli::session::note;
use crate::cli::table::{Column, Format, Table};
use crate::cli::verbs::groups::find_group;
use crate::cli::verbs::groups::ls::count;
use crate::cli::verbs::groups::standing::{Standing, look_at, standings};
use crate::cli::verbs::printed;

const COLUMNS: &[Column] = &[
    Column { title: "TOPIC", key: "topic", is_wide: false },
    Column { title: "PARTITION", key: "partition", is_wide: false },
    Column { title: "NEXT", key: "next", is_wide: false },
    Column { title: "END", key: "end", is_wide: false },
    Column { title: "UNFINISHED", key: "unfinished_events", is_wide: false },
    Column { title: "DELETED-UNREAD", key: "deleted_unread_offsets", is_wide: false },
    Column { title: "AHEAD-OF-END", key: "ahead_of_end_offsets", is_wide: false },
];

/// Shows what is left. Exit 1 if an offset lies above the end, where events to come would be passed over; with `--drained`
/// also if something is left.
pub fn check(global: &Global, args: &CheckArgs) -> Result<(), Failure> {
    let (view, authorities) = look_at(global, &args.group)?;
    let group = find_group(view.state(), &args.group)?;
    let rows = standings(view.state(), group, &authorities, &args.topics)?;
    let mut table = Table::new(COLUMNS);
    for row in rows.iter().filter(|row| row.bounds.is_some()) {
        let word = |word: fn(Lag) -> u64| count(row.lag.map(word));
        table.push(vec![
            row.topic.as_str().into(),
            row.partition.into(),
            row.next().map(Committed::next).into(),
            row.bounds.map(|bounds| bounds.end).into(),
            count(Some(unfinished(row))),
            word(|lag| lag.deleted_unread),
            word(|lag| lag.ahead_of_end),
        ]);
    }
    let left: u64 = rows.iter().map(unfinished).sum();
    let ahead = rows.iter().filter_map(|row| row.lag).any(|lag| lag.ahead_of_end > 0);
    let format = Format::from(global.format);
    printed(|out| {
        table.write(out, format, !global.no_headers)?;
        match format {
            Format::Text | Format::Wide if left == 0 => writeln!(out, "nothing left"),
            Format::Text | Format::Wide => writeln!(out, "{left} unfinished"),
            Format::Json | Format::Jsonl | Format::Csv => Ok(()),
        }
    })?;
    note(
        global,
        "what was lost or handled twice can only be told from the effects: name them with --out file:PATH",
    );
    if ahead {
        return Err(Failure::check_failed("the check failed: an offset lies above the end")
            .hint("what is produced next would be passed over; see `leftoff groups reset --to-current`"));
    }
    if args.drained && left > 0 {
        return Err(Failure::check_failed(format!("the check failed: {left} unfinished")));
    }
    Ok(())
}

/// Events where they could be counted, else offsets.
fn unfinished(row: &Standing) -> u64 {
    row.waiting_events.or(row.lag.map(|lag| lag.waiting)).unwrap_or(0)
}
