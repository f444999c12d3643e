//! Bytes that nobody vouches for: none of them may panic, and none may be read as more than they can say.
#![allow(clippy::unwrap_used)]

use leftoff_wire::consumer_offsets::{GroupMetadataValue, Key, OffsetCommitValue, SourceProgress};
use leftoff_wire::record_batch::{
    Batch, BatchBuilder, BatchHeader, Batches, EndTxnMarker, HEADER_BYTES, Limits,
};
use leftoff_wire::{Compression, Offset};
use proptest::prelude::*;

const LIMITS: Limits = Limits { max_decompressed_bytes: 100_000 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_everything(&bytes);
    }

    /// A valid magic and length get random bytes past the first checks.
    #[test]
    fn random_bytes_with_a_header_in_front(mut bytes in prop::collection::vec(any::<u8>(), HEADER_BYTES..300)) {
        bytes[0] = 0;
        bytes[16] = 2;
        bytes[22] %= 5;
        bytes[23] &= 0x7f;
        let batch_length = bytes.len() as i32 - 12;
        bytes[8..12].copy_from_slice(&batch_length.to_be_bytes());
        sign(&mut bytes);
        read_everything(&bytes);
    }

    #[test]
    fn damaged_batches(codec in prop::sample::select(&Compression::ALL[..]), damage in damage()) {
        let mut bytes = batch(codec);
        damage.apply(&mut bytes);
        read_everything(&bytes);
    }

    /// The damage of somebody who computes checksums: it reaches the codecs and the records.
    #[test]
    fn damaged_batches_well_signed(codec in prop::sample::select(&Compression::ALL[..]), damage in damage()) {
        let mut bytes = batch(codec);
        damage.apply(&mut bytes);
        if bytes.len() >= HEADER_BYTES {
            let batch_length = bytes.len() as i32 - 12;
            bytes[8..12].copy_from_slice(&batch_length.to_be_bytes());
            sign(&mut bytes);
        }
        read_everything(&bytes);
    }

    #[test]
    fn damaged_records_that_are_not_compressed(damage in damage()) {
        let mut bytes = batch(Compression::None);
        let mut records = bytes.split_off(HEADER_BYTES);
        damage.apply(&mut records);
        bytes.extend(records);
        let batch_length = bytes.len() as i32 - 12;
        bytes[8..12].copy_from_slice(&batch_length.to_be_bytes());
        sign(&mut bytes);
        read_everything(&bytes);
    }

    #[test]
    fn random_bytes_in_the_offsets_log(first in -2i16..7, bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        read_everything(&[&first.to_be_bytes()[..], &bytes].concat());
    }
}

/// Reads the bytes in every way there is; what is read must lie in the bytes, or within the limit.
fn read_everything(bytes: &[u8]) {
    let _ = Key::decode(bytes);
    let _ = OffsetCommitValue::decode(bytes);
    let _ = SourceProgress::decode(bytes);
    let _ = EndTxnMarker::decode(bytes, bytes);
    if let Ok(group) = GroupMetadataValue::decode(bytes) {
        assert!(group.members.len() <= bytes.len() / 8);
    }
    if let Ok(header) = BatchHeader::parse(bytes) {
        assert!(header.next_offset() > header.last_offset());
        assert!(header.size_bytes() >= HEADER_BYTES);
    }
    if let Ok((batch, rest)) = Batch::parse(bytes) {
        assert_eq!(batch.bytes().len() + rest.len(), bytes.len());
        read_records(&batch);
    }
    if let Ok(mut batches) = Batches::parse(bytes.to_vec()) {
        let next = batches.assign(Offset::ZERO, 0);
        assert_eq!(batches.headers().last().unwrap().1.next_offset(), next);
    }
}

fn read_records(batch: &Batch<'_>) {
    let header = batch.header();
    let Ok(records) = batch.records(&LIMITS) else { return };
    let most = LIMITS.max_decompressed_bytes.max(batch.bytes().len());
    assert!(records.bytes().len() <= most);
    // A record takes 7 bytes at least, so there are no more of them; the hint is what a collector reserves.
    let (_, upper) = records.iter().size_hint();
    assert!(upper.unwrap() <= records.bytes().len() / 7 + 1);
    let mut read_bytes = 0;
    for record in records.iter().map_while(Result::ok) {
        assert!((header.base_offset..=header.last_offset()).contains(&record.offset(header)));
        let _ = record.timestamp(header);
        let headers = record.headers.iter().map(|(key, value)| key.len() + value.map_or(0, <[u8]>::len));
        assert!(record.headers.len() <= records.bytes().len() / 2);
        read_bytes +=
            record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len) + headers.sum::<usize>();
    }
    assert!(read_bytes <= records.bytes().len());
}

#[derive(Clone, Debug)]
enum Damage {
    Flip(Vec<(prop::sample::Index, u8)>),
    Cut(prop::sample::Index),
    Replace(prop::sample::Index, Vec<u8>),
    Append(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let bytes = || prop::collection::vec(prop_oneof![any::<u8>(), Just(0xff), Just(0x7f), Just(0x80)], 1..12);
    prop_oneof![
        4 => prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4).prop_map(Damage::Flip),
        1 => any::<prop::sample::Index>().prop_map(Damage::Cut),
        4 => (any::<prop::sample::Index>(), bytes()).prop_map(|(at, bytes)| Damage::Replace(at, bytes)),
        1 => bytes().prop_map(Damage::Append),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Damage::Flip(flips) => {
                for (at, mask) in flips {
                    let at = at.index(bytes.len());
                    bytes[at] ^= mask;
                }
            }
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Damage::Replace(at, with) => {
                let at = at.index(bytes.len());
                let end = bytes.len().min(at + with.len());
                bytes[at..end].copy_from_slice(&with[..end - at]);
            }
            Damage::Append(more) => bytes.extend(more),
        }
    }
}

fn batch(codec: Compression) -> Vec<u8> {
    let mut builder = BatchBuilder::new(codec);
    for i in 0..20u8 {
        let key = [i; 3];
        builder.push(
            i64::from(i) * 1000,
            (i % 3 > 0).then_some(&key),
            Some(&[i; 40]),
            &[("a", None), ("b", Some(b"x"))],
        );
    }
    builder.build().unwrap()
}

/// Sets the checksum to what the bytes are now.
fn sign(batch: &mut [u8]) {
    let crc = crc_fast::crc32_iscsi(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}
