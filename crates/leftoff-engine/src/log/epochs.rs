//! `leader-epoch-checkpoint`: at which offset each leader epoch begins (KIP-101), in Kafka's text format.

use std::path::Path;
use std::sync::Arc;

use leftoff_wire::Offset;

use super::LogError;
use crate::disk::{Disk, OpenHow};

/// The file's name in the partition's folder.
pub(super) const CHECKPOINT: &str = "leader-epoch-checkpoint";
/// Epochs change at a start; a file that is larger is not ours.
const MAX_CHECKPOINT_BYTES: u64 = 16 << 20;

/// Leader epochs and their first offsets, both rising.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Epochs {
    entries: Vec<(i32, Offset)>,
}

impl Epochs {
    /// The checkpoint of a partition; `None` if it is missing or not readable as one.
    pub fn load(disk: &dyn Disk, dir: &Path) -> Result<Option<Epochs>, LogError> {
        let path = dir.join(CHECKPOINT);
        let io = || LogError::io("read", &path);
        let Some(meta) = disk.metadata(&path).map_err(io())? else { return Ok(None) };
        if meta.len_bytes > MAX_CHECKPOINT_BYTES {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(meta.len_bytes).expect("bounded just now")];
        let file = disk.open(&path, OpenHow::Read).map_err(io())?;
        let read = file.read_at(&mut bytes, 0).map_err(io())?;
        bytes.truncate(read);
        Ok(String::from_utf8(bytes).ok().and_then(|text| Epochs::parse(&text)))
    }

    /// Replaces the checkpoint, durably.
    pub fn save(&self, disk: &dyn Disk, dir: &Path) -> Result<(), LogError> {
        let (path, temporary) = (dir.join(CHECKPOINT), dir.join(format!("{CHECKPOINT}.tmp")));
        let io = || LogError::io("write", &path);
        let file: Arc<_> = disk.open(&temporary, OpenHow::CreateOrTruncate).map_err(io())?;
        file.write_all_at(self.text().as_bytes(), 0).map_err(io())?;
        file.sync_data().map_err(LogError::sync(&temporary))?;
        disk.rename(&temporary, &path).map_err(io())?;
        disk.sync_dir(dir).map_err(LogError::sync(dir))
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut text = format!("0\n{}\n", self.entries.len());
        for (epoch, start) in &self.entries {
            text.push_str(&format!("{epoch} {start}\n"));
        }
        text
    }

    fn parse(text: &str) -> Option<Epochs> {
        let mut lines = text.lines();
        if lines.next()? != "0" {
            return None;
        }
        let count: usize = lines.next()?.parse().ok()?;
        let entries: Vec<_> = lines.map(entry).collect::<Option<_>>()?;
        let rising = entries.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1);
        (rising && entries.len() == count).then_some(Epochs { entries })
    }

    /// All of them.
    pub fn entries(&self) -> &[(i32, Offset)] {
        &self.entries
    }

    /// The epoch of the last entry.
    pub fn last(&self) -> Option<i32> {
        self.entries.last().map(|entry| entry.0)
    }

    /// The epoch that the record at this offset has or would have.
    pub fn at(&self, offset: Offset) -> Option<i32> {
        let count = self.entries.partition_point(|entry| entry.1 <= offset);
        count.checked_sub(1).map(|last| self.entries[last].0)
    }

    /// A higher epoch begins. An epoch without any record gives way to it.
    pub fn begin(&mut self, epoch: i32, start: Offset) {
        assert!(self.last().is_none_or(|last| last < epoch), "the leader epoch never falls");
        self.cut(start);
        self.entries.push((epoch, start));
    }

    /// Forgets the epochs that have no record below `end`. Tells whether there were any.
    pub fn cut(&mut self, end: Offset) -> bool {
        let keep = self.entries.partition_point(|entry| entry.1 < end);
        let cut = keep < self.entries.len();
        self.entries.truncate(keep);
        cut
    }

    /// The greatest epoch that is not above `epoch`, and the offset behind its last record.
    pub fn end_of(&self, epoch: i32, end: Offset) -> Option<(i32, Offset)> {
        let count = self.entries.partition_point(|entry| entry.0 <= epoch);
        let found = self.entries[count.checked_sub(1)?];
        Some((found.0, self.entries.get(count).map_or(end, |next| next.1)))
    }
}

fn entry(line: &str) -> Option<(i32, Offset)> {
    let (epoch, start) = line.split_once(' ')?;
    Some((epoch.parse().ok()?, Offset::new(start.parse().ok()?)?))
}
