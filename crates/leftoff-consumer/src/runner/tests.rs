#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;

use super::*;
use crate::handler::{Answer, HandlerError, Record};
use crate::sink::{LastEvent, Mark, SinkError, Written};
use crate::source::SourceError;
use crate::testing::*;

mod bounds;
mod crash_loops;
mod crew;
mod policies;
mod starts;
mod whole;

/// What comes of an attempt, by the event's offset and the attempt's number.
type AnswerTo = fn(i64, u32) -> Result<Answer, HandlerError>;

/// A run over a script: what it is made of, all of it with a default.
struct Case {
    script: Vec<SourceEvent>,
    options: RunOptions,
    authority: bool,
    in_sink: Vec<(i32, i64)>,
    /// What the sink keeps of each of those.
    mark: Mark,
    /// What the log has, whatever is delivered.
    log: Vec<Event>,
    writes: Vec<Result<Written, SinkError>>,
    saves: Vec<SourceError>,
    refuses: Option<i64>,
    answer: fn(i64) -> Result<Answer, HandlerError>,
    /// In its place: what comes of an attempt, by its number.
    attempts: Option<AnswerTo>,
    /// How far the clock goes on each time it is read.
    step_ms: u64,
    idle_polls: u32,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            script: Vec::new(),
            options: RunOptions::default(),
            authority: true,
            in_sink: Vec::new(),
            mark: Mark::default(),
            log: Vec::new(),
            writes: Vec::new(),
            saves: Vec::new(),
            refuses: None,
            answer: |_| one_record(),
            attempts: None,
            step_ms: 0,
            idle_polls: 0,
        }
    }
}

struct Ran {
    trace: Vec<String>,
    result: Result<Report, Box<RunFailure>>,
}

fn run(case: Case) -> Ran {
    let (trace, stop) = (Trace::default(), Arc::new(AtomicBool::new(false)));
    let clock = Rc::new(StepClock { now: Cell::default(), step: Duration::from_millis(case.step_ms) });
    let mut source = ScriptSource {
        script: case.script.into(),
        saves: case.saves.into(),
        stop: stop.clone(),
        trace: trace.clone(),
        log: case.log.iter().map(|event| (event.offset.get(), event.clone())).collect(),
        idle_polls: case.idle_polls,
        clock: clock.clone(),
    };
    let Case { answer, attempts, .. } = case;
    // A trace is the same each time only where one thread does everything.
    let options = RunOptions { save_meanwhile: false, ..case.options };
    let answer = move |offset, attempt| attempts.map_or_else(|| answer(offset), |of| of(offset, attempt));
    let mut handler = FnHandler { answer, trace: trace.clone() };
    let mut sink = MemSink {
        authority: case.authority,
        stands: case.in_sink.iter().map(|&(partition, at)| (id(partition), next(at))).collect(),
        results: VecDeque::from(case.writes),
        refuses: case.refuses,
        marks: case.in_sink.iter().map(|&(partition, _)| (id(partition), case.mark)).collect(),
        trace: trace.clone(),
        ..MemSink::default()
    };
    let result = Runner::new(Parts {
        source: &mut source,
        handlers: Handlers::One(&mut handler),
        sink: &mut sink,
        progress: &mut NoProgress,
        clock: clock.as_ref(),
        stop: &stop,
        options: &options,
    })
    .run();
    Ran { trace: trace.lines(), result }
}

/// Every run ends with `stop` and `close`; both are left out of `expect`.
#[track_caller]
fn check(case: Case, expect: &[&str]) -> Result<Report, Box<RunFailure>> {
    let Ran { mut trace, result } = run(case);
    assert_eq!(trace.split_off(trace.len() - 2), ["stop", "close"]);
    assert_eq!(trace, expect, "{result:?}");
    result
}

fn saving(save: SavePolicy) -> RunOptions {
    RunOptions { save, ..RunOptions::default() }
}

fn start() -> SourceEvent {
    assigned(0, Some(0), 0, 9)
}

