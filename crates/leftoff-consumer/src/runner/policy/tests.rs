#![allow(clippy::unwrap_used)]

use super::*;

fn options(on_fail: OnFail, attempts: u32) -> RunOptions {
    RunOptions { on_fail, attempts: NonZeroU32::new(attempts), ..RunOptions::default() }
}

fn reported() -> FailReason {
    FailReason::Reported("no".to_owned())
}

#[test]
fn what_follows_a_failed_attempt() {
    use Verdict::{Again, Skip, Stop};
    // The policy, the attempts asked for (0: none), failed in all and in this run, what follows.
    let rows = [
        (OnFail::Stop, 0, 1, 1, Stop),
        (OnFail::Stop, 3, 2, 2, Again),
        (OnFail::Stop, 3, 3, 3, Stop),
        // A person started it again: its attempts begin anew.
        (OnFail::Stop, 3, 5, 2, Again),
        (OnFail::Retry, 0, 1_000_000, 1_000_000, Again),
        (OnFail::Retry, 2, 2, 2, Stop),
        (OnFail::Skip, 0, 2, 2, Again),
        (OnFail::Skip, 0, 3, 3, Skip),
        (OnFail::Skip, 1, 1, 1, Skip),
        // Attempts survive a crash.
        (OnFail::Skip, 3, 3, 1, Skip),
    ];
    for (on_fail, attempts, failed, failed_here, expect) in rows {
        let policy = Policy::new(&options(on_fail, attempts));
        let tries = Tries { failed, failed_here };
        let row = format!("{on_fail:?} --attempts {attempts}, {tries:?}");
        assert_eq!(policy.verdict(tries, &reported(), true), expect, "{row}");
        let at_the_end = if on_fail == OnFail::Skip { Skip } else { Stop };
        assert_eq!(policy.verdict(tries, &reported(), false), at_the_end, "{row}, not to be retried");
    }
}

#[test]
fn an_event_is_not_to_blame_for_a_handler_that_is_not_there() {
    let policy = Policy::new(&options(OnFail::Skip, 1));
    let tries = Tries { failed: 1, failed_here: 1 };
    let missing = HandlerError::Start { command: "x".to_owned(), error: std::io::ErrorKind::NotFound.into() };
    assert_eq!(policy.verdict(tries, &FailReason::Handler(missing), true), Verdict::Stop);
}

#[test]
fn attempts_of_earlier_runs_use_an_event_up_where_it_would_be_passed_by() {
    let before =
        |on_fail, failed| Policy::new(&options(on_fail, 3)).verdict_before(Tries { failed, failed_here: 0 });
    assert_eq!(before(OnFail::Skip, 2), None);
    assert_eq!(before(OnFail::Skip, 3), Some(Verdict::Skip));
    assert_eq!(before(OnFail::Stop, 3), None);
    assert_eq!(before(OnFail::Retry, 3), None);
}

#[test]
fn waits_double_up_to_the_limit_from_the_first_retry_on() {
    let seconds = Duration::from_secs;
    let options = RunOptions { seed: 7, ..RunOptions::default() };
    let (mut waits, mut same) = (Waits::new(&options), Waits::new(&options));
    for (failures, whole) in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (33, 60), (u32::MAX, 60)] {
        let wait = waits.after(failures);
        assert!(wait > seconds(whole) / 2 && wait <= seconds(whole), "{failures}: {wait:?}");
        assert_eq!(wait, same.after(failures), "the same seed, the same waits");
    }
    let mut other = Waits::new(&RunOptions { seed: 8, ..RunOptions::default() });
    assert_ne!(waits.after(1), other.after(1));
}
