#![allow(clippy::unwrap_used)]

use std::io::{self, BufReader, Write};

use super::{EffectFile, EffectLines, IdTemplate, NameBy, OutcomeFile, OutcomeLines, TemplateError};
use crate::input::{Effect, Outcome, OutcomeKind, Seen};

const LIMIT_BYTES: usize = 64;

fn by_line() -> NameBy {
    NameBy::Line { topic_id: "AAAA".to_owned() }
}

fn by_template(text: &str) -> NameBy {
    NameBy::Template(IdTemplate::parse(text).unwrap())
}

/// Reads through buffers of each small size, so that lines begin and end anywhere in them.
fn read(bytes: &[u8], name_by: &NameBy) -> Vec<Seen<Effect>> {
    let all = |buffer_bytes| -> Vec<Seen<Effect>> {
        let reader = BufReader::with_capacity(buffer_bytes, bytes);
        EffectLines::new(reader, name_by, LIMIT_BYTES).collect::<io::Result<_>>().unwrap()
    };
    let expect = all(1 << 10);
    for buffer_bytes in 1..20 {
        assert_eq!(all(buffer_bytes), expect);
    }
    expect
}

fn show(seen: &Seen<Effect>) -> String {
    match seen {
        Seen::Item(Effect::ByPlace { partition, offset, n }) => format!("{partition}/{offset}#{n}"),
        Seen::Item(Effect::ById(id)) => id.clone(),
        Seen::Item(Effect::OtherTopic(place)) => format!("other {place}"),
        Seen::Torn { line } => format!("torn {line}"),
        Seen::Unreadable { line, why } => format!("unreadable {line}: {why}"),
    }
}

fn check(text: &str, name_by: &NameBy, expect: &[&str]) {
    let shown: Vec<String> = read(text.as_bytes(), name_by).iter().map(show).collect();
    let starts =
        shown.len() == expect.len() && shown.iter().zip(expect).all(|(is, want)| is.starts_with(want));
    assert!(starts, "{text:?}\n is {shown:?}\nnot {expect:?}");
}

#[test]
fn plain_lines_are_ids() {
    check("e1\n  e2 \r\n\ne3\n", &by_line(), &["e1", "e2", "e3"]);
    check("e1\ne2", &by_line(), &["e1", "torn 2"]);
    check("", &by_line(), &[]);
    check("\n\n", &by_line(), &[]);
    let bytes = read(b"\xff\xfe\ne2\n", &by_line());
    assert_eq!(show(&bytes[0]), "unreadable 1: not UTF-8");
    assert_eq!(show(&bytes[1]), "e2");
}

#[test]
fn objects_name_their_place() {
    let text = r#"{"leftoff_id":"AAAA/0/41/0","v":1}
{"v":[1,{"leftoff_id":"x"}],"leftoff_id":"AAAA\/3\/7\/2"}
{"leftoff_id":"BBBB/0/41/0"}
"#;
    check(text, &by_line(), &["0/41#0", "3/7#2", "other BBBB/0/41/0"]);
}

#[test]
fn what_is_no_effect_is_named_with_its_line() {
    let cases = [
        ("{\"v\":1}\n", "unreadable 1: no leftoff_id"),
        ("{\"leftoff_id\":null}\n", "unreadable 1: no leftoff_id"),
        ("{\"leftoff_id\":7}\n", "unreadable 1: not JSON"),
        ("{\"leftoff_id\":\n", "unreadable 1: not JSON"),
        ("{} {}\n", "unreadable 1: not JSON"),
        ("{\"leftoff_id\":\"AAAA/0/1\"}\n", "unreadable 1: leftoff_id"),
        ("{\"leftoff_id\":\"AAAA/0/-1/0\"}\n", "unreadable 1: leftoff_id"),
        ("{\"leftoff_id\":\"AAAA/0/1/0/0\"}\n", "unreadable 1: leftoff_id"),
        ("{\"leftoff_id\":\"AAAA/0/99999999999999999999/0\"}\n", "unreadable 1: leftoff_id"),
        ("{\"leftoff_id\":\"AAAA/0/1/0\"}", "torn 1"),
    ];
    for (text, expect) in cases {
        check(text, &by_line(), &[expect]);
    }
    let long = format!("e1\n{}\ne3\n", "x".repeat(LIMIT_BYTES + 1));
    check(&long, &by_line(), &["e1", "unreadable 2: the line is too long", "e3"]);
    let just = "x".repeat(LIMIT_BYTES);
    check(&format!("{just}\n"), &by_line(), &[&just]);
    let deep = format!("{{\"a\":{}\n", "[".repeat(50));
    check(&deep, &by_line(), &["unreadable 1: not JSON"]);
}

