//! A record becomes a row of the table that it names.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_postgres::error::DbError;
use tokio_postgres::types::Type;

use super::schema::{MAX_NAME_BYTES, quoted, quoted_table};
use super::session::{Fault, Parameter, Session};
use super::values::{Column, text_of};
use crate::shorten;
use crate::sink::{BadRecord, ID_KEY, Outcome, Output};

/// The column that is filled with the group's name where a table has it.
pub(super) const GROUP_COLUMN: &str = "leftoff_group";
const SAVEPOINT: &str = "SAVEPOINT leftoff_event";
const RELEASE: &str = "RELEASE SAVEPOINT leftoff_event";
const UNDO: &str = "ROLLBACK TO SAVEPOINT leftoff_event; RELEASE SAVEPOINT leftoff_event";

/// The columns of tables, as far as they were asked for.
pub(super) type Known = BTreeMap<String, Vec<Column>>;

/// Why rows were not inserted.
#[derive(Debug)]
pub(super) enum Refused {
    /// The event's fault.
    Record(BadRecord),
    /// The connection's, or the database's.
    Fault(Fault),
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Refused {
        Refused::Fault(fault)
    }
}

/// Whether a record names its table. Those that do not are kept for the save.
pub(super) fn named(output: &Output) -> Result<bool, BadRecord> {
    let Outcome::Handled { records } = &output.outcome else { return Ok(false) };
    let mut is_named = false;
    for (number, record) in records.iter().enumerate() {
        is_named |= named_row(record.json()).map_err(|why| BadRecord { number, why })?.is_some();
    }
    Ok(is_named)
}

/// The records that go to the table of events, and their numbers.
pub(super) fn unnamed(output: &Output) -> impl Iterator<Item = (usize, &str)> {
    let records = match &output.outcome {
        Outcome::Handled { records } => records.as_slice(),
        _ => &[],
    };
    let all = records.iter().enumerate().map(|(number, record)| (number, record.json()));
    all.filter(|(_, json)| !matches!(named_row(json), Ok(Some(_))))
}

/// Inserts the rows of an event into tables that its records name: all of them or, where one is refused, none. Gives the
/// tables that tell whose rows they are.
pub(super) fn insert(
    session: &Session,
    known: &mut Known,
    group: &str,
    output: &Output,
) -> Result<Vec<String>, Refused> {
    let Outcome::Handled { records } = &output.outcome else { return Ok(Vec::new()) };
    let mut statements = Vec::new();
    let mut seen = Vec::new();
    for (number, record) in records.iter().enumerate() {
        let bad = |why| Refused::Record(BadRecord { number, why });
        let Some(row) = named_row(record.json()).map_err(bad)? else { continue };
        let columns = columns(session, known, &row.table)?;
        let id = format!("{}/{}/{number}", output.id, output.offset);
        let statement = statement(&row, columns, &id, group).map_err(bad)?;
        if columns.iter().any(|column| column.name == ID_KEY) {
            seen.push(row.table.clone());
        }
        statements.push((number, row.table, statement));
    }
    let (mut before, last) = (SAVEPOINT, statements.len().saturating_sub(1));
    for (at, (number, table, statement)) in statements.iter().enumerate() {
        let parameters: Vec<Parameter<'_>> =
            statement.values.iter().map(|value| (value as _, Type::TEXT)).collect();
        let after = if at == last { RELEASE } else { "" };
        match session.between(before, &statement.sql, &parameters, after) {
            Ok(()) => {}
            Err(Fault::Said(error)) if is_the_rows_fault(&error) => {
                session.batch(UNDO)?;
                // The table may have been changed.
                known.clear();
                let why = format!("table {table:?} refuses it: {}{}", told(&error), statement.unread(&error));
                return Err(Refused::Record(BadRecord { number: *number, why }));
            }
            Err(fault) => return Err(fault.into()),
        }
        before = "";
    }
    Ok(seen)
}

/// A row of a table of the user's.
struct NamedRow<'a> {
    table: String,
    row: BTreeMap<String, &'a RawValue>,
}

