//! The table of where a run starts.

use super::super::start::{Facts, Start, decide};
use super::*;
use crate::source::Reset;

/// What the sink, the group and the log say; what was asked for; where it starts (or the refusal), and the rule.
type Row = (
    Option<Option<i64>>,
    Option<i64>,
    (i64, i64),
    RunOptions,
    Result<(i64, Option<&'static str>), &'static str>,
);

fn options() -> RunOptions {
    RunOptions::default()
}

fn no_offset(on_no_offset: OnNoOffset) -> RunOptions {
    RunOptions { on_no_offset, ..options() }
}

fn skipping() -> RunOptions {
    RunOptions { on_gap: OnGap::Earliest, ..options() }
}

fn following() -> RunOptions {
    RunOptions { on_lost_state: OnLostState::FollowGroup, ..options() }
}

const NONE: Option<Option<i64>> = None;

#[test]
fn where_it_starts() {
    let rows: Vec<Row> = vec![
        // No authority: the group decides.
        (NONE, Some(4), (0, 9), options(), Ok((4, None))),
        (NONE, Some(9), (0, 9), options(), Ok((9, None))),
        (NONE, None, (3, 9), options(), Ok((3, Some("--on-no-offset earliest")))),
        (NONE, None, (3, 9), no_offset(OnNoOffset::Latest), Ok((9, Some("--on-no-offset latest")))),
        (NONE, None, (3, 9), no_offset(OnNoOffset::Stop), Err("offsets 3 to 8 (6)")),
        // The sink decides, whatever the group says.
        (Some(Some(4)), None, (0, 9), options(), Ok((4, None))),
        (Some(Some(4)), Some(2), (0, 9), options(), Ok((4, None))),
        (Some(Some(4)), Some(4), (0, 9), options(), Ok((4, None))),
        (Some(Some(4)), Some(6), (0, 9), options(), Ok((4, Some("file:x keeps the offset")))),
        // The sink has nothing: a first run, or its state is lost.
        (Some(None), None, (0, 9), options(), Ok((0, Some("--on-no-offset earliest")))),
        (Some(None), Some(0), (0, 9), options(), Ok((0, None))),
        (Some(None), Some(3), (3, 9), options(), Ok((3, None))),
        (Some(None), Some(4), (0, 9), options(), Err("file:x holds nothing for quakes/0")),
        (Some(None), Some(4), (0, 9), following(), Ok((4, None))),
        (Some(None), Some(4), (0, 9), skipping(), Err("saved offset 4")),
        // Deleted before it was handled.
        (NONE, Some(2), (3, 9), options(), Err("offset 2 ")),
        (Some(Some(2)), None, (5, 9), options(), Err("offsets 2 to 4 (3)")),
        (Some(None), Some(2), (5, 9), options(), Err("offsets 2 to 4 (3)")),
        (NONE, Some(2), (5, 9), skipping(), Ok((5, Some("--on-gap earliest")))),
        // The log went back.
        (NONE, Some(100), (0, 80), options(), Err("the log ends at 80 (20 offsets before it)")),
        (Some(Some(100)), None, (0, 80), options(), Err("the log went back")),
        (NONE, Some(100), (10, 80), skipping(), Ok((10, Some("--on-gap earliest")))),
    ];
    for (in_sink, in_group, (log_start, end), options, expect) in rows {
        let facts = Facts {
            topic: "quakes",
            partition: 0,
            place: in_sink.map(|_| "file:x"),
            in_sink: in_sink.flatten().map(next),
            other_event_at: None,
            reset: None,
            added: false,
            in_group: in_group.map(next),
            log_start: at(log_start),
            end: at(end),
        };
        let row = format!("sink {in_sink:?} group {in_group:?} log {log_start} to {end}");
        match (decide(&facts, &options), expect) {
            (Ok(Start { at: found, decision }), Ok((expected, rule))) => {
                assert_eq!(found.next().get(), expected, "{row}");
                assert_eq!(decision.map(|d| d.rule).as_deref(), rule, "{row}");
            }
            (Err(refusal), Err(words)) => {
                let text = refusal.to_string();
                assert!(text.contains(words), "{row}: {words:?} is not in {text:?}");
            }
            (found, expected) => panic!("{row}: {found:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn a_jump_is_said_in_numbers() {
    let facts = Facts {
        added: false,
        topic: "quakes",
        partition: 0,
        place: None,
        in_sink: None,
        other_event_at: None,
        reset: None,
        in_group: Some(next(100)),
        log_start: at(10),
        end: at(80),
    };
    let back = decide(&facts, &skipping()).unwrap().decision.unwrap();
    assert_eq!(
        back.to_string(),
        "--on-gap earliest: goes back from offset 100 to offset 10: offsets 10 to 99 (90) come again"
    );
    let facts = Facts { in_group: None, ..facts };
    let latest = decide(&facts, &no_offset(OnNoOffset::Latest)).unwrap().decision.unwrap();
    assert_eq!(latest.to_string(), "--on-no-offset latest: skips offsets 10 to 79 (70)");
    let earliest = decide(&facts, &options()).unwrap().decision.unwrap();
    assert_eq!(earliest.to_string(), "--on-no-offset earliest: starts at offset 10");
}

#[test]
fn a_partition_that_was_added_is_read_from_its_first_event() {
    let facts = |added| Facts {
        added,
        topic: "quakes",
        partition: 3,
        place: None,
        in_sink: None,
        other_event_at: None,
        reset: None,
        in_group: None,
        log_start: at(10),
        end: at(80),
    };
    let options = |on_no_offset| RunOptions { on_no_offset, ..RunOptions::default() };
    for (added, on_no_offset, expect) in [
        (false, OnNoOffset::Latest, Some(80)),
        (true, OnNoOffset::Latest, Some(10)),
        (true, OnNoOffset::Earliest, Some(10)),
        (true, OnNoOffset::Stop, None),
    ] {
        let start = decide(&facts(added), &options(on_no_offset)).ok();
        assert_eq!(start.map(|start| start.at.next().get()), expect, "{added} {on_no_offset:?}");
    }
}

/// OF-077: a directory that was brought back from an older copy takes other events under the numbers that the place has passed.
#[test]
fn a_log_that_was_restored_and_went_on_is_not_taken_for_the_one_that_the_place_counts_in() {
    let facts = Facts {
        added: false,
        topic: "quakes",
        partition: 0,
        place: Some("file:x"),
        in_sink: Some(next(9)),
        other_event_at: Some(at(8)),
        reset: None,
        in_group: Some(next(7)),
        log_start: at(0),
        end: at(20),
    };
    let refusal = decide(&facts, &options()).unwrap_err().to_string();
    assert!(
        refusal.starts_with("file:x has passed the event at offset 8 of quakes/0, and the log has another")
    );
    let accepted = decide(&facts, &RunOptions { on_other_log: OnOtherLog::Accept, ..options() }).unwrap();
    assert_eq!(accepted.at, next(9));
    assert_eq!(accepted.decision.unwrap().to_string(), "--on-other-log accept: starts at offset 9");
    // A place without authority, or one that holds nothing, is not asked.
    for facts in [Facts { place: None, ..facts }, Facts { in_sink: None, in_group: None, ..facts }] {
        assert!(decide(&facts, &options()).is_ok());
    }
}

#[test]
fn the_place_is_known_again_by_the_last_event_that_it_has_passed() {
    let (same, other) = (event(4), Event { value: Some(b"another".to_vec()), ..event(4) });
    let mark = |last| Mark { last, reset: None };
    let last = Some(LastEvent::of(&same));
    // What the sink keeps, what the log has at its offset, and whether it goes on.
    for (kept, log, goes_on) in [
        (last, vec![same.clone()], true),
        (last, vec![other.clone()], false),
        // Deleted, or a hole: nothing is known.
        (last, vec![], true),
        // Kept by a version that had no marks.
        (None, vec![other], true),
    ] {
        let ran = run(Case {
            in_sink: vec![(0, 5)],
            mark: mark(kept),
            log: log.clone(),
            script: vec![assigned(0, Some(5), 0, 7), batch(0, &[5, 6], 7)],
            ..Case::default()
        });
        let handled = ran.trace.iter().filter(|line| line.starts_with("handle")).count();
        assert_eq!(handled, if goes_on { 2 } else { 0 }, "{kept:?} {log:?}");
        assert_eq!(ran.result.is_ok(), goes_on, "{kept:?} {log:?}");
    }
}

/// A crash between the place and the group leaves the reset in the group: the place knows by its number that it is done.
#[test]
fn a_reset_reaches_the_place_once() {
    let reset = |number| Some(Reset { number: at(number), what: "reset --to-offset 2".to_owned() });
    // The number that the place knows, the reset that waits, whether the sink has authority; where it starts, and what is written.
    for (known, waits, authority, starts, writes) in [
        (None, None, true, 5, vec!["write [0:5 0:6] 0->7"]),
        (None, reset(9), true, 2, vec!["write [] 0->2", "write [0:2 0:3] 0->4"]),
        (Some(8), reset(9), true, 2, vec!["write [] 0->2", "write [0:2 0:3] 0->4"]),
        (Some(9), reset(9), true, 5, vec!["write [0:5 0:6] 0->7"]),
        (Some(10), reset(9), true, 5, vec!["write [0:5 0:6] 0->7"]),
        (None, reset(9), false, 2, vec!["write [0:2 0:3] 0->4"]),
    ] {
        let mut first = assigned(0, Some(2), 0, 9);
        if let SourceEvent::Assigned { reset, .. } = &mut first {
            *reset = waits.clone();
        }
        let ran = run(Case {
            in_sink: vec![(0, 5)],
            mark: Mark { last: None, reset: known.map(at) },
            authority,
            options: RunOptions { save: SavePolicy::AtStop, ..options() },
            script: vec![first, batch(0, &[starts, starts + 1], starts + 2)],
            ..Case::default()
        });
        let what = format!("{known:?} {waits:?} {authority}");
        assert!(ran.trace.contains(&format!("seek 0:{starts}")), "{what}: {:?}", ran.trace);
        let written: Vec<&String> = ran.trace.iter().filter(|line| line.starts_with("write")).collect();
        assert_eq!(written, writes, "{what}");
    }
}
