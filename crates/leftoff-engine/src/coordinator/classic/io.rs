//! What members ask, and what they are answered: the requests of the classic protocol without their bytes.

use leftoff_wire::Uuid;

use super::ErrorCode;
use crate::coordinator::Who;

/// Names a request that may be answered later; chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiter(pub u64);

/// The client behind a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// The client id in the request's header; may be empty.
    pub client_id: String,
    /// Where it connects from, as Kafka shows it: `/127.0.0.1`.
    pub host: String,
    /// Its software and version (KIP-511); may be empty.
    pub software: String,
}

impl Client {
    /// The client as a member of that id.
    pub fn who(&self, member_id: &str) -> Who {
        Who::new(member_id, &self.client_id, &self.host, &self.software)
    }
}

/// A protocol (an assignor) that a member speaks, and what it says in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Its name.
    pub name: String,
    /// The subscription, in the protocol's own bytes.
    pub metadata: Vec<u8>,
}

/// Asks to be a member. Answered when all members have come, or the rebalance timeout has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinGroup {
    /// The group.
    pub group: String,
    /// Empty at first; later the id that was answered.
    pub member_id: String,
    /// The name of a static member (KIP-345).
    pub group_instance_id: Option<String>,
    /// How long it may be silent.
    pub session_timeout_ms: i32,
    /// How long it may take to join again; negative: the session timeout, as version 0 has it.
    pub rebalance_timeout_ms: i32,
    /// `consumer`, `connect`, ….
    pub protocol_type: String,
    /// What it speaks, best first.
    pub protocols: Vec<Protocol>,
    /// The client.
    pub client: Client,
    /// Entropy for a new member id.
    pub fresh_id: Uuid,
    /// Version 4 and above: a new dynamic member first gets an id and joins again with it (KIP-394).
    pub requires_known_member_id: bool,
    /// Version 9 and above: a static leader that comes back can be told not to assign again (KIP-814).
    pub can_skip_assignment: bool,
}

/// The answer to [`JoinGroup`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinReply {
    /// What went wrong, if something did.
    pub error: ErrorCode,
    /// The generation; -1 with an error.
    pub generation: i32,
    /// What the group speaks.
    pub protocol_type: Option<String>,
    /// The protocol that was chosen.
    pub protocol: Option<String>,
    /// The leader's member id.
    pub leader: String,
    /// The leader shall leave the assignment as it is.
    pub skip_assignment: bool,
    /// The member's id.
    pub member_id: String,
    /// For the leader: all members, with what they say in the chosen protocol.
    pub members: Vec<JoinedMember>,
}

/// A member, as the leader hears of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedMember {
    /// Its id.
    pub member_id: String,
    /// Its static name.
    pub group_instance_id: Option<String>,
    /// Its subscription.
    pub metadata: Vec<u8>,
}

/// Asks for the assignment; the leader brings it. Answered when it is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncGroup {
    /// The group.
    pub group: String,
    /// The generation that the join answered.
    pub generation: i32,
    /// The member.
    pub member_id: String,
    /// Its static name.
    pub group_instance_id: Option<String>,
    /// If the client says it, it must be the group's.
    pub protocol_type: Option<String>,
    /// If the client says it, it must be the group's.
    pub protocol: Option<String>,
    /// From the leader: member id and assignment.
    pub assignments: Vec<(String, Vec<u8>)>,
}

/// The answer to [`SyncGroup`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncReply {
    /// What went wrong, if something did.
    pub error: ErrorCode,
    /// What the group speaks.
    pub protocol_type: Option<String>,
    /// The protocol that was chosen.
    pub protocol: Option<String>,
    /// The member's part.
    pub assignment: Vec<u8>,
}

/// Says that a member lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The group.
    pub group: String,
    /// The generation that the join answered.
    pub generation: i32,
    /// The member.
    pub member_id: String,
    /// Its static name.
    pub group_instance_id: Option<String>,
}

/// Members leave, or are taken out by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveGroup {
    /// The group.
    pub group: String,
    /// Who: up to version 2 exactly one.
    pub members: Vec<Leaving>,
}

/// A member that leaves: by its id, or with an empty id by its static name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Its id; may be empty if there is a static name.
    pub member_id: String,
    /// Its static name.
    pub group_instance_id: Option<String>,
}

/// The answer to [`LeaveGroup`]. Up to version 2 the only member's error is the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveReply {
    /// What went wrong with the request as a whole.
    pub error: ErrorCode,
    /// How each one went, in the order given.
    pub members: Vec<(Leaving, ErrorCode)>,
}

/// What members ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberRequest {
    /// To be a member.
    Join(JoinGroup),
    /// For the assignment.
    Sync(SyncGroup),
    /// To live on.
    Heartbeat(Heartbeat),
    /// To go.
    Leave(LeaveGroup),
}

/// What members are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberReply {
    /// To [`MemberRequest::Join`].
    Join(JoinReply),
    /// To [`MemberRequest::Sync`].
    Sync(SyncReply),
    /// To [`MemberRequest::Heartbeat`].
    Heartbeat(ErrorCode),
    /// To [`MemberRequest::Leave`].
    Leave(LeaveReply),
}

impl JoinReply {
    pub(super) fn refused(error: ErrorCode, member_id: &str) -> JoinReply {
        JoinReply {
            error,
            generation: -1,
            protocol_type: None,
            protocol: None,
            leader: String::new(),
            skip_assignment: false,
            member_id: member_id.to_owned(),
            members: Vec::new(),
        }
    }
}

impl SyncReply {
    pub(super) fn refused(error: ErrorCode) -> SyncReply {
        SyncReply { error, protocol_type: None, protocol: None, assignment: Vec::new() }
    }
}
