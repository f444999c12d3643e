//! What happens by itself: ids that nobody used, members that fell silent, barriers that open.

use super::live::{GroupState, LiveGroup};
use super::turn::{Step, Turn};
use super::{Classic, ErrorCode};
use crate::coordinator::Coordinator;
use crate::types::Timestamp;

/// A deadline that is set again lies ahead at least so far, whatever time-out was asked for.
const LEAST_MS: i32 = 1;

impl Classic {
    /// When to call [`Classic::handle_deadline`].
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Acts on time-outs up to `heard_until`, the moment until which everything that has arrived was handed over. One step at a time: call
    /// again until there is none.
    pub fn handle_deadline(
        &mut self,
        now: Timestamp,
        heard_until: Timestamp,
        lasting: &Coordinator,
    ) -> Option<Step> {
        let upto = heard_until.min(now);
        while let Some((_, name)) = self.due.first().filter(|(at, _)| *at <= upto).cloned() {
            let mut turn = self.config.turn(now, &name, lasting.known_group(&name));
            if let Some(group) = self.groups.get_mut(&name) {
                group.expire_one(&mut turn, upto);
            }
            let step = turn.step;
            self.settle(&name, lasting);
            if !step.replies.is_empty() || step.write.is_some() {
                return Some(step);
            }
        }
        None
    }
}

impl LiveGroup {
    /// One thing that is due, if anything is: what follows may change the rest.
    fn expire_one(&mut self, turn: &mut Turn<'_>, upto: Timestamp) {
        let is_due = |at: &Timestamp| *at <= upto;
        if let Some((member_id, _)) = self.pending.iter().find(|(_, at)| is_due(at)) {
            let member_id = member_id.clone();
            self.pending.remove(&member_id);
            self.maybe_complete_join(turn);
        } else if let Some((member_id, _)) = self.members.iter().find(|(_, m)| is_due(&m.session_deadline)) {
            let member_id = member_id.clone();
            self.session_ended(turn, &member_id);
        } else if let Some(timer) = self.join_timer.filter(|timer| is_due(&timer.at)) {
            self.join_timer_fired(turn, timer);
        } else if self.sync_deadline.as_ref().is_some_and(is_due) {
            self.sync_timer_fired(turn);
        }
    }

    fn session_ended(&mut self, turn: &mut Turn<'_>, member_id: &str) {
        let Some(member) = self.members.get_mut(member_id) else { return };
        if member.is_kept_waiting() {
            member.session_deadline = turn.after_ms(member.session_timeout_ms.max(LEAST_MS));
        } else {
            self.remove(turn, member_id, ErrorCode::UnknownMemberId);
            self.member_gone(turn);
        }
    }

    /// Members that never asked for their assignment are out.
    fn sync_timer_fired(&mut self, turn: &mut Turn<'_>) {
        self.sync_deadline = None;
        if !matches!(self.state, GroupState::CompletingRebalance | GroupState::Stable) {
            return;
        }
        for member_id in std::mem::take(&mut self.pending_sync) {
            self.remove(turn, &member_id, ErrorCode::UnknownMemberId);
        }
        self.prepare_rebalance(turn);
    }
}
