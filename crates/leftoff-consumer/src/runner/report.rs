//! What a run tells: while it goes, and at its end.

use std::sync::Arc;
use std::time::Duration;

use leftoff_wire::{Committed, Offset};

use crate::handler::Delivery;
use crate::source::PartitionId;

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Events handled, filtered ones included.
    pub handled: u64,
    /// Events left out on purpose.
    pub filtered: u64,
    /// Events passed by, since no attempt succeeded.
    pub skipped: u64,
    /// Events passed by, and kept as dead letters.
    pub dead: u64,
    /// Attempts that failed, whatever became of their events.
    pub failed_attempts: u64,
    /// How often a handler ended or broke the rules, and was started again where the policy said so.
    pub faults: u64,
    /// Records written.
    pub written: u64,
    /// Events whose outcome the sink had already, under another offset: produced twice. They are not among the handled.
    pub absorbed: u64,
    /// How often the offset was saved.
    pub saves: u64,
    /// Events and results that came under an assignment that had ended, and were dropped.
    pub late_events: u64,
    /// Timestamp of the event that was handled last, milliseconds since 1970.
    pub last_timestamp_ms: Option<i64>,
    /// Each partition that was held, in the order they were given back.
    pub partitions: Vec<PartitionReport>,
    /// What a person should know, in order.
    pub notices: Vec<String>,
    /// Why it stopped; `None` if an error stopped it.
    pub stopped: Option<StopReason>,
}

impl Report {
    /// Events that are done, one way or another.
    pub fn passed(&self) -> u64 {
        self.handled + self.skipped + self.dead
    }
}

/// What became of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionReport {
    /// Its topic's name.
    pub topic: String,
    /// Which one.
    pub id: PartitionId,
    /// Where the run began.
    pub started_at: Committed,
    /// What is saved now.
    pub committed: Option<Committed>,
    /// The high watermark as last known.
    pub end: Offset,
    /// Events handled in it.
    pub handled: u64,
}

/// Why a run stopped without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It was asked to.
    Asked,
    /// `--max` events are handled.
    MaxEvents,
    /// `--until-end`: nothing is left.
    End,
}

/// How a run stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Events handled, filtered ones included.
    pub handled: u64,
    /// Events left out on purpose.
    pub filtered: u64,
    /// Records written, or waiting to be.
    pub written: u64,
    /// How often the offset was saved.
    pub saves: u64,
    /// Offsets between what is handled and the high watermarks, over all partitions. Holes are counted, too.
    pub lag_offsets: u64,
    /// Timestamp of the event that was handled last, milliseconds since 1970.
    pub last_timestamp_ms: Option<i64>,
    /// How many events handlers have at this moment; not known of a handler that the runner's own thread calls.
    pub in_flight: usize,
    /// The event that a handler has had for longest.
    pub oldest: Option<InHand>,
    /// How long ago the offset was saved.
    pub since_save: Duration,
    /// Events passed by, since no attempt succeeded.
    pub skipped: u64,
    /// Events passed by, and kept as dead letters.
    pub dead: u64,
    /// Events whose outcome the sink had already.
    pub absorbed: u64,
    /// Attempts that failed.
    pub failed_attempts: u64,
    /// How often a handler ended or broke the rules.
    pub faults: u64,
    /// Each partition that is held.
    pub partitions: Vec<PartitionStatus>,
}

/// How a partition stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// Its topic's name.
    pub topic: Arc<str>,
    /// Which one.
    pub id: PartitionId,
    /// The end of what is handled without a gap: what the next save may say.
    pub handled: Committed,
    /// What is saved: where a restart goes on.
    pub saved: Option<Committed>,
    /// The high watermark as last known.
    pub end: Offset,
}

/// What a notice is about, as far as it is about one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About<'a> {
    /// What happened, in one word for scripts: `starts`, `decision`, `gap`, `attempt-failed`, `passed-by`, ….
    pub event: &'static str,
    /// Its topic's name.
    pub topic: &'a str,
    /// Its partition's number.
    pub partition: i32,
    /// Which event, or the offset that is read next.
    pub offset: Option<Offset>,
}

/// An event that a handler has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InHand {
    /// Its topic's name.
    pub topic: String,
    /// Its partition's number.
    pub partition: i32,
    /// Which event.
    pub offset: Offset,
    /// How long the handler has had it.
    pub length: Duration,
    /// How many events of the partition are handled, and wait for this one.
    pub waiting: usize,
}

/// Who is told how a run goes. Called by the runner's thread, between two events: to show how long a handler has been at
/// one event, note the time in [`Progress::handling`] and draw from another thread.
pub trait Progress {
    /// A partition was claimed, and is read from here on.
    fn starts(&mut self, topic: &str, id: PartitionId, at: Committed) {
        let _ = (topic, id, at);
    }

    /// This event is handed out now.
    fn handling(&mut self, delivery: &Delivery<'_>) {
        let _ = delivery;
    }

    /// How it stands, after each batch and a few times a second.
    fn status(&mut self, status: &Status) {
        let _ = status;
    }

    /// Something that a person should know. It is in the report, too.
    fn notice(&mut self, notice: &str) {
        let _ = notice;
    }

    /// The same, where it is about a partition; the text names it, too.
    fn notice_about(&mut self, about: &About<'_>, notice: &str) {
        let _ = about;
        self.notice(notice);
    }
}

/// Nobody is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {}
