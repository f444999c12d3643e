//! What a [`MemDisk`](super::MemDisk) holds: the tree as the process sees it, the tree that is on the disk, and in
//! between, in order, every change that no sync has covered.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use rustix::io::Errno;

use super::change::{
    Content, ContentChange, ContentEdit, Entries, Fate, Folders, InodeId, NameChange, Reach, Slot,
};
use super::power_cut;

/// The root folder.
pub(super) const ROOT: InodeId = 0;

/// The longest file in bytes. A longer one is refused as too large: it is a mistake of the test.
const MAX_FILE_BYTES: u64 = 1 << 30;

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) inodes: BTreeMap<InodeId, Inode>,
    /// Unsynced changes of names, of all folders.
    pub(super) names: Vec<NameChange>,
    pub(super) operations: u64,
    pub(super) cut_after: Option<u64>,
    pub(super) power_is_off: bool,
    next_inode: InodeId,
    next_seq: u64,
}

#[derive(Debug, Clone)]
pub(super) enum Inode {
    File(FileNode),
    Folder(FolderNode),
}

#[derive(Debug, Clone, Default)]
pub(super) struct FileNode {
    pub(super) seen: Content,
    pub(super) synced: Content,
    /// What leads from `synced` to `seen`.
    pub(super) unsynced: Vec<ContentChange>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct FolderNode {
    pub(super) seen: Entries,
    pub(super) synced: Entries,
}

/// A path as far as it exists: the folders on the way, the last name, and what has it.
pub(super) struct Found {
    folders: Vec<InodeId>,
    slot: Slot,
    pub(super) inode: Option<InodeId>,
}

impl State {
    pub(super) fn new() -> State {
        State::from_inodes(BTreeMap::from([(ROOT, Inode::Folder(FolderNode::default()))]))
    }

    /// A disk that was switched on again: whatever is in `inodes` is on the disk.
    pub(super) fn from_inodes(inodes: BTreeMap<InodeId, Inode>) -> State {
        let next_inode = inodes.last_key_value().map_or(ROOT, |(id, _)| *id) + 1;
        State {
            inodes,
            names: Vec::new(),
            operations: 0,
            cut_after: None,
            power_is_off: false,
            next_inode,
            next_seq: 0,
        }
    }

    pub(super) fn check_power(&self) -> io::Result<()> {
        if self.power_is_off { Err(power_cut()) } else { Ok(()) }
    }

    /// One mutating operation begins, unless the power goes first.
    pub(super) fn step(&mut self) -> io::Result<()> {
        if self.cut_after.is_some_and(|after| self.operations >= after) {
            self.power_is_off = true;
        }
        self.check_power()?;
        self.operations += 1;
        Ok(())
    }

    // Looking up

    pub(super) fn find_folder(&self, names: &[&str]) -> io::Result<InodeId> {
        Ok(self.walk(names)?.last().copied().unwrap_or(ROOT))
    }

    pub(super) fn find(&self, (folders, name): &(Vec<&str>, &str)) -> io::Result<Found> {
        let folders = self.walk(folders)?;
        let folder = folders.last().copied().unwrap_or(ROOT);
        let inode = self.entries(folder)?.get(*name).copied();
        Ok(Found { folders, slot: Slot { folder, name: (*name).to_owned() }, inode })
    }

    /// The inodes of a chain of folders, from the root on and without it.
    fn walk(&self, names: &[&str]) -> io::Result<Vec<InodeId>> {
        let mut folders = Vec::with_capacity(names.len());
        let mut here = ROOT;
        for name in names {
            here = *self.entries(here)?.get(*name).ok_or(Errno::NOENT)?;
            folders.push(here);
        }
        self.entries(here)?; // the last one must be a folder, too
        Ok(folders)
    }

    pub(super) fn entries(&self, folder: InodeId) -> io::Result<&Entries> {
        match &self.inodes[&folder] {
            Inode::Folder(node) => Ok(&node.seen),
            Inode::File(_) => Err(Errno::NOTDIR.into()),
        }
    }

