//! The crate `kafka-protocol` as a second opinion: what one side writes, the other reads as the same.
#![allow(clippy::unwrap_used)]

use bytes::{Bytes, BytesMut};
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{EndTxnMarker as TheirMarker, GroupId, SyncGroupRequest};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kafka_protocol::records as theirs;
use leftoff_wire::primitives::Reader;
use leftoff_wire::record_batch::{
    Batch, BatchBuilder, BatchHeader, EndTxnMarker, EndTxnResult, Limits, RecordView, TimestampType,
};
use leftoff_wire::{Compression, Offset};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn they_read_our_batches(want in any_batch()) {
        let bytes = built(&want);
        let read = theirs::RecordBatchDecoder::decode_all(&mut Bytes::from(bytes)).unwrap();
        prop_assert_eq!(read.len(), 1);
        prop_assert_eq!(read[0].compression, their_compression(want.compression));
        prop_assert_eq!(&read[0].records, &as_theirs(&want));
    }

    #[test]
    fn we_read_their_batches(mut want in any_batch()) {
        // Their encoder knows no log append time.
        want.log_append_time_ms = None;
        let records = as_theirs(&want);
        let options = theirs::RecordEncodeOptions { version: 2, compression: their_compression(want.compression) };
        let mut bytes = BytesMut::new();
        theirs::RecordBatchEncoder::encode(&mut bytes, &records, &options).unwrap();

        let (batch, rest) = Batch::parse(&bytes).unwrap();
        prop_assert!(rest.is_empty());
        prop_assert_eq!(batch.validate_records(&Limits::default()), Ok(()));
        prop_assert_eq!(batch.header().attributes.compression(), want.compression);
        let first = want.records[0].timestamp_ms;
        let last = want.records.iter().map(|record| record.timestamp_ms).fold(first, i64::max);
        prop_assert_eq!(batch.header().max_timestamp, last);
        prop_assert_eq!(batch.header().last_offset().get(), records.last().unwrap().offset);
        let ours = batch.records(&Limits::default()).unwrap();
        let read: Vec<_> = ours.iter().map(|record| as_record(batch.header(), record.unwrap())).collect();
        prop_assert_eq!(read, records);
    }

    #[test]
    fn without_compression_both_write_the_same_bytes(mut want in any_batch()) {
        want.log_append_time_ms = None;
        want.compression = Compression::None;
        // They count timestamps from the least, we from the first, as Kafka's own producer does.
        want.records.sort_by_key(|record| record.timestamp_ms);
        want.records[0].gap = 0;
        let options = theirs::RecordEncodeOptions { version: 2, compression: theirs::Compression::None };
        let mut bytes = BytesMut::new();
        theirs::RecordBatchEncoder::encode(&mut bytes, &as_theirs(&want), &options).unwrap();
        prop_assert_eq!(built(&want), &bytes[..]);
    }

    #[test]
    fn we_read_their_strings_bytes_and_counts(
        text in "\\PC{0,300}",
        instance in prop::option::of("[a-z]{0,200}"),
        raw in prop::collection::vec(any::<u8>(), 0..300),
        members in 0usize..200,
    ) {
        let str = |text: &str| StrBytes::from_string(text.to_owned());
        let member = SyncGroupRequestAssignment::default().with_member_id(str(&text)).with_assignment(raw.clone().into());
        let request = SyncGroupRequest::default()
            .with_group_id(GroupId(str(&text)))
            .with_generation_id(-7)
            .with_group_instance_id(instance.as_deref().map(str))
            .with_assignments(vec![member; members]);
        let plain = encoded(&request, 3);
        let mut r = Reader::new(&plain);
        prop_assert_eq!((r.str(), r.i32(), r.str()), (Ok(&*text), Ok(-7), Ok("")));
        prop_assert_eq!(r.nullable_str(), Ok(instance.as_deref()));
        prop_assert_eq!(r.count(6), Ok(members));
        for _ in 0..members {
            prop_assert_eq!((r.str(), r.bytes()), (Ok(&*text), Ok(&*raw)));
        }
        prop_assert!(r.is_empty());

        let compact = encoded(&request, 4);
        let mut r = Reader::new(&compact);
        prop_assert_eq!((r.compact_str(), r.i32(), r.compact_str()), (Ok(&*text), Ok(-7), Ok("")));
        prop_assert_eq!(r.nullable_compact_str(), Ok(instance.as_deref()));
        prop_assert_eq!(r.compact_count(3), Ok(members));
        for _ in 0..members {
            let tags = (r.compact_str(), r.compact_bytes(), r.unsigned_varint());
            prop_assert_eq!(tags, (Ok(&*text), Ok(&*raw), Ok(0)));
        }
        prop_assert_eq!((r.unsigned_varint(), r.remaining()), (Ok(0), 0));
    }

    #[test]
    fn transaction_markers_are_the_same_bytes(coordinator_epoch: i32) {
        let ours = EndTxnMarker { result: EndTxnResult::Commit, coordinator_epoch };
        let value = ours.encode_value();
        // Behind the version.
        let theirs = TheirMarker::decode(&mut Bytes::copy_from_slice(&value[2..]), 0).unwrap();
        prop_assert_eq!(theirs.coordinator_epoch, coordinator_epoch);
        prop_assert_eq!(encoded(&theirs, 0), &value[2..]);
    }
}

fn encoded(message: &impl Encodable, version: i16) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes, version).unwrap();
    bytes.to_vec()
}

#[derive(Clone, Debug)]
struct WantedBatch {
    compression: Compression,
    base_offset: i64,
    leader_epoch: i32,
    /// Id, epoch, base sequence.
    producer: (i64, i16, i32),
    transactional: bool,
    control: bool,
    log_append_time_ms: Option<i64>,
    records: Vec<WantedRecord>,
}

