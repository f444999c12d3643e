//! DescribeConfigs 1 to 4. Topics, the broker and groups have settings. All of a topic's are shown, with the broker's setting
//! behind each as a synonym, as Kafka has it; those that change nothing here say so in their documentation (from version 3 on). Of
//! the broker's those that decide something are shown, read-only: they are given at the start. Its others, and those of a group, can
//! be changed, and are only kept. No keys, or none named, means all; a key that is not known is left out, as Kafka does. The empty
//! broker name asks for what was given for all brokers. Loggers and client metrics have no settings: error 42.

use leftoff_engine::broker::{KeptFor, Metadata};
use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::describe_configs::{
    DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
    Request, Response,
};

use super::configs::{self, Refused, Resource, Shown};
use super::kept_configs;
use super::{Asked, Closing};

pub(super) async fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    // What is kept is looked at before it is waited for the disk, so that it is there.
    let kept = asked.server.store.with_state(|state| {
        let of_broker_or_group = |resource: &DescribeConfigsResource<'_>| {
            matches!(Resource::of(resource.resource_type), Ok(Resource::Kept))
                .then(|| describe_kept(asked, state.metadata(), resource))
        };
        request.resources.iter().map(of_broker_or_group).collect::<Vec<_>>()
    });
    let topics = configs::topics(asked).await?;
    let describe = |(resource, kept): (&DescribeConfigsResource<'_>, Option<Result<Vec<Shown>, Refused>>)| {
        let shown = match (Resource::of(resource.resource_type)?, kept) {
            (Resource::Topic, _) | (Resource::Kept, None) => {
                let topics = topics.as_ref().map_err(Clone::clone)?;
                configs::of_topic(&configs::find_topic(asked, topics, resource.resource_name)?)
            }
            (Resource::Kept, Some(kept)) => kept?,
        };
        let keys = resource.configuration_keys.as_deref().unwrap_or_default();
        let is_wanted = |shown: &Shown| keys.is_empty() || keys.contains(&shown.name);
        Ok(shown.into_iter().filter(is_wanted).collect())
    };
    let found: Vec<Result<Vec<Shown>, Refused>> = request.resources.iter().zip(kept).map(describe).collect();
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

fn describe_kept(
    asked: &Asked<'_>,
    metadata: &Metadata,
    resource: &DescribeConfigsResource<'_>,
) -> Result<Vec<Shown>, Refused> {
    let (resource_type, name) = (resource.resource_type, resource.resource_name);
    let of = KeptFor { resource_type, name: name.to_owned() };
    if resource_type == Resource::GROUP {
        return Ok(kept_configs::shown(metadata, &of));
    }
    configs::check_broker_name(asked, name)?;
    if name.is_empty() {
        return Ok(kept_configs::given_for_all_brokers(metadata));
    }
    let mut shown = configs::of_broker(asked);
    shown.extend(kept_configs::shown(metadata, &of));
    shown.sort_by_key(|shown| shown.name);
    Ok(shown)
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
