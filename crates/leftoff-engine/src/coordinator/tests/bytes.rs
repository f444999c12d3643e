//! What is written, byte by byte, and what replay takes from others.

use leftoff_wire::Offset;
use leftoff_wire::consumer_offsets::{GroupMetadataValue, Key, OffsetCommitValue};

use super::world::{World, at, bounds, next, person, topic_id};
use crate::coordinator::*;
use crate::types::Timestamp;

fn commit_of(metadata: &str, why: Why, note: Option<&str>) -> Commit {
    Commit {
        group: "g".to_owned(),
        fence: None,
        offsets: vec![OffsetToCommit {
            key: PartitionKey { topic: "t".to_owned(), topic_id: topic_id(9), partition: 2 },
            committed: next(5),
            leader_epoch: None,
            metadata: metadata.to_owned(),
        }],
        who: person(),
        why,
        note: note.map(str::to_owned),
        strict: true,
    }
}

fn texts(record: &Record) -> Vec<(&str, String)> {
    record.headers.iter().map(|(name, value)| (*name, String::from_utf8(value.clone()).unwrap())).collect()
}

#[test]
fn a_commit_is_kafkas_bytes() {
    let mut coordinator = Coordinator::default();
    let now = Timestamp::from_ms(0x0102);
    let commit = commit_of("m", Why::Reset, Some("too far"));
    let outcome = coordinator.commit(now, &commit, &|_| Some(bounds(0, 9))).unwrap();
    let [record] = outcome.records.as_slice() else { panic!("{outcome:?}") };
    assert_eq!(record.key, b"\0\x01\0\x01g\0\x01t\0\0\0\x02");
    let mut value = b"\0\x04\0\0\0\0\0\0\0\x05\xff\xff\xff\xff\x02m\0\0\0\0\0\0\x01\x02\x01\0\x10".to_vec();
    value.extend([9; 16]);
    assert_eq!(record.value.as_deref(), Some(value.as_slice()));
    assert_eq!(
        texts(record),
        [
            ("why", "reset".to_owned()),
            ("who", "- leftoff host leftoff/0.1".to_owned()),
            ("gen", "0".to_owned()),
            ("note", "too far".to_owned()),
            ("reset", "0".to_owned())
        ]
    );
    coordinator.replay_record(at(7), record).unwrap();
    let again = coordinator.commit(now, &commit, &|_| Some(bounds(0, 9))).unwrap();
    let headers = texts(&again.records[0]);
    assert!(headers.contains(&("old", "5".to_owned())) && headers.contains(&("prev", "7".to_owned())));
    let entry = coordinator.entry("g", &commit.offsets[0].key).unwrap();
    assert_eq!((entry.at, entry.note.as_deref()), (at(7), Some("too far")));
}

/// Kafka's dump tool parses subscription and assignment of a consumer group.
#[test]
fn a_join_is_group_metadata_that_kafka_reads() {
    let who = Who::new("a", "client", "host", "leftoff/0.1");
    let outcome = Coordinator::default().join(Timestamp::from_ms(5), "g", &who).unwrap();
    let [record] = outcome.records.as_slice() else { panic!("{outcome:?}") };
    assert_eq!(Key::decode(&record.key).unwrap(), Key::GroupMetadata { group: "g".to_owned() });
    let value = GroupMetadataValue::decode(record.value.as_deref().unwrap()).unwrap();
    assert_eq!((value.protocol_type.as_str(), value.generation), ("consumer", 1));
    assert_eq!(value.leader.as_deref(), Some("a"));
    let [member] = value.members.as_slice() else { panic!("{value:?}") };
    let parts = (member.member_id.as_str(), member.client_id.as_str(), member.client_host.as_str());
    assert_eq!(parts, ("a", "client", "host"));
    assert_eq!(member.assignment, b"\0\0\0\0\0\0\xff\xff\xff\xff");
}

