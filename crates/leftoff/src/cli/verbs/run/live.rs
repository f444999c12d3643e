//! What a person sees of a run: notes on stderr, and on a terminal one line that says how it goes.

use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use leftoff::store::now;
pub use leftoff_consumer::handler::child::StderrTo;
use leftoff_consumer::handler::{Delivery, child::to_stderr};
use leftoff_consumer::runner::{self, About, InHand, Status};
use leftoff_consumer::source::PartitionId;
use leftoff_wire::{Committed, Offset};

use super::metrics::Metrics;
use crate::cli::args::Global;
use crate::cli::args::run::RunArgs;
use crate::cli::notes::{Level, Line, LogFormat, tell, tell_of_handler};
use crate::cli::place::Place;
use crate::cli::progress::Progress;
use crate::cli::time::format_duration;

/// The rate is that of the last while, at least so long.
const RATE_OVER: Duration = Duration::from_secs(2);
/// An event that takes longer is named.
const LONG: Duration = Duration::from_secs(1);

/// Tells a person how a run goes.
pub struct Live<'a> {
    global: &'a Global,
    group: &'a str,
    line: Arc<Progress>,
    shown: Arc<Mutex<Shown>>,
    metrics: Option<Metrics>,
}

/// What the line says.
struct Shown {
    handled: u64,
    /// Not known before the first status.
    lag_offsets: Option<u64>,
    in_flight: usize,
    saved_at: Option<Instant>,
    /// The event that one of several handlers has had for longest, and when that was said.
    oldest: Option<(InHand, Instant)>,
    /// The event that the handler has: its place, since when, and its timestamp.
    at: Option<(String, Instant, i64)>,
    /// Where the measuring of the rate began, and the rate before that.
    since: Instant,
    handled_since: u64,
    per_second: f64,
}

