//! `run --out sqlite:FILE` and what the other verbs say of it.
#![cfg(feature = "sqlite")]

use rusqlite::Connection;

use crate::process::folder;
use crate::script::check_in;

#[test]
fn rows_go_to_tables_and_the_audit_finds_them_there() {
    let dir = folder(1);
    let database = Connection::open(dir.path().join("db")).unwrap();
    database.execute_batch("CREATE TABLE odd (key TEXT PRIMARY KEY, leftoff_id TEXT)").unwrap();
    check_in(
        &dir,
        r#"
        $ run -t t -g g --out sqlite:db --require exactly-once --until-end -- sh rows.sh
        ! sqlite:db: exactly once: each event's rows are in the database once
        ! t/0: --on-no-offset earliest: starts at offset 0
        ! t/0 starts at offset 0
        ! nothing left: 10 handled (1 filtered), 9 written
        ! t/0 goes on at offset 10
        $ check -g g --out sqlite:db --drained
        > filtered: ['t/0/0']
        > nothing left
        > lost: [] | handled twice: []
        $ groups describe g --no-headers
        > g  t  0  9  10  10  0  -  -  sqlite:[..]/db
        $ run -t t -g late -q --out sqlite:db?table=late --on-no-offset latest --until-end -- sh rows.sh
        $ check -g late --out sqlite:db --drained
        > skipped by decision: ['t/0/0-9']
        > nothing left
        > lost: [] | handled twice: []
        $ run -t t -g new --out sqlite:db --explain
        > sqlite:db
        >   promise     exactly once
        >   that is     each event's rows are in the database once
        >   how         [..]
        >   goes on by  the table leftoff_offsets in the same file
        >   left over   [..]
        >
        > TOPIC  PARTITION  STARTS-AT  END  WHY
        > t              0          0   10  --on-no-offset earliest: starts at offset 0
        "#,
    );
    let count = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM leftoff_events"), 4);
    assert_eq!(count("SELECT count(*) FROM odd"), 5);
}

#[test]
fn what_is_lost_or_twice_is_named() {
    let dir = folder(1);
    check_in(&dir, "$ run -t t -g g -q --out sqlite:db --until-end -- sh copy.sh");
    let database = Connection::open(dir.path().join("db")).unwrap();
    let change = "DELETE FROM leftoff_events WHERE \"offset\" = 3;
        CREATE TABLE copy (leftoff_id TEXT); INSERT INTO leftoff_tables VALUES ('g', 'copy', 'rows');
        INSERT INTO copy SELECT topic_id || '/0/5/0' FROM leftoff_offsets";
    database.execute_batch(change).unwrap();
    check_in(
        &dir,
        "
        $ check -g g --out sqlite:db
        > nothing left
        > lost: ['t/0/3'] | handled twice: ['t/0/5']
        ! error: the check failed: 1 lost, 1 handled twice
        = 1
        $ check -g h --out sqlite:db
        ! error: group 'h' never wrote to db
        ! hint: `leftoff groups describe h` shows where its offsets and effects are
        = 4
        $ check -g g --out sqlite:none
        ! error: there is no file none
        = 3
        ",
    );
}

#[test]
fn a_row_that_the_database_refuses_stops_the_run_before_its_event() {
    let dir = folder(1);
    let database = Connection::open(dir.path().join("db")).unwrap();
    database.execute_batch("CREATE TABLE odd (key TEXT PRIMARY KEY CHECK (key <> 'k3'))").unwrap();
    check_in(
        &dir,
        r#"
        $ run -t t -g g --out sqlite:db --save every=100 --until-end -- sh rows.sh
        ! sqlite:db: [..]
        ! t/0: [..]
        ! t/0 starts at offset 0
        ! stopped by a failure: 3 handled (1 filtered), 2 written, 1 failed attempt
        ! t/0 goes on at offset 3
        ! error: t/0 offset 3 was not handled: record 0 of the answer: table "odd" refuses it: CHECK constraint failed: key <> 'k3'
        !   key:   k3
        !   value: {"id":"k3"}
        ! everything before it is saved, nothing past it; once the cause is mended, the same command goes on with this event
        ! hint: to try it more often: --on-fail retry; to pass it by: --on-fail skip; to keep it for later: --on-fail dlq
        = 1
        "#,
    );
    let keys: Vec<String> = {
        let mut select = database.prepare("SELECT key FROM odd").unwrap();
        select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(keys, ["k1"]);
}

#[test]
fn a_database_that_is_gone_or_foreign_is_no_beginning() {
    let dir = folder(1);
    check_in(
        &dir,
        "
        $ run -t t -g g -q --out sqlite:db --max 4 -- sh copy.sh
        $ run -t t -g g -q --out sqlite:other -- sh copy.sh
        ! error: sqlite:other holds nothing for t/0, yet the group has saved offset 4 (next to read) for it
        ! either the state beside the output was lost, or this output is new to a group that has worked before
        ! to go on: bring the lost files back, use a new group, or allow to start where the group says
        ! hint: --on-lost-state group goes on where the group says
        = 4
        $ run -t t -g g -q --out sqlite:ten -- sh copy.sh
        ! error: ten is not an SQLite database; name another file
        = 4
        $ check -g g --out sqlite:ten
        ! error: ten is not an SQLite database; name another file
        = 4
        $ run -t t -g g -q --out sqlite:db --until-end -- sh copy.sh
        $ check -g g --out sqlite:db --drained
        > nothing left
        > lost: [] | handled twice: []
        ",
    );
}

#[test]
fn what_was_produced_twice_is_handled_once() {
    let dir = folder(2);
    check_in(
        &dir,
        r#"
        $ produce t -q --key-field id <<< '{"id":"k1"}\n{"id":"k2"}\n{"id":"k1"}\n'
        $ run -t t -g g -q --out sqlite:db --dedupe key --max 4 -- sh copy.sh
        $ run -t t -g g --out sqlite:db --dedupe key --until-end -- sh copy.sh
        ! sqlite:db: exactly once: [..]
        ! t/0 starts at [..]
        ! t/1 starts at [..]
        ! nothing left: 6 handled, 6 written, 3 absorbed
        ! t/0 goes on [..]
        ! t/1 goes on [..]
        $ check -g g --out sqlite:db --drained
        > absorbed: [[..]]
        > nothing left
        > lost: [] | handled twice: []
        $ run -t t -g h -q --out sqlite:db --dedupe json:id --until-end -- sh copy.sh
        $ check -g h --out sqlite:db --drained
        > absorbed: [[..]]
        > nothing left
        > lost: [] | handled twice: []
        $ run -t t -g g --out topic:out --dedupe key -- sh copy.sh
        ! error: --dedupe cannot be used with topic:out: it keeps what came of each event, and not the ids of events
        ! hint: --out sqlite:FILE and --out postgres://… keep ids, rows and offset in one transaction
        = 4
        $ run -t t -g g --dedupe key --explain
        ! error: --dedupe cannot be used with stdout: nothing there keeps the ids of events
        ! hint: --out sqlite:FILE and --out postgres://… keep ids, rows and offset in one transaction
        = 4
        "#,
    );
    let database = Connection::open(dir.path().join("db")).unwrap();
    for group in ["g", "h"] {
        let sql = "SELECT count(*), count(DISTINCT record) FROM leftoff_events WHERE \"group\" = ?1";
        let count = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        assert_eq!(database.query_row(sql, [group], count).unwrap(), (10, 10), "{group}");
    }
}
