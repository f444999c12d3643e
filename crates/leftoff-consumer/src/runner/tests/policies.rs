//! What follows a failure, policy by policy.

use std::num::NonZeroU32;

use super::*;
use crate::testing::event;

fn policy(on_fail: OnFail, attempts: u32) -> RunOptions {
    let second = Duration::from_secs(1);
    RunOptions {
        on_fail,
        attempts: NonZeroU32::new(attempts),
        backoff: Backoff { first: second, most: second },
        ..RunOptions::default()
    }
}

fn no() -> Result<Answer, HandlerError> {
    Ok(Answer::Failed { error: "no".to_owned(), retry: true })
}

fn never() -> Result<Answer, HandlerError> {
    Ok(Answer::Failed { error: "never".to_owned(), retry: false })
}

fn died() -> Result<Answer, HandlerError> {
    Err(HandlerError::Ended { how: "exited with code 1".to_owned(), unfinished: String::new() })
}

/// Events 0, 1, 2 in partition 0 of a sink with authority that stands at 0.
fn three(options: RunOptions, attempts: AnswerTo) -> Case {
    Case {
        script: vec![start(), batch(0, &[0, 1, 2], 3)],
        options,
        in_sink: vec![(0, 0)],
        attempts: Some(attempts),
        idle_polls: 100,
        ..Case::default()
    }
}

const SKIPPED: &str = "(--on-fail skip after 2 attempts: the handler reports: no)";

#[test]
fn an_event_is_tried_again_until_it_is_handled() {
    let case = three(policy(OnFail::Retry, 0), |offset, attempt| match (offset, attempt) {
        (1, 1) => no(),
        (1, 2) => died(),
        _ => one_record(),
    });
    let expect = [
        "seek 0:0",
        "handle 0:0",
        "write [0:0] 0->1",
        "handle 0:1",
        // The failure survives a crash; nothing is passed.
        "group 0:1 [tried=1:1:the%20handler%20reports:%20no]",
        "handle 0:1#2",
        "group 0:1 [tried=1:2:the%20handler%20exited%20with%20code%201]",
        "handle 0:1#3",
        "write [0:1] 0->2",
        "handle 0:2",
        "write [0:2] 0->3",
        "group 0:3",
    ];
    let report = check(case, &expect).unwrap();
    assert_eq!((report.handled, report.failed_attempts, report.faults), (3, 2, 1));
}

#[test]
fn used_up_attempts_stop_before_the_event() {
    for on_fail in [OnFail::Stop, OnFail::Retry] {
        let case = three(policy(on_fail, 2), |offset, _| if offset == 1 { no() } else { one_record() });
        let failure = run(case).result.unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("offset 1 was not handled in 2 attempts: the handler reports: no"), "{text}");
        assert_eq!((failure.error.exit_code(), failure.report.partitions[0].committed), (1, Some(next(1))));
    }
}

#[test]
fn a_skipped_event_is_an_outcome_and_a_decision() {
    let case = |authority| Case {
        authority,
        ..three(policy(OnFail::Skip, 2), |o, _| if o == 1 { no() } else { one_record() })
    };
    let with_authority = [
        "seek 0:0",
        "handle 0:0",
        "write [0:0] 0->1",
        "handle 0:1",
        "group 0:1 [tried=1:1:the%20handler%20reports:%20no]",
        "handle 0:1#2",
        "write [0:1s] 0->2",
        &format!("group 0:2 {SKIPPED}"),
        "handle 0:2",
        "write [0:2] 0->3",
        "group 0:3",
    ];
    let report = check(case(true), &with_authority).unwrap();
    assert_eq!((report.handled, report.skipped, report.written), (2, 1, 2));
    let mut without = Case { in_sink: Vec::new(), ..case(false) };
    without.options.save = SavePolicy::AtStop;
    let without_authority = [
        "seek 0:0",
        "handle 0:0",
        "handle 0:1",
        // The attempt is kept beside what is saved, wherever that is.
        "group 0:0 [tried=1:1:the%20handler%20reports:%20no]",
        "handle 0:1#2",
        // What is before it is saved for itself, so that the decision is a move of its own.
        "write [0:0] 0->1",
        "group 0:1 [tried=1:1:the%20handler%20reports:%20no]",
        "write [0:1s] 0->2",
        &format!("group 0:2 {SKIPPED}"),
        "handle 0:2",
        "write [0:2] 0->3",
        "group 0:3",
    ];
    check(without, &without_authority).unwrap();
}

