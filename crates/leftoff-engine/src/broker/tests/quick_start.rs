//! The snapshot of the offsets log: a start with it equals a start without it, and whatever is wrong with it is passed over.

use std::path::Path;
use std::sync::Arc;

use super::rig::{Rig, committed};
use crate::broker::View;
use crate::broker::snapshot::SNAPSHOT_FILE;
use crate::coordinator::Who;
use crate::disk::mem::MemDisk;
use crate::disk::{Disk, OpenHow};
use crate::types::TopicPartition;

/// More commits than a stop wants for a snapshot, over two partitions, with an owner, a deletion and a source's progress.
fn directory() -> Arc<dyn Disk> {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut rig = Rig::with_topic(&disk, 3, &[]);
    for number in 0..3 {
        rig.append(number, &["a", "b", "c"]).unwrap();
    }
    rig.commit(2, 1, &[]).unwrap();
    for round in 0..2_600 {
        rig.commit(0, round % 4, &[]).unwrap();
        rig.commit(1, (round + 1) % 4, &[]).unwrap();
    }
    let gone = vec![TopicPartition { topic: "t".to_owned(), partition: 2 }];
    rig.ask(crate::broker::Request::DeleteOffsets {
        group: "g".to_owned(),
        partitions: gone,
        who: Who::unknown(),
        note: None,
    })
    .unwrap();
    let who = Who::new("m", "c", "h", "s");
    rig.ask(crate::broker::Request::Join { group: "g".to_owned(), who }).unwrap();
    rig.close();
    disk
}

#[test]
fn a_start_from_the_snapshot_equals_one_from_the_log() {
    let disk = directory();
    let path = Path::new(SNAPSHOT_FILE);
    assert!(disk.metadata(path).unwrap().is_some(), "a stop after so many commits leaves a snapshot");
    let with = View::open(&disk).unwrap();
    assert!(with.state().coordinator().counts().records < 100, "it was used");
    disk.remove_file(path).unwrap();
    let without = View::open(&disk).unwrap();
    assert!(without.state().coordinator().counts().records > 5_000);
    assert_eq!(with.state().coordinator(), without.state().coordinator());
    assert_eq!(committed(with.state(), 0).unwrap().get(), 2_599 % 4);
}

#[test]
fn a_damaged_snapshot_is_passed_over() {
    let disk = directory();
    let path = Path::new(SNAPSHOT_FILE);
    let expect = View::open(&disk).unwrap();
    let len = disk.metadata(path).unwrap().unwrap().len_bytes;
    // Most of it is covered by the batches' checksums; every thirteenth byte of that is enough.
    for position in (0..100).chain((100..len).step_by(13)) {
        let file = disk.open(path, OpenHow::Write).unwrap();
        let mut byte = [0];
        file.read_at(&mut byte, position).unwrap();
        file.write_all_at(&[byte[0] ^ 0x40], position).unwrap();
        let seen = View::open(&disk).unwrap();
        assert_eq!(seen.state().coordinator(), expect.state().coordinator(), "byte {position}");
        file.write_all_at(&byte, position).unwrap();
    }
    disk.open(path, OpenHow::Write).unwrap().set_len(len / 2).unwrap();
    assert_eq!(View::open(&disk).unwrap().state().coordinator(), expect.state().coordinator());
}
