//! What the file sink does to the disk, behind one small trait, so that a test can stop it after every step.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Which of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Part {
    Data,
    Outcomes,
    Sidecar,
    /// Dead letters: a line each, appended before the slot makes them count.
    Dead,
}

/// Everything that changes the disk.
pub(super) trait FileOps: fmt::Debug + Send {
    /// Opens for reading and writing; makes the file if there is none.
    fn create(&mut self, part: Part, path: &Path) -> io::Result<File>;
    fn write_all_at(&mut self, part: Part, file: &File, bytes: &[u8], position_bytes: u64) -> io::Result<()>;
    /// Writes behind everything that is there.
    fn append(&mut self, part: Part, file: &File, bytes: &[u8]) -> io::Result<()>;
    fn set_len(&mut self, part: Part, file: &File, bytes: u64) -> io::Result<()>;
    /// Makes content and length durable, not the name.
    fn sync(&mut self, part: Part, file: &File) -> io::Result<()>;
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the names in it durable.
    fn sync_folder(&mut self, folder: &Path) -> io::Result<()>;
}

/// The operating system.
#[derive(Debug)]
pub(super) struct OsOps;

impl FileOps for OsOps {
    fn create(&mut self, part: Part, path: &Path) -> io::Result<File> {
        match part {
            // Others append to it, too: what became of a letter.
            Part::Dead => OpenOptions::new().read(true).append(true).create(true).open(path),
            Part::Data | Part::Outcomes | Part::Sidecar => {
                OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
            }
        }
    }

    fn write_all_at(
        &mut self,
        _part: Part,
        file: &File,
        bytes: &[u8],
        position_bytes: u64,
    ) -> io::Result<()> {
        file.write_all_at(bytes, position_bytes)
    }

    fn append(&mut self, _part: Part, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn set_len(&mut self, _part: Part, file: &File, bytes: u64) -> io::Result<()> {
        file.set_len(bytes)
    }

    fn sync(&mut self, _part: Part, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn sync_folder(&mut self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}