#[test]
fn not_to_be_retried_goes_to_the_end_of_attempts_at_once() {
    let at_one = |offset, _| if offset == 1 { never() } else { one_record() };
    let report = run(three(policy(OnFail::Skip, 9), at_one)).result.unwrap();
    assert_eq!((report.skipped, report.failed_attempts), (1, 1));
    let failure = run(three(policy(OnFail::Retry, 0), at_one)).result.unwrap_err();
    assert_eq!(failure.error.exit_code(), 1);
}

#[test]
fn a_record_that_the_sink_refuses_is_a_failure_of_its_event() {
    let case =
        Case { refuses: Some(1), attempts: None, ..three(policy(OnFail::Skip, 2), |_, _| one_record()) };
    let report = run(case).result.unwrap();
    assert_eq!((report.handled, report.skipped, report.failed_attempts), (2, 1, 2));
}

#[test]
fn no_event_is_skipped_because_the_handler_is_not_there() {
    fn missing() -> Result<Answer, HandlerError> {
        let error = std::io::ErrorKind::NotFound.into();
        Err(HandlerError::Start { command: "gone".to_owned(), error })
    }
    let case = three(policy(OnFail::Skip, 2), |offset, _| if offset == 1 { missing() } else { one_record() });
    let failure = run(case).result.unwrap_err();
    assert!(failure.to_string().contains("cannot start the handler gone"), "{failure}");
    assert_eq!(failure.report.skipped, 0);
}

#[test]
fn an_event_that_waits_holds_up_its_partition_only() {
    let case = Case {
        script: vec![start(), assigned(1, Some(0), 0, 9), batch(0, &[0, 1], 2), batch(1, &[1, 2], 3)],
        in_sink: vec![(0, 0), (1, 0)],
        attempts: Some(|offset, attempt| if (offset, attempt) == (0, 1) { no() } else { one_record() }),
        ..three(policy(OnFail::Retry, 0), |_, _| one_record())
    };
    let handled: Vec<_> = run(case).trace.into_iter().filter(|line| line.starts_with("handle")).collect();
    assert_eq!(handled, ["handle 0:0", "handle 1:1", "handle 1:2", "handle 0:0#2", "handle 0:1"]);
}

#[test]
fn between_two_events_a_fault_costs_no_attempt() {
    fn stray(attempt: u32) -> Result<Answer, HandlerError> {
        thread_local!(static SEEN: Cell<bool> = const { Cell::new(false) });
        if SEEN.replace(true) {
            assert_eq!(attempt, 1);
            return one_record();
        }
        let how = "exited with code 0".to_owned();
        Err(HandlerError::Between(Box::new(HandlerError::Ended { how, unfinished: String::new() })))
    }
    let at_one = |offset, attempt| if offset == 1 { stray(attempt) } else { one_record() };
    let report = run(three(policy(OnFail::Skip, 1), at_one)).result.unwrap();
    assert_eq!((report.handled, report.faults, report.failed_attempts), (3, 1, 0));
}

#[test]
fn with_the_default_a_fault_between_two_events_ends_the_run() {
    let between = |offset, _| match offset {
        1 => Err(HandlerError::Between(Box::new(died().unwrap_err()))),
        _ => one_record(),
    };
    let failure = run(three(RunOptions::default(), between)).result.unwrap_err();
    assert_eq!(failure.to_string(), "between two events, the handler exited with code 1");
    assert_eq!(failure.report.partitions[0].committed, Some(next(1)));
}

/// What was saved for partition 0 when the run was asked to stop just as it had said these words.
fn stopped_at(words: &'static str, case: Case) -> (Option<Committed>, Vec<String>) {
    struct StopAt<'a>(&'static str, &'a AtomicBool);
    impl Progress for StopAt<'_> {
        fn notice(&mut self, notice: &str) {
            if notice.contains(self.0) {
                self.1.store(true, Ordering::SeqCst);
            }
        }
    }
    let (trace, stop) = (Trace::default(), Arc::new(AtomicBool::new(false)));
    let answer = case.attempts.unwrap();
    let clock = Rc::new(StepClock::default());
    let mut source = ScriptSource {
        script: case.script.into(),
        stop: stop.clone(),
        trace: trace.clone(),
        idle_polls: case.idle_polls,
        clock: clock.clone(),
        ..ScriptSource::default()
    };
    let mut sink = MemSink {
        authority: true,
        stands: [(id(0), next(0))].into(),
        trace: trace.clone(),
        ..MemSink::default()
    };
    let report = Runner::new(Parts {
        source: &mut source,
        handlers: Handlers::One(&mut FnHandler { answer, trace: trace.clone() }),
        sink: &mut sink,
        progress: &mut StopAt(words, &stop),
        clock: clock.as_ref(),
        stop: &stop,
        options: &case.options,
    })
    .run()
    .unwrap();
    assert_eq!((report.stopped, report.skipped), (Some(StopReason::Asked), 0));
    (sink.stands.get(&id(0)).copied(), trace.lines())
}

