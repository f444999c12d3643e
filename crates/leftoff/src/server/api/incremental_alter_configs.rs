//! IncrementalAlterConfigs 0 and 1: settings are set (0), taken back to their defaults (1), and lists get (2) or lose (3) words;
//! what is not named stays. Each resource succeeds or fails by itself; a name or value that cannot be is error 40 with a text. The
//! broker's settings are given at its start and refused here.

use leftoff_engine::broker::AlterSetting;
use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig, Request, Response,
};

use super::configs::{self, Refused, Resource};
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
    match Resource::of(resource.resource_type) {
        Err(refused) => Ok(Err(refused)),
        Ok(Resource::Broker) => Ok(Err(configs::fixed_at_start(asked, resource.resource_name))),
        Ok(Resource::Topic) => {
            let name = resource.resource_name;
            let altered = configs::alter_topic(asked, name, validate_only, |now| {
                if let Some(name) = configs::twice(resource.configs.iter().map(|config| config.name)) {
                    return Err(configs::named_twice(name));
                }
                let steps = resource.configs.iter().map(|config| Ok((config.name, step(config)?)));
                let steps: Vec<_> = steps.collect::<Result<_, Refused>>()?;
                now.alter(&steps).map_err(configs::refused_setting)
            });
            Ok(altered.await?)
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
