#![allow(clippy::unwrap_used)]

use super::*;

const COLUMNS: &[Column] = &[
    Column { title: "TOPIC", key: "topic", is_wide: false },
    Column { title: "NEXT", key: "next", is_wide: false },
    Column { title: "LAG(time)", key: "lag_ms", is_wide: false },
    Column { title: "OPEN", key: "is_open", is_wide: true },
    Column { title: "SINCE", key: "since", is_wide: true },
    Column { title: "PARTITIONS", key: "partitions", is_wide: true },
];

fn table() -> Table {
    let mut table = Table::new(COLUMNS);
    table.push(vec![
        "quakes".into(),
        1707.into(),
        Cell::Duration(7_505_000),
        true.into(),
        Cell::Time(0),
        Cell::List(vec![0, 2]),
    ]);
    table.push(vec![
        "a,\"\x1b".into(),
        Cell::from(None::<i64>),
        Cell::Missing,
        false.into(),
        Cell::Missing,
        Cell::List(vec![]),
    ]);
    table
}

fn check(table: &Table, format: Format, with_headers: bool, expect: &str) {
    let mut out = Vec::new();
    table.write(&mut out, format, with_headers).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), expect);
}

#[test]
fn one_table_in_every_form() {
    let table = table();
    check(
        &table,
        Format::Text,
        true,
        "\
TOPIC      NEXT  LAG(time)
quakes     1707      2h 5m
a,\"\\u{1b}     -          -
",
    );
    check(&table, Format::Text, false, "quakes     1707  2h 5m\na,\"\\u{1b}     -      -\n");
    check(
        &table,
        Format::Wide,
        true,
        "\
TOPIC      NEXT  LAG(time)  OPEN  SINCE                     PARTITIONS
quakes     1707      2h 5m  yes   1970-01-01T00:00:00.000Z  0,2
a,\"\\u{1b}     -          -  no    -                         -
",
    );
    check(
        &table,
        Format::Jsonl,
        true,
        "{\"topic\":\"quakes\",\"next\":1707,\"lag_ms\":7505000,\"is_open\":true,\
         \"since\":\"1970-01-01T00:00:00.000Z\",\"partitions\":[0,2]}\n\
         {\"topic\":\"a,\\\"\\u001b\",\"next\":null,\"lag_ms\":null,\"is_open\":false,\"since\":null,\"partitions\":[]}\n",
    );
    check(
        &table,
        Format::Csv,
        true,
        "topic,next,lag_ms,is_open,since,partitions\n\
         quakes,1707,7505000,true,1970-01-01T00:00:00.000Z,\"0,2\"\n\
         \"a,\"\"\x1b\",,,false,,\"\"\n",
    );
    check(
        &table,
        Format::Csv,
        false,
        "quakes,1707,7505000,true,1970-01-01T00:00:00.000Z,\"0,2\"\n\"a,\"\"\x1b\",,,false,,\"\"\n",
    );
}

#[test]
fn json_is_one_array() {
    let mut out = Vec::new();
    table().write(&mut out, Format::Json, true).unwrap();
    let rows: Vec<Map<String, Value>> = serde_json::from_slice(&out).unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["next"], 1707);
    assert_eq!(rows[1]["next"], Value::Null);
}

#[test]
fn a_table_without_rows() {
    let table = Table::new(COLUMNS);
    assert!(table.is_empty());
    check(&table, Format::Text, true, "TOPIC  NEXT  LAG(time)\n");
    check(&table, Format::Text, false, "");
    check(&table, Format::Json, true, "[]\n");
    check(&table, Format::Jsonl, true, "");
    check(&table, Format::Csv, false, "");
}
