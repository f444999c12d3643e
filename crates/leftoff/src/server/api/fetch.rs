//! Fetch 4 to 16, without sessions: each request says all that it wants. Nothing above the high watermark is sent. A fetch that
//! finds less than min_bytes waits for the next round, up to max_wait_ms. The first batch of an answer is whole whatever the
//! limits say (KIP-74). A client whose leader epoch is not the broker's gets error 74 or 75.

use std::time::Duration;

use leftoff_engine::broker::{PartitionId, State};
use leftoff_engine::log::{Fetched, FileRange, LogError};
use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::fetch::{
    FetchPartition, FetchableTopicResponse, PartitionData, Request, Response,
};
use leftoff_wire::{Offset, Uuid};
use tokio::time::Instant;

use super::{Asked, Closing, code};

/// The longest that a fetch waits, whatever it asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
const READ_COMMITTED: i8 = 1;

/// What is known of one partition's part of the answer.
struct Part {
    error: ErrorCode,
    high_watermark: i64,
    log_start: i64,
    ranges: Vec<FileRange>,
    records: Vec<u8>,
}

pub(super) async fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    if request.session_id != 0 {
        let error_code = ErrorCode::FetchSessionIdNotFound.code();
        return Ok(Response { error_code, ..Response::default() }.encode(out, asked.version)?);
    }
    let wait = Duration::from_millis(u64::from(request.max_wait_ms.max(0).unsigned_abs())).min(LONGEST_WAIT);
    let deadline = Instant::now() + wait;
    let mut stop = asked.server.stop.clone();
    let mut parts = loop {
        // Whoever publishes between the look and the wait is heard.
        let published = asked.server.published.notified();
        tokio::pin!(published);
        published.as_mut().enable();
        let parts = look(asked, &request);
        let bytes: u64 = parts.iter().flat_map(|part| &part.ranges).map(|range| range.len_bytes).sum();
        let has_enough = bytes >= u64::from(request.min_bytes.max(0).unsigned_abs());
        let has_errors = parts.iter().any(|part| part.error != ErrorCode::None);
        if has_enough || has_errors || *stop.borrow() || Instant::now() >= deadline {
            break parts;
        }
        tokio::select! {
            () = published => {}
            () = tokio::time::sleep_until(deadline) => {}
            _stops = stop.changed() => {}
        }
    };
    if parts.iter().any(|part| !part.ranges.is_empty()) {
        // A cold read holds up neither the broker nor other connections.
        let read = tokio::task::spawn_blocking(move || {
            parts.iter_mut().for_each(Part::read);
            parts
        });
        parts = read.await.map_err(|_| super::Stopping)?;
    }
    let mut parts = parts.iter();
    let responses = request
        .topics
        .iter()
        .map(|topic| FetchableTopicResponse {
            topic: topic.topic,
            topic_id: topic.topic_id,
            partitions: topic
                .partitions
                .iter()
                .zip(&mut parts)
                .map(|(partition, part)| PartitionData {
                    partition_index: partition.partition,
                    error_code: part.error.code(),
                    high_watermark: part.high_watermark,
                    last_stable_offset: part.high_watermark,
                    log_start_offset: part.log_start,
                    aborted_transactions: (request.isolation_level == READ_COMMITTED).then(Vec::new),
                    // Never null: librdkafka refuses that.
                    records: Some(&part.records),
                    ..PartitionData::default()
                })
                .collect(),
        })
        .collect();
    Ok(Response { responses, ..Response::default() }.encode(out, asked.version)?)
}

/// One look at all partitions, of one moment.
fn look(asked: &Asked<'_>, request: &Request<'_>) -> Vec<Part> {
    let limit = asked.server.settings.limits.fetch_max_bytes as u64;
    let mut left = u64::from(request.max_bytes.max(0).unsigned_abs()).min(limit);
    let mut is_first = true;
    asked.server.store.with_state(|state| {
        let mut parts = Vec::new();
        for topic in &request.topics {
            let topic_id = if asked.version >= 13 {
                state.metadata().by_id(&topic.topic_id).map(|topic| topic.topic_id)
            } else {
                state.topic(topic.topic).map(|topic| topic.topic_id)
            };
            for one in &topic.partitions {
                let most = u64::from(one.partition_max_bytes.max(0).unsigned_abs()).min(left);
                let fenced = topic_id.and_then(|topic_id| fenced(state, topic_id, one));
                let part = match (topic_id, fenced) {
                    (None, _) if asked.version >= 13 => Part::failed(ErrorCode::UnknownTopicId),
                    (None, _) => Part::failed(ErrorCode::UnknownTopicOrPartition),
                    (_, Some(error)) => Part::failed(error),
                    (Some(topic_id), None) => {
                        look_at(state, topic_id, one.partition, one.fetch_offset, most, is_first)
                    }
                };
                let bytes: u64 = part.ranges.iter().map(|range| range.len_bytes).sum();
                is_first &= bytes == 0;
                left = left.saturating_sub(bytes);
                parts.push(part);
            }
        }
        parts
    })
}

/// The error of a client whose leader epoch is not the broker's.
fn fenced(state: &State, topic_id: Uuid, asked: &FetchPartition) -> Option<ErrorCode> {
    let partition = PartitionId { topic_id, partition: asked.partition };
    state.check_leader_epoch(&partition, asked.current_leader_epoch).err().map(|error| code(&error))
}

fn look_at(state: &State, topic_id: Uuid, partition: i32, offset: i64, most: u64, is_first: bool) -> Part {
    let Some(log) = state.log(&PartitionId { topic_id, partition }) else {
        return Part::failed(ErrorCode::UnknownTopicOrPartition);
    };
    let bounds = Part {
        high_watermark: log.high_watermark().get(),
        log_start: log.log_start().get(),
        ..Part::failed(ErrorCode::None)
    };
    let Some(offset) = Offset::new(offset) else {
        return Part { error: ErrorCode::OffsetOutOfRange, ..bounds };
    };
    match log.fetch(offset, most) {
        Ok(Fetched { ranges, .. }) => {
            // Only the first batch of the whole answer may be over the limits.
            let fits = is_first || ranges.iter().map(|range| range.len_bytes).sum::<u64>() <= most;
            Part { ranges: if fits { ranges } else { Vec::new() }, ..bounds }
        }
        Err(LogError::OutOfRange { .. }) => Part { error: ErrorCode::OffsetOutOfRange, ..bounds },
        Err(_) => Part { error: ErrorCode::KafkaStorageError, ..bounds },
    }
}

impl Part {
    fn failed(error: ErrorCode) -> Part {
        Part { error, high_watermark: -1, log_start: -1, ranges: Vec::new(), records: Vec::new() }
    }

    /// Reads what was found; a segment that is deleted meanwhile stays readable.
    fn read(&mut self) {
        let bytes: u64 = self.ranges.iter().map(|range| range.len_bytes).sum();
        let Ok(length) = usize::try_from(bytes) else { return };
        self.records = vec![0; length];
        let mut rest = self.records.as_mut_slice();
        for range in std::mem::take(&mut self.ranges) {
            let (part, behind) = rest.split_at_mut(usize::try_from(range.len_bytes).unwrap_or_default());
            rest = behind;
            let is_whole =
                range.file.read_at(part, range.position_bytes).is_ok_and(|read| read == part.len());
            if !is_whole {
                self.error = ErrorCode::KafkaStorageError;
                self.records.clear();
                return;
            }
        }
    }
}
