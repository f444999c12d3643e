//! Damaged files: what can be read stays readable, `doctor` names the rest, and a repair keeps every byte and offset.

use std::path::Path;
use std::sync::Arc;

use super::rig::{Rig, committed, contents};
use crate::broker::View;
use crate::broker::backup::backup;
use crate::broker::doctor::examine;
use crate::disk::mem::MemDisk;
use crate::disk::{Disk, OpenHow};

/// Two partitions of single-event batches `a`, `b`, …, in segments of about two batches, and a commit in each.
fn directory() -> Arc<dyn Disk> {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut rig = Rig::with_topic(&disk, 2, &[("segment.bytes", "150")]);
    for value in ["a", "b", "c", "d", "e"] {
        rig.append(0, &[value]).unwrap();
        rig.append(1, &[value]).unwrap();
    }
    rig.commit(0, 3, &[]).unwrap();
    rig.close();
    disk
}

fn flip(disk: &Arc<dyn Disk>, path: &str, position: u64) {
    let file = disk.open(Path::new(path), OpenHow::Write).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, position).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], position).unwrap();
}

fn cut(disk: &Arc<dyn Disk>, path: &str, len: u64) {
    disk.open(Path::new(path), OpenHow::Write).unwrap().set_len(len).unwrap();
}

fn remove_folder(disk: &Arc<dyn Disk>, path: &str) {
    for entry in disk.list(Path::new(path)).unwrap() {
        disk.remove_file(&Path::new(path).join(entry.name)).unwrap();
    }
    disk.remove_dir(Path::new(path)).unwrap();
}

/// Lines of `examine`, short: `PLACE: KIND`.
fn found(disk: &Arc<dyn Disk>, repair: bool) -> Vec<String> {
    let mut found = Vec::new();
    examine(disk, repair, &mut |diagnosis| {
        if diagnosis.ailment.is_damage() {
            assert_eq!(diagnosis.repaired.is_some(), repair, "{diagnosis:?}");
            found.push(format!("{}: {}", diagnosis.place, diagnosis.ailment));
        }
    })
    .unwrap();
    found
}

const FIRST: &str = "t-0/00000000000000000000.log";
const ACTIVE: &str = "t-0/00000000000000000004.log";

/// Damages a directory, and says what is found, what `t/0` holds before the repair, and after it.
fn check(damage: impl Fn(&Arc<dyn Disk>), finds: &[&str], after: &[&str]) {
    let disk = directory();
    damage(&disk);
    let findings = found(&disk, false);
    assert_eq!(findings.len(), finds.len(), "{findings:?}");
    for (finding, part) in findings.iter().zip(finds) {
        assert!(finding.contains(part), "{finding:?} should say {part:?}");
    }
    // A start before the repair is what the command does; it may be refused, and must not make things worse.
    drop(Rig::open(&disk));
    found(&disk, true);
    let mut rig = Rig::open(&disk).unwrap();
    assert_eq!(contents(rig.broker.state(), 0), after);
    assert_eq!(
        contents(rig.broker.state(), 1),
        ["0=a", "1=b", "2=c", "3=d", "4=e"],
        "the other partition is as it was"
    );
    assert_eq!(committed(rig.broker.state(), 0).unwrap().get(), 3);
    // The next offset is the one behind the last that was ever given out.
    rig.append(0, &["f"]).unwrap();
    assert_eq!(contents(rig.broker.state(), 0).last().unwrap(), "5=f");
    rig.close();
    assert_eq!(found(&disk, false), Vec::<String>::new(), "nothing is left to repair");
}

#[test]
fn nothing_wrong() {
    check(|_| {}, &[], &["0=a", "1=b", "2=c", "3=d", "4=e"]);
}

#[test]
fn a_flipped_bit_in_a_closed_segment() {
    check(|disk| flip(disk, FIRST, 65), &["offset 0"], &["0..1 gone", "1=b", "2=c", "3=d", "4=e"]);
}

#[test]
fn a_flipped_bit_in_the_active_segment() {
    check(|disk| flip(disk, ACTIVE, 65), &["offset 4"], &["0=a", "1=b", "2=c", "3=d", "4..5 gone"]);
}

