//! What a power cut leaves after small scripts, image by image.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::rng::SplitMix64;
use super::*;
use crate::disk::fault::{Fault, FaultDisk, FaultKind, Op, Plan};
use crate::disk::tests::{play, show};

const BUDGET: usize = 10_000;

/// A disk as one line: `name=content` for each file, `name/` for each folder.
fn tree(disk: &MemDisk) -> String {
    fn walk(disk: &MemDisk, folder: &Path, into: &mut Vec<String>) {
        for entry in disk.list(folder).unwrap() {
            let path: PathBuf = folder.join(&entry.name);
            if entry.is_dir {
                into.push(format!("{}/", path.display()));
                walk(disk, &path, into);
            } else {
                let file = disk.open(&path, OpenHow::Read).unwrap();
                let mut content = vec![0; file.len().unwrap() as usize];
                assert_eq!(file.read_at(&mut content, 0).unwrap(), content.len());
                into.push(format!("{}={}", path.display(), show(&content)));
            }
        }
    }
    let mut lines = Vec::new();
    walk(disk, Path::new(""), &mut lines);
    lines.join(" ")
}

fn trees(images: &[MemDisk]) -> BTreeSet<String> {
    images.iter().map(tree).collect()
}

fn check_images(disk: &MemDisk, expected: &[&str], context: &str) {
    let images = disk.survivors(BUDGET, 1);
    let expected: BTreeSet<String> = expected.iter().map(|tree| (*tree).to_owned()).collect();
    assert_eq!(trees(&images), expected, "after\n{context}");
    assert_eq!(images.len(), expected.len(), "an image comes twice after\n{context}");
    for image in images {
        assert_eq!(image.unsynced(), 0);
        assert_eq!(image.survivors(BUDGET, 1).len(), 1, "what is on the disk stays there");
    }
}

/// The images that a power cut may leave after a script.
fn check(script: &str, expected: &[&str]) {
    let disk = MemDisk::new();
    play(&disk, script);
    check_images(&disk, expected, script);
}

/// As [`check`], from a disk with these files, on the disk.
fn check_from(files: &[(&str, &str)], script: &str, expected: &[&str]) {
    let disk = MemDisk::new();
    for (path, content) in files {
        let file = disk.open(Path::new(path), OpenHow::CreateNew).unwrap();
        file.write_all_at(content.as_bytes(), 0).unwrap();
        disk.sync(&[file], &[PathBuf::new()]).unwrap();
    }
    play(&disk, script);
    check_images(&disk, expected, script);
}

#[test]
fn content() {
    check_from(&[("f", "ab")], "open f", &["f=ab"]);
    check_from(&[("f", "ab")], "open f\n write f 0 AB\n sync f", &["f=AB"]);
    check_from(&[("f", "ab")], "open f\n write f 0 AB", &["f=ab", "f=AB", "f=Ab", "f=aB"]);
    // An append: torn to a prefix, to a suffix behind zeros, or only the length.
    check_from(&[("f", "a")], "open f\n write f 1 BC", &["f=a", "f=aB", "f=aBC", "f=a_C", "f=a__"]);
    // The later write alone leaves zeros where the earlier one would be.
    check_from(
        &[("f", "")],
        "open f\n write f 0 A\n write f 1 B",
        &["f=", "f=A", "f=_", "f=AB", "f=_B", "f=A_", "f=__"],
    );
    // The later of two writes to the same place may be lost, but not undone by the earlier.
    check_from(&[("f", "a")], "open f\n write f 0 1\n write f 0 2", &["f=a", "f=1", "f=2"]);
    check_from(&[("f", "a")], "open f\n write f 0 1\n sync f\n write f 0 2", &["f=1", "f=2"]);
    check_from(&[("f", "abc")], "open f\n set-len f 1", &["f=abc", "f=a"]);
    check_from(&[("f", "abc")], "open f\n set-len f 1\n sync f", &["f=a"]);
    check_from(
        &[("f", "abc")],
        "open f\n set-len f 1\n write f 1 X",
        &["f=abc", "f=a", "f=aXc", "f=aX", "f=a_"],
    );
    check_from(&[("f", "abc")], "truncate f", &["f=abc", "f="]);
    check_from(&[("f", "ab")], "open f\n set-len f 3", &["f=ab", "f=ab_"]);
    // Each file on its own.
    check_from(
        &[("f", "a"), ("g", "a")],
        "open f\n open g\n write f 0 B\n write g 0 B",
        &["f=a g=a", "f=B g=a", "f=a g=B", "f=B g=B"],
    );
    // A sync of the folder is none of the file.
    check_from(&[("f", "a")], "open f\n write f 0 B\n sync-dir .", &["f=a", "f=B"]);
}

