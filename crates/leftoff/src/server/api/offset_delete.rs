//! OffsetDelete 0: forgets saved offsets of a group; acknowledged when that is on the disk. A topic that a member subscribes to keeps
//! its offsets: error 86 for that partition. A group that is not there is error 69, one whose members are no consumers 68.

use leftoff_engine::coordinator::classic::{GroupReply, GroupRequest};
use leftoff_engine::types::TopicPartition;
use leftoff_wire::messages::offset_delete::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic, Request, Response,
};

use super::offsets::ask;
use super::{Asked, Closing};

pub(super) async fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    let partitions = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| TopicPartition {
            topic: topic.name.to_owned(),
            partition: partition.partition_index,
        })
    });
    let (partitions, group) = (partitions.collect(), request.group_id.to_owned());
    let wanted = GroupRequest::DeleteOffsets { group, partitions, who: asked.who() };
    let deleted = match ask(asked, wanted).await? {
        Ok(GroupReply::DeleteOffsets(deleted)) => deleted.map_err(|error| error.code()),
        Ok(other) => unreachable!("a deletion of offsets is answered as one, not with {other:?}"),
        Err(error) => Err(error.code()),
    };
    let codes = match deleted {
        Ok(codes) => codes,
        Err(error_code) => {
            return Ok(Response { error_code, ..Response::default() }.encode(out, asked.version)?);
        }
    };
    let mut codes = codes.into_iter().map(|error| error.code());
    let topics = request.topics.iter().map(|topic| OffsetDeleteResponseTopic {
        name: topic.name,
        partitions: topic
            .partitions
            .iter()
            .zip(&mut codes)
            .map(|(partition, error_code)| OffsetDeleteResponsePartition {
                partition_index: partition.partition_index,
                error_code,
            })
            .collect(),
    });
    Ok(Response { topics: topics.collect(), ..Response::default() }.encode(out, asked.version)?)
}
