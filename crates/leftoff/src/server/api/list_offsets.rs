//! ListOffsets 1 to 8: -1 the high watermark, -2 and -4 the log start, -3 the largest timestamp (KIP-734), and times.

use leftoff_engine::broker::{PartitionId, State};
use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsTopicResponse, Request, Response,
};

use super::{Asked, Closing};

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;

pub(super) fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    let topics = asked.server.store.with_state(|state| {
        let topic = |topic: &leftoff_wire::messages::list_offsets::ListOffsetsTopic<'_>| {
            topic.partitions.iter().map(|partition| look_up(state, topic.name, partition)).collect::<Vec<_>>()
        };
        request.topics.iter().map(topic).collect::<Vec<_>>()
    });
    let topics = request
        .topics
        .iter()
        .zip(topics)
        .map(|(topic, partitions)| ListOffsetsTopicResponse { name: topic.name, partitions })
        .collect();
    Ok(Response { topics, ..Response::default() }.encode(out, asked.version)?)
}

fn look_up(state: &State, topic: &str, asked: &ListOffsetsPartition) -> ListOffsetsPartitionResponse {
    let answer = |error: ErrorCode, offset: i64, timestamp: i64| ListOffsetsPartitionResponse {
        partition_index: asked.partition_index,
        error_code: error.code(),
        timestamp,
        offset,
        leader_epoch: -1,
    };
    let found = state.topic(topic);
    let log = found.and_then(|topic| {
        state.log(&PartitionId { topic_id: topic.topic_id, partition: asked.partition_index })
    });
    let Some(log) = log else { return answer(ErrorCode::UnknownTopicOrPartition, -1, -1) };
    let stamped = match asked.timestamp {
        LATEST => return answer(ErrorCode::None, log.high_watermark().get(), -1),
        EARLIEST | EARLIEST_LOCAL => return answer(ErrorCode::None, log.log_start().get(), -1),
        MAX_TIMESTAMP => log.max_timestamp(),
        time if time >= 0 => log.offset_for_time(time),
        _ => return answer(ErrorCode::UnsupportedVersion, -1, -1),
    };
    match stamped {
        Ok(Some((offset, timestamp))) => answer(ErrorCode::None, offset.get(), timestamp),
        Ok(None) => answer(ErrorCode::None, -1, -1),
        Err(_) => answer(ErrorCode::KafkaStorageError, -1, -1),
    }
}
