//! CreateTopics 2 to 7, DeleteTopics 1 to 6, CreatePartitions 0 to 3. More than one replica is refused as one Kafka node does it,
//! unless the server was told to accept that, with one copy. A new topic is answered with all of its settings. `segment.bytes` is
//! 1048576 at least, as Kafka has it.

use leftoff_engine::broker::{Reply, Request as Ask, Settings, Topic};
use leftoff_wire::Uuid;
use leftoff_wire::messages::{ErrorCode, create_partitions, create_topics, delete_topics};

use super::configs::{self, Refused, Shown};
use super::metadata::is_name;
use super::{Asked, Closing, refused};
use crate::store::random_id;

/// CreateTopics tells a topic's settings from this version on.
const SETTINGS_FROM: i16 = 5;

type Outcome = Result<Topic, (ErrorCode, String)>;

pub(super) async fn create(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    use create_topics::{CreatableTopicResult, Request, Response};
    let request = Request::decode(asked.body, asked.version)?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for topic in &request.topics {
        outcomes.push(create_one(asked, topic, request.validate_only).await?);
    }
    let settings: Vec<Vec<Shown>> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Ok(topic) if asked.version >= SETTINGS_FROM => configs::of_topic(&topic.settings),
            _ => Vec::new(),
        })
        .collect();
    let topics = request
        .topics
        .iter()
        .zip(outcomes.iter().zip(&settings))
        .map(|(asked_for, (outcome, settings))| match outcome {
            Ok(topic) => CreatableTopicResult {
                name: asked_for.name,
                topic_id: if asked.version >= 7 { topic.topic_id } else { Uuid::ZERO },
                num_partitions: topic.partitions,
                replication_factor: 1,
                configs: Some(settings.iter().map(told).collect()),
                ..CreatableTopicResult::default()
            },
            Err((error, text)) => CreatableTopicResult {
                name: asked_for.name,
                error_code: error.code(),
                error_message: Some(text),
                configs: Some(Vec::new()),
                ..CreatableTopicResult::default()
            },
        })
        .collect();
    Ok(Response { throttle_time_ms: 0, topics }.encode(out, asked.version)?)
}

fn told(setting: &Shown) -> create_topics::CreatableTopicConfigs<'_> {
    create_topics::CreatableTopicConfigs {
        name: setting.name,
        value: Some(&setting.value),
        read_only: setting.is_read_only,
        config_source: setting.source as i8,
        is_sensitive: false,
    }
}

async fn create_one(
    asked: &Asked<'_>,
    topic: &create_topics::CreatableTopic<'_>,
    validate_only: bool,
) -> Result<Outcome, Closing> {
    let settings = &asked.server.settings;
    let replicas = i64::from(topic.replication_factor);
    let assigned = topic.assignments.iter().map(|one| one.broker_ids.len() as i64).max().unwrap_or(replicas);
    if replicas == 0 || replicas < -1 || (assigned > 1 && !settings.accept_replication) {
        let text = format!("replication factor {assigned}: this is one broker, which keeps one copy");
        return Ok(Err((ErrorCode::InvalidReplicationFactor, text)));
    }
    let partitions = match (topic.assignments.len(), topic.num_partitions) {
        (0, -1) => settings.default_partitions,
        (0, count) => count,
        (count, _) => i32::try_from(count).unwrap_or(i32::MAX),
    };
    let known = asked.server.store.with_state(|state| state.topic(topic.name).is_some());
    if known {
        return Ok(Err((ErrorCode::TopicAlreadyExists, format!("Topic '{}' already exists.", topic.name))));
    }
    let given = match given(topic) {
        Ok(given) => given,
        Err(refused) => return Ok(Err(refused)),
    };
    if validate_only {
        if !is_name(topic.name) {
            let text = format!("topic name {:?} is not valid", topic.name);
            return Ok(Err((ErrorCode::InvalidTopicException, text)));
        }
        if partitions < 1 {
            return Ok(Err((ErrorCode::InvalidPartitions, format!("{partitions} partitions: at least 1"))));
        }
        let mut settings = Settings::default();
        for (name, value) in &given {
            settings.set(name, Some(value)).expect("just checked");
        }
        return Ok(Ok(Topic {
            name: topic.name.to_owned(),
            topic_id: Uuid::ZERO,
            partitions,
            created: crate::store::now(),
            settings,
        }));
    }
    let request =
        Ask::CreateTopic { name: topic.name.to_owned(), topic_id: random_id(), partitions, settings: given };
    Ok(match refused(asked.server.ask(request).await?) {
        Ok(Reply::Topic(topic)) => Ok(topic),
        Ok(other) => unreachable!("a topic is answered with a topic, not {other:?}"),
        Err(error) => Err(error),
    })
}

