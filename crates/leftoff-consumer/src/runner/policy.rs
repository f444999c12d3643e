//! What follows a failed attempt: a pure decision, and how long to wait before the next one.

use std::num::NonZeroU32;
use std::time::Duration;

use super::{Backoff, FailReason, OnFail, RunOptions};
use crate::handler::HandlerError;

#[cfg(test)]
mod tests;

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Try again.
    Again,
    /// Stop before the event.
    Stop,
    /// Pass the event by, and keep it as a dead letter where that is the policy.
    Skip,
}

/// How often an event was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tries {
    /// Attempts that failed, those of earlier runs included.
    pub(super) failed: u32,
    /// Those of this run.
    pub(super) failed_here: u32,
}

impl Tries {
    pub(super) fn and_one(self) -> Tries {
        Tries { failed: self.failed.saturating_add(1), failed_here: self.failed_here.saturating_add(1) }
    }
}

/// The policy of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    on_fail: OnFail,
    limit: Option<NonZeroU32>,
}

impl Policy {
    pub(super) fn new(options: &RunOptions) -> Policy {
        Policy { on_fail: options.on_fail, limit: options.attempts.or(options.on_fail.default_attempts()) }
    }

    /// How many attempts an event has, for messages; `None` is without a limit.
    pub(super) fn limit(&self) -> Option<NonZeroU32> {
        self.limit
    }

    /// True if the first fault of a handler ends the run, whether or not it had an event.
    pub(super) fn ends_with_the_first_fault(&self) -> bool {
        self.on_fail == OnFail::Stop && self.limit == Some(NonZeroU32::MIN)
    }

    /// What follows an attempt that failed; `tries` counts it.
    pub(super) fn verdict(&self, tries: Tries, reason: &FailReason, retry: bool) -> Verdict {
        if retry && !self.is_used_up(tries) {
            return Verdict::Again;
        }
        match self.on_fail {
            OnFail::Stop | OnFail::Retry => Verdict::Stop,
            // The event is not to blame where nothing was there that could have handled it.
            OnFail::Skip | OnFail::Dead if is_of_the_event(reason) => Verdict::Skip,
            OnFail::Skip | OnFail::Dead => Verdict::Stop,
        }
    }

    /// What becomes of an event without another attempt, because of those of earlier runs. `None`: it is tried.
    pub(super) fn verdict_before(&self, tries: Tries) -> Option<Verdict> {
        match self.on_fail {
            OnFail::Stop | OnFail::Retry => None,
            OnFail::Skip | OnFail::Dead => self.is_used_up(tries).then_some(Verdict::Skip),
        }
    }

    fn is_used_up(&self, tries: Tries) -> bool {
        let counts = match self.on_fail {
            // Whoever starts it again after a stop wants another try.
            OnFail::Stop | OnFail::Retry => tries.failed_here,
            OnFail::Skip | OnFail::Dead => tries.failed,
        };
        self.limit.is_some_and(|limit| counts >= limit.get())
    }
}

fn is_of_the_event(reason: &FailReason) -> bool {
    match reason {
        FailReason::Reported(_) | FailReason::Record(_) | FailReason::Earlier(_) => true,
        FailReason::Handler(error) => !matches!(error, HandlerError::Start { .. } | HandlerError::Io { .. }),
    }
}

/// The waits of a run.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    backoff: Backoff,
    random: u64,
}

impl Waits {
    pub(super) fn new(options: &RunOptions) -> Waits {
        Waits { backoff: options.backoff, random: options.seed }
    }

    /// How long to wait after so many failures of an event.
    pub(super) fn after(&mut self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let whole = self.backoff.first.saturating_mul(doubled).min(self.backoff.most);
        whole - (whole / 2).mul_f64(self.fraction())
    }

    /// From 0 up to 1: SplitMix64, whose every seed is a good one.
    fn fraction(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}
