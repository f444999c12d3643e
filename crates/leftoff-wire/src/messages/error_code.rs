//! Kafka's error codes, by their names.

/// An error code of Kafka 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i16)]
pub enum ErrorCode {
    /// `UNKNOWN_SERVER_ERROR`.
    UnknownServerError = -1,
    /// `NONE`.
    None = 0,
    /// `OFFSET_OUT_OF_RANGE`.
    OffsetOutOfRange = 1,
    /// `CORRUPT_MESSAGE`.
    CorruptMessage = 2,
    /// `UNKNOWN_TOPIC_OR_PARTITION`.
    UnknownTopicOrPartition = 3,
    /// `INVALID_FETCH_SIZE`.
    InvalidFetchSize = 4,
    /// `LEADER_NOT_AVAILABLE`.
    LeaderNotAvailable = 5,
    /// `NOT_LEADER_OR_FOLLOWER`.
    NotLeaderOrFollower = 6,
    /// `REQUEST_TIMED_OUT`.
    RequestTimedOut = 7,
    /// `BROKER_NOT_AVAILABLE`.
    BrokerNotAvailable = 8,
    /// `REPLICA_NOT_AVAILABLE`.
    ReplicaNotAvailable = 9,
    /// `MESSAGE_TOO_LARGE`.
    MessageTooLarge = 10,
    /// `STALE_CONTROLLER_EPOCH`.
    StaleControllerEpoch = 11,
    /// `OFFSET_METADATA_TOO_LARGE`.
    OffsetMetadataTooLarge = 12,
    /// `NETWORK_EXCEPTION`.
    NetworkException = 13,
    /// `COORDINATOR_LOAD_IN_PROGRESS`.
    CoordinatorLoadInProgress = 14,
    /// `COORDINATOR_NOT_AVAILABLE`.
    CoordinatorNotAvailable = 15,
    /// `NOT_COORDINATOR`.
    NotCoordinator = 16,
    /// `INVALID_TOPIC_EXCEPTION`.
    InvalidTopicException = 17,
    /// `RECORD_LIST_TOO_LARGE`.
    RecordListTooLarge = 18,
    /// `NOT_ENOUGH_REPLICAS`.
    NotEnoughReplicas = 19,
    /// `NOT_ENOUGH_REPLICAS_AFTER_APPEND`.
    NotEnoughReplicasAfterAppend = 20,
    /// `INVALID_REQUIRED_ACKS`.
    InvalidRequiredAcks = 21,
    /// `ILLEGAL_GENERATION`.
    IllegalGeneration = 22,
    /// `INCONSISTENT_GROUP_PROTOCOL`.
    InconsistentGroupProtocol = 23,
    /// `INVALID_GROUP_ID`.
    InvalidGroupId = 24,
    /// `UNKNOWN_MEMBER_ID`.
    UnknownMemberId = 25,
    /// `INVALID_SESSION_TIMEOUT`.
    InvalidSessionTimeout = 26,
    /// `REBALANCE_IN_PROGRESS`.
    RebalanceInProgress = 27,
    /// `INVALID_COMMIT_OFFSET_SIZE`.
    InvalidCommitOffsetSize = 28,
    /// `TOPIC_AUTHORIZATION_FAILED`.
    TopicAuthorizationFailed = 29,
    /// `GROUP_AUTHORIZATION_FAILED`.
    GroupAuthorizationFailed = 30,
    /// `CLUSTER_AUTHORIZATION_FAILED`.
    ClusterAuthorizationFailed = 31,
    /// `INVALID_TIMESTAMP`.
    InvalidTimestamp = 32,
    /// `UNSUPPORTED_SASL_MECHANISM`.
    UnsupportedSaslMechanism = 33,
    /// `ILLEGAL_SASL_STATE`.
    IllegalSaslState = 34,
    /// `UNSUPPORTED_VERSION`.
    UnsupportedVersion = 35,
    /// `TOPIC_ALREADY_EXISTS`.
    TopicAlreadyExists = 36,
    /// `INVALID_PARTITIONS`.
    InvalidPartitions = 37,
    /// `INVALID_REPLICATION_FACTOR`.
    InvalidReplicationFactor = 38,
    /// `INVALID_REPLICA_ASSIGNMENT`.
    InvalidReplicaAssignment = 39,
    /// `INVALID_CONFIG`.
    InvalidConfig = 40,
    /// `NOT_CONTROLLER`.
    NotController = 41,
    /// `INVALID_REQUEST`.
    InvalidRequest = 42,
    /// `UNSUPPORTED_FOR_MESSAGE_FORMAT`.
    UnsupportedForMessageFormat = 43,
    /// `POLICY_VIOLATION`.
    PolicyViolation = 44,
    /// `OUT_OF_ORDER_SEQUENCE_NUMBER`.
    OutOfOrderSequenceNumber = 45,
    /// `DUPLICATE_SEQUENCE_NUMBER`.
    DuplicateSequenceNumber = 46,
    /// `INVALID_PRODUCER_EPOCH`.
    InvalidProducerEpoch = 47,
    /// `INVALID_TXN_STATE`.
    InvalidTxnState = 48,
    /// `INVALID_PRODUCER_ID_MAPPING`.
    InvalidProducerIdMapping = 49,
    /// `INVALID_TRANSACTION_TIMEOUT`.
    InvalidTransactionTimeout = 50,
    /// `CONCURRENT_TRANSACTIONS`.
    ConcurrentTransactions = 51,
    /// `TRANSACTION_COORDINATOR_FENCED`.
    TransactionCoordinatorFenced = 52,
    /// `TRANSACTIONAL_ID_AUTHORIZATION_FAILED`.
    TransactionalIdAuthorizationFailed = 53,
    /// `SECURITY_DISABLED`.
    SecurityDisabled = 54,
    /// `OPERATION_NOT_ATTEMPTED`.
    OperationNotAttempted = 55,
    /// `KAFKA_STORAGE_ERROR`.
    KafkaStorageError = 56,
    /// `LOG_DIR_NOT_FOUND`.
    LogDirNotFound = 57,
    /// `SASL_AUTHENTICATION_FAILED`.
    SaslAuthenticationFailed = 58,
    /// `UNKNOWN_PRODUCER_ID`.
    UnknownProducerId = 59,
    /// `REASSIGNMENT_IN_PROGRESS`.
    ReassignmentInProgress = 60,
    /// `DELEGATION_TOKEN_AUTH_DISABLED`.
    DelegationTokenAuthDisabled = 61,
    /// `DELEGATION_TOKEN_NOT_FOUND`.
    DelegationTokenNotFound = 62,
    /// `DELEGATION_TOKEN_OWNER_MISMATCH`.
    DelegationTokenOwnerMismatch = 63,
    /// `DELEGATION_TOKEN_REQUEST_NOT_ALLOWED`.
    DelegationTokenRequestNotAllowed = 64,
    /// `DELEGATION_TOKEN_AUTHORIZATION_FAILED`.
    DelegationTokenAuthorizationFailed = 65,
    /// `DELEGATION_TOKEN_EXPIRED`.
    DelegationTokenExpired = 66,
    /// `INVALID_PRINCIPAL_TYPE`.
    InvalidPrincipalType = 67,
    /// `NON_EMPTY_GROUP`.
    NonEmptyGroup = 68,
    /// `GROUP_ID_NOT_FOUND`.
    GroupIdNotFound = 69,
    /// `FETCH_SESSION_ID_NOT_FOUND`.
    FetchSessionIdNotFound = 70,
    /// `INVALID_FETCH_SESSION_EPOCH`.
    InvalidFetchSessionEpoch = 71,
    /// `LISTENER_NOT_FOUND`.
    ListenerNotFound = 72,
    /// `TOPIC_DELETION_DISABLED`.
    TopicDeletionDisabled = 73,
    /// `FENCED_LEADER_EPOCH`.
    FencedLeaderEpoch = 74,
    /// `UNKNOWN_LEADER_EPOCH`.
    UnknownLeaderEpoch = 75,
    /// `UNSUPPORTED_COMPRESSION_TYPE`.
    UnsupportedCompressionType = 76,
    /// `STALE_BROKER_EPOCH`.
    StaleBrokerEpoch = 77,
    /// `OFFSET_NOT_AVAILABLE`.
    OffsetNotAvailable = 78,
    /// `MEMBER_ID_REQUIRED`.
    MemberIdRequired = 79,
    /// `PREFERRED_LEADER_NOT_AVAILABLE`.
    PreferredLeaderNotAvailable = 80,
    /// `GROUP_MAX_SIZE_REACHED`.
    GroupMaxSizeReached = 81,
    /// `FENCED_INSTANCE_ID`.
    FencedInstanceId = 82,
    /// `ELIGIBLE_LEADERS_NOT_AVAILABLE`.
    EligibleLeadersNotAvailable = 83,
    /// `ELECTION_NOT_NEEDED`.
    ElectionNotNeeded = 84,
    /// `NO_REASSIGNMENT_IN_PROGRESS`.
    NoReassignmentInProgress = 85,
    /// `GROUP_SUBSCRIBED_TO_TOPIC`.
    GroupSubscribedToTopic = 86,
    /// `INVALID_RECORD`.
    InvalidRecord = 87,
    /// `UNSTABLE_OFFSET_COMMIT`.
    UnstableOffsetCommit = 88,
    /// `THROTTLING_QUOTA_EXCEEDED`.
    ThrottlingQuotaExceeded = 89,
    /// `PRODUCER_FENCED`.
    ProducerFenced = 90,
    /// `RESOURCE_NOT_FOUND`.
    ResourceNotFound = 91,
    /// `DUPLICATE_RESOURCE`.
    DuplicateResource = 92,
    /// `UNACCEPTABLE_CREDENTIAL`.
    UnacceptableCredential = 93,
    /// `INCONSISTENT_VOTER_SET`.
    InconsistentVoterSet = 94,
    /// `INVALID_UPDATE_VERSION`.
    InvalidUpdateVersion = 95,
    /// `FEATURE_UPDATE_FAILED`.
    FeatureUpdateFailed = 96,
    /// `PRINCIPAL_DESERIALIZATION_FAILURE`.
    PrincipalDeserializationFailure = 97,
    /// `SNAPSHOT_NOT_FOUND`.
    SnapshotNotFound = 98,
    /// `POSITION_OUT_OF_RANGE`.
    PositionOutOfRange = 99,
    /// `UNKNOWN_TOPIC_ID`.
    UnknownTopicId = 100,
    /// `DUPLICATE_BROKER_REGISTRATION`.
    DuplicateBrokerRegistration = 101,
    /// `BROKER_ID_NOT_REGISTERED`.
    BrokerIdNotRegistered = 102,
    /// `INCONSISTENT_TOPIC_ID`.
    InconsistentTopicId = 103,
    /// `INCONSISTENT_CLUSTER_ID`.
    InconsistentClusterId = 104,
    /// `TRANSACTIONAL_ID_NOT_FOUND`.
    TransactionalIdNotFound = 105,
    /// `FETCH_SESSION_TOPIC_ID_ERROR`.
    FetchSessionTopicIdError = 106,
    /// `INELIGIBLE_REPLICA`.
    IneligibleReplica = 107,
    /// `NEW_LEADER_ELECTED`.
    NewLeaderElected = 108,
    /// `OFFSET_MOVED_TO_TIERED_STORAGE`.
    OffsetMovedToTieredStorage = 109,
    /// `FENCED_MEMBER_EPOCH`.
    FencedMemberEpoch = 110,
    /// `UNRELEASED_INSTANCE_ID`.
    UnreleasedInstanceId = 111,
    /// `UNSUPPORTED_ASSIGNOR`.
    UnsupportedAssignor = 112,
    /// `STALE_MEMBER_EPOCH`.
    StaleMemberEpoch = 113,
    /// `MISMATCHED_ENDPOINT_TYPE`.
    MismatchedEndpointType = 114,
    /// `UNSUPPORTED_ENDPOINT_TYPE`.
    UnsupportedEndpointType = 115,
    /// `UNKNOWN_CONTROLLER_ID`.
    UnknownControllerId = 116,
    /// `UNKNOWN_SUBSCRIPTION_ID`.
    UnknownSubscriptionId = 117,
    /// `TELEMETRY_TOO_LARGE`.
    TelemetryTooLarge = 118,
    /// `INVALID_REGISTRATION`.
    InvalidRegistration = 119,
    /// `TRANSACTION_ABORTABLE`.
    TransactionAbortable = 120,
    /// `INVALID_RECORD_STATE`.
    InvalidRecordState = 121,
    /// `SHARE_SESSION_NOT_FOUND`.
    ShareSessionNotFound = 122,
    /// `INVALID_SHARE_SESSION_EPOCH`.
    InvalidShareSessionEpoch = 123,
    /// `FENCED_STATE_EPOCH`.
    FencedStateEpoch = 124,
    /// `INVALID_VOTER_KEY`.
    InvalidVoterKey = 125,
    /// `DUPLICATE_VOTER`.
    DuplicateVoter = 126,
    /// `VOTER_NOT_FOUND`.
    VoterNotFound = 127,
    /// `INVALID_REGULAR_EXPRESSION`.
    InvalidRegularExpression = 128,
    /// `REBOOTSTRAP_REQUIRED`.
    RebootstrapRequired = 129,
    /// `STREAMS_INVALID_TOPOLOGY`.
    StreamsInvalidTopology = 130,
    /// `STREAMS_INVALID_TOPOLOGY_EPOCH`.
    StreamsInvalidTopologyEpoch = 131,
    /// `STREAMS_TOPOLOGY_FENCED`.
    StreamsTopologyFenced = 132,
    /// `SHARE_SESSION_LIMIT_REACHED`.
    ShareSessionLimitReached = 133,
}

