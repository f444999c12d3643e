#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// Value, its zigzag varint in hex.
const VARINTS: &[(i64, &str)] = &[
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (8191, "fe7f"),
    (-8192, "ff7f"),
    (8192, "808001"),
    (1_048_575, "feff7f"),
    (1_048_576, "80808001"),
    (134_217_727, "feffff7f"),
    (134_217_728, "8080808001"),
    (i32::MAX as i64, "feffffff0f"),
    (i32::MIN as i64, "ffffffff0f"),
    (i32::MAX as i64 + 1, "8080808010"),
    (i32::MIN as i64 - 1, "8180808010"),
    (17_179_869_183, "feffffff7f"),
    (17_179_869_184, "808080808001"),
    (i64::MAX, "feffffffffffffffff01"),
    (i64::MIN, "ffffffffffffffffff01"),
];

#[test]
fn varints_at_their_boundaries() {
    for &(value, bytes) in VARINTS {
        let bytes = hex(bytes);
        assert_eq!(written(|w| w.varlong(value)), bytes, "{value}");
        assert_eq!(varlong_size(value), bytes.len(), "{value}");
        assert_eq!(Reader::new(&bytes).varlong(), Ok(value));
        match i32::try_from(value) {
            Ok(value) => {
                assert_eq!(written(|w| w.varint(value)), bytes, "{value}");
                assert_eq!(varint_size(value), bytes.len(), "{value}");
                assert_eq!(Reader::new(&bytes).varint(), Ok(value));
            }
            Err(_) => assert_eq!(fault(&bytes, |r| r.varint()), ReadFault::Varint { bits: 32 }, "{value}"),
        }
    }
}

#[test]
fn unsigned_varints_at_their_boundaries() {
    let cases = [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        (2_097_152, "80808001"),
        (268_435_456, "8080808001"),
        (u32::MAX, "ffffffff0f"),
    ];
    for (value, bytes) in cases {
        assert_eq!(written(|w| w.unsigned_varint(value)), hex(bytes));
        assert_eq!(Reader::new(&hex(bytes)).unsigned_varint(), Ok(value));
    }
}

#[test]
fn varints_that_are_none() {
    let too_long_32 = ReadFault::Varint { bits: 32 };
    let too_long_64 = ReadFault::Varint { bits: 64 };
    let cut = ReadFault::End { want: 1, left: 0 };
    let cases_32 =
        [("", cut), ("80", cut), ("80808080", cut), ("8080808080", too_long_32), ("ffffffff10", too_long_32)];
    for (bytes, expect) in cases_32 {
        assert_eq!(fault(&hex(bytes), |r| r.varint()), expect, "{bytes}");
    }
    let cases_64 = [
        ("ffffffffffffffffff", cut),
        ("80808080808080808080", too_long_64),
        ("ffffffffffffffffff02", too_long_64),
        ("ffffffffffffffffff81", too_long_64),
    ];
    for (bytes, expect) in cases_64 {
        assert_eq!(fault(&hex(bytes), |r| r.varlong()), expect, "{bytes}");
    }
    // More bytes than it takes, but no more bits: Kafka reads it, so do we.
    assert_eq!(Reader::new(&hex("808000")).varint(), Ok(0));
}

#[test]
fn strings_and_bytes_in_their_four_forms() {
    assert_eq!(written(|w| w.str("né")), hex("00036ec3a9"));
    assert_eq!(written(|w| w.nullable_str(None)), hex("ffff"));
    assert_eq!(written(|w| w.compact_str("né")), hex("046ec3a9"));
    assert_eq!(written(|w| w.bytes(b"ab")), hex("000000026162"));

    assert_eq!(Reader::new(&hex("00036ec3a9")).str(), Ok("né"));
    assert_eq!(Reader::new(&hex("0000")).nullable_str(), Ok(Some("")));
    assert_eq!(Reader::new(&hex("ffff")).nullable_str(), Ok(None));
    assert_eq!(Reader::new(&hex("046ec3a9")).compact_str(), Ok("né"));
    assert_eq!(Reader::new(&hex("00")).nullable_compact_str(), Ok(None));
    assert_eq!(Reader::new(&hex("000000026162")).bytes(), Ok(&b"ab"[..]));
    assert_eq!(Reader::new(&hex("ffffffff")).nullable_bytes(), Ok(None));
    assert_eq!(Reader::new(&hex("036162")).compact_bytes(), Ok(&b"ab"[..]));
    assert_eq!(Reader::new(&hex("00")).nullable_compact_bytes(), Ok(None));
    assert_eq!(Reader::new(&hex("01")).varint_bytes(), Ok(None));
    assert_eq!(Reader::new(&hex("046162")).varint_bytes(), Ok(Some(&b"ab"[..])));
}

