//! Workers: each is a thread with a handler of its own. They are fed by channels, and whatever they have to tell comes back on
//! the one channel on which the saver answers, too, so the runner waits in one place.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::Scope;
use std::time::Duration;

use super::lanes::{Work, size_bytes};
use super::saver::Saved;
use crate::handler::{Answer, Delivery, Handler, HandlerError};

/// What all workers together may have in hand, in bytes of events: one that would have more waits until it has nothing. A handler's
/// process has as much again, in lines.
const MAX_IN_HAND_BYTES: usize = 32 << 20;
/// How often a handler with nothing to do is looked after.
const IDLE: Duration = Duration::from_millis(100);
/// How long a worker that could take more events waits for an answer before it looks whether there are any.
const LOOK_FOR_MORE: Duration = Duration::from_millis(1);

/// What comes to the runner from its other threads.
pub(super) enum News<'a> {
    /// A handler has started, or cannot.
    Started(Result<(), HandlerError>),
    /// What came of an event.
    Answered { worker: usize, work: Work, answer: Result<Answer, HandlerError> },
    /// A worker does not have this event any more: one that it was given before has failed.
    Returned { worker: usize, work: Work },
    /// A handler broke the rules, or ended, while it had nothing.
    Fault(HandlerError),
    /// A handler has stopped.
    Stopped(Result<(), HandlerError>),
    /// The sink is back.
    Saved(Saved<'a>),
}

/// An event for a worker.
struct Job {
    work: Work,
    topic: Arc<str>,
    attempt: u32,
}

/// All workers, as the runner sees them.
pub(super) struct Crew {
    workers: Vec<Station>,
}

struct Station {
    jobs: Sender<Job>,
    depth: usize,
    in_hand: usize,
    in_hand_bytes: usize,
}

impl Crew {
    /// Starts a thread for each handler. Each tells [`News::Started`] first.
    pub(super) fn start<'scope, 'a>(
        scope: &'scope Scope<'scope, 'a>,
        handlers: Vec<&'a mut (dyn Handler + Send)>,
        drain: Duration,
        news: &Sender<News<'a>>,
    ) -> Crew {
        let mut workers = Vec::new();
        for (worker, handler) in handlers.into_iter().enumerate() {
            let (jobs, work) = channel();
            workers.push(Station { jobs, depth: handler.depth(), in_hand: 0, in_hand_bytes: 0 });
            let news = news.clone();
            scope.spawn(move || Worker { worker, handler, jobs: work, news }.work(drain));
        }
        Crew { workers }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.workers.len()
    }

    /// How many events all of them together may have.
    pub(super) fn capacity(&self) -> usize {
        self.workers.iter().map(|station| station.depth).sum()
    }

    /// Those that can take one more, the least busy first.
    pub(super) fn with_room(&self) -> Vec<usize> {
        let has_much =
            self.workers.iter().map(|station| station.in_hand_bytes).sum::<usize>() >= MAX_IN_HAND_BYTES;
        let has_room = |worker: &usize| match self.workers[*worker].in_hand {
            0 => true,
            in_hand => in_hand < self.workers[*worker].depth && !has_much,
        };
        let mut workers: Vec<usize> = (0..self.workers.len()).filter(has_room).collect();
        workers.sort_by_key(|worker| self.workers[*worker].in_hand);
        workers
    }

    pub(super) fn give(&mut self, worker: usize, work: Work, topic: Arc<str>, attempt: u32) {
        let station = &mut self.workers[worker];
        station.in_hand += 1;
        station.in_hand_bytes += size_bytes(&work.event);
        station.jobs.send(Job { work, topic, attempt }).expect("a worker lives until it is dismissed");
    }

    /// A worker has one event less.
    pub(super) fn took_back(&mut self, worker: usize, work: &Work) {
        self.workers[worker].in_hand -= 1;
        self.workers[worker].in_hand_bytes -= size_bytes(&work.event);
    }
}