    pub(super) fn file(&self, inode: InodeId) -> io::Result<&FileNode> {
        match &self.inodes[&inode] {
            Inode::File(node) => Ok(node),
            Inode::Folder(_) => Err(Errno::ISDIR.into()),
        }
    }

    fn file_mut(&mut self, inode: InodeId) -> io::Result<&mut FileNode> {
        match self.inodes.get_mut(&inode) {
            Some(Inode::File(node)) => Ok(node),
            Some(Inode::Folder(_)) | None => Err(Errno::ISDIR.into()),
        }
    }

    pub(super) fn is_folder(&self, inode: InodeId) -> bool {
        matches!(self.inodes[&inode], Inode::Folder(_))
    }

    // Names

    pub(super) fn create(&mut self, found: Found, node: Inode) -> io::Result<InodeId> {
        self.step()?;
        let inode = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(inode, node);
        self.change_names(inode, None, Some(found), None);
        Ok(inode)
    }

    pub(super) fn remove(&mut self, found: Found, inode: InodeId) -> io::Result<()> {
        self.step()?;
        self.change_names(inode, Some(found), None, Some(inode));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: Found, to: Found) -> io::Result<()> {
        let inode = from.inode.ok_or(Errno::NOENT)?;
        if to.folders.contains(&inode) {
            return Err(Errno::INVAL.into()); // into itself
        }
        if let Some(replaced) = to.inode.filter(|replaced| *replaced != inode) {
            match (self.is_folder(inode), self.is_folder(replaced)) {
                (true, true) => self.check_empty(replaced)?,
                (false, false) => {}
                (true, false) => return Err(Errno::NOTDIR.into()),
                (false, true) => return Err(Errno::ISDIR.into()),
            }
        }
        self.step()?;
        if from.slot != to.slot {
            let replaced = to.inode;
            self.change_names(inode, Some(from), Some(to), replaced);
        }
        Ok(())
    }

    pub(super) fn check_empty(&self, folder: InodeId) -> io::Result<()> {
        if self.entries(folder)?.is_empty() { Ok(()) } else { Err(Errno::NOTEMPTY.into()) }
    }

    fn change_names(
        &mut self,
        inode: InodeId,
        from: Option<Found>,
        to: Option<Found>,
        gone: Option<InodeId>,
    ) {
        let around: Vec<InodeId> =
            from.iter().chain(&to).flat_map(|found| found.folders.iter().copied()).collect();
        let mut change = NameChange {
            seq: self.take_seq(),
            inode,
            from: from.map(|found| found.slot),
            to: to.map(|found| found.slot),
            awaits: Vec::new(),
            follows: Vec::new(),
            inside: Vec::new(),
        };
        for slot in change.slots().cloned().collect::<Vec<_>>() {
            if !change.awaits.contains(&slot.folder) {
                change.awaits.push(slot.folder);
            }
        }
        for earlier in &self.names {
            let meets = earlier.inode == inode
                || earlier.slots().any(|slot| change.slots().any(|s| s == slot) || Some(slot.folder) == gone);
            if meets {
                change.follows.push(earlier.seq);
            } else if earlier.from.is_none() && around.contains(&earlier.inode) {
                change.inside.push(earlier.seq);
            }
        }
        change.apply(&mut Seen(&mut self.inodes));
        self.names.push(change);
    }

    pub(super) fn sync_folder(&mut self, folder: InodeId) -> io::Result<()> {
        self.step()?;
        for change in &mut self.names {
            change.awaits.retain(|awaited| *awaited != folder);
        }
        let mut done: Vec<u64> = Vec::new();
        for change in self.names.iter().rev() {
            if change.awaits.is_empty() || done.contains(&change.seq) {
                done.push(change.seq);
                done.extend(&change.follows);
            }
        }
        let changes = std::mem::take(&mut self.names);
        let (synced, unsynced): (Vec<_>, Vec<_>) = changes.into_iter().partition(|c| done.contains(&c.seq));
        self.names = unsynced;
        for change in synced {
            change.apply(&mut Synced(&mut self.inodes));
        }
        Ok(())
    }

