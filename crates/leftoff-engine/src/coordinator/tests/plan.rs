//! What a reset would do, as a table; and what an undo takes back.

use super::world::{World, at, bounds, next, topic_id, topic_partition};
use crate::coordinator::*;

/// The plan in words.
fn words(current: Option<i64>, to: ResetTo, (start, end): (i64, i64)) -> String {
    let planned = match plan(current.map(next), to, bounds(start, end)) {
        Ok(planned) => planned,
        Err(error) => return error.to_string(),
    };
    assert_eq!(planned.from, current.map(next));
    let mut text = format!("to {}", planned.to);
    if planned.is_unchanged() {
        text += " unchanged";
    }
    if let Some(clamped) = planned.clamped {
        text += &format!(" ({clamped})");
    }
    for (what, span) in
        [("repeats", planned.repeats), ("skips", planned.skips), ("deleted", planned.deleted_unread)]
    {
        text += &span.map_or(String::new(), |span| format!(", {what} {span}"));
    }
    text
}

#[track_caller]
fn check(current: Option<i64>, to: ResetTo, range: (i64, i64), expect: &str) {
    assert_eq!(words(current, to, range), expect, "{to:?}");
}

#[test]
fn resets_name_what_they_repeat_and_skip() {
    check(Some(5), ResetTo::Earliest, (0, 10), "to 0, repeats 0 to 4 (5 offsets)");
    check(Some(5), ResetTo::Latest, (0, 10), "to 10, skips 5 to 9 (5 offsets)");
    check(Some(5), ResetTo::Current, (0, 10), "to 5 unchanged");
    check(Some(5), ResetTo::Offset(4), (0, 10), "to 4, repeats 4 (1 offset)");
    check(Some(5), ResetTo::ShiftBy(1), (0, 10), "to 6, skips 5 (1 offset)");
    check(Some(5), ResetTo::Resolved(at(5)), (0, 10), "to 5 unchanged");
    check(Some(5), ResetTo::Committed(next(9)), (0, 10), "to 9, skips 5 to 8 (4 offsets)");
}

#[test]
fn resets_stay_within_what_can_be_read() {
    let start = "to 2 (-1 is below the log start, so 2), repeats 2 to 4 (3 offsets)";
    check(Some(5), ResetTo::Offset(-1), (2, 10), start);
    check(Some(5), ResetTo::ShiftBy(-6), (2, 10), start);
    check(
        Some(5),
        ResetTo::ShiftBy(i64::MAX),
        (2, 10),
        "to 10 (9223372036854775812 is above the end, so 10), skips 5 to 9 (5 offsets)",
    );
    check(
        Some(5),
        ResetTo::Committed(next(11)),
        (2, 10),
        "to 10 (11 is above the end, so 10), skips 5 to 9 (5 offsets)",
    );
}

#[test]
fn without_a_commit() {
    let none = "the group has no committed offset here: say where to go instead";
    check(None, ResetTo::Current, (2, 10), none);
    check(None, ResetTo::ShiftBy(1), (2, 10), none);
    check(None, ResetTo::Earliest, (2, 10), "to 2");
    check(None, ResetTo::Latest, (2, 10), "to 10, skips 2 to 9 (8 offsets)");
}

/// OF-041: what is deleted is told apart from what is skipped.
#[test]
fn from_below_the_log_start_and_from_above_the_end() {
    check(Some(20), ResetTo::Earliest, (50, 100), "to 50, deleted 20 to 49 (30 offsets)");
    check(
        Some(20),
        ResetTo::Latest,
        (50, 100),
        "to 100, skips 50 to 99 (50 offsets), deleted 20 to 49 (30 offsets)",
    );
    check(
        Some(20),
        ResetTo::Current,
        (50, 100),
        "to 50 (20 is below the log start, so 50), deleted 20 to 49 (30 offsets)",
    );
    check(Some(150), ResetTo::Current, (50, 100), "to 100 (150 is above the end, so 100)");
    check(Some(150), ResetTo::Offset(90), (50, 100), "to 90, repeats 90 to 99 (10 offsets)");
}

/// Runs commands, then asks what the history says of the offsets 2 to 8 of `t/0`.
#[track_caller]
fn check_passed(script: &[&str], limit: usize, expect: &str) {
    let mut world = World::default();
    world.run("topic t 1 1 0..100");
    for command in script {
        world.run(command);
    }
    let head = world.moves("g", &topic_partition("t/0")).moves[0].at;
    let (topic_id, span) = (world.key("t/0").topic_id, Span { from: at(2), to: at(9) });
    let told = passed(head, topic_id, span, &mut |at| Ok::<_, ()>(world.read(at)), limit).unwrap();
    let all = |spans: &[Span]| spans.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let actual = told.map_or("nobody knows".to_owned(), |passed| {
        format!("handled: {} | not: {}", all(&passed.handled), all(&passed.unhandled))
    });
    assert_eq!(actual, expect);
}

