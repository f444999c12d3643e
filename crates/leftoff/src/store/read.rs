//! From file ranges to events, outside the broker's lock.

pub use leftoff_consumer::source::Event;
use leftoff_engine::log::{FileRange, LogError};
use leftoff_wire::record_batch::{Batch, BatchError, BatchHeader, Limits};
use leftoff_wire::{Offset, Run};

/// Events, and where to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The events from the asked offset on; markers and holes are passed.
    pub events: Vec<Event>,
    /// The next offset to read: behind the last batch, also where it held no events.
    pub next: Offset,
    /// The end of what can be read.
    pub high_watermark: Offset,
    /// The first offset that can be read.
    pub log_start: Offset,
}

/// Why a partition cannot be read at an offset.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The log says no: out of range, or damaged.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A batch that was once synced is damaged.
    #[error("damage at {run}: {error}", run = Run::new(*from, *to))]
    Damaged {
        /// The first offset that cannot be read.
        from: Offset,
        /// Reading can go on here.
        to: Offset,
        /// What is wrong.
        error: BatchError,
    },
    /// No batch holds these offsets: a repair took damage out, or a file is gone.
    #[error("not there: {run}; a repair took damage out, or a file is gone", run = Run::new(*from, *to))]
    Hole {
        /// The first offset that is not there.
        from: Offset,
        /// Reading can go on here.
        to: Offset,
    },
    /// The disk failed.
    #[error("reading segment {segment} at position {position_bytes}: {source}")]
    Io {
        /// Base offset of the segment.
        segment: Offset,
        /// Where in its file.
        position_bytes: u64,
        /// Why.
        source: std::io::Error,
    },
}

/// Reads the events in what a fetch answered, from an offset on.
///
/// # Errors
/// [`ReadError`]; what comes before damage is given first, the damage at the next call.
pub fn events_in(fetched: &leftoff_engine::log::Fetched, from: Offset) -> Result<Chunk, ReadError> {
    let mut chunk = Chunk {
        events: Vec::new(),
        next: from,
        high_watermark: fetched.high_watermark,
        log_start: fetched.log_start,
    };
    for range in &fetched.ranges {
        let bytes = read_range(range)?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            // Offsets are dense: what no batch holds is gone, and is told before it is passed.
            if let Some(to) = hole_before(rest, chunk.next) {
                if chunk.next > from {
                    return Ok(chunk);
                }
                return Err(ReadError::Hole { from, to });
            }
            let taken = Batch::parse(rest).and_then(|(batch, behind)| {
                take_events(&batch, from, &mut chunk)?;
                Ok(behind)
            });
            match taken {
                Ok(behind) => rest = behind,
                Err(_) if chunk.next > from => return Ok(chunk),
                Err(error) => return Err(damaged(rest, range, chunk.next, error)),
            }
        }
    }
    if fetched.ranges.is_empty() && from < fetched.high_watermark {
        return Err(ReadError::Hole { from, to: fetched.high_watermark });
    }
    Ok(chunk)
}

/// Where the next batch begins, if it leaves offsets out. What is no batch is told as damage.
fn hole_before(bytes: &[u8], next: Offset) -> Option<Offset> {
    let header = BatchHeader::parse(bytes).ok()?;
    (header.base_offset > next).then_some(header.base_offset)
}

fn take_events(batch: &Batch<'_>, from: Offset, chunk: &mut Chunk) -> Result<(), BatchError> {
    let header = batch.header();
    if !header.attributes.is_control() {
        let had = chunk.events.len();
        for record in batch.records(&Limits::default())?.iter() {
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    chunk.events.truncate(had);
                    return Err(error);
                }
            };
            let offset = record.offset(header);
            if offset < from {
                continue;
            }
            let headers = record
                .headers
                .iter()
                .map(|(name, value)| (String::from_utf8_lossy(name).into_owned(), value.map(<[u8]>::to_vec)));
            chunk.events.push(Event {
                offset,
                timestamp_ms: record.timestamp(header),
                key: record.key.map(<[u8]>::to_vec),
                value: record.value.map(<[u8]>::to_vec),
                headers: headers.collect(),
                leader_epoch: header.partition_leader_epoch,
            });
        }
    }
    chunk.next = header.next_offset();
    Ok(())
}

fn read_range(range: &FileRange) -> Result<Vec<u8>, ReadError> {
    let io = |source| ReadError::Io { segment: range.segment, position_bytes: range.position_bytes, source };
    let len = usize::try_from(range.len_bytes).map_err(|error| io(std::io::Error::other(error)))?;
    let mut bytes = vec![0; len];
    let got = range.file.read_at(&mut bytes, range.position_bytes).map_err(io)?;
    bytes.truncate(got);
    Ok(bytes)
}

fn damaged(rest: &[u8], range: &FileRange, from: Offset, error: BatchError) -> ReadError {
    // Where the header still makes sense, only this batch is lost; else what is left of the range.
    let to = BatchHeader::parse(rest)
        .map(|header| header.next_offset())
        .ok()
        .filter(|to| *to > from && *to <= range.next)
        .unwrap_or(range.next);
    ReadError::Damaged { from, to, error }
}
