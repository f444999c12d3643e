//! Appends that fail.

use super::*;
use crate::disk::fault::{Fault, FaultDisk, FaultKind, Op, Plan};

/// A log of five batches whose next append, which rolls, meets a fault. Tells whether that append failed.
fn append_with(fault: Fault) -> bool {
    let inner = MemDisk::new();
    let faulty = FaultDisk::over_mem(&inner, Plan::none());
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let mut log = filled(&disk, LogConfig { segment_bytes: 1 << 20, ..SMALL }, 5);
    log.close().unwrap();
    let mut log = reopen(&disk, SMALL, log.high_mark());
    log.set_config(LogConfig { segment_bytes: 1, ..SMALL });
    let before = (log.end_mark(), log.segments().unwrap());
    faulty.set_plan(Plan::one(fault.clone()));
    let result = log.append(batch(&[10, 11]), 1);
    faulty.set_plan(Plan::none());
    if let Err(error) = &result {
        assert!(matches!(error, LogError::Write { .. }), "{fault:?} {error}");
        assert_eq!(error.is_no_space(), matches!(fault.kind, FaultKind::NoSpace(_)), "{error:?}");
        assert_eq!((log.end_mark(), log.segments().unwrap()), before, "{fault:?}");
        assert_eq!(read(&log, 0), pairs(0..10));
        let appended = log.append(batch(&[10, 11]), 1).unwrap();
        assert_eq!(appended.base, at(10));
    }
    let mark = sync(&disk, &mut log);
    let disk: Arc<dyn Disk> = Arc::new(inner.survivors(1, 0).remove(0));
    for log in [log, reopen(&disk, SMALL, mark)] {
        assert_eq!(read(&log, 0), pairs(0..12));
        assert_eq!(log.tail_bytes(), 0);
        assert_eq!(log.epoch_end(0).unwrap(), Some((0, at(10))));
        assert!(log.verify(&mut |finding| panic!("{fault:?} {finding:?}")).is_ok());
    }
    result.is_err()
}

#[test]
fn an_append_that_fails_leaves_the_log_as_it_was() {
    let kinds = [FaultKind::Io, FaultKind::ShortWrite(30), FaultKind::NoSpace(30)];
    for kind in kinds {
        for op in [Op::Open, Op::Create, Op::Write] {
            let failed: Vec<bool> = (1..8).map(|nth| append_with(Fault::new(op, nth, kind))).collect();
            assert!(failed[0], "{op:?} {kind:?} {failed:?}");
        }
    }
}

#[test]
fn what_cannot_be_cut_off_latches_the_log() {
    let faulty = FaultDisk::over_mem(&MemDisk::new(), Plan::none());
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let mut log = filled(&disk, SMALL, 2);
    let mut plan = Plan::one(Fault::new(Op::Write, 1, FaultKind::ShortWrite(9)).on_path(".log"));
    plan.faults.push(Fault::new(Op::SetLen, 1, FaultKind::Io).on_path(".log"));
    faulty.set_plan(plan);
    assert!(matches!(log.append(batch(&[4, 5]), EPOCH), Err(LogError::Latched { .. })));
    assert!(matches!(log.append(batch(&[4, 5]), EPOCH), Err(LogError::Latched { .. })));
    assert_eq!(read(&log, 0), pairs(0..4));
    // The next start cuts it.
    let mut log = reopen(&disk, SMALL, log.high_mark());
    assert_eq!(log.tail_bytes(), 9);
    assert_eq!(log.settle_tail(at(4)).unwrap(), Settled { kept_bytes: 0, cut_bytes: 9 });
    assert_eq!(log.append(batch(&[4, 5]), EPOCH).unwrap().base, at(4));
}

#[test]
fn a_full_disk_takes_appends_again_when_there_is_room() {
    let faulty = FaultDisk::over_mem(&MemDisk::new(), Plan::capacity(4000));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let mut log = create(&disk, SMALL);
    let mut batches = 0;
    let error = loop {
        match log.append(batch(&[2 * batches, 2 * batches + 1]), EPOCH) {
            Ok(_) => batches += 1,
            Err(error) => break error,
        }
    };
    assert!(error.is_no_space() && batches > 10, "{error}");
    sync(&disk, &mut log);
    assert_eq!(read(&log, 0), pairs(0..2 * batches));
    faulty.set_plan(Plan::none());
    assert_eq!(log.append(batch(&[1, 2]), EPOCH).unwrap().base, at(2 * batches));
}

#[test]
fn a_failed_sync_of_the_epochs_latches_the_log() {
    for op in [Op::Sync, Op::SyncDir] {
        let faulty = FaultDisk::over_mem(&MemDisk::new(), Plan::none());
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let mut log = filled(&disk, SMALL, 2);
        faulty.set_plan(Plan::one(Fault::new(op, 1, FaultKind::Io)));
        assert!(matches!(log.append(batch(&[4, 5]), 1), Err(LogError::Sync { .. })));
        assert!(matches!(log.append(batch(&[4, 5]), 1), Err(LogError::Latched { .. })));
        assert_eq!(read(&log, 0), pairs(0..4));
    }
}
