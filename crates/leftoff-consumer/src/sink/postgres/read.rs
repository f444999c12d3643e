//! What a database holds, for those who look at it beside a runner.

use std::cell::Cell;
use std::collections::BTreeMap;

use leftoff_wire::{Committed, Offset};
use tokio_postgres::types::Type;

use super::rows::GROUP_COLUMN;
use super::schema::{check_ours, has_marks, names, quoted_table};
use super::session::{Fault, Session};
use super::{SinkError, broke};
use crate::sink::mark::StoredMark;
use crate::sink::{DeadState, ID_KEY, Mark, PostgresUrl};
use crate::source::PartitionId;

/// What names the event of a row in a table of events.
const EVENT_ID: &str = "topic_id || '/' || partition || '/' || \"offset\" || '/' || n";
/// So many rows are read at once.
const PAGE_ROWS: usize = 10_000;

/// A database as it was at one moment. The moment lasts as long as this does.
pub struct PostgresReader {
    shown: String,
    group: String,
    session: Session,
    /// The tables that hold rows of the group, and their kinds.
    tables: Vec<(String, String)>,
    /// How many cursors there were.
    cursors: Cell<u64>,
}

/// A row that tells which event it came of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresEffect {
    /// `TOPIC_ID/PARTITION/OFFSET/N`
    pub id: String,
}

/// Notes what became of a dead letter.
///
/// # Errors
/// As [`PostgresReader::open`].
pub fn mark_letter(
    url: &PostgresUrl,
    group: &str,
    id: PartitionId,
    offset: Offset,
    state: DeadState,
    at_ms: i64,
) -> Result<(), SinkError> {
    let shown = url.to_string();
    let session = Session::connect(url).map_err(|fault| broke("cannot reach", &shown, fault))?;
    let sql = "UPDATE leftoff_dead SET state = $1, state_at_ms = $2
        WHERE \"group\" = $3 AND topic_id = $4 AND partition = $5 AND \"offset\" = $6";
    let (state, topic_id, offset) = (state.to_string(), id.topic_id.to_string(), offset.get());
    let marked = session.execute(
        sql,
        &[
            (&state, Type::TEXT),
            (&at_ms, Type::INT8),
            (&group, Type::TEXT),
            (&topic_id, Type::TEXT),
            (&id.partition, Type::INT4),
            (&offset, Type::INT8),
        ],
    );
    marked.map(drop).map_err(|fault| broke("cannot write", &shown, fault))
}

impl PostgresReader {
    /// Looks at what a group has in a database; `None` if nobody ever claimed anything in it.
    ///
    /// # Errors
    /// [`SinkError::Unreachable`] if it cannot be reached; [`SinkError::Refused`] if its tables are not as we know them.
    pub fn open(url: &PostgresUrl, group: &str) -> Result<Option<PostgresReader>, SinkError> {
        let shown = url.to_string();
        let read = |fault| broke("cannot read", &shown, fault);
        let mut session = Session::connect(url).map_err(|fault| broke("cannot reach", &shown, fault))?;
        session.begin_to_read().map_err(read)?;
        check_ours(&session, &shown)?;
        if names(&session, "leftoff_offsets").map_err(read)?.is_empty() {
            return Ok(None);
        }
        let tables = tables(&session, group).map_err(read)?;
        let (group, cursors) = (group.to_owned(), Cell::new(0));
        Ok(Some(PostgresReader { shown, group, session, tables, cursors }))
    }