mod complaints {
    //! Complaints that others have had, each tried.

    use super::*;

    #[test]
    fn c01_a_failed_event_is_not_passed_by_a_later_success() {
        for (options, committed) in [(policy(OnFail::Retry, 2), 1), (RunOptions::default(), 1)] {
            let failure =
                run(three(options, |o, _| if o == 1 { no() } else { one_record() })).result.unwrap_err();
            assert_eq!(failure.report.partitions[0].committed, Some(next(committed)));
        }
    }

    #[test]
    fn c02_a_stop_amid_retries_gives_the_event_back() {
        for on_fail in [OnFail::Retry, OnFail::Skip] {
            let case = three(policy(on_fail, 3), |o, _| if o == 1 { no() } else { one_record() });
            let (saved, trace) = stopped_at("attempt 2 of 3 failed", case);
            assert_eq!(saved, Some(next(1)), "{trace:?}");
            assert!(!trace.iter().any(|line| line.contains("handle 0:2")), "{trace:?}");
        }
    }

    #[test]
    fn c03_a_skipped_event_does_not_come_again_after_a_restart() {
        let ran = run(three(policy(OnFail::Skip, 1), |o, _| if o == 1 { no() } else { one_record() }));
        assert!(ran.trace.contains(&"write [0:1s] 0->2".to_owned()), "outcome and offset in one step");
        // Killed between the last failure and that: it is passed by, not tried for ever.
        let mut words = assigned(0, Some(1), 0, 3);
        if let SourceEvent::Assigned { metadata, .. } = &mut words {
            *metadata = "tried=1:2:no".to_owned();
        }
        let case = Case {
            script: vec![words, batch(0, &[1, 2], 3)],
            in_sink: vec![(0, 1)],
            ..three(policy(OnFail::Skip, 2), |_, _| one_record())
        };
        let ran = run(case);
        assert_eq!(ran.result.unwrap().skipped, 1);
        assert!(!ran.trace.iter().any(|line| line.starts_with("handle 0:1")), "{:?}", ran.trace);
        assert!(ran.trace.contains(&"group 0:2 (--on-fail skip after 2 attempts: no)".to_owned()));
    }

    #[test]
    fn c04_an_exception_does_not_count_as_success() {
        let report = |answer| run(three(RunOptions::default(), answer)).result.unwrap_err().report;
        assert_eq!(report(|_, _| no()).handled, 0);
        assert_eq!(report(|_, _| died()).handled, 0);
        assert_eq!(report(|_, _| Err(HandlerError::TimedOut { after: Duration::from_secs(1) })).handled, 0);
        assert_eq!(report(|_, _| Err(HandlerError::Closed("input"))).handled, 0);
    }

    #[test]
    fn c05_at_least_once_is_the_default() {
        let case = three(RunOptions::default(), |_, _| one_record());
        let trace = run(case).trace;
        let at = |line: &str| trace.iter().position(|found| found == line).unwrap();
        assert!(at("handle 0:0") < at("write [0:0] 0->1"), "saved after it is handled: {trace:?}");
    }

    #[test]
    fn c06_a_retry_waits_from_the_first_one_on() {
        // The clock goes on by waiting alone, 100 ms at most in a poll; the first retry is due after half a second at least.
        let case = |idle_polls| {
            let fails = three(policy(OnFail::Retry, 3), |o, _| if o == 0 { no() } else { one_record() });
            run(Case { idle_polls, ..fails })
                .trace
                .iter()
                .filter(|line| line.starts_with("handle 0:0"))
                .count()
        };
        assert_eq!((case(3), case(100)), (1, 3));
    }

    #[test]
    fn c07_attempts_have_an_end() {
        let report = run(three(policy(OnFail::Skip, 5), |o, _| if o == 1 { no() } else { one_record() }));
        assert_eq!(report.result.unwrap().failed_attempts, 5);
        assert_eq!(OnFail::Skip.default_attempts(), NonZeroU32::new(3));
    }

