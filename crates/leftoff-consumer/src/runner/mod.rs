//! The loop: poll, claim, decide where to start, handle, write, save, mirror, stop.
//!
//! The order that everything rests on: the handler answers, the outputs and the offset behind them are durable in the sink,
//! then the group's offset follows. [`Runner::run`] reads as that table of contents.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `start.rs` | where a partition starts |
//! | `lanes.rs` | events that are fetched and not done, and which of them are handled one after the other |
//! | `work.rs` | handing them out, and what follows each answer |
//! | `arrived.rs` | answers that wait for earlier ones |
//! | `crew.rs`, `saver.rs` | threads: handlers side by side, and saving meanwhile |
//! | `news.rs` | what those tell |
//! | `policy.rs` | what follows a failed attempt |
//! | `tried.rs` | what is kept of attempts, so that it survives a crash |
//! | `save.rs` | when and how all of it is saved |

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::Duration;

use leftoff_wire::{Committed, Offset};

use crate::handler::Handler;
use crate::ledger::Ledger;
use crate::sink::{ClaimPartition, Claimed, LastEvent, Sink, fingerprint};
use crate::source::{Decision, Event, GapReason, PartitionId, Source, SourceEvent};

mod arrived;
mod crew;
mod error;
mod held;
mod lanes;
mod news;
mod options;
mod policy;
mod report;
mod save;
mod saver;
mod start;
#[cfg(test)]
mod tests;
mod tried;
mod work;

pub use error::{FailReason, FailedEvent, Refusal, RunError, RunFailure};
pub use options::{
    Backoff, Clock, Identify, OnFail, OnGap, OnLostState, OnNoOffset, OnOtherLog, Order, RunOptions,
    SavePolicy, StartFrom, SystemClock,
};
pub use report::{
    About, InHand, NoProgress, PartitionReport, PartitionStatus, Progress, Report, Status, StopReason,
};
pub use start::{Facts, Start, decide};
pub use tried::own_words;

use arrived::Arrived;
use crew::{Crew, News};
use held::{Assigned, Held, Partitions};
use lanes::Lanes;
use policy::{Policy, Waits};
use save::Unsaved;
use saver::{Saver, SinkPlace};
use tried::Tried;

/// The longest that one poll waits, so that a stop is noticed soon.
const POLL_WAIT: Duration = Duration::from_millis(100);
/// For how many events a run is careful that found unclean ends without progress.
const CAREFUL_EVENTS: u64 = 1_000;
/// How often [`Progress::status`] is called at most while a batch is worked through.
const STATUS_EVERY: Duration = Duration::from_millis(100);

/// A source, a handler and a sink, put together.
pub struct Runner<'a> {
    source: &'a mut dyn Source,
    handlers: Option<Handlers<'a>>,
    hands: Hands<'a>,
    sink: SinkPlace<'a>,
    saver: Option<Saver<'a>>,
    progress: &'a mut dyn Progress,
    clock: &'a dyn Clock,
    /// Set from outside (a signal) to ask for a clean stop.
    stop: &'a AtomicBool,
    options: &'a RunOptions,
    policy: Policy,
    waits: Waits,
    ledger: Ledger,
    lanes: Lanes,
    arrived: Arrived,
    /// Events that workers have, and since when.
    in_hand: BTreeMap<(PartitionId, Offset), Duration>,
    partitions: Partitions,
    unsaved: Unsaved,
    /// How many outcomes are on their way into the sink.
    saving: usize,
    news: Receiver<News<'a>>,
    tell: Sender<News<'a>>,
    /// What came while something else was waited for.
    mailbox: VecDeque<News<'a>>,
    report: Report,
    authority: bool,
    /// More partitions may come before the first event.
    is_being_assigned: bool,
    /// For so many events more, each is recorded before it is handed out: one of them ends the runner.
    careful_events: u64,
    last_mirror: Duration,
    last_save: Duration,
    last_status: Option<Duration>,
}

/// Who handles events.
enum Hands<'a> {
    /// The runner's own thread.
    One(&'a mut dyn Handler),
    Crew(Crew),
    /// Nobody: before the start, and at the end.
    Nobody,
}

