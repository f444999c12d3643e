#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn topics_with_partitions() {
    type Parts<'a> = Option<(&'a str, &'a [i32])>;
    let table: &[(&str, Parts<'_>)] = &[
        ("quakes", Some(("quakes", &[]))),
        ("quakes:0", Some(("quakes", &[0]))),
        ("quakes:2,0,2", Some(("quakes", &[0, 2]))),
        ("quakes:", None),
        ("quakes:0,", None),
        ("quakes:-1", None),
        (":0", None),
        ("a b:0", None),
    ];
    for (text, expect) in table {
        let expect = expect.map(|(topic, partitions)| TopicPartitions {
            topic: topic.into(),
            partitions: partitions.into(),
        });
        assert_eq!(text.parse().ok(), expect, "{text}");
    }
}

#[test]
fn names_and_numbers() {
    let long = "a".repeat(250);
    for name in ["", ".", "..", "a b", "é", "a/b", "a:b", &long] {
        assert!(topic_name(name).is_err(), "{name}");
    }
    for name in ["a", "A-1_b.c", "...", &long[1..]] {
        assert_eq!(topic_name(name).unwrap(), name);
    }
    for name in ["", " ", &"a".repeat(32_768)] {
        assert!(group_name(name).is_err());
    }
    for number in ["", "-1", "+1", "1.0", "x", "2147483648"] {
        assert!(partition(number).is_err(), "{number}");
    }
    for count in ["0", "10001", "-1", ""] {
        assert!(partition_count(count).is_err(), "{count}");
    }
    for count in ["0", "+5", "-5", "", "x"] {
        assert!(event_count(count).is_err(), "{count}");
    }
    for number in ["", "-1", "+1", "9223372036854775808"] {
        assert!(offset(number).is_err(), "{number}");
    }
    assert_eq!((shift("-5"), shift("+5"), shift("x").is_err()), (Ok(-5), Ok(5), true));
}

#[test]
fn settings_and_retention() {
    let setting = |key: &str, value: &str| Some(Setting { key: key.into(), value: value.into() });
    let table = [
        ("a=b", setting("a", "b")),
        ("a=", setting("a", "")),
        ("a=b=c", setting("a", "b=c")),
        ("a", None),
        ("=b", None),
    ];
    for (text, expect) in table {
        assert_eq!(text.parse().ok(), expect, "{text}");
    }
    let table = [
        ("forever", Some(Retention::Forever)),
        ("1h", Some(Retention::For { ms: 3_600_000 })),
        ("-1", None),
        ("3600", None),
    ];
    for (text, expect) in table {
        assert_eq!(text.parse().ok(), expect, "{text}");
    }
}