#[test]
fn templates_make_ids() {
    let line = "{\"id\":\"uw1\",\"p\":{\"code\":7,\"ok\":true},\"l\":[\"x\",\"y\"]}\n";
    let cases = [
        ("id", "uw1"),
        ("{id}", "uw1"),
        ("$.p.code", "7"),
        ("{p.code}-{p.ok}", "7-true"),
        ("q{{{id}}}-{l[1]}", "q{uw1}-y"),
        ("l.0", "x"),
        ("nope", "unreadable 1: no id where the template looks"),
        ("p", "unreadable 1: no id where the template looks"),
        ("l[9]", "unreadable 1: no id where the template looks"),
    ];
    for (template, expect) in cases {
        check(line, &by_template(template), &[expect]);
    }
    check("e1\n", &by_template("id"), &["e1"]);
    check(line.trim_end(), &by_template("id"), &["torn 1"]);
}

#[test]
fn templates_that_cannot_work_are_refused() {
    for text in ["{id", "id}", "a{b}}c", "{a}}", "x{"] {
        assert!(matches!(IdTemplate::parse(text), Err(TemplateError::Unbalanced(_))), "{text}");
    }
    for text in ["", "a..b", "{}", "a{ }"] {
        assert!(matches!(IdTemplate::parse(text), Err(TemplateError::EmptyName(_))), "{text}");
    }
    assert!(matches!(IdTemplate::parse("{{x}}"), Err(TemplateError::NoField(_))));
}

#[test]
fn outcomes_are_ranges_of_one_topic() {
    let text = "AAAA 0 3-5 filtered\nBBBB 0 0-9 handled\nAAAA 1 7 dead attempts=3\nAAAA 0 5-3 handled\n\
                AAAA 0 1-2 gone\nAAAA x 1-2 handled\nAAAA 0\nAAAA 0 -1-2 handled\n\nAAAA 0 1-2 handled";
    let seen: Vec<Seen<Outcome>> =
        OutcomeLines::new(text.as_bytes(), "AAAA").collect::<io::Result<_>>().unwrap();
    let range = |partition, from, to, kind| Seen::Item(Outcome { partition, from, to, kind });
    assert_eq!(seen[..2], [range(0, 3, 5, OutcomeKind::Filtered), range(1, 7, 7, OutcomeKind::Dead)]);
    for (seen, line) in seen[2..7].iter().zip([4, 5, 6, 7, 8]) {
        assert!(matches!(seen, Seen::Unreadable { line: at, .. } if *at == line), "{seen:?}");
    }
    assert_eq!(seen[7..], [Seen::Torn { line: 10 }]);
}

#[test]
fn files_are_read_as_long_as_they_were_when_they_were_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("effects");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(b"e1\ne2\n").unwrap();
    let effects = EffectFile::open(&path, by_line()).unwrap();
    file.write_all(b"e3\n").unwrap();
    for _pass in 0..2 {
        let seen: Vec<String> = effects.lines().unwrap().map(|seen| show(&seen.unwrap())).collect();
        assert_eq!(seen, ["e1", "e2"]);
    }
    assert!(EffectFile::open(&dir.path().join("none"), by_line()).is_err());
    let none = OutcomeFile::open(&dir.path().join("none"), "AAAA").unwrap();
    assert_eq!(none.lines().unwrap().count(), 0);
}
