//! Tests of the log, on a disk in memory. Each file of `tests/` is about one thing.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use leftoff_wire::record_batch::{Attributes, BatchBuilder, BatchHeader, Batches};
use leftoff_wire::{Offset, Uuid};

use super::*;
use crate::disk::mem::MemDisk;

mod damage;
mod faults;
mod indexes;
mod model;
mod recovery;
mod time;

const ID: Uuid = Uuid::from_bytes([7; 16]);
const EPOCH: i32 = 0;
const SMALL: LogConfig = LogConfig { segment_bytes: 600, index_interval_bytes: 100 };

fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

fn dir() -> PathBuf {
    PathBuf::from("t-0")
}

fn segment_path(base: i64, kind: &str) -> PathBuf {
    segment::path(&dir(), at(base), kind)
}

/// Kafka's numbers of codecs.
const PLAIN: i16 = 0;
const GZIP: i16 = 1;
const LZ4: i16 = 3;

/// One batch with a record for each timestamp.
fn batch_of(codec: i16, timestamps: &[i64]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Attributes::from_bits(codec).unwrap().compression());
    for timestamp in timestamps {
        builder.push(*timestamp, None, Some(format!("event at {timestamp:>6}").as_bytes()), &[]);
    }
    builder.build().unwrap()
}

fn batch(timestamps: &[i64]) -> Batches {
    Batches::parse(batch_of(PLAIN, timestamps)).unwrap()
}

fn create(disk: &Arc<dyn Disk>, config: LogConfig) -> Log {
    let log = Log::create(disk, &dir(), ID, config).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    log
}

fn reopen(disk: &Arc<dyn Disk>, config: LogConfig, mark: Mark) -> Log {
    Log::open(disk, &dir(), ID, config, mark, Offset::ZERO, Access::Writer).unwrap()
}

/// What the broker does after a round.
fn sync(disk: &Arc<dyn Disk>, log: &mut Log) -> Mark {
    let mark = log.end_mark();
    let dirty = log.take_dirty();
    disk.sync(&dirty.files, &dirty.dirs).unwrap();
    log.publish(mark);
    mark
}

/// A synced log of `count` batches of two records each; record `n` has timestamp `n`.
fn filled(disk: &Arc<dyn Disk>, config: LogConfig, count: i64) -> Log {
    let mut log = create(disk, config);
    for number in 0..count {
        log.append(batch(&[2 * number, 2 * number + 1]), EPOCH).unwrap();
    }
    sync(disk, &mut log);
    log
}

/// Everything that can be read from `from` on, as ranges of offsets.
fn read(log: &Log, from: i64) -> Vec<String> {
    log.read_batches(at(from))
        .map(|read| match read.unwrap() {
            ReadBatch::Batch { header, bytes } => {
                assert_eq!(bytes.len(), header.size_bytes());
                format!("{}..{}", header.base_offset, header.next_offset())
            }
            ReadBatch::Damaged(damaged) => format!("damaged {}..{}", damaged.from, damaged.to),
            ReadBatch::Gap { from, to } => format!("gap {from}..{to}"),
        })
        .collect()
}

/// `2..4` and so on: batches of two.
fn pairs(range: std::ops::Range<i64>) -> Vec<String> {
    range.step_by(2).map(|base| format!("{base}..{}", base + 2)).collect()
}