#[test]
fn with_authority_the_sink_first_and_the_group_at_the_end() {
    let case = Case { script: vec![start(), batch(0, &[0, 1], 2)], in_sink: vec![(0, 0)], ..Case::default() };
    let expect =
        ["seek 0:0", "handle 0:0", "write [0:0] 0->1", "handle 0:1", "write [0:1] 0->2", "group 0:2"];
    let report = check(case, &expect).unwrap();
    assert_eq!((report.handled, report.written, report.saves), (2, 2, 2));
    assert_eq!(report.partitions[0].committed, Some(next(2)));
    assert_eq!(report.stopped, Some(StopReason::Asked));
}

/// Offsets 0, 2 and 4 are one event that was produced three times. Its second copy is handed out, since the first was not
/// handled; the third is not.
#[test]
fn what_was_produced_twice_is_handled_once() {
    let same = |event: &Event| Some(if event.offset.get() % 2 == 0 { b"even".to_vec() } else { Vec::new() });
    let identify = Some(Identify::new(move |event| same(event).filter(|id| !id.is_empty())));
    let options = RunOptions { identify, on_fail: OnFail::Skip, ..RunOptions::default() };
    let script = vec![assigned(0, Some(0), 0, 5), batch(0, &[0, 1, 2, 3, 4], 5)];
    let answer = |offset| match offset {
        0 => Ok(Answer::Failed { error: "no".to_owned(), retry: false }),
        _ => one_record(),
    };
    let ran = run(Case { script, options, in_sink: vec![(0, 0)], answer, ..Case::default() });
    let report = ran.result.unwrap();
    assert_eq!((report.handled, report.absorbed, report.skipped), (3, 1, 1));
    let handled: Vec<&String> = ran.trace.iter().filter(|line| line.starts_with("handle")).collect();
    assert_eq!(handled, ["handle 0:0", "handle 0:1", "handle 0:2", "handle 0:3"]);
    assert!(ran.trace.iter().any(|line| line == "write [0:4a] 0->5"), "{:?}", ran.trace);
}

#[test]
fn the_group_follows_from_time_to_time() {
    // The clock is read a few times for each event: with 100 ms each, the mirror is due after each other event or so.
    let case = Case {
        script: vec![start(), batch(0, &[0, 1, 2], 3)],
        in_sink: vec![(0, 0)],
        step_ms: 250,
        ..Case::default()
    };
    let ran = run(case);
    let groups: Vec<_> = ran.trace.iter().filter(|line| line.starts_with("group")).collect();
    assert!(groups.len() > 1, "{:?}", ran.trace);
}

#[test]
fn without_authority_the_group_follows_each_write() {
    let case = Case { script: vec![start(), batch(0, &[0, 1], 2)], authority: false, ..Case::default() };
    let expect = [
        "seek 0:0",
        "handle 0:0",
        "write [0:0] 0->1",
        "group 0:1",
        "handle 0:1",
        "write [0:1] 0->2",
        "group 0:2",
    ];
    check(case, &expect).unwrap();
}

#[test]
fn when_to_save() {
    let script = || vec![start(), batch(0, &[0, 1, 2], 3)];
    let of =
        |save| Case { script: script(), options: saving(save), in_sink: vec![(0, 0)], ..Case::default() };
    let handled = ["handle 0:0", "handle 0:1", "handle 0:2"];
    let every_two = [
        "seek 0:0",
        handled[0],
        handled[1],
        "write [0:0 0:1] 0->2",
        handled[2],
        "write [0:2] 0->3",
        "group 0:3",
    ];
    check(of(SavePolicy::Events(NonZeroU64::new(2).unwrap())), &every_two).unwrap();
    let at_stop = ["seek 0:0", handled[0], handled[1], handled[2], "write [0:0 0:1 0:2] 0->3", "group 0:3"];
    check(of(SavePolicy::AtStop), &at_stop).unwrap();
    check(of(SavePolicy::Every(Duration::from_secs(60))), &at_stop).unwrap();
    let soon = Case { step_ms: 1, ..of(SavePolicy::Every(Duration::from_millis(1))) };
    let each = [
        "seek 0:0",
        handled[0],
        "write [0:0] 0->1",
        handled[1],
        "write [0:1] 0->2",
        handled[2],
        "write [0:2] 0->3",
        "group 0:3",
    ];
    check(soon, &each).unwrap();
}

