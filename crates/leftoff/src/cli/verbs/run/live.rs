//! What a person sees of a run: notes on stderr, and on a terminal one line that says how it goes.

use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use leftoff::store::now;
pub use leftoff_consumer::handler::child::StderrTo;
use leftoff_consumer::handler::{Delivery, child::to_stderr};
use leftoff_consumer::runner::{self, InHand, Status};
use leftoff_consumer::source::PartitionId;
use leftoff_wire::Committed;

use crate::cli::args::Global;
use crate::cli::place::Place;
use crate::cli::progress::Progress;
use crate::cli::session::note;
use crate::cli::time::format_duration;

/// The rate is that of the last while, at least so long.
const RATE_OVER: Duration = Duration::from_secs(2);
/// An event that takes longer is named.
const LONG: Duration = Duration::from_secs(1);

/// Tells a person how a run goes.
pub struct Live<'a> {
    global: &'a Global,
    line: Arc<Progress>,
    shown: Arc<Mutex<Shown>>,
}

/// What the line says.
struct Shown {
    handled: u64,
    lag_offsets: u64,
    in_flight: usize,
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
    pub fn new(global: &'a Global, out: &Place) -> Live<'a> {
        let shares_terminal = *out == Place::Stdout && io::stdout().is_terminal();
        let shown = Arc::new(Mutex::new(Shown::new()));
        let drawn = shown.clone();
        let draw = move || drawn.lock().unwrap_or_else(PoisonError::into_inner).text(Instant::now());
        let line = Arc::new(Progress::live(global.quiet || shares_terminal, draw));
        Live { global, line, shown }
    }

    /// Where the handler's stderr goes: through, above the line.
    pub fn stderr(&self) -> StderrTo {
        let line = self.line.clone();
        Box::new(move |event, text| line.suspend(|| to_stderr(event, text)))
    }

    /// A remark.
    pub fn note(&self, text: &str) {
        self.line.suspend(|| note(self.global, text));
    }

    fn change(&self, change: impl FnOnce(&mut Shown)) {
        if self.line.is_shown() {
            change(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl runner::Progress for Live<'_> {
    fn starts(&mut self, topic: &str, id: PartitionId, at: Committed) {
        self.note(&format!("{topic}/{} starts at offset {at}", id.partition));
    }

    fn handling(&mut self, delivery: &Delivery<'_>) {
        self.change(|shown| {
            let place = format!("{}/{}/{}", delivery.topic, delivery.id.partition, delivery.event.offset);
            shown.at = Some((place, Instant::now(), delivery.event.timestamp_ms));
        });
    }

    fn status(&mut self, status: &Status) {
        self.change(|shown| {
            shown.handled = status.handled;
            shown.lag_offsets = status.lag_offsets;
            shown.in_flight = status.in_flight;
            shown.oldest = status.oldest.clone().map(|oldest| (oldest, Instant::now()));
            if status.lag_offsets == 0 {
                shown.at = None;
            }
        });
    }

    fn notice(&mut self, notice: &str) {
        self.note(notice);
    }
}

impl Shown {
    fn new() -> Shown {
        Shown {
            handled: 0,
            lag_offsets: 0,
            in_flight: 0,
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
        // The first status comes with the first batch done.
        text += &match self.lag_offsets {
            0 => format!(", behind by {}", format_duration(age_ms)),
            lag => format!(", behind by {lag} offsets and {}", format_duration(age_ms)),
        };
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
        shown.lag_offsets = 5;
        shown.at = Some(("quakes/0/10".to_owned(), start, i64::MAX));
        let text = shown.text(start + RATE_OVER);
        assert_eq!(
            text,
            "10 handled, 5/s, behind by 5 offsets and 0ms, waiting for the handler at quakes/0/10 for 2s"
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
