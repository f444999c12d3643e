//! Look-ups by time.

use super::*;

fn answers(log: &Log, times: std::ops::RangeInclusive<i64>) -> Vec<Option<i64>> {
    times.map(|time| log.offset_for_time(time).unwrap().map(|(offset, _)| offset.get())).collect()
}

/// Appends each group of timestamps as a batch, and asks for each time from 1 to the number of answers.
fn check(config: LogConfig, codec: i16, batches: &[&[i64]], expect: &[Option<i64>]) {
    let disk = mem();
    let mut log = create(&disk, config);
    for timestamps in batches {
        log.append(Batches::parse(batch_of(codec, timestamps)).unwrap(), EPOCH).unwrap();
    }
    let mark = sync(&disk, &mut log);
    let reader = Log::open(&disk, &dir(), ID, config, mark, Offset::ZERO, Access::Reader).unwrap();
    for log in [reader, log, reopen(&disk, config, mark)] {
        assert_eq!(answers(&log, 1..=expect.len() as i64), expect);
    }
}

const TABLE: [Option<i64>; 9] =
    [Some(0), Some(0), Some(1), Some(1), Some(2), Some(2), Some(3), Some(3), None];

#[test]
fn the_first_record_at_or_after_the_time() {
    // OF-127: times 2, 4, 6, 8.
    for config in [SMALL, LogConfig { segment_bytes: 1, index_interval_bytes: 0 }] {
        check(config, PLAIN, &[&[2, 4, 6, 8]], &TABLE);
        check(config, GZIP, &[&[2, 4], &[6, 8]], &TABLE);
        check(config, PLAIN, &[&[2], &[4], &[6], &[8]], &TABLE);
    }
}

#[test]
fn unordered_times_give_the_first_in_offset_order() {
    let expect = [Some(0), Some(0), Some(0), Some(0), Some(0), Some(2), Some(2), Some(2), Some(2), None];
    for config in [SMALL, LogConfig { segment_bytes: 1, index_interval_bytes: 0 }] {
        check(config, PLAIN, &[&[5], &[1], &[9], &[2], &[3]], &expect);
        check(config, LZ4, &[&[5, 1], &[9, 2, 3]], &expect);
    }
}

#[test]
fn only_what_may_be_read_is_found() {
    let disk = mem();
    let mut log = filled(&disk, SMALL, 3);
    log.append(batch(&[100]), EPOCH).unwrap();
    assert_eq!(log.offset_for_time(6).unwrap(), None);
    log.advance_log_start(at(3));
    assert_eq!(log.offset_for_time(0).unwrap(), Some((at(3), 3)));
    assert_eq!(log.max_timestamp().unwrap(), Some((at(5), 5)));
    sync(&disk, &mut log);
    assert_eq!(log.offset_for_time(6).unwrap(), Some((at(6), 100)));
    assert_eq!(log.max_timestamp().unwrap(), Some((at(6), 100)));
}

#[test]
fn an_empty_log_has_no_time() {
    let log = create(&mem(), SMALL);
    assert_eq!((log.offset_for_time(0).unwrap(), log.max_timestamp().unwrap()), (None, None));
}

#[test]
fn the_greatest_timestamp_is_that_of_its_first_record() {
    let disk = mem();
    let mut log = create(&disk, LogConfig { segment_bytes: 1, ..SMALL });
    for timestamps in [&[3, 9][..], &[9, 9], &[1, 2]] {
        log.append(batch(timestamps), EPOCH).unwrap();
    }
    sync(&disk, &mut log);
    assert_eq!(log.max_timestamp().unwrap(), Some((at(1), 9)));
}
