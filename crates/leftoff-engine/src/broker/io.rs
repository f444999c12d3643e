//! What goes into the broker and what comes out: closed enums, matched without a catch-all.

use std::path::PathBuf;
use std::sync::Arc;

use leftoff_wire::Uuid;
use leftoff_wire::record_batch::Batches;
use leftoff_wire::{Offset, Run};

use crate::broker::PartitionId;
use crate::broker::incoming::Incoming;
use crate::broker::metadata::{KeptFor, Topic};
use crate::broker::producer_state::SequenceError;
use crate::broker::settings::SettingError;
use crate::coordinator::classic::{GroupReply, GroupRequest, MemberReply, MemberRequest};
use crate::coordinator::{Commit, CommitError, Flags, Group, GroupError, Ownership, Who};
use crate::disk::{Disk, DiskFile};
use crate::log::LogError;
use crate::types::TopicPartition;
use leftoff_wire::consumer_offsets::SourceProgress;

/// Names a request, chosen by the caller; its reply carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A round: everything that one sync covers. Rounds finish in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Round(pub u64);

impl Round {
    /// The round behind this one.
    pub(super) fn next(self) -> Round {
        Round(self.0 + 1)
    }
}

/// What the broker is told.
#[expect(
    clippy::large_enum_variant,
    reason = "one is made for a request and moved once; a box would be an allocation"
)]
#[derive(Debug)]
pub enum Input {
    /// Somebody asks for something.
    Request {
        /// Comes back with the reply.
        id: RequestId,
        /// What is asked.
        request: Request,
    },
    /// The sync that [`Output::Sync`] asked for has ended.
    Synced {
        /// The round of that job.
        round: Round,
        /// How it ended. A failure latches the directory: nothing is acknowledged any more.
        result: std::io::Result<()>,
    },
}

/// What the broker wants done.
#[derive(Debug)]
pub enum Output {
    /// The answer to a request; everything it says is on disk.
    Reply {
        /// Whose.
        id: RequestId,
        /// What.
        reply: Reply,
    },
    /// Sync these, then tell with [`Input::Synced`]. At most one is under way.
    Sync(SyncJob),
}

/// Files and folders that one sync must cover.
#[derive(Debug)]
pub struct SyncJob {
    /// The round that it finishes.
    pub round: Round,
    /// Files with new content.
    pub files: Vec<Arc<dyn DiskFile>>,
    /// Folders with new or removed names.
    pub dirs: Vec<PathBuf>,
}

impl SyncJob {
    /// Does it, blocking; the result goes back with [`Input::Synced`].
    ///
    /// # Errors
    /// When the disk fails.
    pub fn run(&self, disk: &dyn Disk) -> std::io::Result<()> {
        disk.sync(&self.files, &self.dirs)
    }
}

/// What can be asked of the broker.
#[derive(Debug)]
pub enum Request {
    /// Make a topic.
    CreateTopic {
        /// Its name, by Kafka's rules.
        name: String,
        /// A fresh id: entropy comes in from outside.
        topic_id: Uuid,
        /// How many partitions, at least 1.
        partitions: i32,
        /// Settings by Kafka's names.
        settings: Vec<(String, String)>,
    },
    /// Change settings, or add partitions.
    AlterTopic {
        /// Which topic.
        name: String,
        /// Settings to set, or with `None` to take back to the default.
        settings: Vec<(String, Option<String>)>,
        /// The new number of partitions, not less than now.
        partitions: Option<i32>,
    },
    /// Change settings of something that is no topic. They are kept and shown; nothing here goes by them.
    Keep {
        /// Of what.
        of: KeptFor,
        /// Settings to set, or with `None` to take back.
        settings: Vec<(String, Option<String>)>,
    },
    /// Delete a topic with its events.
    DeleteTopic {
        /// Which topic.
        name: String,
    },
    /// Delete all events of a partition below an offset.
    Trim {
        /// Which partition.
        partition: PartitionId,
        /// The new log start; at most the high watermark.
        before: Offset,
    },
    /// Append batches of no idempotent producer to any number of partitions. If one write fails, none stays; in a crash before the reply some may.
    Append {
        /// Checked batches; offsets are assigned here.
        appends: Vec<(PartitionId, Batches)>,
    },
    /// Append what producers sent to any number of partitions; each one succeeds or fails by itself, and a batch of an
    /// idempotent producer that is there already is answered with where it is.
    Produce {
        /// One batch for each partition, as in Kafka; offsets are assigned here.
        produces: Vec<(PartitionId, Incoming)>,
    },
    /// A producer id that nobody was given before.
    InitProducerId,
    /// Append batches to any number of partitions and save offsets or progress, all or nothing.
    CommitSet(CommitSet),
    /// An embedded runner takes a group over.
    Join {
        /// Which group.
        group: String,
        /// Who.
        who: Who,
    },
    /// An embedded runner gives a group back.
    Leave {
        /// Which group.
        group: String,
        /// What [`Request::Join`] answered.
        ownership: Ownership,
    },
    /// A member of a group asks over the wire.
    Member(MemberRequest),
    /// Somebody asks about groups over the wire, by Kafka's rules.
    Group(GroupRequest),
    /// Forget a group.
    DeleteGroup {
        /// Which group.
        group: String,
        /// Who asks.
        who: Who,
        /// The reason that a person gave.
        note: Option<String>,
    },
    /// Forget some of a group's offsets.
    DeleteOffsets {
        /// Which group.
        group: String,
        /// Which partitions, by name: the topic may be gone.
        partitions: Vec<TopicPartition>,
        /// Who asks.
        who: Who,
        /// The reason that a person gave.
        note: Option<String>,
    },
    /// All live topics.
    Topics,
    /// All groups.
    Groups,
    /// How far a source was read by `produce --source`.
    Progress {
        /// The source's name.
        source: String,
    },
}

