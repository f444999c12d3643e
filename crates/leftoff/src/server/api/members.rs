//! JoinGroup 0 to 9, SyncGroup 0 to 5, Heartbeat 0 to 4, LeaveGroup 0 to 5: the classic protocol, decided in the engine
//! (`coordinator/classic`). Here words become values and values words.

use leftoff_engine::broker::{Reply, Request as Ask};
use leftoff_engine::coordinator::classic::{
    Heartbeat, JoinGroup, JoinReply, LeaveGroup, LeaveReply, Leaving, MemberReply, MemberRequest, Protocol,
    SyncGroup, SyncReply,
};
use leftoff_wire::messages::{ErrorCode, heartbeat, join_group, leave_group, sync_group};

use super::{Asked, Closing, error_of};
use crate::store::random_id;

/// From this version on a member gets its id before it joins (KIP-394).
const KNOWN_MEMBER_ID_FROM: i16 = 4;
/// From this version on a leader may be told to leave the assignment as it is (KIP-814).
const SKIP_ASSIGNMENT_FROM: i16 = 9;
/// From this version on several members leave at once.
const BATCH_LEAVE_FROM: i16 = 3;

async fn ask(asked: &Asked<'_>, request: MemberRequest) -> Result<Result<MemberReply, ErrorCode>, Closing> {
    Ok(match asked.server.ask(Ask::Member(request)).await? {
        Reply::Member(reply) => Ok(reply),
        Reply::Refused(refusal) => Err(error_of(&refusal)),
        other => unreachable!("a member is answered as one, not with {other:?}"),
    })
}

fn text(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

pub(super) async fn join(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    use join_group::{JoinGroupResponseMember, Request, Response};
    let request = Request::decode(asked.body, asked.version)?;
    let protocols = request.protocols.iter();
    let protocols = protocols
        .map(|one| Protocol { name: one.name.to_owned(), metadata: one.metadata.to_vec() })
        .collect();
    let rebalance_timeout_ms =
        if asked.version == 0 { request.session_timeout_ms } else { request.rebalance_timeout_ms };
    let join = JoinGroup {
        group: request.group_id.to_owned(),
        member_id: request.member_id.to_owned(),
        group_instance_id: text(request.group_instance_id),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms,
        protocol_type: request.protocol_type.to_owned(),
        protocols,
        client: asked.client(),
        fresh_id: random_id(),
        requires_known_member_id: asked.version >= KNOWN_MEMBER_ID_FROM,
        can_skip_assignment: asked.version >= SKIP_ASSIGNMENT_FROM,
    };
    let reply = match ask(asked, MemberRequest::Join(join)).await? {
        Ok(MemberReply::Join(reply)) => reply,
        Ok(other) => unreachable!("a join is answered as one, not with {other:?}"),
        Err(error) => {
            let response = Response { error_code: error.code(), ..Response::default() };
            return Ok(response.encode(out, asked.version)?);
        }
    };
    let JoinReply { error, generation, protocol_type, protocol, leader, skip_assignment, member_id, members } =
        &reply;
    let member = |member: &'_ leftoff_engine::coordinator::classic::JoinedMember| {
        (member.member_id.clone(), member.group_instance_id.clone(), member.metadata.clone())
    };
    let members: Vec<_> = members.iter().map(member).collect();
    let may_be_null = asked.version >= 7;
    let response = Response {
        throttle_time_ms: 0,
        error_code: error.code(),
        generation_id: *generation,
        protocol_type: if may_be_null { protocol_type.as_deref() } else { None },
        protocol_name: if may_be_null {
            protocol.as_deref()
        } else {
            Some(protocol.as_deref().unwrap_or_default())
        },
        leader,
        skip_assignment: *skip_assignment,
        member_id,
        members: members
            .iter()
            .map(|(member_id, instance, metadata)| JoinGroupResponseMember {
                member_id,
                group_instance_id: if asked.version >= 5 { instance.as_deref() } else { None },
                metadata,
            })
            .collect(),
    };
    Ok(response.encode(out, asked.version)?)
}

