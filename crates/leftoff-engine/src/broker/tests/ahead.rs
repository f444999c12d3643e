//! How far retention is from what a group reads next is what retention then does.

use std::sync::Arc;

use leftoff_wire::Offset;

use super::rig::{Rig, partition};
use crate::broker::{Input, Output};
use crate::disk::Disk;
use crate::disk::mem::MemDisk;
use crate::types::Timestamp;

/// Lets retention look, and syncs what it does.
fn look(rig: &mut Rig, now: i64) -> i64 {
    let now = Timestamp::from_ms(now);
    rig.broker.handle_deadline(now);
    while let Some(output) = rig.broker.poll_output() {
        if let Output::Sync(job) = output {
            let result = job.run(&*rig.disk);
            rig.broker.handle(now, Input::Synced { round: job.round, result });
        }
    }
    rig.broker.state().log(&partition(0)).unwrap().log_start().get()
}

#[test]
fn what_is_unread_goes_when_it_was_said_and_not_before() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let settings = [("segment.bytes", "14"), ("retention.ms", "3600000"), ("retention.bytes", "1000")];
    let mut rig = Rig::with_topic(&disk, 1, &settings);
    for value in ["0", "1", "2"] {
        rig.append(0, &[value]).unwrap();
    }
    let at = |offset| Offset::new(offset).unwrap();
    let ahead = |rig: &Rig, now, offset| {
        rig.broker.state().retention_ahead(Timestamp::from_ms(now), &partition(0), at(offset)).unwrap()
    };
    let segments = rig.broker.state().log(&partition(0)).unwrap().segments().unwrap();
    assert_eq!(segments.len(), 3, "each batch closes the segment before it");
    let behind: u64 = segments[1..].iter().map(|segment| segment.bytes).sum();

    let first = ahead(&rig, 1_000, 0).unwrap();
    assert_eq!(first.bytes, Some(1_000 - behind));
    // The open segment has an age once it is closed.
    assert_eq!(ahead(&rig, 1_000, 2).unwrap().ms, Some(3_600_000));
    assert_eq!(ahead(&rig, 1_000, 2).unwrap().bytes, Some(1_000));
    assert_eq!(ahead(&rig, 1_000, 3), None, "nothing is there to be deleted");

    let goes_at = 1_000 + first.ms.unwrap();
    assert_eq!(ahead(&rig, goes_at, 0).unwrap().ms, Some(0));
    assert_eq!(look(&mut rig, goes_at - 1), 0);
    assert!(look(&mut rig, goes_at + 10 * 60 * 1_000) > 0);
}

#[test]
fn without_limits_nothing_is_near() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut rig = Rig::with_topic(&disk, 1, &[("retention.ms", "-1")]);
    rig.append(0, &["0"]).unwrap();
    let ahead = rig.broker.state().retention_ahead(Timestamp::from_ms(1), &partition(0), Offset::ZERO);
    let ahead = ahead.unwrap().unwrap();
    assert_eq!((ahead.ms, ahead.bytes), (None, None));
}
