//! The operating system's files: the only user of `std::fs` in the engine.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::{DirEntry, Disk, DiskFile, FileMeta, OpenHow, folder_and_name, names};

/// A folder of the operating system as a [`Disk`].
#[derive(Debug)]
pub struct OsDisk {
    root: PathBuf,
    /// Open from the start, since `syncfs` reports the write-back errors that happened after its descriptor was opened.
    root_folder: File,
    scope: SyncScope,
}

/// What one sync of several files may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncScope {
    /// Only the files and folders that are dirty, each on its own (`fdatasync`, `fsync`).
    Files,
    /// One `syncfs` for the whole file system if more than `above` files and folders are dirty: with ten files a
    /// quarter of the time, with a thousand a tenth. It also waits for what other programs have written there, and
    /// reports their errors. Used only where `syncfs` is known to wait for the device and to report write-back errors
    /// (Linux ≥ 5.8 on a local file system); elsewhere this is [`SyncScope::Files`].
    Filesystem {
        /// The greatest number of files and folders that are synced one by one.
        above: usize,
    },
}

impl Default for SyncScope {
    fn default() -> SyncScope {
        SyncScope::Filesystem { above: 2 }
    }
}

/// What lies under a folder, as far as durability is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesystemKind {
    /// A disk of this machine, or something that is not known to be otherwise.
    Local,
    /// Memory (tmpfs, ramfs): gone with the machine.
    Memory,
    /// Another machine or another process decides what a sync means; the name of the file system.
    Network(&'static str),
}

impl OsDisk {
    /// Opens an existing folder, with the default [`SyncScope`].
    ///
    /// # Errors
    ///
    /// Those of opening the folder; [`io::ErrorKind::NotADirectory`] if it is none.
    pub fn open(root: impl AsRef<Path>) -> io::Result<OsDisk> {
        OsDisk::open_with(root, SyncScope::default())
    }

    /// As [`open`](OsDisk::open), with a chosen scope.
    ///
    /// # Errors
    ///
    /// As `open`.
    pub fn open_with(root: impl AsRef<Path>, scope: SyncScope) -> io::Result<OsDisk> {
        let root: PathBuf = root.as_ref().components().collect();
        let root_folder = open_folder(&root)?;
        let scope = if system::syncfs_is_sound(&root_folder) { scope } else { SyncScope::Files };
        Ok(OsDisk { root, root_folder, scope })
    }

    /// What a sync really touches here: [`SyncScope::Files`] if the platform or the file system allows nothing else.
    pub fn sync_scope(&self) -> SyncScope {
        self.scope
    }

    /// The file system under `path`, for a warning to the user.
    ///
    /// # Errors
    ///
    /// Those of `statfs`.
    pub fn filesystem_kind(path: impl AsRef<Path>) -> io::Result<FilesystemKind> {
        system::filesystem_kind(path.as_ref())
    }

    fn full(&self, path: &Path) -> io::Result<PathBuf> {
        let mut full = self.root.clone();
        full.extend(names(path)?); // adds no trailing slash for the root itself
        Ok(full)
    }

    fn full_below_root(&self, path: &Path) -> io::Result<PathBuf> {
        folder_and_name(path)?;
        self.full(path)
    }
}

