//! `leftoff.retention.unread=keep`: retention waits for the groups that have a committed offset, up to a bound.

use std::sync::Arc;

use leftoff_wire::Offset;

use super::rig::{Rig, partition};
use crate::broker::{Input, Output, Request};
use crate::disk::Disk;
use crate::disk::mem::MemDisk;
use crate::types::Timestamp;

/// Bytes of a batch, each of which closes the segment before it.
const BATCH: u64 = 69;

/// Five events in a partition that is to keep two; a group that has committed `next`, if any.
fn rig(next: Option<i64>, settings: &[(&str, &str)]) -> Rig {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut all = vec![("segment.bytes", "14"), ("retention.bytes", "138")];
    all.extend(settings);
    let mut rig = Rig::with_topic(&disk, 1, &all);
    for value in ["0", "1", "2", "3", "4"] {
        rig.append(0, &[value]).unwrap();
    }
    if let Some(next) = next {
        rig.commit(0, next, &[]).unwrap();
    }
    rig
}

/// Lets retention look, does all syncs; tells the log start.
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

const KEEP: (&str, &str) = ("leftoff.retention.unread", "keep");

#[test]
fn what_a_group_has_yet_to_read_is_kept() {
    for (next, settings, expect, kept) in [
        // As Kafka does it.
        (Some(1), &[][..], 3, 0),
        (Some(1), &[KEEP][..], 1, 2),
        (Some(0), &[KEEP], 0, 3),
        (Some(2), &[KEEP], 2, 1),
        (Some(5), &[KEEP], 3, 0),
        // No group has an offset there: nobody is waited for.
        (None, &[KEEP], 3, 0),
        // Beyond the bound the oldest go, read or not.
        (Some(0), &[KEEP, ("leftoff.retention.unread.bytes", "276")], 1, 2),
        (Some(0), &[KEEP, ("leftoff.retention.unread.bytes", "10")], 3, 0),
    ] {
        let mut rig = rig(next, settings);
        let state = rig.broker.state();
        let told = state.kept_unread_bytes(Timestamp::from_ms(1), &partition(0)).unwrap();
        assert_eq!(told, kept * BATCH, "{next:?} {settings:?}");
        assert_eq!(look(&mut rig, 1_000_000), expect, "{next:?} {settings:?}");
        // And the same after a start.
        let disk = rig.disk.clone();
        rig.close();
        let rig = Rig::open(&disk).unwrap();
        assert_eq!(rig.broker.state().log(&partition(0)).unwrap().log_start().get(), expect);
    }
}

#[test]
fn what_was_read_meanwhile_goes_at_the_next_look() {
    let mut rig = rig(Some(1), &[KEEP]);
    assert_eq!(look(&mut rig, 1_000_000), 1);
    rig.commit(0, 2, &[]).unwrap();
    assert_eq!(look(&mut rig, 2_000_000), 2);
    rig.commit(0, 5, &[]).unwrap();
    assert_eq!(look(&mut rig, 3_000_000), 3);
}

/// Between the decision and its record a person trims further: the log start never falls.
#[test]
fn a_trim_that_comes_between_stands() {
    let mut rig = rig(Some(1), &[KEEP]);
    let now = Timestamp::from_ms(1_000_000);
    rig.broker.handle_deadline(now);
    rig.ask(Request::Trim { partition: partition(0), before: Offset::new(4).unwrap() }).unwrap();
    let state = rig.broker.state();
    assert_eq!(state.metadata().log_start(&partition(0)).get(), 4);
    assert_eq!(state.log(&partition(0)).unwrap().log_start().get(), 4);
}
