use std::fs;

use crate::process::folder;
use crate::script::check_in;

#[test]
fn what_was_lost_and_what_is_twice_is_named() {
    let dir = folder(1);
    check_in(
        &dir,
        "
        $ run -t t -g g -q --out file:out --max 8 -- sh copy.sh
        $ check -g g --out file:out
        > 2 unfinished: ['t/0/8-9']
        > lost: [] | handled twice: []
        $ check -g g --out file:out --drained
        > 2 unfinished: ['t/0/8-9']
        > lost: [] | handled twice: []
        ! error: the check failed: 2 unfinished
        = 1
        $ check -g h --out file:out
        ! error: out holds the effects of group 'g', not of 'h'
        = 4
        $ check -g g --out file:nothing
        ! error: there is no file nothing
        = 3
        $ check -g g --out stdout
        ! error: --out stdout keeps nothing that could be checked
        ! hint: [..]
        = 2
        ",
    );
    // Somebody edits the file: the third line goes, and the fifth comes twice.
    let path = dir.path().join("out");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let edited = [&lines[..2], &lines[3..5], &lines[4..]].concat().join("\n") + "\n";
    fs::write(&path, edited).unwrap();
    check_in(
        &dir,
        "
        $ check -g g --out file:out
        > 2 unfinished: ['t/0/8-9']
        > lost: ['t/0/2'] | handled twice: ['t/0/4']
        ! error: the check failed: 1 lost, 1 handled twice
        = 1
        ",
    );
    fs::write(&path, "").unwrap();
    check_in(
        &dir,
        "
        $ check -g g --out file:out
        > 2 unfinished: ['t/0/8-9']
        > lost: ['t/0/0-7'] | handled twice: []
        ! out is [..] bytes shorter than it was written: it was cut or exchanged
        ! error: the check failed: 8 lost
        = 1
        ",
    );
}

/// What is written and not saved yet is nobody's effect: the next run cuts it.
#[test]
fn a_tail_that_is_not_saved_is_not_judged() {
    let dir = folder(1);
    check_in(
        &dir,
        "$ run -t t -g g -q --out file:out --max 8 -- sh copy.sh\nappend out '{\"key\":\"k8\",\"left'",
    );
    check_in(
        &dir,
        "
        $ check -g g --out file:out
        > 2 unfinished: ['t/0/8-9']
        > lost: [] | handled twice: []
        ! the last 17 bytes of out are not saved and not judged; the next run cuts them
        $ run -t t -g g --out file:out --until-end -- sh copy.sh
        ! [..]
        ! out: cut 17 bytes that were written and not saved
        ! t/0 starts at offset 8
        ! nothing left: 2 handled, 2 written
        ! t/0 goes on at offset 10
        $ check -g g --out file:out --drained
        > nothing left
        > lost: [] | handled twice: []
        ",
    );
}

/// Effects of any other program: a line is the key of its event.
#[test]
fn a_file_that_run_did_not_write_names_events_by_their_keys() {
    let dir = folder(1);
    check_in(
        &dir,
        r"
        $ consume t -g g -q -n 4 -f ''
        write effects 'k0\nk1\nk1\nk3\n'
        $ check -g g --out file:effects
        > 6 unfinished: [..]
        > lost: ['k2'] | handled twice: ['k1']
        ! error: the check failed: 1 lost, 1 handled twice
        = 1
        ",
    );
}

#[test]
fn without_effects_only_the_offsets_are_judged() {
    let dir = folder(1);
    check_in(
        &dir,
        "
        $ run -t t -g g -q --out file:out --max 8 -- sh copy.sh
        $ check -g g
        > TOPIC  PARTITION  NEXT  END  UNFINISHED  DELETED-UNREAD  AHEAD-OF-END
        > t              0     8   10           2               0             0
        > 2 unfinished
        ! what was lost or handled twice can only be told from the effects: name them with --out file:PATH
        $ check -g g --drained -q --format csv --no-headers
        > t,0,8,10,2,0,0
        ! error: the check failed: 2 unfinished
        = 1
        $ topics trim t -o 9 -q --noconfirm
        $ check -g g -q --format csv --no-headers
        > t,0,8,10,1,1,0
        $ run -t t -g g -q --out file:out --until-end -- sh copy.sh
        ! error: t/0: offset 8 cannot be read: deleted before they were handled
        ! to skip them, and have that in the group's history: --on-gap earliest
        = 4
        $ run -t t -g g -q --out file:out --until-end --on-gap earliest -- sh copy.sh
        $ groups history g -n 2 --format csv --no-headers
        > [..],8,9,reset,1,[..],--on-gap earliest: skips offset 8,[..]
        > [..],9,10,commit,1,[..]
        ",
    );
}

