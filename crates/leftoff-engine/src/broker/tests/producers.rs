//! Idempotent producers: what is taken, what is a repeat, what is refused; and all of it again after a start.

use std::path::Path;
use std::sync::Arc;

use leftoff_wire::record_batch::BatchBuilder;
use proptest::prelude::*;

use super::rig::{Rig, TOPIC, contents, partition};
use crate::broker::{
    BrokerConfig, Incoming, Input, Output, PRODUCERS_FILE, ProduceRules, Produced, RESERVED_PRODUCER_ID,
    Refusal, Reply, Request, RequestId, SequenceError, Settings,
};
use crate::disk::Disk;
use crate::disk::mem::MemDisk;
use crate::types::Timestamp;

fn numbered(id: i64, epoch: i16, sequence: i32, count: usize) -> Incoming {
    let mut batch = BatchBuilder::default();
    batch.producer(id, epoch, sequence);
    for _ in 0..count {
        batch.push(1_000, None, Some(b"v"), &[]);
    }
    let rules = ProduceRules::of(&Settings::default());
    Incoming::check(batch.build().unwrap(), &rules, Timestamp::from_ms(0)).unwrap()
}

fn word(went: &Result<Produced, Refusal>) -> String {
    match went {
        Ok(Produced { base, is_duplicate: false, .. }) => format!("at {base}"),
        Ok(Produced { base, is_duplicate: true, .. }) => format!("again {base}"),
        Err(Refusal::Sequence(SequenceError::OutOfOrder { expected, .. })) => format!("wants {expected}"),
        Err(Refusal::Sequence(SequenceError::StaleEpoch { current, .. })) => format!("stale, {current}"),
        Err(other) => other.to_string(),
    }
}

fn produce(rig: &mut Rig, batches: Incoming) -> String {
    let produces = vec![(partition(0), batches)];
    match rig.ask(Request::Produce { produces }).unwrap() {
        Reply::Produced(went) => word(&went[0]),
        other => panic!("{other:?}"),
    }
}

fn producer_id(rig: &mut Rig) -> i64 {
    match rig.ask(Request::InitProducerId).unwrap() {
        Reply::ProducerId(id) => id,
        other => panic!("{other:?}"),
    }
}

#[derive(Debug, Clone, Copy)]
enum Start {
    /// The state is that of the running broker.
    None,
    /// Closed and opened before each batch, with a snapshot.
    WithSnapshot,
    /// The same, and the snapshot is gone.
    FromLog,
}

fn again(rig: Rig, start: Start) -> Rig {
    let disk = rig.disk.clone();
    match start {
        Start::None => return rig,
        Start::WithSnapshot => rig.close(),
        Start::FromLog => {
            rig.close();
            if disk.metadata(Path::new(PRODUCERS_FILE)).unwrap().is_some() {
                disk.remove_file(Path::new(PRODUCERS_FILE)).unwrap();
            }
        }
    }
    Rig::open_with(&disk, eager()).unwrap()
}

fn eager() -> BrokerConfig {
    BrokerConfig { producers_every_bytes: 1, producers_at_stop_bytes: 1, ..BrokerConfig::default() }
}

/// `ID.EPOCH SEQUENCE+COUNT -> WHAT`, one after the other; each line also right after a start.
fn check(lines: &[&str]) {
    for start in [Start::None, Start::WithSnapshot, Start::FromLog] {
        let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
        let mut rig = Rig::with_topic(&disk, 1, &[("segment.bytes", "300")]);
        producer_id(&mut rig);
        for line in lines {
            let (batch, expect) = line.split_once(" -> ").unwrap();
            let (who, what) = batch.split_once(' ').unwrap();
            let (id, epoch) = who.split_once('.').unwrap();
            let (sequence, count) = what.split_once('+').unwrap();
            rig = again(rig, start);
            let batches = numbered(
                id.parse().unwrap(),
                epoch.parse().unwrap(),
                sequence.parse().unwrap(),
                count.parse().unwrap(),
            );
            assert_eq!(produce(&mut rig, batches), expect, "{line}, {start:?}");
        }
    }
}

