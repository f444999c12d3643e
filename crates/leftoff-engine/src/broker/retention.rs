//! Retention: by age, counted from the moment a segment was closed by the broker's clock (a producer's wrong clock can
//! neither keep nor delete a segment), and by bytes. The offsets log carries its live values forward first.

use leftoff_wire::Offset;

use crate::broker::rounds::AfterSync;
use crate::broker::{Broker, Change, LogStartReason, OFFSETS_LOG, PartitionId, Refusal, State};
use crate::log::{LogError, SegmentInfo};
use crate::types::Timestamp;

/// What retention is to keep.
#[derive(Debug, Clone, Copy)]
struct Limits {
    age_ms: Option<i64>,
    bytes: Option<u64>,
}

/// How far retention is from what is read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionAhead {
    /// After so long at the earliest it deletes the event; `None` without a limit on the age.
    pub ms: Option<i64>,
    /// After so many bytes more at the earliest; `None` without a limit on the bytes.
    pub bytes: Option<u64>,
}

impl State {
    /// When retention deletes the event at an offset, at the earliest; `None` if nothing is there to delete.
    ///
    /// # Errors
    /// If the length of a segment cannot be found out.
    pub fn retention_ahead(
        &self,
        now: Timestamp,
        partition: &PartitionId,
        next: Offset,
    ) -> Result<Option<RetentionAhead>, LogError> {
        let topic = self.metadata.topics().find(|topic| topic.topic_id == partition.topic_id);
        let (Some(topic), Some(log)) = (topic, self.logs.get(partition)) else { return Ok(None) };
        if next >= log.high_watermark() {
            return Ok(None);
        }
        let segments = log.segments()?;
        let at = segments.iter().position(|segment| next < segment.next).unwrap_or(segments.len() - 1);
        // Whole segments go, the open one never: it is closed first, and its age begins then.
        let age = if segments[at].active {
            Some(0)
        } else {
            let rolled = self.metadata.rolled_at(partition, segments[at].base);
            rolled.map(|rolled| now.as_ms().saturating_sub(rolled.as_ms()))
        };
        let behind: u64 = segments[at + 1..].iter().map(|segment| segment.bytes).sum();
        let ms = topic.settings.retention_ms().zip(age).map(|(limit, age)| limit.saturating_sub(age).max(0));
        let bytes = topic.settings.retention_bytes().map(|limit| limit.saturating_sub(behind));
        Ok(Some(RetentionAhead { ms, bytes }))
    }
}

impl State {
    /// The lowest offset that a group with a committed offset has yet to read there; `None` if there is no such group.
    pub fn first_unread(&self, partition: &PartitionId) -> Option<Offset> {
        let topic = self.metadata.by_id(&partition.topic_id)?;
        let entries = self.coordinator.groups().filter_map(|group| {
            let entry = group.entry_by_name(&topic.name, partition.partition)?;
            (entry.topic_id == partition.topic_id).then_some(entry.committed.next())
        });
        entries.min()
    }

    /// Bytes of a partition's closed segments that only `leftoff.retention.unread=keep` keeps from being deleted now.
    ///
    /// # Errors
    /// If the length of a segment cannot be found out.
    pub fn kept_unread_bytes(&self, now: Timestamp, partition: &PartitionId) -> Result<u64, LogError> {
        let (Some(topic), Some(log)) = (self.metadata.by_id(&partition.topic_id), self.logs.get(partition))
        else {
            return Ok(0);
        };
        let limits =
            Limits { age_ms: topic.settings.retention_ms(), bytes: topic.settings.retention_bytes() };
        let wanted = self.new_log_start(now, partition, limits)?;
        let (Some(limit), Some((wanted, _))) = (topic.settings.unread(), wanted) else { return Ok(0) };
        let segments = log.segments()?;
        let start = without_unread(&segments, wanted, self.first_unread(partition), limit);
        let kept = segments.iter().filter(|segment| segment.next > start && segment.next <= wanted);
        Ok(kept.map(|segment| segment.bytes).sum())
    }
}

