//! `leftoff groups ls`

use std::collections::BTreeSet;

use super::standing::{Holder, standings};
use crate::cli::args::Global;
use crate::cli::failure::Failure;
use crate::cli::session::open_view;
use crate::cli::table::{Cell, Column, Table};
use crate::cli::verbs::authority::Authorities;
use crate::cli::verbs::printed;

const COLUMNS: &[Column] = &[
    Column { title: "GROUP", key: "group", is_wide: false },
    Column { title: "STATE", key: "state", is_wide: false },
    Column { title: "HELD-BY", key: "held_by", is_wide: false },
    Column { title: "TOPICS", key: "topics", is_wide: false },
    Column { title: "PARTITIONS", key: "partitions", is_wide: false },
    Column { title: "LAG(events)", key: "lag_events", is_wide: false },
    Column { title: "LAG(offsets)", key: "lag_offsets", is_wide: true },
    Column { title: "GENERATION", key: "generation", is_wide: true },
];

/// A line for each group.
pub fn ls(global: &Global) -> Result<(), Failure> {
    // What the files say comes first: group and log can only be further.
    let before = open_view(global)?;
    let groups = before.state().coordinator().groups();
    let authorities = groups.map(|group| Authorities::as_far_as_reached(global, group));
    let authorities: Vec<Authorities> = authorities.collect::<Result<_, _>>()?;
    let view = open_view(global)?;
    let state = view.state();
    let none = Authorities::default();
    let mut table = Table::new(COLUMNS);
    for group in state.coordinator().groups() {
        let authorities = authorities.iter().find(|one| one.group() == group.name()).unwrap_or(&none);
        let rows = standings(state, group, authorities, &[])?;
        let topics: BTreeSet<&str> = rows.iter().map(|row| row.topic.as_str()).collect();
        let lags = || rows.iter().filter(|row| row.bounds.is_some());
        let events: Option<u64> = lags().map(|row| row.waiting_events).sum();
        let offsets: u64 = lags().filter_map(|row| row.lag).map(|lag| lag.waiting).sum();
        let holder = Holder::of(global, group)?;
        let state = match &holder {
            Holder::Nobody => "idle",
            Holder::Alive(_) => "running",
            Holder::Gone(_) => "member gone",
        };
        table.push(vec![
            group.name().into(),
            state.into(),
            holder.text().into(),
            topics.into_iter().collect::<Vec<_>>().join(",").into(),
            i64::try_from(rows.len()).unwrap_or(i64::MAX).into(),
            count(events),
            count(Some(offsets)),
            group.generation().into(),
        ]);
    }
    printed(|out| table.write(out, global.format.into(), !global.no_headers))
}

/// A count in a table.
pub fn count(number: Option<u64>) -> Cell {
    number.map(|number| i64::try_from(number).unwrap_or(i64::MAX)).into()
}
