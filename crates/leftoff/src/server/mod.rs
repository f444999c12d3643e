//! `leftoff serve`: Kafka's protocol over a data directory.
//!
//! Connections are tasks (tokio); each cuts its requests out of the stream, decodes them and enters the broker for a moment,
//! behind the store's mutex. One thread does the syncs and keeps the time. What a request answers comes back when the sync
//! that covers it has ended ([`crate::store::Store::submit_then`]).

mod api;
mod ask;
mod broker_settings;
mod budget;
mod connection;
mod frames;
mod settings;
mod stats;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::store::Store;
use budget::Budget;
use connection::Peer;
pub use settings::{Advertised, Listener, ServerLimits, ServerSettings};
pub use stats::{Stats, StatsNow, TIME_CLASSES, Times};

/// What all connections share.
#[derive(Debug)]
struct Shared {
    store: Store,
    settings: ServerSettings,
    budget: Budget,
    /// Told after each round, when there may be something new to read.
    published: Arc<Notify>,
    /// Becomes true when the server is to stop.
    stop: watch::Receiver<bool>,
    stats: Arc<Stats>,
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    listeners: Vec<(TcpListener, Option<Advertised>)>,
    stop: watch::Sender<bool>,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It cannot listen.
    #[error("cannot listen at {bind}: {source}")]
    Listen {
        /// Where.
        bind: String,
        /// Why.
        source: std::io::Error,
    },
    /// The operating system failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// What happens in a server that an operator wants to know; nothing for a request that is answered.
#[derive(Clone, Debug)]
pub enum ServerEvent {
    /// A connection ended otherwise than by its client.
    Closed {
        /// Whose.
        peer: SocketAddr,
        /// Why.
        why: String,
    },
    /// A connection was not taken.
    Refused {
        /// Whose.
        peer: SocketAddr,
        /// Why.
        why: String,
    },
}

impl Server {
    /// Binds all listeners.
    ///
    /// # Errors
    /// [`ServeError::Listen`].
    pub async fn bind(store: Store, settings: ServerSettings) -> Result<Server, ServeError> {
        let mut listeners = Vec::new();
        for Listener { bind, advertise } in &settings.listeners {
            let listener = TcpListener::bind(bind)
                .await
                .map_err(|source| ServeError::Listen { bind: bind.clone(), source })?;
            listeners.push((listener, advertise.clone()));
        }
        let (stop, stopped) = watch::channel(false);
        let shared = Shared {
            budget: Budget::new(settings.limits.queued_bytes),
            store,
            settings,
            published: Arc::new(Notify::new()),
            stop: stopped,
            stats: Arc::new(Stats::default()),
        };
        Ok(Server { shared: Arc::new(shared), listeners, stop })
    }

    /// Where it listens, in the order of the settings.
    ///
    /// # Errors
    /// When the operating system does not say.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, ServeError> {
        Ok(self.listeners.iter().map(|(listener, _)| listener.local_addr()).collect::<Result<_, _>>()?)
    }

    /// What it does, in numbers.
    pub fn stats(&self) -> Arc<Stats> {
        self.shared.stats.clone()
    }

    /// Serves until `stop` is ready, then answers what is under way and returns. `tell` gets what an operator wants to know.
    ///
    /// # Errors
    /// When the operating system fails.
    pub async fn run(
        self,
        stop: impl Future<Output = ()>,
        tell: impl Fn(ServerEvent) + Send + Sync + 'static,
    ) -> Result<(), ServeError> {
        let Server { shared, listeners, stop: stopping } = self;
        let syncing = std::thread::Builder::new().name("sync".to_owned()).spawn({
            let shared = shared.clone();
            move || {
                shared.store.keep_syncing(|took| {
                    shared.stats.synced(took);
                    shared.published.notify_waiters();
                });
            }
        })?;
        let tell = Arc::new(tell);
        let mut accepting = JoinSet::new();
        for (listener, advertise) in listeners {
            accepting.spawn(accept(shared.clone(), listener, advertise, tell.clone()));
        }
        stop.await;
        let _nobody_left = stopping.send(true);
        shared.published.notify_waiters();
        // Those that accept wait for their connections.
        let drained = async { while accepting.join_next().await.is_some() {} };
        let _cut_off = tokio::time::timeout(shared.settings.limits.drain, drained).await;
        accepting.shutdown().await;
        shared.store.stop_syncing();
        let _joined = tokio::task::spawn_blocking(move || syncing.join()).await;
        Ok(())
    }
}

async fn accept<T: Fn(ServerEvent) + Send + Sync + 'static>(
    shared: Arc<Shared>,
    listener: TcpListener,
    advertise: Option<Advertised>,
    tell: Arc<T>,
) {
    let mut stop = shared.stop.clone();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _changed = stop.changed() => break,
            Some(_ended) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    take_in(&shared, &mut connections, stream, address, advertise.as_ref(), &tell);
                }
                // Out of descriptors, most likely: those that there are go on, and some will end.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

fn take_in<T: Fn(ServerEvent) + Send + Sync + 'static>(
    shared: &Arc<Shared>,
    connections: &mut JoinSet<()>,
    stream: TcpStream,
    address: SocketAddr,
    advertise: Option<&Advertised>,
    tell: &Arc<T>,
) {
    let limit = shared.settings.limits.connections;
    if shared.stats.connections_open.fetch_add(1, Ordering::SeqCst) >= limit {
        shared.stats.connections_open.fetch_sub(1, Ordering::SeqCst);
        stats::add(&shared.stats.connections_refused, 1);
        let why = format!("there are {limit} connections already (max.connections)");
        tell(ServerEvent::Refused { peer: address, why });
        return;
    }
    let advertised = match (advertise, stream.local_addr()) {
        (Some(advertised), _) => advertised.clone(),
        (None, Ok(local)) => Advertised { host: local.ip().to_string(), port: local.port() },
        (None, Err(_)) => {
            shared.stats.connections_open.fetch_sub(1, Ordering::SeqCst);
            return;
        }
    };
    stats::add(&shared.stats.connections_accepted, 1);
    let (shared, tell) = (shared.clone(), tell.clone());
    let peer = Peer { address, advertised, software: std::sync::OnceLock::new() };
    connections.spawn(async move {
        let ended = connection::serve(shared.clone(), stream, peer).await;
        shared.stats.connections_open.fetch_sub(1, Ordering::SeqCst);
        if let Err(why) = ended {
            stats::add(&shared.stats.connections_cut, 1);
            tell(ServerEvent::Closed { peer: address, why: why.to_string() });
        }
    });
}