    /// Where each partition of the group goes on; empty if it never claimed one.
    ///
    /// # Errors
    /// As [`PostgresReader::open`].
    pub fn next(&self) -> Result<BTreeMap<PartitionId, Committed>, SinkError> {
        let sql =
            "SELECT topic_id, partition, next FROM leftoff_offsets WHERE \"group\" = $1 AND next IS NOT NULL";
        let mut all = BTreeMap::new();
        for row in self.query(sql)? {
            let (topic_id, partition, next): (String, i32, i64) = (row.get(0), row.get(1), row.get(2));
            let bad = || {
                let shown = &self.shown;
                SinkError::Refused(format!(
                    "{shown}: leftoff_offsets: {topic_id} {partition} {next} cannot be"
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
    /// As [`PostgresReader::open`].
    pub fn marks(&self) -> Result<BTreeMap<PartitionId, Mark>, SinkError> {
        if !has_marks(&names(&self.session, "leftoff_offsets").map_err(|fault| self.failed(fault))?) {
            return Ok(BTreeMap::new());
        }
        let sql = "SELECT topic_id, partition, last_offset, last_fingerprint, reset FROM leftoff_offsets
            WHERE \"group\" = $1 AND next IS NOT NULL";
        let mut all = BTreeMap::new();
        for row in self.query(sql)? {
            let (topic_id, partition): (String, i32) = (row.get(0), row.get(1));
            let mark =
                StoredMark { last_offset: row.get(2), last_fingerprint: row.get(3), reset: row.get(4) };
            let bad = |what: String| {
                let shown = &self.shown;
                SinkError::Refused(format!(
                    "{shown}: leftoff_offsets: {topic_id} {partition} {what} cannot be"
                ))
            };
            let topic_id = topic_id.parse().map_err(|_| bad(String::new()))?;
            let mark = mark.checked().map_err(|what| bad(what.to_string()))?;
            all.insert(PartitionId { topic_id, partition }, mark);
        }
        Ok(all)
    }

    /// Whether the group ever claimed a partition in it.
    ///
    /// # Errors
    /// As [`PostgresReader::open`].
    pub fn is_claimed(&self) -> Result<bool, SinkError> {
        let rows = self.query("SELECT EXISTS (SELECT 1 FROM leftoff_offsets WHERE \"group\" = $1)")?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// The evidence for events without a row: `TOPIC_ID PARTITION FIRST-LAST KIND` each.
    ///
    /// # Errors
    /// As [`PostgresReader::open`].
    pub fn outcome_lines(&self) -> Result<String, SinkError> {
        let sql =
            "SELECT topic_id || ' ' || partition || ' ' || first || '-' || last || ' ' || kind || chr(10)
            FROM leftoff_outcomes WHERE \"group\" = $1";
        Ok(self.query(sql)?.iter().map(|row| row.get::<_, &str>(0)).collect())
    }

    /// The dead letters of the group, in the order of the events: each line, and what became of it. `visit` says whether to
    /// go on.
    ///
    /// # Errors
    /// As [`PostgresReader::open`].
    pub fn letters(&self, mut visit: impl FnMut(&str, DeadState) -> bool) -> Result<(), SinkError> {
        const PAGE: usize = 500;
        if names(&self.session, "leftoff_dead").map_err(|fault| self.failed(fault))?.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "SELECT letter, state, topic_id, partition, \"offset\" FROM leftoff_dead WHERE \"group\" = $1
             AND (topic_id, partition, \"offset\") > ($2, $3, $4)
             ORDER BY topic_id, partition, \"offset\" LIMIT {PAGE}"
        );
        let mut last = (String::new(), 0_i32, -1_i64);
        loop {
            let parameters: [super::session::Parameter<'_>; 4] = [
                (&self.group, Type::TEXT),
                (&last.0, Type::TEXT),
                (&last.1, Type::INT4),
                (&last.2, Type::INT8),
            ];
            let rows = self.session.query(&sql, &parameters).map_err(|fault| self.failed(fault))?;
            for row in &rows {
                let state = match row.get::<_, &str>(1) {
                    "replayed" => DeadState::Replayed,
                    "dropped" => DeadState::Dropped,
                    _ => DeadState::Open,
                };
                if !visit(row.get(0), state) {
                    return Ok(());
                }
            }
            match rows.last() {
                Some(row) if rows.len() == PAGE => last = (row.get(2), row.get(3), row.get(4)),
                _ => return Ok(()),
            }
        }
    }

    /// The rows that tell which event they came of, those of one event together, in the order of the events. (In which order
    /// they were inserted no table tells.)
    ///
    /// # Errors
    /// As [`PostgresReader::open`], also as an item.
    pub fn effects(&self) -> Result<impl Iterator<Item = Result<PostgresEffect, SinkError>> + '_, SinkError> {
        let cursor = format!("leftoff_{}", self.cursors.get());
        self.cursors.set(self.cursors.get() + 1);
        // A cursor has no parameters here: the group is a literal, quoted by the database itself.
        let rows = self.query("SELECT pg_catalog.quote_literal($1)")?;
        let group: String = rows.first().map(|row| row.get(0)).unwrap_or_default();
        let select = self.select(&group).map_err(|fault| self.failed(fault))?;
        let declare = format!("DECLARE {cursor} NO SCROLL CURSOR FOR {select}");
        self.session.batch(&declare).map_err(|fault| self.failed(fault))?;
        let pages = Pages { reader: self, cursor, is_done: false };
        Ok(pages.flat_map(|page| match page {
            Ok(page) => page.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }))
    }

    fn query(&self, sql: &str) -> Result<Vec<tokio_postgres::Row>, SinkError> {
        let rows = self.session.query(sql, &[(&self.group, Type::TEXT)]);
        rows.map_err(|fault| self.failed(fault))
    }

    fn failed(&self, fault: Fault) -> SinkError {
        broke("cannot read", &self.shown, fault)
    }

    /// Selects the ids of all effects of the group, which is a literal of SQL.
    fn select(&self, group: &str) -> Result<String, Fault> {
        let parts: Result<Vec<String>, Fault> =
            self.tables.iter().map(|(table, kind)| self.rows_of(table, kind, group)).collect();
        match &self.tables[..] {
            [] => Ok("SELECT NULL::text WHERE false".to_owned()),
            // The usual case needs no sorting: there is an index.
            [(table, kind)] if kind == "events" => Ok(format!(
                "SELECT {EVENT_ID} FROM {} WHERE \"group\" = {group} ORDER BY \"group\", topic_id, partition, \"offset\", n",
                quoted_table(table)
            )),
            // What somebody else wrote into the column may be anything: it comes last.
            _ => Ok(format!(
                "SELECT id FROM (SELECT id, id ~ '^[^/]+/[0-9]{{1,9}}/[0-9]{{1,18}}/' AS is_place FROM ({}) AS ids) AS ids
                 ORDER BY is_place DESC, split_part(id, '/', 1) COLLATE \"C\",
                   CASE WHEN is_place THEN split_part(id, '/', 2)::int8 END, CASE WHEN is_place THEN split_part(id, '/', 3)::int8 END,
                   id COLLATE \"C\"",
                parts?.join(" UNION ALL ")
            )),
        }
    }

    fn rows_of(&self, table: &str, kind: &str, group: &str) -> Result<String, Fault> {
        let (id, of_group) = match kind {
            "events" => (EVENT_ID, format!("\"group\" = {group}")),
            _ if names(&self.session, table)?.iter().any(|column| column == GROUP_COLUMN) => {
                (ID_KEY, format!("leftoff_group::text = {group} AND leftoff_id IS NOT NULL"))
            }
            _ => (ID_KEY, "leftoff_id IS NOT NULL".to_owned()),
        };
        Ok(format!("SELECT ({id})::text AS id FROM {} WHERE {of_group}", quoted_table(table)))
    }
}

impl std::fmt::Debug for PostgresReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresReader")
            .field("place", &self.shown)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

fn tables(session: &Session, group: &str) -> Result<Vec<(String, String)>, Fault> {
    let rows = session.query(
        "SELECT name, kind FROM leftoff_tables WHERE \"group\" = $1 ORDER BY name",
        &[(&group, Type::TEXT)],
    )?;
    let mut there = Vec::new();
    for row in rows {
        let (name, kind): (String, String) = (row.get(0), row.get(1));
        // One that was dropped holds nothing any more.
        let wanted = if kind == "events" { "record" } else { ID_KEY };
        if names(session, &name)?.iter().any(|column| column == wanted) {
            there.push((name, kind));
        }
    }
    Ok(there)
}

struct Pages<'a> {
    reader: &'a PostgresReader,
    cursor: String,
    is_done: bool,
}

impl Iterator for Pages<'_> {
    type Item = Result<Vec<PostgresEffect>, SinkError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let page = self.reader.session.query(&format!("FETCH {PAGE_ROWS} FROM {}", self.cursor), &[]);
        self.is_done = page.as_ref().map_or(true, Vec::is_empty);
        let effects = |rows: Vec<tokio_postgres::Row>| {
            rows.iter().map(|row| PostgresEffect { id: row.get(0) }).collect()
        };
        Some(page.map(effects).map_err(|fault| self.reader.failed(fault)))
    }
}
