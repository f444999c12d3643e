//! What is refused, and how.

use super::*;
use crate::compression::CompressionError;

#[test]
fn each_prefix_is_incomplete_and_nothing_else() {
    let bytes = example();
    for length in 0..bytes.len() {
        let error = Batch::parse(&bytes[..length]).unwrap_err();
        assert!(error.is_incomplete(), "{length}: {error}");
    }
    let error = Batch::parse(&bytes[..70]).unwrap_err();
    assert_eq!(error.to_string(), "at byte 0: a batch of at least 97 bytes, of which 70 are here");
    assert!(Batch::parse(&[&bytes[..], &bytes[..10]].concat()).is_ok_and(|(_, rest)| rest.len() == 10));
}

#[test]
fn headers_that_cannot_be() {
    let field = |field, value| BatchFault::Field { field, value };
    // A place in the header, what is written there, what is said about it.
    let cases: &[(usize, &[u8], usize, BatchFault)] = &[
        (16, &[1], 16, BatchFault::Magic { magic: 1 }),
        (16, &[0xff], 16, BatchFault::Magic { magic: -1 }),
        (8, &48i32.to_be_bytes(), 8, BatchFault::Length { batch_length: 48 }),
        (8, &(-1i32).to_be_bytes(), 8, BatchFault::Length { batch_length: -1 }),
        (21, &[0, 5], 21, field("compression code", 5)),
        (23, &(-1i32).to_be_bytes(), 23, field("last offset delta", -1)),
        (57, &i32::MIN.to_be_bytes(), 57, field("records count", i64::from(i32::MIN))),
        (0, &(-1i64).to_be_bytes(), 0, field("base offset", -1)),
        (
            0,
            &(i64::MAX - 2).to_be_bytes(),
            0,
            BatchFault::OffsetRange { base_offset: i64::MAX - 2, last_offset_delta: 2 },
        ),
    ];
    for (place, value, position_bytes, fault) in cases {
        let mut bytes = example();
        bytes[*place..place + value.len()].copy_from_slice(value);
        sign(&mut bytes);
        let expect = BatchError { position_bytes: *position_bytes, fault: fault.clone() };
        assert_eq!(Batch::parse(&bytes).unwrap_err(), expect);
        assert_eq!(BatchHeader::parse(&bytes[..HEADER_BYTES]).unwrap_err(), expect);
    }
}

#[test]
fn old_formats_are_recognised_even_if_shorter_than_a_header() {
    // A message set v1 of one empty message.
    let legacy = hex("0000000000000000 00000016 00000000 01 00 0000000000000000 ffffffff ffffffff");
    assert_eq!(Batch::parse(&legacy).unwrap_err(), BatchFault::Magic { magic: 1 }.at(16));
}

#[test]
fn every_bit_from_the_crc_on_is_under_the_checksum() {
    let bytes = example();
    for bit in 17 * 8..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Batch::parse(&damaged).is_err(), "bit {bit}");
    }
    // Base offset and leader epoch are not: a broker sets them in place.
    for bit in (1..64).chain(12 * 8..16 * 8) {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 0x80 >> (bit % 8);
        assert!(Batch::parse(&changed).is_ok(), "bit {bit}");
    }
}

#[test]
fn records_that_are_not_what_the_header_claims() {
    const A: &str = "0e 00 00 00 01 0261 00";
    const B: &str = "0e 00 00 02 01 0262 00";
    let read = |index, fault: ReadFault| BatchFault::Record { index, fault: fault.into() };
    let delta = |index, offset_delta, min| BatchFault::Record {
        index,
        fault: RecordFault::OffsetDelta { offset_delta, min, max: 1 },
    };
    let cases = [
        // As many as claimed, with one byte less, one more, one record more.
        (2, format!("{A} {B}"), None),
        (2, format!("{A} {}", &B[..B.len() - 2]), Some((9, read(1, ReadFault::End { want: 7, left: 6 })))),
        (2, format!("{A} {B} 00"), Some((16, BatchFault::Trailing { left_bytes: 1 }))),
        (1, format!("{A} {B}"), Some((8, BatchFault::Trailing { left_bytes: 8 }))),
        (0, A.into(), Some((0, BatchFault::Trailing { left_bytes: 8 }))),
        (
            3,
            format!("{A} {B} 0e 00"),
            Some((0, BatchFault::RecordsCount { records_count: 3, left_bytes: 18 })),
        ),
        (i32::MAX, A.into(), Some((0, BatchFault::RecordsCount { records_count: i32::MAX, left_bytes: 8 }))),
        // Offset deltas: twice the same, going back, negative, above the last.
        (2, format!("{A} {A}"), Some((9, delta(1, 0, 1)))),
        (2, format!("{B} {A}"), Some((9, delta(1, 0, 2)))),
        (1, "0e 00 00 01 01 0261 00".into(), Some((1, delta(0, -1, 0)))),
        (1, "0e 00 00 04 01 0261 00".into(), Some((1, delta(0, 2, 0)))),
        // Lengths and counts within a record.
        (1, format!("01 {A}"), Some((1, read(0, ReadFault::Length { value: -1 })))),
        (
            1,
            "ffffffff0f 00 00 00 01 0261 00".into(),
            Some((5, read(0, ReadFault::Length { value: i64::from(i32::MIN) }))),
        ),
        (1, "8080808080 00 00 00 01 0261 00".into(), Some((5, read(0, ReadFault::Varint { bits: 32 })))),
        (1, "0e 00 00 00 03 0261 00".into(), Some((5, read(0, ReadFault::Length { value: -2 })))),
        (1, "0e 00 00 00 01 0861 00".into(), Some((6, read(0, ReadFault::End { want: 4, left: 2 })))),
        (1, "0e 00 00 00 01 0061 00".into(), Some((7, read(0, ReadFault::Length { value: -49 })))),
        (
            1,
            "10 00 00 00 01 0261 00 00".into(),
            Some((8, BatchFault::Record { index: 0, fault: RecordFault::Trailing { left_bytes: 1 } })),
        ),
        // Headers: a negative count, more than fit, a null key.
        (1, "0e 00 00 00 01 0261 01".into(), Some((8, read(0, ReadFault::Length { value: -1 })))),
        (1, "12 00 00 00 01 0261 04 00 01".into(), Some((8, read(0, ReadFault::End { want: 4, left: 2 })))),
        (
            1,
            "16 00 00 00 01 0261 feffffff0f".into(),
            Some((12, read(0, ReadFault::End { want: 0xffff_fffe, left: 0 }))),
        ),
        (1, "12 00 00 00 01 0261 02 01 01".into(), Some((8, read(0, ReadFault::Length { value: -1 })))),
        (1, "12 00 00 00 01 0261 02 00 01".into(), None),
    ];
    for (records_count, records, expect) in cases {
        let bytes = batch_of(records_count, &hex(&records), Compression::None);
        let (batch, _) = Batch::parse(&bytes).unwrap();
        let expect = expect.map_or(Ok(()), |(position_bytes, fault)| Err(fault.at(position_bytes)));
        assert_eq!(batch.validate_records(&Limits::default()), expect, "{records}");

        // The same if they are compressed.
        let mut zstd = Vec::new();
        Compression::Zstd.compress(&hex(&records), &mut zstd).unwrap();
        let bytes = batch_of(records_count, &zstd, Compression::Zstd);
        assert_eq!(Batch::parse(&bytes).unwrap().0.validate_records(&Limits::default()), expect, "{records}");
    }
}

