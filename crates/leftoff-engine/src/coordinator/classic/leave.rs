//! LeaveGroup, versions 0 to 5: one member, or from version 3 on several, by id or by static name.

use super::io::{LeaveGroup, LeaveReply, Leaving, MemberReply, Waiter};
use super::live::{GroupState, LiveGroup};
use super::turn::{Step, Turn};
use super::{Classic, ErrorCode};
use crate::coordinator::Coordinator;
use crate::types::Timestamp;

impl Classic {
    pub(super) fn leave(
        &mut self,
        now: Timestamp,
        lasting: &Coordinator,
        waiter: Waiter,
        request: LeaveGroup,
    ) -> Step {
        let LeaveGroup { group: name, members } = request;
        let mut turn = self.config.turn(now, &name, lasting.known_group(&name));
        let checked = super::check_group_name(&name);
        let reply = match (checked, self.groups.get_mut(&name)) {
            (Err(error), _) => LeaveReply { error, members: Vec::new() },
            (Ok(()), None) => {
                let members =
                    members.into_iter().map(|member| (member, ErrorCode::UnknownMemberId)).collect();
                LeaveReply { error: ErrorCode::None, members }
            }
            (Ok(()), Some(group)) => group.leave(&mut turn, members),
        };
        let reply = MemberReply::Leave(reply);
        // If the last one has gone, that is on disk before anybody hears of it.
        if turn.step.write.is_some() {
            turn.report(waiter, reply)
        } else {
            turn.answer(waiter, reply)
        }
        let step = turn.step;
        self.settle(&name, lasting);
        step
    }
}

impl LiveGroup {
    fn leave(&mut self, turn: &mut Turn<'_>, members: Vec<Leaving>) -> LeaveReply {
        let count = self.members.len();
        let members = members
            .into_iter()
            .map(|leaving| {
                let error = match self.leave_one(turn, &leaving) {
                    Ok(()) => ErrorCode::None,
                    Err(error) => error,
                };
                (leaving, error)
            })
            .collect();
        if self.members.len() < count {
            self.member_gone(turn);
        } else {
            // An id that nobody will use is nothing to wait for.
            self.maybe_complete_join(turn);
        }
        LeaveReply { error: ErrorCode::None, members }
    }

    fn leave_one(&mut self, turn: &mut Turn<'_>, leaving: &Leaving) -> Result<(), ErrorCode> {
        let instance = leaving.group_instance_id.as_deref();
        if instance.is_none() && self.pending.remove(&leaving.member_id).is_some() {
            return Ok(());
        }
        let by_name = instance.filter(|_| leaving.member_id.is_empty());
        let member_id = match by_name {
            Some(instance) => self.statics.get(instance).ok_or(ErrorCode::UnknownMemberId)?,
            None => &leaving.member_id,
        };
        let member_id = member_id.clone();
        self.check_member(&member_id, instance)?;
        self.remove(turn, &member_id, ErrorCode::UnknownMemberId);
        Ok(())
    }

    /// After members have gone.
    pub(super) fn member_gone(&mut self, turn: &mut Turn<'_>) {
        match self.state {
            GroupState::Empty | GroupState::Dead => {}
            GroupState::Stable | GroupState::CompletingRebalance => self.prepare_rebalance(turn),
            GroupState::PreparingRebalance => self.maybe_complete_join(turn),
        }
    }
}
