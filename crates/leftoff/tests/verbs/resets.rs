//! Resets of groups whose place keeps the offset: they wait for the next run, which takes them there once.

use std::fs;

use crate::process::folder;
use crate::script::check_in;

#[cfg(feature = "sqlite")]
const PLACES: &[(&str, &str)] = &[
    ("file:out", "their lines are appended again"),
    ("sqlite:db", "their rows are deleted and written again"),
];
#[cfg(not(feature = "sqlite"))]
const PLACES: &[(&str, &str)] = &[("file:out", "their lines are appended again")];

/// A script with `{OUT}`, `{KIND}` and `{AGAIN}`, for each place that keeps an offset.
fn check(script: &str) {
    for (out, again) in PLACES {
        let dir = folder(1);
        let kind = out.split_once(':').unwrap().0;
        check_in(&dir, &script.replace("{OUT}", out).replace("{AGAIN}", again).replace("{KIND}", kind));
    }
}

#[test]
fn a_reset_back_is_shown_as_waiting_and_handled_again_by_decision() {
    check(
        r#"
        $ run -t t -g g -q --out {OUT} --until-end -- sh copy.sh
        $ groups reset g -t t --to-offset 4 --execute --format csv --no-headers
        > t,0,10,4,6,0,{AGAIN}; it reaches {KIND}:[..] with the next run,4,9,,,0,0,0
        ! moved 1 partition
        $ groups describe g --no-headers
        > g  t  0  9  10  10  0  -  -  {KIND}:[..] (a reset to 4 waits for the next run)
        $ run -t t -g g --out {OUT} --explain --no-headers --format csv
        > t,0,4,10,reset --to-offset 4 reaches {OUT}: goes back from offset 10 to offset 4: offsets 4 to 9 (6) come again,{OUT},exactly once
        $ run -t t -g g --out {OUT} --max 2 -- sh copy.sh
        ! {OUT}: exactly once: [..]
        ! t/0: reset --to-offset 4 reaches {OUT}: goes back from offset 10 to offset 4: offsets 4 to 9 (6) come again
        ! t/0 starts at offset 4
        ! stopped after --max events: 2 handled, 2 written
        ! t/0 goes on at offset 6
        $ groups describe g --no-headers
        > g  t  0  5  6  10  4  [..]  -  {KIND}:[..]
        $ run -t t -g g -q --out {OUT} --until-end -- sh copy.sh
        "#,
    );
}

#[test]
fn what_is_handled_again_by_decision_is_no_fault_and_once_in_a_database() {
    let script = "
        $ run -t t -g g -q --out {OUT} --until-end -- sh copy.sh
        $ groups reset g -t t --to-offset 8 -q --execute --format csv --no-headers
        > t,0,10,8,2,0,[..]
        $ run -t t -g g -q --out {OUT} --until-end -- sh copy.sh
        $ groups reset g -t t --to-offset 7 -q --execute --format csv --no-headers
        > t,0,10,7,3,0,[..]
        $ run -t t -g g -q --out {OUT} --max 2 -- sh copy.sh";
    check(script);
    let dir = folder(1);
    check_in(&dir, &script.replace("{OUT}", "file:out"));
    check_in(
        &dir,
        "
        $ check -g g --out file:out
        > handled again by decision: ['t/0/7-8']
        > 1 unfinished: ['t/0/9']
        > lost: [] | handled twice: []
        ",
    );
    // One line more than was decided is a fault all the same.
    let out = fs::read_to_string(dir.path().join("out")).unwrap();
    assert_eq!(out.lines().count(), 10 + 2 + 2);
    #[cfg(feature = "sqlite")]
    {
        let dir = folder(1);
        check_in(&dir, &script.replace("{OUT}", "sqlite:db"));
        check_in(
            &dir,
            "
            $ check -g g --out sqlite:db
            > 1 unfinished: ['t/0/9']
            > lost: [] | handled twice: []
            ",
        );
        let rows = rusqlite::Connection::open(dir.path().join("db")).unwrap();
        let count: i64 = rows.query_row("SELECT count(*) FROM leftoff_events", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 9, "rows are those of the events below the offset");
    }
}

#[test]
fn a_reset_forward_is_a_decision_to_skip_in_the_place() {
    check(
        r#"
        $ run -t t -g g -q --out {OUT} --max 3 -- sh copy.sh
        $ groups reset g -t t --to-offset 6 -q --execute --format csv --no-headers
        > t,0,3,6,0,3,reaches {KIND}:[..] with the next run,,,3,5,0,0,0
        $ run -t t -g g -q --out {OUT} --until-end -- sh copy.sh
        $ check -g g --out {OUT} --drained
        > skipped by decision: ['t/0/3-5']
        > nothing left
        > lost: [] | handled twice: []
        "#,
    );
}

#[test]
fn a_reset_that_waits_can_be_taken_back_or_replaced() {
    check(
        r#"
        $ run -t t -g g -q --out {OUT} --until-end -- sh copy.sh
        $ groups reset g -t t --to-offset 4 -q --execute --format csv --no-headers
        > t,0,10,4,6,0,[..]
        $ groups undo g --execute --format csv --no-headers
        > t,0,10,10,0,0,takes an earlier one back before it reaches {KIND}:[..] with the next run,,,,,0,0,0
        ! moved 1 partition
        $ run -t t -g g -q --out {OUT} --until-end -- sh copy.sh
        $ check -g g --out {OUT} --drained
        > nothing left
        > lost: [] | handled twice: []
        $ groups reset g -t t --to-offset 4 -q --execute --format csv --no-headers
        > t,0,10,4,6,0,[..]
        $ groups reset g -t t --to-offset 9 -q --execute --format csv --no-headers
        > t,0,10,9,1,0,[..]
        $ run -t t -g g -q --out {OUT} --until-end -- sh copy.sh
        $ groups undo g --format csv --no-headers
        > t,0,10,10,0,0,stays where it is,,,,,0,0,0
        ! nothing was moved; add --execute to do it
        "#,
    );
}

/// It was asked for where the effects are; another place has its own way to begin.
#[test]
fn a_reset_reaches_no_other_place_than_the_one_that_it_was_asked_for() {
    check(
        r#"
        $ run -t t -g g -q --out {OUT} --until-end -- sh copy.sh
        $ groups reset g -t t --to-offset 4 -q --execute --format csv --no-headers
        > t,0,10,4,6,0,[..]
        $ run -t t -g g -q --out file:other --until-end -- sh copy.sh
        ! error: file:other holds nothing for t/0, yet the group has saved offset 4 (next to read) for it
        ! either the state [..]
        ! to go on: [..]
        ! hint: --on-lost-state group goes on where the group says
        = 4
        $ run -t t -g g -q --out {OUT} --until-end -- sh copy.sh
        $ groups describe g --no-headers
        > g  t  0  9  10  10  0  -  -  {KIND}:[..]
        "#,
    );
}
