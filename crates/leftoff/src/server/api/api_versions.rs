//! ApiVersions 0 to 4. What is served is what is told; Produce is told from version 0 on, which old librdkafka looks for before
//! it compresses (KAFKA-18659), and served from 3 on. An unknown version is answered in version 0 with error 35 (KIP-511).

use leftoff_wire::messages::api_versions::{ApiVersion, Request, Response};
use leftoff_wire::messages::{ApiKey, EncodeError, ErrorCode};

use super::{Asked, Closing, SERVED};

pub(super) fn answer(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), Closing> {
    let request = Request::decode(asked.body, asked.version)?;
    if asked.version >= 3 {
        let software = format!("{}/{}", request.client_software_name, request.client_software_version);
        // The first word counts.
        let _told_before = asked.peer.software.set(software);
    }
    Ok(Response { api_keys: versions(), ..Response::default() }.encode(out, asked.version)?)
}

pub(super) fn unknown_version(out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let error_code = ErrorCode::UnsupportedVersion.code();
    Response { error_code, api_keys: versions(), ..Response::default() }.encode(out, 0)
}

fn versions() -> Vec<ApiVersion> {
    let version = |api: ApiKey| {
        let (first, max_version) = api.versions();
        let min_version = if api == ApiKey::Produce { 0 } else { first };
        ApiVersion { api_key: api as i16, min_version, max_version }
    };
    SERVED.into_iter().map(version).collect()
}
