//! Metadata 0 to 12: one broker, which leads everything. A topic that is missing is made, if server and client allow it: the
//! answer says error 3, and a moment later it is there, as with Kafka.

use leftoff_engine::broker::{OFFSETS_TOPIC, Reply, Request as Ask, Topic};
use leftoff_wire::Uuid;
use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::metadata::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic, Request, Response,
};

use super::authorized::{self, NOT_ASKED, if_asked};
use super::{Asked, Closing, refused};
use crate::store::random_id;

pub(super) async fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    let topics = match refused(asked.server.ask(Ask::Topics).await?) {
        Ok(Reply::Topics(topics)) => topics,
        Ok(other) => unreachable!("topics are answered with topics, not {other:?}"),
        // Storage has failed: what there was is told no more.
        Err(_) => Vec::new(),
    };
    let (node_id, at) = (asked.server.settings.node_id, &asked.peer.advertised);
    let (cluster_id, leader_epoch) = asked
        .server
        .store
        .with_state(|state| (state.cluster_id().to_string(), state.metadata().leader_epoch()));
    let operations = if_asked(request.include_topic_authorized_operations, authorized::TOPIC);
    let leader = Leader { node_id, leader_epoch, operations };
    let wanted = request.topics.as_deref();
    // In version 0 an empty list means all.
    let wanted = wanted.filter(|topics| asked.version > 0 || !topics.is_empty());
    let described = match wanted {
        None => {
            let offsets = leader.known(OFFSETS_TOPIC, Uuid::OFFSETS, 1);
            let all = topics.iter().map(|topic| leader.known(&topic.name, topic.topic_id, topic.partitions));
            all.chain([offsets]).collect()
        }
        Some(wanted) => {
            let mut described = Vec::new();
            for one in wanted {
                described.push(
                    match (one.name, topics.iter().find(|topic| is_meant(topic, one.name, &one.topic_id))) {
                        (_, Some(topic)) => leader.known(&topic.name, topic.topic_id, topic.partitions),
                        (Some(OFFSETS_TOPIC), None) => leader.known(OFFSETS_TOPIC, Uuid::OFFSETS, 1),
                        (Some(name), None) => {
                            missing(name, Uuid::ZERO, make(asked, name, request.allow_auto_topic_creation))
                        }
                        (None, None) => missing("", one.topic_id, ErrorCode::UnknownTopicId),
                    },
                );
            }
            described
        }
    };
    let broker = MetadataResponseBroker { node_id, host: &at.host, port: i32::from(at.port), rack: None };
    let response = Response {
        throttle_time_ms: 0,
        brokers: vec![broker],
        cluster_id: Some(&cluster_id),
        controller_id: node_id,
        topics: described,
        cluster_authorized_operations: if_asked(
            request.include_cluster_authorized_operations,
            authorized::CLUSTER,
        ),
    };
    Ok(response.encode(out, asked.version)?)
}

fn is_meant(topic: &Topic, name: Option<&str>, id: &Uuid) -> bool {
    name.map_or(topic.topic_id == *id, |name| topic.name == name)
}

/// Makes a topic that somebody asks for, and says what is told of it now.
fn make(asked: &Asked<'_>, name: &str, is_allowed: bool) -> ErrorCode {
    let settings = &asked.server.settings;
    if !is_name(name) {
        return ErrorCode::InvalidTopicException;
    }
    if settings.auto_create && is_allowed {
        let request = Ask::CreateTopic {
            name: name.to_owned(),
            topic_id: random_id(),
            partitions: settings.default_partitions,
            settings: Vec::new(),
        };
        // Whoever asks again finds it.
        asked.server.store.submit_then(request, |_| {});
    }
    ErrorCode::UnknownTopicOrPartition
}

/// Kafka's rules for names.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty() && name.len() <= 249 && name != "." && name != ".." && name.chars().all(fits)
}

/// What all topics have in common: who leads them, since when, and what may be done with them.
struct Leader {
    node_id: i32,
    leader_epoch: i32,
    operations: i32,
}

impl Leader {
    fn known<'a>(&self, name: &'a str, topic_id: Uuid, partitions: i32) -> MetadataResponseTopic<'a> {
        let partition = |partition_index| MetadataResponsePartition {
            error_code: ErrorCode::None.code(),
            partition_index,
            leader_id: self.node_id,
            leader_epoch: self.leader_epoch,
            replica_nodes: vec![self.node_id],
            isr_nodes: vec![self.node_id],
            offline_replicas: Vec::new(),
        };
        MetadataResponseTopic {
            error_code: ErrorCode::None.code(),
            name: Some(name),
            topic_id,
            is_internal: name == OFFSETS_TOPIC,
            partitions: (0..partitions).map(partition).collect(),
            topic_authorized_operations: self.operations,
        }
    }
}

fn missing(name: &str, topic_id: Uuid, error: ErrorCode) -> MetadataResponseTopic<'_> {
    MetadataResponseTopic {
        error_code: error.code(),
        name: Some(name),
        topic_id,
        is_internal: false,
        partitions: Vec::new(),
        topic_authorized_operations: NOT_ASKED,
    }
}
