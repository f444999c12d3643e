//! What a server has done since its start, in numbers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use leftoff_wire::messages::ApiKey;

/// Upper ends of the classes of times, in seconds; what took longer is in one more class.
pub const TIME_CLASSES: [f64; 12] =
    [0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0];

/// Counts; each is right by itself, and together they are of about one moment.
#[derive(Debug)]
pub struct Stats {
    pub(super) connections_open: AtomicUsize,
    pub(super) connections_accepted: AtomicU64,
    pub(super) connections_refused: AtomicU64,
    pub(super) connections_cut: AtomicU64,
    pub(super) bytes_in: AtomicU64,
    pub(super) bytes_out: AtomicU64,
    requests: Vec<AtomicU64>,
    syncs: Mutex<Times>,
}

/// How long things took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// All of them together, in seconds.
    pub seconds: f64,
    /// How many in each class of [`TIME_CLASSES`], and above the last.
    pub classes: [u64; TIME_CLASSES.len() + 1],
}

/// The counts of one moment.
#[derive(Clone, Debug)]
pub struct StatsNow {
    /// Connections that are open.
    pub connections_open: usize,
    /// Connections taken since the start.
    pub connections_accepted: u64,
    /// Connections refused, since there were too many.
    pub connections_refused: u64,
    /// Connections that ended otherwise than by their client.
    pub connections_cut: u64,
    /// Bytes of requests.
    pub bytes_in: u64,
    /// Bytes of answers.
    pub bytes_out: u64,
    /// Requests by API, those that were asked for.
    pub requests: Vec<(ApiKey, u64)>,
    /// How long syncs took.
    pub syncs: Times,
}

impl Default for Stats {
    fn default() -> Stats {
        Stats {
            connections_open: AtomicUsize::new(0),
            connections_accepted: AtomicU64::new(0),
            connections_refused: AtomicU64::new(0),
            connections_cut: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            requests: ApiKey::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            syncs: Mutex::new(Times::default()),
        }
    }
}

impl Stats {
    /// As they are now.
    pub fn now(&self) -> StatsNow {
        let requests = ApiKey::ALL.iter().zip(&self.requests);
        let requests = requests.map(|(api, count)| (*api, count.load(Ordering::Relaxed)));
        StatsNow {
            connections_open: self.connections_open.load(Ordering::SeqCst),
            connections_accepted: self.connections_accepted.load(Ordering::Relaxed),
            connections_refused: self.connections_refused.load(Ordering::Relaxed),
            connections_cut: self.connections_cut.load(Ordering::Relaxed),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
            requests: requests.filter(|(_, count)| *count > 0).collect(),
            syncs: self.syncs.lock().expect("no one panics while holding the lock").clone(),
        }
    }

    pub(super) fn asked(&self, api: ApiKey) {
        if let Ok(place) = ApiKey::ALL.binary_search(&api) {
            self.requests[place].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn synced(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let class = TIME_CLASSES.iter().position(|end| seconds <= *end).unwrap_or(TIME_CLASSES.len());
        let mut syncs = self.syncs.lock().expect("no one panics while holding the lock");
        syncs.count += 1;
        syncs.seconds += seconds;
        syncs.classes[class] += 1;
    }
}

/// Adds to a count that nothing else depends on.
pub(super) fn add(count: &AtomicU64, more: usize) {
    count.fetch_add(more as u64, Ordering::Relaxed);
}
