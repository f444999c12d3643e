//! Idempotent producers over power cuts and kills: whatever was not answered is sent again, and in the end each number is
//! there once and in order.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use leftoff_engine::broker::{
    Broker, BrokerConfig, Incoming, Input, Output, PartitionId, ProduceRules, Reply, Request, RequestId,
    Settings, SyncJob,
};
use leftoff_engine::disk::Disk;
use leftoff_engine::disk::mem::MemDisk;
use leftoff_engine::log::ReadBatch;
use leftoff_engine::types::Timestamp;
use leftoff_wire::Uuid;
use leftoff_wire::record_batch::{Batch, BatchBuilder, Limits};

const TOPIC: Uuid = Uuid::from_bytes([7; 16]);
const CLIENTS: usize = 2;
/// Batches of each client.
const BATCHES: i32 = 9;
/// Kafka's `max.in.flight.requests.per.connection` with idempotence.
const IN_FLIGHT: i32 = 5;

/// What a client knows, whatever happens to the broker.
#[derive(Debug, Clone, Default)]
struct Client {
    id: Option<i64>,
    /// All below are acknowledged.
    acknowledged: i32,
}

/// A broker's life.
struct Life {
    disk: Arc<dyn Disk>,
    broker: Broker,
    job: Option<SyncJob>,
    now: i64,
    requests: u64,
    /// Who waits for which number.
    waiting: BTreeMap<RequestId, (usize, i32)>,
}

fn partition() -> PartitionId {
    PartitionId { topic_id: TOPIC, partition: 0 }
}

/// Snapshots of producers are written after nearly every round.
fn config() -> BrokerConfig {
    BrokerConfig { producers_every_bytes: 150, producers_at_stop_bytes: 1, ..BrokerConfig::default() }
}

impl Life {
    fn open(disk: &MemDisk) -> Option<Life> {
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        let now = Timestamp::from_ms(1_000);
        let broker = Broker::open(disk.clone(), now, Uuid::from_bytes([1; 16]), config()).ok()?;
        Some(Life { disk, broker, job: None, now: 1_000, requests: 0, waiting: BTreeMap::new() })
    }

    fn ask(&mut self, request: Request) -> RequestId {
        self.requests += 1;
        self.now += 1;
        let id = RequestId(self.requests);
        self.broker.handle(Timestamp::from_ms(self.now), Input::Request { id, request });
        id
    }

    /// Takes what the broker has to say; one sync is done if `sync`. `false`: it takes nothing more.
    fn turn(&mut self, clients: &mut [Client], sync: bool) -> bool {
        if sync && let Some(job) = self.job.take() {
            let result = job.run(&*self.disk);
            let input = Input::Synced { round: job.round, result };
            self.broker.handle(Timestamp::from_ms(self.now), input);
        }
        while let Some(output) = self.broker.poll_output() {
            match output {
                Output::Sync(job) => self.job = Some(job),
                Output::Reply { id, reply } => self.replied(clients, id, reply),
            }
        }
        self.broker.latched().is_none()
    }

    fn replied(&mut self, clients: &mut [Client], id: RequestId, reply: Reply) {
        let Some((who, number)) = self.waiting.remove(&id) else { return };
        match reply {
            Reply::ProducerId(id) => {
                let taken = clients.iter().any(|client| client.id == Some(id));
                assert!(!taken, "producer id {id} was given out twice");
                clients[who].id = Some(id);
            }
            Reply::Produced(went) => match &went[0] {
                Ok(_) => {
                    assert_eq!(number, clients[who].acknowledged, "answers come in order");
                    clients[who].acknowledged += 1;
                }
                Err(refusal) => assert!(self.broker.latched().is_some(), "refused: {refusal}"),
            },
            Reply::Refused(refusal) => assert!(self.broker.latched().is_some(), "refused: {refusal}"),
            other => panic!("{other:?}"),
        }
    }

    /// Until all clients are done, `steps` is over, or the broker takes nothing more.
    fn work(&mut self, clients: &mut [Client], steps: usize) {
        let mut sent: Vec<i32> = clients.iter().map(|client| client.acknowledged).collect();
        for step in 0..steps {
            let who = step % CLIENTS;
            match clients[who].id {
                None if !self.waiting.values().any(|(of, _)| *of == who) => {
                    let id = self.ask(Request::InitProducerId);
                    self.waiting.insert(id, (who, -1));
                }
                Some(id) if sent[who] < BATCHES.min(clients[who].acknowledged + IN_FLIGHT) => {
                    let produces = vec![(partition(), batch(who, id, sent[who]))];
                    let id = self.ask(Request::Produce { produces });
                    self.waiting.insert(id, (who, sent[who]));
                    sent[who] += 1;
                }
                _ => {}
            }
            // A few requests share a sync, and some come while one is under way.
            if !self.turn(clients, step % 3 == 2) {
                return;
            }
            if clients.iter().all(|client| client.acknowledged == BATCHES) {
                return;
            }
        }
    }