#[test]
fn holes_at_page_boundaries() {
    // Pages begin at 4096 and 8192: 96 and 4192 bytes into the write.
    let disk = MemDisk::new();
    play(&disk, "create f\n sync-dir .\n set-len f 4000\n sync f\n write-times f 4000 x 4400");
    let images = trees(&disk.survivors(BUDGET, 1));
    for expected in [
        "f=_*4000 ",
        "f=_*4000 x*4400 ",
        "f=_*4000 x*1000 ",
        "f=_*8400 ",
        "f=_*8192 x*208 ",
        "f=_*4000 x*96 _*4096 x*208 ",
        "f=_*4000 x*96 _*4304 ",
    ] {
        assert!(images.contains(expected), "{expected}");
    }
}

#[test]
fn names() {
    check("create f", &["", "f="]);
    check("create f\n sync f", &["", "f="]); // a synced file may have no name
    check("create f\n sync-dir .", &["f="]);
    check("create f\n write f 0 a\n sync f", &["", "f=a"]);
    check("create f\n write f 0 a\n sync-dir .", &["f=", "f=a", "f=_"]);
    check("create f\n create g", &["", "f=", "g=", "f= g="]);
    check_from(&[("f", "a")], "remove f", &["f=a", ""]);
    check_from(&[("f", "a")], "remove f\n sync-dir .", &[""]);
    check_from(&[("f", "a")], "open f\n write f 0 b\n remove f\n sync-dir .", &[""]);
    check_from(&[("f", "a")], "remove f\n create f", &["f=a", "", "f="]);
    check_from(&[("f", "a")], "rename f g", &["f=a", "g=a"]);
    check_from(&[("f", "a")], "rename f g\n sync-dir .", &["g=a"]);
    check_from(&[("f", "a"), ("g", "b")], "rename f g", &["f=a g=b", "g=a"]);
    check_from(&[("f", "a")], "rename f g\n rename g h", &["f=a", "g=a", "h=a"]);
    check_from(&[("f", "a")], "rename f g\n create f", &["f=a", "g=a", "f= g=a"]);
    check_from(
        &[("f", "a"), ("g", "b")],
        "rename f x\n rename g f\n rename x g",
        &["f=a g=b", "g=b x=a", "f=b x=a", "f=b g=a"],
    );
    // The usual way to replace a file, with and without its two syncs.
    check_from(&[("f", "old")], "create t\n write t 0 new\n sync t\n rename t f\n sync-dir .", &["f=new"]);
    check_from(
        &[("f", "old")],
        "create t\n write t 0 new\n sync t\n rename t f",
        &["f=old", "f=old t=new", "f=new"],
    );
    check_from(&[("f", "old")], "create t\n write t 0 N\n rename t f\n sync-dir .", &["f=N", "f=", "f=_"]);
}

