//! DescribeGroups 0 to 6, ListGroups 0 to 5, DeleteGroups 0 to 2.

use leftoff_engine::coordinator::classic::{GroupReply, GroupRequest, ListGroups, ListedGroup as Listed};
use leftoff_wire::messages::{delete_groups, describe_groups, list_groups};

use super::authorized::{self, if_asked};
use super::offsets::ask;
use super::{Asked, Closing};

/// From this version on a group that is not there is an error; before, it is Dead.
const NOT_FOUND_FROM: i16 = 6;

pub(super) async fn describe(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    use describe_groups::{DescribedGroup, DescribedGroupMember, Request, Response};
    let request = Request::decode(asked.body, asked.version)?;
    let names = request.groups.iter().map(|name| (*name).to_owned()).collect();
    let described = match ask(asked, GroupRequest::Describe(names)).await? {
        Ok(GroupReply::Describe(groups)) => groups,
        Ok(other) => unreachable!("a description is answered as one, not with {other:?}"),
        Err(error) => {
            let failed = |name: &&'_ str| (*name).to_owned();
            let names: Vec<String> = request.groups.iter().map(failed).collect();
            let groups = names
                .iter()
                .map(|name| DescribedGroup {
                    error_code: error.code(),
                    group_id: name,
                    ..DescribedGroup::default()
                })
                .collect();
            return Ok(Response { throttle_time_ms: 0, groups }.encode(out, asked.version)?);
        }
    };
    let groups = described
        .iter()
        .map(|group| DescribedGroup {
            error_code: if asked.version >= NOT_FOUND_FROM { group.error.code() } else { 0 },
            error_message: None,
            group_id: &group.group,
            group_state: group.state.as_str(),
            protocol_type: &group.protocol_type,
            protocol_data: &group.protocol,
            members: group
                .members
                .iter()
                .map(|member| DescribedGroupMember {
                    member_id: &member.member_id,
                    group_instance_id: if asked.version >= 4 {
                        member.group_instance_id.as_deref()
                    } else {
                        None
                    },
                    client_id: &member.client_id,
                    client_host: &member.client_host,
                    member_metadata: &member.metadata,
                    member_assignment: &member.assignment,
                })
                .collect(),
            authorized_operations: if_asked(request.include_authorized_operations, authorized::GROUP),
        })
        .collect();
    Ok(Response { throttle_time_ms: 0, groups }.encode(out, asked.version)?)
}

pub(super) async fn list(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    use list_groups::{ListedGroup, Request, Response};
    let request = Request::decode(asked.body, asked.version)?;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let wanted = ListGroups { states: words(&request.states_filter), types: words(&request.types_filter) };
    let (groups, error_code) = match ask(asked, GroupRequest::List(wanted)).await? {
        Ok(GroupReply::List(groups)) => (groups, 0),
        Ok(other) => unreachable!("a list is answered as one, not with {other:?}"),
        Err(error) => (Vec::new(), error.code()),
    };
    let groups = groups
        .iter()
        .map(|group| ListedGroup {
            group_id: &group.group,
            protocol_type: &group.protocol_type,
            group_state: group.state.as_str(),
            group_type: Listed::TYPE,
        })
        .collect();
    Ok(Response { throttle_time_ms: 0, error_code, groups }.encode(out, asked.version)?)
}

pub(super) async fn delete(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    use delete_groups::{DeletableGroupResult, Request, Response};
    let request = Request::decode(asked.body, asked.version)?;
    let groups: Vec<String> = request.groups_names.iter().map(|name| (*name).to_owned()).collect();
    let count = groups.len();
    let codes: Vec<i16> = match ask(asked, GroupRequest::Delete { groups, who: asked.who() }).await? {
        Ok(GroupReply::Delete(errors)) => errors.into_iter().map(|error| error.code()).collect(),
        Ok(other) => unreachable!("a deletion is answered as one, not with {other:?}"),
        Err(error) => vec![error.code(); count],
    };
    let results = request
        .groups_names
        .iter()
        .zip(codes)
        .map(|(group_id, error_code)| DeletableGroupResult { group_id, error_code })
        .collect();
    Ok(Response { throttle_time_ms: 0, results }.encode(out, asked.version)?)
}
