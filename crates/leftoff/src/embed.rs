//! The log in your own program: open a directory, append, read, and consume with a closure. Synchronous, no runtime.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use leftoff_consumer::handler::{Answer, Closure, Delivery};
use leftoff_consumer::runner::{
    Handlers, NoProgress, Parts, Report, RunFailure, RunOptions, Runner, SystemClock,
};
use leftoff_consumer::sink::{
    ClaimPartition, Claimed, MatrixRow, Move, Output, Promise, Sink, SinkError, Written,
};
use leftoff_consumer::source;
use leftoff_engine::broker::{PartitionId, Refusal, Reply, Request};
use leftoff_wire::record_batch::{BatchBuilder, BatchError, Batches};
use leftoff_wire::{Committed, Compression, Offset};

use crate::source::StoreSource;
use crate::store::{Chunk, OpenOptions, Store, StoreError, now};

/// A log in a directory.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?; let dir = dir.path();
/// use leftoff::{Leftoff, Offset, Record};
///
/// let log = Leftoff::open(dir)?;
/// log.create_topic("orders", 1)?;
/// log.append("orders", 0, &[Record::value("e1"), Record::value("e2")])?; // returns when both are on disk
///
/// for event in log.read("orders", 0, Offset::ZERO)?.events {
///     println!("{}: {:?}", event.offset, event.value);
/// }
///
/// // Handles what the group has not handled yet, and saves the offset after each event.
/// let report = log.consume("billing", "orders", |event| {
///     println!("handling {:?}", event.value);
///     Ok::<_, String>(())
/// })?;
/// assert_eq!(report.handled, 2);
/// assert_eq!(log.committed("billing", "orders", 0).map(|committed| committed.next().get()), Some(2));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Leftoff {
    store: Store,
}

/// A record to append. Its timestamp is the time of the append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The key; `None` is null.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is null.
    pub value: Option<&'a [u8]>,
    /// Headers, in order.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
}

