#![allow(clippy::unwrap_used)]

use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::handler::Record;
use crate::sink::{GaveUp, LastEvent, Mark};
use crate::testing::{at, id, next};

mod kills;

/// In memory where the system offers that: no disk needs to be waited for.
fn tempdir() -> io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }
}

fn sink(folder: &Path) -> SqliteSink {
    SqliteSink::new(folder.join("db"), None, "g")
}

fn claimed(folder: &Path) -> SqliteSink {
    let mut sink = sink(folder);
    sink.claim(&[claim_of(0), claim_of(1)]).unwrap();
    sink
}

fn claim_of(partition: i32) -> ClaimPartition {
    ClaimPartition { id: id(partition), topic: "quakes".to_owned() }
}

/// Records separated by blanks, `-` for none, `f` for filtered.
fn output(partition: i32, offset: i64, text: &str) -> Output {
    let record = |json: &str| Record::from_json(json.to_owned()).unwrap();
    let outcome = match text {
        "f" => Outcome::Filtered,
        "-" => Outcome::Handled { records: Vec::new() },
        text => Outcome::Handled { records: text.split(' ').map(record).collect() },
    };
    Output { id: id(partition), offset: at(offset), event_id: None, outcome }
}

fn moved(partition: i32, expected: Option<i64>, to: i64) -> Move {
    Move {
        id: id(partition),
        expected: expected.map(next),
        next: next(to),
        leader_epoch: -1,
        skips: None,
        mark: Mark::default(),
    }
}

/// Checks and writes, as the runner does.
fn put(sink: &mut SqliteSink, outputs: &[Output], moves: &[Move]) -> Written {
    outputs.iter().for_each(|output| sink.check(output).unwrap());
    sink.write(outputs, moves).unwrap()
}

fn sql(folder: &Path, sql: &str) {
    Connection::open(folder.join("db")).unwrap().execute_batch(sql).unwrap();
}

/// Rows of a query, the columns separated by blanks.
fn rows(folder: &Path, sql: &str) -> Vec<String> {
    let connection = Connection::open(folder.join("db")).unwrap();
    let mut select = connection.prepare(sql).unwrap();
    let columns = select.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let cell = |column| match row.get_ref(column).unwrap() {
            rusqlite::types::ValueRef::Null => "null".to_owned(),
            rusqlite::types::ValueRef::Integer(number) => number.to_string(),
            rusqlite::types::ValueRef::Real(number) => format!("{number:?}"),
            rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            rusqlite::types::ValueRef::Blob(_) => "blob".to_owned(),
        };
        Ok((0..columns).map(cell).collect::<Vec<_>>().join(" "))
    };
    select.query_map([], row).unwrap().map(Result::unwrap).collect()
}

const EVENTS: &str = "SELECT partition, \"offset\", n, record FROM leftoff_events ORDER BY 1, 2, 3";
const OFFSETS: &str = "SELECT partition, next, epoch FROM leftoff_offsets ORDER BY 1";
const OUTCOMES: &str = "SELECT partition, first, last, kind || coalesce(' ' || attempts || ' ' || why, '') FROM leftoff_outcomes ORDER BY 1, 2";

