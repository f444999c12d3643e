//! What Kafka's reading requests ask of a partition: fetch, offsets by time, ends of leader epochs, sizes.
//!
//! Everything here is below the high watermark, so that an answer needs to wait for nothing.

use leftoff_wire::Offset;

use crate::broker::{PartitionId, State};
use crate::log::{Fetched, Log, LogError};

/// One partition of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchPartition {
    /// Which.
    pub partition: PartitionId,
    /// From where, as it came.
    pub offset: i64,
    /// The leader epoch that the client believes in; below 0: it does not say.
    pub leader_epoch: i32,
    /// As many bytes of this partition.
    pub max_bytes: u64,
}

/// Why a partition cannot be read so.
#[derive(Debug, thiserror::Error)]
pub enum ReadRefusal {
    /// There is no such partition.
    #[error("no partition {0}")]
    UnknownPartition(PartitionId),
    /// The client's metadata is older than a recovery.
    #[error("leader epoch {asked} is over, it is {current}")]
    FencedEpoch {
        /// The client's.
        asked: i32,
        /// The broker's.
        current: i32,
    },
    /// The client knows of a leader epoch that this directory does not have.
    #[error("leader epoch {asked} is not known, it is {current}")]
    UnknownEpoch {
        /// The client's.
        asked: i32,
        /// The broker's.
        current: i32,
    },
    /// Below the log start or above the high watermark.
    #[error("offset {asked} is not there: the log goes from {log_start} to {high_watermark}")]
    OutOfRange {
        /// What was asked.
        asked: i64,
        /// The first offset that can be read.
        log_start: Offset,
        /// The offset behind the last that can be read.
        high_watermark: Offset,
    },
    /// The log cannot be read there.
    #[error(transparent)]
    Log(LogError),
}

impl ReadRefusal {
    /// Kafka's error code.
    pub fn error_code(&self) -> i16 {
        match self {
            ReadRefusal::OutOfRange { .. } => 1,
            ReadRefusal::Log(LogError::Damaged { .. }) => 2,
            ReadRefusal::UnknownPartition(_) => 3,
            ReadRefusal::Log(_) => 56,
            ReadRefusal::FencedEpoch { .. } => 74,
            ReadRefusal::UnknownEpoch { .. } => 75,
        }
    }
}

/// What a fetch may send.
#[derive(Debug)]
pub struct FetchAnswer {
    /// In the order given.
    pub partitions: Vec<Result<Fetched, ReadRefusal>>,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl FetchAnswer {
    /// Whether to send it now: there is enough, or something to tell at once.
    pub fn is_ready(&self, min_bytes: u64) -> bool {
        self.bytes >= min_bytes || self.partitions.iter().any(Result::is_err)
    }
}

/// A place in a log, found by time or by name. −1 where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// The offset.
    pub offset: i64,
    /// The record's timestamp in milliseconds since 1970; −1 for ends.
    pub timestamp_ms: i64,
    /// The leader epoch of the record there.
    pub leader_epoch: i32,
}

/// Kafka's special times of `ListOffsets`.
pub mod list_offsets {
    /// The high watermark.
    pub const LATEST: i64 = -1;
    /// The log start.
    pub const EARLIEST: i64 = -2;
    /// The record with the greatest timestamp (KIP-734).
    pub const MAX_TIMESTAMP: i64 = -3;
    /// The log start as well: everything is local (KIP-405).
    pub const EARLIEST_LOCAL: i64 = -4;
}

impl State {
    /// What a fetch may send, counted as Kafka counts: at most `max_bytes` and of each partition at most its own; but the
    /// first batch of the first partition that has one is whole whatever its size (KIP-74), so that a reader gets on.
    pub fn fetch(&self, asked: &[FetchPartition], max_bytes: u64) -> FetchAnswer {
        let mut answer = FetchAnswer { partitions: Vec::with_capacity(asked.len()), bytes: 0 };
        for partition in asked {
            let left_bytes = max_bytes.saturating_sub(answer.bytes).min(partition.max_bytes);
            let mut fetched = self.fetch_one(partition, left_bytes);
            if let Ok(fetched) = &mut fetched {
                let bytes: u64 = fetched.ranges.iter().map(|range| range.len_bytes).sum();
                // Only a first batch that is larger than the limit gets above it.
                if bytes > left_bytes && answer.bytes > 0 {
                    fetched.ranges.clear();
                } else {
                    answer.bytes += bytes;
                }
            }
            answer.partitions.push(fetched);
        }
        answer
    }

