//! What a database holds, for those who look at it beside a runner.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use leftoff_wire::{Committed, Offset};
use rusqlite::{Connection, params};

use super::rows::GROUP_COLUMN;
use super::schema::{columns, has_marks, open_to_mark, open_to_read, quoted};
use super::{SinkError, failed};
use crate::sink::mark::StoredMark;
use crate::sink::{DeadState, ID_KEY, Mark};
use crate::source::PartitionId;

/// What names the event of a row in a table of events.
const EVENT_ID: &str = "topic_id || '/' || partition || '/' || \"offset\" || '/' || n";
/// So many rows are read at once.
const PAGE_ROWS: i64 = 10_000;

/// A database as it was at one moment. The moment lasts as long as this does.
#[derive(Debug)]
pub struct SqliteReader {
    path: PathBuf,
    group: String,
    connection: Connection,
    /// The tables that hold rows of the group, and their kinds.
    tables: Vec<(String, String)>,
}

/// A row that tells which event it came of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteEffect {
    /// `TOPIC_ID/PARTITION/OFFSET/N`
    pub id: String,
}

/// Notes what became of a dead letter.
///
/// # Errors
/// As [`SqliteReader::open`].
pub fn mark_letter(
    path: &Path,
    group: &str,
    id: PartitionId,
    offset: Offset,
    state: DeadState,
    at_ms: i64,
) -> Result<(), SinkError> {
    let connection = open_to_mark(path)?;
    let marked = connection.execute(
        "UPDATE leftoff_dead SET state = ?1, state_at_ms = ?2
         WHERE \"group\" = ?3 AND topic_id = ?4 AND partition = ?5 AND \"offset\" = ?6",
        params![state.to_string(), at_ms, group, id.topic_id.to_string(), id.partition, offset.get()],
    );
    marked.map(drop).map_err(failed("cannot write", path))
}

impl SqliteReader {
    /// Looks at what a group has in a database; `None` if there is no such file, or nobody ever claimed anything in it.
    ///
    /// # Errors
    /// [`SinkError::Refused`] if it is not an SQLite database, or not as we know it; [`SinkError::Storage`] if it cannot be
    /// read.
    pub fn open(path: &Path, group: &str) -> Result<Option<SqliteReader>, SinkError> {
        let Some(connection) = open_to_read(path)? else { return Ok(None) };
        let read = failed("cannot read", path);
        connection.execute_batch("BEGIN").map_err(&read)?;
        let tables = tables(&connection, group).map_err(&read)?;
        drop(read);
        Ok(Some(SqliteReader { path: path.to_owned(), group: group.to_owned(), connection, tables }))
    }

    /// The dead letters of the group, in the order of the events: each line, and what became of it. `visit` says whether to
    /// go on.
    ///
    /// # Errors
    /// As [`SqliteReader::open`].
    pub fn letters(&self, mut visit: impl FnMut(&str, DeadState) -> bool) -> Result<(), SinkError> {
        let read = failed("cannot read", &self.path);
        if columns(&self.connection, "leftoff_dead").map_err(&read)?.is_empty() {
            return Ok(());
        }
        let sql = "SELECT letter, state FROM leftoff_dead WHERE \"group\" = ?1 ORDER BY topic_id, partition, \"offset\"";
        let mut select = self.connection.prepare(sql).map_err(&read)?;
        let mut rows = select.query([&self.group]).map_err(&read)?;
        while let Some(row) = rows.next().map_err(&read)? {
            let (line, state): (String, String) =
                row.get(0).and_then(|line| Ok((line, row.get(1)?))).map_err(&read)?;
            let state = match state.as_str() {
                "replayed" => DeadState::Replayed,
                "dropped" => DeadState::Dropped,
                _ => DeadState::Open,
            };
            if !visit(&line, state) {
                break;
            }
        }
        Ok(())
    }

