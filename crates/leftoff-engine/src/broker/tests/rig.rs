//! A broker on a disk in memory, driven step by step.

use std::sync::Arc;

use leftoff_wire::record_batch::{Batch, BatchBuilder, Batches, Limits};
use leftoff_wire::{Committed, Offset, Uuid};

use crate::broker::{
    Broker, BrokerConfig, CommitSet, Input, OpenError, Output, PartitionId, Position, RESERVED_PRODUCER_ID,
    Refusal, Reply, Request, RequestId, State,
};
use crate::coordinator::{Commit, OffsetToCommit, PartitionKey, Who, Why};
use crate::disk::Disk;
use crate::log::ReadBatch;
use crate::types::Timestamp;

pub const TOPIC: Uuid = Uuid::from_bytes([7; 16]);

pub fn partition(number: i32) -> PartitionId {
    PartitionId { topic_id: TOPIC, partition: number }
}

pub struct Rig {
    pub disk: Arc<dyn Disk>,
    pub broker: Broker,
    now: i64,
    requests: u64,
}

impl Rig {
    pub fn open(disk: &Arc<dyn Disk>) -> Result<Rig, OpenError> {
        Rig::open_with(disk, BrokerConfig::default())
    }

    pub fn open_with(disk: &Arc<dyn Disk>, config: BrokerConfig) -> Result<Rig, OpenError> {
        let id = Uuid::from_bytes([1; 16]);
        let broker = Broker::open(disk.clone(), Timestamp::from_ms(0), id, config)?;
        Ok(Rig { disk: disk.clone(), broker, now: 0, requests: 0 })
    }

    /// A directory with a topic `t` of so many partitions.
    pub fn with_topic(disk: &Arc<dyn Disk>, partitions: i32, settings: &[(&str, &str)]) -> Rig {
        let mut rig = Rig::open(disk).unwrap();
        let settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let name = "t".to_owned();
        rig.ask(Request::CreateTopic { name, topic_id: TOPIC, partitions, settings }).unwrap();
        rig
    }

    pub fn ask(&mut self, request: Request) -> Result<Reply, Refusal> {
        self.now += 1;
        self.requests += 1;
        let id = RequestId(self.requests);
        let now = Timestamp::from_ms(self.now);
        self.broker.handle(now, Input::Request { id, request });
        let mut answer = None;
        while let Some(output) = self.broker.poll_output() {
            match output {
                Output::Sync(job) => {
                    let result = job.run(&*self.disk);
                    self.broker.handle(now, Input::Synced { round: job.round, result });
                }
                Output::Reply { id: of, reply } if of == id => answer = Some(reply),
                Output::Reply { .. } => {}
            }
        }
        match answer.expect("every request is answered once its round is on disk") {
            Reply::Refused(refusal) => Err(refusal),
            reply => Ok(reply),
        }
    }

    /// Appends one batch of these values.
    pub fn append(&mut self, number: i32, values: &[&str]) -> Result<Reply, Refusal> {
        let batches = batch(values, -1);
        self.ask(Request::Append { appends: vec![(partition(number), batches)] })
    }

    /// Commits `next` for group `g`, with output in a partition if any is given.
    pub fn commit(&mut self, number: i32, next: i64, outputs: &[(i32, &[&str])]) -> Result<Reply, Refusal> {
        let key = PartitionKey { topic: "t".to_owned(), topic_id: TOPIC, partition: number };
        let committed = Committed::from_wire(next).unwrap();
        let offset = OffsetToCommit { key, committed, leader_epoch: None, metadata: String::new() };
        let commit = Commit {
            group: "g".to_owned(),
            fence: None,
            offsets: vec![offset],
            who: Who::unknown(),
            why: Why::Commit,
            note: None,
            strict: true,
        };
        let appends = outputs
            .iter()
            .map(|(number, values)| (partition(*number), batch(values, RESERVED_PRODUCER_ID)))
            .collect();
        self.ask(Request::CommitSet(CommitSet { appends, position: Position::Group(commit) }))
    }

    pub fn close(self) {
        self.broker.close().unwrap();
    }
}

pub fn batch(values: &[&str], producer_id: i64) -> Batches {
    let mut batch = BatchBuilder::default();
    if producer_id >= 0 {
        batch.producer(producer_id, 0, 0);
    }
    for value in values {
        batch.push(1_000, None, Some(value.as_bytes()), &[]);
    }
    Batches::parse(batch.build().unwrap()).unwrap()
}

/// What a reader gets: `offset=value`, and `from..to damaged` or `from..to gone`.
pub fn contents(state: &State, number: i32) -> Vec<String> {
    let log = state.log(&partition(number)).unwrap();
    let mut seen = Vec::new();
    for step in log.read_batches(log.log_start()) {
        match step.unwrap() {
            ReadBatch::Batch { bytes, .. } => {
                let (batch, _) = Batch::parse(&bytes).unwrap();
                for record in batch.records(&Limits::default()).unwrap().iter() {
                    let record = record.unwrap();
                    let value = String::from_utf8_lossy(record.value.unwrap()).into_owned();
                    seen.push(format!("{}={value}", record.offset(batch.header())));
                }
            }
            ReadBatch::Damaged(damaged) => seen.push(format!("{}..{} damaged", damaged.from, damaged.to)),
            ReadBatch::Gap { from, to } => seen.push(format!("{from}..{to} gone")),
        }
    }
    seen
}

pub fn committed(state: &State, number: i32) -> Option<Offset> {
    state.coordinator().group("g")?.entry_by_name("t", number).map(|entry| entry.committed.next())
}