impl Hands<'_> {
    fn capacity(&self) -> usize {
        match self {
            Hands::One(_) => 1,
            Hands::Crew(crew) => crew.capacity(),
            Hands::Nobody => 0,
        }
    }
}

/// The handlers of a run.
pub enum Handlers<'a> {
    /// One, that has one event at a time and is called by the runner's own thread.
    One(&'a mut dyn Handler),
    /// Some that work side by side, or one that has several events at a time: each is called by a thread of its own.
    Crew(Vec<&'a mut (dyn Handler + Send)>),
}

/// What a [`Runner`] is made of.
pub struct Parts<'a> {
    /// Where events come from.
    pub source: &'a mut dyn Source,
    /// What is done with each.
    pub handlers: Handlers<'a>,
    /// Where the outcome goes.
    pub sink: &'a mut dyn Sink,
    /// Who is told how it goes.
    pub progress: &'a mut dyn Progress,
    /// What time it is.
    pub clock: &'a dyn Clock,
    /// Set to true, from anywhere, to stop cleanly: the event in flight is finished, everything saved.
    pub stop: &'a AtomicBool,
    /// How.
    pub options: &'a RunOptions,
}

impl<'a> Runner<'a> {
    /// Puts the parts together; nothing is started.
    pub fn new(parts: Parts<'a>) -> Runner<'a> {
        let now = parts.clock.now();
        let (tell, news) = channel();
        let workers = match &parts.handlers {
            Handlers::One(_) => 1,
            Handlers::Crew(crew) => crew.len(),
        };
        Runner {
            source: parts.source,
            hands: Hands::Nobody,
            lanes: Lanes::new(workers),
            handlers: Some(parts.handlers),
            sink: SinkPlace::new(parts.sink),
            saver: None,
            progress: parts.progress,
            clock: parts.clock,
            stop: parts.stop,
            options: parts.options,
            policy: Policy::new(parts.options),
            waits: Waits::new(parts.options),
            ledger: Ledger::new(),
            arrived: Arrived::default(),
            in_hand: BTreeMap::new(),
            partitions: Partitions::default(),
            unsaved: Unsaved::new(now),
            saving: 0,
            news,
            tell,
            mailbox: VecDeque::new(),
            report: Report::default(),
            authority: false,
            is_being_assigned: true,
            careful_events: 0,
            last_mirror: now,
            last_save: now,
            last_status: None,
        }
    }

    /// Runs until there is a reason to stop, then saves and closes.
    ///
    /// # Errors
    /// Whatever ended the run early. Everything handled before it is saved, as far as the error left a way to do so; the
    /// report in the failure says how far that is.
    pub fn run(mut self) -> Result<Report, Box<RunFailure>> {
        std::thread::scope(|scope| {
            let ended = self.start_handlers(scope).and_then(|()| self.drive());
            let ended = self.collect(ended);
            let ended = self.save_the_rest(ended);
            self.stop_handlers();
            let closed = self.sink.home().close().map_err(RunError::from);
            self.finish_report();
            match ended.and_then(|reason| closed.map(|()| reason)) {
                Ok(reason) => {
                    self.report.stopped = Some(reason);
                    Ok(self.report)
                }
                Err(error) => Err(Box::new(RunFailure { error, report: self.report })),
            }
        })
    }

    /// One handler works in the runner's own thread, several have one each. While a save takes its time there must be
    /// somebody who handles: where each event is saved before the next one is handed out there is nobody.
    fn start_handlers<'scope>(&mut self, scope: &'scope Scope<'scope, 'a>) -> Result<(), RunError> {
        let handlers = self.handlers.take().expect("a runner runs once");
        let is_alone = matches!(handlers, Handlers::One(_));
        if self.options.save_meanwhile && (!is_alone || self.options.save != SavePolicy::EveryEvent) {
            self.saver = Some(Saver::start(scope, self.source.saver(), self.tell.clone()));
        }
        match handlers {
            Handlers::One(handler) => {
                let started = handler.start().map_err(RunError::HandlerStart);
                self.hands = Hands::One(handler);
                started
            }
            Handlers::Crew(handlers) => {
                let crew = Crew::start(scope, handlers, self.options.drain, &self.tell);
                let count = crew.len();
                self.hands = Hands::Crew(crew);
                self.wait_for_starts(count)
            }
        }
    }

