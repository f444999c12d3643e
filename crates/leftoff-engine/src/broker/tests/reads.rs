//! Fetch as Kafka counts, offsets by time, ends of leader epochs.

use std::path::Path;
use std::sync::Arc;

use leftoff_wire::Offset;

use super::rig::{Rig, partition};
use crate::broker::{FetchPartition, Request, State};
use crate::disk::mem::MemDisk;
use crate::disk::{Disk, OpenHow};

/// One record of a byte a batch: so many bytes each.
const BATCH: u64 = 69;

/// Partitions with 3, 2 and 0 events, and one with a larger one.
fn rig() -> Rig {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut rig = Rig::with_topic(&disk, 4, &[("segment.bytes", "150")]);
    for (number, value) in [(0, "a"), (0, "b"), (0, "c"), (1, "d"), (1, "e"), (3, "ffffffffffffffffffff")] {
        rig.append(number, &[value]).unwrap();
    }
    rig
}

/// Asks `PARTITION@OFFSET` (`:MAX`, `^EPOCH`) and tells the bytes of each answer, or its error code.
fn fetch(state: &State, asked: &str, max_bytes: u64) -> String {
    let asked: Vec<FetchPartition> = asked
        .split(' ')
        .map(|asked| {
            let (asked, epoch) = asked.split_once('^').unwrap_or((asked, "-1"));
            let (asked, max_bytes) = asked.split_once(':').unwrap_or((asked, "1000"));
            let (number, offset) = asked.split_once('@').unwrap();
            FetchPartition {
                partition: partition(number.parse().unwrap()),
                offset: offset.parse().unwrap(),
                leader_epoch: epoch.parse().unwrap(),
                max_bytes: max_bytes.parse().unwrap(),
            }
        })
        .collect();
    let answer = state.fetch(&asked, max_bytes);
    let mut sum = 0;
    let words: Vec<String> = answer
        .partitions
        .iter()
        .map(|fetched| match fetched {
            Ok(fetched) => {
                let bytes: u64 = fetched.ranges.iter().map(|range| range.len_bytes).sum();
                sum += bytes;
                assert_eq!(bytes % BATCH * u64::from(bytes != 88), 0, "whole batches");
                bytes.to_string()
            }
            Err(refusal) => format!("!{}", refusal.error_code()),
        })
        .collect();
    assert_eq!(sum, answer.bytes);
    let has_error = words.iter().any(|word| word.starts_with('!'));
    assert!(answer.is_ready(sum) && answer.is_ready(sum + 1) == has_error);
    words.join(" ")
}

#[test]
fn a_fetch_is_counted_as_kafka_counts() {
    let rig = rig();
    let state = rig.broker.state();
    for (asked, max_bytes, expect) in [
        ("0@0", 1000, "207"),
        ("0@0 1@0", 1000, "207 138"),
        ("1@0 0@0", 1000, "138 207"),
        ("0@0:138 1@0", 1000, "138 138"),
        ("0@0:137 1@0:69", 1000, "69 69"),
        ("0@0 1@0", 210, "207 0"),
        ("0@0 1@0", 276, "207 69"),
        // The first batch is whole whatever its size, and only the first one.
        ("0@0 1@0", 1, "69 0"),
        ("0@0 1@0", 0, "69 0"),
        ("0@0:1 1@0:1", 1000, "69 0"),
        ("2@0 0@3 1@1:1 0@0:1", 1000, "0 0 69 0"),
        ("0@0:69 3@0", 140, "69 0"),
        ("3@0 0@0", 10, "88 0"),
        ("0@2 1@1", 1000, "69 69"),
        // Outside of the log, and what is not there.
        ("0@3 0@4 0@-1 1@0", 1000, "0 !1 !1 138"),
        ("7@0 1@0", 1000, "!3 138"),
        ("0@0^0 0@0^1", 1000, "207 !75"),
    ] {
        assert_eq!(fetch(state, asked, max_bytes), expect, "{asked} {max_bytes}");
    }
}

#[test]
fn offsets_are_found_by_time_and_by_name() {
    let mut rig = rig();
    rig.ask(Request::Trim { partition: partition(0), before: Offset::new(1).unwrap() }).unwrap();
    let state = rig.broker.state();
    // Every record of the rig has the time 1000.
    for (number, time, expect) in [
        (0, -1, (3, -1, 0)),
        (0, -2, (1, -1, 0)),
        (0, -4, (1, -1, 0)),
        (0, -3, (1, 1_000, 0)),
        (0, 0, (1, 1_000, 0)),
        (0, 1_000, (1, 1_000, 0)),
        (0, 1_001, (-1, -1, -1)),
        (0, -5, (-1, -1, -1)),
        (2, -1, (0, -1, -1)),
        (2, -3, (-1, -1, -1)),
    ] {
        let listed = state.list_offset(&partition(number), time, -1).unwrap();
        assert_eq!((listed.offset, listed.timestamp_ms, listed.leader_epoch), expect, "{number} {time}");
    }
    assert_eq!(state.list_offset(&partition(9), -1, -1).unwrap_err().error_code(), 3);
    assert_eq!(state.list_offset(&partition(0), -1, 4).unwrap_err().error_code(), 75);
    for (asked, expect) in [(-1, Ok(3)), (0, Ok(0)), (3, Ok(3)), (4, Err(1)), (-2, Err(1))] {
        let before = state.delete_before(&partition(0), asked);
        let before = before.map(Offset::get).map_err(|refusal| refusal.error_code());
        assert_eq!(before, expect, "{asked}");
    }
    assert_eq!(state.size_bytes(&partition(1)).unwrap(), 2 * BATCH);
}

#[test]
fn leader_epochs_end_where_a_recovery_cut() {
    let mut rig = rig();
    let disk = rig.disk.clone();
    // Killed with half a batch at the end of a log: the next start cuts it, and begins an epoch.
    drop(rig);
    let path = Path::new("t-1/00000000000000000000.log");
    let file = disk.open(path, OpenHow::Write).unwrap();
    file.write_all_at(b"half a batch", 2 * BATCH).unwrap();
    rig = Rig::open(&disk).unwrap();
    assert_eq!(rig.broker.state().metadata().leader_epoch(), 1);
    rig.append(0, &["g"]).unwrap();
    let state = rig.broker.state();
    for (number, epoch, expect) in [
        (0, 0, Some((0, 3))),
        (0, 1, Some((1, 4))),
        (0, 2, None),
        (0, -1, None),
        // Nothing of the new epoch is in this one yet.
        (1, 0, Some((0, 2))),
        (1, 1, Some((1, 2))),
    ] {
        let end = state.epoch_end(&partition(number), epoch, -1).unwrap();
        assert_eq!(end.map(|(epoch, end)| (epoch, end.get())), expect, "{number} {epoch}");
    }
    assert_eq!(state.list_offset(&partition(0), -2, 1).unwrap().leader_epoch, 0);
    assert_eq!(state.list_offset(&partition(0), -1, 1).unwrap().leader_epoch, 1);
    assert_eq!(fetch(state, "0@0^0 0@0^1 0@0^2", 1_000), "!74 276 !75");
}
