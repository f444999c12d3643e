//! Until when an event may take: the time-out, or the drain once a stop was asked for, whichever is first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::HandlerError;

/// How long at most until a stop is noticed while the handler works.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// The end of the time that a handler has for an event.
#[derive(Debug)]
pub(super) struct Deadline {
    timeout: Option<Instant>,
    drain: Option<Instant>,
}

impl Deadline {
    /// From now on.
    pub(super) fn new(timeout: Option<Duration>) -> Deadline {
        Deadline { timeout: timeout.map(|timeout| Instant::now() + timeout), drain: None }
    }

    /// The time-out counts from now on.
    pub(super) fn begin_anew(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout.map(|timeout| Instant::now() + timeout);
    }

    /// When to look the next time.
    pub(super) fn next_tick(&self) -> Instant {
        let tick = Instant::now() + TICK;
        [self.timeout, self.drain].into_iter().flatten().fold(tick, Instant::min)
    }

    /// Fails when the time is over.
    pub(super) fn check(
        &mut self,
        timeout: Option<Duration>,
        drain: Duration,
        stop: Option<&AtomicBool>,
    ) -> Result<(), HandlerError> {
        let now = Instant::now();
        if let (Some(deadline), Some(after)) = (self.timeout, timeout)
            && now >= deadline
        {
            return Err(HandlerError::TimedOut { after });
        }
        if self.drain.is_none() && stop.is_some_and(|stop| stop.load(Ordering::SeqCst)) {
            self.drain = Some(now + drain);
        }
        match self.drain {
            Some(deadline) if now >= deadline => Err(HandlerError::GivenBack { after: drain }),
            _ => Ok(()),
        }
    }
}
