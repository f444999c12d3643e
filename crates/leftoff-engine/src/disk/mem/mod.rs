//! A disk in memory that knows what a power cut may leave of it.
//!
//! - The **tree as seen** is what the process reads: the page cache.
//! - The **tree on the disk** is what syncs have covered.
//! - Between them lie the unsynced changes, in order. After a power cut each write is there whole, torn or missing, each
//!   `set_len` there or not, whatever came later; a later write that survives leaves zeros before it. Each change of a
//!   name is there or not, as far as a journal allows: a renamed file has its old name or its new one, never both or
//!   neither, and a target that was replaced is the old file or the new one.
//!
//! [`MemDisk::survivors`] gives the images after a power cut, [`MemDisk::image`] the one after SIGKILL. Both may be taken
//! from a disk whose power is off.

mod change;
mod rng;
mod state;
mod survivors;
#[cfg(test)]
mod tests;
mod torn;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use self::change::InodeId;
use self::state::{FileNode, FolderNode, Inode, ROOT, State};
use super::{DirEntry, Disk, DiskFile, FileMeta, OpenHow, folder_and_name, names};

/// A disk in memory. A clone is another handle on the same disk; a copy is an [`image`](MemDisk::image).
#[derive(Clone)]
pub struct MemDisk {
    state: Arc<Mutex<State>>,
}

impl MemDisk {
    /// An empty disk.
    pub fn new() -> MemDisk {
        MemDisk::of(State::new())
    }

    /// Mutating operations so far: each file or folder created, write, `set_len`, rename, removal, and sync of a file or
    /// folder. A call that is refused (no such file) is none.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Cuts the power as soon as an operation beyond the `operations`th begins, counted as by
    /// [`operations`](MemDisk::operations): it is not done, and from there on every call fails, reads too.
    /// See [`is_power_cut`].
    pub fn cut_power_after(&self, operations: u64) {
        self.lock().cut_after = Some(operations);
    }

    /// Changes that no successful sync has covered, of content and of names.
    pub fn unsynced(&self) -> usize {
        let state = self.lock();
        let in_files = state.inodes.values().map(|inode| match inode {
            Inode::File(file) => file.unsynced.iter().filter(|c| c.reach != change::Reach::Durable).count(),
            Inode::Folder(_) => 0,
        });
        in_files.sum::<usize>() + state.names.len()
    }

    /// What a killed process (SIGKILL) leaves: everything that was written is there, and what was unsynced *still is*, so
    /// that a later power cut can take it. Operations are counted from 0 again, and the power is on.
    pub fn image(&self) -> MemDisk {
        let mut state = self.lock().clone();
        state.operations = 0;
        state.cut_after = None;
        state.power_is_off = false;
        MemDisk::of(state)
    }

    /// The different images that a power cut at this moment may leave, each fully synced.
    ///
    /// All of them if there are no more than `budget` combinations. Otherwise, in this order: nothing unsynced survives;
    /// everything; the last change alone; everything but the first, everything but the last; and then, within the
    /// budget, everything but one change, for each change; all combinations of whole and missing, if they fit; samples.
    /// The same seed gives the same images in the same order.
    pub fn survivors(&self, budget: usize, seed: u64) -> Vec<MemDisk> {
        survivors::survivors(&self.lock(), budget, seed).into_iter().map(MemDisk::of).collect()
    }

    fn of(state: State) -> MemDisk {
        MemDisk { state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another thread cannot leave half a change: each one is made after all its checks.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn powered(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.lock();
        state.check_power()?;
        Ok(state)
    }

    /// [`Disk::open`], with the type that knows its inode.
    pub(super) fn open_file(&self, path: &Path, how: OpenHow) -> io::Result<MemFile> {
        let mut state = self.powered()?;
        if names(path)?.is_empty() {
            return Err(if how == OpenHow::CreateNew { Errno::EXIST } else { Errno::ISDIR }.into());
        }
        let found = state.find(&folder_and_name(path)?)?;
        let inode = match (found.inode, how) {
            (Some(_), OpenHow::CreateNew) => return Err(Errno::EXIST.into()),
            (Some(inode), OpenHow::Read | OpenHow::Write) => inode,
            (Some(inode), OpenHow::CreateOrTruncate) => {
                state.file(inode)?;
                state.set_len(inode, 0)?;
                inode
            }
            (None, OpenHow::Read | OpenHow::Write) => return Err(Errno::NOENT.into()),
            (None, OpenHow::CreateNew | OpenHow::CreateOrTruncate) => {
                state.create(found, Inode::File(FileNode::default()))?
            }
        };
        state.file(inode)?;
        Ok(MemFile { disk: self.clone(), inode, writable: how != OpenHow::Read })
    }
}

impl Default for MemDisk {
    fn default() -> MemDisk {
        MemDisk::new()
    }
}

impl fmt::Debug for MemDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemDisk").field("operations", &self.operations()).finish_non_exhaustive()
    }
}

