//! OffsetForLeaderEpoch 2 to 4: where a leader epoch ends, so that a client that knows of an older epoch sees whether what it has
//! read is still there (KIP-320). The leader epoch goes up at a start that cut bytes off. An epoch that is not known is answered with
//! -1 and no error; a client whose own epoch is over, or is not known here, gets error 74 or 75.

use leftoff_engine::broker::{PartitionId, State};
use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderPartition, OffsetForLeaderTopicResult, Request, Response,
};

use super::{Asked, Closing, code};

pub(super) fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    let topics = asked.server.store.with_state(|state| {
        let topics = request.topics.iter().map(|topic| OffsetForLeaderTopicResult {
            topic: topic.topic,
            partitions: topic.partitions.iter().map(|wanted| end_of(state, topic.topic, wanted)).collect(),
        });
        topics.collect()
    });
    Ok(Response { throttle_time_ms: 0, topics }.encode(out, asked.version)?)
}

fn end_of(state: &State, topic: &str, wanted: &OffsetForLeaderPartition) -> EpochEndOffset {
    let unknown = EpochEndOffset {
        error_code: ErrorCode::UnknownTopicOrPartition.code(),
        partition: wanted.partition,
        leader_epoch: -1,
        end_offset: -1,
    };
    let Some(topic) = state.topic(topic) else { return unknown };
    let partition = PartitionId { topic_id: topic.topic_id, partition: wanted.partition };
    match state.epoch_end(&partition, wanted.leader_epoch, wanted.current_leader_epoch) {
        Err(error) => EpochEndOffset { error_code: code(&error).code(), ..unknown },
        Ok(None) => EpochEndOffset { error_code: 0, ..unknown },
        Ok(Some((leader_epoch, end))) => {
            EpochEndOffset { error_code: 0, leader_epoch, end_offset: end.get(), ..unknown }
        }
    }
}
