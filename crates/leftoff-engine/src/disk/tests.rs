//! One table of scripts for all disks: what a caller sees must not depend on which one it has.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use super::fault::{Fault, FaultDisk, FaultKind, Op, Plan};
use super::mem::{MemDisk, is_power_cut};
use super::os::{FilesystemKind, OsDisk, SyncScope};
use super::*;

/// Runs a script against a disk: one call a line, `call => result`; a line without a result is to succeed.
pub(super) fn play(disk: &dyn Disk, script: &str) {
    let mut player = Player { disk, files: BTreeMap::new() };
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (call, expected) = line.split_once(" =>").unwrap_or((line, "ok"));
        let expected = expected.trim();
        let result = player.call(call).unwrap_or_else(|e| error_name(&e));
        assert_eq!(result, expected, "{disk:?}: {call}\nin the script\n{script}");
    }
}

fn error_name(error: &io::Error) -> String {
    match error.raw_os_error() {
        _ if is_power_cut(error) => "PowerCut".to_owned(),
        Some(5) => "EIO".to_owned(),
        Some(28) => "ENOSPC".to_owned(),
        _ => format!("{:?}", error.kind()),
    }
}

struct Player<'a> {
    disk: &'a dyn Disk,
    files: BTreeMap<String, Arc<dyn DiskFile>>,
}

impl Player<'_> {
    fn call(&mut self, call: &str) -> io::Result<String> {
        let words: Vec<&str> = call.split_whitespace().collect();
        let number = |word: &str| word.parse::<u64>().unwrap();
        match words[..] {
            ["create", path] => self.open(path, OpenHow::CreateNew)?,
            ["truncate", path] => self.open(path, OpenHow::CreateOrTruncate)?,
            ["open", path] => self.open(path, OpenHow::Write)?,
            ["open-read", path] => self.open(path, OpenHow::Read)?,
            ["write", file, at, text] => self.files[file].write_all_at(text.as_bytes(), number(at))?,
            ["write-times", file, at, text, times] => {
                let bytes = text.repeat(number(times) as usize);
                self.files[file].write_all_at(bytes.as_bytes(), number(at))?;
            }
            ["set-len", file, len] => self.files[file].set_len(number(len))?,
            ["sync", file] => self.files[file].sync_data()?,
            ["read", file, at, len] => {
                let mut buf = vec![0; number(len) as usize];
                let read = self.files[file].read_at(&mut buf, number(at))?;
                return Ok(show(&buf[..read]));
            }
            ["len", file] => return Ok(self.files[file].len()?.to_string()),
            ["mkdir", path] => self.disk.create_dir(Path::new(path))?,
            ["rename", from, to] => self.disk.rename(Path::new(from), Path::new(to))?,
            ["remove", path] => self.disk.remove_file(Path::new(path))?,
            ["rmdir", path] => self.disk.remove_dir(Path::new(path))?,
            ["sync-dir", path] => self.disk.sync_dir(Path::new(path))?,
            ["sync-all", dir] => {
                let files: Vec<_> = self.files.values().cloned().collect();
                self.disk.sync(&files, &[PathBuf::from(dir)])?;
            }
            ["list", path] => {
                let entries = self.disk.list(Path::new(path))?;
                let names =
                    entries.iter().map(|e| if e.is_dir { format!("{}/", e.name) } else { e.name.clone() });
                return Ok(names.collect::<Vec<_>>().join(" "));
            }
            ["meta", path] => {
                return Ok(match self.disk.metadata(Path::new(path))? {
                    None => "none".to_owned(),
                    Some(FileMeta { is_dir: true, len_bytes }) => format!("folder {len_bytes}"),
                    Some(FileMeta { is_dir: false, len_bytes }) => format!("file {len_bytes}"),
                });
            }
            ["free"] => return Ok(format!("{:?}", self.disk.free_bytes()?)),
            _ => panic!("no such call: {call}"),
        }
        Ok("ok".to_owned())
    }

    fn open(&mut self, path: &str, how: OpenHow) -> io::Result<()> {
        let file = self.disk.open(Path::new(path), how)?;
        self.files.insert(path.to_owned(), file);
        Ok(())
    }
}

/// Bytes as text; a zero is a `_`, a run of more than nine equal bytes is counted.
pub(super) fn show(bytes: &[u8]) -> String {
    bytes
        .chunk_by(|a, b| a == b)
        .map(|run| {
            let byte = char::from(if run[0] == 0 { b'_' } else { run[0] });
            if run.len() > 9 { format!("{byte}*{} ", run.len()) } else { byte.to_string().repeat(run.len()) }
        })
        .collect()
}

