//! Sorts any number of small records in bounded memory: full buffers go to a temporary file as sorted runs, which are
//! merged when they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::mem::size_of;
use std::path::Path;
use std::slice;

/// With so many runs they are merged into one before the next is written, so that reading them stays bounded.
const MAX_RUNS: usize = 256;

/// Bytes that a merge reads ahead in each run.
const READ_AHEAD_BYTES: (usize, usize) = (4 << 10, 64 << 10);

/// A record of fixed size. Its bytes are read by the process that wrote them and by nobody else.
pub(crate) trait Record: Ord + Copy {
    const BYTES: usize;
    fn put(&self, out: &mut Vec<u8>);
    fn get(bytes: &mut Fields<'_>) -> Self;
}

/// Reads the fields of a record one after the other.
pub(crate) struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_first_chunk().expect("a run holds whole records");
        self.0 = rest;
        *head
    }
    pub(crate) fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.array())
    }
    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }
    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }
    pub(crate) fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.array())
    }
}

/// Takes records in any order.
pub(crate) struct Sorter<'a, T> {
    buffer: Vec<T>,
    limit_records: usize,
    temp_dir: Option<&'a Path>,
    spill: Option<Spill>,
}

pub(crate) struct Spill {
    file: File,
    runs: Vec<Run>,
}

#[derive(Clone, Copy)]
struct Run {
    from_bytes: u64,
    to_bytes: u64,
}

impl<'a, T: Record> Sorter<'a, T> {
    pub(crate) fn new(limit_bytes: usize, temp_dir: Option<&'a Path>) -> Sorter<'a, T> {
        let limit_records = (limit_bytes / size_of::<T>()).max(1);
        Sorter { buffer: Vec::new(), limit_records, temp_dir, spill: None }
    }

    pub(crate) fn push(&mut self, record: T) -> io::Result<()> {
        if self.buffer.len() == self.limit_records {
            self.spill_buffer()?;
        }
        self.buffer.push(record);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<Sorted<T>> {
        if self.spill.is_none() {
            self.buffer.sort_unstable();
            return Ok(Sorted::InMemory(self.buffer));
        }
        self.spill_buffer()?;
        let spill = self.spill.expect("it was there above");
        Ok(Sorted::InFile { spill, read_ahead_bytes: self.limit_records * size_of::<T>() })
    }

    fn spill_buffer(&mut self) -> io::Result<()> {
        self.buffer.sort_unstable();
        if self.spill.as_ref().is_some_and(|spill| spill.runs.len() >= MAX_RUNS) {
            self.merge_runs()?;
        }
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill { file: temporary(self.temp_dir)?, runs: Vec::new() }),
        };
        let mut writer = RunWriter::at_end_of(spill);
        for record in &self.buffer {
            writer.push(record)?;
        }
        let run = writer.finish()?;
        spill.runs.push(run);
        self.buffer.clear();
        Ok(())
    }

    fn merge_runs(&mut self) -> io::Result<()> {
        let Some(old) = self.spill.take() else { return Ok(()) };
        let mut new = Spill { file: temporary(self.temp_dir)?, runs: Vec::new() };
        let mut merge = Merge::<T>::new(&old, READ_AHEAD_BYTES.0 * MAX_RUNS)?;
        let mut writer = RunWriter::at_end_of(&new);
        while let Some(record) = merge.next()? {
            writer.push(&record)?;
        }
        let run = writer.finish()?;
        new.runs.push(run);
        self.spill = Some(new);
        Ok(())
    }
}

fn temporary(dir: Option<&Path>) -> io::Result<File> {
    match dir {
        Some(dir) => tempfile::tempfile_in(dir),
        None => tempfile::tempfile(),
    }
}

struct RunWriter<'a> {
    file: BufWriter<&'a File>,
    run: Run,
    bytes: Vec<u8>,
}