impl Disk for OsDisk {
    fn open(&self, path: &Path, how: OpenHow) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(how != OpenHow::Read).mode(0o644);
        match how {
            OpenHow::Read | OpenHow::Write => {}
            OpenHow::CreateNew => drop(options.create_new(true)),
            OpenHow::CreateOrTruncate => drop(options.create(true).truncate(true)),
        }
        // A FIFO in a file's place would wait for whoever is at its other end; for files the flag means nothing.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let file = options.open(self.full(path)?)?;
        let kind = file.metadata()?.file_type();
        if kind.is_dir() {
            return Err(Errno::ISDIR.into()); // for reading, the kernel opens folders too
        }
        if !kind.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"));
        }
        Ok(Arc::new(OsFile { file }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(self.full(path)?)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries =
            fs::read_dir(self.full(dir)?)?.map(|e| dir_entry(&e?)).collect::<io::Result<Vec<_>>>()?;
        entries.sort();
        Ok(entries)
    }

    fn metadata(&self, path: &Path) -> io::Result<Option<FileMeta>> {
        match fs::metadata(self.full(path)?) {
            Ok(meta) if meta.is_dir() => Ok(Some(FileMeta { len_bytes: 0, is_dir: true })),
            Ok(meta) => Ok(Some(FileMeta { len_bytes: meta.len(), is_dir: false })),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(self.full_below_root(from)?, self.full_below_root(to)?)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(self.full_below_root(path)?)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(self.full_below_root(path)?)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        open_folder(&self.full(path)?)?.sync_all()
    }

    fn sync(&self, files: &[Arc<dyn DiskFile>], dirs: &[PathBuf]) -> io::Result<()> {
        match self.scope {
            SyncScope::Filesystem { above } if files.len() + dirs.len() > above => {
                system::syncfs(&self.root_folder)
            }
            SyncScope::Filesystem { .. } | SyncScope::Files => {
                files.iter().try_for_each(|file| file.sync_data())?;
                dirs.iter().try_for_each(|dir| self.sync_dir(dir))
            }
        }
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        let stat = rustix::fs::fstatvfs(&self.root_folder)?;
        Ok(Some(stat.f_bavail.saturating_mul(stat.f_frsize)))
    }
}

#[derive(Debug)]
struct OsFile {
    file: File,
}

impl DiskFile for OsFile {
    fn read_at(&self, buf: &mut [u8], position_bytes: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.file.read_at(&mut buf[filled..], position_bytes + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(filled)
    }

    fn write_all_at(&self, buf: &[u8], position_bytes: u64) -> io::Result<()> {
        self.file.write_all_at(buf, position_bytes) // goes on after short writes and EINTR
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.file.set_len(len_bytes)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn open_folder(path: &Path) -> io::Result<File> {
    let directory = rustix::fs::OFlags::DIRECTORY.bits();
    OpenOptions::new().read(true).custom_flags(directory.cast_signed()).open(path)
}

fn dir_entry(entry: &fs::DirEntry) -> io::Result<DirEntry> {
    let kind = entry.file_type()?;
    let name = entry.file_name().into_string().map_err(|name| {
        io::Error::new(io::ErrorKind::InvalidData, format!("file name {name:?} is not UTF-8"))
    })?;
    // A link that leads nowhere is not a folder.
    let is_dir = kind.is_dir() || kind.is_symlink() && fs::metadata(entry.path()).is_ok_and(|m| m.is_dir());
    Ok(DirEntry { name, is_dir })
}

#[cfg(target_os = "linux")]
mod system {
    //! What differs between Linux and the rest.

    use std::fs::File;
    use std::io;
    use std::path::Path;

    use super::FilesystemKind;

    /// File systems on which `syncfs` waits for the device, by magic number: ext4 (ext2, ext3), XFS, btrfs, F2FS and
    /// tmpfs. Not FUSE, whose server is not told, and not overlayfs, which passes errors on only since later kernels.
    const SYNCFS_IS_SOUND: [u32; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];

    /// The first kernel whose `syncfs` reports write-back errors, see syncfs(2).
    const FIRST_REPORTING_KERNEL: (u32, u32) = (5, 8);

    const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58F6]; // tmpfs, ramfs
    const REMOTE: [(u32, &str); 12] = [
        (0x6969, "nfs"),
        (0x517B, "smb"),
        (0xFF53_4D42, "cifs"),
        (0xFE53_4D42, "smb2"),
        (0x0102_1997, "9p"),
        (0x6573_5546, "fuse"),
        (0x00C3_6400, "ceph"),
        (0x5346_414F, "afs"),
        (0x7375_7245, "coda"),
        (0x0BD0_0BD3, "lustre"),
        (0x0116_1970, "gfs2"),
        (0x7461_636F, "ocfs2"),
    ];

    pub(super) fn syncfs(folder: &File) -> io::Result<()> {
        Ok(rustix::io::retry_on_intr(|| rustix::fs::syncfs(folder))?)
    }

    pub(super) fn syncfs_is_sound(folder: &File) -> bool {
        let known =
            rustix::fs::fstatfs(folder).is_ok_and(|stat| SYNCFS_IS_SOUND.contains(&(stat.f_type as u32)));
        let uname = rustix::system::uname();
        known && kernel_version(uname.release().to_str().unwrap_or("")) >= Some(FIRST_REPORTING_KERNEL)
    }

    pub(super) fn filesystem_kind(path: &Path) -> io::Result<FilesystemKind> {
        Ok(kind_of_magic(rustix::fs::statfs(path)?.f_type as u32))
    }

    /// The magic numbers have 32 bits; the field that holds them differs between architectures.
    pub(super) fn kind_of_magic(magic: u32) -> FilesystemKind {
        if IN_MEMORY.contains(&magic) {
            return FilesystemKind::Memory;
        }
        match REMOTE.iter().find(|(remote, _)| *remote == magic) {
            Some((_, name)) => FilesystemKind::Network(name),
            None => FilesystemKind::Local,
        }
    }

    /// Major and minor of a release such as `6.8.0-41-generic`.
    pub(super) fn kernel_version(release: &str) -> Option<(u32, u32)> {
        let mut parts = release.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    //! Elsewhere `syncfs` is missing, or says nothing of errors.

    use std::fs::File;
    use std::io;
    use std::path::Path;

    use super::FilesystemKind;

    pub(super) fn syncfs(_folder: &File) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn syncfs_is_sound(_folder: &File) -> bool {
        false
    }

    pub(super) fn filesystem_kind(path: &Path) -> io::Result<FilesystemKind> {
        std::fs::metadata(path).map(|_| FilesystemKind::Local)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::FilesystemKind::{Local, Memory, Network};
    use super::system::{kernel_version, kind_of_magic};

    #[test]
    fn magic_numbers_tell_what_a_sync_is_worth() {
        for (magic, kind) in [
            (0xEF53, Local),
            (0x5846_5342, Local),
            (0, Local),
            (0x0102_1994, Memory),
            (0x8584_58F6, Memory),
            (0x6969, Network("nfs")),
            (0x6573_5546, Network("fuse")),
            (0x0102_1997, Network("9p")),
        ] {
            assert_eq!(kind_of_magic(magic), kind, "{magic:#x}");
        }
    }

    #[test]
    fn kernel_versions() {
        for (release, version) in [
            ("6.8.0-41-generic", Some((6, 8))),
            ("5.10", Some((5, 10))),
            ("4.18.0-553.el8", Some((4, 18))),
            ("6", None),
            ("", None),
        ] {
            assert_eq!(kernel_version(release), version, "{release}");
        }
    }
}