#[test]
fn the_iterator_ends_after_an_error() {
    let bytes = batch_of(2, &hex("0e 00 00 00 01 0261 00 0e 00 00 00 01 0261 00"), Compression::None);
    let records = Batch::parse(&bytes).unwrap().0.records(&Limits::default()).unwrap();
    let mut iter = records.iter();
    assert!(iter.next().unwrap().is_ok());
    assert!(iter.next().unwrap().is_err());
    assert!(iter.next().is_none() && iter.next().is_none());
}

#[test]
fn a_batch_that_inflates_beyond_the_limit_is_refused() {
    let limits = Limits { max_decompressed_bytes: 100_000 };
    for codec in Compression::ALL.into_iter().skip(1) {
        let mut builder = BatchBuilder::new(codec);
        builder.push(0, None, Some(&vec![0; 10 << 20]), &[]);
        let bytes = builder.build().unwrap();
        let (batch, _) = Batch::parse(&bytes).unwrap();
        let fault = BatchFault::Compression(CompressionError::TooBig { limit_bytes: 100_000 });
        assert_eq!(batch.records(&limits).unwrap_err(), fault.at(HEADER_BYTES), "{codec}");
        assert_eq!(batch.validate_records(&Limits::default()), Ok(()));
    }
}

#[test]
fn two_billion_records_in_a_few_bytes_are_refused_before_the_first() {
    for codec in Compression::ALL {
        let mut stored = Vec::new();
        codec.compress(&hex("0e 00 00 00 01 0261 00"), &mut stored).unwrap();
        let bytes = batch_of(i32::MAX, &stored, codec);
        let error = Batch::parse(&bytes).unwrap().0.records(&Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), "at byte 0: 2147483647 records claimed in 8 bytes", "{codec}");
    }
}

#[test]
fn batches_are_whole_or_refused_with_the_place() {
    assert_eq!(Batches::parse(Vec::new()), Err(BatchFault::Empty.at(0)));
    let size = example().len();
    let mut bytes = [example(), example(), example()].concat();
    let cut = Batches::parse(bytes[..bytes.len() - 1].to_vec()).unwrap_err();
    assert_eq!((cut.position_bytes, cut.is_incomplete()), (2 * size, true));
    let tail = Batches::parse([&bytes[..], b"x"].concat()).unwrap_err();
    assert_eq!((tail.position_bytes, tail.is_incomplete()), (3 * size, true));
    bytes[size + 70] ^= 1;
    let damaged = Batches::parse(bytes).unwrap_err();
    assert_eq!(damaged.position_bytes, size);
    assert!(matches!(damaged.fault, BatchFault::Crc { stored: 0x9ac0_dd83, .. }));
}

/// A batch with a last offset delta of 1 and these stored records.
fn batch_of(records_count: i32, records: &[u8], codec: Compression) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    writer.i64(0);
    writer.i32((HEADER_BYTES - LOG_OVERHEAD + records.len()) as i32);
    writer.i32(-1);
    writer.i8(2);
    writer.u32(0);
    writer.i16(i16::from(codec.code()));
    writer.i32(1);
    writer.i64(0);
    writer.i64(0);
    writer.i64(-1);
    writer.i16(-1);
    writer.i32(-1);
    writer.i32(records_count);
    writer.raw(records);
    sign(&mut bytes);
    bytes
}
