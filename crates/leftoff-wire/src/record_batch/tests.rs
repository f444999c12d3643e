#![allow(clippy::unwrap_used)]

use super::*;
use crate::Offset;
use crate::primitives::{ReadFault, Writer};

mod faults;

/// Made by hand from KIP-98, not by this crate: a transactional batch of three records at offset 42.
const EXAMPLE: &[&str] = &[
    "000000000000002a", // base offset
    "00000055",         // batch length
    "00000005",         // partition leader epoch
    "02",               // magic
    "9ac0dd83",         // crc
    "0010",             // attributes: transactional
    "00000002",         // last offset delta
    "0000018bcfe56800", // base timestamp
    "0000018bcfe56864", // max timestamp
    "0000000000001092", // producer id
    "0007",             // producer epoch
    "00000063",         // base sequence
    "00000003",         // records count
    // length, attributes, timestamp delta, offset delta, key, value, headers
    "18 00 00 00 026b 0a68656c6c6f 00",
    "1a 00 09 02 01 00 04 0268 0231 0268 01",
    "10 00 c801 04 026b 01 00",
];

fn example() -> Vec<u8> {
    hex(&EXAMPLE.concat())
}

#[test]
fn the_checksum_is_crc_32c() {
    assert_eq!(checksum(&[&[0; CRC_FROM][..], b"123456789"].concat()), 0xe306_9283);
}

#[test]
fn the_example_is_read() {
    let bytes = example();
    let (batch, rest) = Batch::parse(&bytes).unwrap();
    assert!(rest.is_empty());
    assert_eq!(batch.bytes(), bytes);
    let header = batch.header();
    assert_eq!(header.size_bytes(), bytes.len());
    assert_eq!((header.base_offset, header.last_offset(), header.next_offset()), (at(42), at(44), at(45)));
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (4242, 7, 99));
    assert_eq!(header.last_sequence(), Some(101));
    assert_eq!((header.partition_leader_epoch, header.records_count), (5, 3));
    assert!(header.attributes.is_transactional() && !header.attributes.is_control());
    assert_eq!(header.delete_horizon_ms(), None);

    let shown = [
        "42 1700000000000 Some(\"k\") Some(\"hello\") []",
        "43 1699999999995 None Some(\"\") [h=Some(\"1\"), h=None]",
        "44 1700000000100 Some(\"k\") None []",
    ];
    assert_eq!(show(&batch), shown);
    assert_eq!(batch.validate_records(&Limits::default()), Ok(()));
}

#[test]
fn the_example_is_built() {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.base_offset(at(42)).partition_leader_epoch(5).producer(4242, 7, 99).transactional(true);
    builder.push(1_700_000_000_000, Some(b"k"), Some(b"hello"), &[]);
    builder.push(1_699_999_999_995, None, Some(b""), &[("h", Some(b"1")), ("h", None)]);
    builder.push(1_700_000_000_100, Some(b"k"), None, &[]);
    assert_eq!(builder.bytes_estimate(), example().len());
    assert_eq!(builder.build(), Ok(example()));
}

#[test]
fn headers_are_found_by_key_and_the_last_one_counts() {
    let bytes = example();
    let records = Batch::parse(&bytes).unwrap().0.records(&Limits::default()).unwrap();
    let second = records.iter().nth(1).unwrap().unwrap();
    assert_eq!(second.headers.len(), 2);
    assert_eq!(second.headers.get("h"), Some(None));
    assert_eq!(second.headers.get("H"), None);
    assert_eq!(second.headers.into_iter().len(), 2);
}

#[test]
fn records_are_borrowed_unless_they_are_compressed() {
    let bytes = example();
    let records = Batch::parse(&bytes).unwrap().0.records(&Limits { max_decompressed_bytes: 0 }).unwrap();
    assert!(std::ptr::eq(records.bytes().as_ptr(), &raw const bytes[HEADER_BYTES]));
}

