//! The marks file: for each partition the synced end, in two checksummed slots.
//!
//! Bytes and rules are in `docs/on-disk.md`. One slot of each entry is known to be on disk; only the other is
//! written, so that a power cut at any byte leaves one whole slot. The header carries two round numbers, the first
//! written before the entries of a round and the second after them, with a sum over all entries: a reader in another
//! process that finds both equal, before and after reading, and the sum right, holds the ends of one moment. After a power
//! cut the round numbers alone would not tell, since each slot survives, or not, by itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use leftoff_wire::{Offset, Uuid, crc32c};

use crate::broker::PartitionId;
use crate::disk::{Disk, DiskFile, OpenHow};
use crate::log::Mark;

/// Name of the file in the data directory.
pub const MARKS_FILE: &str = "marks";

const MAGIC: &[u8; 8] = b"LEFTOFFM";
const VERSION: u32 = 1;
const HEADER_BYTES: u64 = 64;
const SLOT_BYTES: usize = 64;
const ENTRY_BYTES: u64 = 2 * SLOT_BYTES as u64;
/// The most partitions of a directory: a file that claims more of them is none of ours, and is not read.
const MAX_ENTRIES: u64 = 1 << 22;
/// Where the round whose entries are being written stands in the header.
const ROUND_BEGUN_AT: u64 = 16;
/// Where the round whose entries are all written stands in the header, and behind it the sum of the newest slots'
/// checksums.
const ROUND_ENDED_AT: u64 = 24;
/// Where the header says whether the writer stopped cleanly: nothing in the page cache was still to be synced.
const CLEAN_AT: u64 = 40;

/// Why the marks file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MarksError {
    /// The file is not a marks file of a version we know.
    #[error("{MARKS_FILE}: {found}; expected the marks file of format {VERSION}; run `leftoff doctor`")]
    Foreign {
        /// What stands there instead.
        found: String,
    },
    /// The disk failed.
    #[error("{MARKS_FILE}: {0}")]
    Io(#[from] std::io::Error),
}

/// The marks of a directory that this process writes.
#[derive(Debug)]
pub struct Marks {
    file: Arc<dyn DiskFile>,
    entries: BTreeMap<PartitionId, Entry>,
    /// Entry numbers that belong to no live partition.
    free: Vec<u64>,
    next_entry: u64,
    /// Entries whose working slot was written since the last sync was begun.
    written: Vec<PartitionId>,
    /// Entries that the sync under way covers.
    being_synced: Vec<PartitionId>,
    round: u64,
    /// The checksum of each entry's newest slot, by the entry's number; 0 where none is valid.
    newest: Vec<u32>,
    sum: u64,
    /// Whether the header fits the entries.
    whole: bool,
    /// Whether the writer before us stopped cleanly.
    was_clean: bool,
}

#[derive(Debug, Clone)]
struct Entry {
    number: u64,
    seq: u64,
    /// Which of the two slots is on disk whole.
    synced_slot: u8,
    mark: Mark,
}