impl Broker {
    /// Moves log starts over whatever is beyond its limits.
    pub(super) fn check_retention(&mut self, now: Timestamp) -> Result<(), Refusal> {
        for topic in self.state.metadata.topics().cloned().collect::<Vec<_>>() {
            let limits =
                Limits { age_ms: topic.settings.retention_ms(), bytes: topic.settings.retention_bytes() };
            for number in 0..topic.partitions {
                let partition = PartitionId { topic_id: topic.topic_id, partition: number };
                let Some((offset, reason)) = self.state.new_log_start(now, &partition, limits)? else {
                    continue;
                };
                if let Some(limit) = topic.settings.unread() {
                    let first_unread = self.state.first_unread(&partition);
                    let segments = self.state.logs[&partition].segments()?;
                    let offset = without_unread(&segments, offset, first_unread, limit);
                    // The commits that let it go are on disk first: a crash must not keep the deletion and lose those.
                    if offset > self.state.logs[&partition].log_start() {
                        self.rounds.after.push(AfterSync::Carried(partition, offset, reason));
                    }
                } else {
                    self.record(now, &[Change::LogStart { partition, offset, reason }])?;
                    self.rounds.after.push(AfterSync::AdvanceLogStart(partition, offset));
                }
            }
        }
        self.check_offsets_log(now)
    }

    /// Live values whose record is about to go are appended again; when that is on disk, the log start moves.
    fn check_offsets_log(&mut self, now: Timestamp) -> Result<(), Refusal> {
        let limits = Limits {
            age_ms: Some(self.config.offsets_retention_ms),
            bytes: Some(self.config.offsets_retention_bytes),
        };
        if let Some((offset, reason)) = self.state.new_log_start(now, &OFFSETS_LOG, limits)? {
            let carried = self.state.coordinator.carry(offset);
            self.append_offsets(now, &carried, &[])?;
            self.rounds.after.push(AfterSync::Carried(OFFSETS_LOG, offset, reason));
        }
        Ok(())
    }
}

impl State {
    fn new_log_start(
        &self,
        now: Timestamp,
        partition: &PartitionId,
        limits: Limits,
    ) -> Result<Option<(Offset, LogStartReason)>, LogError> {
        let Some(log) = self.logs.get(partition) else { return Ok(None) };
        let segments = log.segments()?;
        let by_age = limits.age_ms.and_then(|age_ms| self.start_by_age(now, partition, &segments, age_ms));
        let by_bytes = limits.bytes.and_then(|bytes| start_by_bytes(&segments, bytes));
        let start = match (by_age, by_bytes) {
            (Some(age), Some(bytes)) if bytes > age => Some((bytes, LogStartReason::Bytes)),
            (Some(age), _) => Some((age, LogStartReason::Age)),
            (None, bytes) => bytes.map(|bytes| (bytes, LogStartReason::Bytes)),
        };
        Ok(start.filter(|(offset, _)| *offset > log.log_start() && *offset <= log.high_watermark()))
    }

    fn start_by_age(
        &self,
        now: Timestamp,
        partition: &PartitionId,
        segments: &[SegmentInfo],
        age_ms: i64,
    ) -> Option<Offset> {
        let closed = segments.iter().take_while(|segment| !segment.active);
        // A segment whose closing time is not known (the record was lost in a power cut) is kept until bytes decide.
        let expired = closed.take_while(|segment| {
            let rolled = self.metadata.rolled_at(partition, segment.base);
            rolled.is_some_and(|rolled| now.as_ms().saturating_sub(rolled.as_ms()) >= age_ms)
        });
        expired.last().map(|segment| segment.next)
    }
}

/// How far of `wanted` the log start may go: whole segments that were read, and more only where the partition is too large.
fn without_unread(
    segments: &[SegmentInfo],
    wanted: Offset,
    first_unread: Option<Offset>,
    limit_bytes: u64,
) -> Offset {
    let Some(first_unread) = first_unread else { return wanted };
    let read =
        segments.iter().map(|segment| segment.next).take_while(|next| *next <= first_unread.min(wanted));
    let read = read.last().unwrap_or(Offset::ZERO);
    let too_large = start_by_bytes(segments, limit_bytes).unwrap_or(Offset::ZERO).min(wanted);
    read.max(too_large)
}

/// As Kafka: the oldest closed segments go as long as what is left still has at least the limit.
fn start_by_bytes(segments: &[SegmentInfo], limit: u64) -> Option<Offset> {
    let mut left: u64 = segments.iter().map(|segment| segment.bytes).sum();
    let mut start = None;
    for segment in segments.iter().filter(|segment| !segment.active) {
        if left - segment.bytes < limit {
            break;
        }
        left -= segment.bytes;
        start = Some(segment.next);
    }
    start
}
