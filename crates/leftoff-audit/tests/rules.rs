//! The rules one by one: a log, what is known of its partitions, effects and outcomes, and the words of the verdict.

#![allow(clippy::unwrap_used)]

use leftoff_audit::{
    AuditError, Effect, Given, LIST_LIMIT, Limits, LogEntry, LogEvent, Outcome, OutcomeKind, PartitionFacts,
    Question, Seen, Verdict, audit, python_list,
};

/// - log: `0/3=e7` an event with an id, `0/3` one without, `0/3!` a marker, `0/3~` aborted
/// - facts: `PARTITION:LOG_START-END@SAVED_NEXT`, `@-` for none
/// - effects: `0/3#1` by place, `e7` by id, `^text` of another topic, `torn:LINE`, `bad:LINE`
/// - outcomes: `0/3-5:filtered`
fn judge(log: &str, facts: &str, effects: &str, outcomes: &str) -> Result<Verdict, AuditError> {
    let words = |text: &str| -> Vec<String> { text.split_ascii_whitespace().map(str::to_owned).collect() };
    let mut given = Given {
        log: words(log).iter().map(|word| log_entry(word)).collect(),
        effects: words(effects).iter().map(|word| seen_effect(word)).collect(),
        outcomes: words(outcomes).iter().map(|word| Seen::Item(outcome(word))).collect(),
    };
    let facts: Vec<PartitionFacts> = words(facts).iter().map(|word| partition_facts(word)).collect();
    audit(&Question { topic: "t", partitions: &facts }, &Limits::default(), &mut given)
}

fn check(log: &str, facts: &str, effects: &str, outcomes: &str, expect: &[&str]) {
    let verdict = judge(log, facts, effects, outcomes).unwrap();
    let lines: Vec<String> = verdict.to_string().lines().map(str::to_owned).collect();
    assert_eq!(lines, expect, "log {log} | facts {facts} | effects {effects} | outcomes {outcomes}");
}

fn place(text: &str) -> (u32, i64) {
    let (partition, offset) = text.split_once('/').unwrap();
    (partition.parse().unwrap(), offset.parse().unwrap())
}

fn log_entry(word: &str) -> LogEntry {
    if let Some(at) = word.strip_suffix('!') {
        let (partition, offset) = place(at);
        return LogEntry::Marker { partition, offset };
    }
    if let Some(at) = word.strip_suffix('~') {
        let (partition, offset) = place(at);
        return LogEntry::Aborted { partition, offset };
    }
    let (at, id) = word.split_once('=').map_or((word, None), |(at, id)| (at, Some(id.to_owned())));
    let (partition, offset) = place(at);
    LogEntry::Event(LogEvent { partition, offset, id })
}

fn partition_facts(word: &str) -> PartitionFacts {
    let (partition, rest) = word.split_once(':').unwrap();
    let (range, saved) = rest.split_once('@').unwrap();
    let (log_start, end) = range.split_once('-').unwrap();
    PartitionFacts {
        partition: partition.parse().unwrap(),
        log_start: log_start.parse().unwrap(),
        end: end.parse().unwrap(),
        saved_next: saved.parse().ok(),
    }
}

fn seen_effect(word: &str) -> Seen<Effect> {
    if let Some(line) = word.strip_prefix("torn:") {
        return Seen::Torn { line: line.parse().unwrap() };
    }
    if let Some(line) = word.strip_prefix("bad:") {
        return Seen::Unreadable { line: line.parse().unwrap(), why: "not JSON".to_owned() };
    }
    if let Some(other) = word.strip_prefix('^') {
        return Seen::Item(Effect::OtherTopic(other.to_owned()));
    }
    Seen::Item(match word.split_once('#') {
        Some((at, n)) => {
            let (partition, offset) = place(at);
            Effect::ByPlace { partition, offset, n: n.parse().unwrap() }
        }
        None => Effect::ById(word.to_owned()),
    })
}

fn outcome(word: &str) -> Outcome {
    let (range, kind) = word.split_once(':').unwrap();
    let (from, to) = range.split_once('-').unwrap();
    let (partition, from) = place(from);
    let kind = match kind {
        "handled" => OutcomeKind::Handled,
        "filtered" => OutcomeKind::Filtered,
        "dead" => OutcomeKind::Dead,
        "skipped" => OutcomeKind::Skipped,
        "deleted" => OutcomeKind::Deleted,
        "absorbed" => OutcomeKind::Absorbed,
        other => panic!("{other}"),
    };
    Outcome { partition, from, to: to.parse().unwrap(), kind }
}

