//! Opening a database: whose it is, whether its tables are ours, and how it syncs.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::{SinkError, failed};

/// The table of records that name none.
pub const DEFAULT_TABLE: &str = "leftoff_events";
/// The most bytes of a table's name.
pub const MAX_NAME_BYTES: usize = 200;

/// How long another program's transaction is waited for.
const BUSY: Duration = Duration::from_secs(5);
/// Format 1 had no marks: its `leftoff_offsets` ends with `epoch`.
const FORMAT: &str = "2";
const WITHOUT_MARKS: &str = "1";
/// The columns that format 2 has and format 1 has not.
const MARKS: usize = 3;
/// More statements than a run has kinds of rows.
const CACHED_STATEMENTS: usize = 64;

const EVENTS: &[&str] = &["group", "topic_id", "partition", "offset", "n", "record"];

const OFFSETS: &str = "leftoff_offsets";

/// Our tables and their columns.
const TABLES: &[(&str, &[&str])] = &[
    ("leftoff_meta", &["name", "value"]),
    (
        OFFSETS,
        &["group", "topic_id", "partition", "next", "epoch", "last_offset", "last_fingerprint", "reset"],
    ),
    ("leftoff_outcomes", &["group", "topic_id", "partition", "first", "last", "kind", "attempts", "why"]),
    ("leftoff_tables", &["group", "name", "kind"]),
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
    ),
    ("leftoff_ids", &["group", "topic_id", "id", "partition", "offset"]),
];

const MAKE: &str = r#"
CREATE TABLE IF NOT EXISTS leftoff_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS leftoff_offsets (
  "group" TEXT, topic_id TEXT, partition INTEGER, next INTEGER, epoch INTEGER NOT NULL,
  last_offset INTEGER, last_fingerprint INTEGER, reset INTEGER,
  PRIMARY KEY ("group", topic_id, partition));
CREATE TABLE IF NOT EXISTS leftoff_outcomes (
  "group" TEXT, topic_id TEXT, partition INTEGER, first INTEGER, last INTEGER, kind TEXT NOT NULL,
  attempts INTEGER, why TEXT,
  PRIMARY KEY ("group", topic_id, partition, first));
CREATE TABLE IF NOT EXISTS leftoff_tables (
  "group" TEXT, name TEXT, kind TEXT NOT NULL, PRIMARY KEY ("group", name));
CREATE TABLE IF NOT EXISTS leftoff_dead (
  "group" TEXT, topic_id TEXT, partition INTEGER, "offset" INTEGER, letter TEXT NOT NULL,
  attempts INTEGER NOT NULL, why TEXT NOT NULL, at_ms INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'open', state_at_ms INTEGER,
  PRIMARY KEY ("group", topic_id, partition, "offset"));
CREATE TABLE IF NOT EXISTS leftoff_ids (
  "group" TEXT, topic_id TEXT, id BLOB, partition INTEGER NOT NULL, "offset" INTEGER NOT NULL,
  PRIMARY KEY ("group", topic_id, id)) WITHOUT ROWID;
INSERT OR IGNORE INTO leftoff_meta VALUES ('format', '2');
"#;

/// Opens the database for a run, making it and our tables where they are missing.
pub(super) fn open(path: &Path, table: &str, group: &str) -> Result<Connection, SinkError> {
    check_name(path, table)?;
    let is_new = std::fs::metadata(path).map_or(true, |found| found.len() == 0);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed("cannot open", path))?;
    set_up(&connection, path, is_new)?;
    check_ours(&connection, path)?;
    check_events(&connection, path, table)?;
    add_marks(&connection).map_err(failed("cannot add columns to leftoff_offsets in", path))?;
    make(&connection, table, group).map_err(failed("cannot make tables in", path))?;
    sync_folder(path)?;
    Ok(connection)
}

/// Opens the database to look at it.
pub(super) fn open_to_read(path: &Path) -> Result<Option<Connection>, SinkError> {
    if !path.exists() {
        return Ok(None);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed("cannot open", path))?;
    connection.busy_timeout(BUSY).map_err(failed("cannot open", path))?;
    check_ours(&connection, path)?;
    let is_ours = !columns(&connection, "leftoff_offsets").map_err(failed("cannot read", path))?.is_empty();
    Ok(is_ours.then_some(connection))
}

/// Opens a database of ours to change a row of it.
pub(super) fn open_to_mark(path: &Path) -> Result<Connection, SinkError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed("cannot open", path))?;
    set_up(&connection, path, false)?;
    check_ours(&connection, path)?;
    Ok(connection)
}

fn set_up(connection: &Connection, path: &Path, is_new: bool) -> Result<(), SinkError> {
    let foreign = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => not_a_database(path),
        _ => failed("cannot open", path)(error),
    };
    connection.busy_timeout(BUSY).map_err(foreign)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    let pragma = |text: &str| connection.query_row(text, [], |row| row.get::<_, String>(0));
    let mode = if is_new { pragma("PRAGMA journal_mode = WAL") } else { pragma("PRAGMA journal_mode") };
    let mode = mode.map_err(foreign)?.to_ascii_lowercase();
    if matches!(mode.as_str(), "off" | "memory") {
        return Err(SinkError::Refused(format!(
            "{}: its journal_mode is {mode}: a crash could leave half a save\nset it to wal or delete",
            path.display()
        )));
    }
    connection.execute_batch("PRAGMA synchronous = EXTRA; PRAGMA foreign_keys = ON").map_err(foreign)
}