#[test]
fn names_and_notes_have_bounds() {
    let coordinator = Coordinator::default();
    let now = Timestamp::from_ms(0);
    let long = "g".repeat(40_000);
    let of = "group";
    assert_eq!(coordinator.join(now, "", &person()), Err(GroupError::EmptyName { of }));
    assert_eq!(coordinator.join(now, &long, &person()), Err(GroupError::NameTooLong { of, bytes: 40_000 }));
    assert_eq!(coordinator.join(now, "g", &person()), Err(GroupError::NoMemberId { group: "g".to_owned() }));
    let noted = commit_of("", Why::Undo, Some(&"n".repeat(MAX_NOTE_BYTES + 1)));
    let refused = coordinator.commit(now, &noted, &|_| Some(bounds(0, 9)));
    assert_eq!(refused, Err(GroupError::NoteTooLong { bytes: MAX_NOTE_BYTES + 1 }.into()));
}

/// A record that Kafka wrote: no headers, no topic id.
#[test]
fn records_of_others_are_taken_or_skipped() {
    let mut coordinator = Coordinator::default();
    let key = Key::OffsetCommit { group: "g".to_owned(), topic: "t".to_owned(), partition: 0 }.encode();
    let value = OffsetCommitValue {
        committed: next(5),
        leader_epoch: None,
        metadata: String::new(),
        commit_timestamp_ms: 1,
        topic_id: None,
    };
    coordinator.replay(at(0), &key, Some(&value.encode()), []).unwrap();
    coordinator.replay(at(1), &key, Some(&value.encode()), []).unwrap();
    coordinator.replay(at(2), &[0, 99, 1, 2, 3], Some(b"?"), []).unwrap();
    let entry = coordinator.group("g").unwrap().entry_by_name("t", 0).unwrap();
    assert_eq!((entry.at, entry.why, entry.who.to_string()), (at(1), Why::Commit, "- - - -".to_owned()));
    assert_eq!(coordinator.counts(), Counts { records: 3, unknown_records: 1, missing_records: 0 });
}

/// A coordinator that knows `commit - g t/0=5` as record 0 and `join a g` as record 1.
fn known() -> (World, Coordinator) {
    let mut world = World::default();
    for command in ["topic t 1 1 0..10", "commit - g t/0=5", "join a g", "commit a g t/0=6"] {
        world.run(command);
    }
    let mut coordinator = Coordinator::default();
    for place in 0..2 {
        coordinator.replay_record(at(place), &world.log[&at(place)].1).unwrap();
    }
    (world, coordinator)
}

/// Replays the second commit at `place`, changed, and gives the error; nothing may have changed.
#[track_caller]
fn refused(place: i64, change: impl FnOnce(&mut Record)) -> String {
    let (world, mut coordinator) = known();
    let before = coordinator.clone();
    let mut record = world.log[&at(2)].1.clone();
    change(&mut record);
    let error = coordinator.replay_record(at(place), &record).unwrap_err();
    assert_eq!(coordinator, before);
    assert_eq!(coordinator.counts(), before.counts());
    error.to_string()
}

fn set(record: &mut Record, name: &str, value: &[u8]) {
    let header = record.headers.iter_mut().find(|header| header.0 == name).unwrap();
    header.1 = value.to_vec();
}

#[test]
fn what_cannot_be_is_refused() {
    let header = |name, value: &str| format!("offsets log: record 2: header {name} says {value:?}");
    assert_eq!(refused(1, |_| {}), "offsets log: record 1 comes after record 1");
    assert_eq!(refused(2, |r| set(r, "why", b"whim")), header("why", "whim"));
    assert_eq!(refused(2, |r| set(r, "who", b"me")), header("who", "me"));
    assert_eq!(refused(2, |r| set(r, "gen", b"\xff")), header("gen", "\u{fffd}"));
    assert_eq!(refused(2, |r| set(r, "old", b"-1")), header("old", "-1"));
    assert_eq!(refused(2, |r| set(r, "prev", b"2")), header("prev", "2"));
    let short = refused(2, |r| r.value = Some(vec![0, 4, 0]));
    assert!(short.starts_with("offsets log: record 2: "), "{short}");
    let forked = refused(2, |r| r.headers.retain(|header| header.0 != "prev"));
    assert_eq!(forked, "offsets log: record 2 follows record None of its key, but record 0 came between");
}

#[test]
fn a_missing_record_is_counted() {
    let (world, mut coordinator) = known();
    let mut record = world.log[&at(2)].1.clone();
    set(&mut record, "prev", b"3");
    coordinator.replay_record(at(4), &record).unwrap();
    assert_eq!(coordinator.counts().missing_records, 1);
}

