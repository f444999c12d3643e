//! Who may ask what: the checks before every route.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use super::{HttpLimits, Routes};
use crate::store::random_id;

/// What a listener asks of those that come.
#[derive(Clone, Debug)]
pub struct Guard {
    names: Arc<[String]>,
    token: Arc<str>,
    is_loopback: bool,
}

/// A refusal: the status, and the words.
type Refused = (StatusCode, String);

#[derive(Clone)]
struct Checks {
    guard: Guard,
    any_name: bool,
    body_bytes: usize,
    body_patience: Duration,
}

impl Guard {
    /// With a fresh token.
    pub(super) fn new(names: Vec<String>, is_loopback: bool) -> Guard {
        Guard { names: names.into(), token: format!("{}{}", random_id(), random_id()).into(), is_loopback }
    }

    /// What a request that changes something must show.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The routes behind the checks.
    pub(super) fn around(&self, routes: Routes, limits: &HttpLimits) -> Router {
        let checked = |router: Router, any_name: bool| {
            let checks = Checks {
                guard: self.clone(),
                any_name,
                body_bytes: limits.body_bytes,
                body_patience: limits.body_patience,
            };
            router.layer(from_fn_with_state(checks, check))
        };
        // Where only this machine comes in, a strange name is a page that was lured here. Elsewhere the probes are open to
        // the network anyway, and those that watch use whatever name they have.
        checked(routes.probes, !self.is_loopback).merge(checked(routes.pages, false))
    }

    fn refuses(&self, method: &Method, headers: &HeaderMap, any_name: bool) -> Option<Refused> {
        let host = match headers.get(HOST).map(|host| host.to_str().ok().and_then(|host| host.parse().ok())) {
            Some(None) => return Some((StatusCode::BAD_REQUEST, "the header Host is none\n".to_owned())),
            Some(Some(host)) => Some(host),
            None => None,
        };
        if let Some(host) = host.as_ref().filter(|host| !any_name && !self.is_called(host)) {
            let words = format!("not served under the name {:?}; --ui-host names it\n", host.host());
            return Some((StatusCode::MISDIRECTED_REQUEST, words));
        }
        if headers.get(ORIGIN).is_some_and(|origin| !is_ours(origin.as_bytes(), host.as_ref())) {
            return Some((StatusCode::FORBIDDEN, "a page of another origin may not ask\n".to_owned()));
        }
        if ![Method::GET, Method::HEAD].contains(method) && !self.shows_token(headers) {
            let words =
                "this needs the token: `Authorization: Bearer TOKEN`; docs/serve.md says where it is\n";
            return Some((StatusCode::UNAUTHORIZED, words.to_owned()));
        }
        None
    }

    fn is_called(&self, host: &Authority) -> bool {
        let name = host.host();
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        bare.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    fn shows_token(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        // All bytes are compared, so that the time says nothing of how many were right.
        let pairs = shown.bytes().zip(self.token.bytes());
        shown.len() == self.token.len() && pairs.fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

fn is_ours(origin: &[u8], host: Option<&Authority>) -> bool {
    let Some(host) = host else { return false };
    origin.strip_prefix(b"http://").is_some_and(|at| at.eq_ignore_ascii_case(host.as_str().as_bytes()))
}

async fn check(State(checks): State<Checks>, request: Request, next: Next) -> Response {
    if let Some(refused) = checks.guard.refuses(request.method(), request.headers(), checks.any_name) {
        return refused.into_response();
    }
    let (head, body) = request.into_parts();
    let whole = tokio::time::timeout(checks.body_patience, to_bytes(body, checks.body_bytes)).await;
    match whole {
        Ok(Ok(body)) => next.run(Request::from_parts(head, Body::from(body))).await,
        Ok(Err(_)) => {
            let words = format!("the body cannot be read, or is larger than {} bytes\n", checks.body_bytes);
            (StatusCode::PAYLOAD_TOO_LARGE, words).into_response()
        }
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the body did not come\n").into_response(),
    }
}