fn not_a_database(path: &Path) -> SinkError {
    SinkError::Refused(format!("{} is not an SQLite database; name another file", path.display()))
}

/// Tables of ours that are there must have our columns, and a format that is known.
fn check_ours(connection: &Connection, path: &Path) -> Result<(), SinkError> {
    let read = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => not_a_database(path),
        _ => failed("cannot read", path)(error),
    };
    for (name, expect) in TABLES {
        let found = columns(connection, name).map_err(read)?;
        let is_older = *name == OFFSETS && found == expect[..expect.len() - MARKS];
        if !found.is_empty() && found != *expect && !is_older {
            return Err(SinkError::Refused(format!(
                "{}: table {name} has the columns {}, not those of Leftoff: it is somebody else's, or of another version",
                path.display(),
                found.join(", ")
            )));
        }
    }
    if columns(connection, "leftoff_meta").map_err(read)?.is_empty() {
        return Ok(());
    }
    let format: Option<String> = connection
        .query_row("SELECT value FROM leftoff_meta WHERE name = 'format'", [], |row| row.get(0))
        .optional()
        .map_err(read)?;
    match format.as_deref() {
        Some(FORMAT | WITHOUT_MARKS) => Ok(()),
        other => Err(SinkError::Refused(format!(
            "{}: its format is {}, and this version knows {FORMAT}",
            path.display(),
            other.unwrap_or("missing")
        ))),
    }
}

/// Makes format 2 of format 1, in one transaction.
fn add_marks(connection: &Connection) -> rusqlite::Result<()> {
    let found = columns(connection, OFFSETS)?;
    if found.is_empty() || has_marks(&found) {
        return Ok(());
    }
    connection.execute_batch(
        "BEGIN IMMEDIATE;
         ALTER TABLE leftoff_offsets ADD COLUMN last_offset INTEGER;
         ALTER TABLE leftoff_offsets ADD COLUMN last_fingerprint INTEGER;
         ALTER TABLE leftoff_offsets ADD COLUMN reset INTEGER;
         UPDATE leftoff_meta SET value = '2' WHERE name = 'format';
         COMMIT",
    )
}

/// Whether these columns of `leftoff_offsets` hold marks.
pub(super) fn has_marks(columns: &[String]) -> bool {
    columns.iter().any(|column| column == "last_offset")
}

fn check_events(connection: &Connection, path: &Path, table: &str) -> Result<(), SinkError> {
    let found = columns(connection, table).map_err(failed("cannot read", path))?;
    if found.is_empty() || found == EVENTS {
        return Ok(());
    }
    Err(SinkError::Refused(format!(
        "{}: table {table} has the columns {}, and records go to a table with {}\n\
         name another one with ?table=, or have the handler answer {{\"table\": \"{table}\", \"row\": {{…}}}}",
        path.display(),
        found.join(", "),
        EVENTS.join(", ")
    )))
}

fn check_name(path: &Path, table: &str) -> Result<(), SinkError> {
    let is_ours = table != DEFAULT_TABLE && table.to_ascii_lowercase().starts_with("leftoff_");
    let is_sqlites = table.to_ascii_lowercase().starts_with("sqlite_");
    if table.is_empty() || table.len() > MAX_NAME_BYTES || table.contains('\0') || is_ours || is_sqlites {
        return Err(SinkError::Refused(format!(
            "{}: {table:?} cannot be the table of events",
            path.display()
        )));
    }
    Ok(())
}

fn make(connection: &Connection, table: &str, group: &str) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let made = connection.execute_batch(MAKE).and_then(|()| {
        connection.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS {} (\"group\" TEXT, topic_id TEXT, partition INTEGER, \"offset\" INTEGER, \
             n INTEGER, record TEXT NOT NULL, PRIMARY KEY (\"group\", topic_id, partition, \"offset\", n))",
            quoted(table)
        ))?;
        connection.execute(
            "INSERT OR IGNORE INTO leftoff_tables VALUES (?1, ?2, 'events')",
            params![group, table],
        )?;
        connection.execute_batch("COMMIT")
    });
    if made.is_err() && !connection.is_autocommit() {
        // What went wrong is told; nothing was made.
        let _ = connection.execute_batch("ROLLBACK");
    }
    made
}

/// A new file's name is on disk before anything counts on it.
fn sync_folder(path: &Path) -> Result<(), SinkError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| SinkError::Storage { what: format!("cannot sync {}", folder.display()), error })
}

/// The columns of a table, none if there is no such table.
pub(super) fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut names = connection.prepare_cached("SELECT name FROM pragma_table_info(?1)")?;
    names.query_map([table], |row| row.get(0))?.collect()
}

/// A name as SQL takes it, whatever is in it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
