//! What each request does, a file for each API or each few that belong together.
//!
//! A handler decodes the request, asks the broker, and encodes the answer; all that it asks is with the broker before it first
//! waits, so that requests of one connection are taken in order.

mod alter_configs;
mod api_versions;
mod authorized;
pub(super) mod configs;
mod delete_records;
mod describe_cluster;
mod describe_configs;
mod describe_log_dirs;
mod describe_topic_partitions;
mod fetch;
mod find_coordinator;
mod groups;
mod incremental_alter_configs;
mod kept_configs;
mod list_config_resources;
mod list_offsets;
mod list_partition_reassignments;
mod members;
mod metadata;
mod offset_delete;
mod offset_for_leader_epoch;
mod offsets;
mod produce;
mod topics;

use std::sync::Arc;

use leftoff_engine::broker::{ReadRefusal, Refusal, Reply, SequenceError};
use leftoff_engine::coordinator::Who;
use leftoff_engine::coordinator::classic::Client;
use leftoff_wire::messages::{ApiKey, DecodeError, EncodeError, ErrorCode, RequestHeader, ResponseHeader};

use super::Shared;
use super::ask::Stopping;
use super::connection::Peer;
use super::frames::Frame;

/// The APIs that are served, and so advertised.
const SERVED: [ApiKey; 30] = [
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::FindCoordinator,
    ApiKey::JoinGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::SyncGroup,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::DescribeConfigs,
    ApiKey::AlterConfigs,
    ApiKey::DescribeLogDirs,
    ApiKey::CreatePartitions,
    ApiKey::DeleteGroups,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::ListPartitionReassignments,
    ApiKey::OffsetDelete,
    ApiKey::DescribeCluster,
    ApiKey::ListConfigResources,
    ApiKey::DescribeTopicPartitions,
];

/// The connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Closing {
    #[error(transparent)]
    Stopping(#[from] Stopping),
    #[error("a request that cannot be read: {0}")]
    Decode(#[from] DecodeError),
    #[error("an answer that cannot be said: {0}")]
    Encode(#[from] EncodeError),
    #[error("a request of API {key}, which is not served")]
    Api { key: i16 },
    #[error("a request of {api:?} version {version}, which is not served; {first} to {last} are")]
    Version { api: ApiKey, version: i16, first: i16, last: i16 },
}

/// A request, and who asks.
struct Asked<'a> {
    server: &'a Arc<Shared>,
    peer: &'a Peer,
    client_id: &'a str,
    version: i16,
    body: &'a [u8],
}

impl Asked<'_> {
    fn client(&self) -> Client {
        Client { client_id: self.client_id.to_owned(), host: self.host(), software: self.software() }
    }

    fn who(&self) -> Who {
        Who::new("", self.client_id, &self.host(), &self.software())
    }

    /// As Kafka writes it.
    fn host(&self) -> String {
        format!("/{}", self.peer.address.ip())
    }

    fn software(&self) -> String {
        self.peer.software.get().cloned().unwrap_or_default()
    }
}

