#![allow(clippy::unwrap_used)]

use clap::CommandFactory;
use clap::error::ErrorKind;
use leftoff_wire::Offset;

use super::groups::{GroupsCommand, ResetTo};
use super::upkeep::Until;
use super::*;
use crate::cli::offset_spec::{OffsetSpec, Point};
use crate::cli::place::Place;
use crate::cli::time::Time;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

#[test]
fn the_tree_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_verb_of_the_manual_is_read() {
    let lines = [
        "leftoff demo",
        "leftoff demo --crash-at 3 --crash between --save before --dedupe off --events 5 --keep d",
        "leftoff topics create quakes -p 4 -c retention.bytes=1000 --retention 7d --if-not-exists",
        "leftoff topics ls --format json",
        "leftoff topics describe quakes flights",
        "leftoff topics alter quakes -c retention.ms=",
        "leftoff topics delete quakes --noconfirm",
        "leftoff topics trim quakes -o -10 -p 0,1",
        "leftoff produce quakes --data ./d --key-field id",
        "leftoff produce quakes -k a -H h:v -H i:w --input json-each-row -p 0 --source f.ndjson",
        "leftoff consume quakes",
        "leftoff consume quakes flights -o @-1h: -p 0 -n 5 --follow",
        "leftoff consume quakes -g g --no-commit -e -f %s",
        "leftoff groups ls",
        "leftoff groups describe g -t quakes:0,1 --only-lag",
        "leftoff groups history g -n 5",
        "leftoff groups reset g -t quakes --to-earliest --execute",
        "leftoff groups undo g --execute",
        "leftoff groups delete g h --noconfirm",
        "leftoff groups delete-offsets g -t quakes",
        "leftoff groups export g",
        "leftoff groups import g offsets.csv --execute",
        "leftoff wait -g g --until end --timeout 30s",
        "leftoff check -g g --data ./d --out file:a.ndjson --drained",
        "leftoff run -t quakes -g g --data ./d --out file:a.ndjson -- python3 handler.py --flag",
        "leftoff run -t quakes -g g --on-fail skip --attempts 5 --backoff 100ms..5s -- ./handler",
        "leftoff run -t quakes -g g --order key --concurrency 4 --pipeline 8 --on-fail dlq -- ./handler",
        "leftoff dlq ls g --reason timeout -t quakes",
        "leftoff dlq replay g --all --to-topic retry --execute",
        "leftoff dlq drop g quakes/0/41 --execute",
        "leftoff doctor --repair",
        "leftoff backup there",
        "leftoff completion bash",
        "leftoff -q --no-headers topics ls",
    ];
    for line in lines {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

/// A wrong line is a usage error (exit code 2) whose message holds each of the parts.
fn refused(line: &str, parts: &[&str]) {
    let error = parse(line).expect_err(line);
    assert_eq!(error.exit_code(), 2, "{line}");
    let message = error.to_string();
    for part in parts {
        assert!(message.contains(part), "{line}\n{message}");
    }
}

#[test]
fn a_wrong_value_is_named_with_what_was_expected_and_an_example() {
    refused(
        "leftoff consume t -o 5x",
        &["--offset", "'5x' is not an offset", "start, end, stored", "for example"],
    );
    refused("leftoff consume t -o @123", &["'123' has 3 digits", "10 digits (seconds)"]);
    refused("leftoff consume t -n 0", &["'0' is not a number of events", "for example 100"]);
    refused("leftoff consume t -p -1", &["'-1'"]);
    refused("leftoff consume t -p 0,x", &["'x' is not a partition", "for example 0"]);
    refused("leftoff consume t -f %q", &["'%q' in '%q' is not known", "%t"]);
    refused("leftoff topics create a/b", &["'a/b' is not a topic name", "for example quakes"]);
    refused("leftoff topics create ..", &["'..' is not a topic name"]);
    refused("leftoff topics create a -p 0", &["'0' is not a number of partitions", "for example 4"]);
    refused("leftoff topics create a -c x", &["'x' is not a setting", "retention.ms=604800000"]);
    refused("leftoff topics create a --retention 7", &["'7' is not a retention", "for example 7d"]);
    refused("leftoff topics ls --timeout 30", &["'30' has no unit", "for example 30s"]);
    refused(
        "leftoff groups reset g -t a:x --to-latest",
        &["'a:x' is not a topic with partitions", "quakes:0,1"],
    );
    refused("leftoff groups reset g -t a --to-datetime x", &["'x' is not a time", "for example 2026"]);
    refused("leftoff groups reset g -t a --to-offset -1", &["-1"]);
    refused("leftoff produce t -H x", &["'x' is not a header", "origin:usgs"]);
    refused("leftoff produce t --key-field a..b", &["'a..b' is not a JSON path", "a.b[0].c"]);
    refused("leftoff wait -g g --until soon", &["'soon' is not a place to wait for", "42"]);
    refused(
        "leftoff check -g g --out postgres://h/db?sslmode=prefer",
        &["--out <PLACE>", "sslmode=prefer", "postgres://USER@HOST:PORT/DATABASE"],
    );
}

#[test]
fn a_password_is_never_repeated() {
    for line in [
        "leftoff check -g g --out postgres://u:hunter2@h/db?sslmode=prefer",
        "leftoff run -t t -g g --out postgress://u:hunter2@h/db -- cat",
        "leftoff run -t t -g g --out=http://h/?token=hunter2 -- cat",
    ] {
        let error = parse(line).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn flags_that_do_not_go_together() {
    refused("leftoff groups reset g -t a", &["--to-earliest"]);
    refused("leftoff groups reset g -t a --to-earliest --to-latest", &["cannot be used"]);
    refused("leftoff groups reset g --to-earliest", &["--topic"]);
    refused("leftoff groups reset g -t a --all-topics --to-latest", &["cannot be used"]);
    refused("leftoff produce t -k a --key-field b", &["cannot be used"]);
    refused("leftoff consume t --no-commit", &["--group"]);
    refused("leftoff consume t -f %s --format json", &["cannot be used"]);
    refused("leftoff run -t t -g g", &["CMD"]);
    refused("leftoff topics alter t", &["--partitions"]);
    refused("leftoff -q -v topics ls", &["cannot be used"]);
}

#[test]
fn no_verb_shows_the_help() {
    let error = parse("leftoff").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn a_reset_has_one_target() {
    let table = [
        ("--to-earliest", ResetTo::Earliest),
        ("--to-latest", ResetTo::Latest),
        ("--to-current", ResetTo::Current),
        ("--to-offset 5", ResetTo::Offset(Offset::ZERO.plus(5))),
        ("--shift-by -5", ResetTo::ShiftBy(-5)),
        ("--to-datetime 1767225600", ResetTo::Time(Time::At { unix_ms: 1_767_225_600_000 })),
        ("--by-duration 1h", ResetTo::Time(Time::Ago(Duration::from_secs(3600)))),
        ("--from-file f", ResetTo::File("f".into())),
        ("--to-group h", ResetTo::Group("h".to_string())),
    ];
    for (flag, expect) in table {
        let cli = parse(&format!("leftoff groups reset g --all-topics {flag}")).unwrap();
        let Command::Groups(GroupsCommand::Reset(args)) = cli.command else { panic!("{flag}") };
        assert_eq!(args.to(), expect);
    }
}

#[test]
fn consume_starts_at_the_start_or_where_the_group_stands() {
    let table = [
        ("", Ok(OffsetSpec::from(Point::Start))),
        ("-g g", Ok(OffsetSpec::from(Point::Stored))),
        ("-o -5", Ok(OffsetSpec::from(Point::BeforeEnd(5)))),
        ("-o stored", Err("-o stored: there is no group to ask")),
        ("-o 1 -o 2", Err("-o: several -o do not make one range")),
    ];
    for (flags, expect) in table {
        let cli = parse(&format!("leftoff consume t {flags}")).unwrap();
        let Command::Consume(args) = cli.command else { panic!("{flags}") };
        assert_eq!(args.offset().map_err(|failure| failure.to_string()), expect.map_err(str::to_string));
    }
}

#[test]
fn a_demo_crashes_at_an_event_that_exists() {
    let table = [("", Ok(6)), ("--events 3", Ok(2)), ("--crash-at 9", Ok(9)), ("--crash-at 10", Err(2))];
    for (flags, expect) in table {
        let cli = parse(&format!("leftoff demo {flags}")).unwrap();
        let Command::Demo(args) = cli.command else { panic!("{flags}") };
        assert_eq!(
            args.crash_at().map(Offset::get).map_err(|failure| failure.exit_code()),
            expect,
            "{flags}"
        );
    }
}

#[test]
fn a_run_keeps_the_words_of_its_command() {
    let cli = parse("leftoff run -t t -g g -- cmd -t x -- y").unwrap();
    let Command::Run(args) = cli.command else { panic!() };
    assert_eq!(args.command, ["cmd", "-t", "x", "--", "y"]);
    assert_eq!((args.topics, args.out), (vec!["t".to_string()], Place::Stdout));
}

#[test]
fn a_wait_ends_at_a_place() {
    let table = [
        ("end", Until::End),
        ("42", Until::Offset(Offset::ZERO.plus(42))),
        ("@1767225600", Until::Time(Time::At { unix_ms: 1_767_225_600_000 })),
        ("2026-01-01", Until::Time(Time::At { unix_ms: 1_767_225_600_000 })),
        ("-1h", Until::Time(Time::Ago(Duration::from_secs(3600)))),
    ];
    for (text, expect) in table {
        assert_eq!(text.parse::<Until>().unwrap(), expect, "{text}");
    }
}
