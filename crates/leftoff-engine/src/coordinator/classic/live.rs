//! A group as it lives in memory: its state, its members and who of them waits. Kafka's `ClassicGroup`.

use std::collections::{BTreeMap, BTreeSet};

use leftoff_wire::consumer_offsets::{GroupMetadataValue, MemberMetadata};

use super::io::{Client, JoinReply, JoinedMember, MemberReply, Protocol, SyncReply, Waiter};
use super::turn::Turn;
use super::{ErrorCode, GroupConfig};
use crate::types::Timestamp;

/// Where a group is between two generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupState {
    /// No members.
    Empty,
    /// Members are to join.
    PreparingRebalance,
    /// Members have joined and wait for the leader's assignment.
    CompletingRebalance,
    /// Members have their assignment.
    Stable,
    /// There is no such group.
    Dead,
}

impl GroupState {
    /// Every state.
    pub const ALL: [GroupState; 5] = [
        GroupState::Empty,
        GroupState::PreparingRebalance,
        GroupState::CompletingRebalance,
        GroupState::Stable,
        GroupState::Dead,
    ];

    /// Kafka's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            GroupState::Empty => "Empty",
            GroupState::PreparingRebalance => "PreparingRebalance",
            GroupState::CompletingRebalance => "CompletingRebalance",
            GroupState::Stable => "Stable",
            GroupState::Dead => "Dead",
        }
    }
}

#[derive(Debug)]
pub(super) struct LiveGroup {
    pub(super) state: GroupState,
    pub(super) generation: i32,
    pub(super) protocol_type: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) leader: Option<String>,
    pub(super) members: BTreeMap<String, Member>,
    /// Static name, member id.
    pub(super) statics: BTreeMap<String, String>,
    /// Ids that were given out (KIP-394) and have not joined yet, with the moment to forget them.
    pub(super) pending: BTreeMap<String, Timestamp>,
    /// How many of those are in the count of all groups.
    pub(super) counted_pending: usize,
    pub(super) join_timer: Option<JoinTimer>,
    /// Members of this generation that have not asked for their assignment yet.
    pub(super) pending_sync: BTreeSet<String>,
    pub(super) sync_deadline: Option<Timestamp>,
    /// During an initial rebalance: somebody has come since the timer was set.
    pub(super) new_member_added: bool,
    /// Whether a member has spoken since the start: until then the members are what the log remembers.
    pub(super) was_heard: bool,
    /// The deadline under which the group is in the index of timers: never later than its true one.
    pub(super) indexed: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) instance: Option<String>,
    pub(super) client: Client,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) session_timeout_ms: i32,
    pub(super) protocols: Vec<Protocol>,
    pub(super) assignment: Vec<u8>,
    /// Has joined and was never answered: it does not know its id and cannot send a heartbeat.
    pub(super) is_new: bool,
    pub(super) joining: Option<Waiter>,
    pub(super) syncing: Option<Waiter>,
    /// An answer to its sync waits for the disk: until it is out, it cannot be expected to speak.
    pub(super) unsent: Option<Waiter>,
    pub(super) session_deadline: Timestamp,
}

/// When the join barrier opens at the latest.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinTimer {
    pub(super) at: Timestamp,
    /// Of a group that was empty: the barrier moves while members keep coming.
    pub(super) initial: Option<Initial>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Initial {
    pub(super) delay_ms: i32,
    pub(super) remaining_ms: i32,
}

impl LiveGroup {
    pub(super) fn empty(generation: i32, protocol_type: Option<String>) -> LiveGroup {
        LiveGroup {
            state: GroupState::Empty,
            generation,
            protocol_type,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            statics: BTreeMap::new(),
            pending: BTreeMap::new(),
            counted_pending: 0,
            join_timer: None,
            pending_sync: BTreeSet::new(),
            sync_deadline: None,
            new_member_added: false,
            was_heard: false,
            indexed: None,
        }
    }