#[test]
fn folders() {
    check("mkdir d", &["", "d/"]);
    check("mkdir d\n create d/f", &["", "d/", "d/ d/f="]);
    check("mkdir d\n create d/f\n sync-dir d", &["", "d/ d/f="]); // the folder's own name is its parent's
    check("mkdir d\n create d/f\n sync-dir .", &["d/", "d/ d/f="]);
    check("mkdir d\n create d/f\n sync-dir d\n sync-dir .", &["d/ d/f="]);
    check("mkdir d\n sync-dir .\n rmdir d", &["d/", ""]);
    check("mkdir d\n create d/f\n sync-dir d\n sync-dir .\n rename d e", &["d/ d/f=", "e/ e/f="]);
    // A folder that is gone takes what was removed from it along, and loses nothing that was moved out of it.
    check("mkdir d\n create d/f\n sync-dir d\n sync-dir .\n remove d/f\n rmdir d", &["d/ d/f=", "d/", ""]);
    check(
        "mkdir d\n create d/f\n sync-dir d\n sync-dir .\n rename d/f f\n rmdir d",
        &["d/ d/f=", "d/ f=", "f="],
    );
    // A rename between folders needs a sync of both; nothing is lost into a folder that is.
    let moved = "create f\n mkdir d\n sync-dir .\n rename f d/f";
    check(moved, &["d/ f=", "d/ d/f="]);
    check(&format!("{moved}\n sync-dir d"), &["d/ f=", "d/ d/f="]);
    check(&format!("{moved}\n sync-dir ."), &["d/ f=", "d/ d/f="]);
    check(&format!("{moved}\n sync-dir .\n sync-dir d"), &["d/ d/f="]);
    check("create f\n sync-dir .\n mkdir d\n rename f d/f", &["f=", "d/ f=", "d/ d/f="]);
}

#[test]
fn a_killed_process_leaves_what_was_unsynced_unsynced() {
    let disk = MemDisk::new();
    play(&disk, "create f\n sync-dir .\n write f 0 a\n sync f\n write f 0 b\n create g");
    let after_kill = disk.image();
    assert_eq!(tree(&after_kill), "f=b g=");
    assert_eq!(after_kill.unsynced(), 2);
    check_images(&after_kill, &["f=a", "f=b", "f=a g=", "f=b g="], "SIGKILL");
    // The restarted process syncs; the disk it was copied from does not change.
    play(&after_kill, "open f\n sync f\n sync-dir .");
    check_images(&after_kill, &["f=b g="], "SIGKILL, then sync");
    assert_eq!(disk.unsynced(), 2);
}

#[test]
fn a_failed_sync_is_not_made_good_by_the_next() {
    let mem = MemDisk::new();
    let disk = FaultDisk::over_mem(&mem, Plan::one(Fault::new(Op::Sync, 1, FaultKind::Io)));
    play(&disk, "create f\n sync-dir .\n write f 0 a\n sync f => EIO\n sync f\n read f 0 9 => a");
    check_images(&mem, &["f=", "f=a", "f=_"], "a failed and a successful sync");
    check_images(&mem.image(), &["f=", "f=a", "f=_"], "the same, then SIGKILL");
    // What comes later and is synced is there, over whatever was lost.
    play(&disk, "open f\n write f 1 b\n sync f");
    check_images(&mem, &["f=_b", "f=ab"], "a lost write, then a synced one");
    // Writing it again helps.
    play(&disk, "open f\n write f 0 a\n sync f");
    check_images(&mem, &["f=ab"], "written again");
}

#[test]
fn the_power_goes_before_an_operation() {
    let script = "create f\n write f 0 a\n sync f\n sync-dir .\n write f 1 b";
    let whole = MemDisk::new();
    play(&whole, script);
    assert_eq!(whole.operations(), 5);
    play(&whole, "open g => NotFound\n open f\n read f 0 9 => ab\n list . => f");
    assert_eq!(whole.operations(), 5, "reading and being refused is no operation");

    let cut = MemDisk::new();
    cut.cut_power_after(2);
    play(
        &cut,
        "create f
         write f 0 a
         read f 0 9 => a
         sync f => PowerCut
         read f 0 9 => PowerCut
         len f => PowerCut
         list . => PowerCut
         meta f => PowerCut
         free => PowerCut
         write f 0 a => PowerCut
         create g => PowerCut
         rename f g => PowerCut",
    );
    assert_eq!(cut.operations(), 2);
    check_images(&cut, &["", "f=", "f=a", "f=_"], "a cut");
    play(&cut.image(), "open f\n read f 0 9 => a\n sync f\n sync-dir .");
}

