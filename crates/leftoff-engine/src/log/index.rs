//! The two sparse index files of a segment. Both are hints: whoever uses an entry checks the batch it names.
//!
//! Look-ups search the file in place, so an index costs no memory but for the entries that are not written yet.

use std::io;
use std::sync::Arc;

use super::window::read_exact;
use crate::disk::DiskFile;

/// How many entries are read at once where all are looked at.
const STEP_ENTRIES: usize = 4096;

/// A place in the offset index: a batch, by its last offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OffsetEntry {
    /// The last offset of the batch, less the segment's base offset.
    pub relative_offset: u32,
    /// Where the batch begins in the segment file.
    pub position_bytes: u32,
}

/// A step of the time index: the greatest timestamp of the segment so far, and the batch that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeEntry {
    /// Milliseconds since 1970.
    pub timestamp_ms: i64,
    /// The last offset of the batch, less the segment's base offset.
    pub relative_offset: u32,
}

/// An entry of fixed size, big endian.
pub(super) trait Entry: Copy {
    /// Bytes of one entry.
    const BYTES: usize;
    /// Whether it can be the entry behind `before`.
    fn follows(&self, before: &Self) -> bool;
    /// Appends the entry's bytes.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads an entry from exactly `BYTES` bytes.
    fn decode(bytes: &[u8]) -> Self;
}

impl Entry for OffsetEntry {
    const BYTES: usize = 8;

    fn follows(&self, before: &OffsetEntry) -> bool {
        self.relative_offset > before.relative_offset && self.position_bytes > before.position_bytes
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.relative_offset.to_be_bytes());
        out.extend_from_slice(&self.position_bytes.to_be_bytes());
    }

    fn decode(bytes: &[u8]) -> OffsetEntry {
        OffsetEntry { relative_offset: u32_at(bytes, 0), position_bytes: u32_at(bytes, 4) }
    }
}

impl Entry for TimeEntry {
    const BYTES: usize = 12;

    fn follows(&self, before: &TimeEntry) -> bool {
        self.relative_offset > before.relative_offset && self.timestamp_ms > before.timestamp_ms
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp_ms.to_be_bytes());
        out.extend_from_slice(&self.relative_offset.to_be_bytes());
    }

    fn decode(bytes: &[u8]) -> TimeEntry {
        let high = u64::from(u32_at(bytes, 0)) << 32;
        let timestamp = high | u64::from(u32_at(bytes, 4));
        TimeEntry { timestamp_ms: timestamp.cast_signed(), relative_offset: u32_at(bytes, 8) }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes were sliced"))
}

/// An index: entries in the file, then entries that wait to be written.
#[derive(Debug)]
pub(super) struct Index<E> {
    file: Option<Arc<dyn DiskFile>>,
    on_file: u64,
    waiting: Vec<E>,
}

impl<E: Entry> Index<E> {
    /// The index in this file. A rest that is no whole entry is ignored.
    pub fn on_file(file: Arc<dyn DiskFile>) -> io::Result<Index<E>> {
        let on_file = file.len()? / E::BYTES as u64;
        Ok(Index { file: Some(file), on_file, waiting: Vec::new() })
    }

    /// An index in memory only, for who must not write.
    pub fn in_memory() -> Index<E> {
        Index { file: None, on_file: 0, waiting: Vec::new() }
    }

    pub fn file(&self) -> Option<&Arc<dyn DiskFile>> {
        self.file.as_ref()
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn push(&mut self, entry: E) {
        self.waiting.push(entry);
    }

    pub fn len(&self) -> u64 {
        self.on_file + self.waiting.len() as u64
    }

    /// The entry with this number, if there is one.
    pub fn get(&self, at: u64) -> io::Result<Option<E>> {
        if let Some(waiting) = at.checked_sub(self.on_file) {
            return Ok(usize::try_from(waiting).ok().and_then(|at| self.waiting.get(at)).copied());
        }
        let file = self.file.as_ref().expect("only an index with a file has entries on file");
        let mut buffer = [0; 16];
        let bytes = &mut buffer[..E::BYTES];
        let read = file.read_at(bytes, at * E::BYTES as u64)?;
        Ok((read == E::BYTES).then(|| E::decode(bytes)))
    }

    /// The last entry.
    pub fn last(&self) -> io::Result<Option<E>> {
        match self.len() {
            0 => Ok(None),
            count => self.get(count - 1),
        }
    }

    /// The last entry that `holds` is true for, if it is true for a first part of the entries and false for the rest.
    pub fn last_where(&self, holds: impl Fn(&E) -> bool) -> io::Result<Option<E>> {
        match self.count_where(holds)? {
            0 => Ok(None),
            count => self.get(count - 1),
        }
    }

    /// How many entries that part has.
    pub fn count_where(&self, holds: impl Fn(&E) -> bool) -> io::Result<u64> {
        if self.waiting.first().is_some_and(&holds) {
            return Ok(self.on_file + self.waiting.partition_point(&holds) as u64);
        }
        let (mut low, mut high) = (0, self.on_file);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle)? {
                Some(entry) if holds(&entry) => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Whether all entries on file rise: what a power cut tore does not. Reads the file in steps.
    pub fn is_rising(&self) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(true) };
        let mut before: Option<E> = None;
        let mut step = vec![0; STEP_ENTRIES * E::BYTES];
        let (mut position_bytes, end_bytes) = (0, self.on_file * E::BYTES as u64);
        while position_bytes < end_bytes {
            let left = usize::try_from(end_bytes - position_bytes).unwrap_or(usize::MAX);
            let take = step.len().min(left);
            read_exact(&**file, &mut step[..take], position_bytes)?;
            for entry in step[..take].chunks_exact(E::BYTES).map(E::decode) {
                if before.is_some_and(|before| !entry.follows(&before)) {
                    return Ok(false);
                }
                before = Some(entry);
            }
            position_bytes += take as u64;
        }
        Ok(true)
    }