/// The whole answer with its length before it; `None` if none is wanted.
pub(super) async fn answer(
    server: Arc<Shared>,
    peer: Arc<Peer>,
    frame: Frame,
) -> Result<Option<Vec<u8>>, Closing> {
    let (header, body) = RequestHeader::decode(&frame.bytes)?;
    let RequestHeader { api_key: key, api_version: version, correlation_id, client_id } = header;
    let api = ApiKey::of(key).filter(|api| SERVED.contains(api)).ok_or(Closing::Api { key })?;
    server.stats.asked(api);
    let mut out = vec![0; 4];
    ResponseHeader { correlation_id }.encode(&mut out, api, version);
    let asked =
        Asked { server: &server, peer: &peer, client_id: client_id.unwrap_or_default(), version, body };
    let (first, last) = api.versions();
    if !(first..=last).contains(&version) {
        if api != ApiKey::ApiVersions {
            return Err(Closing::Version { api, version, first, last });
        }
        api_versions::unknown_version(&mut out)?;
        return Ok(Some(framed(out)));
    }
    match api {
        ApiKey::ApiVersions => api_versions::answer(&asked, &mut out)?,
        ApiKey::Metadata => metadata::answer(&asked, &mut out).await?,
        ApiKey::Produce => {
            if !produce::answer(&asked, &mut out).await? {
                return Ok(None);
            }
        }
        ApiKey::Fetch => fetch::answer(&asked, &mut out).await?,
        ApiKey::ListOffsets => list_offsets::answer(&asked, &mut out)?,
        ApiKey::FindCoordinator => find_coordinator::answer(&asked, &mut out)?,
        ApiKey::InitProducerId => produce::init_producer_id(&asked, &mut out).await?,
        ApiKey::JoinGroup => members::join(&asked, &mut out).await?,
        ApiKey::SyncGroup => members::sync(&asked, &mut out).await?,
        ApiKey::Heartbeat => members::heartbeat(&asked, &mut out).await?,
        ApiKey::LeaveGroup => members::leave(&asked, &mut out).await?,
        ApiKey::OffsetCommit => offsets::commit(&asked, &mut out).await?,
        ApiKey::OffsetFetch => offsets::fetch(&asked, &mut out).await?,
        ApiKey::DescribeGroups => groups::describe(&asked, &mut out).await?,
        ApiKey::ListGroups => groups::list(&asked, &mut out).await?,
        ApiKey::DeleteGroups => groups::delete(&asked, &mut out).await?,
        ApiKey::CreateTopics => topics::create(&asked, &mut out).await?,
        ApiKey::DeleteTopics => topics::delete(&asked, &mut out).await?,
        ApiKey::CreatePartitions => topics::add_partitions(&asked, &mut out).await?,
        ApiKey::DescribeConfigs => describe_configs::answer(&asked, &mut out).await?,
        ApiKey::AlterConfigs => alter_configs::answer(&asked, &mut out).await?,
        ApiKey::IncrementalAlterConfigs => incremental_alter_configs::answer(&asked, &mut out).await?,
        ApiKey::DescribeCluster => describe_cluster::answer(&asked, &mut out)?,
        ApiKey::DeleteRecords => delete_records::answer(&asked, &mut out).await?,
        ApiKey::OffsetForLeaderEpoch => offset_for_leader_epoch::answer(&asked, &mut out)?,
        ApiKey::DescribeLogDirs => describe_log_dirs::answer(&asked, &mut out).await?,
        ApiKey::ListPartitionReassignments => list_partition_reassignments::answer(&asked, &mut out)?,
        ApiKey::OffsetDelete => offset_delete::answer(&asked, &mut out).await?,
        ApiKey::ListConfigResources => list_config_resources::answer(&asked, &mut out).await?,
        ApiKey::DescribeTopicPartitions => describe_topic_partitions::answer(&asked, &mut out).await?,
        other => unreachable!("{other:?} is not among the served"),
    }
    Ok(Some(framed(out)))
}

fn framed(mut out: Vec<u8>) -> Vec<u8> {
    let length = i32::try_from(out.len() - 4)
        .expect("an answer is bounded by fetch.max.bytes and the number of topics");
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

/// What a refusal is called on the wire.
fn error_of(refusal: &Refusal) -> ErrorCode {
    match refusal {
        Refusal::UnknownTopic(_) | Refusal::UnknownPartition(_) => ErrorCode::UnknownTopicOrPartition,
        Refusal::TopicExists(_) => ErrorCode::TopicAlreadyExists,
        Refusal::InvalidTopic { .. } => ErrorCode::InvalidTopicException,
        Refusal::InvalidPartitions { .. } => ErrorCode::InvalidPartitions,
        Refusal::TooManyKept { .. } => ErrorCode::PolicyViolation,
        Refusal::Setting(_) => ErrorCode::InvalidConfig,
        Refusal::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        Refusal::TooLarge { .. } => ErrorCode::MessageTooLarge,
        Refusal::Sequence(SequenceError::OutOfOrder { .. }) => ErrorCode::OutOfOrderSequenceNumber,
        Refusal::Sequence(SequenceError::StaleEpoch { .. }) => ErrorCode::InvalidProducerEpoch,
        Refusal::DiskFull(_) | Refusal::Log(_) | Refusal::Latched(_) => ErrorCode::KafkaStorageError,
        _ => ErrorCode::InvalidRequest,
    }
}

/// What a partition that cannot be read is called on the wire.
fn code(refusal: &ReadRefusal) -> ErrorCode {
    ErrorCode::of(refusal.error_code()).unwrap_or(ErrorCode::UnknownServerError)
}

/// The reply, or the error of a refusal with its text.
fn refused(reply: Reply) -> Result<Reply, (ErrorCode, String)> {
    match reply {
        Reply::Refused(refusal) => Err((error_of(&refusal), refusal.to_string())),
        reply => Ok(reply),
    }
}
