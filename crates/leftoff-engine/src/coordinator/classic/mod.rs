//! Groups of the classic protocol, as Kafka 4 keeps them (`GroupMetadataManager`'s classic half): members join, the leader assigns, and
//! heartbeats hold it together.
//!
//! Two kinds of state. What lasts is the group's metadata record, which [`Coordinator::replay`](crate::coordinator::Coordinator::replay) alone
//! applies. What lives here is who is waiting and until when: it is made anew at a start from what lasts, so that members go on with a heartbeat
//! and without a rebalance. An input gives a [`Step`]: answers, and at most one record, whose fate is told with [`Classic::written`].
//!
//! Time is what the caller says. A time-out is acted on only up to the moment until which everything that has arrived was handed over: a broker
//! that is behind evicts nobody.

mod asks;
mod describe;
mod error_code;
mod heartbeat;
mod io;
mod join;
mod leave;
mod live;
mod offsets;
mod rebalance;
mod record;
mod subscription;
mod sync;
#[cfg(test)]
mod tests;
mod timers;
mod turn;

use std::collections::{BTreeMap, BTreeSet};

use leftoff_wire::primitives::MAX_STR_BYTES;

pub use asks::{
    CommitOffsets, DescribedGroup, DescribedMember, FetchOffsets, FetchedGroup, FetchedOffset, GroupReply,
    GroupRequest, ListGroups, ListedGroup, OffsetToSave,
};
pub use error_code::ErrorCode;
pub use io::{
    Client, Heartbeat, JoinGroup, JoinReply, JoinedMember, LeaveGroup, LeaveReply, Leaving, MemberReply,
    MemberRequest, Protocol, SyncGroup, SyncReply, Waiter,
};
pub use live::GroupState;
pub use offsets::Topics;
pub use turn::{Answer, Step, Write};

use crate::coordinator::{Coordinator, Group, GroupError, Ownership};
use crate::types::Timestamp;
use live::LiveGroup;
use turn::{Then, Turn};

/// The most member ids, of all groups, that are given out and not used yet; each is forgotten with its session timeout.
pub const MAX_PENDING_MEMBERS: usize = 10_000;

/// A record that says that a group has no members, and could not be written, is tried again after so long.
const RETRY_MS: i32 = 1_000;

