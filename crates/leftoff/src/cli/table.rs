//! Rows for people and for scripts: one table, printed as text, JSON, JSON lines or CSV.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, presets};
use leftoff_wire::Offset;
use serde_json::{Map, Value};

use super::notes::escape_controls;
use super::time::{format_duration, format_time};

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Columns for people.
    Text,
    /// All columns for people.
    Wide,
    /// One JSON array of objects.
    Json,
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values (RFC 4180, lines end with LF).
    Csv,
}

/// A column: what people and what scripts call it.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// For text: Kafka's tools write `LOG-END-OFFSET`.
    pub title: &'static str,
    /// For JSON and CSV: `log_end_offset`; a unit ends it.
    pub key: &'static str,
    /// Whether it is left out of plain text.
    pub is_wide: bool,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing known: `-` in text, null in JSON, empty in CSV.
    Missing,
    /// Text as it is.
    Text(String),
    /// A number.
    Int(i64),
    /// Yes or no.
    Bool(bool),
    /// A moment in unix milliseconds: RFC 3339 everywhere.
    Time(i64),
    /// A length in milliseconds: `2h 5m` in text, the number elsewhere.
    Duration(i64),
    /// Numbers side by side: `0,2` in text and CSV, an array in JSON.
    List(Vec<i64>),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_string())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<Offset> for Cell {
    fn from(offset: Offset) -> Cell {
        Cell::Int(offset.get())
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Cell {
        Cell::Int(number)
    }
}

impl From<i32> for Cell {
    fn from(number: i32) -> Cell {
        Cell::Int(number.into())
    }
}

impl From<bool> for Cell {
    fn from(yes: bool) -> Cell {
        Cell::Bool(yes)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Missing, Into::into)
    }
}

/// A table in the making.
#[derive(Clone, Debug)]
pub struct Table {
    columns: &'static [Column],
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &'static [Column]) -> Table {
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row, one cell per column.
    pub fn push(&mut self, row: Vec<Cell>) {
        assert_eq!(row.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(row);
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the table. `with_headers` holds for text, wide and CSV.
    pub fn write(&self, out: &mut impl Write, format: Format, with_headers: bool) -> io::Result<()> {
        match format {
            Format::Text => self.write_text(out, with_headers, |column| !column.is_wide),
            Format::Wide => self.write_text(out, with_headers, |_| true),
            Format::Json => self.write_json(out),
            Format::Jsonl => self.write_jsonl(out),
            Format::Csv => self.write_csv(out, with_headers),
        }
    }

    fn write_text(
        &self,
        out: &mut impl Write,
        with_headers: bool,
        is_shown: impl Fn(&Column) -> bool,
    ) -> io::Result<()> {
        let shown: Vec<usize> = (0..self.columns.len()).filter(|at| is_shown(&self.columns[*at])).collect();
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if with_headers {
            table.set_header(shown.iter().map(|at| self.columns[*at].title));
        }
        for row in &self.rows {
            table.add_row(shown.iter().map(|at| row[*at].text()));
        }
        for (column, at) in table.column_iter_mut().zip(&shown) {
            column.set_padding((0, 2));
            if self.rows.iter().any(|row| row[*at].is_number()) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for line in table.lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn objects(&self) -> impl Iterator<Item = Value> + '_ {
        self.rows.iter().map(|row| {
            let fields =
                self.columns.iter().zip(row).map(|(column, cell)| (column.key.to_string(), cell.json()));
            Value::Object(fields.collect::<Map<_, _>>())
        })
    }

    fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, &self.objects().collect::<Vec<_>>())?;
        writeln!(out)
    }

    fn write_jsonl(&self, out: &mut impl Write) -> io::Result<()> {
        for object in self.objects() {
            serde_json::to_writer(&mut *out, &object)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn write_csv(&self, out: &mut impl Write, with_headers: bool) -> io::Result<()> {
        if with_headers {
            let keys: Vec<&str> = self.columns.iter().map(|column| column.key).collect();
            writeln!(out, "{}", keys.join(","))?;
        }
        for row in &self.rows {
            for (number, cell) in row.iter().enumerate() {
                if number > 0 {
                    out.write_all(b",")?;
                }
                write_csv_field(out, cell.csv().as_deref().map(str::as_bytes))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

impl Cell {
    /// For people, on one line: control characters are escaped, so that a name cannot steer the terminal.
    fn text(&self) -> String {
        match self {
            Cell::Missing => "-".to_string(),
            Cell::Text(text) => escape_controls(text).replace('\n', "\\n"),
            Cell::Int(number) => number.to_string(),
            Cell::Bool(yes) => if *yes { "yes" } else { "no" }.to_string(),
            Cell::Time(ms) => format_time(*ms),
            Cell::Duration(ms) => format_duration(*ms),
            Cell::List(numbers) if numbers.is_empty() => "-".to_string(),
            Cell::List(numbers) => join(numbers),
        }
    }

    fn json(&self) -> Value {
        match self {
            Cell::Missing => Value::Null,
            Cell::Text(text) => text.as_str().into(),
            Cell::Int(number) | Cell::Duration(number) => (*number).into(),
            Cell::Bool(yes) => (*yes).into(),
            Cell::Time(ms) => format_time(*ms).into(),
            Cell::List(numbers) => numbers.clone().into(),
        }
    }

    fn csv(&self) -> Option<String> {
        match self {
            Cell::Missing => None,
            Cell::Text(text) => Some(text.clone()),
            Cell::Int(number) | Cell::Duration(number) => Some(number.to_string()),
            Cell::Bool(yes) => Some(yes.to_string()),
            Cell::Time(ms) => Some(format_time(*ms)),
            Cell::List(numbers) => Some(join(numbers)),
        }
    }

    fn is_number(&self) -> bool {
        matches!(self, Cell::Int(_) | Cell::Duration(_))
    }
}

fn join(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// Writes one field of CSV (RFC 4180): quoted where it must be; null is empty, an empty text is `""`.
pub fn write_csv_field(out: &mut impl Write, bytes: Option<&[u8]>) -> io::Result<()> {
    let Some(bytes) = bytes else { return Ok(()) };
    let needs_quotes = bytes.is_empty() || bytes.iter().any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r'));
    if !needs_quotes {
        return out.write_all(bytes);
    }
    out.write_all(b"\"")?;
    for (number, part) in bytes.split(|b| *b == b'"').enumerate() {
        if number > 0 {
            out.write_all(b"\"\"")?;
        }
        out.write_all(part)?;
    }
    out.write_all(b"\"")
}

#[cfg(test)]
mod tests;