    /// The group that a record tells of. Its members have a whole session to speak again.
    pub(super) fn loaded(now: Timestamp, value: &GroupMetadataValue) -> LiveGroup {
        let protocol = value.protocol.clone().unwrap_or_default();
        let member = |member: &MemberMetadata| Member {
            instance: member.group_instance_id.clone(),
            client: Client {
                client_id: member.client_id.clone(),
                host: member.client_host.clone(),
                software: String::new(),
            },
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout_ms,
            protocols: vec![Protocol { name: protocol.clone(), metadata: member.subscription.clone() }],
            assignment: member.assignment.clone(),
            is_new: false,
            joining: None,
            syncing: None,
            unsent: None,
            session_deadline: after(now, member.session_timeout_ms),
        };
        let mut group = LiveGroup::empty(value.generation, Some(value.protocol_type.clone()));
        group.state = GroupState::Stable;
        group.protocol = value.protocol.clone();
        group.members = value.members.iter().map(|m| (m.member_id.clone(), member(m))).collect();
        group.leader = value.leader.clone().filter(|leader| group.members.contains_key(leader));
        group.elect_if_none();
        let statics =
            value.members.iter().filter_map(|m| Some((m.group_instance_id.clone()?, m.member_id.clone())));
        group.statics = statics.collect();
        group
    }

    pub(super) fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    pub(super) fn joining_count(&self) -> usize {
        self.members.values().filter(|member| member.joining.is_some()).count()
    }

    pub(super) fn have_all_joined(&self) -> bool {
        self.pending.is_empty() && self.joining_count() == self.members.len()
    }

    /// The longest that any member may take.
    pub(super) fn rebalance_timeout_ms(&self) -> i32 {
        self.members.values().map(|member| member.rebalance_timeout_ms).max().unwrap_or(0)
    }