    /// Where each partition of the group goes on; empty if it never claimed one.
    ///
    /// # Errors
    /// As [`SqliteReader::open`].
    pub fn next(&self) -> Result<BTreeMap<PartitionId, Committed>, SinkError> {
        let read = failed("cannot read", &self.path);
        let rows = || -> rusqlite::Result<Vec<(String, i32, i64)>> {
            let mut select = self.connection.prepare(
                "SELECT topic_id, partition, next FROM leftoff_offsets WHERE \"group\" = ?1 AND next IS NOT NULL",
            )?;
            select.query_map([&self.group], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        };
        let mut all = BTreeMap::new();
        for (topic_id, partition, next) in rows().map_err(&read)? {
            let bad = || {
                let path = self.path.display();
                SinkError::Refused(format!(
                    "{path}: leftoff_offsets: {topic_id} {partition} {next} cannot be"
                ))
            };
            let id = PartitionId { topic_id: topic_id.parse().map_err(|_| bad())?, partition };
            all.insert(id, Committed::from_wire(next).ok_or_else(bad)?);
        }
        Ok(all)
    }

    /// What is kept of the group's partitions beside that; empty in a database of format 1.
    ///
    /// # Errors
    /// As [`SqliteReader::open`].
    pub fn marks(&self) -> Result<BTreeMap<PartitionId, Mark>, SinkError> {
        let read = failed("cannot read", &self.path);
        if !has_marks(&columns(&self.connection, "leftoff_offsets").map_err(&read)?) {
            return Ok(BTreeMap::new());
        }
        let rows = || -> rusqlite::Result<Vec<(String, i32, StoredMark)>> {
            let mut select = self.connection.prepare(
                "SELECT topic_id, partition, last_offset, last_fingerprint, reset FROM leftoff_offsets
                 WHERE \"group\" = ?1 AND next IS NOT NULL",
            )?;
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, StoredMark::of(row, 2)?));
            select.query_map([&self.group], row)?.collect()
        };
        let mut all = BTreeMap::new();
        for (topic_id, partition, mark) in rows().map_err(&read)? {
            let bad = |what: String| {
                let path = self.path.display();
                SinkError::Refused(format!(
                    "{path}: leftoff_offsets: {topic_id} {partition} {what} cannot be"
                ))
            };
            let topic_id = topic_id.parse().map_err(|_| bad(String::new()))?;
            let mark = mark.checked().map_err(|what| bad(what.to_string()))?;
            all.insert(PartitionId { topic_id, partition }, mark);
        }
        Ok(all)
    }

    /// The rows that tell which event they came of, those of one event together, in the order of the events. (In which order
    /// they were inserted no table tells that has a key of its own.)
    ///
    /// # Errors
    /// [`SinkError::Storage`], also as an item.
    pub fn effects(&self) -> Result<impl Iterator<Item = Result<SqliteEffect, SinkError>> + '_, SinkError> {
        let select = self.select().map_err(failed("cannot read", &self.path))?;
        let pages = Pages { reader: self, select, after: Some(i64::MIN) };
        Ok(pages.flat_map(|page| match page {
            Ok(page) => page.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }))
    }

    /// Whether the group ever claimed a partition in it.
    ///
    /// # Errors
    /// As [`SqliteReader::open`].
    pub fn is_claimed(&self) -> Result<bool, SinkError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM leftoff_offsets WHERE \"group\" = ?1)";
        let claimed = self.connection.query_row(sql, [&self.group], |row| row.get(0));
        claimed.map_err(failed("cannot read", &self.path))
    }

    /// The evidence for events without a row: `TOPIC_ID PARTITION FIRST-LAST KIND` each.
    ///
    /// # Errors
    /// [`SinkError::Storage`].
    pub fn outcome_lines(&self) -> Result<String, SinkError> {
        let rows = || -> rusqlite::Result<String> {
            let mut select = self.connection.prepare(
                "SELECT topic_id || ' ' || partition || ' ' || first || '-' || last || ' ' || kind || char(10)
                 FROM leftoff_outcomes WHERE \"group\" = ?1",
            )?;
            select.query_map([&self.group], |row| row.get::<_, String>(0))?.collect()
        };
        rows().map_err(failed("cannot read", &self.path))
    }

    /// What selects a page of effects; `?1` is the row before it, `?2` the group, `?3` how many.
    fn select(&self) -> rusqlite::Result<String> {
        let parts = self.tables.iter().map(|(table, kind)| self.rows_of(table, kind));
        let parts: Vec<String> = parts.collect::<rusqlite::Result<_>>()?;
        match &self.tables[..] {
            [] => Ok("SELECT 0, NULL WHERE 0 AND ?1 = ?2 AND ?3".to_owned()),
            // The usual case needs no sorting: rows were inserted in the order of their events.
            [(table, kind)] if kind == "events" => Ok(format!(
                "SELECT rowid, {EVENT_ID} FROM {} WHERE rowid > ?1 AND \"group\" = ?2 ORDER BY rowid LIMIT ?3",
                quoted(table)
            )),
            _ => {
                self.connection.execute_batch(
                    "DROP TABLE IF EXISTS temp.leftoff_effects; CREATE TEMP TABLE leftoff_effects (id TEXT)",
                )?;
                // Behind the topic's id, which has 22 characters, a number ends where a slash begins.
                let sorted = format!(
                    "INSERT INTO temp.leftoff_effects SELECT id FROM ({}) ORDER BY substr(id, 1, 22),
                     CAST(substr(id, 24) AS INTEGER),
                     CAST(substr(id, 24 + instr(substr(id, 24), '/')) AS INTEGER), id",
                    parts.join(" UNION ALL ")
                );
                self.connection.execute(&sorted, [&self.group])?;
                Ok("SELECT rowid, id FROM temp.leftoff_effects WHERE rowid > ?1 AND ?2 IS NOT NULL ORDER BY rowid LIMIT ?3"
                    .to_owned())
            }
        }
    }

    /// Selects the ids in a table, of the group `?1`.
    fn rows_of(&self, table: &str, kind: &str) -> rusqlite::Result<String> {
        let (id, of_group) = match kind {
            "events" => (EVENT_ID, "\"group\" = ?1"),
            _ if columns(&self.connection, table)?.iter().any(|column| column == GROUP_COLUMN) => {
                (ID_KEY, "leftoff_group = ?1 AND leftoff_id IS NOT NULL")
            }
            _ => (ID_KEY, "?1 IS NOT NULL AND leftoff_id IS NOT NULL"),
        };
        Ok(format!("SELECT {id} AS id FROM {} WHERE {of_group}", quoted(table)))
    }

    fn page(&self, select: &str, after: i64) -> rusqlite::Result<(Vec<SqliteEffect>, Option<i64>)> {
        let mut select = self.connection.prepare_cached(select)?;
        let mut last = None;
        let mut effects = Vec::new();
        let mut rows = select.query(params![after, self.group, PAGE_ROWS])?;
        while let Some(row) = rows.next()? {
            last = Some(row.get(0)?);
            effects.push(SqliteEffect { id: row.get(1)? });
        }
        Ok((effects, last))
    }
}

fn tables(connection: &Connection, group: &str) -> rusqlite::Result<Vec<(String, String)>> {
    let mut select = connection.prepare("SELECT name, kind FROM leftoff_tables WHERE \"group\" = ?1")?;
    let all = select.query_map([group], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let all: Vec<(String, String)> = all.collect::<rusqlite::Result<_>>()?;
    let mut there = Vec::new();
    for (name, kind) in all {
        // One that was dropped holds nothing any more.
        let wanted = if kind == "events" { "record" } else { ID_KEY };
        if columns(connection, &name)?.iter().any(|column| column == wanted) {
            there.push((name, kind));
        }
    }
    Ok(there)
}

struct Pages<'a> {
    reader: &'a SqliteReader,
    select: String,
    /// The last row that was read; `None` at the end.
    after: Option<i64>,
}

impl Iterator for Pages<'_> {
    type Item = Result<Vec<SqliteEffect>, SinkError>;

    fn next(&mut self) -> Option<Self::Item> {
        let after = self.after.take()?;
        match self.reader.page(&self.select, after) {
            Ok((page, last)) => {
                self.after = last;
                last.map(|_| Ok(page))
            }
            Err(error) => Some(Err(failed("cannot read", &self.reader.path)(error))),
        }
    }
}
