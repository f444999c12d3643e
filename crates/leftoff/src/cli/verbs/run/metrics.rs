//! `run --metrics-listen`: what a run tells, as numbers for Prometheus. docs/metrics.md has each with its unit.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use leftoff::http::{HttpLimits, Routes, probes, serve_in_thread};
use leftoff::store::{Glimpses, events_in, now};
use leftoff_consumer::handler::Delivery;
use leftoff_consumer::runner::{PartitionStatus, Status};
use leftoff_consumer::source::PartitionId;
use leftoff_engine::broker::{self, RetentionAhead};
use leftoff_wire::Offset;
use prometheus_client::registry::Unit;

use crate::cli::failure::Failure;
use crate::cli::metrics_page::{Labels, Page};

/// The most connections at once: a run is watched by few.
const MAX_CONNECTIONS: usize = 16;

/// What is known of a run, told by its thread and read by that of a scrape.
#[derive(Clone, Debug)]
pub struct Metrics {
    group: String,
    told: Arc<Mutex<Told>>,
}

#[derive(Debug)]
struct Told {
    /// The last status, and when it came.
    status: Option<(Status, Instant)>,
    /// The event that was handed out last, where the runner's own thread handles: since then nothing else is told.
    in_hand: Option<InHand>,
    moved: BTreeMap<PartitionId, Moved>,
    /// What the log said of each partition when it was last asked.
    seen: BTreeMap<PartitionId, Seen>,
    started: Instant,
}

#[derive(Debug)]
struct InHand {
    topic: String,
    id: PartitionId,
    offset: Offset,
    since: Instant,
}

/// When the end of what is handled moved, or there was nothing to move it for.
#[derive(Debug)]
struct Moved {
    handled: Offset,
    at: Instant,
}

/// What only the log knows.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    log_start: Option<Offset>,
    end: Option<Offset>,
    waits_since_ms: Option<i64>,
    ahead: Option<RetentionAhead>,
}

impl Metrics {
    /// Of a run that begins.
    pub fn new(group: &str) -> Metrics {
        let told = Told {
            status: None,
            in_hand: None,
            moved: BTreeMap::new(),
            seen: BTreeMap::new(),
            started: Instant::now(),
        };
        Metrics { group: group.to_owned(), told: Arc::new(Mutex::new(told)) }
    }

    /// Answers scrapes until the process ends; where.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn serve(&self, listener: TcpListener, store: Glimpses) -> Result<SocketAddr, Failure> {
        let metrics = self.clone();
        let routes =
            Routes { probes: probes(|| Ok(()), move || metrics.scrape(&store)), ..Routes::default() };
        let limits = HttpLimits { connections: MAX_CONNECTIONS, ..HttpLimits::default() };
        serve_in_thread(listener, routes, limits)
            .map_err(|error| Failure::storage(format!("cannot answer for --metrics-listen: {error}")))
    }

    /// An event is handed out.
    pub fn handling(&self, delivery: &Delivery<'_>) {
        let mut told = self.lock();
        let since = Instant::now();
        let (id, offset) = (delivery.id, delivery.event.offset);
        match &mut told.in_hand {
            // No new text for each event.
            Some(at) if at.topic == delivery.topic => {
                (at.id, at.offset, at.since) = (id, offset, since);
            }
            at => *at = Some(InHand { topic: delivery.topic.to_owned(), id, offset, since }),
        }
    }

    /// How it stands.
    pub fn status(&self, status: &Status) {
        let mut told = self.lock();
        let now = Instant::now();
        told.in_hand = None;
        told.moved.retain(|id, _| status.partitions.iter().any(|partition| partition.id == *id));
        for partition in &status.partitions {
            let handled = partition.handled.next();
            let moved = told.moved.entry(partition.id).or_insert(Moved { handled, at: now });
            if moved.handled != handled || handled >= partition.end {
                *moved = Moved { handled, at: now };
            }
        }
        told.status = Some((status.clone(), now));
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn scrape(&self, store: &Glimpses) -> String {
        let partitions = match &self.lock().status {
            Some((status, _)) => status.partitions.clone(),
            None => Vec::new(),
        };
        // The log is read while the run may go on telling.
        let seen: Vec<_> = partitions.iter().filter_map(|one| Some((one.id, look(store, one)?))).collect();
        let mut told = self.lock();
        told.seen.retain(|id, _| partitions.iter().any(|partition| partition.id == *id));
        told.seen.extend(seen);
        told.text(&self.group, Instant::now(), now().as_ms())
    }
}

/// What the log says of a partition; `None` while another process has the directory, or a sync its lock.
fn look(store: &Glimpses, status: &PartitionStatus) -> Option<Seen> {
    let id = broker::PartitionId { topic_id: status.id.topic_id, partition: status.id.partition };
    let next = status.handled.next();
    let (seen, fetched) = store.state(|state| {
        let log = state.log(&id)?;
        let (log_start, end) = (log.log_start(), log.high_watermark());
        let ahead = state.retention_ahead(now(), &id, next).ok().flatten();
        let seen = Seen { log_start: Some(log_start), end: Some(end), waits_since_ms: None, ahead };
        let waits = next >= log_start && next < end;
        Some((seen, if waits { log.fetch(next, 1).ok() } else { None }))
    })??;
    // The file is read outside the lock. Damage is for the doctor; here it only means that the age is not known.
    let first = fetched
        .and_then(|fetched| events_in(&fetched, next).ok()?.events.first().map(|event| event.timestamp_ms));
    Some(Seen { waits_since_ms: first, ..seen })
}