fn content(disk: &Arc<dyn Disk>, path: &Path) -> Vec<u8> {
    let file = disk.open(path, OpenHow::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

fn replace(disk: &Arc<dyn Disk>, path: &Path, bytes: &[u8]) {
    disk.open(path, OpenHow::CreateOrTruncate).unwrap().write_all_at(bytes, 0).unwrap();
}

fn mem() -> Arc<dyn Disk> {
    Arc::new(MemDisk::new())
}

/// All bytes that a fetch gives, and the headers in them.
fn fetched(log: &Log, offset: i64, max_bytes: u64) -> (Vec<BatchHeader>, Vec<u8>) {
    let mut bytes = Vec::new();
    for range in log.fetch(at(offset), max_bytes).unwrap().ranges {
        let mut part = vec![0; range.len_bytes as usize];
        assert_eq!(range.file.read_at(&mut part, range.position_bytes).unwrap(), part.len());
        bytes.extend(part);
    }
    let headers = match bytes.is_empty() {
        true => Vec::new(),
        false => Batches::parse(bytes.clone()).unwrap().headers().map(|(_, header)| header).collect(),
    };
    (headers, bytes)
}

#[test]
fn appended_records_can_be_read_once_they_are_synced() {
    let disk = mem();
    let mut log = create(&disk, SMALL);
    let appended = log.append(batch(&[1, 2, 3]), EPOCH).unwrap();
    assert_eq!((appended.base, appended.next, appended.rolled), (at(0), at(3), None));
    assert_eq!((log.end(), log.high_watermark()), (at(3), at(0)));
    assert!(log.fetch(at(0), 1000).unwrap().ranges.is_empty());
    assert!(matches!(log.fetch(at(1), 1000), Err(LogError::OutOfRange { .. })));
    let mark = sync(&disk, &mut log);
    assert_eq!((mark.end, mark.position_bytes), (at(3), log.bytes().unwrap()));
    assert_eq!(read(&log, 0), ["0..3"]);
    assert_eq!(read(&log, 1), ["0..3"]); // The whole batch: OF-063.
    assert!(read(&log, 3).is_empty());
}

#[test]
fn a_folder_holds_what_kafka_has_there() {
    let disk = mem();
    let mut log = create(&disk, SMALL);
    log.append(batch(&[1]), 3).unwrap();
    let names: Vec<_> = disk.list(&dir()).unwrap().into_iter().map(|entry| entry.name).collect();
    let base = "00000000000000000000";
    let expect = [
        format!("{base}.index"),
        format!("{base}.log"),
        format!("{base}.timeindex"),
        "leader-epoch-checkpoint".into(),
        "partition.metadata".into(),
    ];
    assert_eq!(names, expect);
    assert_eq!(content(&disk, &dir().join("leader-epoch-checkpoint")), b"0\n1\n3 0\n");
    let metadata = format!("version: 0\ntopic_id: {ID}\n");
    assert_eq!(content(&disk, &dir().join("partition.metadata")), metadata.as_bytes());
}

#[test]
fn segments_roll_before_they_grow_too_large() {
    let disk = mem();
    let log = filled(&disk, SMALL, 20);
    let segments = log.segments().unwrap();
    assert!(segments.len() > 2);
    assert!(segments.iter().all(|segment| segment.bytes <= 600));
    assert!(segments.windows(2).all(|pair| pair[0].next == pair[1].base));
    assert_eq!(read(&log, 0), pairs(0..40));
    let reopened = reopen(&disk, SMALL, log.high_mark());
    assert_eq!(reopened.segments().unwrap(), segments);
    assert_eq!(read(&reopened, 7), pairs(6..40));
}

#[test]
fn a_batch_larger_than_a_segment_gets_one_of_its_own() {
    let disk = mem();
    let mut log = create(&disk, LogConfig { segment_bytes: 1, ..SMALL });
    for _ in 0..3 {
        log.append(batch(&[1, 2]), EPOCH).unwrap();
    }
    sync(&disk, &mut log);
    assert_eq!(log.segments().unwrap().len(), 3);
    assert_eq!(read(&log, 0), pairs(0..6));
}

#[test]
fn fetch_gives_whole_batches_within_the_limit_and_the_first_whatever_its_size() {
    let disk = mem();
    let log = filled(&disk, SMALL, 30);
    let size = batch(&[2, 3]).size_bytes() as u64;
    for offset in 0..60 {
        for batches in [0, 1, 2, 3, 5, 8, 100] {
            for extra in [0, 1, size - 1] {
                let (headers, bytes) = fetched(&log, offset, batches * size + extra);
                assert_eq!(headers[0].base_offset.get(), offset - offset % 2);
                assert!(headers.windows(2).all(|pair| pair[0].next_offset() == pair[1].base_offset));
                assert_eq!(bytes.len() as u64, headers.len() as u64 * size);
                let left = (60 - headers[0].base_offset.get()) / 2;
                assert_eq!(headers.len() as u64, batches.clamp(1, left as u64), "{offset} {batches} {extra}");
            }
        }
    }
}

#[test]
fn the_log_start_may_lie_within_a_batch() {
    let disk = mem();
    let mut log = create(&disk, SMALL);
    log.append(batch(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), EPOCH).unwrap();
    let mark = sync(&disk, &mut log);
    log.advance_log_start(at(5));
    let again = Log::open(&disk, &dir(), ID, SMALL, mark, at(5), Access::Writer).unwrap();
    for log in [log, again] {
        assert_eq!(log.log_start(), at(5));
        assert_eq!(fetched(&log, 5, 1).0[0].base_offset, at(0)); // OF-066
        let refused = log.fetch(at(4), 1);
        assert!(matches!(refused, Err(LogError::OutOfRange { log_start, .. }) if log_start == at(5)));
    }
}

#[test]
fn segments_below_the_log_start_go_and_stay_readable_to_who_has_them() {
    let disk = mem();
    let mut log = filled(&disk, SMALL, 20);
    let segments = log.segments().unwrap();
    let (first, third) = (segments[0], segments[2]);
    let range = log.fetch(at(0), 1).unwrap().ranges.remove(0);
    log.advance_log_start(third.base.next());
    let removed = log.take_removable();
    assert_eq!(removed.iter().map(|removed| removed.base).collect::<Vec<_>>(), [first.base, first.next]);
    assert!(log.take_removable().is_empty());
    removed.iter().for_each(|removed| removed.unlink(&disk).unwrap());
    assert_eq!(disk.metadata(&segment_path(0, "log")).unwrap(), None);
    let mut bytes = vec![0; range.len_bytes as usize];
    assert_eq!(range.file.read_at(&mut bytes, range.position_bytes).unwrap(), bytes.len());
    assert_eq!(read(&log, third.base.get() + 1), pairs(third.base.get()..40));
    // An interrupted retention: the record of the log start is there, and so are the files.
    let log = filled(&mem(), SMALL, 20);
    let mut again =
        Log::open(&log.disk, &dir(), ID, SMALL, log.high_mark(), third.base, Access::Writer).unwrap();
    assert_eq!(again.take_removable().len(), 2);
}

#[test]
fn the_marked_segment_stays_when_all_is_deleted() {
    let disk = mem();
    let mut log = filled(&disk, SMALL, 3);
    log.roll().unwrap();
    log.advance_log_start(at(6));
    assert!(log.take_removable().is_empty());
    sync(&disk, &mut log);
    assert_eq!(log.take_removable().len(), 1);
    assert_eq!(log.append(batch(&[1]), EPOCH).unwrap().base, at(6));
}

#[test]
fn a_reader_beside_a_writer_sees_up_to_its_mark() {
    let disk = mem();
    let mut writer = filled(&disk, SMALL, 10);
    let mark = writer.high_mark();
    for number in 0..20 {
        writer.append(batch(&[number, number]), EPOCH).unwrap();
    }
    sync(&disk, &mut writer);
    let mut reader = Log::open(&disk, &dir(), ID, SMALL, mark, Offset::ZERO, Access::Reader).unwrap();
    assert_eq!(read(&reader, 0), pairs(0..20));
    assert_eq!((reader.tail_bytes(), reader.high_watermark()), (0, at(20)));
    assert!(matches!(reader.append(batch(&[1]), EPOCH), Err(LogError::ReadOnly { .. })));
    assert_eq!(read(&writer, 0), pairs(0..60));
}

#[test]
fn epochs_are_written_before_their_first_batch() {
    let disk = mem();
    let mut log = create(&disk, SMALL);
    log.append(batch(&[1, 2]), 1).unwrap();
    log.append(batch(&[1, 2]), 1).unwrap();
    log.append(batch(&[1, 2]), 4).unwrap();
    let mark = sync(&disk, &mut log);
    for log in [log, reopen(&disk, SMALL, mark)] {
        let ends: Vec<_> = (0..6).map(|epoch| log.epoch_end(epoch).unwrap()).collect();
        let (one, four) = (Some((1, at(4))), Some((4, at(6))));
        assert_eq!(ends, [None, one, one, one, four, four]);
    }
    replace(&disk, &dir().join("leader-epoch-checkpoint"), b"0\n7\n1 0\n");
    assert_eq!(reopen(&disk, SMALL, mark).epoch_end(2).unwrap(), Some((1, at(4))));
}

#[test]
fn undo_takes_back_what_was_appended_over_segments_too() {
    let disk = mem();
    let mut log = filled(&disk, SMALL, 5);
    log.append(batch(&[10, 11]), EPOCH).unwrap();
    let savepoint = log.savepoint();
    for epoch in 1..10 {
        log.append(batch(&[1, 2, 3]), epoch).unwrap();
    }
    assert!(log.segments().unwrap().len() > 2);
    log.undo_to(savepoint).unwrap();
    assert_eq!((log.end(), log.savepoint()), (at(12), savepoint));
    log.append(batch(&[12, 13]), 5).unwrap();
    let mark = sync(&disk, &mut log);
    for log in [log, reopen(&disk, SMALL, mark)] {
        assert_eq!(read(&log, 0), pairs(0..14));
        assert_eq!(log.offset_for_time(12).unwrap(), Some((at(12), 12)));
        assert_eq!(log.epoch_end(4).unwrap(), Some((0, at(12))));
        assert!(log.verify(&mut |finding| panic!("{finding:?}")).is_ok());
    }
}