#[test]
fn the_end_of_the_active_segment_is_gone() {
    check(|disk| cut(disk, ACTIVE, 0), &["synced"], &["0=a", "1=b", "2=c", "3=d", "4..5 gone"]);
}

#[test]
fn the_active_segment_is_gone() {
    let gone = |disk: &Arc<dyn Disk>| disk.remove_file(Path::new(ACTIVE)).unwrap();
    check(gone, &["t-0"], &["0=a", "1=b", "2=c", "3=d", "4..5 gone"]);
}

#[test]
fn the_folder_of_a_partition_is_gone() {
    check(
        |disk| remove_folder(disk, "t-0"),
        &["the folder is gone; its log ended before offset 5"],
        &["0..5 damaged"],
    );
}

#[test]
fn the_marks_file_is_gone() {
    let gone = |disk: &Arc<dyn Disk>| disk.remove_file(Path::new("marks")).unwrap();
    let all = ["0=a", "1=b", "2=c", "3=d", "4=e"];
    let disk = directory();
    gone(&disk);
    assert!(Rig::open(&disk).is_err(), "no guess is made");
    assert!(found(&disk, false)[0].contains("marks"));
    found(&disk, true);
    assert_eq!(contents(Rig::open(&disk).unwrap().broker.state(), 0), all);
}

#[test]
fn both_slots_of_a_mark_are_damaged() {
    let disk = directory();
    // The entries of the two internal logs come first, then those of t/0 and t/1; 128 bytes each.
    for slot in [0, 64] {
        flip(&disk, "marks", 64 + 2 * 128 + slot + 20);
    }
    let error = Rig::open(&disk).err().unwrap().to_string();
    assert!(error.contains("no valid mark") && error.contains("doctor"), "{error}");
    assert!(found(&disk, false)[0].contains("no valid mark"));
    found(&disk, true);
    assert_eq!(contents(Rig::open(&disk).unwrap().broker.state(), 0), ["0=a", "1=b", "2=c", "3=d", "4=e"]);
}

#[test]
fn bytes_that_a_repair_takes_out_are_kept_aside() {
    let disk = directory();
    flip(&disk, FIRST, 65);
    found(&disk, true);
    let kept = disk.list(Path::new("aside")).unwrap();
    assert_eq!(kept.len(), 1, "{kept:?}");
    let len = disk.metadata(&Path::new("aside").join(&kept[0].name)).unwrap().unwrap().len_bytes;
    assert!(len > 61, "a whole batch: {len} bytes");
}

#[test]
fn a_backup_taken_between_two_rounds_opens_with_what_was_acknowledged_then() {
    let disk = directory();
    let mut rig = Rig::open(&disk).unwrap();
    let copy: Arc<dyn Disk> = Arc::new(MemDisk::new());
    backup(&disk, &copy, &mut |_| {}).unwrap();
    rig.append(0, &["later"]).unwrap();
    rig.commit(0, 6, &[(1, &["out"])]).unwrap();

    let mut restored = Rig::open(&copy).unwrap();
    assert_eq!(contents(restored.broker.state(), 0), ["0=a", "1=b", "2=c", "3=d", "4=e"]);
    assert_eq!(committed(restored.broker.state(), 0).unwrap().get(), 3);
    assert_eq!(restored.broker.recovered().cut_bytes, 0);
    restored.append(0, &["its own"]).unwrap();
    assert!(backup(&disk, &copy, &mut |_| {}).is_err(), "a directory in use is no target");
}

#[test]
fn a_reader_beside_the_writer_sees_finished_rounds_only() {
    let disk = directory();
    let mut rig = Rig::open(&disk).unwrap();
    let before = View::open(&disk).unwrap();
    rig.append(0, &["f"]).unwrap();
    let after = View::open(&disk).unwrap();
    assert_eq!(contents(before.state(), 0).len(), 5);
    assert_eq!(contents(after.state(), 0).len(), 6);
    assert!(after.round() > before.round());
}
