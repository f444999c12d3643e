#![allow(clippy::unwrap_used)]

use super::*;

/// What a line becomes, in one text: `KEY=VALUE [name:value] @timestamp /partition`, `~` for null.
fn show(event: &Event<'_>) -> String {
    let bytes = |bytes: Option<&[u8]>| bytes.map_or("~".into(), |b| String::from_utf8_lossy(b).into_owned());
    let mut text = format!("{}={}", bytes(event.key.as_deref()), bytes(event.value.as_deref()));
    for header in event.headers.iter() {
        text += &format!(" [{}:{}]", header.name, bytes(header.value.as_deref()));
    }
    text += &event.timestamp_ms.map(|ms| format!(" @{ms}")).unwrap_or_default();
    text + &event.partition.map(|partition| format!(" /{partition}")).unwrap_or_default()
}

/// Parses one line: what it becomes, `skipped`, or the refusal.
fn check(parser: &EventParser, bytes: &[u8], expect: &str) {
    let line = Line { number: 7, bytes, next_position_bytes: 0, is_ended: true };
    let got = match parser.parse(&line) {
        Ok(Some(event)) => show(&event),
        Ok(None) => "skipped".to_string(),
        Err(failure) => failure.to_string(),
    };
    assert_eq!(got, expect);
}

fn parser(form: InputForm, key: KeyFrom) -> EventParser {
    EventParser::new(form, key, vec!["h: v".parse().unwrap()]).unwrap()
}

fn field(path: &str) -> KeyFrom {
    KeyFrom::Field(path.parse().unwrap())
}

#[test]
fn plain_lines_are_values_whatever_they_hold() {
    let plain = parser(InputForm::Lines, KeyFrom::Nowhere);
    check(&plain, b"hello", "~=hello [h:v]");
    check(&plain, b"", "~= [h:v]");
    check(&plain, b" \xff ", "~= \u{fffd}  [h:v]");
    let literal = parser(InputForm::Lines, KeyFrom::Literal(b"k".to_vec()));
    check(&literal, b"{", "k={ [h:v]");
    check(&literal, b"", "k= [h:v]");
}

