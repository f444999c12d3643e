#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn each_failure_has_its_code() {
    let table = [
        (Failure::check_failed("lost: ['e3']"), 1),
        (Failure::usage("x"), 2),
        (Failure::cannot_reach("x"), 3),
        (Failure::refused("x"), 4),
        (Failure::storage("x"), 5),
        (Failure::stdout(io::Error::from(io::ErrorKind::BrokenPipe)), 0),
        (Failure::stdout(io::Error::from(io::ErrorKind::StorageFull)), 5),
    ];
    for (failure, expect) in table {
        assert_eq!(failure.exit_code(), expect, "{failure:?}");
    }
}

#[test]
fn a_failure_reads_as_error_then_hint_and_shows_causes_only_when_asked() {
    let failure = Failure::storage("cannot open topic 'quakes'")
        .because(io::Error::other("bad sector"))
        .hint("run leftoff doctor");
    let error = ("error", "cannot open topic 'quakes'".to_string());
    let hint = ("hint", "run leftoff doctor".to_string());
    assert_eq!(failure.lines(false), [error.clone(), hint.clone()]);
    assert_eq!(failure.lines(true), [error, ("cause", "bad sector".to_string()), hint]);
}

#[test]
fn a_closed_pipe_says_nothing() {
    assert!(Failure::stdout(io::Error::from(io::ErrorKind::BrokenPipe)).lines(true).is_empty());
}
