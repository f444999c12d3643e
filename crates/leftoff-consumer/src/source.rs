//! Where events come from, as the runner sees it: a local log, or any broker that speaks Kafka's protocol.

use std::fmt;
use std::time::Duration;

use leftoff_wire::{Committed, Offset, Run, Uuid};

use crate::sink::DeadLetter;

/// A partition of a topic, by the topic's id: a topic that was deleted and made anew under its old name is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partition's number in the topic.
    pub partition: i32,
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic_id, self.partition)
    }
}

/// One event, owned: the runner keeps it while a handler works on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its place in the partition.
    pub offset: Offset,
    /// Its timestamp, milliseconds since 1970.
    pub timestamp_ms: i64,
    /// Its key, if it has one.
    pub key: Option<Vec<u8>>,
    /// Its value; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
    /// Its headers, in the order they were produced. A name may come twice.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// The leader epoch of its batch, to be saved with the offset (KIP-320); -1 if unknown.
    pub leader_epoch: i32,
}

/// What a [`Source`] tells, in the order in which it holds.
///
/// `ownership` numbers the assignments of a partition to this runner: it is larger each time. What arrives under an ended
/// one is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceEvent {
    /// The partition is this runner's from now on. Nothing is read from it before [`Source::seek`]. All `Assigned` of one
    /// assignment come before anything else, so that `--until-end` knows what it waits for.
    Assigned {
        /// The topic's name, for people.
        topic: String,
        /// Which partition.
        id: PartitionId,
        /// The number of this assignment.
        ownership: u64,
        /// What the group has saved for it, if anything.
        committed: Option<Committed>,
        /// The words that were saved with it: [`Save::metadata`], and maybe somebody else's.
        metadata: String,
        /// The reset that `committed` is, if a person moved the group's offset and the place that the group's effects go to is
        /// to follow: the sink knows by its number whether it has.
        reset: Option<Reset>,
        /// The group's runner before this one did not give it back: it was killed, or lost its machine.
        unclean: bool,
        /// The topic got this partition when the group had begun with its others: nothing in it was ever passed over.
        added: bool,
        /// The first offset that can still be read.
        log_start: Offset,
        /// The high watermark: everything below it can be read.
        end: Offset,
    },
    /// Events, in rising offset order, each at or above the position.
    Batch {
        /// Which partition.
        id: PartitionId,
        /// Under which assignment it was read.
        ownership: u64,
        /// The events; may be empty where a batch holds only markers.
        events: Vec<Event>,
        /// Where reading goes on: behind the last event and any holes and markers that follow it.
        next: Offset,
        /// The high watermark as now known.
        end: Offset,
    },
    /// These offsets cannot be read any more; the events behind them can.
    Gap {
        /// Which partition.
        id: PartitionId,
        /// Under which assignment.
        ownership: u64,
        /// The first offset that is gone: the position.
        from: Offset,
        /// The first offset that can be read.
        to: Offset,
        /// Why they are gone.
        reason: GapReason,
    },
    /// The partition is to be given back. What is handled by now is still saved; the next [`Source::poll`] says that the
    /// runner is done with it.
    Revoked {
        /// Which partition.
        id: PartitionId,
        /// The assignment that ends.
        ownership: u64,
    },
    /// The partition is already another's. Nothing can be saved any more.
    Lost {
        /// Which partition.
        id: PartitionId,
        /// The assignment that has ended.
        ownership: u64,
    },
    /// The position has reached the high watermark.
    End {
        /// Which partition.
        id: PartitionId,
        /// Under which assignment.
        ownership: u64,
        /// The high watermark.
        end: Offset,
    },
    /// Nothing happened within the time given.
    Idle,
}

/// A move that a person asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// Its number: later ones have greater numbers.
    pub number: Offset,
    /// What was asked for: `reset --to-earliest`.
    pub what: String,
}

/// Why offsets cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GapReason {
    /// Retention, or a person, deleted them before they were read.
    Deleted,
    /// Their bytes are damaged; the text says where.
    Damaged(String),
}

impl fmt::Display for GapReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GapReason::Deleted => f.write_str("deleted before they were handled"),
            GapReason::Damaged(what) => write!(f, "damaged: {what}"),
        }
    }
}