#[test]
fn what_the_database_holds() {
    let folder = tempdir().unwrap();
    let mut sink = claimed(folder.path());
    let first = [output(0, 0, "{\"a\":1} 2"), output(0, 1, "f"), output(1, 5, "-"), output(0, 2, "f")];
    let written = put(&mut sink, &first, &[moved(0, None, 3), moved(1, None, 6)]);
    assert_eq!(written, Written::Written);
    put(&mut sink, &[output(0, 3, "f"), output(0, 4, "\"x\"")], &[moved(0, Some(3), 5)]);
    let skipping = Move { skips: Some((at(5), at(9))), ..moved(0, Some(5), 9) };
    put(&mut sink, &[], &[skipping]);
    assert_eq!(rows(folder.path(), EVENTS), ["0 0 0 {\"a\":1}", "0 0 1 2", "0 4 0 \"x\""]);
    assert_eq!(rows(folder.path(), OFFSETS), ["0 9 1", "1 6 1"]);
    assert_eq!(rows(folder.path(), OUTCOMES), ["0 1 3 filtered", "0 5 8 skipped", "1 5 5 handled"]);
    assert_eq!(rows(folder.path(), "PRAGMA journal_mode"), ["wal"]);
    sink.close().unwrap();

    let mut again = self::sink(folder.path());
    let claimed = again.claim(&[claim_of(0), claim_of(1), claim_of(2)]).unwrap();
    let expect = [(id(0), Some(next(9))), (id(1), Some(next(6))), (id(2), None)];
    assert!(claimed.authority);
    assert_eq!(claimed.next.into_iter().collect::<Vec<_>>(), expect);
    assert_eq!(rows(folder.path(), OFFSETS), ["0 9 2", "1 6 2", "2 null 1"]);

    let reader = SqliteReader::open(&folder.path().join("db"), "g").unwrap().unwrap();
    assert_eq!(reader.next().unwrap().into_iter().collect::<Vec<_>>(), [(id(0), next(9)), (id(1), next(6))]);
    let ids: Vec<String> = reader.effects().unwrap().map(|effect| effect.unwrap().id).collect();
    let topic = id(0).topic_id;
    assert_eq!(ids, [format!("{topic}/0/0/0"), format!("{topic}/0/0/1"), format!("{topic}/0/4/0")]);
    assert_eq!(reader.outcome_lines().unwrap().lines().count(), 3);
    let other = SqliteReader::open(&folder.path().join("db"), "other").unwrap().unwrap();
    assert!(!other.is_claimed().unwrap());
    assert_eq!(other.effects().unwrap().count(), 0);
}

#[test]
fn records_name_tables_and_columns() {
    let folder = tempdir().unwrap();
    sql(
        folder.path(),
        "CREATE TABLE plain (a, b); CREATE TABLE known (a, leftoff_id TEXT, leftoff_group TEXT)",
    );
    let mut sink = claimed(folder.path());
    let all = r#"{"table":"plain","row":{"a":[1,{"b":2}],"b":true}} {"table":"plain","row":{"b":1.50}} {"table":"plain","row":{"a":18446744073709551615,"b":null}}"#;
    let known =
        r#"{"table":"known","row":{"a":"x"}} {"table":"plain","row":{}} {"table":"known","row":{},"more":1}"#;
    let outputs = [output(0, 0, all), output(0, 1, known), output(0, 2, "7")];
    put(&mut sink, &outputs, &[moved(0, None, 3)]);
    assert_eq!(
        rows(folder.path(), "SELECT * FROM plain"),
        ["[1,{\"b\":2}] 1", "null 1.5", "18446744073709551615 null", "null null"]
    );
    let topic = id(0).topic_id;
    assert_eq!(rows(folder.path(), "SELECT * FROM known"), [format!("x {topic}/0/1/0 g")]);
    assert_eq!(rows(folder.path(), EVENTS), ["0 1 2 {\"table\":\"known\",\"row\":{},\"more\":1}", "0 2 0 7"]);
    // Nothing tells whose the rows of `plain` are.
    assert_eq!(rows(folder.path(), OUTCOMES), ["0 0 0 handled"]);
    let reader = SqliteReader::open(&folder.path().join("db"), "g").unwrap().unwrap();
    let ids: Vec<String> = reader.effects().unwrap().map(|effect| effect.unwrap().id).collect();
    assert_eq!(ids, ["1/0", "1/2", "2/0"].map(|place| format!("{topic}/0/{place}")));
}

