//! The grammar of `-o`: where to start reading and where to stop. It reads what users of rpk, kcat and Kafka
//! write.

use std::fmt;
use std::str::FromStr;

use leftoff_wire::{Committed, Offset};

use super::bad_value::BadValue;
use super::time::Time;

/// What the help of `-o` says.
pub const OFFSET_FORMS: &str = "\
start | end | stored  the first event, behind the last, where the group stands
                      (also beginning, oldest, earliest; newest, latest)
N                     offset N
+N | -N               N offsets after the start | before the end
@T                    the first event at or after time T
A:B | A: | :B         from A up to but not including B; from A to the end as it is now
                      and no further; from the start up to B. A and B are any of the
                      above: 100:200, :end, @2026-01-31:@2026-02-01, @-1h:
s@MS | e@MS           start | stop at unix milliseconds (kcat)
T is RFC 3339, a date (UTC), unix s, ms or ns (10, 13, 19 digits), or -1h30m for ago";

const FORMS: &str = "start, end, stored, N, +N, -N, @TIME, or a range A:B of them";
const EXAMPLE: &str = "-o 42, -o -10, -o @-1h or -o 100:200";

/// One place in a partition, as asked for; [`Point::resolve`] makes a number of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The log start offset.
    Start,
    /// Behind the last event that may be read (the high watermark).
    End,
    /// The next offset of the group.
    Stored,
    /// The offset itself.
    At(Offset),
    /// So many offsets after the log start offset.
    AfterStart(u64),
    /// So many offsets before the end, but not before the log start offset.
    BeforeEnd(u64),
    /// The first event whose timestamp is not before the time.
    Since(Time),
}

/// Where reading starts and, for a range, stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetSpec {
    /// The first place to read.
    pub from: Point,
    /// The first place not to read; without it reading goes on as the other flags say.
    pub until: Option<Point>,
}

/// The numbers of one partition that points are resolved against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The log start offset.
    pub start: Offset,
    /// The high watermark.
    pub end: Offset,
    /// Where the group goes on, if there is a group and it has an offset.
    pub stored: Option<Committed>,
}

impl Point {
    /// The offset meant, or `None` for [`Point::Stored`] where nothing is stored. An offset outside the
    /// bounds is returned as asked for: whether to refuse it is the caller's decision, never a silent jump.
    /// `by_time` finds the first offset at or after a moment in unix milliseconds (the end, if there is
    /// none).
    pub fn resolve<E>(
        self,
        bounds: Bounds,
        now_ms: i64,
        by_time: impl FnOnce(i64) -> Result<Offset, E>,
    ) -> Result<Option<Offset>, E> {
        Ok(match self {
            Point::Start => Some(bounds.start),
            Point::End => Some(bounds.end),
            Point::Stored => bounds.stored.map(Committed::next),
            Point::At(offset) => Some(offset),
            Point::AfterStart(count) => Some(bounds.start.checked_plus(count).unwrap_or(LAST)),
            Point::BeforeEnd(count) => Some(minus(bounds.end, count).max(bounds.start)),
            Point::Since(time) => Some(by_time(time.unix_ms(now_ms))?),
        })
    }
}

/// The largest offset there is.
const LAST: Offset = Offset::new(i64::MAX).expect("not negative");

fn minus(offset: Offset, count: u64) -> Offset {
    offset.get().checked_sub_unsigned(count).and_then(Offset::new).unwrap_or(Offset::ZERO)
}

impl OffsetSpec {
    /// From a point on, with no end of its own.
    pub const fn from(point: Point) -> OffsetSpec {
        OffsetSpec { from: point, until: None }
    }

    /// Joins kcat's pair `-o s@MS -o e@MS`, which comes as two flags; any other pair is refused.
    pub fn join(specs: &[OffsetSpec]) -> Result<Option<OffsetSpec>, BadValue> {
        match specs {
            [] => Ok(None),
            [only] => Ok(Some(*only)),
            [a, b] if a.until.is_none() && b.is_only_a_stop() => Ok(Some(OffsetSpec { from: a.from, ..*b })),
            [a, b] if b.until.is_none() && a.is_only_a_stop() => Ok(Some(OffsetSpec { from: b.from, ..*a })),
            _ => Err(BadValue::refuse(
                "several -o do not make one range",
                format!("give one, for example {EXAMPLE}"),
            )),
        }
    }

    fn is_only_a_stop(&self) -> bool {
        self.from == Point::Start && matches!(self.until, Some(Point::Since(_)))
    }
}