pub(super) async fn sync(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    use sync_group::{Request, Response};
    let request = Request::decode(asked.body, asked.version)?;
    let assignments = request.assignments.iter();
    let sync = SyncGroup {
        group: request.group_id.to_owned(),
        generation: request.generation_id,
        member_id: request.member_id.to_owned(),
        group_instance_id: text(request.group_instance_id),
        protocol_type: text(request.protocol_type),
        protocol: text(request.protocol_name),
        assignments: assignments.map(|one| (one.member_id.to_owned(), one.assignment.to_vec())).collect(),
    };
    let reply = match ask(asked, MemberRequest::Sync(sync)).await? {
        Ok(MemberReply::Sync(reply)) => reply,
        Ok(other) => unreachable!("a sync is answered as one, not with {other:?}"),
        Err(error) => {
            let response = Response { error_code: error.code(), ..Response::default() };
            return Ok(response.encode(out, asked.version)?);
        }
    };
    let SyncReply { error, protocol_type, protocol, assignment } = &reply;
    let says_protocol = asked.version >= 5;
    let response = Response {
        throttle_time_ms: 0,
        error_code: error.code(),
        protocol_type: protocol_type.as_deref().filter(|_| says_protocol),
        protocol_name: protocol.as_deref().filter(|_| says_protocol),
        assignment,
    };
    Ok(response.encode(out, asked.version)?)
}

pub(super) async fn heartbeat(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    use heartbeat::{Request, Response};
    let request = Request::decode(asked.body, asked.version)?;
    let heartbeat = Heartbeat {
        group: request.group_id.to_owned(),
        generation: request.generation_id,
        member_id: request.member_id.to_owned(),
        group_instance_id: text(request.group_instance_id),
    };
    let error_code = match ask(asked, MemberRequest::Heartbeat(heartbeat)).await? {
        Ok(MemberReply::Heartbeat(error)) => error.code(),
        Ok(other) => unreachable!("a heartbeat is answered as one, not with {other:?}"),
        Err(error) => error.code(),
    };
    Ok(Response { error_code, ..Response::default() }.encode(out, asked.version)?)
}

pub(super) async fn leave(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    use leave_group::{MemberResponse, Request, Response};
    let request = Request::decode(asked.body, asked.version)?;
    let is_batch = asked.version >= BATCH_LEAVE_FROM;
    let members = if is_batch {
        let leaving = |one: &leave_group::MemberIdentity<'_>| Leaving {
            member_id: one.member_id.to_owned(),
            group_instance_id: text(one.group_instance_id),
        };
        request.members.iter().map(leaving).collect()
    } else {
        vec![Leaving { member_id: request.member_id.to_owned(), group_instance_id: None }]
    };
    let leave = LeaveGroup { group: request.group_id.to_owned(), members };
    let reply = match ask(asked, MemberRequest::Leave(leave)).await? {
        Ok(MemberReply::Leave(reply)) => reply,
        Ok(other) => unreachable!("a leave is answered as one, not with {other:?}"),
        Err(error) => {
            let response = Response { error_code: error.code(), ..Response::default() };
            return Ok(response.encode(out, asked.version)?);
        }
    };
    let LeaveReply { error, members } = &reply;
    let of_one = members.first().map_or(0, |(_, error)| error.code());
    let response = Response {
        throttle_time_ms: 0,
        error_code: if is_batch || error.code() != 0 { error.code() } else { of_one },
        members: if is_batch {
            let member = |(leaving, error): &'_ (Leaving, _)| {
                let _: &leftoff_engine::coordinator::classic::ErrorCode = error;
                (leaving.clone(), error.code())
            };
            let told: Vec<(Leaving, i16)> = members.iter().map(member).collect();
            return encode_leave(error.code(), &told, asked.version, out);
        } else {
            Vec::<MemberResponse<'_>>::new()
        },
    };
    Ok(response.encode(out, asked.version)?)
}

fn encode_leave(
    error_code: i16,
    told: &[(Leaving, i16)],
    version: i16,
    out: &mut Vec<u8>,
) -> Result<(), Closing> {
    let members = told
        .iter()
        .map(|(leaving, error_code)| leave_group::MemberResponse {
            member_id: &leaving.member_id,
            group_instance_id: leaving.group_instance_id.as_deref(),
            error_code: *error_code,
        })
        .collect();
    let response = leave_group::Response { throttle_time_ms: 0, error_code, members };
    Ok(response.encode(out, version)?)
}