    /// Whether a member that speaks these could be in the group.
    pub(super) fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.members.is_empty() {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|protocol| self.all_speak(&protocol.name))
    }

    fn all_speak(&self, name: &str) -> bool {
        self.members.values().all(|member| member.speaks(name))
    }

    /// The protocol with the most votes: each member votes for the first of its own that all speak. With as many votes the one that the first
    /// member likes better.
    pub(super) fn voted_protocol(&self) -> Option<String> {
        let first = self.members.values().next()?;
        let candidates: Vec<&str> =
            first.protocols.iter().map(|p| p.name.as_str()).filter(|name| self.all_speak(name)).collect();
        let votes = |name: &str| self.members.values().filter(|m| m.vote(&candidates) == Some(name)).count();
        let most = candidates.iter().map(|name| votes(name)).max()?;
        candidates.iter().find(|name| votes(name) == most).map(|name| (*name).to_owned())
    }

    /// Whether this member, by id and static name, is in the group.
    pub(super) fn check_member(&self, member_id: &str, instance: Option<&str>) -> Result<(), ErrorCode> {
        if let Some(instance) = instance {
            match self.statics.get(instance) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(current) if current != member_id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) { Ok(()) } else { Err(ErrorCode::UnknownMemberId) }
    }

    /// The member has spoken: its session begins anew.
    pub(super) fn touch(&mut self, now: Timestamp, member_id: &str) {
        self.was_heard = true;
        // A new member has more time, and keeps it.
        if let Some(member) = self.members.get_mut(member_id).filter(|member| !member.is_new) {
            member.session_deadline = after(now, member.session_timeout_ms);
        }
    }

    /// Takes a member out; whatever it waits for is answered.
    pub(super) fn remove(
        &mut self,
        turn: &mut Turn<'_>,
        member_id: &str,
        error: ErrorCode,
    ) -> Option<Member> {
        let mut member = self.members.remove(member_id)?;
        if let Some(waiter) = member.joining.take() {
            // The client gets no id with it, and joins as a new member.
            turn.refuse_join(waiter, error, "");
        }
        if let Some(waiter) = member.syncing.take() {
            turn.refuse_sync(waiter, error);
        }
        if let Some(instance) = &member.instance
            && self.statics.get(instance).is_some_and(|current| current == member_id)
        {
            self.statics.remove(instance);
        }
        self.synced(member_id);
        if self.is_leader(member_id) {
            self.leader = None;
            self.elect_if_none();
        }
        Some(member)
    }

    /// A member has asked for its assignment, or never will.
    pub(super) fn synced(&mut self, member_id: &str) {
        self.pending_sync.remove(member_id);
        if self.pending_sync.is_empty() {
            self.sync_deadline = None;
        }
    }

    fn elect_if_none(&mut self) {
        if self.leader.is_none() {
            self.leader = self.members.keys().next().cloned();
        }
    }

    /// The current generation, as a member hears of it.
    pub(super) fn join_reply(&self, member_id: &str, members: Vec<JoinedMember>) -> JoinReply {
        JoinReply {
            error: ErrorCode::None,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            member_id: member_id.to_owned(),
            members,
        }
    }

    /// All members with what they say in the chosen protocol.
    pub(super) fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        self.members
            .iter()
            .map(|(member_id, member)| JoinedMember {
                member_id: member_id.clone(),
                group_instance_id: member.instance.clone(),
                metadata: member.metadata(protocol).to_vec(),
            })
            .collect()
    }

    /// What the leader gets of all members, and everybody else of none.
    pub(super) fn members_for(&self, member_id: &str) -> Vec<JoinedMember> {
        if self.is_leader(member_id) { self.joined_members() } else { Vec::new() }
    }

    pub(super) fn sync_reply(&self, member: &Member) -> MemberReply {
        MemberReply::Sync(SyncReply {
            error: ErrorCode::None,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            assignment: member.assignment.clone(),
        })
    }

    /// The next moment at which something is due.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let sessions = self.members.values().map(|member| member.session_deadline);
        let pending = self.pending.values().copied();
        let timers = self.join_timer.map(|timer| timer.at).into_iter().chain(self.sync_deadline);
        sessions.chain(pending).chain(timers).min()
    }

    /// Whether memory holds nothing that the log does not.
    pub(super) fn is_idle(&self, lasting_generation: i32) -> bool {
        self.state == GroupState::Empty
            && self.pending.is_empty()
            && self.members.is_empty()
            && self.generation == lasting_generation
    }

    /// Everybody who waits.
    pub(super) fn take_waiters(&mut self) -> Vec<Waiter> {
        self.members
            .values_mut()
            .flat_map(|member| member.joining.take().into_iter().chain(member.syncing.take()))
            .collect()
    }

    pub(super) fn has_room(&self, member_id: &str, config: &GroupConfig) -> bool {
        match self.state {
            GroupState::Empty | GroupState::Dead => true,
            // Who waits counts, not who is a member: so the last to come again are out if the limit was lowered.
            GroupState::PreparingRebalance => {
                self.members.get(member_id).is_some_and(|member| member.joining.is_some())
                    || self.joining_count() < config.max_size
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                self.members.contains_key(member_id) || self.members.len() < config.max_size
            }
        }
    }
}

impl Member {
    pub(super) fn speaks(&self, name: &str) -> bool {
        self.protocols.iter().any(|protocol| protocol.name == name)
    }

    fn vote<'a>(&self, candidates: &[&'a str]) -> Option<&'a str> {
        self.protocols.iter().find_map(|own| candidates.iter().find(|name| **name == own.name)).copied()
    }

    /// What it says in a protocol.
    pub(super) fn metadata(&self, protocol: &str) -> &[u8] {
        self.protocols.iter().find(|own| own.name == protocol).map_or(&[], |own| &own.metadata)
    }

    /// Whether it is the broker that owes an answer: until that is out, silence is no sign of death. A new member may wait for ever for a
    /// connection that is gone, so it has a deadline of its own.
    pub(super) fn is_kept_waiting(&self) -> bool {
        !self.is_new && (self.joining.is_some() || self.syncing.is_some() || self.unsent.is_some())
    }
}

pub(super) fn after(now: Timestamp, ms: i32) -> Timestamp {
    Timestamp::from_ms(now.as_ms().saturating_add(i64::from(ms.max(0))))
}