#[test]
fn log_append_time_takes_the_place_of_each_records_own() {
    let mut builder = BatchBuilder::default();
    builder.log_append_time_ms(Some(5000));
    builder.push(1, None, Some(b"a"), &[]);
    builder.push(9000, None, Some(b"b"), &[]);
    let bytes = builder.build().unwrap();
    let (batch, _) = Batch::parse(&bytes).unwrap();
    assert_eq!(batch.header().attributes.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(show(&batch), ["0 5000 None Some(\"a\") []", "1 5000 None Some(\"b\") []"]);

    builder.log_append_time_ms(None).push(1, None, None, &[]);
    let bytes = builder.build().unwrap();
    assert_eq!(show(&Batch::parse(&bytes).unwrap().0), ["0 1 None None []"]);
}

#[test]
fn with_a_delete_horizon_timestamps_count_from_it() {
    let mut builder = BatchBuilder::default();
    builder.delete_horizon_ms(Some(90_000));
    builder.push(1000, Some(b"k"), None, &[]);
    let bytes = builder.build().unwrap();
    let (batch, _) = Batch::parse(&bytes).unwrap();
    assert_eq!((batch.header().delete_horizon_ms(), batch.header().max_timestamp), (Some(90_000), 1000));
    assert_eq!(show(&batch), ["0 1000 Some(\"k\") None []"]);
}

#[test]
fn compaction_leaves_gaps() {
    let mut builder = BatchBuilder::default();
    builder.base_offset(at(100));
    builder.push_at(3, 0, None, None, &[]);
    builder.push(0, None, None, &[]);
    builder.push_at(90, 0, None, None, &[]);
    let bytes = builder.build().unwrap();
    let (batch, _) = Batch::parse(&bytes).unwrap();
    let offsets: Vec<_> =
        show(&batch).iter().map(|record| record.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(offsets, ["103", "104", "190"]);
    assert_eq!((batch.header().base_offset, batch.header().next_offset()), (at(100), at(191)));
}

#[test]
fn every_timestamp_survives_its_delta() {
    let timestamps = [i64::MAX, i64::MIN, 0, -1, i64::MAX];
    let mut builder = BatchBuilder::default();
    for timestamp in timestamps {
        builder.push(timestamp, None, None, &[]);
    }
    let bytes = builder.build().unwrap();
    let (batch, _) = Batch::parse(&bytes).unwrap();
    let records = batch.records(&Limits::default()).unwrap();
    let read: Vec<_> = records.iter().map(|record| record.unwrap().timestamp(batch.header())).collect();
    assert_eq!(read, timestamps);
    assert_eq!(batch.header().max_timestamp, i64::MAX);
}

#[test]
fn a_batch_that_compaction_emptied_is_a_batch() {
    let mut bytes = example();
    bytes.truncate(HEADER_BYTES);
    bytes[8..12].copy_from_slice(&49i32.to_be_bytes());
    bytes[57..61].copy_from_slice(&0i32.to_be_bytes());
    sign(&mut bytes);
    let (batch, _) = Batch::parse(&bytes).unwrap();
    assert_eq!(batch.header().next_offset(), at(45));
    assert_eq!(batch.validate_records(&Limits::default()), Ok(()));
}

#[test]
fn control_records_say_how_a_transaction_ended() {
    for (result, key) in [(EndTxnResult::Abort, "00000000"), (EndTxnResult::Commit, "00000001")] {
        let marker = EndTxnMarker { result, coordinator_epoch: 17 };
        assert_eq!(marker.encode_key(), hex(key));
        assert_eq!(marker.encode_value(), hex("000000000011"));
        assert_eq!(EndTxnMarker::decode(&marker.encode_key(), &marker.encode_value()), Ok(Some(marker)));
    }
    // A leader change of the Raft quorum, which has another value.
    assert_eq!(EndTxnMarker::decode(&hex("00000002"), b""), Ok(None));
    // A later version: more behind the epoch.
    assert!(EndTxnMarker::decode(&hex("00000001"), &hex("00010000001100")).unwrap().is_some());
    assert!(EndTxnMarker::decode(&hex("0000"), &hex("000000000011")).is_err());
    assert!(EndTxnMarker::decode(&hex("00000001"), &hex("0000")).is_err());
}

#[test]
fn sequence_numbers_go_round_after_the_greatest() {
    let cases = [
        (-1, None),
        (0, Some(2)),
        (i32::MAX - 2, Some(i32::MAX)),
        (i32::MAX - 1, Some(0)),
        (i32::MAX, Some(1)),
    ];
    for (base_sequence, last) in cases {
        let header = BatchHeader { base_sequence, ..*Batch::parse(&example()).unwrap().0.header() };
        assert_eq!(header.last_sequence(), last, "{base_sequence}");
    }
}

#[test]
fn attributes_keep_unknown_flags_and_refuse_unknown_codecs() {
    for bits in 0..=255i16 {
        assert_eq!(Attributes::from_bits(bits).is_some(), bits & 7 <= 4, "{bits:#x}");
    }
    let all = Attributes::from_bits(-4).unwrap();
    assert_eq!((all.bits(), all.compression()), (-4, Compression::Zstd));
    assert!(all.is_transactional() && all.is_control() && all.has_delete_horizon());
}

#[test]
fn batches_get_their_places_in_a_log() {
    let mut builder = BatchBuilder::default();
    builder.push(0, None, Some(b"one"), &[]);
    let mut bytes = builder.build().unwrap();
    let second_at = bytes.len();
    bytes.extend(example());
    let checksums = |batches: &Batches| batches.headers().map(|(_, header)| header.crc).collect::<Vec<_>>();

    let mut batches = Batches::parse(bytes).unwrap();
    let before = checksums(&batches);
    assert_eq!(batches.assign(at(1000), 8), at(1004));
    assert_eq!(checksums(&batches), before);
    let places: Vec<_> = batches
        .headers()
        .map(|(position_bytes, header)| (position_bytes, header.base_offset, header.partition_leader_epoch))
        .collect();
    assert_eq!(places, [(0, at(1000), 8), (second_at, at(1001), 8)]);
    // Still whole and well signed.
    assert_eq!(Batches::parse(batches.clone().into_bytes()), Ok(batches));
}

#[test]
fn a_batch_may_get_the_last_offsets_of_all() {
    let mut batches = Batches::parse(example()).unwrap();
    assert_eq!(batches.assign(at(i64::MAX - 3), 0), at(i64::MAX));
}

#[test]
#[should_panic(expected = "offsets end at 2^63 - 1")]
fn a_batch_does_not_get_offsets_beyond() {
    Batches::parse(example()).unwrap().assign(at(i64::MAX - 2), 0);
}

#[test]
fn a_builder_builds_again_with_its_settings_and_without_its_records() {
    for codec in Compression::ALL {
        let mut builder = BatchBuilder::new(codec);
        builder.base_offset(at(7)).producer(1, 2, 3);
        assert_eq!(builder.build().unwrap_err().fault, BatchFault::Empty);
        builder.push(50, Some(b"k"), Some(&[b'v'; 1000]), &[]);
        builder.push(60, None, None, &[]);
        assert_eq!((builder.len(), builder.is_empty()), (2, false));
        let first = builder.build().unwrap();
        assert_eq!((builder.len(), builder.is_empty(), builder.bytes_estimate()), (0, true, HEADER_BYTES));

        builder.push(50, Some(b"k"), Some(&[b'v'; 1000]), &[]);
        builder.push(60, None, None, &[]);
        assert_eq!(builder.build().unwrap(), first, "{codec}");
    }
}

#[test]
fn without_compression_the_buffer_becomes_the_batch() {
    let mut builder = BatchBuilder::default();
    builder.push(0, None, Some(&[0; 4096]), &[]);
    let first = builder.build().unwrap();
    // The second one makes its room at once, as large as the first, and is not copied.
    builder.push(0, None, Some(b"small"), &[]);
    let second = builder.build().unwrap();
    assert!(second.capacity() >= first.len());

    // But one large batch does not make all later ones as large.
    builder.push(0, None, Some(&vec![0; 5 << 20]), &[]);
    builder.build().unwrap();
    builder.push(0, None, Some(b"small"), &[]);
    assert!(builder.build().unwrap().capacity() <= 1 << 20);
}

#[test]
fn a_builder_refuses_offsets_beyond_the_last() {
    let mut builder = BatchBuilder::default();
    builder.base_offset(at(i64::MAX - 1));
    builder.push(0, None, None, &[]);
    builder.push(0, None, None, &[]);
    assert_eq!(
        builder.build().unwrap_err().to_string(),
        "at byte 0: base offset 9223372036854775806 plus 1 is no offset"
    );
    builder.push(0, None, None, &[]);
    assert!(builder.build().is_ok());
}

fn show(batch: &Batch<'_>) -> Vec<String> {
    let text = |bytes: Option<&[u8]>| bytes.map(|bytes| str::from_utf8(bytes).unwrap().to_owned());
    let records = batch.records(&Limits::default()).unwrap();
    let show = |record: RecordView<'_>| {
        let headers: Vec<_> = record
            .headers
            .iter()
            .map(|(key, value)| format!("{}={:?}", text(Some(key)).unwrap(), text(value)))
            .collect();
        let (offset, timestamp) = (record.offset(batch.header()), record.timestamp(batch.header()));
        format!(
            "{offset} {timestamp} {:?} {:?} [{}]",
            text(record.key),
            text(record.value),
            headers.join(", ")
        )
    };
    records.iter().map(|record| show(record.unwrap())).collect()
}

fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

/// Sets the checksum to what the bytes are now.
fn sign(batch: &mut [u8]) {
    let crc = checksum(batch);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}
