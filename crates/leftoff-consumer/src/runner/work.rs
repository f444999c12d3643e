//! Handing events out, and what follows each answer: entered, tried again, passed by, or the end of the run.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::error::{FailReason, FailedEvent};
use super::lanes::Work;
use super::policy::Verdict;
use super::{RunError, Runner, StopReason};
use crate::handler::{Answer, Delivery, HandlerError};
use crate::ledger::Ticket;
use crate::shorten;
use crate::sink::{GaveUp, Outcome, Output};
use crate::source::{Decision, Event, PartitionId};

/// The most events that wait in memory to be handed out before no more are fetched.
const MAX_WAITING_EVENTS: usize = 100_000;
/// The most bytes of them.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// A partition of which so many events wait, since one of them is tried again, is not read on.
const PAUSE_AT_EVENTS: usize = 1_000;
/// The most of a reason that goes into the group's history, whose notes have at most 1,024 bytes.
const MAX_RULE_CHARS: usize = 150;

impl Runner<'_> {
    /// These events are to be handled, behind all others of their partition.
    pub(super) fn enqueue(&mut self, id: PartitionId, events: Vec<Event>) {
        for event in events {
            let ticket = self.ledger.hand_out(id).expect("each event of the batch was entered in the ledger");
            assert_eq!(ticket.offset, event.offset, "the ledger hands out in the order of the batch");
            let tries = self.partitions.held(id).tries(event.offset);
            self.lanes.push(Work { ticket, event, tries });
        }
        self.pause_if_held_up(id);
    }

    /// Hands out one event after the other, as long as there is one to take.
    pub(super) fn work(&mut self) -> Result<(), RunError> {
        while !self.must_not_hand_out() {
            let Some(work) = self.lanes.take(|| self.clock.now()) else { break };
            self.attempt(work)?;
            self.save_if_due()?;
            self.mirror_if_due()?;
            self.status_if_due();
            self.source.between_events()?;
        }
        Ok(())
    }

    fn must_not_hand_out(&self) -> bool {
        matches!(self.reason_to_stop(), Some(StopReason::Asked | StopReason::MaxEvents))
    }

    /// How long the next poll may wait; `None` if nothing more is to be fetched for now.
    pub(super) fn may_poll(&self, at_most: Duration) -> Option<Duration> {
        let (events, bytes) = self.lanes.size();
        (events < MAX_WAITING_EVENTS && bytes < MAX_WAITING_BYTES).then(|| self.until_due(at_most))
    }

    /// Lets time pass until an event is to be tried again, in small pieces.
    pub(super) fn wait(&mut self, at_most: Duration) -> Result<(), RunError> {
        self.clock.sleep(self.until_due(at_most));
        Ok(self.source.between_events()?)
    }

    fn until_due(&self, at_most: Duration) -> Duration {
        self.lanes.next_due().map_or(at_most, |due| due.saturating_sub(self.clock.now()).min(at_most))
    }

    fn attempt(&mut self, work: Work) -> Result<(), RunError> {
        if let Some(verdict) = self.policy.verdict_before(work.tries) {
            let why = self.partitions.held(work.ticket.id).why(work.ticket.offset);
            return self.give_up(work, verdict, FailReason::Earlier(why));
        }
        let event_id = self.options.identify.as_ref().and_then(|identify| identify.id_of(&work.event));
        let (id, offset) = (work.ticket.id, work.ticket.offset);
        if let Some(event_id) = &event_id
            && self.sink.has_taken(id, offset, event_id)?
        {
            let output = Output { id, offset, event_id: None, outcome: Outcome::Absorbed };
            if let Err(bad) = self.sink.check(&output) {
                return self.failed(work, FailReason::Record(bad), true);
            }
            self.done(&work.ticket, &work.event, output);
            return Ok(());
        }
        if self.careful_events > 0 {
            self.record_begin(&work)?;
        }
        let attempt = work.tries.failed.saturating_add(1);
        let delivery = Delivery { topic: &self.partitions.held(id).topic, id, event: &work.event, attempt };
        self.progress.handling(&delivery);
        let answer = self.handler.handle(&delivery);
        self.settle(work, event_id, answer)
    }

    fn settle(
        &mut self,
        work: Work,
        event_id: Option<Vec<u8>>,
        answer: Result<Answer, HandlerError>,
    ) -> Result<(), RunError> {
        let outcome = match answer {
            Ok(Answer::Handled { records }) => Outcome::Handled { records },
            Ok(Answer::Filtered) => Outcome::Filtered,
            Ok(Answer::Failed { error, retry }) => {
                return self.failed(work, FailReason::Reported(error), retry);
            }
            Err(HandlerError::GivenBack { after }) => {
                self.notice(format!(
                    "the handler did not answer within {after:?} of the stop; the event comes again"
                ));
                self.stop.store(true, Ordering::SeqCst);
                return Ok(());
            }
            Err(HandlerError::Between(error)) => {
                self.fault_between_events(*error)?;
                self.lanes.again(work, self.clock.now());
                return Ok(());
            }
            Err(error) => {
                self.report.faults += 1;
                return self.failed(work, FailReason::Handler(error), true);
            }
        };
        let output = Output { id: work.ticket.id, offset: work.ticket.offset, event_id, outcome };
        if let Err(bad) = self.sink.check(&output) {
            return self.failed(work, FailReason::Record(bad), true);
        }
        self.done(&work.ticket, &work.event, output);
        Ok(())
    }

    /// The handler broke the rules, or ended, while it had no event. It is started again with the next one.
    pub(super) fn fault_between_events(&mut self, error: HandlerError) -> Result<(), RunError> {
        if self.policy.ends_with_the_first_fault() {
            return Err(RunError::HandlerIdle(error));
        }
        self.report.faults += 1;
        let faults = self.report.faults;
        self.remark(&format!("between two events, {error}; it is started again ({faults} times so far)"));
        Ok(())
    }

    fn done(&mut self, ticket: &Ticket, event: &Event, output: Output) {
        self.report.last_timestamp_ms = Some(event.timestamp_ms);
        let held = self.partitions.held(ticket.id);
        held.leader_epoch = event.leader_epoch;
        held.tried.done(ticket.offset);
        match &output.outcome {
            Outcome::Handled { records } => self.report.written += records.len() as u64,
            Outcome::Filtered => self.report.filtered += 1,
            Outcome::Absorbed => self.report.absorbed += 1,
            Outcome::Skipped(_) => self.report.skipped += 1,
        }
        match &output.outcome {
            Outcome::Handled { .. } | Outcome::Filtered => {
                self.report.handled += 1;
                held.handled += 1;
            }
            Outcome::Absorbed | Outcome::Skipped(_) => {}
        }
        self.careful_events = self.careful_events.saturating_sub(1);
        self.unsaved.push(output);
        self.ledger.handled(*ticket);
        self.lanes.finished(ticket);
        self.go_on_reading(ticket.id);
    }

    fn failed(&mut self, mut work: Work, reason: FailReason, retry: bool) -> Result<(), RunError> {
        work.tries = work.tries.and_one();
        self.report.failed_attempts += 1;
        match self.policy.verdict(work.tries, &reason, retry) {
            Verdict::Again => self.try_again(work, &reason),
            verdict => self.give_up(work, verdict, reason),
        }
    }

    fn try_again(&mut self, work: Work, reason: &FailReason) -> Result<(), RunError> {
        let wait = self.waits.after(work.tries.failed_here);
        let (id, offset) = (work.ticket.id, work.ticket.offset);
        let held = self.partitions.held(id);
        held.tried.failed(offset, &shorten(reason.to_string().as_bytes()));
        let place = format!("{}/{} offset {offset}", held.topic, id.partition);
        let attempt = work.tries.failed;
        let of = self.policy.limit().map_or_else(String::new, |limit| format!(" of {limit}"));
        let mut remark = format!("{place}: attempt {attempt}{of} failed: {reason}; again in {wait:.1?}");
        if matches!(reason, FailReason::Handler(_)) {
            remark += &format!(" (the handler is started again, {} times so far)", self.report.faults);
        }
        self.remark(&remark);
        self.lanes.again(work, self.clock.now() + wait);
        self.pause_if_held_up(id);
        // It survives a crash: a sync is little beside the wait.
        self.mirror()
    }

    fn give_up(&mut self, work: Work, verdict: Verdict, reason: FailReason) -> Result<(), RunError> {
        match verdict {
            Verdict::Again | Verdict::Stop => Err(self.stops_before(&work, reason)),
            Verdict::Skip => self.skip(work, &reason),
        }
    }

    fn stops_before(&self, work: &Work, reason: FailReason) -> RunError {
        let id = work.ticket.id;
        let topic = self.partitions.get(id).map_or_else(String::new, |held| held.topic.clone());
        let failed = FailedEvent::new(topic, id, &work.event, work.tries.failed_here, reason);
        RunError::HandlerFailed(Box::new(failed))
    }

    /// Passes an event by. What is before it is saved first, so that the history has the decision as a move of its own.
    fn skip(&mut self, work: Work, reason: &FailReason) -> Result<(), RunError> {
        let attempts = work.tries.failed;
        let why = shorten(reason.to_string().as_bytes());
        self.save()?;
        self.mirror()?;
        let (id, offset) = (work.ticket.id, work.ticket.offset);
        let held = self.partitions.held(id);
        let decision = Decision {
            rule: format!("--on-fail skip after {}: {}", counted(attempts), cut(&why, MAX_RULE_CHARS)),
            from: Some(offset),
            to: offset.next(),
            count: 1,
        };
        let remark = format!("{}/{}: {decision}", held.topic, id.partition);
        held.passed_by = Some(decision);
        self.remark(&remark);
        let outcome = Outcome::Skipped(GaveUp { attempts, why });
        self.done(&work.ticket, &work.event, Output { id, offset, event_id: None, outcome });
        self.save()?;
        self.mirror()
    }

    fn record_begin(&mut self, work: &Work) -> Result<(), RunError> {
        self.save()?;
        self.partitions.held(work.ticket.id).tried.begun = Some(work.ticket.offset);
        self.mirror()
    }

    /// Without that, the events behind one that is tried again would fill the memory.
    fn pause_if_held_up(&mut self, id: PartitionId) {
        let held_up = self.lanes.next_due().is_some() && self.lanes.events_of(id) >= PAUSE_AT_EVENTS;
        let held = self.partitions.held(id);
        if held_up && !held.paused {
            held.paused = true;
            self.source.pause(id, true);
        }
    }

    fn go_on_reading(&mut self, id: PartitionId) {
        let held = self.partitions.held(id);
        if held.paused {
            held.paused = false;
            self.source.pause(id, false);
        }
    }
}

/// The beginning of a text.
fn cut(text: &str, at_most_chars: usize) -> String {
    text.chars().take(at_most_chars).collect()
}

/// `1 attempt`, `3 attempts`.
fn counted(attempts: u32) -> String {
    if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") }
}
