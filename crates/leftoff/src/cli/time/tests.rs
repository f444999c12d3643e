#![allow(clippy::unwrap_used)]

use super::*;

const NOW_MS: i64 = 1_800_000_000_000;

/// Parses `text` and gives unix milliseconds, or the problem named in the refusal.
fn check(text: &str, expect: Result<i64, &str>) {
    let got = text.parse::<Time>().map(|time| time.unix_ms(NOW_MS));
    match (got, expect) {
        (Ok(got), Ok(expect)) => assert_eq!(got, expect, "{text}"),
        (Err(error), Err(expect)) => assert_eq!(error.problem(), expect, "{text}"),
        (got, expect) => panic!("{text}: got {got:?}, expected {expect:?}"),
    }
}

#[test]
fn times() {
    check("2026-01-31T09:30:00Z", Ok(1_769_851_800_000));
    check("2026-01-31T09:30:00.250Z", Ok(1_769_851_800_250));
    check("2026-01-31T10:30:00+01:00", Ok(1_769_851_800_000));
    check("2026-01-31 09:30:00Z", Ok(1_769_851_800_000));
    check("2026-01-31T09:30", Ok(1_769_851_800_000));
    check("2026-01-31 09:30:00", Ok(1_769_851_800_000));
    check("2026-01-31", Ok(1_769_817_600_000));
    check("1767225600", Ok(1_767_225_600_000));
    check("1767225600123", Ok(1_767_225_600_123));
    check("1767225600123456789", Ok(1_767_225_600_123));
    check("now", Ok(NOW_MS));
    check("-1h", Ok(NOW_MS - 3_600_000));
    check("-PT1H30M", Ok(NOW_MS - 5_400_000));
    check("-1d", Ok(NOW_MS - 86_400_000));
    check("1767225600123456", Err("'1767225600123456' has 16 digits, so its unit is not clear"));
    check("20260131", Err("'20260131' has 8 digits, so its unit is not clear"));
    check("0", Err("'0' has 1 digits, so its unit is not clear"));
    check("9999999999999999999", Err("'9999999999999999999' has 19 digits, so its unit is not clear"));
    check("yesterday", Err("'yesterday' is not a time"));
    check("2026-02-30", Err("'2026-02-30' is not a time"));
    check("", Err("'' is not a time"));
    check("1h", Err("'1h' is not a time"));
    check("--1h", Err("'-1h' is not a duration"));
}

#[test]
fn durations() {
    let table: &[(&str, Result<u64, &str>)] = &[
        ("1h30m", Ok(5_400_000)),
        ("90s", Ok(90_000)),
        ("250ms", Ok(250)),
        ("7d", Ok(7 * 86_400_000)),
        ("2w", Ok(14 * 86_400_000)),
        ("1.5h", Ok(5_400_000)),
        ("1h 30m", Ok(5_400_000)),
        ("PT1H30M", Ok(5_400_000)),
        ("P7D", Ok(7 * 86_400_000)),
        ("0s", Ok(0)),
        ("30", Err("'30' has no unit")),
        ("1mo", Err("'1mo' holds months or years, whose length varies")),
        ("P1Y", Err("'P1Y' holds months or years, whose length varies")),
        ("-1h", Err("'-1h' is not a duration")),
        ("", Err("'' is not a duration")),
        ("soon", Err("'soon' is not a duration")),
    ];
    for (text, expect) in table {
        match (parse_duration(text), expect) {
            (Ok(got), Ok(ms)) => assert_eq!(got.as_millis(), u128::from(*ms), "{text}"),
            (Err(error), Err(problem)) => assert_eq!(error.problem(), *problem),
            (got, expect) => panic!("{text}: got {got:?}, expected {expect:?}"),
        }
    }
}

#[test]
fn a_refusal_carries_an_example() {
    for error in ["x".parse::<Time>().unwrap_err(), parse_duration("x").unwrap_err()] {
        assert!(error.hint().contains("for example"), "{error}");
    }
}

#[test]
fn times_are_shown_in_utc_with_milliseconds() {
    let table = [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_517_363_399_650, "2018-01-31T01:49:59.650Z"),
        (i64::MAX, "9223372036854775807"),
    ];
    for (ms, expect) in table {
        assert_eq!(format_time(ms), expect);
    }
}

#[test]
fn durations_are_shown_in_two_units() {
    let table = [
        (0, "0ms"),
        (850, "850ms"),
        (12_000, "12s"),
        (200_000, "3m 20s"),
        (3_600_000, "1h"),
        (7_505_000, "2h 5m"),
        (349_200_000, "4d 1h"),
        (-1_500, "-1s"),
        (i64::MIN, "-106751991167d 7h"),
    ];
    for (ms, expect) in table {
        assert_eq!(format_duration(ms), expect);
    }
}
