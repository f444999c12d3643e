//! A snapshot of the offsets log: it makes a start quick, and nothing depends on it.
//!
//! It holds the newest record of each key, as it stands in the log, so that loading it is the same replay as reading
//! the log. Only what is on disk goes into it. Whatever is wrong with the file, the log is read instead.

use std::path::Path;
use std::sync::Arc;

use leftoff_wire::record_batch::{Batch, BatchBuilder, BatchHeader, HEADER_BYTES, Limits};
use leftoff_wire::{Offset, crc32c};

use crate::broker::directory::write_whole;
use crate::coordinator::Coordinator;
use crate::disk::{Disk, DiskFile, OpenHow};
use crate::log::{Log, LogError, ReadBatch};

/// The file in the data directory.
pub const SNAPSHOT_FILE: &str = "offsets.snapshot";

const MAGIC: &[u8; 8] = b"LEFTOFFS";
const VERSION: u32 = 1;
/// Magic, version, checksum (see [`chained`]), the offset up to which it speaks, the number of records.
const SNAPSHOT_HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 8;
const RECORDS_PER_BATCH: usize = 500;
/// A batch of ours is far smaller; more is not read.
const BATCH_LIMIT_BYTES: usize = 64 * 1024 * 1024;

/// Writes a snapshot of everything below the offsets log's high watermark, which the coordinator must be at.
///
/// # Errors
/// When the log cannot be read or the disk fails. The old snapshot stays good.
pub fn write(disk: &Arc<dyn Disk>, log: &Log, coordinator: &Coordinator) -> Result<Offset, LogError> {
    let next = log.high_watermark();
    let newest = coordinator.newest_records();
    let mut out = vec![0; SNAPSHOT_HEADER_BYTES];
    let mut batches = Vec::new();
    for offsets in newest.chunks(RECORDS_PER_BATCH) {
        batches.extend(records_of(log, offsets)?);
    }
    out[..8].copy_from_slice(MAGIC);
    out[8..12].copy_from_slice(&VERSION.to_be_bytes());
    out[16..24].copy_from_slice(&next.get().to_be_bytes());
    out[24..32].copy_from_slice(&(newest.len() as u64).to_be_bytes());
    let crc = batches.iter().fold(crc32c(&out[16..SNAPSHOT_HEADER_BYTES]), |crc, batch| chained(crc, batch));
    out[12..16].copy_from_slice(&crc.to_be_bytes());
    out.extend(batches.concat());
    let path = Path::new(SNAPSHOT_FILE);
    write_whole(disk, path, &out).map_err(|source| LogError::Io {
        action: "write",
        path: path.to_owned(),
        source,
    })?;
    Ok(next)
}

/// The records at these rising offsets, as batches with gaps.
fn records_of(log: &Log, offsets: &[Offset]) -> Result<Vec<Vec<u8>>, LogError> {
    let mut batches = Vec::new();
    let mut batch = BatchBuilder::default();
    let mut base = offsets[0];
    let mut wanted = offsets.iter().copied().peekable();
    while let Some(first) = wanted.peek().copied() {
        let Some(step) = log.read_batches(first).next() else { break };
        let ReadBatch::Batch { bytes: found, .. } = step? else { break };
        let malformed = |why: String| LogError::Io {
            action: "read",
            path: log.dir().to_owned(),
            source: std::io::Error::other(why),
        };
        let (found, _) = Batch::parse(&found).map_err(|error| malformed(error.to_string()))?;
        let records = found.records(&Limits::default()).map_err(|error| malformed(error.to_string()))?;
        for record in records.iter() {
            let record = record.map_err(|error| malformed(error.to_string()))?;
            let offset = record.offset(found.header());
            if wanted.peek() != Some(&offset) {
                continue;
            }
            wanted.next();
            let headers: Vec<(&str, Option<&[u8]>)> = record
                .headers
                .iter()
                .filter_map(|(name, value)| Some((std::str::from_utf8(name).ok()?, value)))
                .filter(|(name, _)| *name != super::commit_set::MANIFEST_HEADER)
                .collect();
            // Deltas are 31 bits: offsets further apart go into batches of their own.
            if offset.since(base) > i32::MAX as u64 && !batch.is_empty() {
                batches.push(finish(&mut batch, base));
            }
            if batch.is_empty() {
                base = offset;
            }
            let delta = i32::try_from(offset.since(base)).expect("checked above");
            batch.push_at(delta, record.timestamp(found.header()), record.key, record.value, &headers);
        }
    }
    if !batch.is_empty() {
        batches.push(finish(&mut batch, base));
    }
    Ok(batches)
}

fn finish(batch: &mut BatchBuilder, base: Offset) -> Vec<u8> {
    batch.base_offset(base);
    batch.build().expect("a batch of ours has records and fits")
}

/// Loads the snapshot, if there is a good one that speaks of nothing beyond the log's high watermark. The offset from
/// which the log is to be replayed on.
pub fn load(disk: &Arc<dyn Disk>, log: &Log) -> Option<(Coordinator, Offset)> {
    let file = disk.open(Path::new(SNAPSHOT_FILE), OpenHow::Read).ok()?;
    let mut header = [0; SNAPSHOT_HEADER_BYTES];
    read_exact(&*file, &mut header, 0)?;
    let is_ours = &header[..8] == MAGIC && header[8..12] == VERSION.to_be_bytes();
    if !is_ours {
        return None;
    }
    let mut crc = crc32c(&header[16..]);
    let next = Offset::new(i64::from_be_bytes(header[16..24].try_into().expect("eight bytes")))?;
    let count = u64::from_be_bytes(header[24..32].try_into().expect("eight bytes"));
    if next > log.high_watermark() || next < log.log_start() {
        return None;
    }
    let mut coordinator = Coordinator::default();
    let (mut position, mut replayed) = (SNAPSHOT_HEADER_BYTES as u64, 0);
    while replayed < count {
        let bytes = read_batch(&*file, position)?;
        position += bytes.len() as u64;
        crc = chained(crc, &bytes);
        let (batch, _) = Batch::parse(&bytes).ok()?;
        for record in batch.records(&Limits::default()).ok()?.iter() {
            let record = record.ok()?;
            let at = record.offset(batch.header());
            coordinator.replay(at, record.key?, record.value, record.headers.iter()).ok()?;
            replayed += 1;
        }
    }
    let is_whole = replayed == count && header[12..16] == crc.to_be_bytes();
    is_whole.then_some((coordinator, next))
}

/// The checksum goes on over what a batch's own does not cover: its base offset, length, leader epoch and checksum.
fn chained(crc: u32, batch: &[u8]) -> u32 {
    let mut bytes = crc.to_be_bytes().to_vec();
    bytes.extend(&batch[..21]);
    crc32c(&bytes)
}

fn read_batch(file: &dyn DiskFile, position: u64) -> Option<Vec<u8>> {
    let mut header = [0; HEADER_BYTES];
    read_exact(file, &mut header, position)?;
    let size = BatchHeader::parse(&header).ok()?.size_bytes();
    if size > BATCH_LIMIT_BYTES {
        return None;
    }
    let mut bytes = vec![0; size];
    read_exact(file, &mut bytes, position)?;
    Some(bytes)
}

fn read_exact(file: &dyn DiskFile, buffer: &mut [u8], position: u64) -> Option<()> {
    let got = file.read_at(buffer, position).ok()?;
    (got == buffer.len()).then_some(())
}
