//! DescribeConfigs 1 to 4. Topics and the broker have settings. All of a topic's are shown, with the broker's setting behind each
//! as a synonym, as Kafka has it; those that change nothing here say so in their documentation (from version 3 on). The broker's
//! are those that decide something, and read-only: they are given at the start. No keys, or none named, means all; a key that is
//! not known is left out, as Kafka does. The empty broker name asks for what is set for all brokers, which is nothing.

use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::describe_configs::{
    DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
    Request, Response,
};

use super::configs::{self, Refused, Resource, Shown};
use super::{Asked, Closing};

pub(super) async fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    let topics = configs::topics(asked).await?;
    let describe = |resource: &DescribeConfigsResource<'_>| {
        let shown = match Resource::of(resource.resource_type)? {
            Resource::Topic => {
                let topics = topics.as_ref().map_err(Clone::clone)?;
                configs::of_topic(&configs::find_topic(asked, topics, resource.resource_name)?)
            }
            Resource::Broker => {
                configs::check_broker_name(asked, resource.resource_name)?;
                if resource.resource_name.is_empty() { Vec::new() } else { configs::of_broker(asked) }
            }
        };
        let keys = resource.configuration_keys.as_deref().unwrap_or_default();
        let is_wanted = |shown: &Shown| keys.is_empty() || keys.contains(&shown.name);
        Ok(shown.into_iter().filter(is_wanted).collect())
    };
    let found: Vec<Result<Vec<Shown>, Refused>> = request.resources.iter().map(describe).collect();
    let results = request.resources.iter().zip(&found).map(|(resource, found)| {
        let (error, text) = match found {
            Ok(_) => (ErrorCode::None, None),
            Err((error, text)) => (*error, Some(text.as_str())),
        };
        let shown = found.as_deref().unwrap_or_default();
        DescribeConfigsResult {
            error_code: error.code(),
            error_message: text,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
            configs: shown.iter().map(|shown| result(shown, &request, asked.version)).collect(),
        }
    });
    let results = results.collect();
    Ok(Response { throttle_time_ms: 0, results }.encode(out, asked.version)?)
}

fn result<'a>(shown: &'a Shown, request: &Request<'_>, version: i16) -> DescribeConfigsResourceResult<'a> {
    let synonyms = shown.synonyms.iter().map(|(name, value, source)| DescribeConfigsSynonym {
        name,
        value: Some(value),
        source: *source as i8,
    });
    DescribeConfigsResourceResult {
        name: shown.name,
        value: Some(&shown.value),
        read_only: shown.is_read_only,
        config_source: shown.source as i8,
        is_sensitive: false,
        synonyms: if request.include_synonyms { synonyms.collect() } else { Vec::new() },
        config_type: if version >= 3 { shown.of_type as i8 } else { 0 },
        documentation: request.include_documentation.then_some(&shown.doc),
    }
}