#[test]
fn the_history_says_what_was_handled() {
    const ALL: usize = usize::MAX;
    check_passed(&["commit - g t/0=5"], ALL, "handled: 2 to 4 (3 offsets) | not: 5 to 8 (4 offsets)");
    check_passed(&["reset - g t/0=5"], ALL, "handled:  | not: 2 to 8 (7 offsets)");
    check_passed(&["import - g t/0=50"], ALL, "handled:  | not: 2 to 8 (7 offsets)");
    check_passed(&["commit - g t/0=5", "commit - g t/0=50"], ALL, "handled: 2 to 8 (7 offsets) | not: ");
    check_passed(
        &["commit - g t/0=4", "reset - g t/0=6", "commit - g t/0=8", "reset - g t/0=0", "commit - g t/0=3"],
        ALL,
        "handled: 2 to 3 (2 offsets), 6 to 7 (2 offsets) | not: 4 to 5 (2 offsets), 8 (1 offset)",
    );
    check_passed(
        &["commit - g t/0=9", "topic t 2 1 0..100", "reset - g t/0=5"],
        ALL,
        "handled:  | not: 2 to 8 (7 offsets)",
    );
    let many: Vec<String> = (1..=600).map(|_| "commit - g t/0=5".to_owned()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    check_passed(&many, 512, "nobody knows");
    check_passed(&many, 1024, "handled: 2 to 4 (3 offsets) | not: 5 to 8 (4 offsets)");
}

/// Runs commands, then asks what an undo of `t/0` would take back.
#[track_caller]
fn check_undo(script: &[&str], expect: &str) {
    let mut world = World::default();
    world.run("topic t 1 1 0..100");
    for command in script {
        world.run(command);
    }
    let moves = world.moves("g", &topic_partition("t/0")).moves;
    let actual = match undo(&moves, world.key("t/0").topic_id) {
        Ok(Undo { of, to: UndoTo::Offset(committed) }) => format!("{} {} to {committed}", of.at, of.why),
        Ok(Undo { of, to: UndoTo::NoOffset }) => format!("{} {} to no offset", of.at, of.why),
        Err(error) => error.to_string(),
    };
    assert_eq!(actual, expect);
}

#[test]
fn undo_takes_back_the_last_jump() {
    check_undo(&["commit - g t/0=5"], "0 commit to no offset");
    check_undo(&["commit - g t/0=5", "commit - g t/0=7"], "1 commit to 5");
    check_undo(&["commit - g t/0=5", "reset - g t/0=0", "commit - g t/0=1"], "1 reset to 5");
    check_undo(&["commit - g t/0=5", "commit - g t/0=2", "commit - g t/0=4"], "1 commit to 5");
    check_undo(&["commit - g t/0=5", "delete g t/0"], "1 deleted to 5");
    check_undo(&["import - g t/0=5", "commit - g t/0=6"], "0 import to no offset");
    check_undo(&["reset - g t/0=5"], "0 reset to no offset");
    let forward =
        "the group has only gone forward since it began: there is no reset, import or deletion to take back";
    check_undo(&["reset - g t/0=0", "commit - g t/0=6"], forward);
    check_undo(&["commit - g t/0=5", "commit - g t/0=7", "carry 2"], "1 commit to 5");
    check_undo(&["commit - g t/0=5", "reset - g t/0=0", "undo - g t/0=5"], "2 undo to 0");
}

/// OF-050.
#[test]
fn undo_does_not_go_back_to_an_earlier_topic() {
    let other = |why| format!("the last move (record 1, {why}) was of an earlier topic of that name");
    check_undo(&["commit - g t/0=5", "delete g t/0", "topic t 2 1 0..9"], &other("deleted"));
    check_undo(
        &["commit - g t/0=5", "reset - g t/0=1", "topic t 2 1 0..9", "commit - g t/0=5"],
        &other("reset"),
    );
    check_undo(
        &["commit - g t/0=5", "reset - g t/0=1", "topic t 2 1 0..9", "reset - g t/0=5"],
        "2 reset to no offset",
    );
    assert_eq!(undo(&[], topic_id(1)), Err(UndoError::NoMoves));
}
