//! What a producer's bytes must be.

use leftoff_wire::Compression;
use leftoff_wire::record_batch::{BatchBuilder, Batches, Limits, TimestampType};

use crate::broker::{Incoming, ProduceRules, Settings};
use crate::types::Timestamp;

const NOW: i64 = 10_000_000;

fn rules(given: &[(&str, &str)]) -> ProduceRules {
    let mut settings = Settings::default();
    for (name, value) in given {
        settings.set(name, Some(value)).unwrap();
    }
    ProduceRules::of(&settings)
}

/// Records as `KEY@TIME`, an empty key is none.
fn batch(records: &str, with: impl FnOnce(&mut BatchBuilder)) -> Vec<u8> {
    let mut batch = BatchBuilder::default();
    with(&mut batch);
    for record in records.split(' ') {
        let (key, at) = record.split_once('@').unwrap();
        let key = Some(key.as_bytes()).filter(|key| !key.is_empty());
        batch.push(at.parse().unwrap(), key, Some(b"value"), &[]);
    }
    batch.build().unwrap()
}

fn plain(records: &str) -> Vec<u8> {
    batch(records, |_| {})
}

/// The bytes with this field of their header, and a checksum that fits.
fn with_field(mut bytes: Vec<u8>, at: usize, field: &[u8]) -> Vec<u8> {
    bytes[at..at + field.len()].copy_from_slice(field);
    let crc = leftoff_wire::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// `ok`, or the code and the records that are named.
fn verdict(bytes: Vec<u8>, rules: &ProduceRules) -> String {
    match Incoming::check(bytes, rules, Timestamp::from_ms(NOW)) {
        Ok(_) => "ok".to_owned(),
        Err(invalid) => {
            assert!(!invalid.to_string().is_empty());
            let records: Vec<i32> = invalid.record_errors().iter().map(|error| error.index).collect();
            format!("{} {records:?}", invalid.error_code())
        }
    }
}

#[test]
fn batches_are_checked_as_kafka_checks_them() {
    let good = plain("k@5 @6");
    let magic = |magic: u8| with_field(good.clone(), 16, &[magic]);
    let crc = {
        let mut bytes = good.clone();
        *bytes.last_mut().unwrap() ^= 1;
        bytes
    };
    let short = good[..good.len() - 1].to_vec();
    let gzip = BatchBuilder::new(Compression::Gzip);
    let compressed = batch("k@5 @6", |batch| *batch = gzip);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("good", good.clone(), "ok"),
        ("compressed", compressed, "ok"),
        ("no bytes", Vec::new(), "87 []"),
        ("two batches", [good.clone(), good.clone()].concat(), "87 []"),
        ("message format 0", magic(0), "87 []"),
        ("message format 1", magic(1), "87 []"),
        ("a changed byte", crc, "2 []"),
        ("cut short", short, "2 []"),
        ("less than a header", good[..30].to_vec(), "2 []"),
        ("a base offset", with_field(good.clone(), 0, &7i64.to_be_bytes()), "87 []"),
        ("more records claimed", with_field(good.clone(), 57, &3i32.to_be_bytes()), "87 []"),
        ("fewer records claimed", with_field(good.clone(), 57, &1i32.to_be_bytes()), "87 []"),
        ("no records claimed", with_field(good.clone(), 57, &0i32.to_be_bytes()), "87 []"),
        ("a last offset too far", with_field(good.clone(), 23, &9i32.to_be_bytes()), "87 []"),
        (
            "both wrong in the same way",
            with_field(with_field(good.clone(), 23, &2i32.to_be_bytes()), 57, &3i32.to_be_bytes()),
            "87 []",
        ),
        (
            "control",
            batch("k@5", |batch| {
                batch.control(true);
            }),
            "87 []",
        ),
        (
            "transactional",
            batch("k@5", |batch| {
                batch.producer(3, 0, 0).transactional(true);
            }),
            "48 []",
        ),
        (
            "a producer without numbers",
            batch("k@5", |batch| {
                batch.producer(3, 0, -1);
            }),
            "87 []",
        ),
        (
            "a producer without epoch",
            batch("k@5", |batch| {
                batch.producer(3, -1, 0);
            }),
            "87 []",
        ),
        (
            "a producer's log append time",
            batch("k@5", |batch| {
                batch.log_append_time_ms(Some(5));
            }),
            "32 [0]",
        ),
    ];
    for (what, bytes, expect) in cases {
        assert_eq!(verdict(bytes, &rules(&[])), expect, "{what}");
    }
    assert_eq!(verdict(good.clone(), &rules(&[("max.message.bytes", "75")])), "10 []");
    let limit = good.len().to_string();
    assert_eq!(verdict(good, &rules(&[("max.message.bytes", &limit)])), "ok");
}

#[test]
fn settings_say_which_records_are_taken() {
    let compacted = [("cleanup.policy", "compact,delete")];
    let cases = [
        ("k@5 j@6", &compacted[..], "ok"),
        ("k@5 @6 @7", &compacted[..], "87 [1, 2]"),
        ("@5", &[("cleanup.policy", "delete")][..], "ok"),
        // An hour ahead is let pass, and any time in the past.
        ("@13600000 @0", &[], "ok"),
        ("@5 @13600001", &[], "32 [1]"),
        ("@-1", &[("message.timestamp.before.max.ms", "10")], "ok"),
        ("@9999990 @9999989", &[("message.timestamp.before.max.ms", "10")], "32 [1]"),
        ("@10000005 @10000006", &[("message.timestamp.after.max.ms", "5")], "32 [1]"),
        ("@99999999 @1", &[("message.timestamp.type", "LogAppendTime")], "ok"),
    ];
    for (records, given, expect) in cases {
        assert_eq!(verdict(plain(records), &rules(given)), expect, "{records} {given:?}");
    }
}

#[test]
fn log_append_time_is_the_brokers() {
    let rules = rules(&[("message.timestamp.type", "LogAppendTime")]);
    let incoming = Incoming::check(plain("@5 @6"), &rules, Timestamp::from_ms(NOW)).unwrap();
    // The checksum holds again.
    let batches = Batches::parse(incoming.batches.bytes().to_vec()).unwrap();
    let (_, batch) = batches.iter().next().unwrap();
    assert_eq!(batch.header().attributes.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(batch.header(), incoming.header());
    for record in batch.records(&Limits::default()).unwrap().iter() {
        assert_eq!(record.unwrap().timestamp(batch.header()), NOW);
    }
}

#[test]
fn a_greatest_timestamp_that_is_not_true_is_made_true() {
    let bytes = with_field(plain("@5 @6"), 35, &77i64.to_be_bytes());
    let incoming = Incoming::check(bytes, &rules(&[]), Timestamp::from_ms(NOW)).unwrap();
    assert_eq!(incoming.header().max_timestamp, 6);
    Batches::parse(incoming.batches.into_bytes()).unwrap();
    let right = plain("@5 @6");
    let incoming = Incoming::check(right.clone(), &rules(&[]), Timestamp::from_ms(NOW)).unwrap();
    assert_eq!(incoming.batches.bytes(), right, "a batch stays as it was sent");
}