    /// Forgets the entries from number `count` on, in the file too.
    pub fn truncate(&mut self, count: u64) -> io::Result<()> {
        if let Some(file) = &self.file {
            self.on_file = self.on_file.min(count);
            let bytes = self.on_file * E::BYTES as u64;
            if file.len()? != bytes {
                file.set_len(bytes)?;
            }
        }
        self.waiting.truncate(usize::try_from(count - self.on_file.min(count)).unwrap_or(usize::MAX));
        Ok(())
    }

    /// Writes the entries that wait. Nothing is lost if it fails: they wait on.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(self.waiting.len() * E::BYTES);
        self.waiting.iter().for_each(|entry| entry.encode(&mut bytes));
        file.write_all_at(&bytes, self.on_file * E::BYTES as u64)?;
        self.on_file += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

/// Decides which batches of a segment get an entry, as Kafka's `LogSegment.append` does.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexRule {
    interval_bytes: u32,
    since_entry_bytes: u64,
    greatest: Option<TimeEntry>,
    time_entry_due: bool,
}

/// What is known of a batch when it is indexed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Indexed {
    /// The last offset, less the segment's base offset.
    pub relative_offset: u32,
    /// Where it begins.
    pub position_bytes: u32,
    /// Its size.
    pub size_bytes: u64,
    /// Its greatest timestamp.
    pub max_timestamp_ms: i64,
}

impl IndexRule {
    pub fn new(interval_bytes: u32) -> IndexRule {
        IndexRule { interval_bytes, since_entry_bytes: 0, greatest: None, time_entry_due: false }
    }

    /// Goes on behind an entry that is in the time index already.
    pub fn resume(&mut self, last: Option<TimeEntry>) {
        self.greatest = last;
        self.time_entry_due = false;
    }

    /// The batch that has the offset entry from which the count of bytes starts anew.
    pub fn entry_is_there(&mut self, batch: Indexed) {
        self.see_time(batch);
        self.since_entry_bytes = batch.size_bytes;
    }

    /// Takes a batch and pushes the entries that are due.
    pub fn add(&mut self, batch: Indexed, offsets: &mut Index<OffsetEntry>, times: &mut Index<TimeEntry>) {
        self.see_time(batch);
        if self.since_entry_bytes > u64::from(self.interval_bytes) {
            let Indexed { relative_offset, position_bytes, .. } = batch;
            offsets.push(OffsetEntry { relative_offset, position_bytes });
            self.push_time(times);
            self.since_entry_bytes = 0;
        }
        self.since_entry_bytes += batch.size_bytes;
    }

    /// The time entry that a segment gets when nothing more will be appended to it.
    pub fn push_time(&mut self, times: &mut Index<TimeEntry>) {
        if let Some(entry) = self.greatest.filter(|_| self.time_entry_due) {
            times.push(entry);
            self.time_entry_due = false;
        }
    }

    fn see_time(&mut self, batch: Indexed) {
        let above = self.greatest.is_none_or(|greatest| batch.max_timestamp_ms > greatest.timestamp_ms);
        // −1 is Kafka's "no timestamp".
        if above && batch.max_timestamp_ms >= 0 {
            self.greatest = Some(TimeEntry {
                timestamp_ms: batch.max_timestamp_ms,
                relative_offset: batch.relative_offset,
            });
            self.time_entry_due = true;
        }
    }
}
