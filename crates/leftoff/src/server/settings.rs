//! What a server can be told.

use std::time::Duration;

/// How a server runs.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Where it listens.
    pub listeners: Vec<Listener>,
    /// The broker's number in what clients are told.
    pub node_id: i32,
    /// Whether a topic is made when a client first asks for it.
    pub auto_create: bool,
    /// How many partitions a topic gets that does not say: Kafka's `num.partitions`.
    pub default_partitions: i32,
    /// Whether a replication factor above 1 is taken; one copy is kept all the same.
    pub accept_replication: bool,
    /// Where the HTTP side of the process is, for whoever asks for the broker's settings.
    pub http_listener: Option<String>,
    /// What is taken in at most.
    pub limits: ServerLimits,
}

/// One address to listen at.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Host and port to bind: `127.0.0.1:9092`; port 0 takes a free one.
    pub bind: String,
    /// What clients are told to connect to; the bound address if not given.
    pub advertise: Option<Advertised>,
}

/// Where clients are told that the broker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Limits, each with the name that its error tells.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// Connections at once (`max.connections`).
    pub connections: usize,
    /// The largest request (`socket.request.max.bytes`).
    pub request_max_bytes: usize,
    /// Bytes of requests at once, over all connections (`queued.max.request.bytes`).
    pub queued_bytes: usize,
    /// Requests of one connection that are taken in before the first is answered.
    pub requests_per_connection: usize,
    /// How long the rest of a request, or the reading of an answer, may take without a byte.
    pub request_patience: Duration,
    /// How long a connection may be silent (`connections.max.idle.ms`).
    pub connection_max_idle: Duration,
    /// The most bytes of one answer to a fetch (`fetch.max.bytes`).
    pub fetch_max_bytes: usize,
    /// How long a stop waits for answers that are under way.
    pub drain: Duration,
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            connections: 10_000,
            request_max_bytes: 100 * 1024 * 1024,
            queued_bytes: 256 * 1024 * 1024,
            requests_per_connection: 64,
            request_patience: Duration::from_secs(30),
            connection_max_idle: Duration::from_secs(600),
            fetch_max_bytes: 55 * 1024 * 1024,
            drain: Duration::from_secs(5),
        }
    }
}