/// One offset for the group to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Save {
    /// Which partition.
    pub id: PartitionId,
    /// Under which assignment: a save from an ended one is refused.
    pub ownership: u64,
    /// The next offset to read.
    pub committed: Committed,
    /// Leader epoch of the last event handled; -1 if unknown.
    pub leader_epoch: i32,
    /// Words to be kept with the offset; a source may add its own behind them. Kafka's free text, at most 4,096 bytes. Often
    /// empty; where a text does not fit, it may be left out.
    pub metadata: String,
    /// Present if this is no plain move behind handled events but a decision to skip or to repeat; goes into the history.
    pub decision: Option<Decision>,
    /// The event that the decision gives up, to be kept in the same step: where the sink does not keep dead letters.
    pub dead: Option<Box<DeadLetter>>,
}

/// A jump that was decided, with the name of the rule and the offsets it passes over, or repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The rule, as the user wrote it: `--on-gap earliest`.
    pub rule: String,
    /// Where the runner would have gone on; `None` if nothing was saved.
    pub from: Option<Offset>,
    /// Where it goes on.
    pub to: Offset,
    /// How many offsets lie between: skipped if `to` is greater, to be repeated if it is smaller. Holes are counted, too.
    pub count: u64,
    /// A person's move, which the history has already, reaches the sink.
    pub follows: bool,
}

impl Decision {
    /// The offsets that are passed over, from the first up to the second, which is not; `None` if none are.
    pub fn skips(&self) -> Option<(Offset, Offset)> {
        self.from.filter(|from| *from < self.to).map(|from| (from, self.to))
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            None => write!(f, "{}: starts at offset {}", self.rule, self.to),
            Some(from) if from == self.to => write!(f, "{}: stays at offset {from}", self.rule),
            Some(from) if from < self.to => {
                write!(f, "{}: skips {}", self.rule, Run::new(from, self.to))
            }
            Some(from) => {
                write!(
                    f,
                    "{}: goes back from offset {from} to offset {}: {} come again",
                    self.rule,
                    self.to,
                    Run::new(self.to, from)
                )
            }
        }
    }
}

/// A place that events are read from by a group.
///
/// Called by one thread. A source that fetches ahead does so within bounds of its own.
pub trait Source {
    /// The next thing that happened; waits at most `wait` for it.
    ///
    /// # Errors
    /// Whatever ends the run; a hiccup that heals by itself is the source's to wait out.
    fn poll(&mut self, wait: Duration) -> Result<SourceEvent, SourceError>;

    /// Called between two events of a batch: a moment to do what cannot wait for the next [`Source::poll`].
    ///
    /// # Errors
    /// As [`Source::poll`].
    fn between_events(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// Read this partition from here on. Called once after `Assigned`, and after a [`SourceEvent::Gap`] that is to be passed.
    ///
    /// # Errors
    /// As [`Source::poll`].
    fn seek(&mut self, id: PartitionId, to: Offset) -> Result<(), SourceError>;

    /// The event at this very offset, whatever the position is; `None` if there is none any more, or never was: a hole, a
    /// marker, deleted. Nothing is delivered for it.
    ///
    /// # Errors
    /// As [`Source::poll`].
    fn event_at(&mut self, id: PartitionId, offset: Offset) -> Result<Option<Event>, SourceError>;

    /// Deliver nothing from this partition for now, or deliver it again. Only a wish: a source that goes on all the same is
    /// held up by the bounds of the runner, and its other partitions with it.
    fn pause(&mut self, id: PartitionId, paused: bool) {
        let _ = (id, paused);
    }

    /// Save these offsets in the group; returns when they are durable.
    ///
    /// # Errors
    /// As [`Source::poll`]; [`SourceError::Ended`] if an assignment named in it has ended: then none of them was saved.
    fn save(&mut self, saves: &[Save]) -> Result<(), SourceError>;

    /// Something that saves as [`Source::save`] does, from another thread. While it does, nothing of this source is called.
    /// `None` if there is no such thing.
    fn saver(&self) -> Option<Box<dyn GroupSaver>> {
        None
    }
}

/// Saves a group's offsets from another thread: [`Source::saver`].
pub trait GroupSaver: Send {
    /// As [`Source::save`].
    ///
    /// # Errors
    /// As [`Source::save`].
    fn save(&mut self, saves: &[Save]) -> Result<(), SourceError>;
}

/// Why a source cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It does not do what is asked, for safety; the text says what to do.
    #[error("{0}")]
    Refused(String),
    /// The assignment of this partition has ended.
    #[error("the assignment of partition {0} has ended; its offset was not saved")]
    Ended(PartitionId),
    /// It cannot be reached.
    #[error("cannot reach the source: {0}")]
    Unreachable(String),
    /// Its storage failed or is damaged.
    #[error("the source's storage failed: {0}")]
    Storage(String),
}
