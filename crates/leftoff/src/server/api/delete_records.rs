//! DeleteRecords 0 to 2: everything below an offset goes; -1 is the high watermark. An offset above it is error 1, one below the log
//! start is no error and changes nothing. The answer is the log start then, which is on the disk. As in Kafka a topic that is only
//! compacted is refused with error 44, and the offsets topic with 17.

use leftoff_engine::broker::{OFFSETS_TOPIC, PartitionId, Request as Ask};
use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsTopicResult, Request, Response,
};

use super::{Asked, Closing, code, refused};

pub(super) async fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    let mut topics = Vec::new();
    for topic in &request.topics {
        let mut partitions = Vec::new();
        for partition in &topic.partitions {
            let deleted = delete_one(asked, topic.name, partition).await?;
            partitions.push(DeleteRecordsPartitionResult {
                partition_index: partition.partition_index,
                low_watermark: deleted.unwrap_or(-1),
                error_code: deleted.err().unwrap_or(ErrorCode::None).code(),
            });
        }
        topics.push(DeleteRecordsTopicResult { name: topic.name, partitions });
    }
    Ok(Response { throttle_time_ms: 0, topics }.encode(out, asked.version)?)
}

async fn delete_one(
    asked: &Asked<'_>,
    topic: &str,
    wanted: &DeleteRecordsPartition,
) -> Result<Result<i64, ErrorCode>, Closing> {
    if topic == OFFSETS_TOPIC {
        return Ok(Err(ErrorCode::InvalidTopicException));
    }
    let store = &asked.server.store;
    let found = store.with_state(|state| {
        let topic = state.topic(topic).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let partition = PartitionId { topic_id: topic.topic_id, partition: wanted.partition_index };
        let before = state.delete_before(&partition, wanted.offset).map_err(|error| code(&error))?;
        let policy = topic.settings.value("cleanup.policy").0;
        let deletes = policy.split(',').any(|word| word.trim() == "delete");
        if deletes { Ok((partition, before)) } else { Err(ErrorCode::PolicyViolation) }
    });
    let (partition, before) = match found {
        Ok(found) => found,
        Err(error) => return Ok(Err(error)),
    };
    if let Err((error, _)) = refused(asked.server.ask(Ask::Trim { partition, before }).await?) {
        return Ok(Err(error));
    }
    // Deleted meanwhile, the topic has no start.
    let start = store.with_state(|state| state.log(&partition).map(|log| log.log_start().get()));
    Ok(start.ok_or(ErrorCode::UnknownTopicOrPartition))
}