/// Kafka's settings of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// `group.initial.rebalance.delay.ms`: how long a group that was empty waits for more members. 0: not at all.
    pub initial_rebalance_delay_ms: i32,
    /// `group.min.session.timeout.ms`.
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`.
    pub max_session_timeout_ms: i32,
    /// `group.max.size`: the most members of a group.
    pub max_size: usize,
    /// A member that joins for the first time cannot send heartbeats; it is given up after so long (Kafka's 5 minutes).
    pub new_member_timeout_ms: i32,
    /// Refuses what Kafka lets pass and harms: an offset above the end, or lower than before. Else it is flagged.
    pub strict_commits: bool,
}

impl Default for GroupConfig {
    fn default() -> GroupConfig {
        GroupConfig {
            initial_rebalance_delay_ms: 3_000,
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            max_size: i32::MAX as usize,
            new_member_timeout_ms: 300_000,
            strict_commits: false,
        }
    }
}

impl GroupConfig {
    fn turn<'a>(&'a self, now: Timestamp, name: &'a str, lasting: Option<&'a Group>) -> Turn<'a> {
        Turn {
            now,
            config: self,
            name,
            lasting,
            step: Step::default(),
            has_room_for_ids: true,
            unsent: Vec::new(),
        }
    }
}

/// The members of all groups, as they live.
#[derive(Debug, Default)]
pub struct Classic {
    config: GroupConfig,
    groups: BTreeMap<String, LiveGroup>,
    /// When to look at which group: never later than its next deadline.
    due: BTreeSet<(Timestamp, String)>,
    /// Member ids of all groups that are given out and not used yet.
    pending_count: usize,
    /// Assignments that wait for the disk.
    unsent: BTreeMap<Waiter, (String, String)>,
    /// Groups that an embedded consumer of this process has joined.
    embedded: BTreeSet<String>,
}

impl Classic {
    /// The groups that the log tells of. Their members' sessions begin now. Embedded members are left out: whoever reads this holds the
    /// directory's lock, so they are dead or wait for it, and are fenced when somebody else takes the group.
    pub fn load(now: Timestamp, config: GroupConfig, lasting: &Coordinator) -> Classic {
        let mut classic = Classic { config, ..Classic::default() };
        for group in lasting.groups().filter(|group| !group.is_held_embedded()) {
            if let Some(value) = group.metadata_value().filter(|value| !value.members.is_empty()) {
                classic.groups.insert(group.name().to_owned(), LiveGroup::loaded(now, value));
                classic.settle(group.name(), lasting);
            }
        }
        classic
    }

    /// Takes what a member asks. Not everything is answered at once.
    pub fn handle(
        &mut self,
        now: Timestamp,
        lasting: &Coordinator,
        waiter: Waiter,
        request: MemberRequest,
    ) -> Step {
        match request {
            MemberRequest::Join(request) => self.join(now, lasting, waiter, request),
            MemberRequest::Sync(request) => self.sync(now, lasting, waiter, request),
            MemberRequest::Heartbeat(request) => {
                let reply = MemberReply::Heartbeat(self.heartbeat(now, &request));
                Step { replies: vec![Answer { waiter, reply, reports: false }], write: None }
            }
            MemberRequest::Leave(request) => self.leave(now, lasting, waiter, request),
        }
    }

    /// Says how a [`Write`] went: `is_in` if the record is appended and replayed, and not necessarily on disk yet.
    pub fn written(&mut self, now: Timestamp, lasting: &Coordinator, write: Write, is_in: bool) -> Step {
        let Write { group: name, then, .. } = write;
        let mut turn = self.config.turn(now, &name, lasting.known_group(&name));
        if let Some(group) = self.groups.get_mut(&name) {
            match (then, is_in) {
                (Then::Assigned(assigned), true) => group.assigned(&mut turn, assigned),
                (Then::Assigned(_), false) => {
                    group.reset_assignment(&mut turn, ErrorCode::CoordinatorNotAvailable);
                    group.rebalance_or_complete(&mut turn);
                }
                (Then::Emptied, true) => {}
                (Then::Emptied, false) => group.empty_again(&turn, RETRY_MS),
                (Then::Replaced(replaced), true) => {
                    turn.report(replaced.waiter, MemberReply::Join(replaced.reply));
                }
                (Then::Replaced(replaced), false) => group.restore_static(&mut turn, *replaced),
            }
        }
        let Turn { step, unsent, .. } = turn;
        self.keep_unsent(&name, unsent);
        self.settle(&name, lasting);
        step
    }

    /// An answer that reports has gone out: the member's session begins now, and not when the disk was asked.
    pub fn sent(&mut self, now: Timestamp, waiter: Waiter) {
        let Some((name, member_id)) = self.unsent.remove(&waiter) else { return };
        let Some(group) = self.groups.get_mut(&name) else { return };
        if let Some(member) = group.members.get_mut(&member_id).filter(|m| m.unsent == Some(waiter)) {
            member.unsent = None;
            group.touch(now, &member_id);
        }
    }

    /// Everybody who waits, when there is nothing to wait for any more.
    pub fn release_all(&mut self) -> Vec<Waiter> {
        self.due.clear();
        self.groups.values_mut().flat_map(LiveGroup::take_waiters).collect()
    }

    /// An embedded consumer has taken the group, after [`Classic::check_no_living_members`]: members that the log remembers, and nobody has
    /// heard of since the start, are dead.
    pub fn embedded_joins(&mut self, group: &str) {
        self.deleted(group);
        self.embedded.insert(group.to_owned());
    }

    /// An embedded consumer has let the group go, or a person has taken it from members that are dead.
    pub fn embedded_leaves(&mut self, group: &str) {
        self.deleted(group);
        self.embedded.remove(group);
    }

    /// Refuses if a member of the group has spoken since the start.
    ///
    /// # Errors
    /// [`GroupError::MemberPresent`].
    pub fn check_no_living_members(&self, group: &str) -> Result<(), GroupError> {
        let living = self.groups.get(group).filter(|live| live.was_heard);
        match living.and_then(|live| Some((live, live.members.keys().next()?))) {
            None => Ok(()),
            Some((live, member_id)) => {
                let owner = Ownership { member_id: member_id.clone(), generation: live.generation };
                Err(GroupError::MemberPresent { group: group.to_owned(), owner })
            }
        }
    }

    /// The state of a group that memory knows; the others are as the log tells, without living members.
    pub fn state(&self, group: &str) -> Option<GroupState> {
        self.groups.get(group).map(|live| live.state)
    }

    fn check_not_embedded(&self, group: &str) -> Result<(), ErrorCode> {
        if self.embedded.contains(group) { Err(ErrorCode::CoordinatorLoadInProgress) } else { Ok(()) }
    }

    fn keep_unsent(&mut self, name: &str, unsent: Vec<(Waiter, String)>) {
        self.unsent.extend(unsent.into_iter().map(|(waiter, member)| (waiter, (name.to_owned(), member))));
    }

    /// After a group may have changed: its place in the index, or nowhere if memory knows nothing that the log does not.
    fn settle(&mut self, name: &str, lasting: &Coordinator) {
        let Some(group) = self.groups.get_mut(name) else { return };
        if let Some(at) = group.indexed.take() {
            self.due.remove(&(at, name.to_owned()));
        }
        self.pending_count = self.pending_count + group.pending.len() - group.counted_pending;
        group.counted_pending = group.pending.len();
        if group.is_idle(lasting.known_group(name).map_or(0, Group::generation)) {
            self.groups.remove(name);
            return;
        }
        group.indexed = group.next_deadline();
        self.due.extend(group.indexed.map(|at| (at, name.to_owned())));
    }
}

/// The group as the log tells of it, without members.
fn empty_group(lasting: Option<&Group>) -> LiveGroup {
    let protocol_type = lasting.and_then(Group::metadata_value).map(|value| value.protocol_type.clone());
    LiveGroup::empty(lasting.map_or(0, Group::generation), protocol_type)
}

/// Members need a group with a name.
fn check_group_name(name: &str) -> Result<(), ErrorCode> {
    if (1..=MAX_STR_BYTES).contains(&name.len()) { Ok(()) } else { Err(ErrorCode::InvalidGroupId) }
}