#[test]
fn the_lesson() {
    let log = "0/0=e1 0/1=e2 0/2=e3 0/3=e4 0/4=e5 0/5=e6 0/6=e7";
    check(log, "0:0-7@7", "e1 e2 e3 e4 e5 e6 e7", "", &["nothing left", "lost: [] | handled twice: []"]);
    check(log, "0:0-7@7", "e1 e2 e3 e4 e5 e6", "", &["nothing left", "lost: ['e7'] | handled twice: []"]);
    check(log, "0:0-7@6", "e1 e2 e3 e4 e5 e6", "", &["1 unfinished: ['e7']", "lost: [] | handled twice: []"]);
    check(
        log,
        "0:0-7@7",
        "e1 e2 e3 e4 e5 e6 e7 e7 e7",
        "",
        &["nothing left", "lost: [] | handled twice: ['e7']"],
    );
    check("", "0:0-0@-", "", "", &["nothing left", "lost: [] | handled twice: []"]);
}

#[test]
fn events_without_an_id_are_called_by_their_place_in_ranges() {
    let log = "0/0 0/1 0/2 0/3 0/5 1/0 1/1=x 1/2";
    check(
        log,
        "0:0-6@6 1:0-3@3",
        "0/0#0",
        "",
        &["nothing left", "lost: ['t/0/1-3', 't/0/5', 't/1/0', 'x', 't/1/2'] | handled twice: []"],
    );
    check("0/0 0/1 0/2", "0:0-3@3", "", "", &["nothing left", "lost: ['t/0/0-2'] | handled twice: []"]);
}

#[test]
fn several_effects_of_one_event_are_told_apart_by_their_number() {
    let clean = ["nothing left", "lost: [] | handled twice: []"];
    check("0/0 0/1", "0:0-2@2", "0/0#0 0/0#1 0/1#0", "", &clean);
    check(
        "0/0 0/1",
        "0:0-2@2",
        "0/0#0 0/0#1 0/0#1 0/1#0",
        "",
        &["nothing left", "lost: [] | handled twice: ['t/0/0']"],
    );
}

#[test]
fn of_136_markers_holes_and_aborted_events_are_nobodys_fault() {
    let log = "0/0=a 0/1=b 0/2! 0/3~ 0/4~ 0/5! 0/8=c";
    check(log, "0:0-9@9", "a b c", "", &["nothing left", "lost: [] | handled twice: []"]);
    check(log, "0:0-9@9", "0/0#0 0/1#0 0/8#0", "", &["nothing left", "lost: [] | handled twice: []"]);
    check(
        log,
        "0:0-9@9",
        "0/0#0 0/1#0 0/4#0 0/8#0",
        "",
        &[
            "unknown effect: 't/0/4' (no event at that offset)",
            "unknown effects: 1",
            "nothing left",
            "lost: [] | handled twice: []",
        ],
    );
    assert_eq!(judge(log, "0:0-9@9", "", "").unwrap().aborted, 2);
}

#[test]
fn produced_twice_is_not_handled_twice() {
    let log = "0/0=a 0/1=b 0/2=a";
    let tells = "cannot tell: 1 ids were produced more than once; which effect belongs to which event, and so their order";
    let clean = "lost: [] | handled twice: []";
    check(log, "0:0-3@3", "a b a", "", &["produced twice: ['a']", tells, "nothing left", clean]);
    check(
        log,
        "0:0-3@3",
        "a b",
        "",
        &["absorbed: ['a']", "produced twice: ['a']", tells, "nothing left", clean],
    );
    check(
        log,
        "0:0-3@3",
        "a b a a",
        "",
        &["produced twice: ['a']", tells, "nothing left", "lost: [] | handled twice: ['a']"],
    );
    check(log, "0:0-3@2", "a b", "", &["produced twice: ['a']", tells, "1 unfinished: ['a']", clean]);
    check(
        log,
        "0:0-3@3",
        "b",
        "",
        &["produced twice: ['a']", "nothing left", "lost: ['a', 'a'] | handled twice: []"],
    );
    // By place each event is judged for itself, and what a dedupe absorbed is still not lost.
    check(log, "0:0-3@3", "0/0#0 0/1#0 0/2#0", "", &["produced twice: ['a']", "nothing left", clean]);
    check(
        log,
        "0:0-3@3",
        "0/0#0 0/1#0",
        "",
        &["absorbed: ['a']", "produced twice: ['a']", "nothing left", clean],
    );
    let produced = judge(log, "0:0-3@3", "", "").unwrap().produced_twice;
    assert_eq!((produced.count, produced.ids[0].events, produced.ids[0].places.len()), (1, 2, 2));
}