const SCRIPTS: &[&str] = &[
    "create f
     write f 0 hello
     read f 0 9 => hello
     read f 3 9 => lo
     read f 0 3 => hel
     read f 5 1 =>
     read f 99 1 =>
     write f 1 EL
     read f 0 9 => hELlo
     write f 7 x
     read f 0 9 => hELlo__x
     len f => 8
     set-len f 2
     set-len f 4
     read f 0 9 => hE__
     sync f
     sync-dir .
     meta f => file 4
     list . => f",
    "meta f => none
     open f => NotFound
     open-read f => NotFound
     create f
     create f => AlreadyExists
     write f 0 abc
     open f
     read f 0 9 => abc
     write f 3 d
     truncate f
     len f => 0
     truncate g
     write g 0 x
     list . => f g",
    "create f
     write f 0 abc
     open-read f
     read f 0 3 => abc
     write f 0 x => Uncategorized
     set-len f 0 => InvalidInput
     sync f",
    "mkdir d
     mkdir d => AlreadyExists
     mkdir a/b => NotFound
     create d/f
     create nowhere/f => NotFound
     create d/f/g => NotADirectory
     open d/f/g => NotADirectory
     meta d/f/g => NotADirectory
     meta nowhere/f => none
     meta d => folder 0
     meta . => folder 0
     list d => f
     list d/f => NotADirectory
     list nowhere => NotFound
     list . => d/
     rmdir d => DirectoryNotEmpty
     rmdir d/f => NotADirectory
     remove d => IsADirectory
     remove d/f
     remove d/f => NotFound
     sync-dir d
     rmdir d
     rmdir d => NotFound
     sync-dir d => NotFound
     list . =>",
    "mkdir d
     open d => IsADirectory
     open-read d => IsADirectory
     truncate d => IsADirectory
     create d => AlreadyExists
     open . => IsADirectory
     create . => AlreadyExists
     mkdir . => AlreadyExists
     create f
     sync-dir f => NotADirectory
     open ../f => InvalidInput
     open /f => InvalidInput
     meta d/../f => InvalidInput
     rename . e => InvalidInput
     rmdir . => InvalidInput
     remove . => InvalidInput",
    "create a
     write a 0 A
     create b
     write b 0 B
     rename a b
     list . => b
     read a 0 9 => A
     read b 0 9 => B
     open b
     read b 0 9 => A
     rename b b
     rename c b => NotFound
     rename b nowhere/b => NotFound
     list . => b",
    "mkdir d
     mkdir e
     mkdir e/sub
     create f
     write f 0 x
     rename f d => IsADirectory
     rename d f => NotADirectory
     rename d e => DirectoryNotEmpty
     rename e e/sub/e => InvalidInput
     rename f d/g
     rename d e/sub
     list . => e/
     list e => sub/
     list e/sub => g
     open e/sub/g
     read e/sub/g 0 9 => x
     sync-all e",
    "create f
     write f 0 kept
     remove f
     read f 0 9 => kept
     write f 4 !
     sync f
     read f 0 9 => kept!
     create f
     read f 0 9 =>
     list . => f",
    "create a
     create b
     create c
     create d
     write a 0 a
     write b 0 b
     sync-all .
     read b 0 9 => b",
];

#[test]
fn every_disk_answers_alike() {
    for script in SCRIPTS {
        let folder = tempfile::tempdir().unwrap();
        play(&OsDisk::open(folder.path()).unwrap(), script);
        let folder = tempfile::tempdir().unwrap();
        play(&OsDisk::open_with(folder.path(), SyncScope::Files).unwrap(), script);
        play(&MemDisk::new(), script);
        play(&MemDisk::new().image(), script);
        play(&FaultDisk::new(Arc::new(MemDisk::new()), Plan::none()), script);
        play(&FaultDisk::over_mem(&MemDisk::new(), Plan::capacity(1000)), script);
    }
}