impl Told {
    fn text(&self, group: &str, now: Instant, now_ms: i64) -> String {
        let mut page = Page::new(vec![("group", group.to_owned())]);
        let age = now.saturating_duration_since(self.started);
        page.gauge("run_age", "How long the run has gone on", Some(Unit::Seconds), age.as_secs_f64());
        if let Some((status, came)) = &self.status {
            write_counts(&mut page, status);
            let age = status.since_save + now.saturating_duration_since(*came);
            let help = "How long ago the offset was saved, or the run began if that was later";
            page.gauge("last_save_age", help, Some(Unit::Seconds), age.as_secs_f64());
            self.write_partitions(&mut page, status, now, now_ms);
        }
        self.write_hands(&mut page, now);
        page.text()
    }

    fn write_partitions(&self, page: &mut Page, status: &Status, now: Instant, now_ms: i64) {
        let seconds = Some(Unit::Seconds);
        let next = page.gauges("next_offset", "The offset that a restart reads next: what is saved", None);
        let handled =
            page.gauges("handled_next_offset", "The offset behind all that is handled without a gap", None);
        let end = page.gauges("end_offset", "The offset behind the last event that can be read", None);
        let lag =
            page.gauges("lag_offsets", "Offsets from the first that is not handled up to the end", None);
        let lag_time = page.gauges("lag", "The age of the first event that is not handled", seconds.clone());
        let stuck =
            page.gauges("stuck", "How long nothing was handled, though there is something", seconds.clone());
        let log_start = page.gauges("log_start_offset", "The first offset that can be read", None);
        let ahead = page.gauges(
            "retention_left",
            "In how long retention deletes an event that is not handled, at the earliest",
            seconds,
        );
        let ahead_bytes = page.gauges(
            "retention_left",
            "After how many bytes more retention deletes an event that is not handled, at the earliest",
            Some(Unit::Bytes),
        );
        for one in &status.partitions {
            let labels = labels(&one.topic, one.id.partition);
            let seen = self.seen.get(&one.id).copied().unwrap_or_default();
            let handled_next = one.handled.next();
            let known_end = seen.end.map_or(one.end, |end| end.max(one.end));
            next.set(&labels, one.saved.map(|saved| number(saved.next())));
            handled.set(&labels, Some(number(handled_next)));
            end.set(&labels, Some(number(known_end)));
            let behind = known_end.get().saturating_sub(handled_next.get()).max(0);
            lag.set(&labels, Some(behind as f64));
            let waits_ms = seen.waits_since_ms.map(|since| now_ms.saturating_sub(since).max(0));
            lag_time
                .set(&labels, if behind == 0 { Some(0.0) } else { waits_ms.map(|ms| ms as f64 / 1000.0) });
            let rest = self.moved.get(&one.id).filter(|_| behind > 0);
            let rest = rest.map_or(Duration::ZERO, |moved| now.saturating_duration_since(moved.at));
            stuck.set(&labels, Some(rest.as_secs_f64()));
            log_start.set(&labels, seen.log_start.map(number));
            // It was asked a moment before: meanwhile the last event may be handled.
            if let Some(RetentionAhead { ms, bytes }) = seen.ahead.filter(|_| behind > 0) {
                ahead.set(&labels, ms.map(|ms| ms as f64 / 1000.0));
                ahead_bytes.set(&labels, bytes.map(|bytes| bytes as f64));
            }
        }
    }

    fn write_hands(&self, page: &mut Page, now: Instant) {
        let status = self.status.as_ref();
        let told = status.map_or(0, |(status, _)| status.in_flight);
        let in_flight = told.max(usize::from(self.in_hand.is_some()));
        page.gauge("events_in_flight", "Events that handlers have", None, in_flight as f64);
        let offset =
            page.gauges("blocking_event_offset", "The event that a handler has had for longest", None);
        let help = "How long a handler has had that event";
        let held = page.gauges("blocking_event", help, Some(Unit::Seconds));
        let oldest = status.and_then(|(status, came)| Some((status.oldest.as_ref()?, *came)));
        let (labels, at, length) = if let Some((oldest, came)) = oldest {
            let length = oldest.length + now.saturating_duration_since(came);
            (labels(&oldest.topic, oldest.partition), oldest.offset, length)
        } else if let Some(at) = &self.in_hand {
            let length = now.saturating_duration_since(at.since);
            (labels(&at.topic, at.id.partition), at.offset, length)
        } else {
            return;
        };
        offset.set(&labels, Some(number(at)));
        held.set(&labels, Some(length.as_secs_f64()));
    }
}

fn write_counts(page: &mut Page, status: &Status) {
    let counts = [
        ("events_handled", "Events handled, filtered ones included", status.handled),
        ("events_filtered", "Events left out on purpose", status.filtered),
        ("events_skipped", "Events passed by, since no attempt succeeded", status.skipped),
        ("events_dead", "Events passed by, and kept as dead letters", status.dead),
        ("events_absorbed", "Events that the place had already under another offset", status.absorbed),
        ("records_written", "Records written, or waiting for the next save", status.written),
        ("attempts_failed", "Attempts at an event that failed", status.failed_attempts),
        ("handler_faults", "How often a handler ended or broke the rules", status.faults),
        ("saves", "How often the offset was saved", status.saves),
    ];
    for (name, help, value) in counts {
        page.counter(name, help, value);
    }
}

fn labels(topic: &str, partition: i32) -> Labels {
    vec![("topic", topic.to_owned()), ("partition", partition.to_string())]
}

fn number(offset: Offset) -> f64 {
    offset.get() as f64
}
