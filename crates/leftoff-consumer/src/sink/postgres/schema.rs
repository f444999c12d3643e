//! Our tables: whether they are ours, making them, and what columns a table has.

use tokio_postgres::types::Type;

use super::session::{Fault, Session};
use super::values::Column;
use super::{SinkError, broke};

/// The table of records that name none.
pub const DEFAULT_TABLE: &str = "leftoff_events";
/// PostgreSQL cuts longer names.
pub const MAX_NAME_BYTES: usize = 63;

/// Format 1 had no marks: its `leftoff_offsets` ends with `epoch`.
const FORMAT: &str = "2";
const WITHOUT_MARKS: &str = "1";
/// The columns that format 2 has and format 1 has not.
const MARKS: usize = 3;
const OFFSETS: &str = "leftoff_offsets";
/// Whoever makes our tables holds this lock: two who do it at once would disturb one another.
const MAKING: &str = "SELECT pg_catalog.pg_advisory_xact_lock(7811893240177214310)";
const EVENTS: &[&str] = &["group", "topic_id", "partition", "offset", "n", "record"];

/// Our tables, their columns, and what makes them.
const TABLES: &[(&str, &[&str], &str)] = &[
    (
        OFFSETS,
        &["group", "topic_id", "partition", "next", "epoch", "last_offset", "last_fingerprint", "reset"],
        r#"("group" text, topic_id text, partition int, next bigint, epoch bigint NOT NULL,
        last_offset bigint, last_fingerprint bigint, reset bigint,
        PRIMARY KEY ("group", topic_id, partition))"#,
    ),
    (
        "leftoff_outcomes",
        &["group", "topic_id", "partition", "first", "last", "kind", "attempts", "why"],
        r#"("group" text, topic_id text, partition int, first bigint, last bigint NOT NULL, kind text NOT NULL,
        attempts bigint, why text, PRIMARY KEY ("group", topic_id, partition, first))"#,
    ),
    (
        "leftoff_tables",
        &["group", "name", "kind"],
        r#"("group" text, name text, kind text NOT NULL, PRIMARY KEY ("group", name))"#,
    ),
    (
        "leftoff_ids",
        &["group", "topic_id", "id", "partition", "offset"],
        r#"("group" text, topic_id text, id bytea, partition int NOT NULL, "offset" bigint NOT NULL,
        PRIMARY KEY ("group", topic_id, id))"#,
    ),
    (
        "leftoff_dead",
        &[
            "group",
            "topic_id",
            "partition",
            "offset",
            "letter",
            "attempts",
            "why",
            "at_ms",
            "state",
            "state_at_ms",
        ],
        r#"("group" text, topic_id text, partition int, "offset" bigint, letter text NOT NULL,
        attempts bigint NOT NULL, why text NOT NULL, at_ms bigint NOT NULL,
        state text NOT NULL DEFAULT 'open', state_at_ms bigint, PRIMARY KEY ("group", topic_id, partition, "offset"))"#,
    ),
    ("leftoff_meta", &["name", "value"], "(name text PRIMARY KEY, value text NOT NULL)"),
];
const EVENTS_DEFINITION: &str = r#"("group" text, topic_id text, partition int, "offset" bigint, n int,
    record json NOT NULL, PRIMARY KEY ("group", topic_id, partition, "offset", n))"#;

/// Makes what is missing of our tables, in one transaction. What a person should know of the server is returned.
pub(super) fn set_up(
    session: &mut Session,
    shown: &str,
    table: &str,
    group: &str,
) -> Result<Vec<String>, SinkError> {
    check_name(shown, table)?;
    let failed = |fault| broke("cannot make tables in", shown, fault);
    session.begin().map_err(failed)?;
    session.batch(MAKING).map_err(failed)?;
    let notices = check_server(session, shown)?;
    check_ours(session, shown)?;
    check_events(session, shown, table)?;
    let missing = |name: &str| names(session, name).map(|names| names.is_empty()).map_err(failed);
    for (name, _, definition) in TABLES {
        if missing(name)? {
            session.batch(&format!("CREATE TABLE {name} {definition}")).map_err(failed)?;
            if *name == "leftoff_meta" {
                session.batch("INSERT INTO leftoff_meta VALUES ('format', '2')").map_err(failed)?;
            }
        }
    }
    if !has_marks(&names(session, OFFSETS).map_err(failed)?) {
        session
            .batch(
                "ALTER TABLE leftoff_offsets ADD COLUMN last_offset bigint, ADD COLUMN last_fingerprint bigint,
                 ADD COLUMN reset bigint; UPDATE leftoff_meta SET value = '2' WHERE name = 'format'",
            )
            .map_err(failed)?;
    }
    if missing(table)? {
        session
            .batch(&format!("CREATE TABLE {} {EVENTS_DEFINITION}", quoted_table(table)))
            .map_err(failed)?;
    }
    note_table(session, group, table, "events").map_err(failed)?;
    session.commit().map_err(failed)?;
    Ok(notices)
}