#[test]
fn lengths_that_cannot_be() {
    let length = |value| ReadFault::Length { value };
    assert_eq!(fault(&hex("ffff"), |r| r.str()), length(-1));
    assert_eq!(fault(&hex("fffe"), |r| r.nullable_str()), length(-2));
    assert_eq!(fault(&hex("00"), |r| r.compact_str()), length(-1));
    // KIP-482 leaves strings at 32767 bytes, however much a varint can say.
    assert_eq!(fault(&hex("818002"), |r| r.compact_str()), length(32_768));
    assert_eq!(fault(&hex("808002"), |r| r.compact_str()), ReadFault::End { want: 32_767, left: 0 });
    assert_eq!(fault(&hex("ffffffff"), |r| r.bytes()), length(-1));
    assert_eq!(fault(&hex("80000000"), |r| r.nullable_bytes()), length(i64::from(i32::MIN)));
    assert_eq!(fault(&hex("03"), |r| r.varint_bytes()), length(-2));
    assert_eq!(fault(&hex("0002c328"), |r| r.str()), ReadFault::Utf8);
    assert_eq!(fault(&hex("7fffffff"), |r| r.bytes()), ReadFault::End { want: 0x7fff_ffff, left: 0 });
    assert_eq!(
        fault(&hex("ffffffff0f"), |r| r.compact_bytes()),
        ReadFault::End { want: 0xffff_fffe, left: 0 }
    );
}

#[test]
fn a_count_is_bounded_by_the_bytes_left() {
    assert_eq!(Reader::new(&hex("00000002aabbccdd")).count(2), Ok(2));
    assert_eq!(fault(&hex("00000003aabbccdd"), |r| r.count(2)), ReadFault::End { want: 6, left: 4 });
    assert_eq!(fault(&hex("7fffffff"), |r| r.count(1)), ReadFault::End { want: 0x7fff_ffff, left: 0 });
    // Elements take at least a byte, whatever the caller says: else a count of 2 billion nothings were fine.
    assert_eq!(fault(&hex("7fffffff"), |r| r.count(0)), ReadFault::End { want: 0x7fff_ffff, left: 0 });
    assert_eq!(fault(&hex("ffffffff"), |r| r.count(1)), ReadFault::Length { value: -1 });
    assert_eq!(Reader::new(&hex("03aabb")).compact_count(1), Ok(2));
    assert_eq!(
        fault(&hex("ffffffff0f"), |r| r.compact_count(1 << 40)),
        ReadFault::End { want: usize::MAX, left: 0 }
    );
    assert_eq!(fault(&hex("00"), |r| r.compact_count(1)), ReadFault::Length { value: -1 });
}

#[test]
fn errors_say_where() {
    let bytes = hex("00010002ff");
    let mut reader = Reader::new(&bytes);
    assert_eq!(reader.i16(), Ok(1));
    let error = reader.str().unwrap_err();
    assert_eq!(error, ReadError { at: 4, fault: ReadFault::End { want: 2, left: 1 } });
    assert_eq!(error.to_string(), "at byte 4: 2 bytes wanted, 1 left");
}

#[test]
#[should_panic(expected = "does not fit")]
fn a_string_too_long_to_write_is_a_bug_of_the_caller() {
    written(|w| w.str(&"x".repeat(MAX_STR_BYTES + 1)));
}

proptest! {
    #[test]
    fn integers_survive(a: i8, b: i16, c: i32, d: i64, e: u64, f: u32, g: u16, h: u8) {
        let bytes = written(|w| {
            w.i8(a);
            w.i16(b);
            w.i32(c);
            w.i64(d);
            w.u64(e);
            w.u32(f);
            w.u16(g);
            w.u8(h);
            w.varint(c);
            w.varlong(d);
            w.unsigned_varint(f);
        });
        let mut r = Reader::new(&bytes);
        prop_assert_eq!(
            (r.i8(), r.i16(), r.i32(), r.i64(), r.u64(), r.u32(), r.u16(), r.u8()),
            (Ok(a), Ok(b), Ok(c), Ok(d), Ok(e), Ok(f), Ok(g), Ok(h))
        );
        prop_assert_eq!((r.varint(), r.varlong(), r.unsigned_varint()), (Ok(c), Ok(d), Ok(f)));
        prop_assert!(r.is_empty());
    }
}

fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut Writer::new(&mut bytes));
    bytes
}

fn fault<'a, T: std::fmt::Debug>(
    bytes: &'a [u8],
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, ReadError>,
) -> ReadFault {
    read(&mut Reader::new(bytes)).unwrap_err().fault
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}