    /// The offset for a time, or for one of [`list_offsets`]; all −1 where no record is as late, or for a special time that
    /// is not known.
    ///
    /// # Errors
    /// [`ReadRefusal`].
    pub fn list_offset(
        &self,
        partition: &PartitionId,
        timestamp_ms: i64,
        leader_epoch: i32,
    ) -> Result<Listed, ReadRefusal> {
        let log = self.log_in_epoch(partition, leader_epoch)?;
        let found = match timestamp_ms {
            list_offsets::LATEST => Some((log.high_watermark(), -1)),
            list_offsets::EARLIEST | list_offsets::EARLIEST_LOCAL => Some((log.log_start(), -1)),
            list_offsets::MAX_TIMESTAMP => log.max_timestamp().map_err(ReadRefusal::Log)?,
            time if time >= 0 => log.offset_for_time(time).map_err(ReadRefusal::Log)?,
            _ => None,
        };
        let Some((offset, timestamp_ms)) = found else {
            return Ok(Listed { offset: -1, timestamp_ms: -1, leader_epoch: -1 });
        };
        let epochs = log.epoch_starts().map_err(ReadRefusal::Log)?;
        let leader_epoch = epochs.iter().rev().find(|(_, start)| *start <= offset);
        let leader_epoch = leader_epoch.map_or(-1, |(epoch, _)| *epoch);
        Ok(Listed { offset: offset.get(), timestamp_ms, leader_epoch })
    }

    /// Where a leader epoch ends (KIP-320): the greatest epoch that is not above it, and the offset behind its last record;
    /// `None` for an epoch that is not known. As Kafka's `LeaderEpochFileCache`.
    ///
    /// # Errors
    /// [`ReadRefusal`].
    pub fn epoch_end(
        &self,
        partition: &PartitionId,
        epoch: i32,
        leader_epoch: i32,
    ) -> Result<Option<(i32, Offset)>, ReadRefusal> {
        let log = self.log_in_epoch(partition, leader_epoch)?;
        let starts = log.epoch_starts().map_err(ReadRefusal::Log)?;
        let next = starts.iter().position(|(begun, _)| *begun > epoch);
        Ok(match next {
            _ if epoch < 0 => None,
            // Older than the first one: what is there begins with that.
            Some(0) => Some((epoch, starts[0].1)),
            Some(next) => Some((starts[next - 1].0, starts[next].1)),
            // The epoch of now may have no record yet.
            None if (0..=self.metadata.leader_epoch()).contains(&epoch) => {
                Some((epoch, log.high_watermark()))
            }
            None => None,
        })
    }

    /// The offset that Kafka's `DeleteRecords` means, for [`crate::broker::Request::Trim`]; −1 is the high watermark.
    ///
    /// # Errors
    /// [`ReadRefusal`].
    pub fn delete_before(&self, partition: &PartitionId, offset: i64) -> Result<Offset, ReadRefusal> {
        let log = self.log_in_epoch(partition, -1)?;
        let (log_start, high_watermark) = (log.log_start(), log.high_watermark());
        let before = if offset == -1 { Some(high_watermark) } else { Offset::new(offset) };
        before.filter(|before| *before <= high_watermark).ok_or(ReadRefusal::OutOfRange {
            asked: offset,
            log_start,
            high_watermark,
        })
    }

    /// Whether a client believes in the leader epoch that there is; below 0: it does not say.
    ///
    /// # Errors
    /// [`ReadRefusal`].
    pub fn check_leader_epoch(&self, partition: &PartitionId, asked: i32) -> Result<(), ReadRefusal> {
        self.log_in_epoch(partition, asked).map(drop)
    }

    /// Bytes of a partition's segments, for `DescribeLogDirs`.
    ///
    /// # Errors
    /// [`ReadRefusal`].
    pub fn size_bytes(&self, partition: &PartitionId) -> Result<u64, ReadRefusal> {
        let segments = self.log_in_epoch(partition, -1)?.segments().map_err(ReadRefusal::Log)?;
        Ok(segments.iter().map(|segment| segment.bytes).sum())
    }

    fn fetch_one(&self, asked: &FetchPartition, max_bytes: u64) -> Result<Fetched, ReadRefusal> {
        let log = self.log_in_epoch(&asked.partition, asked.leader_epoch)?;
        let out_of_range = || ReadRefusal::OutOfRange {
            asked: asked.offset,
            log_start: log.log_start(),
            high_watermark: log.high_watermark(),
        };
        let offset = Offset::new(asked.offset).ok_or_else(out_of_range)?;
        log.fetch(offset, max_bytes).map_err(|error| match error {
            LogError::OutOfRange { .. } => out_of_range(),
            other => ReadRefusal::Log(other),
        })
    }

    fn log_in_epoch(&self, partition: &PartitionId, asked: i32) -> Result<&Log, ReadRefusal> {
        let log = self.log(partition).ok_or(ReadRefusal::UnknownPartition(*partition))?;
        let current = self.metadata.leader_epoch();
        match asked {
            asked if asked < 0 || asked == current => Ok(log),
            asked if asked < current => Err(ReadRefusal::FencedEpoch { asked, current }),
            asked => Err(ReadRefusal::UnknownEpoch { asked, current }),
        }
    }
}