#[test]
fn outcomes_without_output_move_the_offset_too() {
    let case = Case {
        script: vec![start(), batch(0, &[0, 1, 2], 3)],
        options: saving(SavePolicy::AtStop),
        in_sink: vec![(0, 0)],
        answer: |offset| match offset {
            0 => Ok(Answer::Filtered),
            1 => Ok(Answer::done()),
            _ => one_record(),
        },
        ..Case::default()
    };
    let expect =
        ["seek 0:0", "handle 0:0", "handle 0:1", "handle 0:2", "write [0:0f 0:1- 0:2] 0->3", "group 0:3"];
    let report = check(case, &expect).unwrap();
    assert_eq!((report.handled, report.filtered, report.written), (3, 1, 1));
}

#[test]
fn holes_and_markers_are_passed() {
    let case = Case {
        script: vec![start(), batch(0, &[], 2), batch(0, &[2, 5], 9)],
        in_sink: vec![(0, 0)],
        ..Case::default()
    };
    let expect = [
        "seek 0:0",
        "write [] 0->2",
        "handle 0:2",
        "write [0:2] 0->3",
        "handle 0:5",
        "write [0:5] 0->9",
        "group 0:9",
    ];
    check(case, &expect).unwrap();
}

#[test]
fn a_failure_saves_what_is_before_it_and_nothing_past_it() {
    fn fails(case: Case, expect: &[&str], words: &[&str]) {
        let failure = check(case, expect).unwrap_err();
        let text = failure.to_string();
        words.iter().for_each(|word| assert!(text.contains(word), "{word:?} is not in: {text}"));
        assert_eq!(failure.error.exit_code(), 1);
    }
    let case = |answer| Case {
        script: vec![start(), batch(0, &[0, 1, 2], 3)],
        options: saving(SavePolicy::AtStop),
        in_sink: vec![(0, 0)],
        answer,
        ..Case::default()
    };
    fn reported() -> Result<Answer, HandlerError> {
        Ok(Answer::Failed { error: "too big".to_owned(), retry: true })
    }
    fails(
        case(|offset| if offset == 0 { reported() } else { one_record() }),
        &["seek 0:0", "handle 0:0"],
        &["quakes/0 offset 0", "too big", "k0", "v0"],
    );
    fails(
        case(|offset| if offset == 1 { reported() } else { one_record() }),
        &["seek 0:0", "handle 0:0", "handle 0:1", "write [0:0] 0->1", "group 0:1"],
        &["quakes/0 offset 1", "nothing past it"],
    );
    fails(
        case(|offset| if offset == 2 { reported() } else { one_record() }),
        &["seek 0:0", "handle 0:0", "handle 0:1", "handle 0:2", "write [0:0 0:1] 0->2", "group 0:2"],
        &["offset 2"],
    );
    fails(
        case(|offset| match offset {
            1 => Err(HandlerError::TimedOut { after: Duration::from_secs(2) }),
            _ => one_record(),
        }),
        &["seek 0:0", "handle 0:0", "handle 0:1", "write [0:0] 0->1", "group 0:1"],
        &["no answer within 2s"],
    );
    fails(
        Case { refuses: Some(1), ..case(|_| one_record()) },
        &["seek 0:0", "handle 0:0", "handle 0:1", "write [0:0] 0->1", "group 0:1"],
        &["record 0 of the answer"],
    );
}

#[test]
fn an_event_given_back_at_the_stop_is_no_failure() {
    let case = Case {
        script: vec![start(), batch(0, &[0, 1, 2], 3)],
        in_sink: vec![(0, 0)],
        answer: |offset| match offset {
            1 => Err(HandlerError::GivenBack { after: Duration::from_secs(30) }),
            _ => one_record(),
        },
        ..Case::default()
    };
    let expect = ["seek 0:0", "handle 0:0", "write [0:0] 0->1", "handle 0:1", "group 0:1"];
    assert_eq!(check(case, &expect).unwrap().stopped, Some(StopReason::Asked));
}

#[test]
fn a_sink_that_fails_or_is_fenced_ends_it_and_the_group_stays() {
    let case = |result| Case {
        script: vec![start(), batch(0, &[0, 1], 2)],
        in_sink: vec![(0, 0)],
        writes: vec![Ok(Written::Written), result],
        ..Case::default()
    };
    let expect = ["seek 0:0", "handle 0:0", "write [0:0] 0->1", "handle 0:1", "write [0:1] 0->2"];
    let broken = SinkError::Storage { what: "cannot write".to_owned(), error: std::io::Error::other("EIO") };
    assert_eq!(check(case(Err(broken)), &expect).unwrap_err().error.exit_code(), 5);
    let fenced = check(case(Ok(Written::Fenced { id: id(0) })), &expect).unwrap_err();
    assert_eq!((fenced.error.exit_code(), fenced.report.partitions[0].committed), (4, Some(next(1))));
}