/// A handler that writes into a file, or a database, of its own, under its own names.
#[test]
fn effects_under_names_of_ones_own_are_compared_by_a_template() {
    let dir = folder(1);
    let effects: Vec<String> = (0..9).map(|n| format!("{{\"order\":\"k{n}\",\"id\":\"k{n}\"}}")).collect();
    fs::write(dir.path().join("mine"), effects.join("\n") + "\nk9\nk4\n").unwrap();
    check_in(
        &dir,
        "
        $ run -t t -g g -q --until-end --out topic:u -- sh copy.sh
        $ check -g g --out file:mine --id {id}
        > nothing left
        > lost: [] | handled twice: ['k4']
        ! error: the check failed: 1 handled twice
        = 1
        ",
    );
}

#[test]
fn the_log_is_held_against_the_truth_that_somebody_has_elsewhere() {
    let dir = folder(1);
    let names = |range: std::ops::Range<u32>| range.map(|n| format!("k{n}")).collect::<Vec<_>>().join("\n");
    fs::write(dir.path().join("all"), names(0..10)).unwrap();
    fs::write(dir.path().join("more"), names(1..12) + "\n").unwrap();
    check_in(
        &dir,
        r#"
        $ run -t t -g g -q --out file:out --until-end -- sh copy.sh
        $ check -g g --out file:out --expect all --id id
        > expected: 10 events, and the log has 10 with a name
        > not in the log: [] | in it too often: []
        > nothing left
        > lost: [] | handled twice: []
        $ check -g g --out file:out --expect more
        > expected: 11 events, and the log has 10 with a name
        > not expected: 1 events, the first ['k0']
        > not in the log: ['k10', 'k11'] | in it too often: []
        > nothing left
        > lost: [] | handled twice: []
        ! error: the check failed: 2 not in the log, 1 not expected
        = 1
        $ produce t -q --key-field id <<< '{"id":"k3"}\n'
        $ check -g g --out file:out --expect all
        > expected: 10 events, and the log has 11 with a name
        > not in the log: [] | in it too often: ['k3']
        > 1 unfinished: ['t/0/10']
        > lost: [] | handled twice: []
        ! error: the check failed: 1 in the log too often
        = 1
        $ check -g g --out file:out --id id
        ! error: out names the place of each event; --id is for files of your own
        ! hint: leave --id away, or name a file with --expect
        = 2
        $ check -g g --out file:out --expect nothing
        ! error: cannot open nothing: No such file or directory (os error 2)
        = 2
        $ check -g g --out file:out --expect ten
        ! error: ten line 1 names no event: no leftoff_id, and no id template was given
        ! hint: a line is a name, or with --id a JSON object that has the fields
        = 2
        $ check -g g --out file:out --expect ten --id shop.number
        ! error: ten line 1 names no event: no id where the template looks
        ! hint: [..]
        = 2
        "#,
    );
}

/// More events without a name than with one; and one of two equal events that is missing.
#[test]
fn an_expectation_counts_equal_names_and_survives_events_without_one() {
    let dir = folder(1);
    fs::write(dir.path().join("two"), "k1\nk1\nk2\n").unwrap();
    fs::write(dir.path().join("one"), "x\n").unwrap();
    check_in(
        &dir,
        r#"
        $ topics create u -q
        $ produce u -q --key-field id <<< '{"id":"k1"}\n{"id":"k2"}\n'
        $ run -t u -g g -q --out file:out --until-end -- sh copy.sh
        $ check -g g --out file:out --expect two
        > expected: 3 events, and the log has 2 with a name
        > in the log too rarely: ['k1']
        > not in the log: [] | in it too often: []
        > nothing left
        > lost: [] | handled twice: []
        ! error: the check failed: 1 in the log too rarely
        = 1
        $ check -g g --out file:out --expect one --id nosuch
        > expected: 1 events, and the log has 0 with a name
        > cannot tell: 2 events of the log have no name
        > not in the log: ['x'] | in it too often: []
        > nothing left
        > lost: [] | handled twice: []
        ! error: the check failed: 1 not in the log
        = 1
        "#,
    );
}