    // Content

    pub(super) fn write(&mut self, inode: InodeId, bytes: &[u8], position_bytes: u64) -> io::Result<()> {
        let end = position_bytes.checked_add(bytes.len() as u64).ok_or(Errno::FBIG)?;
        check_size(end)?;
        self.step()?;
        if bytes.is_empty() {
            return Ok(());
        }
        let position = usize::try_from(position_bytes).map_err(|_| Errno::FBIG)?;
        self.change_content(inode, ContentEdit::Write { position, bytes: bytes.into() })
    }

    pub(super) fn set_len(&mut self, inode: InodeId, len_bytes: u64) -> io::Result<()> {
        check_size(len_bytes)?;
        self.step()?;
        if self.file(inode)?.seen.len() as u64 == len_bytes {
            return Ok(());
        }
        let len = usize::try_from(len_bytes).map_err(|_| Errno::FBIG)?;
        self.change_content(inode, ContentEdit::SetLen(len))
    }

    fn change_content(&mut self, inode: InodeId, edit: ContentEdit) -> io::Result<()> {
        let seq = self.take_seq();
        let file = self.file_mut(inode)?;
        edit.apply(Fate::Whole, Arc::make_mut(&mut file.seen));
        file.unsynced.push(ContentChange { seq, edit, reach: Reach::Dirty });
        Ok(())
    }

    pub(super) fn sync_content(&mut self, inode: InodeId) -> io::Result<()> {
        self.step()?;
        self.file_mut(inode)?.sync();
        Ok(())
    }

    pub(super) fn fail_write_back(&mut self, inode: InodeId) -> io::Result<()> {
        for change in &mut self.file_mut(inode)?.unsynced {
            if change.reach == Reach::Dirty {
                change.reach = Reach::Stuck;
            }
        }
        Ok(())
    }

    fn take_seq(&mut self) -> u64 {
        self.next_seq += 1;
        self.next_seq
    }
}

impl FileNode {
    fn sync(&mut self) {
        for change in &mut self.unsynced {
            if change.reach == Reach::Dirty {
                change.reach = Reach::Durable;
            }
        }
        // What lies above a stuck change stays a change of its own, so that the order is kept.
        let stuck = self.unsynced.iter().position(|change| change.reach == Reach::Stuck);
        let durable = stuck.unwrap_or(self.unsynced.len());
        let synced = Arc::make_mut(&mut self.synced);
        for change in self.unsynced.drain(..durable) {
            change.edit.apply(Fate::Whole, synced);
        }
    }
}

/// The names that the process sees.
struct Seen<'a>(&'a mut BTreeMap<InodeId, Inode>);

/// The names that are on the disk.
struct Synced<'a>(&'a mut BTreeMap<InodeId, Inode>);

impl Folders for Seen<'_> {
    fn entries_mut(&mut self, folder: InodeId) -> Option<&mut Entries> {
        folder_mut(self.0, folder).map(|node| &mut node.seen)
    }
}

impl Folders for Synced<'_> {
    fn entries_mut(&mut self, folder: InodeId) -> Option<&mut Entries> {
        folder_mut(self.0, folder).map(|node| &mut node.synced)
    }
}

fn folder_mut(inodes: &mut BTreeMap<InodeId, Inode>, folder: InodeId) -> Option<&mut FolderNode> {
    match inodes.get_mut(&folder) {
        Some(Inode::Folder(node)) => Some(node),
        Some(Inode::File(_)) | None => None,
    }
}

fn check_size(end_bytes: u64) -> io::Result<()> {
    if end_bytes > MAX_FILE_BYTES { Err(Errno::FBIG.into()) } else { Ok(()) }
}