/// Records and offsets that become visible in one step.
#[derive(Debug)]
pub struct CommitSet {
    /// Data batches, whose producer id must be [`crate::broker::RESERVED_PRODUCER_ID`] or above. May be empty.
    pub appends: Vec<(PartitionId, Batches)>,
    /// What is saved with them.
    pub position: Position,
}

/// The position that a commit set saves.
#[derive(Debug)]
pub enum Position {
    /// Offsets of a group.
    Group(Commit),
    /// Progress of a source file.
    Source {
        /// The source's name.
        name: String,
        /// How far it was read.
        progress: SourceProgress,
        /// Who reads it.
        who: Who,
    },
}

/// The broker's answer.
#[derive(Debug)]
pub enum Reply {
    /// A topic was made or changed, or was asked for.
    Topic(Topic),
    /// Done; nothing more to say.
    Done,
    /// Where a plain append went, in the order given.
    Appended(Vec<Appended>),
    /// What became of each partition's batches, in the order given.
    Produced(Vec<Result<Produced, Refusal>>),
    /// A fresh producer id; its epoch is 0.
    ProducerId(i64),
    /// A commit set is in.
    Committed {
        /// Where its data batches went, in the order given.
        appended: Vec<Appended>,
        /// What was let pass and is odd, for each offset in the order given.
        flags: Vec<Flags>,
    },
    /// The group is this member's.
    Joined(Ownership),
    /// All live topics.
    Topics(Vec<Topic>),
    /// All groups, by name.
    Groups(Vec<Group>),
    /// How far a source was read; `None` if it never was.
    Progress(Option<SourceProgress>),
    /// A member's answer.
    Member(MemberReply),
    /// About groups, by Kafka's rules.
    Group(GroupReply),
    /// Refused; nothing has changed.
    Refused(Refusal),
}

/// Where batches went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Which partition.
    pub partition: PartitionId,
    /// The first offset.
    pub base: Offset,
    /// One behind the last offset.
    pub next: Offset,
}

/// Where a producer's batches are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Produced {
    /// The first offset.
    pub base: Offset,
    /// When the broker appended them, if their timestamps are the broker's; −1 if they are the producer's.
    pub append_time_ms: i64,
    /// The first offset that can be read.
    pub log_start: Offset,
    /// They were there already.
    pub is_duplicate: bool,
}

/// Why a request was refused. Whatever it was, nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No such topic.
    #[error("no topic {0:?}")]
    UnknownTopic(String),
    /// No such partition.
    #[error("no partition {0}")]
    UnknownPartition(PartitionId),
    /// The name is taken.
    #[error("topic {0:?} exists already")]
    TopicExists(String),
    /// The name breaks Kafka's rules.
    #[error("topic name {name:?} is not valid: {why}")]
    InvalidTopic {
        /// The name.
        name: String,
        /// Which rule.
        why: &'static str,
    },
    /// A number of partitions that cannot be.
    #[error("{asked} partitions: {why}")]
    InvalidPartitions {
        /// What was asked.
        asked: i32,
        /// Why not.
        why: String,
    },
    /// Settings are kept for too many things.
    #[error("settings are kept for {limit} brokers and groups already; delete those of one first")]
    TooManyKept {
        /// How many there may be.
        limit: usize,
    },
    /// A setting that cannot be.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A trim outside the log.
    #[error("cannot delete below offset {asked}: the partition has {run}", run = Run::new(*log_start, *high_watermark))]
    OutOfRange {
        /// What was asked.
        asked: Offset,
        /// The log start.
        log_start: Offset,
        /// The high watermark.
        high_watermark: Offset,
    },
    /// A batch larger than `max.message.bytes`.
    #[error("a batch of {bytes} bytes is larger than max.message.bytes={limit} of topic {topic:?}")]
    TooLarge {
        /// The topic.
        topic: String,
        /// The batch.
        bytes: u64,
        /// The setting.
        limit: u64,
    },
    /// A producer id from the wrong range.
    #[error(
        "producer id {producer_id}: ids from 2^62 on belong to commit sets, and only to them; batches with other ids are \
         produced one by one"
    )]
    ProducerId {
        /// The id.
        producer_id: i64,
    },
    /// A batch that does not continue what its producer sent before.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// The offsets cannot be saved.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The group says no.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The disk is full. Reading goes on and offsets can still be saved.
    #[error("the disk is full: {0}")]
    DiskFull(String),
    /// The log refused or failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Storage failed earlier: nothing is acknowledged until the directory is opened anew.
    #[error("storage failed: {0}; nothing more is acknowledged, open the directory anew to recover")]
    Latched(String),
}

impl Refusal {
    /// Whether storage has failed: what is on the disk is not known any more, so nothing may be acknowledged after it.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Refusal::Latched(_) => true,
            Refusal::Log(error) => error.is_final(),
            _ => false,
        }
    }
}
