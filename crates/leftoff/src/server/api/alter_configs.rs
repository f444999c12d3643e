//! AlterConfigs 0 to 2, the older way: what a topic, the broker or a group is given replaces all that it had. Each resource succeeds
//! or fails by itself; a name or value that cannot be is error 40 with a text. What decides how the broker works is given at its start
//! and refused here with error 42.

use leftoff_engine::broker::KeptFor;
use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig, Request, Response,
};

use super::configs::{self, Refused, Resource};
use super::kept_configs;
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
    let name = resource.resource_name;
    let given = match given(resource) {
        Ok(given) => given,
        Err(refused) => return Ok(Err(refused)),
    };
    Ok(match Resource::of(resource.resource_type) {
        Err(refused) => Err(refused),
        Ok(Resource::Topic) => {
            configs::alter_topic(asked, name, validate_only, |now| Ok(now.replace(&given))).await?
        }
        Ok(Resource::Kept) => {
            let of = KeptFor { resource_type: resource.resource_type, name: name.to_owned() };
            kept_configs::alter(asked, of, validate_only, |now| Ok(replaced(now, &given))).await?
        }
    })
}

fn given<'a>(resource: &AlterConfigsResource<'a>) -> Result<Vec<(&'a str, &'a str)>, Refused> {
    if let Some(name) = configs::twice(resource.configs.iter().map(|config| config.name)) {
        return Err(configs::named_twice(name));
    }
    let value = |config: &AlterableConfig<'a>| {
        Ok((config.name, config.value.ok_or_else(|| without_value(config.name))?))
    };
    resource.configs.iter().map(value).collect()
}

/// These settings, and no others.
fn replaced(now: &[(String, String)], given: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
    let is_gone = |name: &str| given.iter().all(|(stays, _)| *stays != name);
    let gone = now.iter().filter(|(name, _)| is_gone(name)).map(|(name, _)| (name.clone(), None));
    let set = given.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned())));
    gone.chain(set).collect()
}

fn without_value(name: &str) -> Refused {
    (
        ErrorCode::InvalidConfig,
        format!("{name}: without a value; leave it out to take it back to its default"),
    )
}
