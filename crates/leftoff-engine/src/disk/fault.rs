//! A disk that fails by plan.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::mem::{MemDisk, MemFile};
use super::{DirEntry, Disk, DiskFile, FileMeta, OpenHow};

/// A disk on top of another one, which fails by a [`Plan`]. A clone is another handle on the same.
///
/// A sync that fails is not passed on, so whatever it should have covered is not on the disk, though it can still be
/// read. Over a [`MemDisk`] (see [`over_mem`](FaultDisk::over_mem)) it is the whole trap that the page cache sets: the
/// bytes then count as clean, and a later sync that succeeds does *not* take them to the disk.
#[derive(Debug, Clone)]
pub struct FaultDisk {
    inner: Inner,
    progress: Arc<Mutex<Progress>>,
}

/// What fails, and when.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Looked at in order; the first that is due decides.
    pub faults: Vec<Fault>,
    /// The most bytes that all files together may have. Writes beyond fail with `ENOSPC`, after what still fits, until
    /// files are cut or removed.
    pub capacity_bytes: Option<u64>,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The calls that count.
    pub on: Op,
    /// Only calls on paths that contain this count; a file has the path by which it was opened, a rename has both.
    pub path_contains: Option<String>,
    /// The call that fails, from 1.
    pub nth: u64,
    /// How it fails.
    pub kind: FaultKind,
    /// Whether those after it fail, too.
    pub lasts: bool,
}

/// Kinds of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// [`Disk::open`] of a file that exists.
    Open,
    /// [`Disk::open`] with [`OpenHow::CreateNew`] or [`OpenHow::CreateOrTruncate`].
    Create,
    /// [`Disk::create_dir`].
    CreateDir,
    /// [`Disk::list`] and [`Disk::metadata`].
    List,
    /// [`Disk::rename`].
    Rename,
    /// [`Disk::remove_file`] and [`Disk::remove_dir`].
    Remove,
    /// [`Disk::sync_dir`], also as part of [`Disk::sync`].
    SyncDir,
    /// [`DiskFile::read_at`].
    Read,
    /// [`DiskFile::write_all_at`].
    Write,
    /// [`DiskFile::set_len`].
    SetLen,
    /// [`DiskFile::sync_data`], also as part of [`Disk::sync`].
    Sync,
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// `EIO`, and nothing is done.
    Io,
    /// `EIO`, after this many bytes of a write.
    ShortWrite(usize),
    /// `ENOSPC`, after this many bytes of a write.
    NoSpace(usize),
}

impl Fault {
    /// The `nth` call of this kind fails, once.
    pub fn new(on: Op, nth: u64, kind: FaultKind) -> Fault {
        Fault { on, path_contains: None, nth, kind, lasts: false }
    }

    /// Counts only calls on paths that contain `part`.
    pub fn on_path(self, part: &str) -> Fault {
        Fault { path_contains: Some(part.to_owned()), ..self }
    }

    /// All later calls fail, too.
    pub fn lasting(self) -> Fault {
        Fault { lasts: true, ..self }
    }
}

impl Plan {
    /// Nothing fails.
    pub fn none() -> Plan {
        Plan::default()
    }

    /// One fault.
    pub fn one(fault: Fault) -> Plan {
        Plan { faults: vec![fault], capacity_bytes: None }
    }

    /// A small disk.
    pub fn capacity(bytes: u64) -> Plan {
        Plan { faults: Vec::new(), capacity_bytes: Some(bytes) }
    }
}

#[derive(Debug, Clone)]
enum Inner {
    Any(Arc<dyn Disk>),
    Mem(MemDisk),
}

#[derive(Debug, Default)]
struct Progress {
    plan: Plan,
    /// Calls seen by each fault of the plan.
    seen: Vec<u64>,
    calls: Vec<(Op, u64)>,
}

impl FaultDisk {
    /// Over any disk.
    pub fn new(inner: Arc<dyn Disk>, plan: Plan) -> FaultDisk {
        FaultDisk::of(Inner::Any(inner), plan)
    }

