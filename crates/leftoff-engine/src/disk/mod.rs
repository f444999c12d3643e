//! The edge to the disk: two small traits, held once by whoever needs files.
//!
//! What may be relied on, and nothing else:
//!
//! - **Content and length of a file** are on the disk once [`DiskFile::sync_data`] has returned `Ok` after the write.
//! - **Names** (a file or folder created, renamed or removed) are on the disk once [`Disk::sync_dir`] of the *parent*
//!   folder has returned `Ok`. Syncing a file does not sync its name; syncing a folder does not sync what is in its files.
//!   A rename between two folders needs both.
//! - Before that, a power cut may keep, lose or tear each write on its own and in any order. A killed process loses
//!   nothing, but what it had not synced stays unsynced.
//! - **A failed sync is final.** The kernel may drop its dirty pages and forget the error, so a second sync that returns
//!   `Ok` proves nothing about the bytes of the first; they may still be readable and yet not be on the disk.
//!
//! Paths are relative to the disk's root; the empty path is the root itself. Absolute paths and `..` are refused
//! with [`io::ErrorKind::InvalidInput`].

pub mod fault;
pub mod mem;
pub mod os;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A tree of folders and files.
///
/// Errors are those of the operating system. Every call may be made from several threads.
pub trait Disk: Send + Sync + Debug {
    /// Opens a file. A file that this creates has a durable name only after [`sync_dir`](Disk::sync_dir) of its folder.
    ///
    /// Opening a folder fails with [`io::ErrorKind::IsADirectory`].
    fn open(&self, path: &Path, how: OpenHow) -> io::Result<Arc<dyn DiskFile>>;

    /// Creates one folder; its parent must exist. The name is durable after `sync_dir` of the parent.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// What is in a folder, sorted by name (bytewise). A name that is not UTF-8 is an
    /// [`io::ErrorKind::InvalidData`].
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;

    /// Length and kind, or `None` if there is nothing of that name.
    fn metadata(&self, path: &Path) -> io::Result<Option<FileMeta>>;

    /// Gives a file or folder another name, in one step; a file at `to` is replaced. Durable after `sync_dir` of both
    /// parents. A power cut before that leaves the old name or the new one, and at `to` the replaced or the new file.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file's name. Handles that are open keep the file readable. Durable after `sync_dir` of the parent.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder. Durable after `sync_dir` of the parent.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes all names in this folder durable (not those in its subfolders, and not what is in the files).
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes the content of `files` and the names in `dirs` durable: the one place that decides how many dirty files
    /// are synced. On an error any of them may or may not be on the disk.
    ///
    /// Files come first, so that a name never becomes durable before the content it was given.
    fn sync(&self, files: &[Arc<dyn DiskFile>], dirs: &[PathBuf]) -> io::Result<()> {
        files.iter().try_for_each(|file| file.sync_data())?;
        dirs.iter().try_for_each(|dir| self.sync_dir(dir))
    }

    /// Bytes that an ordinary process may still write, or `None` where nobody can tell.
    fn free_bytes(&self) -> io::Result<Option<u64>>;
}

/// An open file. Positions are absolute; there is no cursor, so one handle may be shared.
#[allow(clippy::len_without_is_empty)] // `len` asks the disk and may fail; nobody asks for emptiness alone.
pub trait DiskFile: Send + Sync + Debug {
    /// Reads into `buf` and returns how many bytes were read: fewer than asked for only at the end of the file.
    fn read_at(&self, buf: &mut [u8], position_bytes: u64) -> io::Result<usize>;

    /// Writes all of `buf`. On an error some prefix may have been written. A gap behind the old end reads as zeros.
    /// Durable after [`sync_data`](DiskFile::sync_data).
    fn write_all_at(&self, buf: &[u8], position_bytes: u64) -> io::Result<()>;

    /// Cuts the file, or makes it longer with zeros. Durable after `sync_data`.
    fn set_len(&self, len_bytes: u64) -> io::Result<()>;

    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Makes content and length durable, as `fdatasync` does. The file's *name* is the business of
    /// [`Disk::sync_dir`]. After an error the bytes count as not synced, whatever a later call says.
    fn sync_data(&self) -> io::Result<()>;
}

/// How a file is opened. Only `CreateNew` and `CreateOrTruncate` make a file where none is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenHow {
    /// For reading; the file must exist. Writes fail.
    Read,
    /// For reading and writing; the file must exist and keeps its content.
    Write,
    /// For reading and writing; the file must not exist.
    CreateNew,
    /// For reading and writing; a file that exists is cut to no bytes.
    CreateOrTruncate,
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name within its folder.
    pub name: String,
    /// Whether it is a folder.
    pub is_dir: bool,
}

/// What is known of a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMeta {
    /// Length in bytes; 0 for a folder.
    pub len_bytes: u64,
    /// Whether it is a folder.
    pub is_dir: bool,
}

/// The names on the way from the root to `path`; none for the root itself. Refuses what would lead out of the root.
fn names(path: &Path) -> io::Result<Vec<&str>> {
    let refuse = |why| io::Error::new(io::ErrorKind::InvalidInput, format!("path {path:?} {why}"));
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_str().ok_or_else(|| refuse("is not UTF-8"))?),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(refuse("leads out of the disk's root"));
            }
        }
    }
    Ok(names)
}

/// As [`names`], split into folder and last name; the root has none and is refused.
fn folder_and_name(path: &Path) -> io::Result<(Vec<&str>, &str)> {
    let mut names = names(path)?;
    let name = names.pop().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the disk's root cannot be renamed or removed")
    })?;
    Ok((names, name))
}