#[test]
fn gaps_are_named_or_passed_by_decision() {
    let case = |on_gap| Case {
        script: vec![
            start(),
            batch(0, &[0], 1),
            SourceEvent::Gap { id: id(0), ownership: 1, from: at(1), to: at(5), reason: GapReason::Deleted },
            batch(0, &[5], 6),
        ],
        options: RunOptions { on_gap, ..RunOptions::default() },
        in_sink: vec![(0, 0)],
        ..Case::default()
    };
    let before = ["seek 0:0", "handle 0:0", "write [0:0] 0->1"];
    let failure = check(case(OnGap::Stop), &[&before[..], &["group 0:1"]].concat()).unwrap_err();
    assert!(failure.to_string().contains("offsets 1 to 4 (4)"), "{failure}");
    assert!(failure.to_string().contains("(4)"), "{failure}");
    assert_eq!(failure.error.exit_code(), 4);
    let passed = [
        "seek 0:5",
        "write [] 0->5",
        "group 0:5 (--on-gap earliest, deleted before they were handled)",
        "handle 0:5",
        "write [0:5] 0->6",
        "group 0:6",
    ];
    check(case(OnGap::Earliest), &[&before[..], &passed].concat()).unwrap();
}

#[test]
fn a_partition_given_back_is_saved_and_its_late_events_are_dropped() {
    let case = Case {
        script: vec![
            start(),
            batch(0, &[0, 1], 2),
            SourceEvent::Revoked { id: id(0), ownership: 1 },
            batch(0, &[2], 3),
            assigned_as(2, 0, Some(2), 0, 9),
            batch_as(1, 0, &[2], 3),
            batch_as(2, 0, &[2], 3),
        ],
        options: saving(SavePolicy::AtStop),
        in_sink: vec![(0, 0)],
        ..Case::default()
    };
    let expect = [
        "seek 0:0",
        "handle 0:0",
        "handle 0:1",
        "write [0:0 0:1] 0->2",
        "group 0:2",
        "seek 0:2",
        "handle 0:2",
        "write [0:2] 0->3",
        "group 0:3",
    ];
    assert_eq!(check(case, &expect).unwrap().late_events, 2);
}

#[test]
fn a_partition_taken_away_is_not_written_any_more() {
    let case = Case {
        script: vec![
            start(),
            assigned(1, Some(0), 0, 9),
            batch(0, &[0], 1),
            batch(1, &[0], 1),
            SourceEvent::Lost { id: id(0), ownership: 1 },
        ],
        options: saving(SavePolicy::AtStop),
        in_sink: vec![(0, 0), (1, 0)],
        ..Case::default()
    };
    let expect = ["seek 0:0", "seek 1:0", "handle 0:0", "handle 1:0", "write [1:0] 1->1", "group 1:1"];
    check(case, &expect).unwrap();
}

#[test]
fn a_save_that_comes_too_late_loses_only_its_partition() {
    let case = Case {
        script: vec![start(), assigned(1, Some(0), 0, 9), batch(0, &[0], 1), batch(1, &[0], 1)],
        options: saving(SavePolicy::AtStop),
        authority: false,
        saves: vec![SourceError::Ended(id(0))],
        ..Case::default()
    };
    let expect = [
        "seek 0:0",
        "seek 1:0",
        "handle 0:0",
        "handle 1:0",
        "write [0:0 1:0] 0->1 1->1",
        "group 0:1 1:1",
        "group 1:1",
    ];
    check(case, &expect).unwrap();
}

#[test]
fn a_source_that_fails_leaves_the_sink_saved() {
    let case = Case {
        script: vec![start(), batch(0, &[0], 1), batch(0, &[0], 1)],
        options: saving(SavePolicy::AtStop),
        in_sink: vec![(0, 0)],
        ..Case::default()
    };
    // The second batch goes back: damage, named; what was handled is saved.
    let failure = check(case, &["seek 0:0", "handle 0:0", "write [0:0] 0->1", "group 0:1"]).unwrap_err();
    assert_eq!(failure.error.exit_code(), 5);
}

