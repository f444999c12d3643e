//! What a start makes of a torn tail.

use super::*;

const CONFIG: LogConfig = LogConfig { segment_bytes: 300, index_interval_bytes: 100 };

/// A log of `count` batches, synced only up to `synced` of them, and the mark of that sync.
fn with_tail(disk: &Arc<dyn Disk>, synced: i64, count: i64) -> (Log, Mark) {
    let mut log = filled(disk, CONFIG, synced);
    let mark = log.high_mark();
    for number in synced..count {
        log.append(batch(&[2 * number, 2 * number + 1]), EPOCH).unwrap();
    }
    (log, mark)
}

/// A start that keeps what is valid. Returns the end.
fn recover(log: &mut Log) -> Offset {
    let mut seen = log.high_watermark();
    let tail = log.read_tail(&mut |batch| {
        assert_eq!(batch.header.base_offset, seen);
        assert_eq!(batch.bytes.len(), batch.header.size_bytes());
        seen = batch.header.next_offset();
    });
    let tail = tail.unwrap();
    assert_eq!(tail.valid_end, seen);
    let before = log.tail_bytes();
    let settled = log.settle_tail(tail.valid_end).unwrap();
    assert_eq!(settled, Settled { kept_bytes: before - tail.torn_bytes, cut_bytes: tail.torn_bytes });
    assert_eq!((log.end(), log.high_watermark(), log.tail_bytes()), (seen, seen, 0));
    seen
}

/// The log takes appends and everything is as if nothing had happened.
fn check_alive(disk: &Arc<dyn Disk>, mut log: Log) {
    let end = log.end().get();
    log.append(batch(&[end, end + 1]), EPOCH + 1).unwrap();
    let mark = sync(disk, &mut log);
    for log in [log, reopen(disk, CONFIG, mark)] {
        assert_eq!(read(&log, 0), pairs(0..end + 2));
        assert_eq!(log.offset_for_time(end).unwrap(), Some((at(end), end)));
        assert!(log.verify(&mut |finding| panic!("{finding:?}")).is_ok());
        assert_eq!(log.tail_bytes(), 0);
    }
}

#[test]
fn a_tail_that_is_cut_anywhere_is_cut_back_to_a_whole_batch() {
    // OF-118
    for synced in 0..3 {
        let disk = MemDisk::new();
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let (log, mark) = with_tail(&shared, synced, 3);
        let base = log.segments().unwrap()[1].base;
        assert_eq!(base, at(4));
        let bytes = content(&shared, &segment_path(4, "log"));
        for left in if synced < 3 { 0..bytes.len() } else { bytes.len()..bytes.len() } {
            let disk: Arc<dyn Disk> = Arc::new(disk.image());
            replace(&disk, &segment_path(4, "log"), &bytes[..left]);
            let mut log = reopen(&disk, CONFIG, mark);
            assert_eq!(recover(&mut log), at(4));
            check_alive(&disk, log);
        }
    }
}

#[test]
fn a_tail_over_several_segments_is_kept_as_far_as_it_goes_on() {
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let (log, mark) = with_tail(&shared, 3, 12);
    let segments = log.segments().unwrap();
    assert!(segments.len() > 4);
    let image = || -> Arc<dyn Disk> { Arc::new(disk.image()) };
    let disk = image();
    let mut log = reopen(&disk, CONFIG, mark);
    assert!(matches!(log.append(batch(&[1]), EPOCH), Err(LogError::TailNotSettled { .. })));
    assert_eq!(read(&log, 0), pairs(0..6));
    assert_eq!(recover(&mut log), at(24));
    check_alive(&disk, log);
    for gone in &segments[2..] {
        let disk = image();
        disk.remove_file(&segment_path(gone.base.get(), "log")).unwrap();
        let mut log = reopen(&disk, CONFIG, mark);
        assert_eq!(recover(&mut log), gone.base);
        check_alive(&disk, log);
    }
    for torn in &segments[1..] {
        let disk = image();
        let path = segment_path(torn.base.get(), "log");
        let mut bytes = content(&disk, &path);
        *bytes.last_mut().unwrap() ^= 1;
        replace(&disk, &path, &bytes);
        let mut log = reopen(&disk, CONFIG, mark);
        // Valid segments follow, but what was torn was never acknowledged, and so neither were they.
        assert_eq!(recover(&mut log), at(torn.next.get() - 2));
        check_alive(&disk, log);
    }
}