#[test]
fn the_os_disk_is_a_folder_that_exists() {
    let folder = tempfile::tempdir().unwrap();
    let missing = OsDisk::open(folder.path().join("missing")).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    std::fs::write(folder.path().join("file"), "").unwrap();
    let file = OsDisk::open(folder.path().join("file")).unwrap_err();
    assert_eq!(file.kind(), io::ErrorKind::NotADirectory);

    assert!(OsDisk::open(folder.path()).unwrap().free_bytes().unwrap().is_some());
    let kind = OsDisk::filesystem_kind(folder.path()).unwrap();
    assert!(matches!(kind, FilesystemKind::Local | FilesystemKind::Memory | FilesystemKind::Network(_)));
    assert!(OsDisk::filesystem_kind(folder.path().join("missing")).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn a_new_file_is_readable_by_all_and_writable_by_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    OsDisk::open(folder.path()).unwrap().open(Path::new("f"), OpenHow::CreateNew).unwrap();
    let mode = std::fs::metadata(folder.path().join("f")).unwrap().permissions().mode();
    assert_eq!(mode & 0o133, 0, "{mode:o}"); // the umask may take more
    assert_eq!(mode & 0o600, 0o600, "{mode:o}");
}

/// Plays a script on a disk with these faults.
fn check_faults(faults: &[Fault], script: &str) {
    let plan = || Plan { faults: faults.to_vec(), capacity_bytes: None };
    play(&FaultDisk::new(Arc::new(MemDisk::new()), plan()), script);
    play(&FaultDisk::over_mem(&MemDisk::new(), plan()), script);
    let folder = tempfile::tempdir().unwrap();
    play(&FaultDisk::new(Arc::new(OsDisk::open(folder.path()).unwrap()), plan()), script);
}

#[test]
fn faults_come_when_planned() {
    check_faults(
        &[Fault::new(Op::Write, 2, FaultKind::ShortWrite(2))],
        "create f
         write f 0 abc
         write f 3 def => EIO
         read f 0 9 => abcde
         write f 3 def
         read f 0 9 => abcdef",
    );
    check_faults(
        &[Fault::new(Op::Write, 2, FaultKind::NoSpace(0)).on_path("g").lasting()],
        "create f
         create g
         write f 0 a
         write f 1 b
         write g 0 a
         write g 1 b => ENOSPC
         write g 1 b => ENOSPC
         write f 2 c
         read f 0 9 => abc
         read g 0 9 => a",
    );
    check_faults(
        &[
            Fault::new(Op::Sync, 2, FaultKind::Io),
            Fault::new(Op::SyncDir, 1, FaultKind::Io),
            Fault::new(Op::Create, 2, FaultKind::NoSpace(0)),
            Fault::new(Op::Open, 1, FaultKind::Io),
            Fault::new(Op::Rename, 1, FaultKind::Io).on_path("new-name"),
            Fault::new(Op::Remove, 1, FaultKind::Io),
            Fault::new(Op::Read, 1, FaultKind::Io),
            Fault::new(Op::SetLen, 1, FaultKind::NoSpace(7)),
            Fault::new(Op::CreateDir, 1, FaultKind::NoSpace(0)),
            Fault::new(Op::List, 2, FaultKind::Io),
        ],
        "create f
         create g => ENOSPC
         create g
         sync f
         sync-all . => EIO
         sync-all . => EIO
         sync-all .
         open f => EIO
         open f
         read f 0 1 => EIO
         read f 0 1 =>
         set-len f 9 => ENOSPC
         len f => 0
         rename f h
         rename h new-name => EIO
         rename h new-name
         remove g => EIO
         remove g
         mkdir d => ENOSPC
         mkdir d
         list . => d/ new-name
         list . => EIO",
    );
}

#[test]
fn a_small_disk_gets_full_and_free_again() {
    let script = "create f
                  create g
                  free => Some(10)
                  write f 0 1234567
                  write g 0 abcdef => ENOSPC
                  read g 0 9 => abc
                  free => Some(0)
                  write f 0 over
                  set-len g 4 => ENOSPC
                  set-len g 1
                  free => Some(2)
                  write g 1 xy
                  remove f
                  write g 3 1234567
                  write g 10 . => ENOSPC
                  read g 0 99 => axy1234567
                  write g 20 . => ENOSPC";
    play(&FaultDisk::over_mem(&MemDisk::new(), Plan::capacity(10)), script);
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(OsDisk::open(folder.path()).unwrap());
    play(&FaultDisk::new(disk, Plan::capacity(10)), script);
}

#[test]
fn calls_are_counted_and_plans_replaced() {
    let disk =
        FaultDisk::over_mem(&MemDisk::new(), Plan::one(Fault::new(Op::Write, 1, FaultKind::Io).lasting()));
    play(&disk, "create f\n write f 0 a => EIO\n write f 0 a => EIO");
    assert_eq!((disk.calls(Op::Create), disk.calls(Op::Write), disk.calls(Op::Sync)), (1, 2, 0));
    disk.set_plan(Plan::none());
    play(&disk, "open f\n write f 0 a");
    assert_eq!(disk.calls(Op::Write), 3);
}
