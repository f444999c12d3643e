#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn places_of_this_version() {
    let table = [
        ("stdout", Place::Stdout, "stdout"),
        ("-", Place::Stdout, "stdout"),
        ("file:alerts.ndjson", Place::File("alerts.ndjson".into()), "file:alerts.ndjson"),
        ("sqlite:/a/b.db", Place::Sqlite { path: "/a/b.db".into(), table: None }, "sqlite:/a/b.db"),
        (
            "sqlite:b.db?table=my t",
            Place::Sqlite { path: "b.db".into(), table: Some("my t".to_owned()) },
            "sqlite:b.db?table=my t",
        ),
        ("topic:copies", Place::Topic("copies".to_owned()), "topic:copies"),
        ("file:/a b/c:d", Place::File("/a b/c:d".into()), "file:/a b/c:d"),
    ];
    for (text, expect, shown) in table {
        let place: Place = text.parse().unwrap();
        assert_eq!(place, expect);
        assert_eq!(place.to_string(), shown);
    }
}

#[test]
fn other_places_are_refused_and_no_refusal_repeats_a_password() {
    let table = [
        ("alerts.ndjson", "'alerts.ndjson' is not a place"),
        ("file:", "'file:' names no file"),
        ("sqlite:", "'sqlite:' names no file"),
        ("sqlite::memory:", "'sqlite::memory:' names no file"),
        ("sqlite:a.db?password=hunter2", "'password=***' is not a parameter of sqlite:"),
        ("sqlite:a.db?table=", "'table=' is not a parameter of sqlite:"),
        (
            "postgres://u:hunter2@h/db?sslmode=prefer",
            "sslmode=prefer would send in clear to another machine if that has no TLS: write verify-full, verify-ca or require, or disable if clear is meant",
        ),
        (
            "postgresql://u:hunter2@localhost/db?sslmode=allow",
            "sslmode= takes disable, prefer, require, verify-ca or verify-full",
        ),
        (
            "postgres://u:hunter2/@localhost/db",
            "a '@', ':', '/' or '?' in a user, password or parameter is written %40, %3A, %2F or %3F",
        ),
        ("topic:a b", "'a b' is not a topic name"),
        ("topic:", "'' is not a topic name"),
        ("http://h/?token=hunter2", "places of the kind 'http:' are not in this version"),
        ("https://h/", "places of the kind 'https:' are not in this version"),
        ("cmd:curl -u u:hunter2", "places of the kind 'cmd:' are not in this version"),
        ("postgress://u:hunter2@h/db", "'postgress://u:***@h/db' is not a place"),
        ("mysql://u:hunter2@h/db", "'mysql://u:***@h/db' is not a place"),
        ("", "'' is not a place"),
    ];
    for (text, problem) in table {
        let error = text.parse::<Place>().unwrap_err();
        assert_eq!(error.problem(), problem);
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn passwords_are_hidden() {
    let table = [
        ("postgres://u:p@h:5432/db", "postgres://u:***@h:5432/db"),
        ("postgres://u@h:5432/db", "postgres://u@h:5432/db"),
        ("postgres://h:5432/db", "postgres://h:5432/db"),
        ("postgres://u:p@ss/wo?rd@h/db", "postgres://u:***@h/db"),
        (
            "postgres://h/db?user=u&password=p&sslmode=require",
            "postgres://h/db?user=u&password=***&sslmode=require",
        ),
        ("postgres://h/db?sslpassword=p", "postgres://h/db?sslpassword=***"),
        ("host=h password=p user=u", "host=h password=*** user=u"),
        ("http://h/hook?API_KEY=p", "http://h/hook?API_KEY=***"),
        ("u:p@h", "u:***@h"),
        ("file:alerts.ndjson", "file:alerts.ndjson"),
    ];
    for (text, expect) in table {
        assert_eq!(hide_password(text), expect);
    }
}