#[test]
fn it_stops_where_it_is_told_to() {
    let until = |until_end, max_events| RunOptions { until_end, max_events, ..RunOptions::default() };
    let script = || vec![assigned(0, Some(0), 0, 2), assigned(1, Some(0), 0, 1), batch(0, &[0, 1, 2], 3)];
    let of = |options| Case { script: script(), options, in_sink: vec![(0, 0), (1, 0)], ..Case::default() };
    let report = run(of(until(false, Some(2)))).result.unwrap();
    assert_eq!((report.handled, report.stopped), (2, Some(StopReason::MaxEvents)));
    // Partition 1 is not at its end yet, so the script runs out first.
    assert_eq!(run(of(until(true, None))).result.unwrap().stopped, Some(StopReason::Asked));
    let mut both = of(until(true, None));
    both.script.push(batch(1, &[0], 1));
    assert_eq!(run(both).result.unwrap().stopped, Some(StopReason::End));
    // Nothing there: at the end as soon as the source has told all that it assigns. Nothing assigned: not at the end.
    let nothing = SourceEvent::End { id: id(0), ownership: 1, end: at(0) };
    let empty = Case { script: vec![assigned(0, None, 0, 0), nothing.clone()], ..of(until(true, None)) };
    assert_eq!(run(empty).result.unwrap().stopped, Some(StopReason::End));
    // An empty first partition says nothing of the second.
    let script = vec![assigned(0, None, 0, 0), assigned(1, Some(0), 0, 1), nothing, batch(1, &[0], 1)];
    let second = run(Case { script, in_sink: vec![(1, 0)], ..of(until(true, None)) }).result.unwrap();
    assert_eq!((second.handled, second.stopped), (1, Some(StopReason::End)));
    let none = Case { script: Vec::new(), ..of(until(true, None)) };
    assert_eq!(run(none).result.unwrap().stopped, Some(StopReason::Asked));
    // The end went back, or is reached by word of the source.
    let ended = SourceEvent::End { id: id(0), ownership: 1, end: at(1) };
    let word = Case {
        script: vec![assigned(0, Some(1), 0, 2), ended],
        in_sink: vec![(0, 1)],
        ..of(until(true, None))
    };
    assert_eq!(run(word).result.unwrap().stopped, Some(StopReason::End));
}

#[test]
fn a_decision_at_the_start_is_saved_at_once() {
    let case = |authority| Case { script: vec![assigned(0, None, 3, 9)], authority, ..Case::default() };
    let expect = ["seek 0:3", "write [] 0->3", "group 0:3 (--on-no-offset earliest)"];
    check(case(true), &expect).unwrap();
    check(case(false), &expect).unwrap();
    // The group was moved ahead of the sink, whose word counts.
    let ahead = Case { script: vec![assigned(0, Some(7), 0, 9)], in_sink: vec![(0, 4)], ..Case::default() };
    check(ahead, &["seek 0:4", "group 0:4 (memory keeps the offset)"]).unwrap();
    // The group may be followed where the sink has nothing: the sink knows from then on.
    let options = RunOptions { on_lost_state: OnLostState::FollowGroup, ..RunOptions::default() };
    let new = Case { script: vec![assigned(0, Some(7), 0, 9)], options, ..Case::default() };
    check(new, &["seek 0:7", "write [] 0->7"]).unwrap();
}

#[test]
fn more_than_fits_is_saved_before_it_is_due() {
    let case = Case {
        script: vec![start(), batch(0, &[0, 1, 2], 3)],
        options: saving(SavePolicy::AtStop),
        in_sink: vec![(0, 0)],
        answer: |_| {
            let long = format!("\"{}\"", "x".repeat(5 << 20));
            Ok(Answer::record(Record::from_json(long).unwrap()))
        },
        ..Case::default()
    };
    let expect = [
        "seek 0:0",
        "handle 0:0",
        "handle 0:1",
        "write [0:0 0:1] 0->2",
        "handle 0:2",
        "write [0:2] 0->3",
        "group 0:3",
    ];
    check(case, &expect).unwrap();
}