    fn drive(&mut self) -> Result<StopReason, RunError> {
        loop {
            self.take_news()?;
            self.work()?;
            if let Some(reason) = self.reason_to_stop() {
                return Ok(reason);
            }
            let is_busy = !self.in_hand.is_empty() || !self.sink.is_home();
            match self.may_poll(if is_busy { Duration::ZERO } else { POLL_WAIT }) {
                Some(wait) => self.poll(wait)?,
                None if !is_busy => self.wait(POLL_WAIT)?,
                None => {}
            }
            if is_busy {
                self.wait_for_news()?;
                // Before the next save takes the sink away again.
                if self.lanes.size().0 == 0 && self.may_poll(Duration::ZERO).is_some() {
                    self.poll(Duration::ZERO)?;
                }
            }
            // A batch that holds nothing but markers moves its partition without an event.
            let now = self.clock.now();
            self.save_if_due(now)?;
            self.mirror_if_due(now)?;
            self.status_if_due(now);
        }
    }

    fn poll(&mut self, wait: Duration) -> Result<(), RunError> {
        let event = self.source.poll(wait)?;
        // All partitions of an assignment are told before anything else: only then is it known what "all at their end" is
        // about.
        self.is_being_assigned = matches!(event, SourceEvent::Assigned { .. });
        match event {
            SourceEvent::Assigned {
                topic,
                id,
                ownership,
                committed,
                metadata,
                reset,
                unclean,
                added,
                log_start,
                end,
            } => {
                let held = Held::new(topic.into(), ownership, committed, end);
                self.assigned(held, id, &Assigned { log_start, metadata, unclean, added, reset })
            }
            SourceEvent::Batch { id, ownership, events, next, end } => {
                self.batch(id, ownership, events, next, end)
            }
            SourceEvent::Gap { id, ownership, from, to, reason } => self.gap(id, ownership, from, to, reason),
            SourceEvent::Revoked { id, ownership } => self.revoked(id, ownership),
            SourceEvent::Lost { id, ownership } => {
                self.lost(id, ownership);
                Ok(())
            }
            SourceEvent::End { id, ownership, end } => self.at_end(id, ownership, end),
            SourceEvent::Idle => self.idle(),
        }
    }

    fn reason_to_stop(&self) -> Option<StopReason> {
        if self.stop.load(Ordering::SeqCst) {
            Some(StopReason::Asked)
        } else if self.options.max_events.is_some_and(|max| self.report.passed() >= max) {
            Some(StopReason::MaxEvents)
        } else if self.options.until_end
            && !self.is_being_assigned
            && self.lanes.is_empty()
            && self.arrived.is_empty()
            && self.partitions.all_at_end(&self.ledger)
        {
            Some(StopReason::End)
        } else {
            None
        }
    }

