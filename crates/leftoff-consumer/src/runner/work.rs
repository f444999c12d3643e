//! Handing events out, and what follows each answer: entered, tried again, passed by, or the end of the run.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::arrived::End;
use super::error::{FailReason, FailedEvent};
use super::lanes::Work;
use super::policy::Verdict;
use super::{Hands, OnFail, Order, RunError, Runner, SavePolicy, StopReason};
use crate::handler::{Answer, Delivery, HandlerError};
use crate::shorten;
use crate::sink::{DeadLetter, GaveUp, LastEvent, Outcome, Output};
use crate::source::{Decision, Event, PartitionId};

/// The most events that wait in memory to be handed out before no more are fetched.
const MAX_WAITING_EVENTS: usize = 100_000;
/// The most bytes of them.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// The most events that may be handled, or in hands, and not be saved.
const MAX_OPEN_EVENTS: usize = 100_000;
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
            self.lanes.push(Work::new(ticket, event, tries, self.options.order));
        }
        self.pause_if_held_up(id);
    }

    /// Hands out events, as long as there is one to take and somebody to take it.
    pub(super) fn work(&mut self) -> Result<(), RunError> {
        while self.may_hand_out() {
            let next = if self.window_is_open() { self.next_work() } else { None };
            let Some((worker, work)) = next.or_else(|| self.work_that_holds_up()) else { break };
            self.hand_out(worker, work)?;
            self.after_a_step()?;
        }
        Ok(())
    }

    fn next_work(&mut self) -> Option<(usize, Work)> {
        let now = || self.clock.now();
        match &self.hands {
            Hands::One(_) => self.lanes.take(0, now).map(|work| (0, work)),
            Hands::Crew(crew) => {
                let workers = crew.with_room().into_iter();
                workers.filter_map(|worker| Some((worker, self.lanes.take(worker, now)?))).next()
            }
            Hands::Nobody => None,
        }
    }

    /// The first unfinished event of a partition of which others wait for it. Where the limits are reached that is what there is
    /// to do: without it nothing would ever move again.
    fn work_that_holds_up(&mut self) -> Option<(usize, Work)> {
        if self.careful_events > 0 && !(self.in_hand.is_empty() && self.unsaved.len() + self.saving == 0) {
            return None;
        }
        // Where each event is saved before more are handed out, the window opens again with the next save.
        let is_strict = self.options.save == SavePolicy::EveryEvent && self.careful_events == 0;
        let is_held_up =
            |id: &PartitionId| !is_strict || self.arrived.is_full() || self.arrived.is_full_of(*id);
        let held_up: Vec<PartitionId> = self.arrived.partitions().filter(is_held_up).collect();
        let workers = match &self.hands {
            Hands::One(_) => vec![0],
            Hands::Crew(crew) => crew.with_room(),
            Hands::Nobody => Vec::new(),
        };
        for id in held_up {
            let place = (id, self.ledger.first_open(id)?);
            for worker in &workers {
                if let Some(work) = self.lanes.take_exactly(*worker, place, || self.clock.now()) {
                    return Some((*worker, work));
                }
            }
        }
        None
    }

    /// What is due between two events.
    fn after_a_step(&mut self) -> Result<(), RunError> {
        self.take_news()?;
        // Before the next save: the directory is not given away under the saver.
        if self.sink.is_home() {
            self.source.between_events()?;
        }
        let now = self.clock.now();
        self.save_if_due(now)?;
        self.mirror_if_due(now)?;
        self.status_if_due(now);
        Ok(())
    }

    fn may_hand_out(&self) -> bool {
        let open = self.in_hand.len() + self.arrived.len();
        let is_over = match self.reason_to_stop() {
            Some(StopReason::Asked | StopReason::MaxEvents) => true,
            Some(StopReason::End) | None => false,
        };
        !is_over && self.options.max_events.is_none_or(|max| self.report.passed() + (open as u64) < max)
    }

    /// True if one event more may be handed out and not be saved.
    fn window_is_open(&self) -> bool {
        let unsaved = self.unsaved.len() + self.saving;
        if self.arrived.is_full() {
            return false;
        }
        if self.careful_events > 0 {
            return self.in_hand.is_empty() && self.arrived.is_empty() && unsaved == 0;
        }
        match self.options.save {
            SavePolicy::EveryEvent => {
                // Answers that wait for an earlier event of their partition are what the order allows.
                let answered = if self.options.order == Order::Partition { self.arrived.len() } else { 0 };
                self.in_hand.len() + answered + unsaved < self.hands.capacity()
            }
            SavePolicy::Events(_) | SavePolicy::Every(_) | SavePolicy::AtStop => {
                self.in_hand.len() + self.arrived.len() + unsaved < MAX_OPEN_EVENTS
            }
        }
    }

    /// How long the next poll may wait; `None` if nothing more is to be fetched for now.
    pub(super) fn may_poll(&self, at_most: Duration) -> Option<Duration> {
        let (events, bytes) = self.lanes.size();
        let has_enough = events >= MAX_WAITING_EVENTS || bytes >= MAX_WAITING_BYTES;
        (!has_enough && self.sink.is_home()).then(|| self.until_due(at_most))
    }

    /// Lets time pass until an event is to be tried again, in small pieces.
    pub(super) fn wait(&mut self, at_most: Duration) -> Result<(), RunError> {
        self.clock.sleep(self.until_due(at_most));
        Ok(self.source.between_events()?)
    }

    pub(super) fn until_due(&self, at_most: Duration) -> Duration {
        self.lanes.next_due().map_or(at_most, |due| due.saturating_sub(self.clock.now()).min(at_most))
    }

    fn hand_out(&mut self, worker: usize, mut work: Work) -> Result<(), RunError> {
        let (id, offset) = (work.ticket.id, work.ticket.offset);
        if let Some(verdict) = self.policy.verdict_before(work.tries) {
            let why = self.partitions.held(id).why(offset);
            return self.give_up(work, verdict, FailReason::Earlier(why));
        }
        work.event_id = self.options.identify.as_ref().and_then(|identify| identify.id_of(&work.event));
        if work.event_id.is_some() {
            self.bring_sink_home()?;
            if self.is_taken(&work)? {
                return self.arrive(work, End::Done(Outcome::Absorbed));
            }
        }
        if self.careful_events > 0 {
            self.record_begin(&work)?;
        }
        let attempt = work.tries.failed.saturating_add(1);
        let topic = &self.partitions.held(id).topic;
        let delivery = Delivery { topic, id, event: &work.event, attempt };
        self.progress.handling(&delivery);
        match &mut self.hands {
            Hands::One(handler) => {
                let answer = handler.handle(&delivery);
                self.answered(work, answer)
            }
            Hands::Crew(crew) => {
                let topic = topic.clone();
                self.in_hand.insert((id, offset), self.clock.now());
                crew.give(worker, work, topic, attempt);
                Ok(())
            }
            Hands::Nobody => unreachable!("nobody takes events"),
        }
    }

    fn is_taken(&mut self, work: &Work) -> Result<bool, RunError> {
        let Some(event_id) = &work.event_id else { return Ok(false) };
        Ok(self.sink.home().has_taken(work.ticket.id, work.ticket.offset, event_id)?)
    }

    /// An answer for an event that was handed out, and is in nobody's hands any more.
    pub(super) fn answered(
        &mut self,
        work: Work,
        answer: Result<Answer, HandlerError>,
    ) -> Result<(), RunError> {
        if !self.ledger.owns(work.ticket.id, work.ticket.ownership) {
            self.report.late_events += 1;
            return Ok(());
        }
        if !self.lanes.is_current(&work) {
            // One of its lane has failed meanwhile.
            self.reopen_behind(&work);
            self.lanes.again(work, None);
            return Ok(());
        }
        match answer {
            Ok(Answer::Handled { records }) => self.arrive(work, End::Done(Outcome::Handled { records })),
            Ok(Answer::Filtered) => self.arrive(work, End::Done(Outcome::Filtered)),
            Ok(Answer::Failed { error, retry }) => self.failed(work, FailReason::Reported(error), retry),
            Err(HandlerError::GivenBack { after }) => {
                self.notice(format!(
                    "the handler did not answer within {after:?} of the stop; the event comes again"
                ));
                self.stop.store(true, Ordering::SeqCst);
                self.lanes.again(work, None);
                Ok(())
            }
            Err(HandlerError::Between(error)) => {
                self.fault_between_events(*error)?;
                self.lanes.again(work, None);
                Ok(())
            }
            Err(error) => {
                self.report.faults += 1;
                self.failed(work, FailReason::Handler(error), true)
            }
        }
    }

    /// A worker has lost an event since another one failed. What was answered of its lane since comes again behind it.
    pub(super) fn returned(&mut self, work: Work) {
        if !self.ledger.owns(work.ticket.id, work.ticket.ownership) {
            self.report.late_events += 1;
            return;
        }
        self.reopen_behind(&work);
        self.lanes.returned(work);
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

    /// The end of an event, as far as its handler is concerned. It counts when all before it have theirs.
    fn arrive(&mut self, work: Work, end: End) -> Result<(), RunError> {
        let (id, offset) = (work.ticket.id, work.ticket.offset);
        match &end {
            End::Done(_) => self.lanes.finished(&work),
            End::GivenUp(_) => self.lanes.given_up(&work),
        }
        if self.sink.is_home() && self.ledger.first_open(id) == Some(offset) {
            self.enter(work, end)?;
            return if self.arrived.is_empty() { Ok(()) } else { self.admit(id) };
        }
        self.arrived.push(work, end);
        if self.arrived.is_full_of(id) {
            self.lanes.park(id);
        }
        Ok(())
    }

    /// Enters the ends of events, in the order of their offsets, up to the first event without one. The sink looks at each:
    /// while it is away they wait.
    pub(super) fn admit(&mut self, id: PartitionId) -> Result<(), RunError> {
        while self.sink.is_home() {
            let Some(first) = self.ledger.first_open(id) else { break };
            let Some((work, end)) = self.arrived.pop(id, first) else { break };
            self.enter(work, end)?;
        }
        if !self.arrived.is_full_of(id) {
            self.lanes.unpark(id);
        }
        Ok(())
    }

    fn enter(&mut self, work: Work, end: End) -> Result<(), RunError> {
        match end {
            End::Done(outcome) => self.check_and_enter(work, outcome),
            End::GivenUp(gave_up) => self.skip(&work, gave_up),
        }
    }

    pub(super) fn admit_all(&mut self) -> Result<(), RunError> {
        let ids: Vec<PartitionId> = self.arrived.partitions().collect();
        ids.into_iter().try_for_each(|id| self.admit(id))
    }

    fn check_and_enter(&mut self, mut work: Work, mut outcome: Outcome) -> Result<(), RunError> {
        // A copy of it may have been handled at the same time.
        if self.is_taken(&work)? {
            outcome = Outcome::Absorbed;
        }
        let (id, offset, event_id) = (work.ticket.id, work.ticket.offset, work.event_id.take());
        let event_id = event_id.filter(|_| outcome != Outcome::Absorbed);
        let output = Output { id, offset, event_id, outcome };
        match self.sink.home().check(&output) {
            Ok(()) => {
                self.done(&work, output);
                Ok(())
            }
            Err(bad) => self.failed_after_all(work, FailReason::Record(bad)),
        }
    }

    fn done(&mut self, work: &Work, output: Output) {
        let Work { ticket, event, .. } = work;
        self.report.last_timestamp_ms = Some(event.timestamp_ms);
        let held = self.partitions.held(ticket.id);
        held.leader_epoch = event.leader_epoch;
        if self.authority {
            held.mark.last = Some(LastEvent::of(event));
        }
        held.tried.done(ticket.offset);
        match &output.outcome {
            Outcome::Handled { records } => self.report.written += records.len() as u64,
            Outcome::Filtered => self.report.filtered += 1,
            Outcome::Absorbed => self.report.absorbed += 1,
            Outcome::Skipped(_) => self.report.skipped += 1,
            Outcome::Dead(_) => self.report.dead += 1,
        }
        match &output.outcome {
            Outcome::Handled { .. } | Outcome::Filtered => {
                self.report.handled += 1;
                held.handled += 1;
            }
            Outcome::Absorbed | Outcome::Skipped(_) | Outcome::Dead(_) => {}
        }
        self.careful_events = self.careful_events.saturating_sub(1);
        self.unsaved.push(output);
        self.ledger.handled(*ticket);
        self.go_on_reading(ticket.id);
    }

    /// An attempt has failed; what of its lane was answered since comes again behind it.
    fn failed(&mut self, mut work: Work, reason: FailReason, retry: bool) -> Result<(), RunError> {
        work.tries = work.tries.and_one();
        self.report.failed_attempts += 1;
        match self.policy.verdict(work.tries, &reason, retry) {
            Verdict::Again => {
                let due = self.tried_in_vain(&work, &reason)?;
                self.reopen_behind(&work);
                self.lanes.again(work, Some(due));
                self.after_a_failure()
            }
            verdict => self.give_up(work, verdict, reason),
        }
    }

    /// The same for an event that was answered for well, and whose records the sink does not take.
    fn failed_after_all(&mut self, mut work: Work, reason: FailReason) -> Result<(), RunError> {
        work.tries = work.tries.and_one();
        self.report.failed_attempts += 1;
        match self.policy.verdict(work.tries, &reason, true) {
            Verdict::Again => {
                let due = self.tried_in_vain(&work, &reason)?;
                self.reopen_behind(&work);
                self.lanes.reopen_later(work, due);
                self.after_a_failure()
            }
            Verdict::Stop => Err(self.stops_before(&work, reason)),
            Verdict::Skip => {
                let gave_up = gave_up(&work, &reason);
                self.skip(&work, gave_up)
            }
        }
    }

    fn reopen_behind(&mut self, work: &Work) {
        for later in self.arrived.take_behind(work) {
            self.lanes.reopen(later);
        }
    }

    /// Keeps and tells that an attempt has failed; when the next one is due.
    fn tried_in_vain(&mut self, work: &Work, reason: &FailReason) -> Result<Duration, RunError> {
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
        let about = held.about("attempt-failed", id, Some(offset));
        self.progress.notice_about(&about, &remark);
        Ok(self.clock.now() + wait)
    }

    fn after_a_failure(&mut self) -> Result<(), RunError> {
        let ids: Vec<PartitionId> = self.partitions.iter().map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.pause_if_held_up(id));
        // It survives a crash: a sync is little beside the wait.
        self.mirror()
    }

    fn give_up(&mut self, work: Work, verdict: Verdict, reason: FailReason) -> Result<(), RunError> {
        match verdict {
            Verdict::Again | Verdict::Stop => Err(self.stops_before(&work, reason)),
            Verdict::Skip => {
                self.reopen_behind(&work);
                let gave_up = gave_up(&work, &reason);
                self.arrive(work, End::GivenUp(gave_up))
            }
        }
    }

    fn stops_before(&self, work: &Work, reason: FailReason) -> RunError {
        let id = work.ticket.id;
        let topic = self.partitions.get(id).map_or_else(String::new, |held| held.topic.to_string());
        let failed = FailedEvent::new(topic, id, &work.event, work.tries.failed_here, reason);
        RunError::HandlerFailed(Box::new(failed))
    }

    /// Passes an event by. What is before it is saved first, so that the history has the decision as a move of its own.
    fn skip(&mut self, work: &Work, gave_up: GaveUp) -> Result<(), RunError> {
        self.save()?;
        self.mirror()?;
        let (id, offset) = (work.ticket.id, work.ticket.offset);
        let held = self.partitions.held(id);
        let GaveUp { attempts, why } = &gave_up;
        let is_dead = self.options.on_fail == OnFail::Dead;
        let policy = if is_dead { "dlq" } else { "skip" };
        let decision = Decision {
            rule: format!("--on-fail {policy} after {}: {}", counted(*attempts), cut(why, MAX_RULE_CHARS)),
            from: Some(offset),
            to: offset.next(),
            count: 1,
            follows: false,
        };
        let remark = format!("{}/{}: {decision}", held.topic, id.partition);
        held.passed_by = Some(decision);
        self.progress.notice_about(&held.about("passed-by", id, Some(offset)), &remark);
        let outcome = if is_dead {
            let letter = Box::new(self.dead_letter(work, gave_up));
            if !self.sink.home().keeps_dead_letters() {
                self.partitions.held(id).dead = Some(letter.clone());
            }
            Outcome::Dead(letter)
        } else {
            Outcome::Skipped(gave_up)
        };
        self.done(work, Output { id, offset, event_id: None, outcome });
        self.save()?;
        self.mirror()
    }

    fn dead_letter(&mut self, work: &Work, gave_up: GaveUp) -> DeadLetter {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        DeadLetter {
            gave_up,
            group: self.options.group.clone(),
            topic: self.partitions.held(work.ticket.id).topic.to_string(),
            id: work.ticket.id,
            event: work.event.clone(),
            at_ms: i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX),
        }
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

fn gave_up(work: &Work, reason: &FailReason) -> GaveUp {
    GaveUp { attempts: work.tries.failed, why: shorten(reason.to_string().as_bytes()) }
}

/// The beginning of a text.
fn cut(text: &str, at_most_chars: usize) -> String {
    text.chars().take(at_most_chars).collect()
}

/// `1 attempt`, `3 attempts`.
fn counted(attempts: u32) -> String {
    if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") }
}
