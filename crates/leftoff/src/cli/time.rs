//! Times and durations as people and scripts write them. Nothing here reads the clock: `now` is passed in.

use std::str::FromStr;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

use super::bad_value::BadValue;

/// What the help of every flag that takes a time says.
pub const TIME_FORMS: &str = "RFC 3339 (2026-01-31T09:30:00Z), a date or time without a zone in UTC (2026-01-31, \
    2026-01-31T09:30), unix seconds, ms or ns (10, 13 or 19 digits), now, or a duration ago (-1h30m)";
/// What the help of every flag that takes a duration says.
pub const DURATION_FORMS: &str = "90s, 1h30m, 7d, or ISO-8601 (PT1H30M, P7D)";

/// A moment, fixed or relative to the time at which the command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Milliseconds since 1970-01-01T00:00:00Z, as record timestamps are.
    At {
        /// The moment in unix milliseconds.
        unix_ms: i64,
    },
    /// So long before now; `now` itself is zero ago.
    Ago(Duration),
}

impl Time {
    /// The moment in unix milliseconds, given that it is `now_ms`.
    pub fn unix_ms(self, now_ms: i64) -> i64 {
        match self {
            Time::At { unix_ms } => unix_ms,
            Time::Ago(ago) => now_ms.saturating_sub(i64::try_from(ago.as_millis()).unwrap_or(i64::MAX)),
        }
    }
}

impl FromStr for Time {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Time, BadValue> {
        if text == "now" {
            return Ok(Time::Ago(Duration::ZERO));
        }
        if let Some(ago) = text.strip_prefix('-') {
            return Ok(Time::Ago(parse_duration(ago)?));
        }
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return unix_time(text);
        }
        let moment = text.parse::<Timestamp>().or_else(|_| in_utc(text));
        moment.map(|at| Time::At { unix_ms: at.as_millisecond() }).map_err(|_| bad_time(text))
    }
}

/// Numbers are told apart by their digits alone; other lengths are refused rather than guessed.
fn unix_time(digits: &str) -> Result<Time, BadValue> {
    let number: Option<i64> = digits.parse().ok();
    let unix_ms = match (digits.len(), number) {
        (10, Some(seconds)) => seconds * 1_000,
        (13, Some(ms)) => ms,
        (19, Some(ns)) => ns / 1_000_000,
        _ => {
            return Err(BadValue::refuse(
                format!("'{digits}' has {} digits, so its unit is not clear", digits.len()),
                "a unix time has 10 digits (seconds), 13 (ms) or 19 (ns), for example 1767225600",
            ));
        }
    };
    Ok(Time::At { unix_ms })
}

/// A date or a time without a zone means UTC, as in Kafka's tools; the machine's own zone would make a
/// script's outcome depend on where it runs.
fn in_utc(text: &str) -> Result<Timestamp, jiff::Error> {
    let civil: DateTime = text.parse()?;
    TimeZone::UTC.to_timestamp(civil)
}

fn bad_time(text: &str) -> BadValue {
    BadValue::new(text, "a time", TIME_FORMS, "2026-01-31T09:30:00Z")
}

/// A length of time such as `1h30m` or `PT1H30M`; a day has 24 hours, months and years are refused.
pub fn parse_duration(text: &str) -> Result<Duration, BadValue> {
    let bad = || BadValue::new(text, "a duration", DURATION_FORMS, "1h30m");
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(BadValue::refuse(
            format!("'{text}' has no unit"),
            format!("write ms, s, m, h or d behind it, for example {text}s"),
        ));
    }
    let span: Span = text.parse().map_err(|_| bad())?;
    if span.get_years() != 0 || span.get_months() != 0 {
        return Err(BadValue::refuse(
            format!("'{text}' holds months or years, whose length varies"),
            "count in days or hours, for example 30d",
        ));
    }
    let length: SignedDuration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| bad())?;
    let length = Duration::try_from(length).map_err(|_| bad())?;
    if length.as_millis() > i64::MAX as u128 { Err(bad()) } else { Ok(length) }
}

/// A moment for people and JSON alike: RFC 3339 in UTC with milliseconds; out of its range, the plain number.
pub fn format_time(unix_ms: i64) -> String {
    match Timestamp::from_millisecond(unix_ms) {
        Ok(at) => format!("{at:.3}"),
        Err(_) => unix_ms.to_string(),
    }
}

/// A length of time for people, two units at most: `0ms`, `850ms`, `12s`, `3m 20s`, `2h 5m`, `4d 1h`.
pub fn format_duration(ms: i64) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    let ms = ms.unsigned_abs();
    if ms < 1_000 {
        return format!("{sign}{ms}ms");
    }
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    let first = units.iter().position(|(_, size)| ms >= *size).unwrap_or(units.len() - 1);
    let (name, size) = units[first];
    let text = format!("{sign}{}{name}", ms / size);
    match units.get(first + 1) {
        Some((next, next_size)) if ms % size / next_size > 0 => {
            format!("{text} {}{next}", ms % size / next_size)
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests;
