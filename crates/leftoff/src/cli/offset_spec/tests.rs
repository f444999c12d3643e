#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::time::Duration;

use super::Point::*;
use super::*;

const DAY_MS: i64 = 86_400_000;
const JAN_1: i64 = 1_767_225_600_000;

fn o(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

fn at(unix_ms: i64) -> Point {
    Since(Time::At { unix_ms })
}

fn ago(hours: u64) -> Point {
    Since(Time::Ago(Duration::from_secs(hours * 3600)))
}

fn check(text: &str, from: Point, until: Option<Point>) {
    assert_eq!(text.parse::<OffsetSpec>(), Ok(OffsetSpec { from, until }), "{text}");
}

fn refused(text: &str, problem: &str) {
    let error = text.parse::<OffsetSpec>().expect_err(text);
    assert_eq!(error.problem(), problem);
    assert!(!error.hint().is_empty());
}

#[test]
fn points() {
    for word in ["start", "beginning", "oldest", "earliest"] {
        check(word, Start, None);
    }
    for word in ["end", "newest", "latest"] {
        check(word, End, None);
    }
    check("stored", Stored, None);
    check("0", At(o(0)), None);
    check("42", At(o(42)), None);
    check("9223372036854775807", At(o(i64::MAX)), None);
    check("+10", AfterStart(10), None);
    check("-10", BeforeEnd(10), None);
    check("@1767225600", at(JAN_1), None);
    check("@1767225600000", at(JAN_1), None);
    check("@1767225600000000000", at(JAN_1), None);
    check("@2026-01-01", at(JAN_1), None);
    check("@2026-01-01T00:00:00Z", at(JAN_1), None);
    check("@2026-01-01T01:00:00+01:00", at(JAN_1), None);
    check("@2026-01-01T00:00", at(JAN_1), None);
    check("@-1h", ago(1), None);
    check("@now", ago(0), None);
    check("s@5", at(5), None);
}

#[test]
fn ranges() {
    check("100:200", At(o(100)), Some(At(o(200))));
    check("7:7", At(o(7)), Some(At(o(7))));
    check(":end", Start, Some(End));
    check(":200", Start, Some(At(o(200))));
    check("100:", At(o(100)), Some(End));
    check("start:end", Start, Some(End));
    check("stored:end", Stored, Some(End));
    check("-10:-5", BeforeEnd(10), Some(BeforeEnd(5)));
    check("+5:+10", AfterStart(5), Some(AfterStart(10)));
    check("@-1h:", ago(1), Some(End));
    check("@-48h:-24h", ago(48), Some(ago(24)));
    check("@-48h:@-24h", ago(48), Some(ago(24)));
    check("@-1h:end", ago(1), Some(End));
    check("@-1h:500", ago(1), Some(At(o(500))));
    check("@2026-01-01:2026-01-02", at(JAN_1), Some(at(JAN_1 + DAY_MS)));
    check("@2026-01-01T00:00:00Z:2026-01-02T00:00:00Z", at(JAN_1), Some(at(JAN_1 + DAY_MS)));
    check("@2026-01-01T00:00:2026-01-02T00:00", at(JAN_1), Some(at(JAN_1 + DAY_MS)));
    check("@2026-01-01T01:00:00+01:00:@2026-01-02T00:00:00Z", at(JAN_1), Some(at(JAN_1 + DAY_MS)));
    check("@1767225600:1767312000", at(JAN_1), Some(at(JAN_1 + DAY_MS)));
    check("@2026-01-01T00:00:00Z:", at(JAN_1), Some(End));
    check("e@5", Start, Some(at(5)));
}

#[test]
fn refusals() {
    refused("", "'' is not an offset");
    refused(":", "':' is not an offset");
    refused("abc", "'abc' is not an offset");
    refused("Start", "'Start' is not an offset");
    refused("-", "'-' is not an offset");
    refused("+-5", "'+-5' is not an offset");
    refused("1.5", "'1.5' is not an offset");
    refused("-1h", "'-1h' is not an offset");
    refused("1:2:3", "'1:2:3' is not an offset");
    refused("5:x", "'5:x' is not an offset");
    refused("ä", "'ä' is not an offset");
    refused("9223372036854775808", "'9223372036854775808' is above the largest offset");
    refused("@", "'' is not a time");
    refused("@soon", "'soon' is not a time");
    refused("@123", "'123' has 3 digits, so its unit is not clear");
    refused("5:@soon", "'soon' is not a time");
    refused("s@x", "'s@x' is not an offset");
    refused("e@-1h", "'e@-1h' is not an offset");
    refused("200:100", "'200:100' ends before it starts");
    refused("-5:-10", "'-5:-10' ends before it starts");
    refused("@-1h:-2h", "'@-1h:-2h' ends before it starts");
    refused("@2026-01-02:2026-01-01", "'@2026-01-02:2026-01-01' ends before it starts");
    refused("end:start", "'end:start' ends before it starts");
}

#[test]
fn two_flags_of_kcat_make_one_range() {
    let specs = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
    let range = OffsetSpec { from: at(1), until: Some(at(9)) };
    assert_eq!(OffsetSpec::join(&specs(&["s@1", "e@9"])), Ok(Some(range)));
    assert_eq!(OffsetSpec::join(&specs(&["e@9", "s@1"])), Ok(Some(range)));
    assert_eq!(OffsetSpec::join(&specs(&["5"])), Ok(Some(OffsetSpec::from(At(o(5))))));
    assert_eq!(OffsetSpec::join(&[]), Ok(None));
    for wrong in [&["5", "9"][..], &["e@9", "e@9"], &["1:2", "e@9"], &["1", "2", "3"]] {
        assert!(OffsetSpec::join(&specs(wrong)).is_err(), "{wrong:?}");
    }
}

#[test]
fn points_resolve_against_the_partition() {
    let bounds = Bounds { start: o(100), end: o(200), stored: Committed::from_wire(150) };
    let table = [
        ("start", Some(100)),
        ("end", Some(200)),
        ("stored", Some(150)),
        ("7", Some(7)),
        ("500", Some(500)),
        ("+10", Some(110)),
        ("-10", Some(190)),
        ("-1000", Some(100)),
        ("+9223372036854775807", Some(i64::MAX)),
        ("@-1h", Some(6_400_000)),
    ];
    for (text, expect) in table {
        let point: Point = text.parse().unwrap();
        let got = point.resolve(bounds, 10_000_000, |ms| Ok::<_, Infallible>(o(ms)));
        assert_eq!(got, Ok(expect.map(o)), "{text}");
    }
    let none = Stored.resolve(Bounds { stored: None, ..bounds }, 0, |ms| Ok::<_, Infallible>(o(ms)));
    assert_eq!(none, Ok(None));
}

#[test]
fn a_point_prints_as_it_is_read() {
    for text in ["start", "end", "stored", "42", "+10", "-10", "@2026-01-01T00:00:00.000Z", "@-5ms"] {
        assert_eq!(text.parse::<Point>().unwrap().to_string(), text);
    }
}