impl FromStr for OffsetSpec {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<OffsetSpec, BadValue> {
        if let Some(ms) = text.strip_prefix("s@") {
            return Ok(OffsetSpec::from(kcat_time(text, ms)?));
        }
        if let Some(ms) = text.strip_prefix("e@") {
            return Ok(OffsetSpec { from: Point::Start, until: Some(kcat_time(text, ms)?) });
        }
        // A time holds colons too, so a text is a single point if it can be, and else a range at the one
        // colon that leaves a point on both sides.
        let single = text.parse::<Point>();
        if let Ok(point) = single {
            return Ok(OffsetSpec::from(point));
        }
        let splits: Vec<(&str, &str)> =
            text.match_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..])).collect();
        let mut ranges = splits.iter().filter_map(|(from, until)| range(from, until));
        match (ranges.next(), ranges.next()) {
            (Some(range), None) => checked(text, range),
            (Some(_), Some(_)) => Err(BadValue::refuse(
                format!("'{text}' can be split into a range in several ways"),
                "write the times with seconds and Z, for example @2026-01-31T09:30:00Z:@-1h",
            )),
            (None, _) => Err(explain(text, single.err(), &splits)),
        }
    }
}

/// `from:until`, where either may be left out; in `@T1:T2` the second `@` may be left out, too.
fn range(from: &str, until: &str) -> Option<OffsetSpec> {
    if from.is_empty() && until.is_empty() {
        return None;
    }
    let first = if from.is_empty() { Point::Start } else { from.parse().ok()? };
    let last = match until {
        "" => Point::End,
        _ if from.starts_with('@') && !until.starts_with('@') => until_of_time(until)?,
        _ => until.parse().ok()?,
    };
    Some(OffsetSpec { from: first, until: Some(last) })
}

fn until_of_time(until: &str) -> Option<Point> {
    match until.parse::<Time>() {
        Ok(time) => Some(Point::Since(time)),
        Err(_) => until.parse().ok(),
    }
}

/// A range whose end lies before its start by its own words is a slip, not a wish to read nothing.
fn checked(text: &str, range: OffsetSpec) -> Result<OffsetSpec, BadValue> {
    let backwards = match (range.from, range.until) {
        (Point::At(from), Some(Point::At(until))) => until < from,
        (Point::AfterStart(from), Some(Point::AfterStart(until))) => until < from,
        (Point::BeforeEnd(from), Some(Point::BeforeEnd(until))) => until > from,
        (Point::Since(from), Some(Point::Since(until))) => match (from, until) {
            (Time::At { unix_ms: from }, Time::At { unix_ms: until }) => until < from,
            (Time::Ago(from), Time::Ago(until)) => until > from,
            _ => false,
        },
        (Point::End, Some(Point::Start)) => true,
        _ => false,
    };
    if backwards {
        return Err(BadValue::refuse(
            format!("'{text}' ends before it starts"),
            "write the earlier place first, for example 100:200",
        ));
    }
    Ok(range)
}

/// The most telling refusal: that of the one part that is wrong, or of the whole.
fn explain(text: &str, single: Option<BadValue>, splits: &[(&str, &str)]) -> BadValue {
    let of_time = |part: &str| part.strip_prefix('@').and_then(|time| time.parse::<Time>().err());
    let of_part = splits.iter().find_map(|(from, until)| of_time(from).or_else(|| of_time(until)));
    let of_whole = single.filter(|_| text.starts_with('@') || splits.is_empty());
    of_whole.or(of_part).unwrap_or_else(|| bad(text))
}

impl FromStr for Point {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Point, BadValue> {
        let count = |digits: &str| number(text, digits);
        match text {
            "start" | "beginning" | "oldest" | "earliest" => Ok(Point::Start),
            "end" | "newest" | "latest" => Ok(Point::End),
            "stored" => Ok(Point::Stored),
            _ => match (text.as_bytes().first(), text.get(1..)) {
                (Some(b'@'), Some(time)) => time.parse().map(Point::Since),
                (Some(b'+'), Some(digits)) => {
                    count(digits).map(|count| Point::AfterStart(count.unsigned_abs()))
                }
                (Some(b'-'), Some(digits)) => {
                    count(digits).map(|count| Point::BeforeEnd(count.unsigned_abs()))
                }
                _ => {
                    count(text).and_then(|number| Offset::new(number).ok_or_else(|| bad(text))).map(Point::At)
                }
            },
        }
    }
}

fn number(whole: &str, digits: &str) -> Result<i64, BadValue> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad(whole));
    }
    digits.parse().map_err(|_| {
        BadValue::refuse(
            format!("'{whole}' is above the largest offset"),
            format!("use at most {}", i64::MAX),
        )
    })
}

/// kcat counts in milliseconds whatever the number of digits.
fn kcat_time(whole: &str, ms: &str) -> Result<Point, BadValue> {
    number(whole, ms).map(|unix_ms| Point::Since(Time::At { unix_ms }))
}

fn bad(text: &str) -> BadValue {
    BadValue::new(text, "an offset", FORMS, EXAMPLE)
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::Start => f.write_str("start"),
            Point::End => f.write_str("end"),
            Point::Stored => f.write_str("stored"),
            Point::At(offset) => write!(f, "{offset}"),
            Point::AfterStart(count) => write!(f, "+{count}"),
            Point::BeforeEnd(count) => write!(f, "-{count}"),
            Point::Since(Time::At { unix_ms }) => write!(f, "@{}", super::time::format_time(*unix_ms)),
            Point::Since(Time::Ago(ago)) => write!(f, "@-{}ms", ago.as_millis()),
        }
    }
}

#[cfg(test)]
mod tests;
