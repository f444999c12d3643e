//! DescribeTopicPartitions 0: topics by name, with their partitions, page by page. No names means all. At most 2000 partitions are told at
//! once, or as few as the client wants; where there are more the cursor says where to go on. A topic is never made here.

use std::collections::BTreeSet;

use leftoff_engine::broker::{OFFSETS_TOPIC, Topic};
use leftoff_wire::Uuid;
use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::describe_topic_partitions::{
    Request, Response, ResponseCursor, ResponseDescribeTopicPartitionsResponsePartition as WirePartition,
    ResponseDescribeTopicPartitionsResponseTopic as WireTopic,
};

use super::metadata::is_name;
use super::{Asked, Closing, authorized, configs};

/// Kafka's `max.request.partition.size.limit`.
const MAX_PARTITIONS: i32 = 2000;

pub(super) async fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    let leader_epoch = asked.server.store.with_state(|state| state.metadata().leader_epoch());
    // Storage that has failed tells of no topics any more.
    let topics = configs::topics(asked).await?.unwrap_or_default();
    let mut names: BTreeSet<&str> = request.topics.iter().map(|topic| topic.name).collect();
    if names.is_empty() {
        names = topics.iter().map(|topic| topic.name.as_str()).chain([OFFSETS_TOPIC]).collect();
    }
    let (begin, first) = match &request.cursor {
        Some(cursor) => (cursor.topic_name, cursor.partition_index.max(0)),
        None => ("", 0),
    };
    let mut left = request.response_partition_limit.clamp(1, MAX_PARTITIONS);
    let leader = asked.server.settings.node_id;
    let (mut told, mut next_cursor) = (Vec::new(), None);
    for name in names.into_iter().filter(|name| *name >= begin) {
        let from = if name == begin { first } else { 0 };
        let Some((topic_id, count)) = find(&topics, name) else {
            told.push(missing(name));
            continue;
        };
        if left == 0 {
            next_cursor = Some(ResponseCursor { topic_name: name, partition_index: from });
            break;
        }
        let until = count.min(from.saturating_add(left));
        let partitions = (from..until).map(|number| partition(number, leader, leader_epoch)).collect();
        told.push(WireTopic {
            error_code: 0,
            name: Some(name),
            topic_id,
            is_internal: name == OFFSETS_TOPIC,
            partitions,
            topic_authorized_operations: authorized::TOPIC,
        });
        left -= (until - from).max(0);
        if until < count {
            next_cursor = Some(ResponseCursor { topic_name: name, partition_index: until });
            break;
        }
    }
    Ok(Response { throttle_time_ms: 0, topics: told, next_cursor }.encode(out, asked.version)?)
}

fn find(topics: &[Topic], name: &str) -> Option<(Uuid, i32)> {
    if name == OFFSETS_TOPIC {
        return Some((Uuid::OFFSETS, 1));
    }
    topics.iter().find(|topic| topic.name == name).map(|topic| (topic.topic_id, topic.partitions))
}

fn missing(name: &str) -> WireTopic<'_> {
    let error =
        if is_name(name) { ErrorCode::UnknownTopicOrPartition } else { ErrorCode::InvalidTopicException };
    WireTopic { error_code: error.code(), name: Some(name), ..WireTopic::default() }
}

fn partition(number: i32, leader: i32, leader_epoch: i32) -> WirePartition {
    WirePartition {
        error_code: 0,
        partition_index: number,
        leader_id: leader,
        leader_epoch,
        replica_nodes: vec![leader],
        isr_nodes: vec![leader],
        eligible_leader_replicas: Some(Vec::new()),
        last_known_elr: Some(Vec::new()),
        offline_replicas: Vec::new(),
    }
}