    /// Over a disk in memory, which then knows that what a failed sync should have covered is lost to later syncs.
    pub fn over_mem(inner: &MemDisk, plan: Plan) -> FaultDisk {
        FaultDisk::of(Inner::Mem(inner.clone()), plan)
    }

    /// Another plan from now on; its counts start at 0.
    pub fn set_plan(&self, plan: Plan) {
        let mut progress = self.progress();
        progress.seen = vec![0; plan.faults.len()];
        progress.plan = plan;
    }

    /// How many calls of a kind there have been, failed or not, whatever the plan.
    pub fn calls(&self, op: Op) -> u64 {
        self.progress().calls.iter().find(|(of, _)| *of == op).map_or(0, |(_, calls)| *calls)
    }

    fn of(inner: Inner, plan: Plan) -> FaultDisk {
        let disk = FaultDisk { inner, progress: Arc::default() };
        disk.set_plan(plan);
        disk
    }

    fn inner(&self) -> &dyn Disk {
        match &self.inner {
            Inner::Any(disk) => disk.as_ref(),
            Inner::Mem(disk) => disk,
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner) // counters only: none is half changed
    }

    /// Counts a call, and says whether and how it fails.
    fn due(&self, op: Op, paths: &[&Path]) -> Option<FaultKind> {
        let mut progress = self.progress();
        progress.count(op);
        let Progress { plan, seen, .. } = &mut *progress;
        let mut due = None;
        for (fault, seen) in plan.faults.iter().zip(seen) {
            if fault.counts(op, paths) {
                *seen += 1;
                let fails = *seen == fault.nth || fault.lasts && *seen > fault.nth;
                due = due.or(fails.then_some(fault.kind));
            }
        }
        due
    }

    /// [`due`](FaultDisk::due) for a call that writes no bytes.
    fn check(&self, op: Op, paths: &[&Path]) -> io::Result<()> {
        self.due(op, paths).map_or(Ok(()), |kind| Err(kind.error()))
    }

    /// How many of the bytes from the file's end on still fit on the disk.
    fn room_for(&self, growth_bytes: u64) -> io::Result<u64> {
        let Some(capacity) = self.progress().plan.capacity_bytes else { return Ok(growth_bytes) };
        let used = used_bytes(self.inner(), Path::new(""))?;
        Ok(growth_bytes.min(capacity.saturating_sub(used)))
    }
}

impl Progress {
    fn count(&mut self, op: Op) {
        match self.calls.iter_mut().find(|(of, _)| *of == op) {
            Some((_, calls)) => *calls += 1,
            None => self.calls.push((op, 1)),
        }
    }
}

impl Fault {
    fn counts(&self, op: Op, paths: &[&Path]) -> bool {
        let on_path = |part: &String| paths.iter().any(|path| path.to_string_lossy().contains(part.as_str()));
        self.on == op && self.path_contains.as_ref().is_none_or(on_path)
    }
}

impl FaultKind {
    fn error(self) -> io::Error {
        match self {
            FaultKind::Io | FaultKind::ShortWrite(_) => Errno::IO.into(),
            FaultKind::NoSpace(_) => Errno::NOSPC.into(),
        }
    }

    fn bytes_written(self) -> usize {
        match self {
            FaultKind::Io => 0,
            FaultKind::ShortWrite(bytes) | FaultKind::NoSpace(bytes) => bytes,
        }
    }
}

