//! The HTTP side of a process: one listener, with limits, that whoever has something to show joins.
//!
//! To join: make an axum [`Router`] with your routes and merge it into [`Routes::pages`] before [`HttpServer::run`] (for a process
//! without a runtime: [`serve_in_thread`]). What holds for every route is done here, before it is called:
//!
//! - the name in `Host` is an address, `localhost`, or one that was given: no page of a stranger reads ours under a name of its own
//!   that it points at us (DNS rebinding); a request that a page of another origin makes is refused;
//! - whatever is not `GET` or `HEAD` needs the token ([`HttpServer::token`]) as `Authorization: Bearer TOKEN`, so that only who may
//!   read it in the data directory, or was given it by a page of ours, changes anything;
//! - the body is here whole before your handler runs, and bounded; heads, connections, and the time that each may take are bounded, too.
//!
//! Handlers run on the runtime's threads: whatever reads files or waits goes through [`blocking`].

mod connection;
mod guard;
mod probes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use guard::Guard;
pub use probes::{blocking, probes};

/// What a listener lets in.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// Connections at once; others are closed without an answer.
    pub connections: usize,
    /// The most bytes of a request's head.
    pub head_bytes: usize,
    /// How long a head may take, and a connection be silent before it.
    pub head_patience: Duration,
    /// The most bytes of a request's body.
    pub body_bytes: usize,
    /// How long a body may take.
    pub body_patience: Duration,
    /// How long a client may take none of the answer.
    pub write_patience: Duration,
    /// How long a stop waits for answers that are under way.
    pub drain: Duration,
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits {
            connections: 64,
            head_bytes: 16 * 1024,
            head_patience: Duration::from_secs(10),
            body_bytes: 1024 * 1024,
            body_patience: Duration::from_secs(10),
            write_patience: Duration::from_secs(10),
            drain: Duration::from_secs(1),
        }
    }
}

/// What a listener answers.
#[derive(Debug, Default)]
pub struct Routes {
    /// For machines that watch: they may come by any name where the listener is not on the loopback.
    pub probes: Router,
    /// All else.
    pub pages: Router,
}

/// A listener that is bound.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    guard: Guard,
    limits: HttpLimits,
}

impl HttpServer {
    /// Binds `HOST:PORT`. `names` are those that it may be called by, beside addresses and `localhost`.
    ///
    /// # Errors
    /// When the address is taken, or is none of ours.
    pub async fn bind(bind: &str, names: Vec<String>, limits: HttpLimits) -> std::io::Result<HttpServer> {
        HttpServer::over(TcpListener::bind(bind).await?, names, limits)
    }

    fn over(listener: TcpListener, names: Vec<String>, limits: HttpLimits) -> std::io::Result<HttpServer> {
        let guard = Guard::new(names, listener.local_addr()?.ip().is_loopback());
        Ok(HttpServer { listener, guard, limits })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the operating system does not say.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What a request that changes something must show; made anew at each start.
    pub fn token(&self) -> &str {
        self.guard.token()
    }

    /// Answers until `stop` is ready.
    pub async fn run(self, routes: Routes, stop: impl Future<Output = ()>) {
        let HttpServer { listener, guard, limits } = self;
        let router = guard.around(routes, &limits).fallback(nothing_here);
        let room = Arc::new(Semaphore::new(limits.connections));
        let stopping = tokio::sync::watch::channel(false);
        let mut connections = JoinSet::new();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_ended) = connections.join_next(), if !connections.is_empty() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let Ok(place) = room.clone().try_acquire_owned() else { continue };
                        let (router, limits, stopped) = (router.clone(), limits.clone(), stopping.1.clone());
                        connections.spawn(async move {
                            connection::serve(stream, router, &limits, stopped).await;
                            drop(place);
                        });
                    }
                    // Out of descriptors, most likely: some will come back.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        }
        let _nobody_left = stopping.0.send(true);
        let drained = async { while connections.join_next().await.is_some() {} };
        let _cut_off = tokio::time::timeout(limits.drain, drained).await;
        connections.shutdown().await;
    }
}

/// Answers in a thread of its own until the process ends; where. For a process that has no runtime.
///
/// # Errors
/// When no thread can be started.
pub fn serve_in_thread(
    listener: std::net::TcpListener,
    routes: Routes,
    limits: HttpLimits,
) -> std::io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(4)
        .thread_name("http-answer")
        .build()?;
    let server = {
        let _inside = runtime.enter();
        HttpServer::over(TcpListener::from_std(listener)?, Vec::new(), limits)?
    };
    let serve = move || runtime.block_on(server.run(routes, std::future::pending()));
    std::thread::Builder::new().name("http".to_owned()).spawn(serve)?;
    Ok(address)
}

async fn nothing_here() -> (StatusCode, &'static str) {
    (
        StatusCode::NOT_FOUND,
        "there is nothing here; /healthz and /metrics are, and docs/serve.md has the rest\n",
    )
}

#[cfg(test)]
mod tests;