impl<'a> RunWriter<'a> {
    fn at_end_of(spill: &'a Spill) -> RunWriter<'a> {
        let end = spill.runs.last().map_or(0, |run| run.to_bytes);
        let run = Run { from_bytes: end, to_bytes: end };
        RunWriter { file: BufWriter::with_capacity(64 << 10, &spill.file), run, bytes: Vec::new() }
    }

    fn push<T: Record>(&mut self, record: &T) -> io::Result<()> {
        if self.run.from_bytes == self.run.to_bytes {
            self.file.seek(SeekFrom::Start(self.run.from_bytes))?;
        }
        self.bytes.clear();
        record.put(&mut self.bytes);
        assert_eq!(self.bytes.len(), T::BYTES, "a record has its fixed size");
        self.run.to_bytes += T::BYTES as u64;
        self.file.write_all(&self.bytes)
    }

    fn finish(mut self) -> io::Result<Run> {
        self.file.flush()?;
        Ok(self.run)
    }
}

/// Sorted records, which can be read more than once.
pub(crate) enum Sorted<T> {
    InMemory(Vec<T>),
    InFile { spill: Spill, read_ahead_bytes: usize },
}

impl<T: Record> Sorted<T> {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Sorted::InMemory(records) if records.is_empty())
    }

    pub(crate) fn cursor(&self) -> io::Result<Cursor<'_, T>> {
        let mut source = match self {
            Sorted::InMemory(records) => Source::InMemory(records.iter()),
            Sorted::InFile { spill, read_ahead_bytes } => {
                Source::Merge(Merge::new(spill, *read_ahead_bytes)?)
            }
        };
        let head = source.next()?;
        Ok(Cursor { source, head })
    }
}

/// Reads sorted records, with a view of the next one.
pub(crate) struct Cursor<'a, T> {
    source: Source<'a, T>,
    head: Option<T>,
}

impl<T: Record> Cursor<'_, T> {
    pub(crate) fn peek(&self) -> Option<&T> {
        self.head.as_ref()
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<T>> {
        let next = self.source.next()?;
        Ok(std::mem::replace(&mut self.head, next))
    }

    pub(crate) fn next_if(&mut self, wanted: impl FnOnce(&T) -> bool) -> io::Result<Option<T>> {
        if self.head.as_ref().is_some_and(wanted) { self.next() } else { Ok(None) }
    }
}

enum Source<'a, T> {
    InMemory(slice::Iter<'a, T>),
    Merge(Merge<'a, T>),
}

impl<T: Record> Source<'_, T> {
    fn next(&mut self) -> io::Result<Option<T>> {
        match self {
            Source::InMemory(records) => Ok(records.next().copied()),
            Source::Merge(merge) => merge.next(),
        }
    }
}

struct Merge<'a, T> {
    file: &'a File,
    runs: Vec<RunReader>,
    heads: BinaryHeap<Reverse<(T, usize)>>,
}

impl<'a, T: Record> Merge<'a, T> {
    fn new(spill: &'a Spill, memory_bytes: usize) -> io::Result<Merge<'a, T>> {
        let (least, most) = READ_AHEAD_BYTES;
        let chunk = (memory_bytes / spill.runs.len().max(1)).clamp(least, most);
        let chunk = (chunk / T::BYTES).max(1) * T::BYTES;
        let runs = spill.runs.iter().map(|run| RunReader::new(*run, chunk)).collect();
        let mut merge = Merge { file: &spill.file, runs, heads: BinaryHeap::new() };
        for index in 0..merge.runs.len() {
            merge.refill(index)?;
        }
        Ok(merge)
    }

    fn refill(&mut self, index: usize) -> io::Result<()> {
        if let Some(record) = self.runs[index].next(self.file)? {
            self.heads.push(Reverse((record, index)));
        }
        Ok(())
    }

    fn next(&mut self) -> io::Result<Option<T>> {
        let Some(mut top) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((record, index)) = *top;
        match self.runs[index].next::<T>(self.file)? {
            Some(following) => *top = Reverse((following, index)),
            None => {
                std::collections::binary_heap::PeekMut::pop(top);
            }
        }
        Ok(Some(record))
    }
}

struct RunReader {
    run: Run,
    chunk_bytes: usize,
    buffer: Vec<u8>,
    at: usize,
}

impl RunReader {
    fn new(run: Run, chunk_bytes: usize) -> RunReader {
        RunReader { run, chunk_bytes, buffer: Vec::new(), at: 0 }
    }

    fn next<T: Record>(&mut self, mut file: &File) -> io::Result<Option<T>> {
        if self.at == self.buffer.len() {
            let left = self.run.to_bytes - self.run.from_bytes;
            let bytes = left.min(self.chunk_bytes as u64);
            self.buffer.resize(bytes as usize, 0);
            file.seek(SeekFrom::Start(self.run.from_bytes))?;
            file.read_exact(&mut self.buffer)?;
            self.run.from_bytes += bytes;
            self.at = 0;
        }
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let record = T::get(&mut Fields(&self.buffer[self.at..]));
        self.at += T::BYTES;
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests;