/// Enough changes that not all combinations fit.
fn busy_disk() -> MemDisk {
    let disk = MemDisk::new();
    play(&disk, "create old\n write old 0 base\n sync old\n sync-dir .\n open old");
    let file = disk.open(Path::new("old"), OpenHow::Write).unwrap();
    for i in 0..40u64 {
        file.write_all_at(&[b'a' + (i % 26) as u8; 100], i * 100).unwrap();
        disk.open(Path::new(&format!("new-{i:02}")), OpenHow::CreateNew).unwrap();
    }
    disk
}

#[test]
fn samples_hold_the_corners_and_repeat() {
    let disk = busy_disk();
    let images = disk.survivors(300, 7);
    assert_eq!(images.len(), 300);
    assert_eq!(trees(&images).len(), 300);
    let all: Vec<String> = images.iter().map(tree).collect();
    assert_eq!(all, disk.survivors(300, 7).iter().map(tree).collect::<Vec<_>>());
    assert_ne!(all, disk.survivors(300, 8).iter().map(tree).collect::<Vec<_>>());

    assert_eq!(all[0], "old=base");
    assert_eq!(all[1], tree(&disk));
    assert_eq!(all[2], "new-39= old=base");
    assert!(!all[3].contains(&"a".repeat(9)) && all[3].contains("new-39="));
    assert_eq!(all[4], tree(&disk).replace("new-39= ", ""));
    for i in 0..40 {
        let without = tree(&disk).replace(&format!("new-{i:02}= "), "");
        assert!(all.contains(&without), "everything but new-{i:02}");
    }
    assert_eq!(disk.survivors(0, 7).len(), 5, "the corners come whatever the budget");
}

#[test]
fn the_last_rename_alone_brings_what_it_needs() {
    let disk = busy_disk();
    play(&disk, "create t\n rename t u");
    assert_eq!(tree(&disk.survivors(50, 1)[2]), "old=base u=");
}

#[test]
fn a_clone_is_the_same_disk_and_an_image_is_not() {
    let disk = MemDisk::new();
    let image = disk.image();
    play(&disk.clone(), "create f");
    assert_eq!(tree(&disk), "f=");
    assert_eq!(tree(&image), "");
}

/// Three files that are on the disk, moved about between folders that come and go.
fn move_files_about(rng: &mut SplitMix64, steps: usize) -> (MemDisk, String) {
    let disk = MemDisk::new();
    let mut script = String::from("mkdir a\n mkdir b\n");
    for file in ["x", "y", "z"] {
        script += &format!("create a/{file}\n write a/{file} 0 {file}\n sync a/{file}\n");
    }
    script += "sync-dir a\n sync-dir .";
    play(&disk, &script);
    for _ in 0..steps {
        let mut folders: Vec<String> =
            disk.list(Path::new("")).unwrap().into_iter().map(|e| e.name).collect();
        let folder = folders.swap_remove(rng.below(folders.len()));
        let names = disk.list(Path::new(&folder)).unwrap();
        let line = match rng.below(6) {
            0 if folders.len() < 3 => format!("mkdir n{}", rng.next()),
            1 => format!("rename {folder} m{}", rng.next()),
            2 if names.is_empty() && !folders.is_empty() => format!("rmdir {folder}"),
            3 => "sync-dir .".to_owned(),
            4 => format!("sync-dir .\n sync-dir {folder}"),
            _ if names.is_empty() || folders.is_empty() => continue,
            _ => {
                let name = &names[rng.below(names.len())].name;
                format!("rename {folder}/{name} {}/{name}", folders[rng.below(folders.len())])
            }
        };
        play(&disk, &line);
        script = format!("{script}\n {line}");
    }
    (disk, script)
}

#[test]
fn a_file_that_is_only_moved_always_has_one_name() {
    for seed in 0..150 {
        let (disk, script) = move_files_about(&mut SplitMix64::new(seed), 12);
        for image in disk.survivors(200, seed) {
            let tree = tree(&image);
            for file in ["x=x", "y=y", "z=z"] {
                assert_eq!(tree.matches(file).count(), 1, "{file} in {tree}, seed {seed}\n{script}");
            }
        }
    }
}
