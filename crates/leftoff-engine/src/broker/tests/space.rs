//! A full disk: appends are refused with a clear error, nothing acknowledged is lost, and offsets can still be saved.

use std::sync::Arc;

use super::rig::{Rig, batch, committed, contents, partition};
use crate::broker::{Refusal, Request};
use crate::disk::Disk;
use crate::disk::fault::{FaultDisk, Plan};
use crate::disk::mem::MemDisk;

#[test]
fn offsets_can_be_saved_on_a_full_disk_and_appends_go_on_when_there_is_room_again() {
    let memory: Arc<dyn Disk> = Arc::new(MemDisk::new());
    // Room for the reserve and a little more.
    let small = Arc::new(FaultDisk::new(memory, Plan::capacity(1024 * 1024 + 40_000)));
    let disk: Arc<dyn Disk> = small.clone();
    let mut rig = Rig::with_topic(&disk, 1, &[]);
    let value = "x".repeat(1000);
    let mut acknowledged = 0;
    let refused = loop {
        match rig.append(0, &[&value]) {
            Ok(_) => acknowledged += 1,
            Err(refusal) => break refusal,
        }
    };
    assert!(matches!(refused, Refusal::DiskFull(_)), "{refused}");
    assert!(acknowledged > 10);
    assert_eq!(
        contents(rig.broker.state(), 0).len(),
        acknowledged,
        "all that was acknowledged, and no half batch"
    );
    // More commits than the crumbs that are left have room for: the reserve is freed for them.
    for next in 1..=acknowledged as i64 {
        for _ in 0..20 {
            rig.commit(0, next, &[]).unwrap();
        }
    }
    assert!(matches!(rig.append(0, &[&value]), Err(Refusal::DiskFull(_))), "the reserve is not for data");
    assert!(matches!(rig.commit(0, 1, &[(0, &[&value])]), Err(Refusal::DiskFull(_))), "nor for output");

    small.set_plan(Plan::none());
    rig.append(0, &["again"]).unwrap();
    drop(rig);
    let rig = Rig::open(&disk).unwrap();
    assert_eq!(contents(rig.broker.state(), 0).len(), acknowledged + 1);
    assert_eq!(committed(rig.broker.state(), 0).unwrap().get(), acknowledged as i64);
}

#[test]
fn of_an_append_to_several_partitions_that_does_not_fit_nothing_stays() {
    let memory: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let small = Arc::new(FaultDisk::new(memory, Plan::capacity(1024 * 1024 + 20_000)));
    let disk: Arc<dyn Disk> = small.clone();
    let mut rig = Rig::with_topic(&disk, 2, &[]);
    rig.append(0, &["before"]).unwrap();
    let value = "x".repeat(12_000);
    let appends = || {
        let batches = |number| (partition(number), batch(&[&value], -1));
        vec![batches(0), batches(1)]
    };
    let refused = rig.ask(Request::Append { appends: appends() }).unwrap_err();
    assert!(matches!(refused, Refusal::DiskFull(_)), "{refused}");
    assert_eq!(contents(rig.broker.state(), 0), ["0=before"], "whoever sends it again has it once");
    small.set_plan(Plan::none());
    rig.ask(Request::Append { appends: appends() }).unwrap();
    drop(rig);
    let rig = Rig::open(&disk).unwrap();
    assert_eq!([contents(rig.broker.state(), 0).len(), contents(rig.broker.state(), 1).len()], [2, 1]);
}
