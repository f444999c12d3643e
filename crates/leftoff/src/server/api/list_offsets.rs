//! ListOffsets 1 to 8: -1 the high watermark, -2 and -4 the log start, -3 the largest timestamp (KIP-734), and times. Each with
//! the leader epoch of the record there; a client whose own epoch is not the broker's gets error 74 or 75.

use leftoff_engine::broker::{PartitionId, State, list_offsets};
use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsTopicResponse, Request, Response,
};

use super::{Asked, Closing, code};

/// The least of the special times.
const EARLIEST_LOCAL: i64 = list_offsets::EARLIEST_LOCAL;
/// Leader epochs are told from this version on.
const EPOCHS_FROM: i16 = 4;

pub(super) fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    let topics = asked.server.store.with_state(|state| {
        let topic = |topic: &leftoff_wire::messages::list_offsets::ListOffsetsTopic<'_>| {
            topic
                .partitions
                .iter()
                .map(|partition| look_up(state, topic.name, partition, asked.version))
                .collect::<Vec<_>>()
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

fn look_up(
    state: &State,
    topic: &str,
    asked: &ListOffsetsPartition,
    version: i16,
) -> ListOffsetsPartitionResponse {
    let failed = |error: ErrorCode| ListOffsetsPartitionResponse {
        partition_index: asked.partition_index,
        error_code: error.code(),
        timestamp: -1,
        offset: -1,
        leader_epoch: -1,
    };
    if asked.timestamp < EARLIEST_LOCAL {
        return failed(ErrorCode::UnsupportedVersion);
    }
    let Some(topic) = state.topic(topic) else { return failed(ErrorCode::UnknownTopicOrPartition) };
    let partition = PartitionId { topic_id: topic.topic_id, partition: asked.partition_index };
    match state.list_offset(&partition, asked.timestamp, asked.current_leader_epoch) {
        Ok(found) => ListOffsetsPartitionResponse {
            timestamp: found.timestamp_ms,
            offset: found.offset,
            leader_epoch: if version >= EPOCHS_FROM { found.leader_epoch } else { -1 },
            ..failed(ErrorCode::None)
        },
        Err(error) => failed(code(&error)),
    }
}