#[test]
fn out_of_order_looks_at_first_effects_only() {
    let log = "0/0=a 0/1=b 0/2=c 1/0=d";
    let clean = "lost: [] | handled twice: []";
    for effects in ["a c b d", "0/0#0 0/2#0 0/1#0 1/0#0"] {
        check(log, "0:0-3@3 1:0-1@1", effects, "", &["out of order: ['b']", "nothing left", clean]);
    }
    for effects in ["a b c b d", "0/0#0 0/1#0 0/2#0 0/1#0 1/0#0"] {
        check(log, "0:0-3@3 1:0-1@1", effects, "", &["nothing left", "lost: [] | handled twice: ['b']"]);
    }
    assert!(!judge(log, "0:0-3@3 1:0-1@1", "a c b d", "").unwrap().clean());
    // An invented effect puts nothing out of order.
    let verdict = judge(log, "0:0-9@9 1:0-1@1", "0/7#0 0/0#0 0/1#0 0/2#0 1/0#0", "").unwrap();
    assert!(verdict.clean(), "{verdict}");
}

#[test]
fn outcomes_tell_an_event_without_output_from_a_lost_one() {
    let log = "0/0 0/1 0/2 0/3 0/4 0/5 0/6";
    let outcomes = "0/1-1:filtered 0/2-2:handled 0/3-3:dead 0/4-4:skipped 0/6-6:absorbed";
    check(
        log,
        "0:0-7@7",
        "0/0#0",
        outcomes,
        &[
            "dead: ['t/0/3']",
            "skipped by decision: ['t/0/4']",
            "filtered: ['t/0/1']",
            "handled without output: ['t/0/2']",
            "absorbed: ['t/0/6']",
            "nothing left",
            "lost: ['t/0/5'] | handled twice: []",
        ],
    );
}

#[test]
fn many_filtered_events_are_counted_rather_than_listed() {
    let log = (0..60).map(|offset| format!("0/{offset}")).collect::<Vec<_>>().join(" ");
    let every_other: Vec<String> = (0..30).map(|n| format!("0/{}-{0}:filtered", 2 * n)).collect();
    let effects: Vec<String> = (0..30).map(|n| format!("0/{}#0", 2 * n + 1)).collect();
    let counted = "filtered: 30 events (JSON names them)";
    let clean = "lost: [] | handled twice: []";
    check(&log, "0:0-60@60", &effects.join(" "), &every_other.join(" "), &[counted, "nothing left", clean]);
}

#[test]
fn without_a_saved_offset_only_what_was_passed_is_lost() {
    let tells =
        "cannot tell: no offset saved for t/0; an event there is called lost only if a later one was handled";
    check(
        "0/0=a 0/1=b 0/2=c",
        "0:0-3@-",
        "",
        "",
        &[tells, "3 unfinished: ['a', 'b', 'c']", "lost: [] | handled twice: []"],
    );
    for effects in ["b", "0/1#0"] {
        check(
            "0/0=a 0/1=b 0/2=c",
            "0:0-3@-",
            effects,
            "",
            &[tells, "1 unfinished: ['c']", "lost: ['a'] | handled twice: []"],
        );
    }
    check(
        "0/0=a 0/1=b",
        "0:0-2@-",
        "",
        "0/1-1:skipped",
        &["skipped by decision: ['b']", tells, "nothing left", "lost: ['a'] | handled twice: []"],
    );
}

#[test]
fn deleted_before_handling_is_not_lost() {
    let clean = "lost: [] | handled twice: []";
    let gone = "cannot tell: t/0/0-1 deleted from the log; whether all of it was handled";
    // Saved 2, log starts at 6; 3 was handled and not saved.
    check(
        "0/6 0/7",
        "0:6-8@2",
        "0/3#0",
        "",
        &["deleted before handling: ['t/0/2', 't/0/4-5']", gone, "2 unfinished: ['t/0/6-7']", clean],
    );
    // The group has noted what it found deleted, and went on.
    check(
        "0/6 0/7",
        "0:6-8@8",
        "0/6#0 0/7#0",
        "0/2-5:deleted",
        &[
            "deleted before handling: ['t/0/2-5']",
            "cannot tell: t/0/0-5 deleted from the log; whether all of it was handled",
            "nothing left",
            clean,
        ],
    );
    // Noted as deleted, and there.
    check(
        "0/0 0/1",
        "0:0-2@2",
        "0/0#0",
        "0/1-1:deleted",
        &[
            "cannot tell: 1 events are noted as deleted and are in the log; they are judged as if nothing were noted",
            "nothing left",
            "lost: ['t/0/1'] | handled twice: []",
        ],
    );
    // By id an effect of a deleted event cannot be told from an invented one.
    check(
        "0/6=g",
        "0:6-7@7",
        "a g",
        "",
        &[
            "unknown effect: 'a' (no event has this id)",
            "unknown effects: 1",
            "cannot tell: t/0/0-5 deleted from the log; whether all of it was handled",
            "cannot tell: 1 effects have an id that no event has; whether their events were deleted or never there",
            "nothing left",
            clean,
        ],
    );
}

