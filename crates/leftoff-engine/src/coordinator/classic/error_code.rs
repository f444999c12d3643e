//! Kafka's error codes, as far as groups answer with them.

use std::fmt;

/// What a group answers, by Kafka's names. The number of a variant is its code on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i16)]
pub enum ErrorCode {
    /// It went well.
    None = 0,
    /// Only with strict commits: the offset lies above the end.
    OffsetOutOfRange = 1,
    /// There is no such topic, or no such partition of it.
    UnknownTopicOrPartition = 3,
    /// The metadata of a commit is longer than [`MAX_METADATA_BYTES`](crate::coordinator::MAX_METADATA_BYTES).
    OffsetMetadataTooLarge = 12,
    /// An embedded consumer of this very process holds the group. Clients ask again, as during a load.
    CoordinatorLoadInProgress = 14,
    /// It could not be written down now. Clients ask again.
    CoordinatorNotAvailable = 15,
    /// The generation is not the group's.
    IllegalGeneration = 22,
    /// The member speaks no protocol that all the others speak.
    InconsistentGroupProtocol = 23,
    /// The group's name is empty, or too long.
    InvalidGroupId = 24,
    /// No such member: join anew.
    UnknownMemberId = 25,
    /// The session timeout lies outside the bounds of the broker.
    InvalidSessionTimeout = 26,
    /// A rebalance is under way: join again.
    RebalanceInProgress = 27,
    /// A field that cannot be.
    InvalidRequest = 42,
    /// Only with strict commits: the offset is lower than the one before.
    PolicyViolation = 44,
    /// The group has members.
    NonEmptyGroup = 68,
    /// No such group.
    GroupIdNotFound = 69,
    /// Join again with the member id in this answer (KIP-394).
    MemberIdRequired = 79,
    /// The group has as many members as it may.
    GroupMaxSizeReached = 81,
    /// Another member has taken this group instance id (KIP-345).
    FencedInstanceId = 82,
    /// A member is subscribed to the topic.
    GroupSubscribedToTopic = 86,
}

impl ErrorCode {
    /// The code on the wire.
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// Whether it went well.
    pub const fn is_none(self) -> bool {
        matches!(self, ErrorCode::None)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