impl<'a> Live<'a> {
    /// Draws nothing where records go to the same terminal.
    pub fn new(global: &'a Global, args: &'a RunArgs, metrics: Option<Metrics>) -> Live<'a> {
        let shares_terminal = args.out == Place::Stdout && io::stdout().is_terminal();
        let no_line = global.quiet || shares_terminal || global.log_format == LogFormat::Json;
        let shown = Arc::new(Mutex::new(Shown::new()));
        let drawn = shown.clone();
        let draw = move || drawn.lock().unwrap_or_else(PoisonError::into_inner).text(Instant::now());
        let line = Arc::new(Progress::live(no_line, draw));
        Live { global, group: &args.group, line, shown, metrics }
    }

    /// Where the handler's stderr goes: through, above the line.
    pub fn stderr(&self) -> StderrTo {
        let line = self.line.clone();
        Box::new(move |event, text| {
            line.suspend(|| {
                if !tell_of_handler(event, text) {
                    to_stderr(event, text);
                }
            });
        })
    }

    /// A remark.
    pub fn note(&self, event: &str, text: &str) {
        self.tell(&Line { event: Some(event), ..Line::new(Level::Info, text) });
    }

    /// A remark on a partition.
    pub fn note_about(&self, about: &About<'_>, text: &str) {
        let About { event, topic, partition, offset } = *about;
        self.tell(&Line {
            event: Some(event),
            topic: Some(topic),
            partition: Some(partition),
            offset: offset.map(Offset::get),
            ..Line::new(Level::Info, text)
        });
    }

    fn tell(&self, line: &Line<'_>) {
        if !self.global.quiet {
            self.line.suspend(|| tell(&Line { group: Some(self.group), ..line.clone() }));
        }
    }

    fn change(&self, change: impl FnOnce(&mut Shown)) {
        if self.line.is_shown() {
            change(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl runner::Progress for Live<'_> {
    fn starts(&mut self, topic: &str, id: PartitionId, at: Committed) {
        let (partition, offset) = (id.partition, Some(at.next()));
        let about = About { event: "starts", topic, partition, offset };
        self.note_about(&about, &format!("{topic}/{partition} starts at offset {at}"));
    }

    fn handling(&mut self, delivery: &Delivery<'_>) {
        if let Some(metrics) = &self.metrics {
            metrics.handling(delivery);
        }
        self.change(|shown| {
            let place = format!("{}/{}/{}", delivery.topic, delivery.id.partition, delivery.event.offset);
            shown.at = Some((place, Instant::now(), delivery.event.timestamp_ms));
        });
    }

    fn status(&mut self, status: &Status) {
        if let Some(metrics) = &self.metrics {
            metrics.status(status);
        }
        self.change(|shown| {
            shown.handled = status.handled;
            shown.lag_offsets = Some(status.lag_offsets);
            shown.saved_at = Instant::now().checked_sub(status.since_save);
            shown.in_flight = status.in_flight;
            shown.oldest = status.oldest.clone().map(|oldest| (oldest, Instant::now()));
            if status.lag_offsets == 0 {
                shown.at = None;
            }
        });
    }

    fn notice(&mut self, notice: &str) {
        self.note("note", notice);
    }

    fn notice_about(&mut self, about: &About<'_>, notice: &str) {
        self.note_about(about, notice);
    }
}

impl Shown {
    fn new() -> Shown {
        Shown {
            handled: 0,
            lag_offsets: None,
            in_flight: 0,
            saved_at: None,
            oldest: None,
            at: None,
            since: Instant::now(),
            handled_since: 0,
            per_second: 0.0,
        }
    }

    fn text(&mut self, at: Instant) -> String {
        self.measure(at);
        let mut text = format!("{} handled, {:.0}/s", self.handled, self.per_second);
        let Some((place, since, timestamp_ms)) = &self.at else {
            return text + ", waiting for events";
        };
        let age_ms = now().as_ms().saturating_sub(*timestamp_ms).max(0);
        text += &match self.lag_offsets {
            None | Some(0) => format!(", behind by {}", format_duration(age_ms)),
            Some(lag) => format!(", behind by {lag} offsets and {}", format_duration(age_ms)),
        };
        if let Some(rest) =
            self.saved_at.map(|saved| at.saturating_duration_since(saved)).filter(|rest| *rest >= LONG)
        {
            text += &format!(
                ", saved {} ago",
                format_duration(i64::try_from(rest.as_millis()).unwrap_or(i64::MAX))
            );
        }
        if self.in_flight > 0 {
            text += &format!(", {} in flight", self.in_flight);
        }
        if let Some((oldest, said)) = &self.oldest {
            return text + &blocked(oldest, oldest.length + at.saturating_duration_since(*said));
        }
        let held = at.saturating_duration_since(*since);
        if held >= LONG {
            let held_ms = i64::try_from(held.as_millis()).unwrap_or(i64::MAX);
            text += &format!(", waiting for the handler at {place} for {}", format_duration(held_ms));
        }
        text
    }

    fn measure(&mut self, at: Instant) {
        let length = at.saturating_duration_since(self.since);
        if length < RATE_OVER && self.handled_since > 0 {
            return;
        }
        let seconds = length.as_secs_f64().max(0.001);
        self.per_second = (self.handled - self.handled_since) as f64 / seconds;
        if length >= RATE_OVER {
            (self.since, self.handled_since) = (at, self.handled);
        }
    }
}

/// `, orders/3 waits for offset 812, whose handler has run for 41s (90 events behind it are handled)`
fn blocked(oldest: &InHand, held: Duration) -> String {
    if held < LONG {
        return String::new();
    }
    let InHand { topic, partition, offset, waiting, .. } = oldest;
    let held = format_duration(i64::try_from(held.as_millis()).unwrap_or(i64::MAX));
    let mut text =
        format!(", {topic}/{partition} waits for offset {offset}, whose handler has run for {held}");
    if *waiting > 0 {
        text += &format!(" ({waiting} events behind it are handled)");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_it_waits_for() {
        let mut shown = Shown::new();
        let start = shown.since;
        assert_eq!(shown.text(start), "0 handled, 0/s, waiting for events");
        shown.handled = 10;
        shown.lag_offsets = Some(5);
        shown.at = Some(("quakes/0/10".to_owned(), start, i64::MAX));
        shown.saved_at = Some(start);
        let text = shown.text(start + RATE_OVER);
        assert_eq!(
            text,
            "10 handled, 5/s, behind by 5 offsets and 0ms, saved 2s ago, waiting for the handler at quakes/0/10 for 2s"
        );
        shown.in_flight = 4;
        let (topic, offset) = ("quakes".to_owned(), leftoff_wire::Offset::ZERO);
        let oldest = InHand { topic, partition: 3, offset, length: Duration::from_secs(41), waiting: 7 };
        shown.oldest = Some((oldest, start + RATE_OVER));
        assert!(shown.text(start + RATE_OVER).ends_with(
            ", 4 in flight, quakes/3 waits for offset 0, whose handler has run for 41s (7 events behind it are handled)"
        ));
    }
}
