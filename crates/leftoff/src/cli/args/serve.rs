//! `leftoff serve`

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use leftoff::server::{Advertised, Listener, ServerLimits, ServerSettings};
use leftoff_engine::broker::BrokerConfig;
use leftoff_engine::coordinator::classic::GroupConfig;

use super::value::{parsed, value};
use crate::cli::bad_value::BadValue;
use crate::cli::time::parse_duration;

/// `leftoff serve`
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Each flag may be given as an environment variable, too. Ends cleanly on SIGINT and SIGTERM. \
    exit codes: 0 stopped, 2 usage, 3 another process has the directory or the address, 4 the directory is \
    somebody else's, 5 storage failed or damaged"
)]
pub struct ServeArgs {
    /// Where to listen, as HOST:PORT; may be repeated. Port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", env = "LEFTOFF_LISTEN", value_delimiter = ',')]
    #[arg(default_value = "127.0.0.1:9092", value_parser = value::<Address>())]
    pub listen: Vec<Address>,
    /// What clients are told to connect to, as HOST:PORT, for each --listen in turn [default: the address they came to]
    #[arg(long, value_name = "HOST:PORT", env = "LEFTOFF_ADVERTISE", value_delimiter = ',')]
    #[arg(value_parser = value::<Address>())]
    pub advertise: Vec<Address>,
    /// Where the HTTP side listens, as HOST:PORT: /healthz, /readyz, /metrics, and /api, through which verbs reach the server;
    /// port 0 takes a free one, which the verbs find. off: nowhere
    #[arg(long, value_name = "HOST:PORT|off", env = "LEFTOFF_UI_LISTEN", default_value = "127.0.0.1:0")]
    #[arg(value_parser = value::<UiListen>())]
    pub ui_listen: UiListen,
    /// A name by which browsers and scripts reach the HTTP side, beside addresses and localhost; may be repeated
    #[arg(long, value_name = "NAME", env = "LEFTOFF_UI_HOST", value_delimiter = ',')]
    pub ui_host: Vec<String>,
    /// The broker's number in what clients are told
    #[arg(long, value_name = "N", env = "LEFTOFF_NODE_ID", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(i32).range(0..))]
    pub node_id: i32,
    /// Whether a topic is made when a client first asks for it
    #[arg(long, value_name = "on|off", env = "LEFTOFF_AUTO_CREATE", value_enum, default_value_t = Switch::On)]
    pub auto_create: Switch,
    /// Partitions of a topic that does not say how many it wants
    #[arg(long, value_name = "N", env = "LEFTOFF_DEFAULT_PARTITIONS", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(i32).range(1..=10_000))]
    pub default_partitions: i32,
    /// What becomes of a topic that wants more than one replica: refused, as one Kafka node does, or accepted with one copy
    #[arg(long, value_name = "refuse|accept", env = "LEFTOFF_REPLICATION_FACTOR", value_enum)]
    #[arg(default_value_t = Replication::Refuse)]
    pub replication_factor: Replication,
    /// Refuse commits above the end of a partition, and commits that go back; else they are taken, as Kafka does, and flagged
    #[arg(long, env = "LEFTOFF_STRICT_COMMITS")]
    pub strict_commits: bool,
    /// How long a group that was empty waits for more members before it begins (group.initial.rebalance.delay.ms): 3s, 0s
    #[arg(
        long,
        value_name = "DURATION",
        env = "LEFTOFF_GROUP_INITIAL_REBALANCE_DELAY",
        default_value = "3s"
    )]
    #[arg(value_parser = parsed(parse_duration))]
    pub group_initial_rebalance_delay: Duration,
    /// Connections at once
    #[arg(long, value_name = "N", env = "LEFTOFF_MAX_CONNECTIONS", default_value_t = 10_000)]
    pub max_connections: usize,
}

impl ServeArgs {
    /// How groups are treated.
    pub fn broker(&self) -> BrokerConfig {
        let delay = i32::try_from(self.group_initial_rebalance_delay.as_millis()).unwrap_or(i32::MAX);
        let groups = GroupConfig {
            initial_rebalance_delay_ms: delay,
            strict_commits: self.strict_commits,
            ..GroupConfig::default()
        };
        BrokerConfig { groups, ..BrokerConfig::default() }
    }

    /// As the server wants it.
    ///
    /// # Errors
    /// If there are more addresses to advertise than to listen at.
    pub fn settings(&self) -> Result<ServerSettings, BadValue> {
        if let Some(extra) = self.advertise.get(self.listen.len()) {
            return Err(BadValue::new(
                &extra.to_string(),
                "an address to advertise",
                "one for each --listen at most, in the same order",
                "--listen 0.0.0.0:9092 --advertise broker.example:9092",
            ));
        }
        let listener = |(number, address): (usize, &Address)| Listener {
            bind: address.to_string(),
            advertise: self
                .advertise
                .get(number)
                .map(|at| Advertised { host: at.host.clone(), port: at.port }),
        };
        Ok(ServerSettings {
            listeners: self.listen.iter().enumerate().map(listener).collect(),
            node_id: self.node_id,
            auto_create: self.auto_create == Switch::On,
            default_partitions: self.default_partitions,
            accept_replication: self.replication_factor == Replication::Accept,
            http_listener: None,
            limits: ServerLimits { connections: self.max_connections, ..ServerLimits::default() },
        })
    }
}

/// Where the HTTP side listens, if anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UiListen {
    /// There.
    At(Address),
    /// Nowhere.
    Off,
}

impl FromStr for UiListen {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<UiListen, BadValue> {
        if text == "off" { Ok(UiListen::Off) } else { Ok(UiListen::At(text.parse()?)) }
    }
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

impl FromStr for Address {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Address, BadValue> {
        let bad = || BadValue::new(text, "an address", "HOST:PORT", "127.0.0.1:9092 or [::1]:9092");
        let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = port.parse().map_err(|_| bad())?;
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(bad());
        }
        Ok(Address { host: host.to_owned(), port })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Whether something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// It is.
    On,
    /// It is not.
    Off,
}

/// What a wish for more than one replica gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Replication {
    /// Error 38, INVALID_REPLICATION_FACTOR
    Refuse,
    /// The topic, with one copy
    Accept,
}