impl Disk for MemDisk {
    fn open(&self, path: &Path, how: OpenHow) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(self.open_file(path, how)?))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.powered()?;
        if names(path)?.is_empty() {
            return Err(Errno::EXIST.into());
        }
        let found = state.find(&folder_and_name(path)?)?;
        if found.inode.is_some() {
            return Err(Errno::EXIST.into());
        }
        state.create(found, Inode::Folder(FolderNode::default()))?;
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let state = self.powered()?;
        let folder = state.find_folder(&names(dir)?)?;
        let entries = state.entries(folder)?.iter();
        Ok(entries.map(|(name, id)| DirEntry { name: name.clone(), is_dir: state.is_folder(*id) }).collect())
    }

    fn metadata(&self, path: &Path) -> io::Result<Option<FileMeta>> {
        let state = self.powered()?;
        let inode = if names(path)?.is_empty() {
            Some(ROOT)
        } else {
            match state.find(&folder_and_name(path)?) {
                Ok(found) => found.inode,
                Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                Err(e) => return Err(e),
            }
        };
        Ok(inode.map(|inode| match &state.inodes[&inode] {
            Inode::File(file) => FileMeta { len_bytes: file.seen.len() as u64, is_dir: false },
            Inode::Folder(_) => FileMeta { len_bytes: 0, is_dir: true },
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.powered()?;
        let from = state.find(&folder_and_name(from)?)?;
        let to = state.find(&folder_and_name(to)?)?;
        state.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.powered()?;
        let found = state.find(&folder_and_name(path)?)?;
        let inode = found.inode.ok_or(Errno::NOENT)?;
        state.file(inode)?;
        state.remove(found, inode)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.powered()?;
        let found = state.find(&folder_and_name(path)?)?;
        let inode = found.inode.ok_or(Errno::NOENT)?;
        state.check_empty(inode)?;
        state.remove(found, inode)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.powered()?;
        let folder = state.find_folder(&names(path)?)?;
        state.sync_folder(folder)
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        self.lock().check_power()?;
        Ok(None)
    }
}

/// An open file of a [`MemDisk`].
#[derive(Debug, Clone)]
pub(super) struct MemFile {
    disk: MemDisk,
    inode: InodeId,
    writable: bool,
}

impl MemFile {
    /// The trap of a failed sync: what was dirty counts as clean, stays readable, and no later sync takes it to the
    /// disk. Only writing it again does.
    pub(super) fn fail_write_back(&self) -> io::Result<()> {
        self.disk.powered()?.fail_write_back(self.inode)
    }
}

impl DiskFile for MemFile {
    fn read_at(&self, buf: &mut [u8], position_bytes: u64) -> io::Result<usize> {
        let state = self.disk.powered()?;
        let content = &state.file(self.inode)?.seen;
        let from = usize::try_from(position_bytes).unwrap_or(usize::MAX).min(content.len());
        let read = buf.len().min(content.len() - from);
        buf[..read].copy_from_slice(&content[from..from + read]);
        Ok(read)
    }

    fn write_all_at(&self, buf: &[u8], position_bytes: u64) -> io::Result<()> {
        let mut state = self.disk.powered()?;
        if !self.writable {
            return Err(Errno::BADF.into());
        }
        state.write(self.inode, buf, position_bytes)
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        let mut state = self.disk.powered()?;
        if !self.writable {
            return Err(Errno::INVAL.into()); // as ftruncate(2)
        }
        state.set_len(self.inode, len_bytes)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.powered()?.file(self.inode)?.seen.len() as u64)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.powered()?.sync_content(self.inode)
    }
}

/// Whether this error is that of a [`MemDisk`] whose power was cut.
pub fn is_power_cut(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<PowerCut>())
}

fn power_cut() -> io::Error {
    io::Error::other(PowerCut)
}

#[derive(Debug)]
struct PowerCut;

impl fmt::Display for PowerCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the power was cut")
    }
}

impl std::error::Error for PowerCut {}