impl<'a> Record<'a> {
    /// A record with a value and nothing else.
    pub fn value(value: &'a (impl AsRef<[u8]> + ?Sized)) -> Record<'a> {
        Record { key: None, value: Some(value.as_ref()), headers: &[] }
    }

    /// The same record with a key.
    pub fn key(self, key: &'a (impl AsRef<[u8]> + ?Sized)) -> Record<'a> {
        Record { key: Some(key.as_ref()), ..self }
    }
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The records do not make a batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Consuming stopped; what was handled before is saved.
    #[error("{}", .0.error)]
    Run(Box<RunFailure>),
}

impl From<Box<RunFailure>> for Error {
    fn from(failure: Box<RunFailure>) -> Error {
        Error::Run(failure)
    }
}

impl Leftoff {
    /// Opens a directory, or makes it. One process writes it at a time.
    ///
    /// # Errors
    /// [`StoreError::Lock`] if another process writes it; [`StoreError::Open`] if it is not Leftoff's, or damaged.
    pub fn open(dir: impl AsRef<Path>) -> Result<Leftoff, Error> {
        Leftoff::open_with(dir, &OpenOptions::default())
    }

    /// As [`Leftoff::open`], with settings.
    ///
    /// # Errors
    /// As [`Leftoff::open`].
    pub fn open_with(dir: impl AsRef<Path>, options: &OpenOptions) -> Result<Leftoff, Error> {
        Ok(Leftoff { store: Store::open(dir.as_ref(), options)? })
    }

    /// Makes a topic that keeps its events for ever.
    ///
    /// # Errors
    /// [`Refusal::TopicExists`], [`Refusal::InvalidTopic`] or [`Refusal::InvalidPartitions`].
    pub fn create_topic(&self, name: &str, partitions: i32) -> Result<(), Error> {
        let settings = [("retention.ms".to_owned(), "-1".to_owned())];
        self.store.create_topic(name, partitions, &settings)?;
        Ok(())
    }

    /// True if there is such a topic.
    pub fn has_topic(&self, name: &str) -> bool {
        self.store.topic(name).is_some()
    }

    /// Appends records to a partition as one batch; returns when they are on disk. The offset of the first.
    ///
    /// # Errors
    /// [`Refusal`] for an unknown partition, a batch that is too large, a full disk; [`BatchError`] for no records.
    pub fn append(&self, topic: &str, partition: i32, records: &[Record<'_>]) -> Result<Offset, Error> {
        let partition = self.partition(topic, partition)?;
        let mut batch = BatchBuilder::new(Compression::None);
        let timestamp_ms = now().as_ms();
        for record in records {
            batch.push(timestamp_ms, record.key, record.value, record.headers);
        }
        let batches = Batches::parse(batch.build()?)?;
        match self.store.request(Request::Append { appends: vec![(partition, batches)] })? {
            Reply::Appended(appended) => Ok(appended[0].base),
            other => unreachable!("an append is answered with its place, not {other:?}"),
        }
    }

    /// Reads events of a partition from an offset on, about a mebibyte; [`Chunk::next`] is where to go on.
    ///
    /// # Errors
    /// Out of range, or damaged.
    pub fn read(&self, topic: &str, partition: i32, from: Offset) -> Result<Chunk, Error> {
        const READ_BYTES: u64 = 1024 * 1024;
        let partition = self.partition(topic, partition)?;
        Ok(self.store.read(&partition, from, READ_BYTES)?)
    }

    /// Gives a group's unhandled events of a topic to a closure, one by one, up to the end as it is now, and saves the offset
    /// after each. An `Err` of the closure stops before that event: the next call begins with it.
    ///
    /// # Errors
    /// [`Error::Run`] with the event that was not handled.
    pub fn consume<E: std::fmt::Display>(
        &self,
        group: &str,
        topic: &str,
        handle: impl FnMut(&source::Event) -> Result<(), E>,
    ) -> Result<Report, Error> {
        let options = RunOptions { until_end: true, ..RunOptions::default() };
        self.consume_with(group, &[topic.to_owned()], &options, &Arc::default(), handle)
    }

    /// As [`Leftoff::consume`], with settings: when to save, whether to wait for more, a flag to stop by.
    ///
    /// # Errors
    /// As [`Leftoff::consume`].
    pub fn consume_with<E: std::fmt::Display>(
        &self,
        group: &str,
        topics: &[String],
        options: &RunOptions,
        stop: &Arc<AtomicBool>,
        mut handle: impl FnMut(&source::Event) -> Result<(), E>,
    ) -> Result<Report, Error> {
        let mut source = StoreSource::join(&self.store, group, topics, "leftoff-embedded", stop.clone())?;
        let mut handler = Closure::new(|delivery: &Delivery<'_>| match handle(delivery.event) {
            Ok(()) => Answer::done(),
            Err(error) => Answer::Failed { error: error.to_string(), retry: true },
        });
        let parts = Parts {
            source: &mut source,
            handlers: Handlers::One(&mut handler),
            sink: &mut EffectsOfTheClosure,
            progress: &mut NoProgress,
            clock: &SystemClock::new(),
            stop,
            options,
        };
        let report = Runner::new(parts).run();
        source.leave()?;
        Ok(report?)
    }

    /// A group's committed offset: the *next* to read. `None` if it has none.
    pub fn committed(&self, group: &str, topic: &str, partition: i32) -> Option<Committed> {
        let group = self.store.group(group).ok()??;
        group.entry_by_name(topic, partition).map(|entry| entry.committed)
    }

    /// What the API is made of: everything that can be asked of the log.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// A clean stop. Dropping does the same, but cannot tell of errors.
    ///
    /// # Errors
    /// When the disk fails; nothing acknowledged is at risk.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.store.close()?)
    }

    fn partition(&self, topic: &str, partition: i32) -> Result<PartitionId, StoreError> {
        let found = self.store.topic(topic).ok_or_else(|| Refusal::UnknownTopic(topic.to_owned()))?;
        let id = PartitionId { topic_id: found.topic_id, partition };
        if !(0..found.partitions).contains(&partition) {
            return Err(Refusal::UnknownPartition(id).into());
        }
        Ok(id)
    }
}

/// The closure's effects are its own; only the group's offset is saved.
struct EffectsOfTheClosure;

impl Sink for EffectsOfTheClosure {
    fn claim(&mut self, partitions: &[ClaimPartition]) -> Result<Claimed, SinkError> {
        let next = partitions.iter().map(|claim| (claim.id, None)).collect();
        Ok(Claimed { next, ..Claimed::default() })
    }

    fn write(&mut self, _outputs: &[Output], _moves: &[Move]) -> Result<Written, SinkError> {
        Ok(Written::Written)
    }

    fn row(&self) -> MatrixRow {
        MatrixRow {
            sink: "closure",
            how: "calls a closure, then saves the group's offset",
            authority: "the group's offset",
            promise: Promise::AtLeastOnce,
            meaning: "no event is missed; after a crash those since the last save are handled again",
            left_over: "effects of the closure may be there twice; its own dedupe can absorb them",
        }
    }

    fn place(&self) -> String {
        "closure".to_owned()
    }
}
