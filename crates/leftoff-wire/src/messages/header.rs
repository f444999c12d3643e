//! What stands before each request and each response.

use super::api::ApiKey;
use super::codec::{DecodeError, Decoder};
use crate::primitives::Writer;

/// Before a request. The key says which message follows; its form follows from key and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    /// Which API; maybe one that is not known here.
    pub api_key: i16,
    /// Which version of it.
    pub api_version: i16,
    /// Comes back with the response.
    pub correlation_id: i32,
    /// What the client calls itself.
    pub client_id: Option<&'a str>,
}

impl<'a> RequestHeader<'a> {
    /// Reads the header at the front of a frame (version 1, or 2 where the message is flexible), and gives the message's bytes.
    ///
    /// # Errors
    /// [`DecodeError`]. Of an API that is not known here only the fields that all headers have are read, and no bytes
    /// are given.
    pub fn decode(frame: &'a [u8]) -> Result<(RequestHeader<'a>, &'a [u8]), DecodeError> {
        let mut d = Decoder::new(frame, "RequestHeader", 1);
        d.at("request_api_key");
        let api_key = d.i16()?;
        d.at("request_api_version");
        let api_version = d.i16()?;
        d.at("correlation_id");
        let correlation_id = d.i32()?;
        d.at("client_id");
        // Never in the compact form, also where the header is flexible.
        let client_id = d.str(false, true)?;
        let header = RequestHeader { api_key, api_version, correlation_id, client_id };
        let flexible_from = ApiKey::of(api_key).and_then(ApiKey::flexible_from);
        if flexible_from.is_some_and(|from| api_version >= from) {
            d.tags(|_, _| Ok(false))?;
        }
        Ok((header, d.rest()))
    }

    /// Writes the header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.i16(self.api_key);
        writer.i16(self.api_version);
        writer.i32(self.correlation_id);
        writer.nullable_str(self.client_id);
        let flexible_from = ApiKey::of(self.api_key).and_then(ApiKey::flexible_from);
        if flexible_from.is_some_and(|from| self.api_version >= from) {
            writer.unsigned_varint(0);
        }
    }
}

/// Before a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHeader {
    /// That of the request.
    pub correlation_id: i32,
}

impl ResponseHeader {
    /// Reads the header at the front of a response's frame, and gives the message's bytes.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(frame: &[u8], api: ApiKey, version: i16) -> Result<(ResponseHeader, &[u8]), DecodeError> {
        let mut d = Decoder::new(frame, "ResponseHeader", version);
        d.at("correlation_id");
        let correlation_id = d.i32()?;
        if is_flexible(api, version) {
            d.tags(|_, _| Ok(false))?;
        }
        Ok((ResponseHeader { correlation_id }, d.rest()))
    }

    /// Writes the header.
    pub fn encode(&self, out: &mut Vec<u8>, api: ApiKey, version: i16) {
        let mut writer = Writer::new(out);
        writer.i32(self.correlation_id);
        if is_flexible(api, version) {
            writer.unsigned_varint(0);
        }
    }
}

/// That of ApiVersions never is: a client that asks does not know yet what the broker speaks (KIP-511).
fn is_flexible(api: ApiKey, version: i16) -> bool {
    api != ApiKey::ApiVersions && api.flexible_from().is_some_and(|from| version >= from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn headers_are_kafkas_bytes() {
        let header = |api_key, api_version| RequestHeader {
            api_key,
            api_version,
            correlation_id: 7,
            client_id: Some("c"),
        };
        for (api_key, version, expect) in [
            (3, 8, &b"\0\x03\0\x08\0\0\0\x07\0\x01c"[..]),
            (3, 9, b"\0\x03\0\x09\0\0\0\x07\0\x01c\0"),
            (18, 3, b"\0\x12\0\x03\0\0\0\x07\0\x01c\0"),
            (17, 1, b"\0\x11\0\x01\0\0\0\x07\0\x01c"),
        ] {
            let mut out = Vec::new();
            header(api_key, version).encode(&mut out);
            assert_eq!(out, expect, "{api_key} {version}");
            out.push(9);
            assert_eq!(RequestHeader::decode(&out).unwrap(), (header(api_key, version), &[9][..]));
        }
        for (api, version, expect) in [
            (ApiKey::Metadata, 8, &b"\0\0\0\x07"[..]),
            (ApiKey::Metadata, 9, b"\0\0\0\x07\0"),
            (ApiKey::ApiVersions, 3, b"\0\0\0\x07"),
        ] {
            let mut out = Vec::new();
            ResponseHeader { correlation_id: 7 }.encode(&mut out, api, version);
            assert_eq!(out, expect);
            assert_eq!(ResponseHeader::decode(&out, api, version).unwrap().0.correlation_id, 7);
        }
        let torn = RequestHeader::decode(b"\0\x03\0").unwrap_err().to_string();
        assert!(torn.starts_with("RequestHeader version 1, field request_api_version: at byte 2"), "{torn}");
    }
}
