//! A source that plays a script, a sink that keeps what it is given, and a trace of who was called in which order.
#![allow(clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leftoff_wire::{Committed, Offset, Uuid};

use crate::handler::{Answer, Delivery, Handler, HandlerError, Record};
use crate::runner::Clock;
use crate::sink::{
    BadRecord, ClaimPartition, Claimed, Mark, MatrixRow, Move, Outcome, Output, Promise, Sink, SinkError,
    Written,
};
use crate::source::{Event, PartitionId, Save, Source, SourceError, SourceEvent};

pub(crate) fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

pub(crate) fn next(offset: i64) -> Committed {
    Committed::from_wire(offset).unwrap()
}

pub(crate) fn id(partition: i32) -> PartitionId {
    PartitionId { topic_id: Uuid::from_bytes([7; 16]), partition }
}

pub(crate) fn event(offset: i64) -> Event {
    Event {
        offset: at(offset),
        timestamp_ms: 1_000 + offset,
        key: Some(format!("k{offset}").into_bytes()),
        value: Some(format!("v{offset}").into_bytes()),
        headers: Vec::new(),
        leader_epoch: 3,
    }
}

/// `ownership` 1, the log from `log_start` to `end`.
pub(crate) fn assigned(partition: i32, committed: Option<i64>, log_start: i64, end: i64) -> SourceEvent {
    assigned_as(1, partition, committed, log_start, end)
}

pub(crate) fn assigned_as(
    ownership: u64,
    partition: i32,
    committed: Option<i64>,
    log_start: i64,
    end: i64,
) -> SourceEvent {
    SourceEvent::Assigned {
        topic: "quakes".to_owned(),
        id: id(partition),
        ownership,
        committed: committed.map(next),
        metadata: String::new(),
        unclean: false,
        added: false,
        reset: None,
        log_start: at(log_start),
        end: at(end),
    }
}

pub(crate) fn batch(partition: i32, offsets: &[i64], next: i64) -> SourceEvent {
    batch_as(1, partition, offsets, next)
}

pub(crate) fn batch_as(ownership: u64, partition: i32, offsets: &[i64], next: i64) -> SourceEvent {
    let events = offsets.iter().map(|&offset| event(offset)).collect();
    SourceEvent::Batch { id: id(partition), ownership, events, next: at(next), end: at(next) }
}

/// Who was called, in order.
#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    pub(crate) fn push(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Plays a script; at its end, and after some polls that find nothing, it asks the runner to stop.
#[derive(Default)]
pub(crate) struct ScriptSource {
    pub(crate) script: VecDeque<SourceEvent>,
    /// The results of saves; when there are no more, they succeed.
    pub(crate) saves: VecDeque<SourceError>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) trace: Trace,
    /// What is at these offsets, whatever the partition.
    pub(crate) log: BTreeMap<i64, Event>,
    /// For so many polls that find nothing it does not ask to stop yet.
    pub(crate) idle_polls: u32,
    /// Goes on by the time that a poll waits.
    pub(crate) clock: Rc<StepClock>,
}

impl Source for ScriptSource {
    fn poll(&mut self, wait: Duration) -> Result<SourceEvent, SourceError> {
        Ok(self.script.pop_front().unwrap_or_else(|| {
            self.clock.sleep(wait);
            match self.idle_polls.checked_sub(1) {
                Some(left) => self.idle_polls = left,
                None => self.stop.store(true, Ordering::SeqCst),
            }
            SourceEvent::Idle
        }))
    }

    fn seek(&mut self, id: PartitionId, to: Offset) -> Result<(), SourceError> {
        self.trace.push(format!("seek {}:{to}", id.partition));
        Ok(())
    }

    fn event_at(&mut self, _: PartitionId, offset: Offset) -> Result<Option<Event>, SourceError> {
        Ok(self.log.get(&offset.get()).cloned())
    }

    fn save(&mut self, saves: &[Save]) -> Result<(), SourceError> {
        let one = |save: &Save| {
            let decision = save.decision.as_ref().map_or_else(String::new, |d| format!(" ({})", d.rule));
            let words =
                if save.metadata.is_empty() { String::new() } else { format!(" [{}]", save.metadata) };
            format!("{}:{}{words}{decision}", save.id.partition, save.committed)
        };
        let all: Vec<_> = saves.iter().map(one).collect();
        self.trace.push(format!("group {}", all.join(" ")));
        self.saves.pop_front().map_or(Ok(()), Err)
    }
}

/// Answers by a function of the offset and the attempt.
pub(crate) struct FnHandler<F> {
    pub(crate) answer: F,
    pub(crate) trace: Trace,
}

