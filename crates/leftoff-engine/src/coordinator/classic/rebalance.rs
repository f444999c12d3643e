//! From one generation to the next: the join barrier and what opens it.

use super::ErrorCode;
use super::io::{MemberReply, Waiter};
use super::live::{GroupState, Initial, JoinTimer, LiveGroup, Member, after};
use super::record::empty_record;
use super::turn::{Then, Turn};

impl LiveGroup {
    /// After a member came or went: a rebalance begins, or one that is under way may be over.
    pub(super) fn rebalance_or_complete(&mut self, turn: &mut Turn<'_>) {
        match self.state {
            GroupState::PreparingRebalance => self.maybe_complete_join(turn),
            _ => self.prepare_rebalance(turn),
        }
    }

    pub(super) fn prepare_rebalance(&mut self, turn: &mut Turn<'_>) {
        if self.state == GroupState::CompletingRebalance {
            self.reset_assignment(turn, ErrorCode::RebalanceInProgress);
        }
        self.pending_sync.clear();
        self.sync_deadline = None;
        let was_empty = self.state == GroupState::Empty;
        self.state = GroupState::PreparingRebalance;
        if was_empty {
            self.new_member_added = false;
            let delay_ms = turn.config.initial_rebalance_delay_ms;
            let remaining_ms = (self.rebalance_timeout_ms() - delay_ms).max(0);
            let initial = Some(Initial { delay_ms, remaining_ms });
            self.join_timer = Some(JoinTimer { at: turn.after_ms(delay_ms), initial });
            if delay_ms <= 0 {
                self.complete_join(turn);
            }
        } else if self.have_all_joined() {
            self.complete_join(turn);
        } else {
            let at = turn.after_ms(self.rebalance_timeout_ms());
            self.join_timer = Some(JoinTimer { at, initial: None });
        }
    }

    /// Opens the barrier if everybody is there. An initial rebalance waits for its timer.
    pub(super) fn maybe_complete_join(&mut self, turn: &mut Turn<'_>) {
        let is_initial = self.join_timer.is_some_and(|timer| timer.initial.is_some());
        if self.state == GroupState::PreparingRebalance && !is_initial && self.have_all_joined() {
            self.complete_join(turn);
        }
    }

    /// The join timer has run out.
    pub(super) fn join_timer_fired(&mut self, turn: &mut Turn<'_>, timer: JoinTimer) {
        match timer.initial {
            Some(Initial { delay_ms, remaining_ms }) if self.new_member_added && remaining_ms > 0 => {
                self.new_member_added = false;
                let next_ms = turn.config.initial_rebalance_delay_ms.min(remaining_ms);
                let initial = Initial { delay_ms: next_ms, remaining_ms: (remaining_ms - delay_ms).max(0) };
                self.join_timer = Some(JoinTimer { at: turn.after_ms(next_ms), initial: Some(initial) });
            }
            _ => self.complete_join(turn),
        }
    }

    /// The next generation begins with those who have come. Static members stay until their session ends.
    fn complete_join(&mut self, turn: &mut Turn<'_>) {
        self.join_timer = None;
        let has_gone = |member: &Member| member.joining.is_none() && member.instance.is_none();
        let gone: Vec<String> =
            self.members.iter().filter(|(_, member)| has_gone(member)).map(|(id, _)| id.clone()).collect();
        for member_id in gone {
            self.remove(turn, &member_id, ErrorCode::UnknownMemberId);
        }
        if !self.members.is_empty() && !self.elect_joined_leader() {
            // Only static members are left, and none has come: somebody must assign.
            let at = turn.after_ms(self.rebalance_timeout_ms().max(1));
            self.join_timer = Some(JoinTimer { at, initial: None });
            return;
        }
        self.generation = self.generation.saturating_add(1);
        self.pending_sync.clear();
        if self.members.is_empty() {
            self.state = GroupState::Empty;
            self.protocol = None;
            self.leader = None;
            turn.write(empty_record(self, turn), Then::Emptied);
            return;
        }
        self.protocol = self.voted_protocol();
        self.state = GroupState::CompletingRebalance;
        self.pending_sync = self.members.keys().cloned().collect();
        self.sync_deadline = Some(turn.after_ms(self.rebalance_timeout_ms()));
        self.answer_joins(turn);
    }

    /// It could not be written down that nobody is left. Until it is, a start would find the members of old.
    pub(super) fn empty_again(&mut self, turn: &Turn<'_>, retry_ms: i32) {
        self.state = GroupState::PreparingRebalance;
        self.join_timer = Some(JoinTimer { at: turn.after_ms(retry_ms), initial: None });
    }

    fn answer_joins(&mut self, turn: &mut Turn<'_>) {
        let answered: Vec<(String, Waiter)> = self
            .members
            .iter_mut()
            .filter_map(|(member_id, member)| {
                member.is_new = false;
                member.session_deadline = after(turn.now, member.session_timeout_ms);
                Some((member_id.clone(), member.joining.take()?))
            })
            .collect();
        for (member_id, waiter) in answered {
            let reply = self.join_reply(&member_id, self.members_for(&member_id));
            turn.answer(waiter, MemberReply::Join(reply));
        }
    }

    /// The leader stays if it has come; else the first who has leads.
    fn elect_joined_leader(&mut self) -> bool {
        let has_come =
            |leader: &String| self.members.get(leader).is_some_and(|member| member.joining.is_some());
        if !self.leader.as_ref().is_some_and(has_come) {
            let first = self.members.iter().find(|(_, member)| member.joining.is_some());
            let Some((first, _)) = first else { return false };
            self.leader = Some(first.clone());
        }
        true
    }

    /// Nobody has an assignment; who waits for one is told why.
    pub(super) fn reset_assignment(&mut self, turn: &mut Turn<'_>, error: ErrorCode) {
        for member in self.members.values_mut() {
            member.assignment.clear();
            if let Some(waiter) = member.syncing.take() {
                member.session_deadline = after(turn.now, member.session_timeout_ms);
                turn.refuse_sync(waiter, error);
            }
        }
    }
}