    /// The numbers of each client, in the order in which a reader sees them.
    fn numbers(&self) -> Vec<Vec<i32>> {
        let log = self.broker.state().log(&partition()).unwrap();
        let mut numbers = vec![Vec::new(); CLIENTS];
        for step in log.read_batches(log.log_start()) {
            let ReadBatch::Batch { bytes, .. } = step.unwrap() else { panic!("damage") };
            let (batch, _) = Batch::parse(&bytes).unwrap();
            for record in batch.records(&Limits::default()).unwrap().iter() {
                let value = String::from_utf8(record.unwrap().value.unwrap().to_vec()).unwrap();
                let (who, number) = value.split_once('-').unwrap();
                numbers[who.parse::<usize>().unwrap()].push(number.parse().unwrap());
            }
        }
        numbers
    }
}

fn batch(who: usize, id: i64, number: i32) -> Incoming {
    let mut batch = BatchBuilder::default();
    batch.producer(id, 0, number);
    batch.push(500, None, Some(format!("{who}-{number}").as_bytes()), &[]);
    let rules = ProduceRules::of(&Settings::default());
    Incoming::check(batch.build().unwrap(), &rules, Timestamp::from_ms(500)).unwrap()
}

/// A directory with a topic whose segments take a few batches.
fn base() -> MemDisk {
    let disk = MemDisk::new();
    let mut life = Life::open(&disk).unwrap();
    let settings = vec![("segment.bytes".to_owned(), "400".to_owned())];
    life.ask(Request::CreateTopic { name: "t".to_owned(), topic_id: TOPIC, partitions: 1, settings });
    while life.turn(&mut [], true) && life.job.is_some() {}
    life.broker.close().unwrap();
    disk
}

/// Goes on after a crash: what was acknowledged is there, and in the end everything is, once and in order.
fn go_on(disk: &MemDisk, clients: &[Client], what: &str) {
    let mut clients = clients.to_vec();
    let mut life = Life::open(disk).unwrap_or_else(|| panic!("{what}: cannot be opened"));
    for (who, numbers) in life.numbers().iter().enumerate() {
        let in_order: Vec<i32> = (0..numbers.len() as i32).collect();
        assert_eq!(*numbers, in_order, "{what}: client {who} after the start");
        assert!(numbers.len() as i32 >= clients[who].acknowledged, "{what}: client {who} lost some");
    }
    life.work(&mut clients, 200);
    for (who, numbers) in life.numbers().iter().enumerate() {
        let all: Vec<i32> = (0..BATCHES).collect();
        assert_eq!(*numbers, all, "{what}: client {who} in the end");
    }
}

#[test]
fn retries_over_power_cuts_leave_no_duplicate_and_no_gap() {
    let base = base();
    let whole = base.image();
    let before = whole.operations();
    let mut clients = vec![Client::default(); CLIENTS];
    Life::open(&whole).unwrap().work(&mut clients, 200);
    let operations = whole.operations() - before;
    assert!(operations > 60 && clients.iter().all(|client| client.acknowledged == BATCHES));
    for point in 0..operations {
        let disk = base.image();
        disk.cut_power_after(point);
        let mut clients = vec![Client::default(); CLIENTS];
        if let Some(mut life) = Life::open(&disk) {
            life.work(&mut clients, 200);
        }
        for (number, image) in disk.survivors(8, point).iter().enumerate() {
            go_on(image, &clients, &format!("power cut after operation {point}, image {number}"));
        }
    }
}

#[test]
fn retries_over_kills_leave_no_duplicate_and_no_gap() {
    let base = base();
    for steps in 0..40 {
        let disk = base.image();
        let mut clients = vec![Client::default(); CLIENTS];
        // Killed three times after so many steps; the page cache stays.
        for _ in 0..3 {
            Life::open(&disk).unwrap().work(&mut clients, steps);
        }
        go_on(&disk, &clients, &format!("killed after {steps} steps"));
    }
}