#[test]
fn sequences_are_kept_as_kafka_keeps_them() {
    check(&["7.0 0+2 -> at 0", "7.0 2+1 -> at 2", "7.0 3+1 -> at 3"]);
    // Repeats of the last five are answered with the first answer; older ones cannot be told from a mistake.
    check(&[
        "7.0 0+1 -> at 0",
        "7.0 1+1 -> at 1",
        "7.0 2+1 -> at 2",
        "7.0 3+1 -> at 3",
        "7.0 4+1 -> at 4",
        "7.0 5+2 -> at 5",
        "7.0 5+2 -> again 5",
        "7.0 1+1 -> again 1",
        "7.0 0+1 -> wants 7",
        "7.0 5+1 -> wants 7",
    ]);
    check(&["7.0 0+2 -> at 0", "7.0 3+1 -> wants 2", "7.0 1+1 -> wants 2", "7.0 2+1 -> at 2"]);
    // Whoever is not known may begin anywhere.
    check(&["7.0 40+2 -> at 0", "8.3 9+1 -> at 2", "7.0 42+1 -> at 3", "8.3 9+1 -> again 2"]);
    // A new epoch begins at 0, and ends the one before.
    check(&[
        "7.0 0+2 -> at 0",
        "7.1 2+1 -> wants 0",
        "7.1 0+1 -> at 2",
        "7.0 2+1 -> stale, 1",
        "7.0 0+2 -> stale, 1",
        "7.1 0+1 -> again 2",
        "7.1 1+1 -> at 3",
    ]);
    // After the greatest number comes 0, also within a batch.
    check(&["7.0 2147483646+2 -> at 0", "7.0 0+1 -> at 2", "7.0 2147483646+2 -> again 0"]);
    check(&["7.0 2147483646+4 -> at 0", "7.0 1+1 -> wants 2", "7.0 2+1 -> at 4"]);
}

#[test]
fn each_partition_succeeds_or_fails_by_itself() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut rig = Rig::with_topic(&disk, 2, &[("max.message.bytes", "200")]);
    let id = producer_id(&mut rig);
    let produces = vec![
        (partition(0), numbered(id, 0, 0, 1)),
        (partition(5), numbered(id, 0, 0, 1)),
        (partition(1), numbered(id, 0, 0, 60)),
        (partition(1), numbered(RESERVED_PRODUCER_ID, 0, 0, 1)),
        (partition(1), numbered(id, 0, 0, 2)),
        (partition(0), numbered(id, 0, 0, 1)),
    ];
    let Reply::Produced(went) = rig.ask(Request::Produce { produces }).unwrap() else { panic!() };
    let words: Vec<String> = went.iter().map(word).collect();
    assert_eq!(words[0], "at 0");
    assert!(words[1].starts_with("no partition"), "{words:?}");
    assert!(words[2].contains("max.message.bytes"), "{words:?}");
    assert!(words[3].contains("belong to commit sets"), "{words:?}");
    assert_eq!(words[4..], ["at 0", "again 0"]);
    assert_eq!(contents(rig.broker.state(), 1), ["0=v", "1=v"]);
    // Plain appends are all or nothing, so they have no numbers that could be told twice.
    let refused = rig.ask(Request::Append { appends: vec![(partition(0), numbered(id, 0, 1, 1).batches)] });
    assert!(matches!(refused, Err(Refusal::ProducerId { .. })), "{refused:?}");
}

/// A repeat is answered when the batch that it repeats is on disk: whichever sync that is.
#[test]
fn a_repeat_waits_for_what_it_repeats() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut rig = Rig::with_topic(&disk, 1, &[]);
    let id = producer_id(&mut rig);
    let now = Timestamp::from_ms(9_000);
    let mut ask = |number: u64| {
        let produces = vec![(partition(0), numbered(id, 0, 0, 1))];
        let request = Request::Produce { produces };
        rig.broker.handle(now, Input::Request { id: RequestId(number), request });
        std::iter::from_fn(|| rig.broker.poll_output()).collect::<Vec<_>>()
    };
    let mut first = ask(901);
    let Some(Output::Sync(job)) = first.pop() else { panic!("{first:?}") };
    assert!(first.is_empty());
    assert!(ask(902).is_empty(), "nothing is answered before the sync, and no other one is wanted");
    rig.broker.handle(now, Input::Synced { round: job.round, result: job.run(&*disk) });
    let replies: Vec<_> = std::iter::from_fn(|| rig.broker.poll_output()).collect();
    let [Output::Reply { id: one, .. }, Output::Reply { id: two, reply: Reply::Produced(went) }] =
        &replies[..]
    else {
        panic!("{replies:?}")
    };
    assert_eq!((one.0, two.0, word(&went[0]).as_str()), (901, 902, "again 0"));
}

#[test]
fn ids_are_given_out_once() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut rig = Rig::with_topic(&disk, 1, &[]);
    let mut given = Vec::new();
    for round in 0..3 {
        for _ in 0..1_001 {
            given.push(producer_id(&mut rig));
        }
        if round == 1 {
            rig.close();
        }
        rig = Rig::open(&disk).unwrap();
    }
    let count = given.len();
    given.sort_unstable();
    given.dedup();
    assert_eq!(given.len(), count);
}

#[test]
fn whoever_is_silent_for_long_is_forgotten() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut rig = Rig::with_topic(&disk, 1, &[]);
    let id = producer_id(&mut rig);
    assert_eq!(produce(&mut rig, numbered(id, 0, 0, 1)), "at 0");
    let day = 24 * 3_600 * 1_000;
    rig.broker.handle_deadline(Timestamp::from_ms(day - 1_000));
    assert_eq!(produce(&mut rig, numbered(id, 0, 0, 1)), "again 0");
    rig.broker.handle_deadline(Timestamp::from_ms(2 * day));
    assert_eq!(produce(&mut rig, numbered(id, 0, 0, 1)), "at 1", "it is taken for a new one");
}