impl Marks {
    /// Makes the file of a new directory; synced by the caller with the folder.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn create(disk: &Arc<dyn Disk>) -> Result<Marks, MarksError> {
        let file = disk.open(Path::new(MARKS_FILE), OpenHow::CreateOrTruncate)?;
        let mut header = [0u8; HEADER_BYTES as usize];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_be_bytes());
        file.write_all_at(&header, 0)?;
        file.sync_data()?;
        Ok(Marks {
            file,
            entries: BTreeMap::new(),
            free: Vec::new(),
            next_entry: 0,
            written: Vec::new(),
            being_synced: Vec::new(),
            round: 0,
            newest: Vec::new(),
            sum: 0,
            whole: true,
            was_clean: true,
        })
    }

    /// Opens the file to go on writing it.
    ///
    /// # Errors
    /// [`MarksError`]; a partition without a valid slot is simply absent from [`Marks::get`].
    pub fn open(disk: &Arc<dyn Disk>) -> Result<Marks, MarksError> {
        let file = disk.open(Path::new(MARKS_FILE), OpenHow::Write)?;
        let read = ReadMarks::from_file(&*file)?;
        let mut entries: BTreeMap<PartitionId, Entry> = BTreeMap::new();
        let mut free = Vec::new();
        for found in read.entries {
            let entry =
                Entry { number: found.number, seq: found.seq, synced_slot: found.slot, mark: found.mark };
            match entries.get_mut(&found.partition) {
                Some(known) if known.seq >= entry.seq => free.push(entry.number),
                Some(known) => {
                    free.push(known.number);
                    *known = entry;
                }
                None => {
                    entries.insert(found.partition, entry);
                }
            }
        }
        free.extend(read.unreadable);
        let mut clean = [0];
        file.read_at(&mut clean, CLEAN_AT)?;
        file.write_all_at(&[0], CLEAN_AT)?;
        // The newest slot may be in the page cache only, and after a failed sync the cache calls it clean. Written
        // again in place and synced, it is on disk, and the other slot was not touched meanwhile.
        for (partition, entry) in &entries {
            let (slot, _) = encode_slot(partition, entry.seq, &entry.mark);
            file.write_all_at(&slot, slot_position(entry.number, entry.synced_slot))?;
        }
        file.sync_data()?;
        Ok(Marks {
            file,
            entries,
            free,
            next_entry: read.next_entry,
            written: Vec::new(),
            being_synced: Vec::new(),
            round: read.round,
            newest: read.newest,
            sum: read.sum,
            whole: read.whole,
            was_clean: clean == [1],
        })
    }

    /// False after a stop that may have left writes, or cuts, in the page cache only.
    pub fn was_clean(&self) -> bool {
        self.was_clean
    }

    /// A clean stop: syncs, then says so in the header. That byte needs no sync: a power cut takes the page cache with it.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn close(&mut self) -> std::io::Result<()> {
        self.sync_now()?;
        self.file.write_all_at(&[1], CLEAN_AT)
    }

    /// False when a crash left the ends of more than one moment: then a round must be written, even an empty one, before
    /// the entries can be told to belong together.
    pub fn is_of_one_moment(&self) -> bool {
        self.whole
    }

    /// The synced end of a partition, if it has a valid slot.
    pub fn get(&self, partition: &PartitionId) -> Option<Mark> {
        self.entries.get(partition).map(|entry| entry.mark)
    }

    /// Every partition's synced end.
    pub fn ends(&self) -> BTreeMap<PartitionId, Mark> {
        self.entries.iter().map(|(partition, entry)| (*partition, entry.mark)).collect()
    }

    /// Gives up the entries of all partitions but those that `live` names.
    pub fn retain(&mut self, live: impl Fn(&PartitionId) -> bool) {
        let free = &mut self.free;
        self.entries.retain(|partition, entry| {
            let keep = live(partition);
            if !keep {
                free.push(entry.number);
            }
            keep
        });
    }

    /// Gives new partitions their entries. [`Marks::sync_added`] must follow before the record that creates them.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn add(&mut self, partitions: &[(PartitionId, Mark)]) -> std::io::Result<()> {
        self.begin_writing()?;
        for (partition, mark) in partitions {
            let number = self.free.pop().unwrap_or_else(|| {
                self.next_entry += 1;
                self.next_entry - 1
            });
            let mut entry = Entry { number, seq: 0, synced_slot: 1, mark: *mark };
            // An entry that is used again has slots of another partition, whose numbers may be higher: both go.
            self.file.write_all_at(&[0; SLOT_BYTES], slot_position(number, entry.synced_slot))?;
            self.write_slot(partition, &mut entry)?;
            entry.synced_slot = 0;
            self.entries.insert(*partition, entry);
        }
        self.end_writing()
    }

    /// Syncs what [`Marks::add`] has written.
    ///
    /// # Errors
    /// When the disk fails: then nothing is known any more of what the file had not synced before, either.
    pub fn sync_added(&self) -> std::io::Result<()> {
        self.file.sync_data()
    }

    /// Writes the new ends of one finished round. Nothing waits for these bytes to be on disk.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn write_round(&mut self, ends: &[(PartitionId, Mark)]) -> std::io::Result<()> {
        self.begin_writing()?;
        for (partition, mark) in ends {
            let Some(mut entry) = self.entries.get(partition).cloned() else { continue };
            entry.mark = *mark;
            self.write_slot(partition, &mut entry)?;
            self.entries.insert(*partition, entry);
            self.written.push(*partition);
        }
        self.end_writing()
    }

    fn begin_writing(&mut self) -> std::io::Result<()> {
        self.round += 1;
        self.file.write_all_at(&self.round.to_be_bytes(), ROUND_BEGUN_AT)
    }

    fn end_writing(&mut self) -> std::io::Result<()> {
        let mut ended = [0; 16];
        ended[..8].copy_from_slice(&self.round.to_be_bytes());
        ended[8..].copy_from_slice(&self.sum.to_be_bytes());
        self.file.write_all_at(&ended, ROUND_ENDED_AT)?;
        self.whole = true;
        Ok(())
    }

    fn write_slot(&mut self, partition: &PartitionId, entry: &mut Entry) -> std::io::Result<()> {
        entry.seq += 1;
        let (slot, checksum) = encode_slot(partition, entry.seq, &entry.mark);
        let working = 1 - entry.synced_slot;
        self.file.write_all_at(&slot, slot_position(entry.number, working))?;
        let number = usize::try_from(entry.number).expect("entries are few enough to be held in memory");
        if self.newest.len() <= number {
            self.newest.resize(number + 1, 0);
        }
        self.sum = self.sum - u64::from(self.newest[number]) + u64::from(checksum);
        self.newest[number] = checksum;
        Ok(())
    }

    /// The file, to be put into a sync that covers everything written so far; [`Marks::synced`] must follow.
    pub fn begin_sync(&mut self) -> Arc<dyn DiskFile> {
        self.being_synced = std::mem::take(&mut self.written);
        self.file.clone()
    }

    /// The sync that [`Marks::begin_sync`] went into has finished: those entries swap their slots' roles. Marks are
    /// written only when a round finishes, so none can have been written again while that sync was under way.
    pub fn synced(&mut self) {
        assert!(self.written.is_empty(), "marks were written while they were being synced");
        let mut swapped = std::mem::take(&mut self.being_synced);
        swapped.sort_unstable();
        swapped.dedup();
        for partition in swapped {
            if let Some(entry) = self.entries.get_mut(&partition) {
                entry.synced_slot = 1 - entry.synced_slot;
            }
        }
    }

    /// Syncs now, blocking: at a start.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sync_now(&mut self) -> std::io::Result<()> {
        let file = self.begin_sync();
        file.sync_data()?;
        self.synced();
        Ok(())
    }

    /// True when slots were written that no sync has covered.
    pub fn is_dirty(&self) -> bool {
        !self.written.is_empty()
    }
}