    /// Claims the partition in the sink, decides where to start, and saves at once if that is a decision.
    fn assigned(&mut self, mut held: Held, id: PartitionId, assigned: &Assigned) -> Result<(), RunError> {
        if let Some(old) = self.partitions.remove(id) {
            self.ledger.end(id, old.ownership);
            self.lanes.drop_partition(id);
            self.arrived.drop_partition(id);
            self.unsaved.drop_partition(id);
        }
        self.bring_sink_home()?;
        let claim = ClaimPartition { id, topic: held.topic.to_string() };
        let Claimed { authority, next, marks, notices } = self.sink.home().claim(&[claim])?;
        notices.into_iter().for_each(|notice| self.notice(notice));
        self.authority = authority;
        let in_sink = next.get(&id).copied().flatten();
        held.mark = marks.get(&id).copied().unwrap_or_default();
        let other_event_at = match held.mark.last {
            Some(last) if authority => self.other_event_at(id, last)?,
            _ => None,
        };
        let place = self.sink.home().place();
        let reset = assigned.reset.clone().filter(|reset| authority && held.mark.reset < Some(reset.number));
        let facts = Facts {
            topic: &held.topic,
            partition: id.partition,
            place: authority.then_some(place.as_str()),
            in_sink,
            other_event_at,
            reset: reset.as_ref(),
            added: assigned.added,
            in_group: held.mirrored,
            log_start: assigned.log_start,
            end: held.end,
        };
        let Start { at, decision } = start::decide(&facts, self.options)?;
        if let Some(reset) = reset {
            held.mark.reset = Some(reset.number);
        }
        if let Some(decision) = &decision {
            let about = held.about("decision", id, Some(at.next()));
            self.notice_about(&about, format!("{}/{}: {decision}", held.topic, id.partition));
        }
        let (alone, has_event) = (self.options.save == SavePolicy::EveryEvent, at.next() < held.end);
        held.tried = Tried::at_start(&assigned.metadata, at.next(), assigned.unclean, alone, has_event);
        held.mirrored_words = own_words(&assigned.metadata).0.to_owned();
        if held.tried.asks_for_care() {
            self.careful_events = CAREFUL_EVENTS;
            let notice = format!(
                "{}/{}: the last runs ended without progress; each event is recorded before it is handled, \
                 to find the one that ends them",
                held.topic, id.partition
            );
            self.notice_about(&held.about("no-progress", id, Some(at.next())), notice);
        }
        held.saved = if authority { in_sink } else { held.mirrored };
        held.started_at = at;
        held.decision = decision;
        self.progress.starts(&held.topic, id, at);
        self.ledger.assign(id, held.ownership, at);
        self.partitions.insert(id, held);
        self.source.seek(id, at.next())?;
        self.save_decision(id)?;
        // An unclean end must be counted before anything else can go wrong.
        self.mirror_words(id)
    }

    /// The offset of the last event that the sink has passed, if the log has another one there. What the log does not have any
    /// more tells nothing.
    fn other_event_at(&mut self, id: PartitionId, last: LastEvent) -> Result<Option<Offset>, RunError> {
        let event = self.source.event_at(id, last.offset)?;
        Ok(event.filter(|event| fingerprint(event) != last.fingerprint).map(|event| event.offset))
    }

    fn batch(
        &mut self,
        id: PartitionId,
        ownership: u64,
        events: Vec<Event>,
        next: Offset,
        end: Offset,
    ) -> Result<(), RunError> {
        if !self.ledger.fetched(id, ownership, events.iter().map(|event| event.offset), next)? {
            self.report.late_events += events.len() as u64;
            return Ok(());
        }
        self.partitions.held(id).moved_end(end);
        self.enqueue(id, events);
        // The first event may hold everything up: what is left is told before it.
        self.status_if_due(self.clock.now());
        Ok(())
    }

    fn gap(
        &mut self,
        id: PartitionId,
        ownership: u64,
        from: Offset,
        to: Offset,
        reason: GapReason,
    ) -> Result<(), RunError> {
        if !self.ledger.owns(id, ownership) {
            return Ok(());
        }
        let topic = self.partitions.held(id).topic.clone();
        match self.options.on_gap {
            OnGap::Stop => Err(RunError::Refused(Refusal::Gap {
                topic: topic.to_string(),
                partition: id.partition,
                from,
                to,
                reason,
            })),
            OnGap::Earliest => {
                self.ledger.fetched(id, ownership, std::iter::empty(), to)?;
                let count = to.since(from);
                let decision = Decision {
                    rule: format!("--on-gap earliest, {reason}"),
                    from: Some(from),
                    to,
                    count,
                    follows: false,
                };
                let about = About { event: "gap", topic: &topic, partition: id.partition, offset: Some(to) };
                self.notice_about(&about, format!("{topic}/{}: {decision}", id.partition));
                self.partitions.held(id).decision = Some(decision);
                self.source.seek(id, to)?;
                self.save_decision(id)
            }
        }
    }