#[test]
fn recovery_may_cut_more_than_is_torn() {
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let (_, mark) = with_tail(&shared, 3, 9);
    for end in 6..=18 {
        let disk: Arc<dyn Disk> = Arc::new(disk.image());
        let mut log = reopen(&disk, CONFIG, mark);
        match log.settle_tail(at(end)) {
            Ok(_) => check_alive(&disk, log),
            Err(LogError::NoSuchEnd { .. }) => assert_eq!(end % 2, 1),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_power_cut_within_recovery_changes_nothing_in_the_end() {
    // OF-119, OF-120
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let (_, mark) = with_tail(&shared, 3, 8);
    let torn = segment_path(12, "log");
    let bytes = content(&shared, &torn);
    replace(&shared, &torn, &bytes[..bytes.len() - 5]);
    let (mut operations, mut finished) = (0, false);
    while !finished {
        let cut = disk.image();
        cut.cut_power_after(operations);
        let shared: Arc<dyn Disk> = Arc::new(cut.clone());
        let mut log = reopen(&shared, CONFIG, mark);
        let end = log.read_tail(&mut |_| ()).unwrap().valid_end;
        assert_eq!(end, at(14));
        finished = log.settle_tail(end).is_ok();
        for survivor in cut.survivors(24, operations) {
            let disk: Arc<dyn Disk> = Arc::new(survivor);
            let mut log = reopen(&disk, CONFIG, mark);
            assert!(log.mark_damage().is_none());
            let again = recover(&mut log);
            // The cut that tore the tail may itself be lost; never what was settled.
            assert!(again >= mark.end && again.get() % 2 == 0);
            assert!(again == end || !finished);
            check_alive(&disk, log);
        }
        operations += 1;
    }
    assert!(operations > 10);
}

#[test]
fn an_older_life_does_not_come_back() {
    let disk = mem();
    let (mut log, mark) = with_tail(&disk, 2, 2);
    log.append(batch(&[4, 5]), 3).unwrap();
    log.append(batch(&[6, 7]), 3).unwrap();
    let path = segment_path(4, "log");
    let mut bytes = content(&disk, &path);
    let second = bytes.len() / 2;
    bytes[second + 12..second + 16].copy_from_slice(&2i32.to_be_bytes());
    replace(&disk, &path, &bytes);
    let mut log = reopen(&disk, CONFIG, mark);
    assert_eq!(recover(&mut log), at(6));
}

#[test]
fn segments_without_a_byte_are_no_obstacle() {
    let disk = mem();
    let mut log = filled(&disk, CONFIG, 1);
    let mark = log.high_mark();
    log.roll().unwrap();
    let log = reopen(&disk, CONFIG, mark);
    assert_eq!(log.tail_bytes(), 0);
    check_alive(&disk, log);
}

#[test]
fn a_mark_at_an_empty_segment_is_a_clean_start() {
    let disk = mem();
    let mut log = filled(&disk, CONFIG, 1);
    log.roll().unwrap();
    let mark = sync(&disk, &mut log);
    assert_eq!((mark.segment_base, mark.position_bytes), (at(2), 0));
    let log = reopen(&disk, CONFIG, mark);
    assert_eq!(log.tail_bytes(), 0);
    check_alive(&disk, log);
}

#[test]
fn what_is_kept_is_written_again() {
    use crate::disk::fault::{Fault, FaultDisk, FaultKind, Op, Plan};
    let inner = MemDisk::new();
    let faulty = FaultDisk::over_mem(&inner, Plan::none());
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let (mut log, mark) = with_tail(&disk, 1, 2);
    let dirty = log.take_dirty();
    faulty.set_plan(Plan::one(Fault::new(Op::Sync, 1, FaultKind::Io)));
    assert!(disk.sync(&dirty.files, &dirty.dirs).is_err());
    faulty.set_plan(Plan::none());
    // The page cache shows the batch, and it counts as clean.
    let mut log = reopen(&disk, CONFIG, mark);
    assert_eq!(recover(&mut log), at(4));
    let mark = log.high_mark();
    for survivor in inner.survivors(8, 1) {
        let disk: Arc<dyn Disk> = Arc::new(survivor);
        let log = reopen(&disk, CONFIG, mark);
        assert_eq!((log.mark_damage(), read(&log, 0)), (None, pairs(0..4)));
    }
}

#[test]
fn tails_of_large_batches_are_checked_in_steps() {
    let disk = mem();
    let config = LogConfig::default();
    let mut log = create(&disk, config);
    let mut builder = BatchBuilder::default();
    builder.push(1, None, Some(&vec![7; 3 << 20]), &[]);
    let large = Batches::parse(builder.build().unwrap()).unwrap();
    log.append(large.clone(), EPOCH).unwrap();
    log.append(large, EPOCH).unwrap();
    let path = segment_path(0, "log");
    let mut bytes = content(&disk, &path);
    *bytes.last_mut().unwrap() ^= 1;
    replace(&disk, &path, &bytes);
    let mut log = reopen(&disk, config, Mark::START);
    assert_eq!(recover(&mut log), at(1));
    assert_eq!(read(&log, 0), ["0..1"]);
}
