//! The record that tells of a group: Kafka's `GroupMetadataValue`.

use leftoff_wire::consumer_offsets::{GroupMetadataValue, MemberMetadata};

use super::live::{LiveGroup, Member};
use super::turn::Turn;
use crate::coordinator::outcome::group_record;
use crate::coordinator::story::Story;
use crate::coordinator::{Group, Record, Who, Why};

/// The group without members, in its newest generation.
pub(super) fn empty_record(group: &LiveGroup, turn: &Turn<'_>) -> Record {
    record(group, turn, (Why::Leave, &Who::unknown()), Vec::new())
}

/// The group with its members and what each has been assigned. The leader wrote it.
pub(super) fn stable_record<'a>(
    group: &'a LiveGroup,
    turn: &Turn<'_>,
    assignment: impl Fn(&'a str, &'a Member) -> &'a [u8],
) -> Record {
    let protocol = group.protocol.as_deref().unwrap_or_default();
    let members = group.members.iter().map(|(member_id, member)| MemberMetadata {
        member_id: member_id.clone(),
        group_instance_id: member.instance.clone(),
        client_id: member.client.client_id.clone(),
        client_host: member.client.host.clone(),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        session_timeout_ms: member.session_timeout_ms,
        subscription: member.metadata(protocol).to_vec(),
        assignment: assignment(member_id, member).to_vec(),
    });
    let leader = group.leader.as_deref().unwrap_or_default();
    let who = group.members.get(leader).map(|member| member.client.who(leader)).unwrap_or_default();
    record(group, turn, (Why::Join, &who), members.collect())
}

fn record(group: &LiveGroup, turn: &Turn<'_>, story: (Why, &Who), members: Vec<MemberMetadata>) -> Record {
    let value = GroupMetadataValue {
        protocol_type: group.protocol_type.clone().unwrap_or_default(),
        generation: group.generation,
        protocol: group.protocol.clone(),
        leader: group.leader.clone(),
        current_state_timestamp_ms: turn.now.as_ms(),
        members,
    };
    let prev = turn.lasting.and_then(Group::metadata_slot).map(|slot| slot.at);
    let story = Story { generation: Some(group.generation), prev, ..Story::new(story.0, story.1) };
    group_record(turn.name, Some(&value), &story)
}