    fn revoked(&mut self, id: PartitionId, ownership: u64) -> Result<(), RunError> {
        if self.ledger.owns(id, ownership) {
            self.lanes.drop_queued(id);
            self.wait_for_hands(Some(id))?;
            self.save()?;
            self.mirror()?;
            self.forget(id, ownership);
        }
        Ok(())
    }

    /// What is handled and not saved is the next owner's to handle again; it must not be written here any more.
    fn lost(&mut self, id: PartitionId, ownership: u64) {
        if self.ledger.owns(id, ownership) {
            let dropped = self.unsaved.drop_partition(id) + self.arrived.drop_partition(id);
            self.report.late_events += dropped;
            let topic = self.partitions.held(id).topic.clone();
            let notice = format!("{topic}/{} was taken away; {dropped} outcomes were dropped", id.partition);
            let about = About { event: "taken-away", topic: &topic, partition: id.partition, offset: None };
            self.notice_about(&about, notice);
            self.forget(id, ownership);
        }
    }

    fn forget(&mut self, id: PartitionId, ownership: u64) {
        let committed = self.ledger.committed(id);
        self.ledger.end(id, ownership);
        self.lanes.drop_partition(id);
        self.report.late_events += self.arrived.drop_partition(id);
        if let Some(held) = self.partitions.remove(id) {
            self.report.partitions.push(held.report(id, committed));
        }
    }

    fn at_end(&mut self, id: PartitionId, ownership: u64, end: Offset) -> Result<(), RunError> {
        if self.ledger.owns(id, ownership) {
            self.partitions.held(id).reached(end);
        }
        self.save_if_idle()?;
        // Nothing else to do, so whoever looks at the group sees at once what the sink has.
        if self.sink.is_home() { self.mirror() } else { Ok(()) }
    }

    fn idle(&mut self) -> Result<(), RunError> {
        if let Hands::One(handler) = &mut self.hands
            && let Err(error) = handler.idle()
        {
            self.fault_between_events(error)?;
        }
        self.save_if_idle()?;
        self.status();
        Ok(())
    }

    fn status_if_due(&mut self, now: Duration) {
        if self.last_status.is_none_or(|last| now.saturating_sub(last) >= STATUS_EVERY) {
            self.status();
        }
    }

    fn status(&mut self) {
        let now = self.clock.now();
        self.last_status = Some(now);
        let status = Status {
            handled: self.report.handled,
            filtered: self.report.filtered,
            written: self.report.written,
            saves: self.report.saves,
            lag_offsets: self.partitions.lag_offsets(&self.ledger),
            last_timestamp_ms: self.report.last_timestamp_ms,
            in_flight: self.in_hand.len(),
            oldest: self.oldest(now),
            since_save: now.saturating_sub(self.last_save),
            skipped: self.report.skipped,
            dead: self.report.dead,
            absorbed: self.report.absorbed,
            failed_attempts: self.report.failed_attempts,
            faults: self.report.faults,
            partitions: self.partitions.status(&self.ledger),
        };
        self.progress.status(&status);
    }

    fn oldest(&self, now: Duration) -> Option<InHand> {
        let (&(id, offset), since) = self.in_hand.iter().min_by_key(|(_, since)| **since)?;
        Some(InHand {
            topic: self.partitions.get(id)?.topic.to_string(),
            partition: id.partition,
            offset,
            length: now.saturating_sub(*since),
            waiting: self.arrived.len_of(id),
        })
    }

    fn notice(&mut self, notice: String) {
        self.progress.notice(&notice);
        self.report.notices.push(notice);
    }

    fn notice_about(&mut self, about: &About<'_>, notice: String) {
        self.progress.notice_about(about, &notice);
        self.report.notices.push(notice);
    }

    /// As a notice, but not kept: there may be one for each attempt.
    fn remark(&mut self, remark: &str) {
        self.progress.notice(remark);
    }

    fn finish_report(&mut self) {
        self.report.late_events += self.ledger.late();
        for (id, held) in self.partitions.drain() {
            let committed: Option<Committed> = held.saved;
            self.report.partitions.push(held.report(id, committed));
        }
    }
}
