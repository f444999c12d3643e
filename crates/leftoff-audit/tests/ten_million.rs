//! Ten million events in at most 64 MiB plus temporary files. Takes a while, so it runs when it is asked for:
//! `cargo test --release -p leftoff-audit --test ten_million -- --ignored --test-threads 1`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use leftoff_audit::{
    Effect, Evidence, Limits, LogEntry, LogEvent, Outcome, OutcomeKind, PartitionFacts, Question, Seen,
    SourceError, Stream, audit,
};

const PARTITIONS: u32 = 4;
const PER_PARTITION: i64 = 2_500_000;
const MEMORY_KIB: u64 = 64 << 10;

/// Every 1,000th event is lost, every 1,000th handled twice; every 10th has only an outcome, in a range of its own.
struct Made {
    by_id: bool,
}

/// Mixes the offset, so that hashes and ids come in no order.
fn id(partition: u32, offset: i64) -> String {
    format!("{:016x}-{partition}", (offset as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

fn places() -> impl Iterator<Item = (u32, i64)> {
    (0..PER_PARTITION).flat_map(|offset| (0..PARTITIONS).map(move |partition| (partition, offset)))
}

fn has_outcome(offset: i64) -> bool {
    offset % 10 == 3
}

impl Evidence for Made {
    fn log(&mut self) -> Result<Stream<'_, LogEntry>, SourceError> {
        let event = |(partition, offset)| {
            Ok(LogEntry::Event(LogEvent { partition, offset, id: Some(id(partition, offset)) }))
        };
        Ok(Box::new(places().map(event)))
    }

    fn effects(&mut self) -> Result<Stream<'_, Seen<Effect>>, SourceError> {
        let by_id = self.by_id;
        let handled = places().filter(|(_, offset)| offset % 1_000 != 5 && !has_outcome(*offset));
        let twice = places().filter(|(_, offset)| offset % 1_000 == 7);
        let effect = move |(partition, offset)| {
            Ok(Seen::Item(match by_id {
                true => Effect::ById(id(partition, offset)),
                false => Effect::ByPlace { partition, offset, n: 0 },
            }))
        };
        Ok(Box::new(handled.chain(twice).map(effect)))
    }

    fn outcomes(&mut self) -> Result<Stream<'_, Seen<Outcome>>, SourceError> {
        let outcome = |(partition, offset)| {
            Ok(Seen::Item(Outcome { partition, from: offset, to: offset, kind: OutcomeKind::Filtered }))
        };
        Ok(Box::new(places().filter(|(_, offset)| has_outcome(*offset)).map(outcome)))
    }
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

fn check(by_id: bool) {
    let facts: Vec<PartitionFacts> = (0..PARTITIONS)
        .map(|partition| PartitionFacts {
            partition,
            log_start: 0,
            end: PER_PARTITION,
            saved_next: Some(PER_PARTITION),
        })
        .collect();
    let question = Question { topic: "t", partitions: &facts };
    let verdict = audit(&question, &Limits::default(), &mut Made { by_id }).unwrap();
    let thousandth = PARTITIONS as u64 * PER_PARTITION as u64 / 1_000;
    assert_eq!(verdict.events, PARTITIONS as u64 * PER_PARTITION as u64);
    assert_eq!(verdict.lost.count, thousandth);
    assert_eq!(verdict.handled_twice.count, thousandth);
    assert_eq!(verdict.filtered.count, thousandth * 100);
    assert_eq!(verdict.out_of_order.count, 0);
    let peak = peak_kib();
    assert!(peak <= MEMORY_KIB, "{peak} KiB");
    println!("by id: {by_id}, peak {peak} KiB");
}

#[test]
#[ignore = "takes a while; see the head of the file"]
fn ten_million_by_place() {
    check(false);
}

#[test]
#[ignore = "takes a while; see the head of the file"]
fn ten_million_by_id() {
    check(true);
}
