#![allow(clippy::unwrap_used)]

use super::*;

const DOCUMENT: &str = r#" {"id": "e1", "n": 12.50, "a": {"b": [{"c": "x\ny"}, null]}, "odd.name": true,
    "é": 1, "twice": 1, "twice": 2, "esc\u0061ped": 3, "$": 4} "#;

#[test]
fn paths_find_values_as_written() {
    let table = [
        ("id", Some("\"e1\"")),
        ("$.id", Some("\"e1\"")),
        ("n", Some("12.50")),
        ("a.b[0].c", Some("\"x\\ny\"")),
        ("a[\"b\"][1]", Some("null")),
        ("[\"odd.name\"]", Some("true")),
        ("é", Some("1")),
        ("twice", Some("2")),
        ("escaped", Some("3")),
        ("$", Some("4")),
        ("a", Some("{\"b\": [{\"c\": \"x\\ny\"}, null]}")),
        ("missing", None),
        ("a.b[2]", None),
        ("id.x", None),
        ("id[0]", None),
        ("[0]", None),
        ("a.b.c", None),
    ];
    for (path, expect) in table {
        let path: JsonPath = path.parse().unwrap();
        let found = path.find(DOCUMENT).unwrap();
        assert_eq!(found.map(RawValue::get), expect, "{path}");
    }
}

#[test]
fn wrong_paths_are_refused() {
    for path in ["", ".", "a.", "a..b", "a[", "a[x]", "a[-1]", "a[]", "a[\"b]", "a]b", "[0]x", "$."] {
        assert!(path.parse::<JsonPath>().is_err(), "{path}");
    }
}

#[test]
fn the_whole_document_is_checked() {
    let deep = "[".repeat(100_000);
    for json in ["", "{", r#"{"id": 1} x"#, r#"{"id": 1,}"#, r#"{"id": "e1", "x": tru}"#, &deep] {
        assert!("id".parse::<JsonPath>().unwrap().find(json).is_err(), "{json:.40}");
    }
}

#[test]
fn text_is_unescaped() {
    let table = [(r#""abc""#, Some("abc")), (r#""a\"\u00e9""#, Some("a\"é")), ("12", None), ("null", None)];
    for (json, expect) in table {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        assert_eq!(as_text(raw).unwrap().as_deref(), expect);
    }
    let lone_surrogate: &RawValue = serde_json::from_str(r#""\ud800""#).unwrap();
    assert!(as_text(lone_surrogate).is_err());
}