#[test]
fn effects_without_an_event_are_named_with_the_reason() {
    check(
        "0/0=a",
        "0:0-1@1",
        "a zz zz ^X/0/4/0 5/0#0 0/1#0",
        "",
        &[
            "unknown effect: 'zz' (no event has this id)",
            "unknown effect: 'X/0/4/0' (of another topic)",
            "unknown effect: 't/5/0' (no such partition)",
            "unknown effect: 't/0/1' (past the end of the log)",
            "unknown effects: 5",
            "nothing left",
            "lost: [] | handled twice: []",
        ],
    );
}

#[test]
fn lines_that_are_no_effects_are_reported() {
    check(
        "0/0=a 0/1=b",
        "0:0-2@1",
        "a bad:2 torn:3",
        "",
        &[
            "torn line: effects line 3: its end is missing",
            "unreadable line: effects line 2: not JSON",
            "cannot tell: 1 lines are unreadable; whether they stand for events that seem lost or unfinished",
            "1 unfinished: ['b']",
            "lost: [] | handled twice: []",
        ],
    );
}

#[test]
fn a_saved_offset_above_the_end_is_named() {
    check(
        "0/0=a",
        "0:0-1@5",
        "a",
        "",
        &[
            "ahead of the end: t/0 would go on with offset 5, and the log's next offset is 1",
            "nothing left",
            "lost: [] | handled twice: []",
        ],
    );
}

#[test]
fn lists_are_bounded_and_counts_are_not() {
    let events = LIST_LIMIT as i64 * 3;
    let event = |offset| {
        LogEntry::Event(LogEvent { partition: 0, offset: offset * 2, id: Some(format!("e{offset}")) })
    };
    let mut given = Given { log: (0..events).map(event).collect(), ..Given::default() };
    let facts =
        [PartitionFacts { partition: 0, log_start: 0, end: events * 2, saved_next: Some(events * 2) }];
    let verdict =
        audit(&Question { topic: "t", partitions: &facts }, &Limits::default(), &mut given).unwrap();
    let lost = &verdict.lost;
    assert_eq!((lost.count, lost.names.len(), lost.ranges.len()), (3_000, LIST_LIMIT, LIST_LIMIT));
    assert_eq!(lost.unnamed, 2_000);
    assert!(verdict.last_line().ends_with("'e999'] and 2000 more | handled twice: []"));
}

#[test]
fn contradictions_of_the_caller_are_errors() {
    assert!(matches!(judge("3/0", "0:0-1@-", "", ""), Err(AuditError::UnknownPartition(3))));
    assert!(matches!(
        judge("0/0 0/0", "0:0-1@-", "", ""),
        Err(AuditError::PlaceTwice { partition: 0, offset: 0 })
    ));
    assert!(matches!(judge("", "0:5-1@-", "", ""), Err(AuditError::Facts(0))));
    assert!(matches!(judge("", "1:0-1@- 1:0-1@-", "", ""), Err(AuditError::Facts(1))));
}

#[test]
fn json_has_every_list_with_its_count() {
    let verdict = judge("0/0=a 0/1=b", "0:0-2@1", "zz", "").unwrap();
    let json = serde_json::to_value(&verdict).unwrap();
    assert_eq!(json["lost"]["count"], 1);
    assert_eq!(json["lost"]["names"][0], "a");
    assert_eq!(json["unfinished"]["ranges"][0]["from"], 1);
    assert_eq!(json["unknown_effects"]["named"][0]["why"], "no_such_id");
    assert_eq!(json["partitions"][0]["saved_next"], 1);
}

#[test]
fn names_are_quoted_as_python_does() {
    let cases = [
        ("e7", "['e7']"),
        ("it's", r"['it\'s']"),
        ("a\\b\"c", r#"['a\\b"c']"#),
        ("a\nb\t\r", r"['a\nb\t\r']"),
        ("\u{1b}[31m", r"['\x1b[31m']"),
        ("\u{202e}x", r"['\u202ex']"),
        ("größe 日本 🌍", "['größe 日本 🌍']"),
    ];
    for (name, expect) in cases {
        assert_eq!(python_list(&[name]), expect);
    }
    assert_eq!(python_list::<&str>(&[]), "[]");
}
