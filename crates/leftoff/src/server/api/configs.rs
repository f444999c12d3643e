//! What DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and CreateTopics share: whose settings there are, and how Kafka
//! shows one.

use leftoff_engine::broker::{
    Effect, Reply, Request as Ask, SettingError, SettingInfo, SettingKind, Settings,
};
use leftoff_engine::broker::{OFFSETS_TOPIC, TOPIC_SETTINGS, Topic};
use leftoff_wire::messages::ErrorCode;

use super::{Asked, Stopping, error_of, refused};
use crate::server::broker_settings::{self, BrokerSetting};

/// An error of one resource, with its text.
pub(super) type Refused = (ErrorCode, String);

/// Whose settings: Kafka's `ConfigResource.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Topic,
    /// The broker, or what settings are kept for.
    Kept,
}

impl Resource {
    pub(super) const TOPIC: i8 = 2;
    pub(super) const BROKER: i8 = 4;
    pub(super) const GROUP: i8 = 32;

    pub(super) fn of(code: i8) -> Result<Resource, Refused> {
        match code {
            Resource::TOPIC => Ok(Resource::Topic),
            Resource::BROKER | Resource::GROUP => Ok(Resource::Kept),
            other => {
                let text = format!(
                    "resource type {other}: only topics (2), the broker (4) and groups (32) have settings here"
                );
                Err((ErrorCode::InvalidRequest, text))
            }
        }
    }
}

/// Where a value is from: Kafka's `DescribeConfigsResponse.ConfigSource`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub(super) enum Source {
    Topic = 1,
    Broker = 2,
    AllBrokers = 3,
    Start = 4,
    Default = 5,
    Group = 8,
}

/// What a value is: Kafka's `DescribeConfigsResponse.ConfigType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub(crate) enum Type {
    Boolean = 1,
    Text = 2,
    Int = 3,
    Long = 5,
    Double = 6,
    List = 7,
}

/// A setting as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub name: &'static str,
    pub value: String,
    pub source: Source,
    pub is_read_only: bool,
    pub of_type: Type,
    /// What decides, best first, with what it says and where it is from.
    pub synonyms: Vec<(&'static str, String, Source)>,
    pub doc: String,
}

/// All settings of a topic.
pub(super) fn of_topic(settings: &Settings) -> Vec<Shown> {
    TOPIC_SETTINGS.iter().map(|known| shown_of_topic(known, settings)).collect()
}

fn shown_of_topic(known: &'static SettingInfo, settings: &Settings) -> Shown {
    let (value, is_given) = settings.value(known.name);
    let given = is_given.then(|| (known.name, value.to_owned(), Source::Topic));
    let has_broker_name = !known.broker_name.is_empty();
    let default = has_broker_name.then(|| (known.broker_name, known.default.to_owned(), Source::Default));
    Shown {
        name: known.name,
        value: value.to_owned(),
        source: if is_given { Source::Topic } else { Source::Default },
        is_read_only: false,
        of_type: type_of(known.kind),
        synonyms: given.into_iter().chain(default).collect(),
        doc: match known.effect {
            Effect::Applies => known.doc.to_owned(),
            Effect::Kept => format!("is kept and changes nothing: {}", known.doc),
        },
    }
}

pub(crate) fn type_of(kind: SettingKind) -> Type {
    match kind {
        SettingKind::Long { .. } => Type::Long,
        SettingKind::Int { .. } => Type::Int,
        SettingKind::Share => Type::Double,
        SettingKind::Boolean => Type::Boolean,
        SettingKind::OneOf(_) => Type::Text,
        SettingKind::List(_) => Type::List,
    }
}

/// What the broker does; none of it can be changed while it runs.
pub(super) fn of_broker(asked: &Asked<'_>) -> Vec<Shown> {
    let shown = |BrokerSetting { name, of_type, value, default, doc }: BrokerSetting| {
        let is_given = default.as_ref() != Some(&value);
        let source = if is_given { Source::Start } else { Source::Default };
        let given = is_given.then(|| (name, value.clone(), Source::Start));
        let synonyms = given.into_iter().chain(default.map(|default| (name, default, Source::Default)));
        let synonyms = synonyms.collect();
        Shown { name, value, source, is_read_only: true, of_type, synonyms, doc: doc.to_owned() }
    };
    broker_settings::all(asked.server, &asked.peer.advertised).into_iter().map(shown).collect()
}