/// Rows of the group are in this table.
pub(super) fn note_table(session: &Session, group: &str, table: &str, kind: &str) -> Result<(), Fault> {
    let sql = "INSERT INTO leftoff_tables VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    session.execute(sql, &[(&group, Type::TEXT), (&table, Type::TEXT), (&kind, Type::TEXT)]).map(|_| ())
}

fn check_server(session: &Session, shown: &str) -> Result<Vec<String>, SinkError> {
    let sql = "SELECT pg_catalog.current_setting('server_encoding'), pg_catalog.current_setting('fsync')";
    let rows = session.query(sql, &[]).map_err(|fault| broke("cannot read", shown, fault))?;
    let (encoding, fsync): (String, String) =
        rows.first().map(|row| (row.get(0), row.get(1))).unwrap_or_default();
    if encoding != "UTF8" {
        return Err(SinkError::Refused(format!("{shown}: its encoding is {encoding}, and events are UTF8")));
    }
    let told = "the server runs with fsync=off: what it says to have saved, a power cut can take back";
    Ok(if fsync == "off" { vec![format!("{shown}: {told}")] } else { Vec::new() })
}

/// Tables of ours that are there must have our columns, and a format that is known.
pub(super) fn check_ours(session: &Session, shown: &str) -> Result<(), SinkError> {
    let read = |fault| broke("cannot read", shown, fault);
    for (name, expect, _) in TABLES {
        let found = names(session, name).map_err(read)?;
        let is_older = *name == OFFSETS && found == expect[..expect.len() - MARKS];
        if !found.is_empty() && found != *expect && !is_older {
            return Err(SinkError::Refused(format!(
                "{shown}: table {name} has the columns {}, not those of Leftoff: it is somebody else's, or of another version",
                found.join(", ")
            )));
        }
    }
    if names(session, "leftoff_meta").map_err(read)?.is_empty() {
        return Ok(());
    }
    let rows = session.query("SELECT value FROM leftoff_meta WHERE name = 'format'", &[]).map_err(read)?;
    let format: Option<String> = rows.first().map(|row| row.get(0));
    match format.as_deref() {
        Some(FORMAT | WITHOUT_MARKS) => Ok(()),
        other => Err(SinkError::Refused(format!(
            "{shown}: its format is {}, and this version knows {FORMAT}",
            other.unwrap_or("missing")
        ))),
    }
}

/// Whether these columns of `leftoff_offsets` hold marks.
pub(super) fn has_marks(columns: &[String]) -> bool {
    columns.iter().any(|column| column == "last_offset")
}

fn check_events(session: &Session, shown: &str, table: &str) -> Result<(), SinkError> {
    let found = names(session, table).map_err(|fault| broke("cannot read", shown, fault))?;
    if found.is_empty() || found == EVENTS {
        return Ok(());
    }
    Err(SinkError::Refused(format!(
        "{shown}: table {table} has the columns {}, and records go to a table with {}\n\
         name another one with ?table=, or have the handler answer {{\"table\": \"{table}\", \"row\": {{…}}}}",
        found.join(", "),
        EVENTS.join(", ")
    )))
}

fn check_name(shown: &str, table: &str) -> Result<(), SinkError> {
    let bare = table.split_once('.').map_or(table, |(_, bare)| bare);
    let is_long = table.split('.').any(|name| name.is_empty() || name.len() > MAX_NAME_BYTES);
    let is_ours = table != DEFAULT_TABLE && bare.to_ascii_lowercase().starts_with("leftoff_");
    if is_long || table.contains('\0') || is_ours || bare.starts_with("pg_") {
        return Err(SinkError::Refused(format!("{shown}: {table:?} cannot be the table of events")));
    }
    Ok(())
}

/// The columns of a table, none if there is no such table.
pub(super) fn columns(session: &Session, table: &str) -> Result<Vec<Column>, Fault> {
    // A domain is written as the type that it is made of, and checked by the database.
    let sql = "SELECT a.attname::text, b.typname::text, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(b.typname),
          CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END
        FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
        JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
        JOIN pg_catalog.pg_namespace n ON n.oid = b.typnamespace
        WHERE a.attrelid = pg_catalog.to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
    let rows = session.query(sql, &[(&quoted_table(table), Type::TEXT)])?;
    let column = |row: &tokio_postgres::Row| Column {
        name: row.get(0),
        kind: row.get(1),
        sql: row.get(2),
        modifier: row.get(3),
    };
    Ok(rows.iter().map(column).collect())
}

/// The names of a table's columns.
pub(super) fn names(session: &Session, table: &str) -> Result<Vec<String>, Fault> {
    Ok(columns(session, table)?.into_iter().map(|column| column.name).collect())
}

/// A name as SQL takes it, whatever is in it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `TABLE` or `SCHEMA.TABLE`
pub(super) fn quoted_table(table: &str) -> String {
    match table.split_once('.') {
        Some((schema, table)) => format!("{}.{}", quoted(schema), quoted(table)),
        None => quoted(table),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_whatever_is_in_them() {
        assert_eq!(quoted_table("a b\"; DROP TABLE x; --"), "\"a b\"\"; DROP TABLE x; --\"");
        assert_eq!(quoted_table("s.t.u"), "\"s\".\"t.u\"");
    }
}
