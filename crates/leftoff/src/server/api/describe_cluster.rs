//! DescribeCluster 0 to 2: the one broker, which is the controller, too. Asked for controllers (from version 1 on) it is refused
//! with error 114, as Kafka's brokers do, and for anything else with 115. No broker is ever fenced.

use leftoff_wire::messages::ErrorCode;
use leftoff_wire::messages::describe_cluster::{DescribeClusterBroker, Request, Response};

use super::authorized::{self, NOT_ASKED, if_asked};
use super::{Asked, Closing};

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub(super) fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    if asked.version >= 1 && request.endpoint_type != BROKERS {
        let text = format!("endpoint type {}: there are only brokers here (1)", request.endpoint_type);
        let error = match request.endpoint_type {
            CONTROLLERS => ErrorCode::MismatchedEndpointType,
            _ => ErrorCode::UnsupportedEndpointType,
        };
        let response = Response {
            error_code: error.code(),
            error_message: Some(&text),
            endpoint_type: BROKERS,
            cluster_authorized_operations: NOT_ASKED,
            ..Response::default()
        };
        return Ok(response.encode(out, asked.version)?);
    }
    let cluster_id = asked.server.store.with_state(|state| state.cluster_id().to_string());
    let (node_id, at) = (asked.server.settings.node_id, &asked.peer.advertised);
    let broker = DescribeClusterBroker {
        broker_id: node_id,
        host: &at.host,
        port: i32::from(at.port),
        rack: None,
        is_fenced: false,
    };
    let response = Response {
        error_message: None,
        endpoint_type: BROKERS,
        cluster_id: &cluster_id,
        controller_id: node_id,
        brokers: vec![broker],
        cluster_authorized_operations: if_asked(
            request.include_cluster_authorized_operations,
            authorized::CLUSTER,
        ),
        ..Response::default()
    };
    Ok(response.encode(out, asked.version)?)
}
