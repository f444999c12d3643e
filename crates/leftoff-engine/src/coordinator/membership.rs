//! Who holds a group. The embedded runner is a group's only member; its directory lock proves that earlier ones are dead.

use leftoff_wire::consumer_offsets::{GroupMetadataValue, MemberMetadata};

use super::{
    Coordinator, Group, GroupError, Outcome, Ownership, Record, Who, Why, error::check_name,
    outcome::group_record, story::Story,
};
use crate::types::Timestamp;

/// Kafka's word for groups whose members speak the consumer protocol.
const PROTOCOL_TYPE: &str = "consumer";

/// The assignor's name in our group metadata: the one member has everything it reads.
const PROTOCOL: &str = "leftoff";

/// `ConsumerProtocolSubscription` version 0 without topics and user data. Kafka's dump tool parses it, so no bytes at all would not do.
const NO_SUBSCRIPTION: [u8; 10] = [0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];

/// `ConsumerProtocolAssignment` version 0 without partitions and user data: the same bytes.
const NO_ASSIGNMENT: [u8; 10] = NO_SUBSCRIPTION;

impl Coordinator {
    /// Takes the group for a member: a generation higher than any before begins, and every earlier hold ends.
    ///
    /// # Errors
    /// [`GroupError`] for a bad name or a missing member id.
    pub fn join(&self, now: Timestamp, group: &str, who: &Who) -> Result<Outcome<Ownership>, GroupError> {
        check_name("group", group)?;
        if !who.is_member() {
            return Err(GroupError::NoMemberId { group: group.to_owned() });
        }
        let known = self.known_group(group);
        let last = known.map_or(0, Group::generation);
        let generation = last
            .checked_add(1)
            .ok_or_else(|| GroupError::NoMoreGenerations { group: group.to_owned(), generation: last })?;
        let story = story(Why::Join, who, known, generation);
        let record = metadata_record(group, &story, now, generation, std::slice::from_ref(who));
        let reply = Ownership { member_id: who.member_id().to_owned(), generation };
        Ok(Outcome { reply, records: vec![record] })
    }

    /// Lets the group go. The generation stays, so that a late commit of this member is fenced.
    ///
    /// # Errors
    /// [`GroupError::FencedGeneration`] if the hold has ended already.
    pub fn leave(&self, now: Timestamp, group: &str, held: &Ownership) -> Result<Outcome<()>, GroupError> {
        check_name("group", group)?;
        let known = self.known_group(group);
        check_held(known, group, held)?;
        let member = known.and_then(|known| known.member(&held.member_id)).cloned().unwrap_or_default();
        let story = story(Why::Leave, &member, known, held.generation);
        let record = metadata_record(group, &story, now, held.generation, &[]);
        Ok(Outcome { reply: (), records: vec![record] })
    }
}

fn story(why: Why, who: &Who, known: Option<&Group>, generation: i32) -> Story {
    let prev = known.and_then(Group::metadata_slot).map(|slot| slot.at);
    Story { generation: Some(generation), prev, ..Story::new(why, who) }
}

/// Refuses a hold that is not the one on the group.
pub(super) fn check_held(group: Option<&Group>, name: &str, held: &Ownership) -> Result<(), GroupError> {
    if group.is_some_and(|group| group.is_held_by(held)) {
        return Ok(());
    }
    Err(GroupError::FencedGeneration {
        group: name.to_owned(),
        held: held.clone(),
        generation: group.map_or(0, Group::generation),
        owner: group.and_then(Group::owner).map(|owner| owner.member_id),
    })
}

/// Refuses if somebody holds the group.
pub(super) fn check_free(group: Option<&Group>, name: &str) -> Result<(), GroupError> {
    match group.and_then(Group::owner) {
        Some(owner) => Err(GroupError::MemberPresent { group: name.to_owned(), owner }),
        None => Ok(()),
    }
}

/// The record that says who holds a group, from `since` on.
fn metadata_record(name: &str, story: &Story, since: Timestamp, generation: i32, members: &[Who]) -> Record {
    let leader = members.first();
    let value = GroupMetadataValue {
        protocol_type: PROTOCOL_TYPE.to_owned(),
        generation,
        protocol: leader.map(|_| PROTOCOL.to_owned()),
        leader: leader.map(|leader| leader.member_id().to_owned()),
        current_state_timestamp_ms: since.as_ms(),
        members: members.iter().map(member_metadata).collect(),
    };
    group_record(name, Some(&value), story)
}

/// Whether a record tells of an embedded runner: nobody who comes over the wire has no session timeout.
pub(super) fn is_embedded(value: &GroupMetadataValue) -> bool {
    value.protocol.as_deref() == Some(PROTOCOL)
        && matches!(value.members.as_slice(), [member] if member.session_timeout_ms == 0)
}

fn member_metadata(member: &Who) -> MemberMetadata {
    MemberMetadata {
        member_id: member.member_id().to_owned(),
        group_instance_id: None,
        client_id: member.client_id().to_owned(),
        client_host: member.host().to_owned(),
        rebalance_timeout_ms: 0,
        session_timeout_ms: 0,
        subscription: NO_SUBSCRIPTION.to_vec(),
        assignment: NO_ASSIGNMENT.to_vec(),
    }
}
