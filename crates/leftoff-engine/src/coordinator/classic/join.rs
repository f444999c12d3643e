//! JoinGroup, versions 0 to 9: the barrier before a generation.
//!
//! A new dynamic member gets an id first (KIP-394), and joins with it. A static member that comes back takes the place of its old id, which is
//! fenced; in a stable group with the same metadata it gets its assignment without a rebalance (KIP-345, KIP-814).

use leftoff_wire::primitives::MAX_STR_BYTES;

use super::io::{JoinGroup, JoinReply, MemberReply, Waiter};
use super::live::{GroupState, LiveGroup, Member, after};
use super::record::stable_record;
use super::turn::{Replaced, Step, Then, Turn};
use super::{Classic, ErrorCode, GroupConfig, MAX_PENDING_MEMBERS};
use crate::coordinator::Coordinator;
use crate::types::Timestamp;

/// What a member id adds to the client id or static name: a dash and an id.
const MEMBER_ID_SUFFIX_BYTES: usize = 40;

impl Classic {
    pub(super) fn join(
        &mut self,
        now: Timestamp,
        lasting: &Coordinator,
        waiter: Waiter,
        request: JoinGroup,
    ) -> Step {
        let name = request.group.clone();
        let mut turn = self.config.turn(now, &name, lasting.known_group(&name));
        let is_new = request.member_id.is_empty();
        let checked = check(&request, turn.config);
        let checked = checked.and_then(|()| self.check_not_embedded(&name));
        let known = self.groups.contains_key(&name);
        let checked = checked.and(if is_new || known { Ok(()) } else { Err(ErrorCode::UnknownMemberId) });
        if let Err(error) = checked {
            turn.refuse_join(waiter, error, &request.member_id);
            return turn.step;
        }
        turn.has_room_for_ids = self.pending_count < MAX_PENDING_MEMBERS;
        let group = self.groups.entry(name.clone()).or_insert_with(|| super::empty_group(turn.lasting));
        if !group.has_room(&request.member_id, turn.config) {
            group.remove(&mut turn, &request.member_id, ErrorCode::GroupMaxSizeReached);
            turn.refuse_join(waiter, ErrorCode::GroupMaxSizeReached, &request.member_id);
        } else if !group.supports(&request.protocol_type, &request.protocols) {
            turn.refuse_join(waiter, ErrorCode::InconsistentGroupProtocol, &request.member_id);
        } else if is_new {
            group.join_new(&mut turn, waiter, request);
        } else {
            group.join_again(&mut turn, waiter, request);
        }
        let step = turn.step;
        self.settle(&name, lasting);
        step
    }
}

/// What a record could not hold, and what Kafka refuses.
fn check(request: &JoinGroup, config: &GroupConfig) -> Result<(), ErrorCode> {
    super::check_group_name(&request.group)?;
    let session = config.min_session_timeout_ms..=config.max_session_timeout_ms;
    if !session.contains(&request.session_timeout_ms) {
        return Err(ErrorCode::InvalidSessionTimeout);
    }
    let prefix = MAX_STR_BYTES - MEMBER_ID_SUFFIX_BYTES;
    let fits = request.client.client_id.len() <= prefix
        && request.client.host.len() <= MAX_STR_BYTES
        && request.group_instance_id.as_ref().is_none_or(|instance| instance.len() <= prefix)
        && request.protocol_type.len() <= MAX_STR_BYTES
        && request.protocols.iter().all(|protocol| protocol.name.len() <= MAX_STR_BYTES);
    if fits { Ok(()) } else { Err(ErrorCode::InvalidRequest) }
}

impl LiveGroup {
    fn join_new(&mut self, turn: &mut Turn<'_>, waiter: Waiter, request: JoinGroup) {
        let stem = request.group_instance_id.as_deref().unwrap_or(&request.client.client_id);
        let member_id = format!("{stem}-{}", request.fresh_id);
        if let Some(instance) = &request.group_instance_id {
            match self.statics.get(instance).cloned() {
                Some(old_id) => self.replace_static(turn, waiter, request, (&old_id, &member_id)),
                None => self.add(turn, waiter, request, &member_id),
            }
        } else if !request.requires_known_member_id {
            self.add(turn, waiter, request, &member_id);
        } else if !turn.has_room_for_ids {
            // Clients ask again, and some of the ids are forgotten by then.
            turn.refuse_join(waiter, ErrorCode::CoordinatorLoadInProgress, "");
        } else {
            self.pending.insert(member_id.clone(), turn.after_ms(request.session_timeout_ms));
            turn.refuse_join(waiter, ErrorCode::MemberIdRequired, &member_id);
        }
    }

    fn join_again(&mut self, turn: &mut Turn<'_>, waiter: Waiter, request: JoinGroup) {
        let member_id = request.member_id.clone();
        if request.group_instance_id.is_none() && self.pending.remove(&member_id).is_some() {
            return self.add(turn, waiter, request, &member_id);
        }
        if let Err(error) = self.check_member(&member_id, request.group_instance_id.as_deref()) {
            return turn.refuse_join(waiter, error, &member_id);
        }
        let is_unchanged =
            self.members.get(&member_id).is_some_and(|member| member.protocols == request.protocols);
        let is_answered_now = match self.state {
            // The answer may have got lost; the generation is still the same.
            GroupState::CompletingRebalance => is_unchanged,
            // Only the leader can ask for a rebalance without a reason that is seen.
            GroupState::Stable => is_unchanged && !self.is_leader(&member_id),
            GroupState::Empty | GroupState::PreparingRebalance | GroupState::Dead => false,
        };
        if is_answered_now {
            self.touch(turn.now, &member_id);
            let reply = self.join_reply(&member_id, self.members_for(&member_id));
            turn.report(waiter, MemberReply::Join(reply));
        } else {
            self.update(turn, waiter, request, &member_id);
            self.rebalance_or_complete(turn);
        }
    }

