//! What is asked about groups by members and operators alike: offsets, descriptions, deletions.

use super::io::Client;
use super::{ErrorCode, GroupState};
use crate::coordinator::{Flags, Who};
use crate::types::TopicPartition;

/// A request about groups; each is answered at once, but for the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupRequest {
    /// Save offsets.
    Commit(CommitOffsets),
    /// Tell saved offsets, of each group.
    Fetch(Vec<FetchOffsets>),
    /// Describe groups, by name.
    Describe(Vec<String>),
    /// List groups.
    List(ListGroups),
    /// Delete groups.
    Delete {
        /// Which.
        groups: Vec<String>,
        /// Who asks.
        who: Who,
    },
    /// Delete some of a group's offsets.
    DeleteOffsets {
        /// Which group.
        group: String,
        /// Which partitions.
        partitions: Vec<TopicPartition>,
        /// Who asks.
        who: Who,
    },
}

/// The answer to a [`GroupRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupReply {
    /// For each offset, in the order given: the error, or what is odd about it.
    Commit(Vec<Result<Flags, ErrorCode>>),
    /// For each group, in the order given.
    Fetch(Vec<FetchedGroup>),
    /// For each group, in the order given.
    Describe(Vec<DescribedGroup>),
    /// Sorted by name.
    List(Vec<ListedGroup>),
    /// For each group, in the order given.
    Delete(Vec<ErrorCode>),
    /// For each partition, in the order given; or why nothing could be done at all.
    DeleteOffsets(Result<Vec<ErrorCode>, ErrorCode>),
}

/// OffsetCommit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitOffsets {
    /// The group.
    pub group: String,
    /// The generation; -1 of a consumer that is no member, or of an operator.
    pub generation: i32,
    /// The member; empty of one that is none.
    pub member_id: String,
    /// Its static name.
    pub group_instance_id: Option<String>,
    /// The client, for the history.
    pub client: Client,
    /// What to save.
    pub offsets: Vec<OffsetToSave>,
}

/// One offset to save, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetToSave {
    /// The topic's name.
    pub topic: String,
    /// The partition's number.
    pub partition: i32,
    /// The next offset to read.
    pub committed: i64,
    /// The leader epoch of the last handled event; negative if it is not known.
    pub leader_epoch: i32,
    /// The committer's own words.
    pub metadata: String,
}

/// OffsetFetch, of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchOffsets {
    /// The group.
    pub group: String,
    /// Which partitions; `None`: all that have an offset.
    pub topics: Option<Vec<(String, Vec<i32>)>>,
}

/// The saved offsets of a group. A group that nobody knows has none, and that is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedGroup {
    /// The group.
    pub group: String,
    /// By topic, in the order asked for.
    pub topics: Vec<(String, Vec<FetchedOffset>)>,
}

/// A saved offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedOffset {
    /// The partition's number.
    pub partition: i32,
    /// The next offset to read; -1 if there is none.
    pub committed: i64,
    /// -1 if it is not known.
    pub leader_epoch: i32,
    /// The committer's own words.
    pub metadata: String,
}

/// ListGroups: what to list. An empty filter lets everything pass; words count in any case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListGroups {
    /// States by Kafka's words.
    pub states: Vec<String>,
    /// Types: `classic`, `consumer`, ….
    pub types: Vec<String>,
}

/// A group in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    /// Its name.
    pub group: String,
    /// `consumer`, `connect`, …; empty for a group that never had members.
    pub protocol_type: String,
    /// Its state.
    pub state: GroupState,
}

impl ListedGroup {
    /// Kafka's word for what all groups here are.
    pub const TYPE: &'static str = "classic";
}

/// A group, described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedGroup {
    /// [`ErrorCode::GroupIdNotFound`] of a group that is not there: from version 6 on; before it is just dead.
    pub error: ErrorCode,
    /// Its name.
    pub group: String,
    /// Its state.
    pub state: GroupState,
    /// `consumer`, `connect`, …; empty for a group that never had members.
    pub protocol_type: String,
    /// The protocol that was chosen; empty unless it is stable.
    pub protocol: String,
    /// Its members.
    pub members: Vec<DescribedMember>,
}

/// A member, described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedMember {
    /// Its id.
    pub member_id: String,
    /// Its static name.
    pub group_instance_id: Option<String>,
    /// The client id.
    pub client_id: String,
    /// Where it connected from.
    pub client_host: String,
    /// Its subscription, while the group is stable.
    pub metadata: Vec<u8>,
    /// Its assignment, while the group is stable.
    pub assignment: Vec<u8>,
}
