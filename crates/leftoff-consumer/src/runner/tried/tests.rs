#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

fn with(events: &[(i64, u32, &str)]) -> Tried {
    let events = events
        .iter()
        .map(|(offset, failed, why)| (at(*offset), Attempts { failed: *failed, why: (*why).to_owned() }));
    Tried { events: events.collect(), ..Tried::default() }
}

#[test]
fn the_words_are_read_back_and_the_rest_is_somebody_elses() {
    let tried = Tried {
        begun: Some(at(9)),
        start: Some(Start { at: at(7), unclean: 2, alone: true }),
        ..with(&[(7, 2, "too big: 100 %\nreally"), (9, 1, "")])
    };
    let words = tried.encode();
    assert_eq!(words, "tried=7:2:too%20big:%20100%20%25%0areally tried=9:1: begun=9 start=7:2:alone");
    for rest in ["", "out=file:/a b=c", "start of something", " "] {
        let metadata = if rest.is_empty() { words.clone() } else { format!("{words} {rest}") };
        assert_eq!(own_words(&metadata), (words.as_str(), rest));
        assert_eq!(Tried::decode(&metadata), tried);
    }
    assert_eq!(own_words("out=file:/tmp/tried=1:1:x"), ("", "out=file:/tmp/tried=1:1:x"));
    assert_eq!(Tried::default().encode(), "");
}

#[test]
fn foreign_words_are_passed_over() {
    for metadata in
        ["", "anything", "tried=", "tried=x:1:y", "tried=-1:1:y", "tried=1", "start=3:1", "begun=é"]
    {
        assert_eq!(Tried::decode(metadata), Tried::default(), "{metadata}");
    }
}

#[test]
fn it_is_bounded() {
    let long = "é\u{1}".repeat(4_000);
    let many: Vec<_> = (0..100).map(|offset| (offset, u32::MAX, long.as_str())).collect();
    let words = with(&many).encode();
    assert!(words.len() < 3_000, "{}", words.len());
    assert_eq!(Tried::decode(&words).events.len(), MAX_EVENTS);
}

/// What the run before left, how it ended, and what the next one, which starts at 7, takes over.
#[test]
fn what_a_start_takes_over() {
    let check = |metadata: &str, unclean: bool, has_event: bool, expect: &str| {
        let tried = Tried::at_start(metadata, at(7), unclean, true, has_event);
        assert_eq!(tried.encode(), expect, "{metadata:?}, unclean: {unclean}, event: {has_event}");
    };
    const KILLED: &str =
        "the%20runner%20was%20killed,%20or%20lost%20its%20machine,%20while%20the%20handler%20had%20it";
    check("", false, true, "");
    check("tried=6:1:a tried=7:2:b", false, true, "tried=7:2:b");
    // The first unclean end may have come anywhere; the second one without progress had this event.
    check("", true, true, "start=7:0:alone");
    check("start=7:0:alone", true, true, &format!("tried=7:1:{KILLED} start=7:1:alone"));
    check("tried=7:1:b start=7:1:alone", true, true, &format!("tried=7:2:{KILLED} start=7:2:alone"));
    // Which of many events it was is not known, only that it goes wrong again and again.
    check("start=7:2:many", true, true, "start=7:3:alone");
    // Progress, or a clean end, or nothing to handle: no attempt.
    check("start=6:2:alone", true, true, "start=7:0:alone");
    check("start=7:2:alone", false, true, "");
    check("start=7:2:alone", true, false, "");
    // It was written down that it had begun.
    check("start=7:3:many begun=9", true, true, &format!("tried=9:1:{KILLED} start=7:4:alone"));
    check("begun=9", false, true, "");
    check("begun=6", true, true, "start=7:0:alone");
}

proptest! {
    #[test]
    fn any_metadata_is_read_without_harm(metadata in "(tried=|begun=|start=|[0-9:% é]){0,12}.{0,20}") {
        let tried = Tried::decode(&metadata);
        prop_assert_eq!(&Tried::decode(&tried.encode()), &tried);
        let (own, rest) = own_words(&metadata);
        prop_assert!(own.len() + rest.len() <= metadata.len());
    }
}
