//! `leftoff groups export` and `import`: offsets as lines `TOPIC,PARTITION,NEXT`, the form of Kafka's tools.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use leftoff_engine::coordinator::{ResetTo, Why};
use leftoff_wire::Committed;

use super::is_wanted;
use super::moving::Moving;
use super::plan::Step;
use super::reset::check_lines;
use super::standing::{Standing, look_at, standings};
use crate::cli::args::Global;
use crate::cli::args::groups::{ExportArgs, ImportArgs};
use crate::cli::failure::Failure;
use crate::cli::offset_lines::{OffsetLine, read_offset_lines, write_offset_lines};
use crate::cli::table::{Column, Format, Table};
use crate::cli::verbs::printed;

const COLUMNS: &[Column] = &[
    Column { title: "TOPIC", key: "topic", is_wide: false },
    Column { title: "PARTITION", key: "partition", is_wide: false },
    Column { title: "NEXT", key: "next", is_wide: false },
];

/// Prints a group's offsets: where it goes on, also where a file keeps that.
pub fn export(global: &Global, args: &ExportArgs) -> Result<(), Failure> {
    let (view, authorities) = look_at(global, &args.group)?;
    let group = super::find_group(view.state(), &args.group)?;
    let rows = standings(view.state(), group, &authorities, &args.topics)?;
    let wanted = rows.iter().filter(|row| is_wanted(&args.topics, &row.topic, row.partition));
    let lines: Vec<OffsetLine> = wanted.filter_map(line).collect();
    let format = Format::from(global.format);
    printed(|out| match format {
        Format::Text | Format::Csv => write_offset_lines(out, &lines),
        Format::Wide | Format::Json | Format::Jsonl => {
            let mut table = Table::new(COLUMNS);
            for line in &lines {
                table.push(vec![line.topic.as_str().into(), line.partition.into(), line.next.into()]);
            }
            table.write(out, format, !global.no_headers)
        }
    })
}

fn line(row: &Standing) -> Option<OffsetLine> {
    let next = row.next().map(Committed::next)?;
    Some(OffsetLine { topic: row.topic.clone(), partition: row.partition, next })
}

/// Shows what an import repeats and skips; with `--execute` does it.
pub fn import(global: &Global, args: &ImportArgs) -> Result<(), Failure> {
    let lines = read(&args.file)?;
    if lines.is_empty() {
        return Err(Failure::usage("there are no lines to import").hint("a line is TOPIC,PARTITION,NEXT"));
    }
    let moving = Moving {
        verb: "groups import",
        group: &args.group,
        why: Why::Import,
        note: format!("import of {}", args.file.display()),
        execute: args.execute,
    };
    moving.go(global, |state, authorities| {
        let keys = check_lines(state, &lines)?;
        keys.iter()
            .map(|key| {
                let line = lines
                    .iter()
                    .find(|line| line.topic == key.topic && line.partition == key.partition)
                    .expect("the partitions are those of the lines");
                let to = ResetTo::Committed(Committed::resolved_reset(line.next));
                Step::to(state, &args.group, authorities, key, to)
            })
            .collect()
    })
}

fn read(path: &Path) -> Result<Vec<OffsetLine>, Failure> {
    if path == Path::new("-") {
        return read_offset_lines(io::stdin().lock());
    }
    let file = File::open(path)
        .map_err(|error| Failure::usage(format!("cannot open {}: {error}", path.display())))?;
    read_offset_lines(BufReader::new(file))
}
