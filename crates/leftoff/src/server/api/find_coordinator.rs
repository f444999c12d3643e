//! FindCoordinator 0 to 5: this broker, for groups. Transactions are not served.

use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::find_coordinator::{Coordinator, Request, Response};

use super::{Asked, Closing};

const GROUP: i8 = 0;

pub(super) fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    let at = &asked.peer.advertised;
    let is_served = request.key_type == GROUP;
    let error = if is_served { ErrorCode::None } else { ErrorCode::CoordinatorNotAvailable };
    let message = (!is_served).then_some("transactions are not served yet");
    let (node_id, host, port) = if is_served {
        (asked.server.settings.node_id, at.host.as_str(), i32::from(at.port))
    } else {
        (-1, "", -1)
    };
    let response = if asked.version < 4 {
        Response {
            error_code: error.code(),
            error_message: message,
            node_id,
            host,
            port,
            ..Response::default()
        }
    } else {
        let coordinator = |key: &&'_ str| (*key).to_owned();
        let keys: Vec<String> = request.coordinator_keys.iter().map(coordinator).collect();
        let coordinators = keys
            .iter()
            .map(|key| Coordinator {
                key,
                node_id,
                host,
                port,
                error_code: error.code(),
                error_message: message,
            })
            .collect();
        return Ok(Response { coordinators, ..Response::default() }.encode(out, asked.version)?);
    };
    Ok(response.encode(out, asked.version)?)
}