impl<F: FnMut(i64, u32) -> Result<Answer, HandlerError>> Handler for FnHandler<F> {
    fn handle(&mut self, delivery: &Delivery<'_>) -> Result<Answer, HandlerError> {
        let offset = delivery.event.offset;
        let again = if delivery.attempt > 1 { format!("#{}", delivery.attempt) } else { String::new() };
        self.trace.push(format!("handle {}:{offset}{again}", delivery.id.partition));
        (self.answer)(offset.get(), delivery.attempt)
    }

    fn stop(&mut self, _drain: Duration) -> Result<(), HandlerError> {
        self.trace.push("stop".to_owned());
        Ok(())
    }
}

pub(crate) fn one_record() -> Result<Answer, HandlerError> {
    Ok(Answer::record(Record::from_json("{}".to_owned()).unwrap()))
}

/// Keeps what it is given in memory, and asserts what a sink may assert.
#[derive(Default)]
pub(crate) struct MemSink {
    pub(crate) authority: bool,
    pub(crate) stands: BTreeMap<PartitionId, Committed>,
    pub(crate) marks: BTreeMap<PartitionId, Mark>,
    /// The results of writes; when there are no more, they succeed.
    pub(crate) results: VecDeque<Result<Written, SinkError>>,
    /// Refuses the output of this offset.
    pub(crate) refuses: Option<i64>,
    /// Ids of events that it has seen the outcome of, and their offsets.
    pub(crate) ids: RefCell<BTreeMap<Vec<u8>, i64>>,
    pub(crate) trace: Trace,
}

impl Sink for MemSink {
    fn claim(&mut self, partitions: &[ClaimPartition]) -> Result<Claimed, SinkError> {
        let next = partitions.iter().map(|claim| (claim.id, self.stands.get(&claim.id).copied())).collect();
        Ok(Claimed { authority: self.authority, next, marks: self.marks.clone(), notices: Vec::new() })
    }

    fn check(&self, output: &Output) -> Result<(), BadRecord> {
        if self.refuses == Some(output.offset.get()) {
            return Err(BadRecord { number: 0, why: "no".to_owned() });
        }
        if let Some(event_id) = &output.event_id {
            self.ids.borrow_mut().entry(event_id.clone()).or_insert(output.offset.get());
        }
        Ok(())
    }

    fn has_taken(&self, _id: PartitionId, offset: Offset, event_id: &[u8]) -> Result<bool, SinkError> {
        Ok(self.ids.borrow().get(event_id).is_some_and(|taken| *taken != offset.get()))
    }

    fn write(&mut self, outputs: &[Output], moves: &[Move]) -> Result<Written, SinkError> {
        let shown = |output: &Output| {
            let mark = match &output.outcome {
                Outcome::Handled { records } if records.is_empty() => "-",
                Outcome::Handled { .. } => "",
                Outcome::Filtered => "f",
                Outcome::Skipped(_) => "s",
                Outcome::Absorbed => "a",
                Outcome::Dead(_) => "d",
            };
            format!("{}:{}{mark}", output.id.partition, output.offset)
        };
        let outputs: Vec<_> = outputs.iter().map(shown).collect();
        let moved: Vec<_> = moves.iter().map(|m| format!("{}->{}", m.id.partition, m.next)).collect();
        self.trace.push(format!("write [{}] {}", outputs.join(" "), moved.join(" ")));
        if let Some(result) = self.results.pop_front() {
            return result;
        }
        for m in moves {
            if self.authority {
                assert_eq!(self.stands.get(&m.id).copied(), m.expected, "moved from where it stands");
            }
            self.stands.insert(m.id, m.next);
            self.marks.insert(m.id, m.mark);
        }
        Ok(Written::Written)
    }

    fn row(&self) -> MatrixRow {
        let promise = if self.authority { Promise::ExactlyOnce } else { Promise::AtLeastOnce };
        MatrixRow { sink: "memory", how: "", authority: "", promise, meaning: "", left_over: "" }
    }

    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn close(&mut self) -> Result<(), SinkError> {
        self.trace.push("close".to_owned());
        Ok(())
    }
}

/// A clock that goes on by a step each time it is read.
#[derive(Default)]
pub(crate) struct StepClock {
    pub(crate) now: Cell<Duration>,
    pub(crate) step: Duration,
}

impl Clock for StepClock {
    fn now(&self) -> Duration {
        self.now.set(self.now.get() + self.step);
        self.now.get()
    }

    fn sleep(&self, length: Duration) {
        self.now.set(self.now.get() + length);
    }
}