#[test]
fn a_generation_that_falls_is_refused() {
    let (world, mut coordinator) = known();
    let join = &world.log[&at(1)].1;
    let outcome = coordinator.join(Timestamp::from_ms(9), "g", &Who::new("b", "", "", "")).unwrap();
    coordinator.replay_record(at(2), &outcome.records[0]).unwrap();
    let mut late = join.clone();
    late.headers.push(("prev", b"2".to_vec()));
    let error = coordinator.replay_record(at(3), &late).unwrap_err();
    assert_eq!(error.to_string(), "offsets log: record 3: generation 1 of group g after 2");
}

#[test]
fn a_walk_has_pages_and_ends() {
    let mut world = World::default();
    for command in ["topic t 1 2 0..10", "commit - g t/0=5", "commit - g t/0=6", "commit - g t/0=7"] {
        world.run(command);
    }
    let mut read = |at| Ok::<_, ()>(world.read(at));
    let page = walk(at(2), &mut read, 2).unwrap();
    assert_eq!((page.moves.len(), page.next, page.truncated), (2, Some(at(0)), false));
    let page = walk(at(0), &mut read, 2).unwrap();
    assert_eq!((page.moves.len(), page.next, page.truncated), (1, None, false));
    assert_eq!((page.moves[0].timestamp, page.moves[0].generation), (Timestamp::from_ms(2000), Some(0)));
    let failed = walk(at(2), &mut |_| Err("no disk"), 9);
    assert_eq!(failed, Err(WalkError::Read("no disk")));
}

#[test]
fn a_chain_that_loops_or_leaves_its_key_is_an_error() {
    let mut world = World::default();
    for command in ["topic t 1 2 0..10", "commit - g t/0=5", "commit - g t/1=6", "join a g"] {
        world.run(command);
    }
    let with_prev = |place: i64, prev: &[u8]| {
        let mut record = world.read(at(place)).unwrap();
        record.headers.push((b"prev".to_vec(), Some(prev.to_vec())));
        record
    };
    let walked = |record: RawRecord| {
        let read = |place: Offset| if place == at(1) { Some(record.clone()) } else { world.read(place) };
        walk(at(1), &mut |place| Ok::<_, ()>(read(place)), 9).unwrap_err()
    };
    assert!(matches!(walked(with_prev(1, b"1")), WalkError::Record(ReplayError::BadHeader { .. })));
    assert!(matches!(walked(with_prev(1, b"2")), WalkError::Record(ReplayError::BadHeader { .. })));
    assert_eq!(walked(with_prev(1, b"0")), WalkError::OtherKey { at: at(0), head: at(1) });
    let join = walk(at(2), &mut |place| Ok::<_, ()>(world.read(place)), 9);
    assert_eq!(join, Err(WalkError::NotAnOffset { at: at(2) }));
}

#[test]
fn exported_rows_come_back() {
    let mut world = World::default();
    for command in ["topic t 1 2 0..10", "commit - g t/1=5*3", "commit - g t/0=6", "commit - h t/0=1"] {
        world.run(command);
    }
    let rows = world.live.group("g").unwrap().export();
    let short: Vec<_> =
        rows.iter().map(|row| (row.partition, row.committed, row.metadata.as_str())).collect();
    assert_eq!(short, [(0, next(6), ""), (1, next(5), "mmm")]);
    let import = Commit {
        group: "i".to_owned(),
        offsets: rows.iter().map(ExportRow::to_commit).collect(),
        ..commit_of("", Why::Import, None)
    };
    let outcome = world.live.commit(Timestamp::from_ms(1), &import, &|_| Some(bounds(0, 9))).unwrap();
    for (place, record) in (100..).zip(&outcome.records) {
        world.live.replay_record(at(place), record).unwrap();
    }
    let again = world.live.group("i").unwrap().export();
    assert_eq!(
        again,
        rows.into_iter().map(|row| ExportRow { group: "i".to_owned(), ..row }).collect::<Vec<_>>()
    );
    assert!(world.live.group("i").unwrap().offsets().all(|(_, _, entry)| entry.last_handled().is_none()));
}