#[test]
fn a_row_that_is_refused_is_the_failure_of_its_event_alone() {
    let folder = tempdir().unwrap();
    sql(folder.path(), "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL CHECK (b <> 'no')) STRICT");
    let mut sink = claimed(folder.path());
    let row = |a: &str, b: &str| format!(r#"{{"table":"t","row":{{"a":{a},"b":"{b}"}}}}"#);
    let good = output(0, 0, &row("1", "yes"));
    sink.check(&good).unwrap();
    let table = [
        (row("1", "again"), "table \"t\" refuses it: UNIQUE constraint failed: t.a"),
        (row("2", "no"), "table \"t\" refuses it: CHECK constraint failed"),
        (row("\"x\"", "y"), "table \"t\" refuses it: "),
        (
            r#"{"table":"t","row":{"a":3}}"#.to_owned(),
            "table \"t\" refuses it: NOT NULL constraint failed: t.b",
        ),
        (
            r#"{"table":"t","row":{"c":3}}"#.to_owned(),
            "table \"t\" refuses it: table t has no column named c",
        ),
        (r#"{"table":"u","row":{"c":3}}"#.to_owned(), "there is no table \"u\": make it with CREATE TABLE"),
        (r#"{"table":7,"row":{}}"#.to_owned(), "its table is 7, not a name"),
        (r#"{"table":"t","row":7}"#.to_owned(), "its row is not an object"),
        (
            r#"{"table":"leftoff_offsets","row":{}}"#.to_owned(),
            "table \"leftoff_offsets\" is not the handler's",
        ),
        (r#"{"table":"t","row":{"leftoff_id":"x"}}"#.to_owned(), "its row has a column \"leftoff_id\""),
    ];
    for (bad, expect) in table {
        // The record before the bad one goes with it.
        let refused = sink.check(&output(0, 1, &format!("{} {bad}", row("9", "first")))).unwrap_err();
        assert_eq!(refused.number, 1);
        assert!(refused.why.starts_with(expect), "{bad}\n is {}\nnot {expect}", refused.why);
    }
    let after = output(0, 2, &row("2", "yes"));
    sink.check(&after).unwrap();
    assert_eq!(sink.write(&[good, after], &[moved(0, None, 3)]).unwrap(), Written::Written);
    assert_eq!(rows(folder.path(), "SELECT * FROM t"), ["1 yes", "2 yes"]);
}

#[test]
fn an_event_that_was_given_up_has_a_range_of_its_own() {
    let folder = tempdir().unwrap();
    let mut sink = claimed(folder.path());
    let given_up = |offset, attempts| Output {
        outcome: Outcome::Skipped(GaveUp { attempts, why: "no such place".to_owned() }),
        ..output(0, offset, "-")
    };
    let outputs = [output(0, 0, "f"), given_up(1, 3), given_up(2, 1)];
    put(&mut sink, &outputs, &[moved(0, None, 3)]);
    put(&mut sink, &[], &[Move { skips: Some((at(3), at(5))), ..moved(0, Some(3), 5) }]);
    assert_eq!(
        rows(folder.path(), OUTCOMES),
        ["0 0 0 filtered", "0 1 1 skipped 3 no such place", "0 2 2 skipped 1 no such place", "0 3 4 skipped"]
    );
}

fn with_id(output: Output, event_id: &str) -> Output {
    Output { event_id: Some(event_id.as_bytes().to_vec()), ..output }
}

/// An id is known once its outcome is in the transaction, and forgotten with it.
#[test]
fn ids_are_kept_with_the_outcomes() {
    let folder = tempdir().unwrap();
    sql(folder.path(), "CREATE TABLE t (a INTEGER NOT NULL)");
    let mut sink = SqliteSink::new(folder.path().join("db"), None, "g").keeping_ids();
    assert_eq!(sink.claim(&[claim_of(0), claim_of(1)]).unwrap().notices, [""; 0]);
    let taken = |sink: &SqliteSink, partition, offset, event_id: &str| {
        sink.has_taken(id(partition), at(offset), event_id.as_bytes()).unwrap()
    };
    let first = with_id(output(0, 0, "1"), "a");
    assert!(!taken(&sink, 0, 0, "a"));
    sink.check(&first).unwrap();
    assert!(taken(&sink, 0, 1, "a") && taken(&sink, 1, 0, "a"), "at other places");
    assert!(!taken(&sink, 0, 0, "a") && !taken(&sink, 0, 1, "b"), "itself, and another");
    // A refused event leaves no id behind: its copy is handled.
    let refused = with_id(output(0, 1, r#"{"table":"t","row":{"a":null}}"#), "b");
    sink.check(&refused).unwrap_err();
    assert!(!taken(&sink, 0, 2, "b"));
    let absorbed = Output { outcome: Outcome::Absorbed, ..output(0, 1, "-") };
    let filtered = with_id(output(0, 2, "f"), "c");
    sink.check(&absorbed).unwrap();
    sink.check(&filtered).unwrap();
    sink.write(&[first, absorbed, filtered], &[moved(0, None, 3)]).unwrap();
    assert!(taken(&sink, 0, 9, "c"), "filtered is an outcome, too");
    assert_eq!(rows(folder.path(), OUTCOMES), ["0 1 1 absorbed", "0 2 2 filtered"]);
    // Checked, and never written.
    sink.check(&with_id(output(0, 3, "1"), "d")).unwrap();
    sink.close().unwrap();

    let mut again = SqliteSink::new(folder.path().join("db"), None, "g").keeping_ids();
    assert_eq!(again.claim(&[claim_of(0), claim_of(1)]).unwrap().notices, [""; 0]);
    assert!(taken(&again, 1, 0, "a") && !taken(&again, 1, 0, "d"));
    let mut other = SqliteSink::new(folder.path().join("db"), None, "other").keeping_ids();
    other.claim(&[claim_of(0)]).unwrap();
    assert!(!taken(&other, 0, 5, "a"), "of another group");
}

#[test]
fn events_that_were_taken_without_their_ids_are_named() {
    let folder = tempdir().unwrap();
    let mut without = claimed(folder.path());
    put(&mut without, &[output(0, 0, "1")], &[moved(0, None, 1)]);
    let mut sink = SqliteSink::new(folder.path().join("db"), None, "g").keeping_ids();
    assert_eq!(
        sink.claim(&[claim_of(0), claim_of(1)]).unwrap().notices,
        [
            "quakes/0: the events before offset 1 were taken without their ids: copies of them are not absorbed"
        ]
    );
}

/// Outcomes that were checked and are not written (their partition was taken away), or come in another order, are not there.
#[test]
fn only_what_is_written_is_there() {
    let folder = tempdir().unwrap();
    let mut sink = claimed(folder.path());
    let (a, b, c) = (output(0, 0, "1"), output(1, 0, "2"), output(0, 1, "3"));
    for output in [&a, &b, &c] {
        sink.check(output).unwrap();
    }
    sink.write(&[a, c], &[moved(0, None, 2)]).unwrap();
    sink.write(std::slice::from_ref(&b), &[moved(1, None, 1)]).unwrap();
    assert_eq!(rows(folder.path(), EVENTS), ["0 0 0 1", "0 1 0 3", "1 0 0 2"]);
    sink.check(&output(1, 1, "4")).unwrap();
    sink.close().unwrap();
    assert_eq!(rows(folder.path(), OFFSETS), ["0 2 1", "1 1 1"]);
    assert_eq!(rows(folder.path(), EVENTS).len(), 3);
}

#[test]
fn who_claimed_before_writes_nothing_any_more() {
    let folder = tempdir().unwrap();
    let mut old = claimed(folder.path());
    put(&mut old, &[output(0, 0, "1")], &[moved(0, None, 1)]);
    let mut new = self::sink(folder.path());
    assert_eq!(new.claim(&[claim_of(0)]).unwrap().next[&id(0)], Some(next(1)));
    let fenced = Written::Fenced { id: id(0) };
    // Partition 1 is still the old one's, but a write is all or nothing.
    let outputs = [output(1, 0, "2"), output(0, 1, "2")];
    assert_eq!(put(&mut old, &outputs, &[moved(1, None, 1), moved(0, Some(1), 2)]), fenced);
    assert_eq!(put(&mut new, &[output(0, 1, "3")], &[moved(0, Some(1), 2)]), Written::Written);
    assert_eq!(put(&mut new, &[output(0, 5, "3")], &[moved(0, Some(5), 6)]), fenced, "from elsewhere");
    assert_eq!(rows(folder.path(), EVENTS), ["0 0 0 1", "0 1 0 3"]);
    assert_eq!(rows(folder.path(), OFFSETS), ["0 2 2", "1 null 1"]);
}

#[test]
fn groups_share_a_file_and_its_tables() {
    let folder = tempdir().unwrap();
    for group in ["g", "h"] {
        let mut sink = SqliteSink::new(folder.path().join("db"), None, group);
        sink.claim(&[claim_of(0)]).unwrap();
        put(&mut sink, &[output(0, 0, "1")], &[moved(0, None, 1)]);
    }
    assert_eq!(rows(folder.path(), EVENTS).len(), 2);
    let reader = SqliteReader::open(&folder.path().join("db"), "h").unwrap().unwrap();
    assert_eq!(reader.effects().unwrap().count(), 1);
    let mut named = SqliteSink::new(folder.path().join("db"), Some("my \"t".to_owned()), "g");
    assert!(named.place().ends_with("db?table=my \"t"));
    named.claim(&[claim_of(1)]).unwrap();
    put(&mut named, &[output(1, 0, "1")], &[moved(1, None, 1)]);
    assert_eq!(rows(folder.path(), "SELECT record FROM \"my \"\"t\""), ["1"]);
    let reader = SqliteReader::open(&folder.path().join("db"), "g").unwrap().unwrap();
    assert_eq!(reader.effects().unwrap().count(), 2);
}

#[test]
fn another_writer_is_waited_for_and_named() {
    let folder = tempdir().unwrap();
    let mut sink = claimed(folder.path());
    let open = sink.claimed.as_ref().unwrap();
    open.connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    let other = Connection::open(folder.path().join("db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Not the event's fault: the write tells it.
    let output = output(0, 0, "1");
    sink.check(&output).unwrap();
    let error = sink.write(&[output], &[moved(0, None, 1)]).unwrap_err();
    let expect = format!("cannot write {}/db: another program keeps it locked", folder.path().display());
    assert!(error.to_string().starts_with(&expect), "{error}");
    let again = sink.write(&[], &[moved(0, None, 1)]).unwrap_err();
    assert!(again.to_string().contains("since a write failed"), "{again}");
    drop(other);
    assert_eq!(rows(folder.path(), OFFSETS), ["0 null 1", "1 null 1"]);
}

/// Missing and empty are a beginning (a group that has worked before is kept from it by its own offset), good goes on,
/// anything else is refused and stays as it is.
#[test]
fn what_is_not_ours_is_refused_and_not_changed() {
    let refused: [(&str, &str); 6] = [
        ("CREATE TABLE leftoff_offsets (a)", "table leftoff_offsets has the columns a, not those of Leftoff"),
        ("CREATE TABLE leftoff_meta (name, value)", "its format is missing, and this version knows 2"),
        (
            "CREATE TABLE leftoff_meta (name, value); INSERT INTO leftoff_meta VALUES ('format', '3')",
            "its format is 3, and this version knows 2",
        ),
        (
            "CREATE TABLE leftoff_events (a, b)",
            "table leftoff_events has the columns a, b, and records go to",
        ),
        ("CREATE TABLE leftoff_outcomes (a)", "table leftoff_outcomes has the columns a"),
        ("CREATE TABLE leftoff_tables (a)", "table leftoff_tables has the columns a"),
    ];
    for (make, expect) in refused {
        let folder = tempdir().unwrap();
        sql(folder.path(), make);
        let before = fs::read(folder.path().join("db")).unwrap();
        let error = sink(folder.path()).claim(&[claim_of(0)]).unwrap_err();
        assert!(matches!(error, SinkError::Refused(_)));
        assert!(error.to_string().contains(expect), "{make}: {error}");
        assert_eq!(fs::read(folder.path().join("db")).unwrap(), before, "{make}");
    }
    let folder = tempdir().unwrap();
    let foreign = "id,name\n1,x\n".repeat(100);
    fs::write(folder.path().join("db"), &foreign).unwrap();
    let error = sink(folder.path()).claim(&[claim_of(0)]).unwrap_err().to_string();
    assert!(error.contains("is not an SQLite database"), "{error}");
    assert!(SqliteReader::open(&folder.path().join("db"), "g").is_err());
    assert_eq!(fs::read_to_string(folder.path().join("db")).unwrap(), foreign);

    fs::write(folder.path().join("db"), "").unwrap();
    assert_eq!(sink(folder.path()).claim(&[claim_of(0)]).unwrap().next[&id(0)], None);
    assert!(SqliteReader::open(&folder.path().join("none"), "g").unwrap().is_none());
    let table = Some("leftoff_offsets".to_owned());
    assert!(SqliteSink::new(folder.path().join("db"), table, "g").claim(&[]).is_err());
}

/// A database of the user's, in its own journal mode, stays in it.
#[test]
fn a_database_that_is_there_keeps_its_mode_and_its_tables() {
    let folder = tempdir().unwrap();
    sql(folder.path(), "PRAGMA journal_mode = DELETE; CREATE TABLE mine (a); INSERT INTO mine VALUES (1)");
    let mut sink = claimed(folder.path());
    put(&mut sink, &[output(0, 0, "1")], &[moved(0, None, 1)]);
    assert_eq!(rows(folder.path(), "PRAGMA journal_mode"), ["delete"]);
    assert_eq!(rows(folder.path(), "SELECT * FROM mine"), ["1"]);
    let connection = &sink.claimed.as_ref().unwrap().connection;
    let synchronous: i64 = connection.query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap();
    assert_eq!(synchronous, 3, "EXTRA");
}

/// What runs made before marks were kept, as `sqlite3 .dump` shows it.
const FORMAT_1: &str = r#"
CREATE TABLE leftoff_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO leftoff_meta VALUES ('format', '1');
CREATE TABLE leftoff_offsets (
  "group" TEXT, topic_id TEXT, partition INTEGER, next INTEGER, epoch INTEGER NOT NULL,
  PRIMARY KEY ("group", topic_id, partition));
CREATE TABLE leftoff_outcomes (
  "group" TEXT, topic_id TEXT, partition INTEGER, first INTEGER, last INTEGER, kind TEXT NOT NULL,
  attempts INTEGER, why TEXT, PRIMARY KEY ("group", topic_id, partition, first));
CREATE TABLE leftoff_tables ("group" TEXT, name TEXT, kind TEXT NOT NULL, PRIMARY KEY ("group", name));
INSERT INTO leftoff_tables VALUES ('g', 'leftoff_events', 'events');
CREATE TABLE leftoff_events ("group" TEXT, topic_id TEXT, partition INTEGER, "offset" INTEGER,
  n INTEGER, record TEXT NOT NULL, PRIMARY KEY ("group", topic_id, partition, "offset", n));
INSERT INTO leftoff_offsets VALUES ('g', 'BwcHBwcHBwcHBwcHBwcHBw', 0, 812, 4);
"#;

#[test]
fn a_database_without_marks_is_read_and_goes_on_with_them() {
    let folder = tempdir().unwrap();
    sql(folder.path(), FORMAT_1);
    let path = folder.path().join("db");
    let reader = SqliteReader::open(&path, "g").unwrap().unwrap();
    assert_eq!((reader.next().unwrap()[&id(0)], reader.marks().unwrap().len()), (next(812), 0));
    drop(reader);
    let mut sink = sink(folder.path());
    let claimed = sink.claim(&[claim_of(0)]).unwrap();
    assert_eq!((claimed.next[&id(0)], claimed.marks[&id(0)]), (Some(next(812)), Mark::default()));
    assert_eq!(rows(folder.path(), "SELECT value FROM leftoff_meta"), ["2"]);
    // The highest fingerprint is no negative number, and a mark moves with its offset.
    let last = LastEvent { offset: at(812), fingerprint: u32::MAX };
    let mark = Mark { last: Some(last), reset: Some(at(3)) };
    put(&mut sink, &[output(0, 812, "f")], &[Move { mark, ..moved(0, Some(812), 813) }]);
    let reader = SqliteReader::open(&path, "g").unwrap().unwrap();
    assert_eq!(reader.marks().unwrap()[&id(0)], mark);
    drop(reader);
    sink.close().unwrap();
    assert_eq!(self::sink(folder.path()).claim(&[claim_of(0)]).unwrap().marks[&id(0)], mark);
}
