//! ListConfigResources 0 and 1: topics, the broker, and the groups that have settings. Version 0 knows client metrics only, and of
//! those there are none.

use leftoff_engine::broker::OFFSETS_TOPIC;
use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::list_config_resources::{ConfigResource, Request, Response};

use super::configs::{self, Resource};
use super::{Asked, Closing};

/// Kafka's others: loggers of a broker, and client metrics.
const EMPTY: [i8; 2] = [8, 16];

pub(super) async fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    if asked.version == 0 {
        return Ok(Response::default().encode(out, asked.version)?);
    }
    let wanted = &request.resource_types;
    let known = [Resource::TOPIC, Resource::BROKER, Resource::GROUP];
    if wanted.iter().any(|one| !known.contains(one) && !EMPTY.contains(one)) {
        let error_code = ErrorCode::UnsupportedVersion.code();
        return Ok(Response { error_code, ..Response::default() }.encode(out, asked.version)?);
    }
    let is_wanted = |resource_type: i8| wanted.is_empty() || wanted.contains(&resource_type);
    // Looked at before it is waited for the disk, so that it is there.
    let groups: Vec<String> = asked.server.store.with_state(|state| {
        let keepers = state.metadata().keepers();
        keepers.filter(|of| of.resource_type == Resource::GROUP).map(|of| of.name.clone()).collect()
    });
    let topics = match configs::topics(asked).await? {
        Ok(topics) => topics,
        Err((error, _)) => {
            let response = Response { error_code: error.code(), ..Response::default() };
            return Ok(response.encode(out, asked.version)?);
        }
    };
    let broker = asked.server.settings.node_id.to_string();
    let topics = topics.iter().map(|topic| topic.name.as_str()).chain([OFFSETS_TOPIC]);
    let topics = topics.map(|name| (name, Resource::TOPIC));
    let groups = groups.iter().map(|name| (name.as_str(), Resource::GROUP));
    let all = topics.chain([(broker.as_str(), Resource::BROKER)]).chain(groups);
    let config_resources = all
        .filter(|(_, resource_type)| is_wanted(*resource_type))
        .map(|(resource_name, resource_type)| ConfigResource { resource_name, resource_type })
        .collect();
    Ok(Response { config_resources, ..Response::default() }.encode(out, asked.version)?)
}
