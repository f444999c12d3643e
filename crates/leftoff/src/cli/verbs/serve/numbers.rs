//! `/metrics` of a server: what it does, and how the groups stand. docs/serve.md has each with its unit.

use leftoff::server::{Stats, StatsNow, TIME_CLASSES, Times};
use leftoff::store::{Store, events_in, now};
use leftoff_engine::broker::{PartitionId, State};
use leftoff_engine::coordinator::{Bounds, Entry, Lag, PartitionKey};
use leftoff_engine::log::Fetched;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use crate::cli::metrics_page::{Labels, Page};

/// A group in a partition that it has an offset for.
struct Row {
    group: String,
    topic: String,
    partition: i32,
    entry: Entry,
    lag: Lag,
    bounds: Bounds,
    /// The batch of the first event that waits, to be read outside the store's lock.
    first: Option<Fetched>,
}

/// The text of a scrape.
pub fn text(stats: &Stats, store: &Store) -> String {
    let mut page = Page::new(Vec::new());
    write_server(&mut page, &stats.now());
    let (rows, topics) = store.with_state(|state| (rows(state), state.topics().count()));
    page.gauge("topics", "Topics that there are", None, topics as f64);
    write_groups(&mut page, &rows);
    page.text()
}

fn write_server(page: &mut Page, now: &StatsNow) {
    let help = "Connections that are open";
    page.gauge("connections_open", help, None, now.connections_open as f64);
    let counts = [
        ("connections_accepted", "Connections taken", now.connections_accepted),
        ("connections_refused", "Connections refused, since there were too many", now.connections_refused),
        ("connections_cut", "Connections that ended otherwise than by their client", now.connections_cut),
        ("request_bytes", "Bytes of requests", now.bytes_in),
        ("answer_bytes", "Bytes of answers", now.bytes_out),
    ];
    for (name, help, value) in counts {
        page.counter(name, help, value);
    }
    let requests = now.requests.iter().map(|(api, count)| (vec![("api", format!("{api:?}"))], *count));
    page.counters("requests", "Requests, by their API", requests);
    let syncs = Syncs(now.syncs.clone());
    page.registry().register_with_unit("sync", "How long syncs took", Unit::Seconds, syncs);
}

/// Times that were counted elsewhere.
#[derive(Debug)]
struct Syncs(Times);

impl EncodeMetric for Syncs {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let ends = TIME_CLASSES.iter().copied().chain([f64::MAX]);
        let classes: Vec<(f64, u64)> = ends.zip(self.0.classes).collect();
        encoder.encode_histogram::<NoLabelSet>(self.0.seconds, self.0.count, &classes, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

fn rows(state: &State) -> Vec<Row> {
    let groups = state.coordinator().groups();
    groups
        .flat_map(|group| {
            group.offsets().filter_map(|(topic, partition, entry)| {
                let live = state.topic(topic)?;
                let key = PartitionKey { topic: topic.to_owned(), topic_id: live.topic_id, partition };
                // An offset of a topic that was made anew says nothing of this one.
                let entry = group.entry(&key).filter(|known| **known == *entry)?.clone();
                let bounds = state.bounds(&key)?;
                let lag = Lag::of(Some(entry.committed), bounds, bounds.end);
                let log = state.log(&PartitionId { topic_id: live.topic_id, partition })?;
                let from = entry.committed.next().max(bounds.log_start);
                let first = if lag.waiting > 0 { log.fetch(from, 1).ok() } else { None };
                Some(Row {
                    group: group.name().to_owned(),
                    topic: key.topic,
                    partition,
                    entry,
                    lag,
                    bounds,
                    first,
                })
            })
        })
        .collect()
}

fn write_groups(page: &mut Page, rows: &[Row]) {
    let mut series = |name, help, unit: Option<Unit>| page.gauges(name, help, unit);
    let next = series("group_next_offset", "The offset that a restart of the group reads next", None);
    let waiting = series("group_waiting_offsets", "Readable and not handled", None);
    let deleted = series("group_deleted_unread_offsets", "Deleted before the group came to them", None);
    let behind = series("group_behind_open_transaction_offsets", "Behind an open transaction", None);
    let ahead = series("group_ahead_of_end_offsets", "So far behind the end lies what was committed", None);
    let age = series("group_waiting_age", "The age of the first event that waits", Some(Unit::Seconds));
    let stuck = series(
        "group_stuck",
        "For how long the offset has not moved though there was something to handle",
        Some(Unit::Seconds),
    );
    let flagged = series("group_flagged_offsets", "Whether the last commit was odd (docs/serve.md)", None);
    let now_ms = now().as_ms();
    for row in rows {
        let labels: Labels = vec![
            ("group", row.group.clone()),
            ("topic", row.topic.clone()),
            ("partition", row.partition.to_string()),
        ];
        next.set(&labels, Some(row.entry.committed.next().get() as f64));
        waiting.set(&labels, Some(row.lag.waiting as f64));
        deleted.set(&labels, Some(row.lag.deleted_unread as f64));
        behind.set(&labels, Some(row.lag.behind_open_transaction as f64));
        ahead.set(&labels, Some(row.lag.ahead_of_end as f64));
        flagged.set(&labels, Some(if row.entry.flags.is_empty() { 0.0 } else { 1.0 }));
        let since_ms = row.first_ms();
        let seconds = |ms: i64| now_ms.saturating_sub(ms).max(0) as f64 / 1000.0;
        let nothing_waits = (row.lag.waiting == 0).then_some(0.0);
        age.set(&labels, nothing_waits.or(since_ms.map(seconds)));
        // It could not move before there was something, nor need it before it did.
        let still = since_ms.map(|since| since.max(row.entry.commit_timestamp.as_ms()));
        stuck.set(&labels, nothing_waits.or(still.map(seconds)));
    }
}

impl Row {
    /// When the first event that waits was made. Damage is for the doctor; here it only means that the age is not known.
    fn first_ms(&self) -> Option<i64> {
        let from = self.entry.committed.next().max(self.bounds.log_start);
        let chunk = events_in(self.first.as_ref()?, from).ok()?;
        chunk.events.first().map(|event| event.timestamp_ms)
    }
}