fn slot_position(entry: u64, slot: u8) -> u64 {
    HEADER_BYTES + entry * ENTRY_BYTES + u64::from(slot) * SLOT_BYTES as u64
}

fn encode_slot(partition: &PartitionId, seq: u64, mark: &Mark) -> ([u8; SLOT_BYTES], u32) {
    let mut slot = [0u8; SLOT_BYTES];
    slot[4..12].copy_from_slice(&seq.to_be_bytes());
    slot[12..28].copy_from_slice(partition.topic_id.as_bytes());
    slot[28..32].copy_from_slice(&partition.partition.to_be_bytes());
    slot[32..40].copy_from_slice(&mark.segment_base.get().to_be_bytes());
    slot[40..48].copy_from_slice(&mark.end.get().to_be_bytes());
    slot[48..56].copy_from_slice(&mark.position_bytes.to_be_bytes());
    let crc = crc32c(&slot[4..]);
    slot[..4].copy_from_slice(&crc.to_be_bytes());
    (slot, crc)
}

/// What a marks file says, read without writing to it.
#[derive(Debug)]
pub struct ReadMarks {
    /// The number of the last round of which every entry is in.
    pub round: u64,
    /// False when the writer was (or died) in the middle of writing a round's entries, or a power cut left some of them.
    pub whole: bool,
    entries: Vec<Found>,
    unreadable: Vec<u64>,
    next_entry: u64,
    newest: Vec<u32>,
    sum: u64,
}

#[derive(Debug)]
struct Found {
    number: u64,
    slot: u8,
    seq: u64,
    partition: PartitionId,
    mark: Mark,
}

impl ReadMarks {
    /// Reads the file of a directory that another process may be writing. Tries again, a bounded number of times,
    /// until the ends are of one moment; what stays torn because the writer died has `whole` false.
    ///
    /// # Errors
    /// [`MarksError`].
    pub fn read(disk: &Arc<dyn Disk>) -> Result<ReadMarks, MarksError> {
        const ATTEMPTS: u32 = 100;
        let file = disk.open(Path::new(MARKS_FILE), OpenHow::Read)?;
        let mut read = ReadMarks::from_file(&*file)?;
        for _ in 0..ATTEMPTS {
            if read.whole {
                break;
            }
            read = ReadMarks::from_file(&*file)?;
        }
        Ok(read)
    }