    fn add(&mut self, turn: &mut Turn<'_>, waiter: Waiter, request: JoinGroup, member_id: &str) {
        if self.members.is_empty() {
            self.protocol_type = Some(request.protocol_type.clone());
        }
        if self.state == GroupState::PreparingRebalance {
            self.new_member_added = true;
        }
        if let Some(instance) = &request.group_instance_id {
            self.statics.insert(instance.clone(), member_id.to_owned());
        }
        let member = Member {
            instance: request.group_instance_id,
            client: request.client,
            rebalance_timeout_ms: rebalance_timeout_ms(
                request.rebalance_timeout_ms,
                request.session_timeout_ms,
            ),
            session_timeout_ms: request.session_timeout_ms,
            protocols: request.protocols,
            assignment: Vec::new(),
            is_new: true,
            joining: Some(waiter),
            syncing: None,
            unsent: None,
            session_deadline: turn.after_ms(turn.config.new_member_timeout_ms),
        };
        self.was_heard = true;
        self.members.insert(member_id.to_owned(), member);
        self.leader.get_or_insert_with(|| member_id.to_owned());
        self.rebalance_or_complete(turn);
    }

    /// The member waits with what it says now.
    fn update(&mut self, turn: &mut Turn<'_>, waiter: Waiter, request: JoinGroup, member_id: &str) {
        self.touch(turn.now, member_id);
        let Some(member) = self.members.get_mut(member_id) else { return };
        member.protocols = request.protocols;
        member.session_timeout_ms = request.session_timeout_ms;
        member.rebalance_timeout_ms =
            rebalance_timeout_ms(request.rebalance_timeout_ms, request.session_timeout_ms);
        member.client = request.client;
        let ms = if member.is_new { turn.config.new_member_timeout_ms } else { member.session_timeout_ms };
        member.session_deadline = after(turn.now, ms);
        if let Some(earlier) = member.joining.replace(waiter) {
            // Its connection is gone, or the client would not ask twice.
            turn.refuse_join(earlier, ErrorCode::RebalanceInProgress, member_id);
        }
    }

    /// A static member has come back without its id: it gets a new one, and the old one is fenced.
    fn replace_static(
        &mut self,
        turn: &mut Turn<'_>,
        waiter: Waiter,
        request: JoinGroup,
        (old_id, new_id): (&str, &str),
    ) {
        let old_leader = self.leader.clone();
        let Some(mut member) = self.members.remove(old_id) else { return };
        if let Some(earlier) = member.joining.take() {
            turn.refuse_join(earlier, ErrorCode::FencedInstanceId, old_id);
        }
        if let Some(earlier) = member.syncing.take() {
            turn.refuse_sync(earlier, ErrorCode::FencedInstanceId);
        }
        member.unsent = None;
        let old = member.clone();
        if self.is_leader(old_id) {
            self.leader = Some(new_id.to_owned());
        }
        if self.pending_sync.remove(old_id) {
            self.pending_sync.insert(new_id.to_owned());
        }
        self.statics.extend(request.group_instance_id.clone().map(|instance| (instance, new_id.to_owned())));
        self.members.insert(new_id.to_owned(), member);
        let can_skip = request.can_skip_assignment;
        self.update(turn, waiter, request, new_id);
        let protocol = self.protocol.clone().unwrap_or_default();
        let says_the_same = self
            .members
            .get(new_id)
            .is_some_and(|member| member.metadata(&protocol) == old.metadata(&protocol));
        if self.state != GroupState::Stable || !says_the_same || self.voted_protocol() != self.protocol {
            return self.rebalance_or_complete(turn);
        }
        if let Some(member) = self.members.get_mut(new_id) {
            member.joining = None;
        }
        let reply = self.reply_without_rebalance(new_id, old_leader.as_deref(), can_skip);
        let record = stable_record(self, turn, |_, member| &member.assignment);
        let replaced = Replaced { waiter, reply, old_id: old_id.to_owned(), old, old_leader };
        turn.write(record, Then::Replaced(Box::new(replaced)));
    }

    /// Before version 9 a leader cannot be told to leave the assignment alone, so it is told that somebody else leads.
    fn reply_without_rebalance(
        &self,
        member_id: &str,
        old_leader: Option<&str>,
        can_skip: bool,
    ) -> JoinReply {
        if can_skip {
            let skip_assignment = self.is_leader(member_id);
            return JoinReply { skip_assignment, ..self.join_reply(member_id, self.members_for(member_id)) };
        }
        let leader = old_leader.unwrap_or_default().to_owned();
        JoinReply { leader, ..self.join_reply(member_id, Vec::new()) }
    }

    /// The new id could not be written down: the old one is the member still.
    pub(super) fn restore_static(&mut self, turn: &mut Turn<'_>, replaced: Replaced) {
        let Replaced { waiter, reply, old_id, mut old, old_leader } = replaced;
        self.members.remove(&reply.member_id);
        if self.pending_sync.remove(&reply.member_id) {
            self.pending_sync.insert(old_id.clone());
        }
        self.statics.extend(old.instance.clone().map(|instance| (instance, old_id.clone())));
        old.session_deadline = after(turn.now, old.session_timeout_ms);
        self.members.insert(old_id, old);
        self.leader = old_leader;
        turn.refuse_join(waiter, ErrorCode::CoordinatorNotAvailable, "");
    }
}

/// Version 0 has no rebalance timeout.
fn rebalance_timeout_ms(asked: i32, session_timeout_ms: i32) -> i32 {
    if asked < 0 { session_timeout_ms } else { asked }
}
