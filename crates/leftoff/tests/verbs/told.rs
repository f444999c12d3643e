//! What a run tells to machines: metrics, and lines of JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::Value;

use crate::process::{Background, folder, pid_in, until};
use crate::script::{check_in, leftoff};

/// Series by name and labels, each checked against the rules of the format.
pub type Series = BTreeMap<String, f64>;

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':')
}

/// OpenMetrics 1.0, the part of it that is used: TYPE and HELP before their samples, each name once, counters that end in
/// `_total`, units that end the name, labels in quotes, no series twice, `# EOF` at the end and nothing behind it.
pub fn parse(text: &str) -> Series {
    let body = text.strip_suffix("# EOF\n").expect("it ends with # EOF");
    let (mut types, mut series) = (BTreeMap::new(), Series::new());
    let mut at = String::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (kind, name, text) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            assert!(is_name(name) && !text.is_empty(), "{line}");
            match kind {
                "HELP" => assert!(!types.contains_key(name) && name != at, "{line}: twice"),
                "TYPE" => {
                    assert!(["counter", "gauge", "histogram"].contains(&text), "{line}");
                    assert!(types.insert(name.to_owned(), text.to_owned()).is_none(), "{line}: twice");
                    at = name.to_owned();
                }
                "UNIT" => assert!(name == at && name.ends_with(&format!("_{text}")), "{line}"),
                other => panic!("{other}: {line}"),
            }
            continue;
        }
        let (key, value) = line.rsplit_once(' ').expect(line);
        let (name, labels) = key.split_once('{').unwrap_or((key, r#"a="b"}"#));
        let suffixes: &[&str] = match types[&at].as_str() {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_count", "_sum"],
            _ => &[""],
        };
        assert!(suffixes.contains(&name.strip_prefix(&at).expect(line)), "{line}");
        let labels = labels.strip_suffix('}').expect(line);
        let names: Vec<&str> =
            labels.split("\",").map(|label| label.split_once("=\"").expect(line).0).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{line}");
        assert!(names.iter().all(|name| is_name(name)) && labels.ends_with('"'), "{line}");
        assert!(series.insert(key.to_owned(), value.parse().expect(line)).is_none(), "{line}: twice");
    }
    series
}

/// The body of what is answered.
pub fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    body.to_owned()
}

/// Where the run says that its metrics are.
fn address(dir: &Path) -> String {
    until("the address", || {
        let text = std::fs::read_to_string(dir.join("stderr")).ok()?;
        let (_, rest) = text.split_once("metrics are at http://")?;
        Some(rest.split_once("/metrics\n")?.0.to_owned())
    })
}