impl ErrorCode {
    /// The number on the wire.
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// The error of this number; `None` if Kafka 4.2 has none.
    pub fn of(code: i16) -> Option<ErrorCode> {
        ALL.into_iter().find(|(error, _)| error.code() == code).map(|(error, _)| error)
    }

    /// Its name, as Kafka writes it.
    pub fn name(self) -> &'static str {
        ALL.into_iter().find(|(error, _)| *error == self).map_or("UNKNOWN_SERVER_ERROR", |(_, name)| name)
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

const ALL: [(ErrorCode, &str); 135] = [
    (ErrorCode::UnknownServerError, "UNKNOWN_SERVER_ERROR"),
    (ErrorCode::None, "NONE"),
    (ErrorCode::OffsetOutOfRange, "OFFSET_OUT_OF_RANGE"),
    (ErrorCode::CorruptMessage, "CORRUPT_MESSAGE"),
    (ErrorCode::UnknownTopicOrPartition, "UNKNOWN_TOPIC_OR_PARTITION"),
    (ErrorCode::InvalidFetchSize, "INVALID_FETCH_SIZE"),
    (ErrorCode::LeaderNotAvailable, "LEADER_NOT_AVAILABLE"),
    (ErrorCode::NotLeaderOrFollower, "NOT_LEADER_OR_FOLLOWER"),
    (ErrorCode::RequestTimedOut, "REQUEST_TIMED_OUT"),
    (ErrorCode::BrokerNotAvailable, "BROKER_NOT_AVAILABLE"),
    (ErrorCode::ReplicaNotAvailable, "REPLICA_NOT_AVAILABLE"),
    (ErrorCode::MessageTooLarge, "MESSAGE_TOO_LARGE"),
    (ErrorCode::StaleControllerEpoch, "STALE_CONTROLLER_EPOCH"),
    (ErrorCode::OffsetMetadataTooLarge, "OFFSET_METADATA_TOO_LARGE"),
    (ErrorCode::NetworkException, "NETWORK_EXCEPTION"),
    (ErrorCode::CoordinatorLoadInProgress, "COORDINATOR_LOAD_IN_PROGRESS"),
    (ErrorCode::CoordinatorNotAvailable, "COORDINATOR_NOT_AVAILABLE"),
    (ErrorCode::NotCoordinator, "NOT_COORDINATOR"),
    (ErrorCode::InvalidTopicException, "INVALID_TOPIC_EXCEPTION"),
    (ErrorCode::RecordListTooLarge, "RECORD_LIST_TOO_LARGE"),
    (ErrorCode::NotEnoughReplicas, "NOT_ENOUGH_REPLICAS"),
    (ErrorCode::NotEnoughReplicasAfterAppend, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
    (ErrorCode::InvalidRequiredAcks, "INVALID_REQUIRED_ACKS"),
    (ErrorCode::IllegalGeneration, "ILLEGAL_GENERATION"),
    (ErrorCode::InconsistentGroupProtocol, "INCONSISTENT_GROUP_PROTOCOL"),
    (ErrorCode::InvalidGroupId, "INVALID_GROUP_ID"),
    (ErrorCode::UnknownMemberId, "UNKNOWN_MEMBER_ID"),
    (ErrorCode::InvalidSessionTimeout, "INVALID_SESSION_TIMEOUT"),
    (ErrorCode::RebalanceInProgress, "REBALANCE_IN_PROGRESS"),
    (ErrorCode::InvalidCommitOffsetSize, "INVALID_COMMIT_OFFSET_SIZE"),
    (ErrorCode::TopicAuthorizationFailed, "TOPIC_AUTHORIZATION_FAILED"),
    (ErrorCode::GroupAuthorizationFailed, "GROUP_AUTHORIZATION_FAILED"),
    (ErrorCode::ClusterAuthorizationFailed, "CLUSTER_AUTHORIZATION_FAILED"),
    (ErrorCode::InvalidTimestamp, "INVALID_TIMESTAMP"),
    (ErrorCode::UnsupportedSaslMechanism, "UNSUPPORTED_SASL_MECHANISM"),
    (ErrorCode::IllegalSaslState, "ILLEGAL_SASL_STATE"),
    (ErrorCode::UnsupportedVersion, "UNSUPPORTED_VERSION"),
    (ErrorCode::TopicAlreadyExists, "TOPIC_ALREADY_EXISTS"),
    (ErrorCode::InvalidPartitions, "INVALID_PARTITIONS"),
    (ErrorCode::InvalidReplicationFactor, "INVALID_REPLICATION_FACTOR"),
    (ErrorCode::InvalidReplicaAssignment, "INVALID_REPLICA_ASSIGNMENT"),
    (ErrorCode::InvalidConfig, "INVALID_CONFIG"),
    (ErrorCode::NotController, "NOT_CONTROLLER"),
    (ErrorCode::InvalidRequest, "INVALID_REQUEST"),
    (ErrorCode::UnsupportedForMessageFormat, "UNSUPPORTED_FOR_MESSAGE_FORMAT"),
    (ErrorCode::PolicyViolation, "POLICY_VIOLATION"),
    (ErrorCode::OutOfOrderSequenceNumber, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    (ErrorCode::DuplicateSequenceNumber, "DUPLICATE_SEQUENCE_NUMBER"),
    (ErrorCode::InvalidProducerEpoch, "INVALID_PRODUCER_EPOCH"),
    (ErrorCode::InvalidTxnState, "INVALID_TXN_STATE"),
    (ErrorCode::InvalidProducerIdMapping, "INVALID_PRODUCER_ID_MAPPING"),
    (ErrorCode::InvalidTransactionTimeout, "INVALID_TRANSACTION_TIMEOUT"),
    (ErrorCode::ConcurrentTransactions, "CONCURRENT_TRANSACTIONS"),
    (ErrorCode::TransactionCoordinatorFenced, "TRANSACTION_COORDINATOR_FENCED"),
    (ErrorCode::TransactionalIdAuthorizationFailed, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    (ErrorCode::SecurityDisabled, "SECURITY_DISABLED"),
    (ErrorCode::OperationNotAttempted, "OPERATION_NOT_ATTEMPTED"),
    (ErrorCode::KafkaStorageError, "KAFKA_STORAGE_ERROR"),
    (ErrorCode::LogDirNotFound, "LOG_DIR_NOT_FOUND"),
    (ErrorCode::SaslAuthenticationFailed, "SASL_AUTHENTICATION_FAILED"),
    (ErrorCode::UnknownProducerId, "UNKNOWN_PRODUCER_ID"),
    (ErrorCode::ReassignmentInProgress, "REASSIGNMENT_IN_PROGRESS"),
    (ErrorCode::DelegationTokenAuthDisabled, "DELEGATION_TOKEN_AUTH_DISABLED"),
    (ErrorCode::DelegationTokenNotFound, "DELEGATION_TOKEN_NOT_FOUND"),
    (ErrorCode::DelegationTokenOwnerMismatch, "DELEGATION_TOKEN_OWNER_MISMATCH"),
    (ErrorCode::DelegationTokenRequestNotAllowed, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"),
    (ErrorCode::DelegationTokenAuthorizationFailed, "DELEGATION_TOKEN_AUTHORIZATION_FAILED"),
    (ErrorCode::DelegationTokenExpired, "DELEGATION_TOKEN_EXPIRED"),
    (ErrorCode::InvalidPrincipalType, "INVALID_PRINCIPAL_TYPE"),
    (ErrorCode::NonEmptyGroup, "NON_EMPTY_GROUP"),
    (ErrorCode::GroupIdNotFound, "GROUP_ID_NOT_FOUND"),
    (ErrorCode::FetchSessionIdNotFound, "FETCH_SESSION_ID_NOT_FOUND"),
    (ErrorCode::InvalidFetchSessionEpoch, "INVALID_FETCH_SESSION_EPOCH"),
    (ErrorCode::ListenerNotFound, "LISTENER_NOT_FOUND"),
    (ErrorCode::TopicDeletionDisabled, "TOPIC_DELETION_DISABLED"),
    (ErrorCode::FencedLeaderEpoch, "FENCED_LEADER_EPOCH"),
    (ErrorCode::UnknownLeaderEpoch, "UNKNOWN_LEADER_EPOCH"),
    (ErrorCode::UnsupportedCompressionType, "UNSUPPORTED_COMPRESSION_TYPE"),
    (ErrorCode::StaleBrokerEpoch, "STALE_BROKER_EPOCH"),
    (ErrorCode::OffsetNotAvailable, "OFFSET_NOT_AVAILABLE"),
    (ErrorCode::MemberIdRequired, "MEMBER_ID_REQUIRED"),
    (ErrorCode::PreferredLeaderNotAvailable, "PREFERRED_LEADER_NOT_AVAILABLE"),
    (ErrorCode::GroupMaxSizeReached, "GROUP_MAX_SIZE_REACHED"),
    (ErrorCode::FencedInstanceId, "FENCED_INSTANCE_ID"),
    (ErrorCode::EligibleLeadersNotAvailable, "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
    (ErrorCode::ElectionNotNeeded, "ELECTION_NOT_NEEDED"),
    (ErrorCode::NoReassignmentInProgress, "NO_REASSIGNMENT_IN_PROGRESS"),
    (ErrorCode::GroupSubscribedToTopic, "GROUP_SUBSCRIBED_TO_TOPIC"),
    (ErrorCode::InvalidRecord, "INVALID_RECORD"),
    (ErrorCode::UnstableOffsetCommit, "UNSTABLE_OFFSET_COMMIT"),
    (ErrorCode::ThrottlingQuotaExceeded, "THROTTLING_QUOTA_EXCEEDED"),
    (ErrorCode::ProducerFenced, "PRODUCER_FENCED"),
    (ErrorCode::ResourceNotFound, "RESOURCE_NOT_FOUND"),
    (ErrorCode::DuplicateResource, "DUPLICATE_RESOURCE"),
    (ErrorCode::UnacceptableCredential, "UNACCEPTABLE_CREDENTIAL"),
    (ErrorCode::InconsistentVoterSet, "INCONSISTENT_VOTER_SET"),
    (ErrorCode::InvalidUpdateVersion, "INVALID_UPDATE_VERSION"),
    (ErrorCode::FeatureUpdateFailed, "FEATURE_UPDATE_FAILED"),
    (ErrorCode::PrincipalDeserializationFailure, "PRINCIPAL_DESERIALIZATION_FAILURE"),
    (ErrorCode::SnapshotNotFound, "SNAPSHOT_NOT_FOUND"),
    (ErrorCode::PositionOutOfRange, "POSITION_OUT_OF_RANGE"),
    (ErrorCode::UnknownTopicId, "UNKNOWN_TOPIC_ID"),
    (ErrorCode::DuplicateBrokerRegistration, "DUPLICATE_BROKER_REGISTRATION"),
    (ErrorCode::BrokerIdNotRegistered, "BROKER_ID_NOT_REGISTERED"),
    (ErrorCode::InconsistentTopicId, "INCONSISTENT_TOPIC_ID"),
    (ErrorCode::InconsistentClusterId, "INCONSISTENT_CLUSTER_ID"),
    (ErrorCode::TransactionalIdNotFound, "TRANSACTIONAL_ID_NOT_FOUND"),
    (ErrorCode::FetchSessionTopicIdError, "FETCH_SESSION_TOPIC_ID_ERROR"),
    (ErrorCode::IneligibleReplica, "INELIGIBLE_REPLICA"),
    (ErrorCode::NewLeaderElected, "NEW_LEADER_ELECTED"),
    (ErrorCode::OffsetMovedToTieredStorage, "OFFSET_MOVED_TO_TIERED_STORAGE"),
    (ErrorCode::FencedMemberEpoch, "FENCED_MEMBER_EPOCH"),
    (ErrorCode::UnreleasedInstanceId, "UNRELEASED_INSTANCE_ID"),
    (ErrorCode::UnsupportedAssignor, "UNSUPPORTED_ASSIGNOR"),
    (ErrorCode::StaleMemberEpoch, "STALE_MEMBER_EPOCH"),
    (ErrorCode::MismatchedEndpointType, "MISMATCHED_ENDPOINT_TYPE"),
    (ErrorCode::UnsupportedEndpointType, "UNSUPPORTED_ENDPOINT_TYPE"),
    (ErrorCode::UnknownControllerId, "UNKNOWN_CONTROLLER_ID"),
    (ErrorCode::UnknownSubscriptionId, "UNKNOWN_SUBSCRIPTION_ID"),
    (ErrorCode::TelemetryTooLarge, "TELEMETRY_TOO_LARGE"),
    (ErrorCode::InvalidRegistration, "INVALID_REGISTRATION"),
    (ErrorCode::TransactionAbortable, "TRANSACTION_ABORTABLE"),
    (ErrorCode::InvalidRecordState, "INVALID_RECORD_STATE"),
    (ErrorCode::ShareSessionNotFound, "SHARE_SESSION_NOT_FOUND"),
    (ErrorCode::InvalidShareSessionEpoch, "INVALID_SHARE_SESSION_EPOCH"),
    (ErrorCode::FencedStateEpoch, "FENCED_STATE_EPOCH"),
    (ErrorCode::InvalidVoterKey, "INVALID_VOTER_KEY"),
    (ErrorCode::DuplicateVoter, "DUPLICATE_VOTER"),
    (ErrorCode::VoterNotFound, "VOTER_NOT_FOUND"),
    (ErrorCode::InvalidRegularExpression, "INVALID_REGULAR_EXPRESSION"),
    (ErrorCode::RebootstrapRequired, "REBOOTSTRAP_REQUIRED"),
    (ErrorCode::StreamsInvalidTopology, "STREAMS_INVALID_TOPOLOGY"),
    (ErrorCode::StreamsInvalidTopologyEpoch, "STREAMS_INVALID_TOPOLOGY_EPOCH"),
    (ErrorCode::StreamsTopologyFenced, "STREAMS_TOPOLOGY_FENCED"),
    (ErrorCode::ShareSessionLimitReached, "SHARE_SESSION_LIMIT_REACHED"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_its_error_and_no_other() {
        for (error, name) in ALL {
            assert_eq!((ErrorCode::of(error.code()), error.name()), (Some(error), name));
        }
        assert_eq!(ErrorCode::of(i16::MAX), None);
        let known = [
            (-1, "UNKNOWN_SERVER_ERROR"),
            (0, "NONE"),
            (27, "REBALANCE_IN_PROGRESS"),
            (56, "KAFKA_STORAGE_ERROR"),
        ];
        for (code, name) in known {
            assert_eq!(ErrorCode::of(code).map(ErrorCode::name), Some(name));
        }
    }
}
