//! What can be read of a directory: topics, groups, and logs up to their high watermarks.
//!
//! The broker owns one and changes it; a [`View`] is the same, read by another process beside the writer, up to the
//! marks, without writing a byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use leftoff_wire::Uuid;

use crate::broker::marks::ReadMarks;
use crate::broker::recovery::{self, OpenError};
use crate::broker::replay;
use crate::broker::{METADATA_LOG, Metadata, OFFSETS_LOG, PartitionId, Topic, directory, topics};
use crate::coordinator::{Bounds, Coordinator, PartitionKey};
use crate::disk::Disk;
use crate::log::{Access, Log};

/// Topics, groups and logs.
#[derive(Debug)]
pub struct State {
    pub(crate) cluster_id: Uuid,
    pub(crate) metadata: Metadata,
    pub(crate) coordinator: Coordinator,
    pub(crate) logs: BTreeMap<PartitionId, Log>,
}

impl State {
    /// The directory's own id.
    pub fn cluster_id(&self) -> Uuid {
        self.cluster_id
    }

    /// Live topics, by id.
    pub fn topics(&self) -> impl Iterator<Item = &Topic> {
        self.metadata.topics()
    }

    /// A live topic by name.
    pub fn topic(&self, name: &str) -> Option<&Topic> {
        self.metadata.by_name(name)
    }

    /// What the metadata log says.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Groups and their offsets.
    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }

    /// A partition's log; the two internal ones are found by [`crate::broker::METADATA_LOG`] and [`OFFSETS_LOG`].
    pub fn log(&self, partition: &PartitionId) -> Option<&Log> {
        self.logs.get(partition)
    }

    /// The offsets log.
    pub fn offsets_log(&self) -> &Log {
        self.logs.get(&OFFSETS_LOG).expect("a directory is not open without its offsets log")
    }

    /// What can be read of a partition, if this incarnation of its topic is alive.
    pub fn bounds(&self, key: &PartitionKey) -> Option<Bounds> {
        let log = self.logs.get(&PartitionId { topic_id: key.topic_id, partition: key.partition })?;
        Some(Bounds { log_start: log.log_start(), end: log.high_watermark() })
    }
}

/// A directory read beside its writer (or without one), as of one moment.
#[derive(Debug)]
pub struct View {
    state: State,
    round: u64,
    whole: bool,
}

impl View {
    /// Reads the directory up to its marks. Nothing is written.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(disk: &Arc<dyn Disk>) -> Result<View, OpenError> {
        // The writer may delete a topic or a segment between two of our steps: look again.
        const ATTEMPTS: u32 = 5;
        let mut opened = View::open_once(disk);
        for _ in 1..ATTEMPTS {
            match &opened {
                Err(OpenError::MissingFolder { .. } | OpenError::Log(_)) => opened = View::open_once(disk),
                _ => break,
            }
        }
        opened
    }

    /// The round that a view opened now would have, at the price of one small file: for whoever waits for something new.
    ///
    /// # Errors
    /// [`OpenError::Marks`] if the marks cannot be read.
    pub fn peek_round(disk: &Arc<dyn Disk>) -> Result<u64, OpenError> {
        Ok(ReadMarks::read(disk)?.round)
    }

    fn open_once(disk: &Arc<dyn Disk>) -> Result<View, OpenError> {
        let directory::Found::Ours { cluster_id } = directory::inspect(disk)? else {
            return Err(OpenError::Empty);
        };
        let marks = ReadMarks::read(disk)?;
        let ends = marks.ends();
        let open = |dir: &str, partition, metadata| {
            recovery::open_log(disk, dir, partition, &ends, metadata, Access::Reader)
        };
        let metadata_log = open(directory::METADATA_DIR, METADATA_LOG, None)?;
        let metadata = replay::metadata(&metadata_log)?;
        let offsets_log = open(directory::OFFSETS_DIR, OFFSETS_LOG, Some(&metadata))?;
        let (coordinator, _) = replay::coordinator(disk, &offsets_log)?;
        let mut logs = BTreeMap::from([(METADATA_LOG, metadata_log), (OFFSETS_LOG, offsets_log)]);
        for topic in metadata.topics() {
            for number in 0..topic.partitions {
                let partition = PartitionId { topic_id: topic.topic_id, partition: number };
                logs.insert(
                    partition,
                    open(&topics::folder(&topic.name, number), partition, Some(&metadata))?,
                );
            }
        }
        let state = State { cluster_id, metadata, coordinator, logs };
        Ok(View { state, round: marks.round, whole: marks.whole })
    }

    /// Moves on to the marks as they are now; `false` if no round has finished since. Costs one small read then.
    ///
    /// Logs are opened again where they have grown, and everything if a topic changed. Groups are as they were when the
    /// view was opened, or when a topic last changed: whoever looks at them opens a new view.
    ///
    /// # Errors
    /// [`OpenError`]; the view is as it was.
    pub fn refresh(&mut self, disk: &Arc<dyn Disk>) -> Result<bool, OpenError> {
        let marks = ReadMarks::read(disk)?;
        if (marks.round, marks.whole) == (self.round, self.whole) {
            return Ok(false);
        }
        let ends = marks.ends();
        let has_grown =
            |(partition, log): &(&PartitionId, &Log)| ends.get(partition) != Some(&log.high_mark());
        let grown: Vec<PartitionId> = self.state.logs.iter().filter(has_grown).map(|(id, _)| *id).collect();
        if grown.contains(&METADATA_LOG) {
            *self = View::open(disk)?;
            return Ok(true);
        }
        let metadata = &self.state.metadata;
        let mut logs = Vec::with_capacity(grown.len());
        for partition in grown {
            let dir = match metadata.by_id(&partition.topic_id) {
                Some(topic) => topics::folder(&topic.name, partition.partition),
                None => directory::OFFSETS_DIR.to_owned(),
            };
            logs.push((
                partition,
                recovery::open_log(disk, &dir, partition, &ends, Some(metadata), Access::Reader)?,
            ));
        }
        self.state.logs.extend(logs);
        (self.round, self.whole) = (marks.round, marks.whole);
        Ok(true)
    }

    /// What can be read.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The round up to which this reads: two views of the same round see the same.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// False when the writer died while it wrote its marks: then the ends may be of two neighbouring rounds.
    pub fn is_of_one_moment(&self) -> bool {
        self.whole
    }
}
