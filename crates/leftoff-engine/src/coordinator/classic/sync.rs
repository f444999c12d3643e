//! SyncGroup, versions 0 to 5: the leader brings the assignment, and everybody gets a part once it is on disk.

use std::collections::BTreeMap;

use super::io::{SyncGroup, Waiter};
use super::live::{GroupState, LiveGroup, after};
use super::record::stable_record;
use super::turn::{Step, Then, Turn};
use super::{Classic, ErrorCode};
use crate::coordinator::Coordinator;
use crate::types::Timestamp;

impl Classic {
    pub(super) fn sync(
        &mut self,
        now: Timestamp,
        lasting: &Coordinator,
        waiter: Waiter,
        request: SyncGroup,
    ) -> Step {
        let name = request.group.clone();
        let mut turn = self.config.turn(now, &name, lasting.known_group(&name));
        let checked = super::check_group_name(&name);
        match checked.and_then(|()| self.groups.get_mut(&name).ok_or(ErrorCode::UnknownMemberId)) {
            Err(error) => turn.refuse_sync(waiter, error),
            Ok(group) => group.sync(&mut turn, waiter, request),
        }
        let Turn { step, unsent, .. } = turn;
        self.keep_unsent(&name, unsent);
        self.settle(&name, lasting);
        step
    }
}

impl LiveGroup {
    fn sync(&mut self, turn: &mut Turn<'_>, waiter: Waiter, request: SyncGroup) {
        let member_id = request.member_id.clone();
        if let Err(error) = self.check_sync(&request) {
            return turn.refuse_sync(waiter, error);
        }
        self.touch(turn.now, &member_id);
        match self.state {
            GroupState::Empty | GroupState::Dead => turn.refuse_sync(waiter, ErrorCode::UnknownMemberId),
            GroupState::PreparingRebalance => turn.refuse_sync(waiter, ErrorCode::RebalanceInProgress),
            GroupState::CompletingRebalance => {
                self.synced(&member_id);
                let earlier =
                    self.members.get_mut(&member_id).and_then(|member| member.syncing.replace(waiter));
                if let Some(earlier) = earlier {
                    turn.refuse_sync(earlier, ErrorCode::RebalanceInProgress);
                }
                if self.is_leader(&member_id) {
                    self.assign(turn, request.assignments);
                }
            }
            GroupState::Stable => {
                self.synced(&member_id);
                self.hand_out(turn, &member_id, waiter);
            }
        }
    }

    fn check_sync(&self, request: &SyncGroup) -> Result<(), ErrorCode> {
        self.check_member(&request.member_id, request.group_instance_id.as_deref())?;
        if request.generation != self.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        let is_ours = |said: &Option<String>, ours: &Option<String>| said.is_none() || said == ours;
        let fits = is_ours(&request.protocol_type, &self.protocol_type)
            && is_ours(&request.protocol, &self.protocol);
        if fits { Ok(()) } else { Err(ErrorCode::InconsistentGroupProtocol) }
    }

    /// A member that the leader has left out gets an empty assignment, and a name that is no member's is passed over.
    fn assign(&mut self, turn: &mut Turn<'_>, assignments: Vec<(String, Vec<u8>)>) {
        let brought: BTreeMap<&str, &[u8]> =
            assignments.iter().map(|(member_id, part)| (member_id.as_str(), part.as_slice())).collect();
        let part = |member_id: &str| brought.get(member_id).copied().unwrap_or_default();
        let record = stable_record(self, turn, |member_id, _| part(member_id));
        let assigned = self.members.keys().map(|id| (id.clone(), part(id).to_vec())).collect();
        turn.write(record, Then::Assigned(assigned));
    }

    /// The assignment is in the log: the group is stable, and who waits gets a part.
    pub(super) fn assigned(&mut self, turn: &mut Turn<'_>, assigned: Vec<(String, Vec<u8>)>) {
        self.state = GroupState::Stable;
        for (member_id, assignment) in assigned {
            let Some(member) = self.members.get_mut(&member_id) else { continue };
            member.assignment = assignment;
            if let Some(waiter) = member.syncing.take() {
                member.session_deadline = after(turn.now, member.session_timeout_ms);
                self.hand_out(turn, &member_id, waiter);
            }
        }
    }

    fn hand_out(&mut self, turn: &mut Turn<'_>, member_id: &str, waiter: Waiter) {
        let Some(member) = self.members.get_mut(member_id) else { return };
        member.unsent = Some(waiter);
        turn.unsent.push((waiter, member_id.to_owned()));
        let reply = self.members.get(member_id).map(|member| self.sync_reply(member));
        if let Some(reply) = reply {
            turn.report(waiter, reply);
        }
    }
}
