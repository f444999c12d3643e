#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::primitives::ReadFault;
use crate::{Committed, Offset, Uuid};

const TOPIC_ID: Uuid = Uuid::from_bytes(*b"0123456789abcdef");

#[test]
fn keys_are_kafkas_bytes() {
    let commit = Key::OffsetCommit { group: "g".into(), topic: "top".into(), partition: 7 };
    check_key(&commit, "0001 0001 67 0003 746f70 00000007");
    check_key(&Key::GroupMetadata { group: "é".into() }, "0002 0002 c3a9");
    check_key(&Key::SourceProgress { source: "a.csv".into() }, "4c01 0005 612e637376");
    // ConsumerGroupMetadataKey of the next-generation protocol: passed on as it is.
    check_key(&Key::Unknown { type_id: 3, rest: hex("000167") }, "0003 0001 67");
    check_key(&Key::Unknown { type_id: -1, rest: Vec::new() }, "ffff");
    // What brokers before 0.9 wrote is the same as what they write now.
    assert_eq!(Key::decode(&hex("0000 0001 67 0003 746f70 00000007")), Ok(commit));
}

#[test]
fn keys_that_are_none() {
    let end =
        |at, want, left| ConsumerOffsetsError::Read(ReadError { at, fault: ReadFault::End { want, left } });
    let cases = [
        ("", end(0, 2, 0)),
        ("00", end(0, 2, 1)),
        ("0001 0001 67 0003 746f70 000000", end(10, 4, 3)),
        ("0001 7fff 67", end(4, 32_767, 1)),
        ("0002 0001 67 00", ConsumerOffsetsError::Trailing { left_bytes: 1 }),
    ];
    for (bytes, expect) in cases {
        assert_eq!(Key::decode(&hex(bytes)), Err(expect), "{bytes}");
    }
}

#[test]
fn committed_offsets_of_every_version() {
    let value = |leader_epoch, topic_id| OffsetCommitValue {
        committed: Committed::from_wire(42).unwrap(),
        leader_epoch,
        metadata: "me".into(),
        commit_timestamp_ms: 256,
        topic_id,
    };
    let cases = [
        // Version, offset, leader epoch, metadata, commit timestamp, expire timestamp, tags.
        ("0000 000000000000002a          0002 6d65 0000000000000100", value(None, None)),
        ("0001 000000000000002a          0002 6d65 0000000000000100 0000000000000200", value(None, None)),
        ("0002 000000000000002a          0002 6d65 0000000000000100", value(None, None)),
        ("0003 000000000000002a 00000005 0002 6d65 0000000000000100", value(Some(5), None)),
        ("0003 000000000000002a ffffffff 0002 6d65 0000000000000100", value(None, None)),
        ("0004 000000000000002a 00000005 03 6d65   0000000000000100 00", value(Some(5), None)),
        (
            "0004 000000000000002a ffffffff 03 6d65 0000000000000100 01 00 10 30313233343536373839616263646566",
            value(None, Some(TOPIC_ID)),
        ),
        // A tag that is not known here, before and after the one that is; and the id that means none.
        (
            "0004 000000000000002a 00000005 03 6d65 0000000000000100 03
             07 01 ff 00 10 30313233343536373839616263646566 8001 00",
            value(Some(5), Some(TOPIC_ID)),
        ),
        (
            "0004 000000000000002a 00000005 03 6d65 0000000000000100 01 00 10 00000000000000000000000000000000",
            value(Some(5), None),
        ),
    ];
    for (bytes, expect) in &cases {
        assert_eq!(OffsetCommitValue::decode(&hex(bytes)).as_ref(), Ok(expect), "{bytes}");
    }
    // Versions that are written.
    for (bytes, value) in &cases[5..7] {
        assert_eq!(value.encode(), hex(bytes));
    }
}

#[test]
fn committed_offsets_that_are_none() {
    let cases = [
        ("", "at byte 0: 2 bytes wanted, 0 left"),
        ("0005", "version 5 of OffsetCommitValue"),
        ("ffff", "version -1 of OffsetCommitValue"),
        ("0000 ffffffffffffffff 0000 0000000000000100", "offset is -1"),
        ("0000 000000000000002a 0000 0000000000000100 00", "1 bytes behind the last field"),
        ("0000 000000000000002a ffff 0000000000000100", "at byte 12: -1 is no length"),
        (
            "0004 000000000000002a 00000005 01 0000000000000100 01 00 0f 000102",
            "at byte 26: 15 bytes wanted, 3 left",
        ),
        (
            "0004 000000000000002a 00000005 01 0000000000000100 01 00 02 0001",
            "at byte 0: 16 bytes wanted, 2 left",
        ),
        (
            "0004 000000000000002a 00000005 01 0000000000000100 ffffffff0f",
            "at byte 28: 1 bytes wanted, 0 left",
        ),
    ];
    for (bytes, expect) in cases {
        assert_eq!(OffsetCommitValue::decode(&hex(bytes)).unwrap_err().to_string(), expect, "{bytes}");
    }
}

