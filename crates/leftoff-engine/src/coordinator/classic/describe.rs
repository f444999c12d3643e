//! DescribeGroups (versions 0 to 6), ListGroups (0 to 5) and DeleteGroups (0 to 2).

use std::collections::BTreeSet;

use super::asks::{DescribedGroup, DescribedMember, ListGroups, ListedGroup};
use super::live::{GroupState, LiveGroup, Member};
use super::{Classic, ErrorCode};
use crate::coordinator::{Coordinator, Group, GroupError, Outcome, Who};

impl Classic {
    /// A group as it is now. One that is not there is dead.
    pub fn describe(&self, lasting: &Coordinator, name: &str) -> DescribedGroup {
        let known = lasting.group(name);
        let state = self.state_of(lasting, name);
        let mut described = DescribedGroup {
            error: ErrorCode::None,
            group: name.to_owned(),
            state,
            protocol_type: self.protocol_type_of(known, name),
            protocol: String::new(),
            members: Vec::new(),
        };
        match self.groups.get(name) {
            Some(live) => {
                described.protocol =
                    live.protocol.clone().filter(|_| state == GroupState::Stable).unwrap_or_default();
                described.members =
                    live.members.iter().map(|(id, member)| described_member(live, id, member)).collect();
            }
            None if state == GroupState::Dead => described.error = ErrorCode::GroupIdNotFound,
            None if state == GroupState::Stable => describe_embedded(&mut described, known),
            None => {}
        }
        described
    }

    /// The groups that pass the filters, sorted by name.
    pub fn list(&self, lasting: &Coordinator, filter: &ListGroups) -> Vec<ListedGroup> {
        let names: BTreeSet<&str> =
            lasting.groups().map(Group::name).chain(self.groups.keys().map(String::as_str)).collect();
        let passes = |filter: &[String], word: &str| {
            filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(word))
        };
        if !passes(&filter.types, ListedGroup::TYPE) {
            return Vec::new();
        }
        names
            .into_iter()
            .map(|name| ListedGroup {
                group: name.to_owned(),
                protocol_type: self.protocol_type_of(lasting.group(name), name),
                state: self.state_of(lasting, name),
            })
            .filter(|group| passes(&filter.states, group.state.as_str()))
            .collect()
    }

    /// Deletes a group: only one without members.
    ///
    /// # Errors
    /// [`ErrorCode::NonEmptyGroup`] and [`ErrorCode::GroupIdNotFound`].
    pub fn delete(&self, lasting: &Coordinator, name: &str, who: &Who) -> Result<Outcome<()>, ErrorCode> {
        match self.state_of(lasting, name) {
            GroupState::Dead => return Err(ErrorCode::GroupIdNotFound),
            GroupState::Empty => {}
            _ => return Err(ErrorCode::NonEmptyGroup),
        }
        match lasting.delete_group(name, who, None) {
            Ok(outcome) => Ok(Outcome { reply: (), records: outcome.records }),
            // Only ids that were given out made it a group.
            Err(GroupError::UnknownGroup { .. }) => Ok(Outcome { reply: (), records: Vec::new() }),
            Err(GroupError::MemberPresent { .. }) => Err(ErrorCode::NonEmptyGroup),
            Err(_) => Err(ErrorCode::InvalidGroupId),
        }
    }

    /// Forgets what memory knows of a group that was deleted.
    pub fn deleted(&mut self, name: &str) {
        let Some(live) = self.groups.remove(name) else { return };
        self.pending_count -= live.counted_pending;
        if let Some(at) = live.indexed {
            self.due.remove(&(at, name.to_owned()));
        }
    }

    /// Whether the group's embedded holder is one of this process.
    pub fn is_held_embedded(&self, name: &str) -> bool {
        self.embedded.contains(name)
    }

    fn state_of(&self, lasting: &Coordinator, name: &str) -> GroupState {
        match self.groups.get(name) {
            Some(live) => live.state,
            None if self.embedded.contains(name) => GroupState::Stable,
            None if lasting.group(name).is_some() => GroupState::Empty,
            None => GroupState::Dead,
        }
    }

    fn protocol_type_of(&self, known: Option<&Group>, name: &str) -> String {
        let lasting = || Some(known?.metadata_value()?.protocol_type.clone());
        let live = self.groups.get(name).and_then(|live| live.protocol_type.clone());
        live.or_else(lasting).unwrap_or_default()
    }
}

/// What a member says and has been given is told only while it holds.
fn described_member(group: &LiveGroup, member_id: &str, member: &Member) -> DescribedMember {
    let is_stable = group.state == GroupState::Stable;
    let protocol = group.protocol.as_deref().filter(|_| is_stable);
    DescribedMember {
        member_id: member_id.to_owned(),
        group_instance_id: member.instance.clone(),
        client_id: member.client.client_id.clone(),
        client_host: member.client.host.clone(),
        metadata: protocol.map(|protocol| member.metadata(protocol).to_vec()).unwrap_or_default(),
        assignment: if is_stable { member.assignment.clone() } else { Vec::new() },
    }
}

fn describe_embedded(described: &mut DescribedGroup, known: Option<&Group>) {
    let Some(value) = known.and_then(Group::metadata_value) else { return };
    described.protocol = value.protocol.clone().unwrap_or_default();
    let member = |member: &leftoff_wire::consumer_offsets::MemberMetadata| DescribedMember {
        member_id: member.member_id.clone(),
        group_instance_id: member.group_instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        metadata: member.subscription.clone(),
        assignment: member.assignment.clone(),
    };
    described.members = value.members.iter().map(member).collect();
}