#[test]
fn metrics_say_what_is_done_what_is_left_and_what_holds_it_up() {
    let dir = folder(1);
    check_in(&dir, "$ topics alter t -q -c retention.bytes=1000000 -c retention.ms=3600000");
    let args = "run -t t -g g --out file:out --metrics-listen 127.0.0.1:0 -- sh deaf.sh pid";
    let mut runner = Background::start(dir.path(), args);
    let address = address(dir.path());
    pid_in(&dir.path().join("pid"));
    assert_eq!(get(&address, "/healthz"), "ok\n");
    let key = |name: &str| format!(r#"leftoff_{name}{{group="g",topic="t",partition="0"}}"#);
    let series = until("an event in hand", || {
        let series = parse(&get(&address, "/metrics"));
        series.contains_key(&key("blocking_event_seconds")).then_some(series)
    });
    let expect = [
        (r#"leftoff_events_handled_total{group="g"}"#.to_owned(), 0.0),
        (r#"leftoff_events_in_flight{group="g"}"#.to_owned(), 1.0),
        (key("blocking_event_offset"), 0.0),
        (key("handled_next_offset"), 0.0),
        (key("log_start_offset"), 0.0),
        (key("next_offset"), 0.0),
        (key("end_offset"), 10.0),
        (key("lag_offsets"), 10.0),
        (key("retention_left_bytes"), 1_000_000.0),
        (key("retention_left_seconds"), 3600.0),
    ];
    for (name, value) in expect {
        assert_eq!(series.get(&name), Some(&value), "{name} in {series:#?}");
    }
    for name in
        [key("lag_seconds"), key("stuck_seconds"), r#"leftoff_last_save_age_seconds{group="g"}"#.to_owned()]
    {
        assert!(series[&name] >= 0.0, "{name}");
    }
    runner.signal("-KILL");
    runner.end();
    crate::process::kill("-KILL", pid_in(&dir.path().join("pid")));

    std::fs::write(dir.path().join("stderr"), "").unwrap();
    let args = "run -t t -g g --out file:out --metrics-listen 127.0.0.1:0 -- sh copy.sh";
    let mut runner = Background::start(dir.path(), args);
    let address = self::address(dir.path());
    let series = until("the end", || {
        let series = parse(&get(&address, "/metrics"));
        (series.get(&key("next_offset")) == Some(&10.0)).then_some(series)
    });
    assert_eq!(series[r#"leftoff_records_written_total{group="g"}"#], 10.0);
    assert_eq!(
        (series[&key("lag_offsets")], series[&key("lag_seconds")], series[&key("stuck_seconds")]),
        (0.0, 0.0, 0.0)
    );
    assert!(!series.contains_key(&key("retention_left_bytes")), "nothing unread");
    runner.signal("-INT");
    assert_eq!(runner.end(), Some(0));
}

#[test]
fn an_address_that_cannot_be_used_is_named() {
    let dir = folder(1);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    check_in(
        &dir,
        &format!(
            "
            $ run -t t -g g --metrics-listen {at} -- sh copy.sh
            ! error: cannot listen on {at} for --metrics-listen: [..]
            ! hint: name another port, or 0 for any that is free
            = 3
            $ run -t t -g g --metrics-listen 9464 -- sh copy.sh
            ! error: --metrics-listen <ADDR>: '9464' is not an address to listen on
            ! hint: expected HOST:PORT, for example 127.0.0.1:9464
            = 2
            "
        ),
    );
}

#[test]
fn every_line_is_json_where_that_is_asked_for() {
    let dir = folder(1);
    let output = leftoff(dir.path())
        .args(["run", "-t", "t", "-g", "g", "--out", "file:out", "--log-format", "json", "--"])
        .args(["sh", "bad_at.sh", "k3", "exit"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<Value> = String::from_utf8(output.stderr)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    for line in &lines {
        assert_eq!(line["verb"], "run", "{line}");
        assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
        assert!(line["from"] == "handler" || line["message"].is_string(), "{line}");
    }
    let one = |event: &str| lines.iter().find(|line| line["event"] == event).expect(event);
    let about = |event: &str| {
        let line = one(event);
        assert_eq!(
            (&line["group"], &line["topic"], &line["partition"]),
            (&"g".into(), &"t".into(), &0.into())
        );
        line["offset"].as_i64()
    };
    assert_eq!(about("starts"), Some(0));
    assert_eq!(about("goes-on"), Some(3));
    assert_eq!(one("t/0/3")["line"], "last words");
    let failed = one("failed");
    assert_eq!((&failed["level"], &failed["exit_code"]), (&"error".into(), &1.into()));
    assert!(failed["message"].as_str().unwrap().starts_with("t/0 offset 3 was not handled"), "{failed}");
    assert!(failed["hint"].is_string());
}

/// A name can hold anything; what steers a terminal is shown as text.
#[test]
fn control_characters_do_not_reach_the_terminal() {
    let dir = folder(1);
    let output = leftoff(dir.path()).args(["groups", "describe", "a\x1b[31mb"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("\\u{1b}[31m") && !text.contains('\x1b'), "{text:?}");
}
