//! Rounds: what one sync covers, and who waits for it.
//!
//! Everything appended while a sync is under way belongs to the open round, which begins its own sync as soon as that
//! one has ended. No waiting is added: a lone request is synced at once, many share one sync.

use std::collections::{BTreeSet, VecDeque};

use crate::broker::LogStartReason;
use crate::broker::PartitionId;
use crate::broker::io::{Reply, RequestId, Round};
use crate::log::{Mark, RemovedSegment};
use leftoff_wire::Offset;
use leftoff_wire::Uuid;

/// Something to do once a round is on disk, before its replies go out.
#[derive(Debug)]
pub enum AfterSync {
    /// Readers no longer see below the offset; the segments below it go once the marks are synced, too.
    AdvanceLogStart(PartitionId, Offset),
    /// Unlink these: the marks that no longer name them are on disk.
    Unlink(Vec<RemovedSegment>),
    /// Values were carried forward: sync the marks that cover them, then [`AfterSync::MoveLogStart`]. A reader of what a
    /// power cut left would otherwise find the new log start, and not yet the values.
    Carried(PartitionId, Offset, LogStartReason),
    /// Record a new log start: what it lets go was carried forward, and that is on disk now.
    MoveLogStart(PartitionId, Offset, LogStartReason),
    /// A topic's deletion is recorded: sync the marks that cover the record, then [`AfterSync::RemoveTopic`]. A reader of
    /// what a power cut left would otherwise find the topic, and not its folders.
    TopicDeleted {
        /// Its name.
        name: String,
        /// Its id.
        topic_id: Uuid,
        /// How many folders.
        partitions: i32,
    },
    /// Take a deleted topic's folders away.
    RemoveTopic {
        /// Its name.
        name: String,
        /// Its id.
        topic_id: Uuid,
        /// How many folders.
        partitions: i32,
    },
}

/// The round whose sync is under way.
#[derive(Debug)]
pub struct InFlight {
    /// Its number.
    pub round: Round,
    /// The ends that become readable.
    pub ends: Vec<(PartitionId, Mark)>,
    /// What to do when it is on disk.
    pub after: Vec<AfterSync>,
    /// Whether the marks file is in it.
    pub with_marks: bool,
}

/// The open round, the one in flight, and the replies that wait.
#[derive(Debug)]
pub struct Rounds {
    /// The round that takes what is appended now.
    pub open: Round,
    /// Logs that were written in the open round.
    pub dirty: BTreeSet<PartitionId>,
    /// What to do when the open round is on disk.
    pub after: Vec<AfterSync>,
    /// The open round must sync the marks file.
    pub sync_marks: bool,
    /// At most one.
    pub in_flight: Option<InFlight>,
    /// The round in which coordinator or metadata state last changed: replies that report state wait for it.
    pub state_round: Option<Round>,
    parked: VecDeque<(Round, RequestId, Reply)>,
}

impl Rounds {
    /// Nothing open, nothing under way.
    pub fn new() -> Rounds {
        Rounds {
            open: Round(1),
            dirty: BTreeSet::new(),
            after: Vec::new(),
            sync_marks: false,
            in_flight: None,
            state_round: None,
            parked: VecDeque::new(),
        }
    }

    /// The round that a reply reporting state must wait for; `None` if that state is on disk.
    pub fn unfinished_state(&self) -> Option<Round> {
        let finished_below = self.in_flight.as_ref().map_or(self.open, |in_flight| in_flight.round);
        self.state_round.filter(|round| *round >= finished_below)
    }

    /// Keeps a reply until a round is on disk.
    pub fn park(&mut self, round: Round, id: RequestId, reply: Reply) {
        // Kept in order of rounds, so that releasing stays a walk from the front.
        let at = self.parked.partition_point(|(parked, ..)| *parked <= round);
        self.parked.insert(at, (round, id, reply));
    }

    /// Whether a reply that waits is a refusal.
    pub fn is_refused(&self, id: RequestId) -> bool {
        self.parked.iter().rev().any(|(_, parked, reply)| *parked == id && matches!(reply, Reply::Refused(_)))
    }

    /// True when the open round has something that a sync must cover.
    pub fn has_work(&self) -> bool {
        !self.dirty.is_empty() || !self.after.is_empty() || self.sync_marks
    }

    /// Replies whose round is on disk, in order.
    pub fn release(&mut self, finished: Round) -> Vec<(RequestId, Reply)> {
        let ready = self.parked.partition_point(|(round, ..)| *round <= finished);
        self.parked.drain(..ready).map(|(_, id, reply)| (id, reply)).collect()
    }

    /// Everybody who waits, when there is nothing to wait for any more.
    pub fn release_all(&mut self) -> Vec<RequestId> {
        self.parked.drain(..).map(|(_, id, _)| id).collect()
    }
}