#[test]
fn groups_of_every_version() {
    let value = |since, instance: Option<&str>, rebalance_timeout_ms| GroupMetadataValue {
        protocol_type: "consumer".into(),
        generation: 3,
        protocol: Some("range".into()),
        leader: None,
        current_state_timestamp_ms: since,
        members: vec![MemberMetadata {
            member_id: "m".into(),
            group_instance_id: instance.map(str::to_owned),
            client_id: "c".into(),
            client_host: "/h".into(),
            rebalance_timeout_ms,
            session_timeout_ms: 10,
            subscription: vec![0xaa],
            assignment: vec![],
        }],
    };
    let group = "0008 636f6e73756d6572 00000003 0005 72616e6765 ffff";
    let since = "0000000000000100";
    let tail = "0000000a 00000001 aa 00000000";
    let cases = [
        (
            format!("0000 {group}         00000001 0001 6d           0001 63 0002 2f68          {tail}"),
            value(-1, None, 10),
        ),
        (
            format!("0001 {group}         00000001 0001 6d           0001 63 0002 2f68 00000014 {tail}"),
            value(-1, None, 20),
        ),
        (
            format!("0002 {group} {since} 00000001 0001 6d           0001 63 0002 2f68 00000014 {tail}"),
            value(256, None, 20),
        ),
        (
            format!("0003 {group} {since} 00000001 0001 6d 0001 69   0001 63 0002 2f68 00000014 {tail}"),
            value(256, Some("i"), 20),
        ),
        (
            format!("0003 {group} {since} 00000001 0001 6d ffff      0001 63 0002 2f68 00000014 {tail}"),
            value(256, None, 20),
        ),
        (
            "0004 09636f6e73756d6572 00000003 0672616e6765 00 0000000000000100
             02 026d 0269 0263 032f68 00000014 0000000a 02aa 01 01 05 01 ff 00"
                .into(),
            value(256, Some("i"), 20),
        ),
    ];
    for (bytes, expect) in &cases {
        assert_eq!(GroupMetadataValue::decode(&hex(bytes)).as_ref(), Ok(expect), "{bytes}");
    }
    for (bytes, value) in &cases[3..5] {
        assert_eq!(value.encode(), hex(bytes));
    }
}

#[test]
fn groups_that_are_none() {
    let head = "0000 00000003 ffff ffff";
    let cases = [
        ("0005".into(), "version 5 of GroupMetadataValue"),
        (format!("0000 {head} 7fffffff"), "at byte 16: 17179869176 bytes wanted, 0 left"),
        (format!("0000 {head} ffffffff"), "at byte 16: -1 is no length"),
        (format!("0000 {head} 00000001 0000 0000 0000 0000"), "at byte 22: 4 bytes wanted, 2 left"),
        (format!("0000 {head} 00000000 00"), "1 bytes behind the last field"),
    ];
    for (bytes, expect) in cases {
        assert_eq!(GroupMetadataValue::decode(&hex(&bytes)).unwrap_err().to_string(), expect, "{bytes}");
    }
}

#[test]
fn source_progress() {
    let progress =
        SourceProgress { position_bytes: 258, lines: 3, fingerprint: u64::MAX, topic_id: TOPIC_ID };
    let bytes =
        hex("0000 0000000000000102 0000000000000003 ffffffffffffffff 30313233343536373839616263646566");
    assert_eq!(progress.encode(), bytes);
    assert_eq!(SourceProgress::decode(&bytes), Ok(progress));
    let cases = [
        ("0001", "version 1 of SourceProgress"),
        ("0000 ffffffffffffffff", "position is -1"),
        ("0000 0000000000000000 8000000000000000", "lines is -9223372036854775808"),
    ];
    for (bytes, expect) in cases {
        assert_eq!(SourceProgress::decode(&hex(bytes)).unwrap_err().to_string(), expect);
    }
}

proptest! {
    #[test]
    fn keys_survive(group in ".{0,40}", topic in ".{0,40}", partition: i32, rest: Vec<u8>, type_id in 3i16..0x4c01) {
        let keys = [
            Key::OffsetCommit { group: group.clone(), topic, partition },
            Key::GroupMetadata { group: group.clone() },
            Key::SourceProgress { source: group },
            Key::Unknown { type_id, rest },
        ];
        for key in keys {
            prop_assert_eq!(Key::decode(&key.encode()), Ok(key));
        }
    }

    #[test]
    fn committed_offsets_survive(
        next in 0..=i64::MAX,
        leader_epoch in prop::option::of(0..=i32::MAX),
        metadata in ".{0,300}",
        commit_timestamp_ms: i64,
        topic_id in prop::option::of(any::<[u8; 16]>()),
    ) {
        let value = OffsetCommitValue {
            committed: Committed::end_of_batch(Offset::new(next).unwrap()),
            leader_epoch,
            metadata,
            commit_timestamp_ms,
            topic_id: topic_id.map(Uuid::from_bytes).filter(|id| !id.is_zero()),
        };
        prop_assert_eq!(OffsetCommitValue::decode(&value.encode()), Ok(value));
    }

    #[test]
    fn groups_survive(
        texts in prop::collection::vec(prop::option::of(".{0,20}"), 3),
        numbers: (i32, i64),
        members in prop::collection::vec(any_member(), 0..5),
    ) {
        let value = GroupMetadataValue {
            protocol_type: texts[0].clone().unwrap_or_default(),
            generation: numbers.0,
            protocol: texts[1].clone(),
            leader: texts[2].clone(),
            current_state_timestamp_ms: numbers.1,
            members,
        };
        prop_assert_eq!(GroupMetadataValue::decode(&value.encode()), Ok(value));
    }
}

fn any_member() -> impl Strategy<Value = MemberMetadata> {
    (".{0,20}", prop::option::of(".{0,20}"), ".{0,20}", any::<(i32, i32)>(), any::<(Vec<u8>, Vec<u8>)>())
        .prop_map(|(member_id, group_instance_id, client_id, timeouts, (subscription, assignment))| {
            MemberMetadata {
                client_host: format!("/{client_id}"),
                member_id,
                group_instance_id,
                client_id,
                rebalance_timeout_ms: timeouts.0,
                session_timeout_ms: timeouts.1,
                subscription,
                assignment,
            }
        })
}

fn check_key(key: &Key, bytes: &str) {
    assert_eq!(key.encode(), hex(bytes));
    assert_eq!(Key::decode(&hex(bytes)).as_ref(), Ok(key));
}

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}
