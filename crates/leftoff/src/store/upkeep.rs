//! A store that serves many: requests whose callers do not wait, and the thread that syncs and keeps time for them.

use std::time::Duration;

use leftoff_engine::broker::{Input, Reply, Request};
use leftoff_engine::types::Timestamp;

use super::{Store, Then, now};

/// What is due is done so much later, and only if the store could be entered at the first look, too: whoever had been held
/// up by a slow disk has come in by then, and no member is put out for a heartbeat that was waiting.
const GRACE_MS: i64 = 100;
/// A look at the clock, whatever the broker says: the clock may be set.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(1);

impl Store {
    /// Asks for something and goes on; `then` is called with the reply, once what it says is on disk. It must not block,
    /// nor call the store. Needs a thread in [`Store::keep_syncing`].
    pub fn submit_then(&self, request: Request, then: impl FnOnce(Reply) + Send + 'static) {
        let mut inner = self.lock();
        let id = inner.name_request();
        inner.then.insert(id, Then(Box::new(then)));
        inner.broker_mut().handle(now(), Input::Request { id, request });
        self.take_outputs(&mut inner);
        if inner.job.is_some() {
            self.shared.changed.notify_all();
        }
    }

    /// Does all syncs and what is due, until [`Store::stop_syncing`]; `published` is called after each round, when there may
    /// be something new to read, with the time that its sync took. For a thread of its own.
    pub fn keep_syncing(&self, published: impl Fn(Duration)) {
        let mut inner = self.lock();
        let mut first_seen_due: Option<Timestamp> = None;
        loop {
            if inner.job.is_some() {
                inner = self.do_sync(inner);
                published(inner.last_sync);
                continue;
            }
            if inner.stops_syncing && !inner.broker().is_syncing() {
                return;
            }
            let at = now();
            let due = inner.broker().next_deadline().filter(|due| *due <= at);
            match (due, first_seen_due) {
                (None, _) => first_seen_due = None,
                (Some(_), None) => first_seen_due = Some(at),
                (Some(_), Some(seen)) if at.as_ms() - seen.as_ms() >= GRACE_MS => {
                    first_seen_due = None;
                    // Whatever had arrived when it was first seen to be due was taken in since.
                    inner.broker_mut().handle_deadline_heard(at, seen);
                    self.take_outputs(&mut inner);
                    continue;
                }
                (Some(_), Some(_)) => {}
            }
            let wait_ms = match (first_seen_due, inner.broker().next_deadline()) {
                (Some(seen), _) => seen.as_ms() + GRACE_MS - at.as_ms(),
                (None, Some(next)) => next.as_ms() - at.as_ms(),
                (None, None) => i64::MAX,
            };
            let wait = Duration::from_millis(wait_ms.max(1).unsigned_abs()).min(LOOK_AT_CLOCK);
            (inner, _) =
                self.shared.changed.wait_timeout(inner, wait).expect("no one panics while holding the lock");
        }
    }

    /// Ends [`Store::keep_syncing`] once all that was submitted is on disk.
    pub fn stop_syncing(&self) {
        self.lock().stops_syncing = true;
        self.shared.changed.notify_all();
    }
}