    /// The source hears of the runner while an event waits, so it can keep its hold on the partition.
    #[test]
    fn c08_the_source_is_served_while_an_event_waits() {
        struct Counting(ScriptSource, u32);
        impl Source for Counting {
            fn event_at(
                &mut self,
                _: PartitionId,
                _: Offset,
            ) -> Result<Option<crate::source::Event>, SourceError> {
                Ok(None)
            }

            fn poll(&mut self, wait: Duration) -> Result<SourceEvent, SourceError> {
                self.1 += 1;
                match self.0.script.is_empty() && self.1 < 50 {
                    true => Ok(SourceEvent::Idle),
                    false => self.0.poll(wait),
                }
            }
            fn seek(&mut self, id: PartitionId, to: Offset) -> Result<(), SourceError> {
                self.0.seek(id, to)
            }
            fn save(&mut self, saves: &[crate::source::Save]) -> Result<(), SourceError> {
                self.0.save(saves)
            }
        }
        let (trace, stop) = (Trace::default(), Arc::new(AtomicBool::new(false)));
        let script = ScriptSource {
            script: vec![start(), batch(0, &[0], 1)].into(),
            stop: stop.clone(),
            trace: trace.clone(),
            ..ScriptSource::default()
        };
        let mut source = Counting(script, 0);
        let answer = |_, _| no();
        let _ends_by_the_stop = Runner::new(Parts {
            source: &mut source,
            handlers: Handlers::One(&mut FnHandler { answer, trace: trace.clone() }),
            sink: &mut MemSink { trace: trace.clone(), ..MemSink::default() },
            progress: &mut NoProgress,
            clock: &StepClock { now: Cell::default(), step: Duration::ZERO },
            stop: &stop,
            options: &policy(OnFail::Retry, 0),
        })
        .run();
        assert!(source.1 >= 50, "it was polled {} times", source.1);
    }

    #[test]
    fn c22_stop_on_the_event_that_cannot_be_handled_is_the_default() {
        let failure = run(three(RunOptions::default(), |o, _| if o == 1 { no() } else { one_record() }))
            .result
            .unwrap_err();
        let text = failure.to_string();
        for words in
            ["quakes/0 offset 1 was not handled", "k1", "v1", "the same command goes on with this event"]
        {
            assert!(text.contains(words), "{words:?} is not in {text}");
        }
        assert_eq!(failure.error.exit_code(), 1);
    }

    #[test]
    fn c24_a_clean_stop_repeats_nothing() {
        let case = Case { in_sink: vec![(0, 0)], ..three(saving(SavePolicy::AtStop), |_, _| one_record()) };
        let ran = run(case);
        assert_eq!(ran.result.unwrap().partitions[0].committed, Some(next(3)), "{:?}", ran.trace);
    }
}

#[test]
fn the_events_behind_one_that_waits_do_not_fill_the_memory() {
    struct Endless {
        next: i64,
        paused: Vec<bool>,
        stop: Arc<AtomicBool>,
        polls: u32,
    }
    impl Source for Endless {
        fn event_at(
            &mut self,
            _: PartitionId,
            _: Offset,
        ) -> Result<Option<crate::source::Event>, SourceError> {
            Ok(None)
        }

        fn poll(&mut self, _wait: Duration) -> Result<SourceEvent, SourceError> {
            self.polls += 1;
            if self.polls > 100 {
                self.stop.store(true, Ordering::SeqCst);
            }
            match (self.polls, self.paused.last()) {
                (1, _) => Ok(assigned(0, Some(0), 0, 1 << 40)),
                (_, Some(true)) => Ok(SourceEvent::Idle),
                _ => {
                    let from = self.next;
                    self.next += 600;
                    let events = (from..self.next).map(event).collect();
                    let (next, end) = (at(self.next), at(1 << 40));
                    Ok(SourceEvent::Batch { id: id(0), ownership: 1, events, next, end })
                }
            }
        }
        fn seek(&mut self, _id: PartitionId, _to: Offset) -> Result<(), SourceError> {
            Ok(())
        }
        fn pause(&mut self, _id: PartitionId, paused: bool) {
            self.paused.push(paused);
        }
        fn save(&mut self, _saves: &[crate::source::Save]) -> Result<(), SourceError> {
            Ok(())
        }
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut source = Endless { next: 0, paused: Vec::new(), stop: stop.clone(), polls: 0 };
    let trace = Trace::default();
    // Event 0 fails, waits, is handled; event 100 fails for ever.
    let answer =
        |offset, attempt| if offset == 100 || (offset, attempt) == (0, 1) { no() } else { one_record() };
    Runner::new(Parts {
        source: &mut source,
        handlers: Handlers::One(&mut FnHandler { answer, trace: trace.clone() }),
        sink: &mut MemSink { trace: trace.clone(), ..MemSink::default() },
        progress: &mut NoProgress,
        clock: &StepClock { now: Cell::default(), step: Duration::from_millis(5) },
        stop: &stop,
        options: &policy(OnFail::Retry, 0),
    })
    .run()
    .unwrap();
    assert!(source.paused.starts_with(&[true, false, true]), "{:?}", source.paused);
    assert!(source.next <= 3_000, "read up to {}", source.next);
}