impl Disk for FaultDisk {
    fn open(&self, path: &Path, how: OpenHow) -> io::Result<Arc<dyn DiskFile>> {
        let op = match how {
            OpenHow::Read | OpenHow::Write => Op::Open,
            OpenHow::CreateNew | OpenHow::CreateOrTruncate => Op::Create,
        };
        self.check(op, &[path])?;
        let inner = match &self.inner {
            Inner::Any(disk) => InnerFile::Any(disk.open(path, how)?),
            Inner::Mem(disk) => InnerFile::Mem(disk.open_file(path, how)?),
        };
        Ok(Arc::new(FaultFile { disk: self.clone(), path: path.to_path_buf(), inner }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.check(Op::CreateDir, &[path])?;
        self.inner().create_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.check(Op::List, &[dir])?;
        self.inner().list(dir)
    }

    fn metadata(&self, path: &Path) -> io::Result<Option<FileMeta>> {
        self.check(Op::List, &[path])?;
        self.inner().metadata(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check(Op::Rename, &[from, to])?;
        self.inner().rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.check(Op::Remove, &[path])?;
        self.inner().remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.check(Op::Remove, &[path])?;
        self.inner().remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.check(Op::SyncDir, &[path])?;
        self.inner().sync_dir(path)
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        let capacity = self.progress().plan.capacity_bytes;
        match capacity {
            Some(capacity) => Ok(Some(capacity.saturating_sub(used_bytes(self.inner(), Path::new(""))?))),
            None => self.inner().free_bytes(),
        }
    }
}

#[derive(Debug)]
struct FaultFile {
    disk: FaultDisk,
    path: PathBuf,
    inner: InnerFile,
}

#[derive(Debug)]
enum InnerFile {
    Any(Arc<dyn DiskFile>),
    Mem(MemFile),
}

impl FaultFile {
    fn inner(&self) -> &dyn DiskFile {
        match &self.inner {
            InnerFile::Any(file) => file.as_ref(),
            InnerFile::Mem(file) => file,
        }
    }

    fn write_some(&self, bytes: &[u8], position_bytes: u64) -> io::Result<()> {
        if bytes.is_empty() { Ok(()) } else { self.inner().write_all_at(bytes, position_bytes) }
    }

    /// How many bytes a change of the file to `end_bytes` adds.
    fn growth(&self, end_bytes: u64) -> io::Result<u64> {
        Ok(end_bytes.saturating_sub(self.inner().len()?))
    }
}

impl DiskFile for FaultFile {
    fn read_at(&self, buf: &mut [u8], position_bytes: u64) -> io::Result<usize> {
        self.disk.check(Op::Read, &[&self.path])?;
        self.inner().read_at(buf, position_bytes)
    }

    fn write_all_at(&self, buf: &[u8], position_bytes: u64) -> io::Result<()> {
        if let Some(kind) = self.disk.due(Op::Write, &[&self.path]) {
            self.write_some(&buf[..kind.bytes_written().min(buf.len())], position_bytes)?;
            return Err(kind.error());
        }
        let growth = self.growth(position_bytes.saturating_add(buf.len() as u64))?;
        let missing = growth - self.disk.room_for(growth)?;
        if missing == 0 {
            return self.inner().write_all_at(buf, position_bytes);
        }
        let fits = buf.len().saturating_sub(usize::try_from(missing).unwrap_or(usize::MAX));
        self.write_some(&buf[..fits], position_bytes)?;
        Err(Errno::NOSPC.into())
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.disk.check(Op::SetLen, &[&self.path])?;
        let growth = self.growth(len_bytes)?;
        if self.disk.room_for(growth)? < growth {
            return Err(Errno::NOSPC.into());
        }
        self.inner().set_len(len_bytes)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner().len()
    }

    fn sync_data(&self) -> io::Result<()> {
        if let Some(kind) = self.disk.due(Op::Sync, &[&self.path]) {
            if let InnerFile::Mem(file) = &self.inner {
                file.fail_write_back()?;
            }
            return Err(kind.error());
        }
        self.inner().sync_data()
    }
}

/// Bytes of all files below a folder.
fn used_bytes(disk: &dyn Disk, folder: &Path) -> io::Result<u64> {
    let mut used = 0;
    for entry in disk.list(folder)? {
        let path = folder.join(&entry.name);
        used += match entry.is_dir {
            true => used_bytes(disk, &path)?,
            false => disk.metadata(&path)?.map_or(0, |meta| meta.len_bytes),
        };
    }
    Ok(used)
}