#[derive(Clone, Debug)]
struct WantedRecord {
    /// Offsets between this record and the one before.
    gap: i32,
    timestamp_ms: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    /// Their records have a map here, so keys occur once.
    headers: IndexMap<String, Option<Vec<u8>>>,
}

fn any_batch() -> impl Strategy<Value = WantedBatch> {
    (
        prop::sample::select(&Compression::ALL[..]),
        0..1i64 << 62,
        any::<i32>(),
        (-1..i64::MAX, -1..i16::MAX, -1..i32::MAX / 2),
        any::<(bool, bool)>(),
        prop::option::of(any::<i64>()),
        prop::collection::vec(any_record(), 1..40),
    )
        .prop_map(
            |(compression, base_offset, leader_epoch, producer, flags, log_append_time_ms, mut records)| {
                // They take the first record's offset for the base offset.
                records[0].gap = 0;
                let (transactional, control) = flags;
                WantedBatch {
                    compression,
                    base_offset,
                    leader_epoch,
                    producer,
                    transactional,
                    control,
                    log_append_time_ms,
                    records,
                }
            },
        )
}

fn any_record() -> impl Strategy<Value = WantedRecord> {
    let gap = prop_oneof![4 => Just(0), 1 => 0..10_000i32];
    // Their difference of two timestamps must not overflow.
    let timestamp_ms =
        prop_oneof![Just(-1), 1_700_000_000_000..1_700_000_100_000i64, -(1i64 << 61)..1i64 << 61];
    let headers = prop::collection::vec(("[a-zé]{0,8}", any_bytes(20)), 0..4);
    (gap, timestamp_ms, any_bytes(80), any_bytes(400), headers).prop_map(
        |(gap, timestamp_ms, key, value, headers)| WantedRecord {
            gap,
            timestamp_ms,
            key,
            value,
            headers: headers.into_iter().collect(),
        },
    )
}

fn any_bytes(max: usize) -> impl Strategy<Value = Option<Vec<u8>>> {
    prop::option::of(prop::collection::vec(any::<u8>(), 0..max))
}

/// Each record with its offset delta.
fn with_deltas(want: &WantedBatch) -> impl Iterator<Item = (i32, &WantedRecord)> {
    want.records.iter().scan(-1, |delta, record| {
        *delta += 1 + record.gap;
        Some((*delta, record))
    })
}

fn built(want: &WantedBatch) -> Vec<u8> {
    let (id, epoch, base_sequence) = want.producer;
    let mut builder = BatchBuilder::new(want.compression);
    builder
        .base_offset(Offset::new(want.base_offset).unwrap())
        .partition_leader_epoch(want.leader_epoch)
        .producer(id, epoch, base_sequence)
        .transactional(want.transactional)
        .control(want.control)
        .log_append_time_ms(want.log_append_time_ms);
    for (delta, record) in with_deltas(want) {
        let headers: Vec<_> =
            record.headers.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
        builder.push_at(delta, record.timestamp_ms, record.key.as_deref(), record.value.as_deref(), &headers);
    }
    builder.build().unwrap()
}

fn as_theirs(want: &WantedBatch) -> Vec<theirs::Record> {
    let (producer_id, producer_epoch, base_sequence) = want.producer;
    let record = |(delta, record): (i32, &WantedRecord)| theirs::Record {
        transactional: want.transactional,
        control: want.control,
        delete_horizon: false,
        partition_leader_epoch: want.leader_epoch,
        producer_id,
        producer_epoch,
        timestamp_type: match want.log_append_time_ms {
            Some(_) => theirs::TimestampType::LogAppend,
            None => theirs::TimestampType::Creation,
        },
        offset: want.base_offset + i64::from(delta),
        sequence: base_sequence.wrapping_add(delta),
        timestamp: record.timestamp_ms,
        key: record.key.clone().map(Bytes::from),
        value: record.value.clone().map(Bytes::from),
        headers: record
            .headers
            .iter()
            .map(|(key, value)| (StrBytes::from_string(key.clone()), value.clone().map(Bytes::from)))
            .collect(),
    };
    with_deltas(want).map(record).collect()
}

fn as_record(header: &BatchHeader, record: RecordView<'_>) -> theirs::Record {
    theirs::Record {
        transactional: header.attributes.is_transactional(),
        control: header.attributes.is_control(),
        delete_horizon: header.attributes.has_delete_horizon(),
        partition_leader_epoch: header.partition_leader_epoch,
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        timestamp_type: match header.attributes.timestamp_type() {
            TimestampType::CreateTime => theirs::TimestampType::Creation,
            TimestampType::LogAppendTime => theirs::TimestampType::LogAppend,
        },
        offset: record.offset(header).get(),
        sequence: header.base_sequence.wrapping_add(record.offset_delta),
        timestamp: record.timestamp(header),
        key: record.key.map(Bytes::copy_from_slice),
        value: record.value.map(Bytes::copy_from_slice),
        headers: record
            .headers
            .iter()
            .map(|(key, value)| {
                let key = StrBytes::from_utf8(Bytes::copy_from_slice(key)).unwrap();
                (key, value.map(Bytes::copy_from_slice))
            })
            .collect(),
    }
}

fn their_compression(compression: Compression) -> theirs::Compression {
    match compression {
        Compression::None => theirs::Compression::None,
        Compression::Gzip => theirs::Compression::Gzip,
        Compression::Snappy => theirs::Compression::Snappy,
        Compression::Lz4 => theirs::Compression::Lz4,
        Compression::Zstd => theirs::Compression::Zstd,
    }
}
