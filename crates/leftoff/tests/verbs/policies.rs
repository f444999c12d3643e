//! What `run` does with events that are not handled.

use std::fs;
use std::path::Path;

use crate::process::{Background, folder, stdout, until};
use crate::script::{check_in, leftoff};

#[test]
fn a_handler_that_dies_is_started_again_until_it_is_well() {
    let dir = folder(1);
    check_in(
        &dir,
        "
        $ run -t t -g g --out file:out --until-end --on-fail retry --backoff 10ms -- sh fails_times.sh k3 2
        ! file:out: exactly once: [..]
        ! t/0: --on-no-offset earliest: starts at offset 0
        ! t/0 starts at offset 0
        ! t/0 offset 3: attempt 1 failed: the handler exited with code 3; again in [..] (the handler is started again, 1 times so far)
        ! t/0 offset 3: attempt 2 failed: the handler exited with code 3; again in [..] (the handler is started again, 2 times so far)
        ! nothing left: 10 handled, 10 written, 2 failed attempts, the handler ended or broke the rules 2 times
        ! t/0 goes on at offset 10
        $ check -g g --out file:out --drained
        > nothing left
        > lost: [] | handled twice: []
        ",
    );
}

#[test]
fn an_event_that_no_attempt_handles_stops_the_run_or_is_skipped() {
    let dir = folder(1);
    check_in(
        &dir,
        "
        $ run -t t -g g -q --out file:out --until-end --attempts 2 --backoff 10ms -- sh bad_at.sh k3 error
        ! error: t/0 offset 3 was not handled in 2 attempts: the handler reports: no such place
        !   key:   k3
        !   value: [..]
        ! everything before it is saved, nothing past it; once the cause is mended, the same command goes on with this event
        ! hint: to try it more often: --on-fail retry; to pass it by: --on-fail skip; to keep it for later: --on-fail dlq
        = 1
        $ run -t t -g g --out file:out --until-end --on-fail skip --attempts 3 --backoff 10ms -- sh bad_at.sh k3 error
        ! file:out: exactly once: [..]
        ! t/0 starts at offset 3
        ! t/0 offset 3: attempt 2 of 3 failed: the handler reports: no such place; again in [..]
        ! t/0: --on-fail skip after 3 attempts: the handler reports: no such place: skips offset 3
        ! nothing left: 6 handled, 6 written, 1 skipped, 2 failed attempts
        ! t/0 goes on at offset 10
        $ check -g g --out file:out --drained
        > skipped by decision: ['t/0/3']
        > nothing left
        > lost: [] | handled twice: []
        ",
    );
    assert!(
        fs::read_to_string(dir.path().join("out.outcomes")).unwrap().contains(" 0 3-3 skipped attempts=")
    );
    let history = stdout(dir.path(), "groups history g --format csv --no-headers");
    assert!(history.contains("0,3,4,reset,"), "{history}");
    assert!(history.contains("--on-fail skip after "), "{history}");
}

/// Complaint 2: the event comes again, with the attempts that it had.
#[test]
fn a_stop_amid_retries_gives_the_event_back() {
    let dir = folder(1);
    let mut runner = Background::start(
        dir.path(),
        "run -t t -g g --out file:out --on-fail skip --attempts 3 --backoff 10m -- sh bad_at.sh k3 error",
    );
    until_tried(dir.path(), 1);
    runner.signal("-INT");
    assert_eq!(runner.end(), Some(0));
    check_in(
        &dir,
        "
        $ groups describe g --format csv --no-headers
        > g,t,0,2,3,10,7,[..]
        $ run -t t -g g -q --out file:out --until-end -- sh copy.sh
        $ check -g g --out file:out --drained
        > nothing left
        > lost: [] | handled twice: []
        ",
    );
}

/// Attempts survive a crash: a runner that is killed amid retries does not begin to count anew.
#[test]
fn attempts_survive_a_kill() {
    let dir = folder(1);
    let args =
        "run -t t -g g --out file:out --on-fail skip --attempts 3 --backoff 10m -- sh bad_at.sh k3 error";
    for attempt in 1..=2 {
        let mut runner = Background::start(dir.path(), args);
        until_tried(dir.path(), attempt);
        runner.signal("-KILL");
        assert_eq!(runner.end(), None);
    }
    check_in(
        &dir,
        "
        $ run -t t -g g -q --out file:out --until-end --on-fail skip --attempts 3 -- sh bad_at.sh k3 error
        $ check -g g --out file:out --drained
        > skipped by decision: ['t/0/3']
        > nothing left
        > lost: [] | handled twice: []
        ",
    );
}

/// Waits until so many failed attempts of event 3 are on disk.
fn until_tried(dir: &Path, attempts: u32) {
    let words = format!("tried=3:{attempts}:the%20handler%20reports");
    until("a failed attempt", || {
        // The group may not be there yet.
        let output = leftoff(dir).args(["groups", "history", "g", "--format", "json"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains(&words).then_some(())
    });
}
