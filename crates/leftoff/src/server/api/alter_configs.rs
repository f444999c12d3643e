//! AlterConfigs 0 to 2, the older way: what a topic is given replaces all that it had. Each resource succeeds or fails by itself;
//! a name or value that cannot be is error 40 with a text. The broker's settings are given at its start and refused here.

use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, Request, Response,
};

use super::configs::{self, Refused, Resource};
use super::{Asked, Closing};

pub(super) async fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    let mut outcomes = Vec::new();
    for resource in &request.resources {
        let named = request.resources.iter().filter(|other| {
            (other.resource_type, other.resource_name) == (resource.resource_type, resource.resource_name)
        });
        outcomes.push(match named.count() {
            1 => alter(asked, resource, request.validate_only).await?,
            _ => Err(configs::named_twice(resource.resource_name)),
        });
    }
    let responses = request.resources.iter().zip(&outcomes).map(|(resource, outcome)| {
        let (error, text) = configs::told(outcome);
        AlterConfigsResourceResponse {
            error_code: error.code(),
            error_message: text,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
        }
    });
    let responses = responses.collect();
    Ok(Response { throttle_time_ms: 0, responses }.encode(out, asked.version)?)
}

async fn alter(
    asked: &Asked<'_>,
    resource: &AlterConfigsResource<'_>,
    validate_only: bool,
) -> Result<Result<(), Refused>, Closing> {
    match Resource::of(resource.resource_type) {
        Err(refused) => Ok(Err(refused)),
        Ok(Resource::Broker) => Ok(Err(configs::fixed_at_start(asked, resource.resource_name))),
        Ok(Resource::Topic) => {
            let name = resource.resource_name;
            let changes = configs::alter_topic(asked, name, validate_only, |now| {
                if let Some(name) = configs::twice(resource.configs.iter().map(|config| config.name)) {
                    return Err(configs::named_twice(name));
                }
                let mut given = Vec::new();
                for config in &resource.configs {
                    given.push((config.name, config.value.ok_or_else(|| without_value(config.name))?));
                }
                Ok(now.replace(&given))
            });
            Ok(changes.await?)
        }
    }
}

fn without_value(name: &str) -> Refused {
    (
        ErrorCode::InvalidConfig,
        format!("{name}: without a value; leave it out to take it back to its default"),
    )
}
