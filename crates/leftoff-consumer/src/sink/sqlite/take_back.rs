//! Events that a person gave back: what they left in the database goes, in the transaction that moves the offset, so that
//! the rows are at any time those of the events below it.

use std::path::Path;

use leftoff_wire::Offset;
use rusqlite::{Connection, params};

use super::rows::GROUP_COLUMN;
use super::schema::{columns, quoted};
use super::{SinkError, failed};
use crate::sink::ID_KEY;
use crate::source::PartitionId;

/// What each table of ours loses: evidence, ids, and letters of events that are to be handled again. What was replayed or
/// dropped is a decision that stays.
const OURS: &[&str] = &[
    "DELETE FROM leftoff_outcomes WHERE \"group\" = ?1 AND topic_id = ?2 AND partition = ?3 AND first >= ?4",
    "UPDATE leftoff_outcomes SET last = ?4 - 1
     WHERE \"group\" = ?1 AND topic_id = ?2 AND partition = ?3 AND first < ?4 AND last >= ?4",
    "DELETE FROM leftoff_ids WHERE \"group\" = ?1 AND topic_id = ?2 AND partition = ?3 AND \"offset\" >= ?4",
    "DELETE FROM leftoff_dead WHERE \"group\" = ?1 AND topic_id = ?2 AND partition = ?3 AND \"offset\" >= ?4
     AND state = 'open'",
];

/// Takes out what came of the events of a partition from an offset on.
///
/// # Errors
/// [`SinkError::Refused`] where it cannot be told which rows are the group's.
pub(super) fn take_back(
    connection: &Connection,
    path: &Path,
    group: &str,
    id: PartitionId,
    first: Offset,
) -> Result<(), SinkError> {
    let write = failed("cannot write", path);
    let (topic_id, partition, first) = (id.topic_id.to_string(), id.partition, first.get());
    let ours = params![group, topic_id, partition, first];
    for sql in OURS {
        connection.execute(sql, ours).map_err(&write)?;
    }
    for (table, kind) in tables(connection, group).map_err(&write)? {
        let found = columns(connection, &table).map_err(&write)?;
        let has = |name: &str| found.iter().any(|column| column == name);
        if kind == "events" {
            if has("record") {
                let sql = format!(
                    "DELETE FROM {} WHERE \"group\" = ?1 AND topic_id = ?2 AND partition = ?3 AND \"offset\" >= ?4",
                    quoted(&table)
                );
                connection.execute(&sql, ours).map_err(&write)?;
            }
            continue;
        }
        if !has(ID_KEY) {
            continue;
        }
        let is_of_group = if has(GROUP_COLUMN) { "leftoff_group = ?1" } else { "?1 IS NOT NULL" };
        if !has(GROUP_COLUMN) && is_shared(connection, &table).map_err(&write)? {
            return Err(SinkError::Refused(format!(
                "{}: several groups write to table {table}, which has no column leftoff_group: nobody can tell which rows are \
                 those of the events that {group} was reset to\nadd the column and fill it, or take the rows out and their \
                 line in leftoff_tables",
                path.display()
            )));
        }
        // TOPIC_ID/PARTITION/OFFSET/N: a number ends where the slash begins.
        let sql = format!(
            "DELETE FROM {} WHERE {is_of_group} AND substr(leftoff_id, 1, length(?2)) = ?2
             AND CAST(substr(leftoff_id, length(?2) + 1) AS INTEGER) >= ?3",
            quoted(&table)
        );
        let place = format!("{topic_id}/{partition}/");
        connection.execute(&sql, params![group, place, first]).map_err(&write)?;
    }
    Ok(())
}

fn tables(connection: &Connection, group: &str) -> rusqlite::Result<Vec<(String, String)>> {
    let mut select = connection.prepare("SELECT name, kind FROM leftoff_tables WHERE \"group\" = ?1")?;
    select.query_map([group], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn is_shared(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) > 1 FROM leftoff_tables WHERE name = ?1";
    connection.query_row(sql, [table], |row| row.get(0))
}