/// An object with the keys `table` and `row`, and no others; `None` for any other value.
fn named_row(json: &str) -> Result<Option<NamedRow<'_>>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Keys<'a> {
        #[serde(borrow)]
        table: &'a RawValue,
        #[serde(borrow)]
        row: &'a RawValue,
    }
    if !json.starts_with('{') {
        return Ok(None);
    }
    let Ok(Keys { table, row }) = serde_json::from_str(json) else { return Ok(None) };
    let table: String = serde_json::from_str(table.get())
        .map_err(|_| format!("its table is {}, not a name", shorten(table.get().as_bytes())))?;
    let row =
        serde_json::from_str(row.get()).map_err(|_| "its row is not an object of columns".to_owned())?;
    check_name(&table)?;
    Ok(Some(NamedRow { table, row }))
}

/// A name that PostgreSQL would cut, or that is ours or its own, is refused.
fn check_name(table: &str) -> Result<(), String> {
    let (schema, bare) = table.split_once('.').map_or((None, table), |(schema, bare)| (Some(schema), bare));
    let is_name = |name: &str| !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains('\0');
    if !is_name(bare) || schema.is_some_and(|schema| !is_name(schema)) {
        return Err(format!("{:?} is not the name of a table", shorten(table.as_bytes())));
    }
    if bare.to_ascii_lowercase().starts_with("leftoff_") || schema.unwrap_or(bare).starts_with("pg_") {
        return Err(format!("table {table:?} is not the handler's to write"));
    }
    Ok(())
}

fn columns<'a>(session: &Session, known: &'a mut Known, table: &str) -> Result<&'a [Column], Fault> {
    if !known.contains_key(table) {
        let found = super::schema::columns(session, table)?;
        known.insert(table.to_owned(), found);
    }
    Ok(&known[table])
}

/// An insertion, its values as texts that the database reads by the types of their columns.
struct Statement {
    sql: String,
    values: Vec<Option<String>>,
    /// The columns whose texts only the database reads, and their types.
    unread: Vec<(String, String)>,
}

fn statement(row: &NamedRow<'_>, columns: &[Column], id: &str, group: &str) -> Result<Statement, String> {
    let table = &row.table;
    if columns.is_empty() {
        return Err(format!("there is no table {table:?}: make it with CREATE TABLE, the handler names it"));
    }
    let (mut names, mut marks, mut values, mut unread) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut add = |column: &Column, value: Option<String>| {
        values.push(value);
        names.push(quoted(&column.name));
        marks.push(format!("CAST(${} AS {})", values.len(), column.sql));
    };
    for (name, value) in &row.row {
        if name == ID_KEY || name == GROUP_COLUMN {
            return Err(format!("its row has a column {name:?}, which is Leftoff's own"));
        }
        let column = columns.iter().find(|column| column.name == *name);
        let column =
            column.ok_or_else(|| format!("table {table:?} has no column {:?}", shorten(name.as_bytes())))?;
        let kind = &column.kind;
        let text = text_of(value.get(), column).map_err(|why| {
            let value = shorten(value.get().as_bytes());
            format!("table {table:?}, column {name:?} ({kind}) cannot hold {value}: {why}")
        })?;
        unread.push((name.clone(), format!("{kind}: {}", shorten(value.get().as_bytes()))));
        add(column, text);
    }
    for (name, value) in [(ID_KEY, id), (GROUP_COLUMN, group)] {
        if let Some(column) = columns.iter().find(|column| column.name == name) {
            add(column, Some(value.to_owned()));
        }
    }
    let table = quoted_table(table);
    let sql = if names.is_empty() {
        format!("INSERT INTO {table} DEFAULT VALUES")
    } else {
        format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), marks.join(", "))
    };
    Ok(Statement { sql, values, unread })
}

impl Statement {
    /// Which values it may be, where the database does not say.
    fn unread(&self, error: &DbError) -> String {
        if !error.code().code().starts_with("22") || error.column().is_some() {
            return String::new();
        }
        let all: Vec<String> =
            self.unread.iter().take(8).map(|(name, value)| format!("{name:?} ({value})")).collect();
        format!("; its columns: {}", all.join(", "))
    }
}

/// What the database says of the statement or the values, rather than of itself.
fn is_the_rows_fault(error: &DbError) -> bool {
    let code = error.code().code();
    let classes = ["21", "22", "23", "27", "42", "44", "54", "0A", "P0", "38", "39", "09"];
    code != "42501" && classes.iter().any(|class| code.starts_with(class))
}

/// The database's words.
pub(super) fn told(error: &DbError) -> String {
    let detail =
        error.detail().map(|detail| format!(" ({})", shorten(detail.as_bytes()))).unwrap_or_default();
    format!("{}{detail}", shorten(error.message().as_bytes()))
}
