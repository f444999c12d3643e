//! The five words of lag, as a table.

use super::world::{at, bounds, next};
use crate::coordinator::Lag;

/// `committed`, log start, last stable offset, end; then waiting, deleted unread, behind an open transaction, ahead of the end.
#[track_caller]
fn check(committed: Option<i64>, (start, stable, end): (i64, i64, i64), expect: (u64, u64, u64, u64)) {
    let lag = Lag::of(committed.map(next), bounds(start, end), at(stable));
    let actual = (lag.waiting, lag.deleted_unread, lag.behind_open_transaction, lag.ahead_of_end);
    assert_eq!(actual, expect, "{lag:?}");
    assert_eq!(lag.no_commit, committed.is_none());
}

#[test]
fn plain() {
    check(Some(3), (0, 10, 10), (7, 0, 0, 0));
    check(Some(10), (0, 10, 10), (0, 0, 0, 0));
    check(Some(0), (0, 0, 0), (0, 0, 0, 0));
}

/// OF-131: what is deleted is not waiting.
#[test]
fn below_the_log_start() {
    check(Some(20), (100, 100, 100), (0, 80, 0, 0));
    check(Some(20), (50, 100, 100), (50, 30, 0, 0));
    check(Some(20), (50, 60, 100), (10, 30, 40, 0));
}

/// OF-132: no commit is not a number.
#[test]
fn no_commit() {
    check(None, (0, 29, 29), (29, 0, 0, 0));
    check(None, (1000, 1029, 1029), (29, 0, 0, 0));
    check(None, (0, 0, 0), (0, 0, 0, 0));
}

/// OF-133: ahead of the end is not zero, and never negative.
#[test]
fn ahead_of_the_end() {
    check(Some(150), (0, 100, 100), (0, 0, 0, 50));
    check(Some(i64::MAX), (0, 0, 0), (0, 0, 0, i64::MAX as u64));
}

/// OF-134: what lies behind an open transaction cannot be read yet.
#[test]
fn behind_an_open_transaction() {
    check(Some(200), (0, 200, 1663), (0, 0, 1463, 0));
    check(Some(150), (0, 200, 1663), (50, 0, 1463, 0));
    check(Some(300), (0, 200, 1663), (0, 0, 1363, 0));
    check(None, (100, 50, 1663), (0, 0, 1563, 0));
}

#[test]
fn caught_up_is_a_commit_with_nothing_waiting() {
    let lag = |committed| Lag::of(committed, bounds(0, 5), at(5));
    assert!(lag(Some(next(5))).is_caught_up());
    assert!(!lag(Some(next(4))).is_caught_up());
    assert!(!lag(None).is_caught_up());
}
