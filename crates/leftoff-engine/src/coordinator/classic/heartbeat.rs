//! Heartbeat, versions 0 to 4. It changes nothing that lasts and never waits for the disk.

use super::io::Heartbeat;
use super::live::GroupState;
use super::{Classic, ErrorCode};
use crate::types::Timestamp;

impl Classic {
    pub(super) fn heartbeat(&mut self, now: Timestamp, request: &Heartbeat) -> ErrorCode {
        match self.heard(now, request) {
            Ok(GroupState::PreparingRebalance) => ErrorCode::RebalanceInProgress,
            // Clients begin with heartbeats as soon as they have joined.
            Ok(GroupState::CompletingRebalance | GroupState::Stable) => ErrorCode::None,
            Ok(GroupState::Empty | GroupState::Dead) => ErrorCode::UnknownMemberId,
            Err(error) => error,
        }
    }

    fn heard(&mut self, now: Timestamp, request: &Heartbeat) -> Result<GroupState, ErrorCode> {
        super::check_group_name(&request.group)?;
        let group = self.groups.get_mut(&request.group).ok_or(ErrorCode::UnknownMemberId)?;
        group.check_member(&request.member_id, request.group_instance_id.as_deref())?;
        if request.generation != group.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        group.touch(now, &request.member_id);
        Ok(group.state)
    }
}
