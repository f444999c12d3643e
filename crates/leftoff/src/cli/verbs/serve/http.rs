//! The HTTP side of `serve`: where it is, who is told of it, and what it answers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use leftoff::http::{HttpLimits, HttpServer, Routes, probes};
use leftoff::server::Stats;
use leftoff::store::{ServerAt, Store, StoreError, TokenFile};
use leftoff_engine::broker::{Reply, Request};

use super::numbers;
use crate::cli::args::serve::{ServeArgs, UiListen};
use crate::cli::failure::Failure;
use crate::cli::session::from_store;

/// How long a look whether storage answers may take.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// The listener, bound.
pub struct Http {
    /// Where it listens.
    pub address: SocketAddr,
    /// What others on this machine are told to connect to: `127.0.0.1:8080`.
    pub told: String,
    server: HttpServer,
}

/// Binds it, unless it is off.
///
/// # Errors
/// Exit 3 if the address is taken.
pub async fn bind(args: &ServeArgs) -> Result<Option<Http>, Failure> {
    let UiListen::At(at) = &args.ui_listen else { return Ok(None) };
    let failed = |error| {
        Failure::cannot_reach(format!("cannot listen at {at}: {error}"))
            .hint("another address is named with --ui-listen HOST:PORT; port 0 takes a free one, off none")
    };
    let bind = at.to_string();
    let server =
        HttpServer::bind(&bind, args.ui_host.clone(), HttpLimits::default()).await.map_err(failed)?;
    let address = server.address().map_err(failed)?;
    Ok(Some(Http { address, told: reachable(address).to_string(), server }))
}

/// Says in the lock file where the server is, for verbs that find the directory taken, and beside it what they must show to
/// change something over HTTP; that goes when the answer is dropped.
///
/// # Errors
/// Exit 5 if it cannot be written.
pub fn say_where(
    store: &Store,
    listeners: &[SocketAddr],
    http: Option<&Http>,
) -> Result<Option<TokenFile>, Failure> {
    let failed = |error: StoreError| from_store(store.root(), error);
    let token = http.map(|http| TokenFile::write(store.root(), http.server.token()));
    let token = token.transpose().map_err(|error| failed(error.into()))?;
    if let Some(first) = listeners.first() {
        let at = ServerAt { kafka: reachable(*first).to_string(), http: http.map(|http| http.told.clone()) };
        store.say_in_lock(&at.to_text()).map_err(failed)?;
    }
    Ok(token)
}

impl Http {
    /// Answers until `stop` is ready.
    pub async fn run(self, store: Store, stats: Arc<Stats>, stop: impl Future<Output = ()>) {
        let routes = Routes {
            probes: probes(
                {
                    let store = store.clone();
                    move || is_ready(&store)
                },
                move || numbers::text(&stats, &store),
            ),
            ..Routes::default()
        };
        self.server.run(routes, stop).await;
    }
}

/// Whether storage answers: a look at the topics waits for all that was written before it.
fn is_ready(store: &Store) -> Result<(), String> {
    let (answered, answer) = mpsc::sync_channel(1);
    store.submit_then(Request::Topics, move |reply| {
        let _nobody_waits = answered.send(reply);
    });
    match answer.recv_timeout(READY_WITHIN) {
        Ok(Reply::Refused(refusal)) => Err(refusal.to_string()),
        Ok(_) => Ok(()),
        Err(_) => Err(format!("storage has not answered within {READY_WITHIN:?}")),
    }
}

/// An address that can be connected to on this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