#[test]
fn a_damaged_snapshot_costs_time_only() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut rig = Rig::with_topic(&disk, 1, &[]);
    let id = producer_id(&mut rig);
    assert_eq!(produce(&mut rig, numbered(id, 0, 0, 3)), "at 0");
    rig = again(rig, Start::WithSnapshot);
    let path = Path::new(PRODUCERS_FILE);
    let len = disk.metadata(path).unwrap().unwrap().len_bytes;
    let file = disk.open(path, crate::disk::OpenHow::Write).unwrap();
    for position in 0..len {
        let mut byte = [0];
        file.read_at(&mut byte, position).unwrap();
        file.write_all_at(&[byte[0] ^ 1], position).unwrap();
        rig = Rig::open(&disk).unwrap();
        assert_eq!(produce(&mut rig, numbered(id, 0, 0, 3)), "again 0", "byte {position}");
        file.write_all_at(&byte, position).unwrap();
    }
    drop(rig);
}

#[test]
fn a_deleted_topic_takes_its_producers_along() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut rig = Rig::with_topic(&disk, 1, &[]);
    let id = producer_id(&mut rig);
    assert_eq!(produce(&mut rig, numbered(id, 0, 0, 3)), "at 0");
    rig.ask(Request::Trim { partition: partition(0), before: leftoff_wire::Offset::new(3).unwrap() })
        .unwrap();
    assert_eq!(produce(&mut rig, numbered(id, 0, 0, 3)), "again 0", "what is deleted is still a repeat");
    rig.ask(Request::DeleteTopic { name: "t".to_owned() }).unwrap();
    let topic_id = leftoff_wire::Uuid::from_bytes([8; 16]);
    assert_ne!(topic_id, TOPIC);
    let (name, settings) = ("t".to_owned(), Vec::new());
    rig.ask(Request::CreateTopic { name, topic_id, partitions: 1, settings }).unwrap();
    let at = crate::broker::PartitionId { topic_id, partition: 0 };
    let Reply::Produced(went) =
        rig.ask(Request::Produce { produces: vec![(at, numbered(id, 0, 0, 3))] }).unwrap()
    else {
        panic!()
    };
    assert_eq!(word(&went[0]), "at 0");
    rig = again(rig, Start::WithSnapshot);
    assert!(rig.broker.state().topic("t").is_some());
}

/// A model of two producers: what is in the log is each one's numbers in order, whatever is sent, with starts between.
#[derive(Debug, Clone, Copy)]
enum Sent {
    Next {
        who: usize,
        count: usize,
    },
    /// One of the last five again.
    Repeat {
        who: usize,
        back: usize,
    },
    TooFar {
        who: usize,
    },
    Start(bool),
}

fn sent() -> impl Strategy<Value = Sent> {
    prop_oneof![
        4 => (0..2usize, 1..4usize).prop_map(|(who, count)| Sent::Next { who, count }),
        3 => (0..2usize, 0..5usize).prop_map(|(who, back)| Sent::Repeat { who, back }),
        1 => (0..2usize).prop_map(|who| Sent::TooFar { who }),
        1 => any::<bool>().prop_map(Sent::Start),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_model_agrees(steps in proptest::collection::vec(sent(), 1..40)) {
        let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
        let mut rig = Rig::with_topic(&disk, 1, &[("segment.bytes", "400")]);
        let ids = [producer_id(&mut rig), producer_id(&mut rig)];
        // For each producer: the sequence, count and offset of what it sent; and where the log ends.
        let mut told: [Vec<(i32, usize, i64)>; 2] = [Vec::new(), Vec::new()];
        let mut end = 0;
        for step in steps {
            match step {
                Sent::Next { who, count } => {
                    let next = told[who].last().map_or(0, |(at, count, _)| at + *count as i32);
                    let got = produce(&mut rig, numbered(ids[who], 0, next, count));
                    prop_assert_eq!(got, format!("at {end}"));
                    told[who].push((next, count, end));
                    end += count as i64;
                }
                Sent::Repeat { who, back } => {
                    if let Some((at, count, base)) = told[who].iter().rev().nth(back).copied() {
                        let got = produce(&mut rig, numbered(ids[who], 0, at, count));
                        prop_assert_eq!(got, format!("again {base}"));
                    }
                }
                Sent::TooFar { who } => {
                    if let Some((at, count, _)) = told[who].last().copied() {
                        let next = at + count as i32;
                        let got = produce(&mut rig, numbered(ids[who], 0, next + 1, 1));
                        prop_assert_eq!(got, format!("wants {next}"));
                    }
                }
                Sent::Start(true) => rig = again(rig, Start::WithSnapshot),
                Sent::Start(false) => rig = again(rig, Start::FromLog),
            }
        }
        prop_assert_eq!(contents(rig.broker.state(), 0).len() as i64, end);
    }
}
