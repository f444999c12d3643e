//! IncrementalAlterConfigs 0 and 1: settings are set (0), taken back to their defaults (1), and lists get (2) or lose (3) words;
//! what is not named stays. Each resource succeeds or fails by itself; a name or value that cannot be is error 40 with a text. What
//! decides how the broker works is given at its start and refused here with error 42.

use leftoff_engine::broker::{AlterSetting, KeptFor, Settings};
use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig, Request, Response,
};

use super::configs::{self, Refused, Resource};
use super::kept_configs;
use super::{Asked, Closing};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

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
    let steps = match steps(resource) {
        Ok(steps) => steps,
        Err(refused) => return Ok(Err(refused)),
    };
    Ok(match Resource::of(resource.resource_type) {
        Err(refused) => Err(refused),
        Ok(Resource::Topic) => {
            let change = |now: &Settings| now.alter(&steps).map_err(configs::refused_setting);
            configs::alter_topic(asked, name, validate_only, change).await?
        }
        Ok(Resource::Kept) => {
            let of = KeptFor { resource_type: resource.resource_type, name: name.to_owned() };
            let change = |_now: &[(String, String)]| steps.iter().map(whole).collect();
            kept_configs::alter(asked, of, validate_only, change).await?
        }
    })
}

fn steps<'a>(resource: &AlterConfigsResource<'a>) -> Result<Vec<(&'a str, AlterSetting<'a>)>, Refused> {
    if let Some(name) = configs::twice(resource.configs.iter().map(|config| config.name)) {
        return Err(configs::named_twice(name));
    }
    resource.configs.iter().map(|config| Ok((config.name, step(config)?))).collect()
}

/// Nothing that is kept is a list.
fn whole((name, step): &(&str, AlterSetting<'_>)) -> Result<(String, Option<String>), Refused> {
    match step {
        AlterSetting::Set(value) => Ok(((*name).to_owned(), Some((*value).to_owned()))),
        AlterSetting::Delete => Ok(((*name).to_owned(), None)),
        AlterSetting::Append(_) | AlterSetting::Subtract(_) => {
            Err((ErrorCode::InvalidConfig, format!("{name} is no list to append to or subtract from")))
        }
    }
}

fn step<'a>(config: &AlterableConfig<'a>) -> Result<AlterSetting<'a>, Refused> {
    let name = config.name;
    let value = || {
        let text = || format!("{name}: without a value; operation {DELETE} takes it back to its default");
        config.value.ok_or_else(|| (ErrorCode::InvalidConfig, text()))
    };
    match config.config_operation {
        SET => Ok(AlterSetting::Set(value()?)),
        DELETE => Ok(AlterSetting::Delete),
        APPEND => Ok(AlterSetting::Append(value()?)),
        SUBTRACT => Ok(AlterSetting::Subtract(value()?)),
        other => {
            Err((ErrorCode::InvalidRequest, format!("{name}: there is no operation {other}, only 0 to 3")))
        }
    }
}
