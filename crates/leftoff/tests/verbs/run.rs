use std::fs;

use crate::process::{Background, folder, kill, pid_in, stdout, until};
use crate::script::check_in;

#[test]
fn each_event_is_handled_once_and_a_second_run_goes_on() {
    let dir = folder(1);
    check_in(
        &dir,
        r#"
        $ run -t t -g g --out file:out --max 4 -- sh copy.sh
        ! file:out: exactly once: each event's lines are in the recovered file once
        ! t/0: --on-no-offset earliest: starts at offset 0
        ! t/0 starts at offset 0
        ! stopped after --max events: 4 handled, 4 written
        ! t/0 goes on at offset 4
        $ run -t t -g g --out file:out --until-end -- sh copy.sh
        ! file:out: exactly once: each event's lines are in the recovered file once
        ! t/0 starts at offset 4
        ! nothing left: 6 handled, 6 written
        ! t/0 goes on at offset 10
        $ run -t t -g g -q --out file:out --until-end -- sh copy.sh
        $ run -t t -g h -q --save every=100 --max 2 -- sh copy.sh
        > {"key":"k0","leftoff_id":"[..]/0/0/0"}
        > {"key":"k1","leftoff_id":"[..]/0/1/0"}
        $ run -t t -g h --until-end --on-gap earliest --save stop -q -- sh copy.sh
        > {"key":"k2",[..]
        > {"key":"k3",[..]
        > {"key":"k4",[..]
        > {"key":"k5",[..]
        > {"key":"k6",[..]
        > {"key":"k7",[..]
        > {"key":"k8",[..]
        > {"key":"k9",[..]
        "#,
    );
    let text = fs::read_to_string(dir.path().join("out")).unwrap();
    let keys: Vec<String> = text.lines().map(|line| line[8..10].to_owned()).collect();
    assert_eq!(keys, (0..10).map(|number| format!("k{number}")).collect::<Vec<_>>());
}

/// `WHAT THE HANDLER DOES => WHAT IS SAID OF IT`
const BAD_HANDLERS: &str = r#"
    exit    => the handler exited with code 3
    die     => the handler was killed by signal 9
    garbage => the handler wrote a line that is no answer: look here: k3
    error   => the handler reports: no such place
    half    => the handler exited with code 0; its last, unfinished line: {"id":"t/0/3#1.
    hang    => the handler gave no answer within 500ms and was killed
"#;

#[test]
fn a_bad_handler_stops_the_run_before_the_event_and_a_good_one_goes_on_with_it() {
    for case in BAD_HANDLERS.lines().filter(|line| !line.trim().is_empty()) {
        let (what, said) = case.split_once("=>").unwrap();
        let dir = folder(1);
        let output = crate::script::leftoff(dir.path())
            .args(["run", "-t", "t", "-g", "g", "--out", "file:out", "--handler-timeout", "500ms", "--"])
            .args(["sh", "bad_at.sh", "k3", what.trim()])
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        let expect = [
            format!("error: t/0 offset 3 was not handled: {}", said.trim()),
            "  key:   k3".to_owned(),
            r#"  value: {"id":"k3"}"#.to_owned(),
            "t/0 goes on at offset 3".to_owned(),
        ];
        for line in expect {
            assert!(stderr.contains(&line), "{what}: no {line:?} in {stderr}");
        }
        if what.trim() == "exit" {
            assert!(stderr.contains("t/0/3 | last words"), "{stderr}");
        }
        check_in(
            &dir,
            r"
            $ groups describe g --format csv --no-headers
            > g,t,0,2,3,10,7,[..],,file:[..]/out,[..]
            $ run -t t -g g -q --out file:out --until-end -- sh copy.sh
            $ check -g g --out file:out --drained
            > nothing left
            > lost: [] | handled twice: []
            ",
        );
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let dir = folder(1);
    check_in(
        &dir,
        r"
        $ run -t tt -g g -- sh copy.sh
        ! error: there is no topic [..]tt[..]
        ! hint: [..]
        = 3
        $ run -t t -g g -q -- no-such-command-anywhere
        ! error: cannot start the handler no-such-command-anywhere: [..]
        ! hint: the words behind -- are the command and its arguments
        = 1
        $ run -t t -g g -q --on-no-offset stop --out file:out -- sh copy.sh
        ! error: t/0: nothing is saved for the group; the log has offsets 0 to 9 (10)
        ! to start: --on-no-offset earliest or latest
        = 4
        $ run -t t -g g -q --on-no-offset latest --out file:out --until-end -- sh copy.sh
        $ run -t t -g g -q --out file:other --until-end -- sh copy.sh
        ! error: file:other holds nothing for t/0, yet the group has saved offset 10 (next to read) for it
        ! either the state beside the output was lost, or this output is new to a group that has worked before
        ! to go on: bring the lost files back, use a new group, or allow to start where the group says
        ! hint: --on-lost-state group goes on where the group says
        = 4
        $ run -t t -g g -q --out file:other --until-end --on-lost-state group -- sh copy.sh
        $ run -t t -g h -q --out file:out --until-end -- sh copy.sh
        ! error: out belongs to group g, not to h
        ! use another file for h, or run with -g g
        = 4
        ",
    );
}

#[test]
fn explain_tells_the_promise_and_the_start_and_does_nothing() {
    let dir = folder(2);
    check_in(
        &dir,
        r"
        $ run -t t -g g --out file:out --explain
        > file:out
        >   promise     exactly once
        >   that is     [..]
        >   how         [..]
        >   goes on by  [..]
        >   left over   [..]
        >
        > TOPIC  PARTITION  STARTS-AT  END  WHY
        > t              0          0  [..]  --on-no-offset earliest: starts at offset 0
        > t              1          0  [..]  --on-no-offset earliest: starts at offset 0
        $ run -t t -g g --explain --format csv --no-headers --on-no-offset stop
        > t,0,,[..],t/0: nothing is saved for the group[..],stdout,at least once
        > t,1,,[..],t/1: nothing is saved for the group[..],stdout,at least once
        ! error: t/0: nothing is saved for the group; [..]
        ! to start: --on-no-offset earliest or latest
        = 4
        $ groups ls --no-headers
        ",
    );
    assert!(!dir.path().join("out").exists());
}

#[test]
fn a_signal_stops_it_cleanly_while_others_write() {
    let dir = folder(1);
    let mut runner = Background::start(dir.path(), "run -t t -g g --out file:out -- sh copy.sh pid");
    check_in(
        &dir,
        "$ wait -g g -t t -q --timeout 60s\n$ produce t -q -k late <<< '1\\n2\\n'\n$ wait -g g -q --timeout 60s",
    );
    runner.signal("-INT");
    assert_eq!(runner.end(), Some(0));
    check_in(
        &dir,
        "
        $ groups ls --no-headers
        > g  idle  -  t  1  0
        $ check -g g --out file:out --drained
        > nothing left
        > lost: [] | handled twice: []
        ",
    );
}

/// A handler that outlives its runner would work beside the next one: it is waited for, and named.
#[test]
fn a_handler_that_was_left_behind_keeps_the_next_runner_out() {
    left_behind("");
    left_behind("--protocol-fd 3");
    left_behind("--exec-per-event");
}

fn left_behind(flags: &str) {
    let dir = folder(1);
    let mut runner =
        Background::start(dir.path(), &format!("run -t t -g g --out file:out {flags} -- sh deaf.sh pid"));
    let handler = pid_in(&dir.path().join("pid"));
    let pid = runner.0.id();
    runner.signal("-KILL");
    assert_eq!(runner.end(), None);
    let left = format!("pid {pid} (run, gone; its handler, pid {handler}, works on)");
    check_in(
        &dir,
        &format!(
            "
            $ run -t t -g g --out file:out --timeout 100ms -- sh copy.sh
            ! group 'g' is in use by {left}; waiting for its end
            ! error: group 'g' is in use by {left}
            ! hint: one runner works for a group at a time; stop it, or end its handler, and try again
            = 4
            "
        ),
    );
    let described = stdout(dir.path(), "groups describe g -t t");
    assert!(
        described.contains(&format!(":{pid} (gone; its handler, pid {handler}, works on)")),
        "{described}"
    );
    kill("-KILL", handler);
    check_in(&dir, "$ run -t t -g g -q --out file:out --until-end -- sh copy.sh");
}

#[test]
fn several_topics_go_to_one_file() {
    let dir = folder(2);
    check_in(
        &dir,
        r#"
        $ produce u -q --key-field id <<< '{"id":"a"}\n{"id":"b"}\n'
        $ run -t t -t u -g g -q --out file:out --until-end -- sh copy.sh
        $ check -g g --out file:out --drained
        > topic t
        > nothing left
        > lost: [] | handled twice: []
        >
        > topic u
        > nothing left
        > lost: [] | handled twice: []
        >
        > all topics
        > nothing left
        > lost: [] | handled twice: []
        "#,
    );
    assert_eq!(fs::read_to_string(dir.path().join("out")).unwrap().lines().count(), 12);
}

#[test]
fn partitions_that_are_added_are_handled_from_their_first_event() {
    let dir = folder(1);
    // It has begun, and wants only what comes from then on.
    let args = "run -t t -g g --out file:out --on-no-offset latest -- sh copy.sh";
    let mut runner = Background::start(dir.path(), args);
    until("the start", || stdout(dir.path(), "groups ls --no-headers").contains("running").then_some(()));
    stdout(dir.path(), "topics alter t -p 2 -q");
    let more: String = (10..14).map(|number| format!("{{\"id\":\"k{number}\"}}\n")).collect();
    std::fs::write(dir.path().join("more"), more).unwrap();
    stdout(dir.path(), "produce t -q --key-field id -p 1 --source more");
    until("the new partition's events", || {
        let text = std::fs::read_to_string(dir.path().join("out")).ok()?;
        (text.lines().count() == 4).then_some(())
    });
    runner.signal("-TERM");
    assert_eq!(runner.end(), Some(0));
    // One that was added while nobody was there, too.
    stdout(dir.path(), "topics alter t -p 3 -q");
    std::fs::write(dir.path().join("most"), "{\"id\":\"k14\"}\n").unwrap();
    stdout(dir.path(), "produce t -q --key-field id -p 2 --source most");
    check_in(
        &dir,
        "
        $ run -t t -g g --out file:out --on-no-offset latest --until-end -- sh copy.sh
        ! file:out: exactly once: each event's lines are in the recovered file once
        ! t/0 starts at offset 10
        ! t/1 starts at offset 4
        ! t/2: a partition that was added: starts at offset 0
        ! t/2 starts at offset 0
        ! nothing left: 1 handled, 1 written
        ! t/0 goes on at offset 10
        ! t/1 goes on at offset 4
        ! t/2 goes on at offset 1
        ",
    );
}

#[test]
fn a_backfill_starts_at_a_time_with_a_group_of_its_own() {
    let dir = folder(1);
    check_in(
        &dir,
        "
        $ run -t t -g live --out file:out --until-end -q -- sh copy.sh
        $ run -t t -g again --from 2100-01-01 --new-group --out file:none --until-end -- sh copy.sh
        ! file:none: exactly once: each event's lines are in the recovered file once
        ! t/0: --from 2100-01-01T00:00:00[..]Z: skips offsets 0 to 9 (10)
        ! t/0 starts at offset 10
        ! nothing left: 0 handled, 0 written
        ! t/0 goes on at offset 10
        $ run -t t -g filled --from -1h --new-group --out file:filled --until-end -- sh copy.sh
        ! file:filled: exactly once: each event's lines are in the recovered file once
        ! t/0: --from [..]Z: stays at offset 0
        ! t/0 starts at offset 0
        ! nothing left: 10 handled, 10 written
        ! t/0 goes on at offset 10
        $ run -t t -g live --from -1h --new-group --out file:more --until-end -- sh copy.sh
        ! error: group 'live' is not new: --from would move it
        ! hint: to go on with it, leave --from and --new-group away; to move it, `leftoff groups reset live`; or name another group
        = 4
        $ run -t t -g third --from 2100-01-01 --new-group --explain --format csv --no-headers
        > t,0,10,10,--from 2100-01-01T00:00:00[..]Z: skips offsets 0 to 9 (10),stdout,at least once
        $ groups export live
        > t,0,10
        ",
    );
    assert!(!dir.path().join("more").exists());
}