    /// Each partition's newest valid mark.
    pub fn ends(&self) -> BTreeMap<PartitionId, Mark> {
        let mut ends: BTreeMap<PartitionId, (u64, Mark)> = BTreeMap::new();
        for found in &self.entries {
            let end = ends.entry(found.partition).or_insert((found.seq, found.mark));
            if found.seq > end.0 {
                *end = (found.seq, found.mark);
            }
        }
        ends.into_iter().map(|(partition, (_, mark))| (partition, mark)).collect()
    }

    fn from_file(file: &dyn DiskFile) -> Result<ReadMarks, MarksError> {
        let mut header = [0u8; HEADER_BYTES as usize];
        let got = file.read_at(&mut header, 0)?;
        if got < header.len() || &header[..8] != MAGIC {
            return Err(MarksError::Foreign {
                found: format!("{got} bytes that do not begin with LEFTOFFM"),
            });
        }
        let version = u32::from_be_bytes(header[8..12].try_into().expect("four bytes"));
        if version != VERSION {
            return Err(MarksError::Foreign { found: format!("format version {version}") });
        }
        let len_bytes = file.len()?;
        if len_bytes > HEADER_BYTES + MAX_ENTRIES * ENTRY_BYTES {
            return Err(MarksError::Foreign {
                found: format!("{len_bytes} bytes, more than all partitions take"),
            });
        }
        let begun = be_u64(&header[ROUND_BEGUN_AT as usize..]);
        let ended = be_u64(&header[ROUND_ENDED_AT as usize..]);
        let sum = be_u64(&header[ROUND_ENDED_AT as usize + 8..]);
        let mut read = ReadMarks {
            round: ended,
            whole: begun == ended,
            entries: Vec::new(),
            unreadable: Vec::new(),
            next_entry: 0,
            newest: Vec::new(),
            sum: 0,
        };
        let mut buffer = vec![0u8; 512 * ENTRY_BYTES as usize];
        let mut position = HEADER_BYTES;
        loop {
            let got = file.read_at(&mut buffer, position)?;
            for bytes in buffer[..got].chunks(ENTRY_BYTES as usize) {
                read.take_entry(bytes);
            }
            position += got as u64;
            if got < buffer.len() {
                break;
            }
        }
        let mut after = [0u8; 8];
        file.read_at(&mut after, ROUND_BEGUN_AT)?;
        read.whole &= u64::from_be_bytes(after) == begun && read.sum == sum;
        Ok(read)
    }

    fn take_entry(&mut self, bytes: &[u8]) {
        let number = self.next_entry;
        self.next_entry += 1;
        let newest = bytes
            .chunks(SLOT_BYTES)
            .zip(0u8..)
            .filter_map(|(slot, which)| {
                decode_slot(slot).map(|(seq, partition, mark)| (seq, which, partition, mark))
            })
            .max_by_key(|(seq, ..)| *seq);
        let mut checksum = 0;
        match newest {
            Some((seq, slot, partition, mark)) => {
                let at = usize::from(slot) * SLOT_BYTES;
                checksum = u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
                self.entries.push(Found { number, slot, seq, partition, mark });
            }
            None => self.unreadable.push(number),
        }
        self.newest.push(checksum);
        self.sum += u64::from(checksum);
    }
}

fn decode_slot(slot: &[u8]) -> Option<(u64, PartitionId, Mark)> {
    if slot.len() < SLOT_BYTES || crc32c(&slot[4..]).to_be_bytes() != slot[..4] {
        return None;
    }
    let topic_id = Uuid::from_bytes(slot[12..28].try_into().expect("sixteen bytes"));
    let partition = i32::from_be_bytes(slot[28..32].try_into().expect("four bytes"));
    let mark = Mark {
        segment_base: Offset::new(be_u64(&slot[32..]) as i64)?,
        end: Offset::new(be_u64(&slot[40..]) as i64)?,
        position_bytes: be_u64(&slot[48..]),
    };
    Some((be_u64(&slot[4..]), PartitionId { topic_id, partition }, mark))
}

fn be_u64(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"))
}
