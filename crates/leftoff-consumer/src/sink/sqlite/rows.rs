//! A record becomes a row: of a table that it names, or of the table of events.

use std::collections::BTreeSet;

use rusqlite::types::{ToSql, ToSqlOutput, Value as SqlValue};
use rusqlite::{Connection, ErrorCode, params};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::schema::{MAX_NAME_BYTES, columns, quoted};
use super::{BadRecord, Outcome, Output};
use crate::sink::ID_KEY;

/// The column that is filled with the group's name where a table has it.
pub(super) const GROUP_COLUMN: &str = "leftoff_group";

/// Why rows were not inserted.
#[derive(Debug)]
pub(super) enum Refused {
    /// The event's fault.
    Record(BadRecord),
    /// The database's.
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Refused {
        Refused::Database(error)
    }
}

/// Inserts the rows of an event. Returns whether one of them tells whose it is.
pub(super) fn insert(
    connection: &Connection,
    table: &str,
    group: &str,
    output: &Output,
    noted: &mut BTreeSet<String>,
) -> Result<bool, Refused> {
    let Outcome::Handled { records } = &output.outcome else { return Ok(false) };
    let mut is_seen = false;
    for (number, record) in records.iter().enumerate() {
        let bad = |why: String| Refused::Record(BadRecord { number, why });
        let row = named_row(record.json()).map_err(bad)?;
        let inserted = match &row {
            None => insert_event(connection, table, group, output, number, record.json()).map(|()| true),
            Some(row) => insert_row(connection, row, group, output, number, noted),
        };
        is_seen |= inserted.map_err(|error| match error {
            Refused::Database(error) if is_the_rows_fault(&error) => bad(told(&error, row.as_ref())),
            error => error,
        })?;
    }
    Ok(is_seen)
}

/// A row of a table of the user's.
struct NamedRow {
    table: String,
    row: Map<String, Value>,
}

/// An object with the keys `table` and `row`, and no others; `None` for any other value.
fn named_row(json: &str) -> Result<Option<NamedRow>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Keys {
        table: Value,
        row: Value,
    }
    if !json.starts_with('{') {
        return Ok(None);
    }
    let Ok(Keys { table, row }) = serde_json::from_str(json) else { return Ok(None) };
    let Value::String(table) = table else { return Err(format!("its table is {table}, not a name")) };
    let Value::Object(row) = row else { return Err("its row is not an object of columns".to_owned()) };
    let lower = table.to_ascii_lowercase();
    if table.is_empty() || table.len() > MAX_NAME_BYTES || table.contains('\0') {
        return Err(format!("{table:?} is not the name of a table"));
    }
    if lower.starts_with("leftoff_") || lower.starts_with("sqlite_") {
        return Err(format!("table {table:?} is not the handler's to write"));
    }
    Ok(Some(NamedRow { table, row }))
}

fn insert_event(
    connection: &Connection,
    table: &str,
    group: &str,
    output: &Output,
    number: usize,
    json: &str,
) -> Result<(), Refused> {
    let sql = format!("INSERT INTO {} VALUES (?1, ?2, ?3, ?4, ?5, ?6)", quoted(table));
    let (topic_id, partition) = (output.id.topic_id.to_string(), output.id.partition);
    let mut insert = connection.prepare_cached(&sql)?;
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    insert.execute(params![group, topic_id, partition, output.offset.get(), number, json])?;
    Ok(())
}

fn insert_row(
    connection: &Connection,
    row: &NamedRow,
    group: &str,
    output: &Output,
    number: usize,
    noted: &mut BTreeSet<String>,
) -> Result<bool, Refused> {
    let known = columns(connection, &row.table)?;
    let has = |name: &str| known.iter().any(|column| column == name);
    let is_seen = has(ID_KEY);
    let mut names: Vec<&str> = row.row.keys().map(String::as_str).collect();
    let mut values: Vec<SqlValue> = row.row.values().map(sql_value).collect();
    for (name, value) in
        [(ID_KEY, format!("{}/{}/{number}", output.id, output.offset)), (GROUP_COLUMN, group.to_owned())]
    {
        if row.row.contains_key(name) {
            let why = format!("its row has a column {name:?}, which is Leftoff's own");
            return Err(Refused::Record(BadRecord { number, why }));
        }
        if has(name) {
            names.push(name);
            values.push(SqlValue::Text(value));
        }
    }
    let sql = if names.is_empty() {
        format!("INSERT INTO {} DEFAULT VALUES", quoted(&row.table))
    } else {
        let quoted_names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let marks = vec!["?"; names.len()].join(", ");
        format!("INSERT INTO {} ({}) VALUES ({marks})", quoted(&row.table), quoted_names.join(", "))
    };
    connection.prepare_cached(&sql)?.execute(rusqlite::params_from_iter(values.iter().map(Bound)))?;
    if is_seen && !noted.contains(&row.table) {
        connection.execute(
            "INSERT OR IGNORE INTO leftoff_tables VALUES (?1, ?2, 'rows')",
            params![group, row.table],
        )?;
        noted.insert(row.table.clone());
    }
    Ok(is_seen)
}

struct Bound<'a>(&'a SqlValue);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.0.into()))
    }
}

fn sql_value(json: &Value) -> SqlValue {
    match json {
        Value::Null => SqlValue::Null,
        Value::Bool(yes) => SqlValue::Integer(i64::from(*yes)),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(integer), _, _) => SqlValue::Integer(integer),
            // Too large for SQLite's integers: kept to the digit.
            (None, Some(_), _) | (None, None, None) => SqlValue::Text(number.to_string()),
            (None, None, Some(real)) => SqlValue::Real(real),
        },
        Value::String(text) => SqlValue::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => SqlValue::Text(json.to_string()),
    }
}

/// What the database says of the statement or the values, rather than of itself.
fn is_the_rows_fault(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::ConstraintViolation
                | ErrorCode::TypeMismatch
                | ErrorCode::TooBig
                | ErrorCode::ParameterOutOfRange
                | ErrorCode::Unknown
        )
    ) || matches!(error, rusqlite::Error::SqlInputError { .. } | rusqlite::Error::InvalidParameterCount(..))
}

fn told(error: &rusqlite::Error, row: Option<&NamedRow>) -> String {
    let text = match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        error => error.to_string(),
    };
    match row {
        Some(NamedRow { table, .. }) if text.starts_with("no such table") => {
            format!("there is no table {table:?}: make it with CREATE TABLE, the handler names it")
        }
        Some(NamedRow { table, .. }) => format!("table {table:?} refuses it: {text}"),
        None => text,
    }
}