/// The settings that a topic is to have, checked.
fn given(topic: &create_topics::CreatableTopic<'_>) -> Result<Vec<(String, String)>, Refused> {
    if let Some(name) = configs::twice(topic.configs.iter().map(|config| config.name)) {
        return Err(configs::named_twice(name));
    }
    let mut given = Vec::new();
    for config in &topic.configs {
        let name = config.name;
        let value =
            config.value.ok_or_else(|| (ErrorCode::InvalidConfig, format!("{name}: without a value")))?;
        given.push((name.to_owned(), value.to_owned()));
    }
    let changes: Vec<_> = given.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
    configs::check_changes(&Settings::default(), &changes).map_err(configs::refused_setting)?;
    Ok(given)
}

pub(super) async fn delete(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    use delete_topics::{DeletableTopicResult, Request, Response};
    let request = Request::decode(asked.body, asked.version)?;
    let by_name = request.topic_names.iter().map(|name| (Some((*name).to_owned()), Uuid::ZERO));
    let by_either = request.topics.iter().map(|one| (one.name.map(str::to_owned), one.topic_id));
    let wanted: Vec<(Option<String>, Uuid)> = by_name.chain(by_either).collect();
    let mut outcomes = Vec::new();
    for (name, id) in &wanted {
        let found = asked.server.store.with_state(|state| match name {
            Some(name) => state.topic(name).map(|topic| (topic.name.clone(), topic.topic_id)),
            None => state.metadata().by_id(id).map(|topic| (topic.name.clone(), topic.topic_id)),
        });
        let (error, text) = match &found {
            Some((name, _)) => {
                match refused(asked.server.ask(Ask::DeleteTopic { name: name.clone() }).await?) {
                    Ok(_) => (ErrorCode::None, None),
                    Err((error, text)) => (error, Some(text)),
                }
            }
            None if name.is_some() => (ErrorCode::UnknownTopicOrPartition, None),
            None => (ErrorCode::UnknownTopicId, None),
        };
        let id = found.as_ref().map_or(*id, |(_, id)| *id);
        outcomes.push((name.clone().or(found.map(|(name, _)| name)), id, error, text));
    }
    let responses = outcomes
        .iter()
        .map(|(name, id, error, text)| DeletableTopicResult {
            name: name.as_deref(),
            topic_id: if asked.version >= 6 { *id } else { Uuid::ZERO },
            error_code: error.code(),
            error_message: if asked.version >= 5 { text.as_deref() } else { None },
        })
        .collect();
    Ok(Response { throttle_time_ms: 0, responses }.encode(out, asked.version)?)
}

pub(super) async fn add_partitions(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    use create_partitions::{CreatePartitionsTopicResult, Request, Response};
    let request = Request::decode(asked.body, asked.version)?;
    let mut outcomes: Vec<(ErrorCode, Option<String>)> = Vec::new();
    for topic in &request.topics {
        let now =
            asked.server.store.with_state(|state| state.topic(topic.name).map(|topic| topic.partitions));
        outcomes.push(match now {
            None => (ErrorCode::UnknownTopicOrPartition, Some("no such topic".to_owned())),
            Some(now) if topic.count <= now => {
                let text =
                    format!("topic {} has {now} partitions already, and can only get more", topic.name);
                (ErrorCode::InvalidPartitions, Some(text))
            }
            Some(_) if request.validate_only => (ErrorCode::None, None),
            Some(_) => {
                let alter = Ask::AlterTopic {
                    name: topic.name.to_owned(),
                    settings: Vec::new(),
                    partitions: Some(topic.count),
                };
                match refused(asked.server.ask(alter).await?) {
                    Ok(_) => (ErrorCode::None, None),
                    Err((error, text)) => (error, Some(text)),
                }
            }
        });
    }
    let results = request
        .topics
        .iter()
        .zip(&outcomes)
        .map(|(topic, (error, text))| CreatePartitionsTopicResult {
            name: topic.name,
            error_code: error.code(),
            error_message: text.as_deref(),
        })
        .collect();
    Ok(Response { throttle_time_ms: 0, results }.encode(out, asked.version)?)
}
