//! Changes that no sync has covered, and what a power cut makes of one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A file or folder, whatever its name.
pub(super) type InodeId = u64;

/// Bytes of a file; images that do not differ in it share it.
pub(super) type Content = Arc<Vec<u8>>;

/// Names in a folder.
pub(super) type Entries = Arc<BTreeMap<String, InodeId>>;

/// A change of one file's bytes.
#[derive(Debug, Clone)]
pub(super) struct ContentChange {
    /// Place among all changes of the disk.
    pub(super) seq: u64,
    pub(super) edit: ContentEdit,
    pub(super) reach: Reach,
}

#[derive(Debug, Clone)]
pub(super) enum ContentEdit {
    Write { position: usize, bytes: Arc<[u8]> },
    SetLen(usize),
}

/// How far a change of content has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// In the page cache; the next sync takes it to the disk.
    Dirty,
    /// In the page cache, but its write-back failed and it counts as clean: no later sync takes it to the disk.
    Stuck,
    /// On the disk, above an earlier change that is stuck.
    Durable,
}

/// What is left of one change after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Missing,
    Whole,
    /// Of a write: its first `head` bytes and, if there is a `tail`, those from `tail` on; then the file reaches to the
    /// end of the write, even if `tail` is that end (the length was on the disk, the bytes were not).
    Torn {
        head: usize,
        tail: Option<usize>,
    },
}

impl ContentEdit {
    pub(super) fn apply(&self, fate: Fate, content: &mut Vec<u8>) {
        match (self, fate) {
            (_, Fate::Missing) => {}
            (ContentEdit::Write { position, bytes }, Fate::Whole) => put(content, *position, bytes),
            (ContentEdit::Write { position, bytes }, Fate::Torn { head, tail }) => {
                put(content, *position, &bytes[..head]);
                if let Some(tail) = tail {
                    put(content, position + tail, &bytes[tail..]);
                }
            }
            (ContentEdit::SetLen(len), Fate::Whole | Fate::Torn { .. }) => content.resize(*len, 0),
        }
    }
}

fn put(content: &mut Vec<u8>, position: usize, bytes: &[u8]) {
    let end = position + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[position..end].copy_from_slice(bytes);
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) folder: InodeId,
    pub(super) name: String,
}

/// A change of names: an inode leaves a slot, enters a slot, or both (a rename), in one step.
#[derive(Debug, Clone)]
pub(super) struct NameChange {
    /// Place among all changes of the disk.
    pub(super) seq: u64,
    pub(super) inode: InodeId,
    pub(super) from: Option<Slot>,
    pub(super) to: Option<Slot>,
    /// Folders that must be synced before this is on the disk.
    pub(super) awaits: Vec<InodeId>,
    /// Earlier changes (by `seq`) that are on the disk whenever this one is: those of the same slot or inode, and
    /// whatever happened in a folder that this one removes. So no file is ever without a name, or with two.
    pub(super) follows: Vec<u64>,
    /// Earlier creations of the folders around it: a rename into a folder that is lost would lose the file.
    pub(super) inside: Vec<u64>,
}

impl NameChange {
    /// Earlier changes (by `seq`) without which this one does not survive a power cut.
    pub(super) fn needs(&self) -> impl Iterator<Item = u64> {
        self.follows.iter().chain(&self.inside).copied()
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.from.iter().chain(&self.to)
    }

    /// Makes the change in the folders it touches, where they exist.
    pub(super) fn apply(&self, folders: &mut impl Folders) {
        if let Some(from) = &self.from
            && let Some(entries) = folders.entries_mut(from.folder)
        {
            Arc::make_mut(entries).remove(&from.name);
        }
        if let Some(to) = &self.to
            && let Some(entries) = folders.entries_mut(to.folder)
        {
            Arc::make_mut(entries).insert(to.name.clone(), self.inode);
        }
    }
}

/// Folders in which names can be changed.
pub(super) trait Folders {
    fn entries_mut(&mut self, folder: InodeId) -> Option<&mut Entries>;
}

impl Folders for HashMap<InodeId, Entries> {
    fn entries_mut(&mut self, folder: InodeId) -> Option<&mut Entries> {
        self.get_mut(&folder)
    }
}