/// The broker is named by its number; the empty name is all brokers of a cluster.
pub(super) fn check_broker_name(asked: &Asked<'_>, name: &str) -> Result<(), Refused> {
    let node_id = asked.server.settings.node_id;
    if name.is_empty() || name == node_id.to_string() {
        return Ok(());
    }
    let text = format!("no broker {name:?}: this one is {node_id}, and an empty name means all");
    Err((ErrorCode::InvalidRequest, text))
}

/// The live topics as they are on the disk.
pub(super) async fn topics(asked: &Asked<'_>) -> Result<Result<Vec<Topic>, Refused>, Stopping> {
    Ok(match refused(asked.server.ask(Ask::Topics).await?) {
        Ok(Reply::Topics(topics)) => Ok(topics),
        Ok(other) => unreachable!("topics are answered with topics, not {other:?}"),
        Err(error) => Err(error),
    })
}

/// The settings of one topic; those of the offsets topic are the broker's own.
pub(super) fn find_topic(asked: &Asked<'_>, topics: &[Topic], name: &str) -> Result<Settings, Refused> {
    if name == OFFSETS_TOPIC {
        return Ok(broker_settings::of_offsets_topic(asked.server));
    }
    let found = topics.iter().find(|topic| topic.name == name);
    found.map(|topic| topic.settings.clone()).ok_or_else(|| no_topic(name))
}

fn no_topic(name: &str) -> Refused {
    (ErrorCode::UnknownTopicOrPartition, format!("topic {name:?} does not exist"))
}

/// Gives a topic other settings, or only tries whether it could have them.
pub(super) async fn alter_topic(
    asked: &Asked<'_>,
    name: &str,
    validate_only: bool,
    changes: impl FnOnce(&Settings) -> Result<Vec<(String, Option<String>)>, Refused>,
) -> Result<Result<(), Refused>, Stopping> {
    if name == OFFSETS_TOPIC {
        let text = format!("{OFFSETS_TOPIC} is the broker's own; its settings cannot be changed");
        return Ok(Err((ErrorCode::InvalidRequest, text)));
    }
    let now = asked.server.store.with_state(|state| state.topic(name).map(|topic| topic.settings.clone()));
    let Some(now) = now else { return Ok(Err(no_topic(name))) };
    let changed = changes(&now).and_then(|changes| {
        check_changes(&now, &changes).map_err(refused_setting)?;
        Ok(changes)
    });
    let settings = match changed {
        Ok(settings) => settings,
        Err(refused) => return Ok(Err(refused)),
    };
    if validate_only {
        return Ok(Ok(()));
    }
    let alter = Ask::AlterTopic { name: name.to_owned(), settings, partitions: None };
    Ok(refused(asked.server.ask(alter).await?).map(drop))
}

/// Whether settings may be given over the wire. What a topic has already, from elsewhere, stays as it is.
pub(super) fn check_changes(
    now: &Settings,
    changes: &[(String, Option<String>)],
) -> Result<(), SettingError> {
    let mut after = now.clone();
    for (name, value) in changes {
        after.set(name, value.as_deref())?;
    }
    let gives_size = changes.iter().any(|(name, value)| name == "segment.bytes" && value.is_some());
    if gives_size && after.segment_bytes() != now.segment_bytes() {
        after.check_as_kafka()?;
    }
    Ok(())
}

/// The error of a setting that cannot be.
pub(super) fn refused_setting(error: SettingError) -> Refused {
    let text = error.to_string();
    (error_of(&error.into()), text)
}

/// A resource, or a setting of one, that is named twice.
pub(super) fn twice<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

/// That of [`twice`].
pub(super) fn named_twice(name: &str) -> Refused {
    (ErrorCode::InvalidRequest, format!("{name:?} is named twice"))
}

/// What a client is told of an outcome.
pub(super) fn told(outcome: &Result<(), Refused>) -> (ErrorCode, Option<&str>) {
    match outcome {
        Ok(()) => (ErrorCode::None, None),
        Err((error, text)) => (*error, Some(text)),
    }
}