#[test]
fn a_key_comes_from_a_field_of_the_line() {
    let id = parser(InputForm::Lines, field("id"));
    check(
        &id,
        br#"{"id": "uw61345682", "mag": 0.31}"#,
        r#"uw61345682={"id": "uw61345682", "mag": 0.31} [h:v]"#,
    );
    check(&id, br#"{"id": "a\"b"}"#, r#"a"b={"id": "a\"b"} [h:v]"#);
    check(&id, br#"{"id": 1.50}"#, r#"1.50={"id": 1.50} [h:v]"#);
    check(&id, br#"{"id": true}"#, r#"true={"id": true} [h:v]"#);
    check(&id, br#"{"id": null}"#, r#"~={"id": null} [h:v]"#);
    check(&id, br#"{"id": ""}"#, r#"={"id": ""} [h:v]"#);
    check(&id, b"", "skipped");
    check(&id, b" \t", "skipped");
    check(&id, br#"{"x": 1}"#, r#"line 7: no field 'id': {"x": 1}"#);
    check(
        &id,
        br#"{"id": {"a": 1}}"#,
        r#"line 7: the field 'id' is an object or an array: {"id": {"a": 1}}"#,
    );
    check(&id, b"hello", "line 7: not JSON (expected value, column 1): hello");
    check(
        &id,
        br#"{"id": "e1""#,
        "line 7: not JSON (EOF while parsing an object, column 11): {\"id\": \"e1\"",
    );
    check(&id, b"{\"id\": \"\xff\"}", "line 7: not UTF-8 from byte 9: {\"id\": \"\u{fffd}\"}");
    let long = format!("{{\"x\": \"{}\"}}", "y".repeat(1000));
    check(&id, long.as_bytes(), &format!("line 7: no field 'id': {{\"x\": \"{}…", "y".repeat(73)));
    check(
        &parser(InputForm::Lines, field("a.b[0].c")),
        br#"{"a":{"b":[{"c":7}]}}"#,
        r#"7={"a":{"b":[{"c":7}]}} [h:v]"#,
    );
}

#[test]
fn each_row_is_one_object() {
    let rows = parser(InputForm::JsonEachRow, KeyFrom::Nowhere);
    check(&rows, br#" {"a": 1.0} "#, r#"~= {"a": 1.0}  [h:v]"#);
    check(&rows, b"", "skipped");
    check(&rows, b"[1]", "line 7: JSON, but no object: [1]");
    check(&rows, b"{} {}", "line 7: not JSON (trailing characters, column 4): {} {}");
    check(&rows, b"{,}", "line 7: not JSON (key must be a string, column 2): {,}");
    check(&parser(InputForm::JsonEachRow, field("a")), br#"{"a": 1}"#, r#"1={"a": 1} [h:v]"#);
}

#[test]
fn an_envelope_holds_the_parts_of_an_event() {
    let envelope = parser(InputForm::JsonEnvelope, KeyFrom::Nowhere);
    check(&envelope, br#"{"key": "k", "value": "v"}"#, "k=v [h:v]");
    check(&envelope, br#"{"value": {"a": 1.50}}"#, r#"~={"a": 1.50} [h:v]"#);
    check(&envelope, br#"{"key": null, "value": null}"#, "~=~ [h:v]");
    check(&envelope, br#"{"key_base64": "aGk=", "value_base64": ""}"#, "hi= [h:v]");
    check(
        &envelope,
        br#"{"topic": "t", "offset": 4, "partition": 2, "timestamp_ms": 9, "key": 5, "value": "x\ny"}"#,
        "5=x\ny [h:v] @9 /2",
    );
    check(
        &envelope,
        br#"{"value": "v", "headers": [["a", "1"], ["a", null], ["b", {"base64": "aGk="}]]}"#,
        "~=v [h:v] [a:1] [a:~] [b:hi]",
    );
    check(&envelope, br#"{"value": "v", "headers": {"a": "1"}}"#, "~=v [h:v] [a:1]");
    check(&envelope, b"", "skipped");
    let refusals = [
        (r#"{"key": "k"}"#, "an envelope needs a value, or null for none"),
        (r#"{"vlaue": "v"}"#, "an envelope has no 'vlaue'"),
        (r#"{"value": "v", "value_base64": "dg=="}"#, "both value and value_base64"),
        (r#"{"value_base64": 1}"#, "value_base64 is no text"),
        (r#"{"value": "v", "partition": -1}"#, "partition is not a number from 0 to 2147483647"),
        (r#"{"value": "v", "partition": 4294967296}"#, "partition is not a number from 0 to 2147483647"),
        (r#"{"value": "v", "timestamp_ms": "now"}"#, "timestamp_ms is not a whole number"),
        (r#"{"value": "v", "headers": [["a"]]}"#, "headers are not a list of [\"name\", \"text\"]"),
        (r#"{"value": "v", "headers": [["a", 1]]}"#, "headers are not a list of [\"name\", \"text\"]"),
        (r#"{"value": "\ud800"}"#, "value holds an escape that is no character"),
        ("[]", "JSON, but no object"),
        ("7", "JSON, but no object"),
    ];
    for (json, what) in refusals {
        check(&envelope, json.as_bytes(), &format!("line 7: {what}: {json}"));
    }
    assert!(EventParser::new(InputForm::JsonEnvelope, field("id"), vec![]).is_err());
}

#[test]
fn headers_of_the_flag() {
    let table = [
        ("a:b", Some(("a", "b"))),
        ("a: b", Some(("a", "b"))),
        ("a:", Some(("a", ""))),
        ("a:b:c", Some(("a", "b:c"))),
        ("a", None),
        (":b", None),
        ("", None),
    ];
    for (text, expect) in table {
        let expect = expect.map(|(name, value)| Header { name: name.into(), value: Some(value.into()) });
        assert_eq!(text.parse::<Header>().ok(), expect, "{text}");
    }
}

/// Reads `input` with lines of at most 5 bytes: `number:line>next position` each, `-` for a last line without
/// its end, or the refusal.
fn lines(input: &str) -> Vec<String> {
    let mut reader = LineReader::new(input.as_bytes()).with_limit(5);
    let mut shown = Vec::new();
    loop {
        match reader.next_line() {
            Ok(Some(line)) => {
                let end = if line.is_ended { "" } else { "-" };
                let text = String::from_utf8_lossy(line.bytes);
                shown.push(format!("{}:{text}{end}>{}", line.number, line.next_position_bytes));
            }
            Ok(None) => return shown,
            Err(failure) => {
                shown.push(failure.to_string());
                return shown;
            }
        }
    }
}

#[test]
fn lines_end_with_lf_or_cr_lf_and_have_a_limit() {
    let too_long = "line 1 is longer than 5 bytes";
    let table: &[(&str, &[&str])] = &[
        ("", &[]),
        ("a\nb\n", &["1:a>2", "2:b>4"]),
        ("a\nb", &["1:a>2", "2:b->3"]),
        ("a\r\nb\r\n", &["1:a>3", "2:b>6"]),
        ("a\rb\n", &["1:a\rb>4"]),
        ("a\r", &["1:a\r->2"]),
        ("\n\n", &["1:>1", "2:>2"]),
        ("12345\n12345\r\n12345", &["1:12345>6", "2:12345>13", "3:12345->18"]),
        ("123456\n", &[too_long]),
        ("123456\r\n", &[too_long]),
        ("123456", &[too_long]),
        ("12345\r", &[too_long]),
        ("1234567890123\n", &[too_long]),
        ("1\n1234567\n", &["1:1>2", "line 2 is longer than 5 bytes"]),
    ];
    for (input, expect) in table {
        assert_eq!(lines(input), *expect, "{input:?}");
    }
}

#[test]
fn a_reader_goes_on_where_another_stopped() {
    let input = "one\ntwo\nthree\n";
    let mut first = LineReader::new(input.as_bytes());
    let line = first.next_line().unwrap().unwrap();
    let rest = &input.as_bytes()[usize::try_from(line.next_position_bytes).unwrap()..];
    let mut second = LineReader::resume(rest, line.next_position_bytes, line.number);
    let line = second.next_line().unwrap().unwrap();
    assert_eq!((line.number, line.bytes, line.next_position_bytes), (2, &b"two"[..], 8));
}
