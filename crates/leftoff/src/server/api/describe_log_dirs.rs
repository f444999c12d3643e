//! DescribeLogDirs 1 to 4: the data directory, with the bytes of each partition's segments and, from version 4 on, those of its file
//! system. No topics named means all. There is no second copy, so nothing lags.

use leftoff_engine::broker::{OFFSETS_LOG, OFFSETS_TOPIC, PartitionId, State};
use leftoff_wire::messages::describe_log_dirs::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic, Request, Response,
};

use super::{Asked, Closing};

pub(super) async fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    let store = &asked.server.store;
    let wanted: Option<Vec<(String, Vec<i32>)>> = request.topics.as_ref().map(|topics| {
        topics.iter().map(|topic| (topic.topic.to_owned(), topic.partitions.clone())).collect()
    });
    let topics = store.with_state(|state| {
        let wanted = wanted.unwrap_or_else(|| all(state));
        let sizes = |(name, partitions): (String, Vec<i32>)| {
            let sizes: Vec<_> = partitions.iter().filter_map(|number| size(state, &name, *number)).collect();
            (name, sizes)
        };
        wanted.into_iter().map(sizes).filter(|(_, sizes)| !sizes.is_empty()).collect::<Vec<_>>()
    });
    let root = std::path::absolute(store.root()).unwrap_or_else(|_| store.root().to_owned());
    let root = root.display().to_string();
    let (total_bytes, usable_bytes) =
        if asked.version >= 4 { space(store.root()).unwrap_or((-1, -1)) } else { (-1, -1) };
    let result = DescribeLogDirsResult {
        error_code: 0,
        log_dir: &root,
        topics: topics
            .iter()
            .map(|(name, partitions)| DescribeLogDirsTopic { name, partitions: partitions.clone() })
            .collect(),
        total_bytes,
        usable_bytes,
    };
    Ok(Response { throttle_time_ms: 0, error_code: 0, results: vec![result] }.encode(out, asked.version)?)
}

fn all(state: &State) -> Vec<(String, Vec<i32>)> {
    let topics = state.topics().map(|topic| (topic.name.clone(), (0..topic.partitions).collect()));
    topics.chain([(OFFSETS_TOPIC.to_owned(), vec![OFFSETS_LOG.partition])]).collect()
}

/// What is not there has no size, as in Kafka; nor has what cannot be read.
fn size(state: &State, topic: &str, number: i32) -> Option<DescribeLogDirsPartition> {
    let partition = match topic {
        OFFSETS_TOPIC => PartitionId { partition: number, ..OFFSETS_LOG },
        topic => PartitionId { topic_id: state.topic(topic)?.topic_id, partition: number },
    };
    let bytes = state.size_bytes(&partition).ok()?;
    let partition_size = i64::try_from(bytes).unwrap_or(i64::MAX);
    Some(DescribeLogDirsPartition {
        partition_index: number,
        partition_size,
        offset_lag: 0,
        is_future_key: false,
    })
}

/// Bytes of the file system, and those that are free.
fn space(root: &std::path::Path) -> Option<(i64, i64)> {
    let found = rustix::fs::statvfs(root).ok()?;
    let bytes = |blocks: u64| i64::try_from(blocks.saturating_mul(found.f_frsize)).unwrap_or(i64::MAX);
    Some((bytes(found.f_blocks), bytes(found.f_bavail)))
}
