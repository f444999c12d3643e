//! OffsetCommit 2 to 9 and OffsetFetch 1 to 9, by Kafka's rules: an unknown group or partition answers offset -1 and no error; a
//! commit is answered when it is on the disk.

use leftoff_engine::broker::{Reply, Request as Ask};
use leftoff_engine::coordinator::classic::{
    CommitOffsets, FetchOffsets, FetchedGroup, GroupReply, GroupRequest, OffsetToSave,
};
use leftoff_wire::messages::{ErrorCode, offset_commit, offset_fetch};

use super::{Asked, Closing, error_of};

/// Several groups are asked for at once from this version on.
const GROUPS_FROM: i16 = 8;

pub(super) async fn ask(
    asked: &Asked<'_>,
    request: GroupRequest,
) -> Result<Result<GroupReply, ErrorCode>, Closing> {
    Ok(match asked.server.ask(Ask::Group(request)).await? {
        Reply::Group(reply) => Ok(reply),
        Reply::Refused(refusal) => Err(error_of(&refusal)),
        other => unreachable!("about groups is answered so, not with {other:?}"),
    })
}

pub(super) async fn commit(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    use offset_commit::{OffsetCommitResponsePartition, OffsetCommitResponseTopic, Request, Response};
    let request = Request::decode(asked.body, asked.version)?;
    let offsets = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| OffsetToSave {
            topic: topic.name.to_owned(),
            partition: partition.partition_index,
            committed: partition.committed_offset,
            leader_epoch: partition.committed_leader_epoch,
            metadata: partition.committed_metadata.unwrap_or_default().to_owned(),
        })
    });
    let commit = CommitOffsets {
        group: request.group_id.to_owned(),
        generation: request.generation_id_or_member_epoch,
        member_id: request.member_id.to_owned(),
        group_instance_id: request.group_instance_id.map(str::to_owned),
        client: asked.client(),
        offsets: offsets.collect(),
    };
    let count = commit.offsets.len();
    let codes: Vec<i16> = match ask(asked, GroupRequest::Commit(commit)).await? {
        Ok(GroupReply::Commit(results)) => {
            results.into_iter().map(|result| result.map_or_else(|error| error.code(), |_flags| 0)).collect()
        }
        Ok(other) => unreachable!("a commit is answered as one, not with {other:?}"),
        Err(error) => vec![error.code(); count],
    };
    let mut codes = codes.into_iter();
    let topics = request
        .topics
        .iter()
        .map(|topic| OffsetCommitResponseTopic {
            name: topic.name,
            partitions: topic
                .partitions
                .iter()
                .zip(&mut codes)
                .map(|(partition, error_code)| OffsetCommitResponsePartition {
                    partition_index: partition.partition_index,
                    error_code,
                })
                .collect(),
        })
        .collect();
    Ok(Response { throttle_time_ms: 0, topics }.encode(out, asked.version)?)
}

pub(super) async fn fetch(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    use offset_fetch as wire;
    let request = wire::Request::decode(asked.body, asked.version)?;
    let wanted = if asked.version >= GROUPS_FROM {
        let group = |group: &wire::OffsetFetchRequestGroup<'_>| FetchOffsets {
            group: group.group_id.to_owned(),
            topics: group.topics.as_ref().map(|topics| {
                topics.iter().map(|topic| (topic.name.to_owned(), topic.partition_indexes.clone())).collect()
            }),
        };
        request.groups.iter().map(group).collect()
    } else {
        let topics = request.topics.as_ref().map(|topics| {
            topics.iter().map(|topic| (topic.name.to_owned(), topic.partition_indexes.clone())).collect()
        });
        vec![FetchOffsets { group: request.group_id.to_owned(), topics }]
    };
    let names: Vec<String> = wanted.iter().map(|one| one.group.clone()).collect();
    let (groups, error_code) = match ask(asked, GroupRequest::Fetch(wanted)).await? {
        Ok(GroupReply::Fetch(groups)) => (groups, 0),
        Ok(other) => unreachable!("a fetch of offsets is answered as one, not with {other:?}"),
        Err(error) => {
            let none = |group| FetchedGroup { group, topics: Vec::new() };
            (names.into_iter().map(none).collect(), error.code())
        }
    };
    let response = if asked.version >= GROUPS_FROM {
        let groups = groups.iter().map(|group| wire::OffsetFetchResponseGroup {
            group_id: &group.group,
            topics: group
                .topics
                .iter()
                .map(|(name, partitions)| wire::OffsetFetchResponseTopics {
                    name,
                    partitions: partitions
                        .iter()
                        .map(|one| wire::OffsetFetchResponsePartitions {
                            partition_index: one.partition,
                            committed_offset: one.committed,
                            committed_leader_epoch: one.leader_epoch,
                            metadata: Some(&one.metadata),
                            error_code: 0,
                        })
                        .collect(),
                })
                .collect(),
            error_code,
        });
        wire::Response { groups: groups.collect(), ..wire::Response::default() }
    } else {
        let topics = groups.iter().flat_map(|group| &group.topics);
        let topics = topics.map(|(name, partitions)| wire::OffsetFetchResponseTopic {
            name,
            partitions: partitions
                .iter()
                .map(|one| wire::OffsetFetchResponsePartition {
                    partition_index: one.partition,
                    committed_offset: one.committed,
                    committed_leader_epoch: one.leader_epoch,
                    metadata: Some(&one.metadata),
                    error_code: 0,
                })
                .collect(),
        });
        wire::Response { topics: topics.collect(), error_code, ..wire::Response::default() }
    };
    Ok(response.encode(out, asked.version)?)
}
