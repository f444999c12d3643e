//! What the broker does, in the names of Kafka's broker settings: those that decide something here, with their values.

use std::sync::Arc;

use leftoff_engine::broker::{Settings, TOPIC_SETTINGS};
use leftoff_engine::coordinator::MAX_METADATA_BYTES;
use leftoff_engine::coordinator::classic::GroupConfig;

use super::Shared;
use super::api::configs::Type;
use super::settings::{Advertised, ServerLimits};

/// A setting of the broker, as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BrokerSetting {
    pub name: &'static str,
    pub of_type: Type,
    pub value: String,
    /// `None`: it has to be given.
    pub default: Option<String>,
    pub doc: &'static str,
}

/// All of them; topics' defaults are among them, each once.
pub(super) fn all(server: &Arc<Shared>, at: &Advertised) -> Vec<BrokerSetting> {
    let parts = [of_itself(server, at), of_limits(server), of_groups(server), of_logs(server), of_topics()];
    let mut all: Vec<BrokerSetting> = parts.into_iter().flatten().collect();
    all.sort_by_key(|setting| setting.name);
    all
}

fn of_itself(server: &Arc<Shared>, at: &Advertised) -> Vec<BrokerSetting> {
    let settings = &server.settings;
    let listeners: Vec<String> =
        settings.listeners.iter().map(|listener| format!("PLAINTEXT://{}", listener.bind)).collect();
    let root = server.store.root().display().to_string();
    let given =
        |name, of_type, value: String, doc| BrokerSetting { name, of_type, value, default: None, doc };
    let advertised = format!("PLAINTEXT://{}:{}", at.host, at.port);
    vec![
        given(
            "leftoff.http.listener",
            Type::Text,
            settings.http_listener.clone().unwrap_or_default(),
            "--ui-listen; empty when it is off",
        ),
        given("node.id", Type::Int, settings.node_id.to_string(), "--node-id"),
        given("broker.id", Type::Int, settings.node_id.to_string(), "--node-id"),
        given("listeners", Type::List, listeners.join(","), "--listen"),
        given("advertised.listeners", Type::List, advertised, "--advertise; as this connection is told"),
        given("log.dirs", Type::List, root.clone(), "--data"),
        given("log.dir", Type::Text, root, "--data"),
        given("process.roles", Type::List, "broker,controller".to_owned(), "one process is all"),
        setting("auto.create.topics.enable", Type::Boolean, settings.auto_create, true, "--auto-create"),
        setting("num.partitions", Type::Int, settings.default_partitions, 1, "--default-partitions"),
        fixed("default.replication.factor", Type::Int, 1, "there is one copy"),
        fixed("delete.topic.enable", Type::Boolean, true, "topics can be deleted"),
        fixed("security.inter.broker.protocol", Type::Text, "PLAINTEXT", "there is one broker"),
        fixed("compression.type", Type::Text, "producer", "batches stay as their producers sent them"),
    ]
}

fn of_limits(server: &Arc<Shared>) -> Vec<BrokerSetting> {
    let (now, usual) = (&server.settings.limits, ServerLimits::default());
    let (idle, usual_idle) = (now.connection_max_idle.as_millis(), usual.connection_max_idle.as_millis());
    let requests = "bytes of requests at once, over all connections";
    vec![
        setting("max.connections", Type::Int, now.connections, usual.connections, "--max-connections"),
        setting(
            "socket.request.max.bytes",
            Type::Int,
            now.request_max_bytes,
            usual.request_max_bytes,
            "the largest request",
        ),
        setting("queued.max.request.bytes", Type::Long, now.queued_bytes, usual.queued_bytes, requests),
        setting(
            "connections.max.idle.ms",
            Type::Long,
            idle,
            usual_idle,
            "how long a connection may be silent",
        ),
        setting(
            "fetch.max.bytes",
            Type::Int,
            now.fetch_max_bytes,
            usual.fetch_max_bytes,
            "the largest answer to a fetch",
        ),
    ]
}

fn of_groups(server: &Arc<Shared>) -> Vec<BrokerSetting> {
    let (now, usual) = (&server.store.broker_config().groups, GroupConfig::default());
    vec![
        setting(
            "group.initial.rebalance.delay.ms",
            Type::Int,
            now.initial_rebalance_delay_ms,
            usual.initial_rebalance_delay_ms,
            "how long a group that was empty waits for more members",
        ),
        setting(
            "group.min.session.timeout.ms",
            Type::Int,
            now.min_session_timeout_ms,
            usual.min_session_timeout_ms,
            "the least session timeout of a member",
        ),
        setting(
            "group.max.session.timeout.ms",
            Type::Int,
            now.max_session_timeout_ms,
            usual.max_session_timeout_ms,
            "the greatest session timeout of a member",
        ),
        setting("group.max.size", Type::Int, now.max_size, usual.max_size, "the most members of a group"),
        fixed(
            "offset.metadata.max.bytes",
            Type::Int,
            MAX_METADATA_BYTES,
            "the longest words that are saved with an offset",
        ),
        fixed("offsets.topic.num.partitions", Type::Int, 1, "all groups are in one log"),
        fixed("offsets.topic.replication.factor", Type::Int, 1, "there is one copy"),
    ]
}

fn of_logs(server: &Arc<Shared>) -> Vec<BrokerSetting> {
    let (now, usual) = (server.store.broker_config(), leftoff_engine::broker::BrokerConfig::default());
    vec![
        setting(
            "offsets.topic.segment.bytes",
            Type::Int,
            now.offsets_segment_bytes,
            usual.offsets_segment_bytes,
            "a segment of the offsets log that would grow beyond this is closed",
        ),
        setting(
            "producer.id.expiration.ms",
            Type::Int,
            now.producer_id_expiration_ms,
            usual.producer_id_expiration_ms,
            "an idempotent producer that was silent for so long is forgotten",
        ),
    ]
}

/// What topics have that were given nothing else.
fn of_topics() -> Vec<BrokerSetting> {
    let named = TOPIC_SETTINGS.iter().filter(|known| !known.broker_name.is_empty());
    let named = named.filter(|known| known.broker_name != "compression.type");
    let setting = |known: &leftoff_engine::broker::SettingInfo| {
        let of_type = super::api::configs::type_of(known.kind);
        fixed(known.broker_name, of_type, known.default, known.doc)
    };
    named.map(setting).collect()
}

/// The settings of the offsets topic, which the broker keeps for itself.
pub(super) fn of_offsets_topic(server: &Arc<Shared>) -> Settings {
    let config = server.store.broker_config();
    let bytes = i64::try_from(config.offsets_retention_bytes).unwrap_or(i64::MAX);
    let given = [
        ("segment.bytes", config.offsets_segment_bytes.to_string()),
        ("retention.ms", config.offsets_retention_ms.to_string()),
        ("retention.bytes", bytes.to_string()),
    ];
    let mut settings = Settings::default();
    for (name, value) in given {
        settings.set(name, Some(&value)).expect("the broker's own numbers fit its own settings");
    }
    settings
}

fn setting<T: ToString>(
    name: &'static str,
    of_type: Type,
    value: T,
    default: T,
    doc: &'static str,
) -> BrokerSetting {
    BrokerSetting { name, of_type, value: value.to_string(), default: Some(default.to_string()), doc }
}

fn fixed<T: ToString>(name: &'static str, of_type: Type, value: T, doc: &'static str) -> BrokerSetting {
    setting(name, of_type, value.to_string(), value.to_string(), doc)
}
