//! ListPartitionReassignments 0: none, ever; there is one broker.

use leftoff_wire::messages::list_partition_reassignments::{Request, Response};

use super::{Asked, Closing};

pub(super) fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    Request::decode(asked.body, asked.version)?;
    Ok(Response { error_message: None, ..Response::default() }.encode(out, asked.version)?)
}