struct Worker<'h, 'a> {
    worker: usize,
    handler: &'h mut (dyn Handler + Send),
    jobs: Receiver<Job>,
    news: Sender<News<'a>>,
}

impl<'a> Worker<'_, 'a> {
    /// Until the runner sends no more.
    fn work(mut self, drain: Duration) {
        let started = self.handler.start();
        let is_up = started.is_ok();
        self.tell(News::Started(started));
        if is_up {
            if self.handler.depth() == 1 { self.one_by_one() } else { self.many_at_a_time() }
        }
        let stopped = self.handler.stop(drain);
        self.tell(News::Stopped(stopped));
    }

    /// The runner listens until all its workers are gone; one that panics takes them with it.
    fn tell(&self, news: News<'a>) {
        let _nobody_listens = self.news.send(news);
    }

    fn one_by_one(&mut self) {
        loop {
            match self.jobs.recv_timeout(IDLE) {
                Ok(Job { work, topic, attempt }) => {
                    let delivery = delivery(&topic, &work, attempt);
                    let answer = self.handler.handle(&delivery);
                    self.tell(News::Answered { worker: self.worker, work, answer });
                }
                Err(RecvTimeoutError::Timeout) => self.look_after(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn look_after(&mut self) {
        if let Err(error) = self.handler.idle() {
            self.tell(News::Fault(error));
        }
    }

    fn many_at_a_time(&mut self) {
        let depth = self.handler.depth();
        let mut has: VecDeque<(u64, Work)> = VecDeque::new();
        let mut next_token = 0;
        let mut is_open = true;
        while is_open || !has.is_empty() {
            while is_open && has.len() < depth {
                let job = if has.is_empty() { self.jobs.recv_timeout(IDLE) } else { next(&self.jobs) };
                match job {
                    Ok(Job { work, topic, attempt }) => {
                        next_token += 1;
                        let given = self.handler.give(next_token, &delivery(&topic, &work, attempt));
                        has.push_back((next_token, work));
                        if let Err(error) = given {
                            self.failed(&mut has, None, Err(error));
                        }
                    }
                    Err(RecvTimeoutError::Timeout) if has.is_empty() => self.look_after(),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => is_open = false,
                }
            }
            if has.is_empty() {
                continue;
            }
            let wait = if is_open && has.len() < depth { LOOK_FOR_MORE } else { IDLE };
            match self.handler.take(wait) {
                Ok(None) => {}
                Ok(Some((token, answer @ Answer::Failed { .. }))) => {
                    self.handler.give_back();
                    self.failed(&mut has, Some(token), Ok(answer));
                }
                Ok(Some((token, answer))) => {
                    let at = has.iter().position(|(given, _)| *given == token);
                    let (_, work) = at.and_then(|at| has.remove(at)).expect("it answers for what it has");
                    self.tell(News::Answered { worker: self.worker, work, answer: Ok(answer) });
                }
                Err(error) => self.failed(&mut has, None, Err(error)),
            }
        }
    }

    /// One event has failed: the one that is named, or the one that it has had for longest. The others come again.
    fn failed(
        &mut self,
        has: &mut VecDeque<(u64, Work)>,
        token: Option<u64>,
        answer: Result<Answer, HandlerError>,
    ) {
        let at = token.and_then(|token| has.iter().position(|(given, _)| *given == token)).unwrap_or(0);
        let (_, work) = has.remove(at).expect("it fails with what it has");
        self.tell(News::Answered { worker: self.worker, work, answer });
        for (_, work) in has.drain(..) {
            self.tell(News::Returned { worker: self.worker, work });
        }
    }
}

fn next(jobs: &Receiver<Job>) -> Result<Job, RecvTimeoutError> {
    jobs.try_recv().map_err(|error| match error {
        TryRecvError::Empty => RecvTimeoutError::Timeout,
        TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
    })
}

fn delivery<'d>(topic: &'d str, work: &'d Work, attempt: u32) -> Delivery<'d> {
    Delivery { topic, id: work.ticket.id, event: &work.event, attempt }
}
