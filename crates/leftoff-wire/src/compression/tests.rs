#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

const CODECS: [Compression; 4] =
    [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
const NO_LIMIT: usize = usize::MAX;

#[test]
fn codes_and_names_are_kafkas() {
    let names: Vec<_> = (0..=255).map_while(Compression::from_code).map(|codec| codec.to_string()).collect();
    assert_eq!(names, ["none", "gzip", "snappy", "lz4", "zstd"]);
    assert!(Compression::ALL.iter().all(|codec| Compression::from_code(codec.code()) == Some(*codec)));
}

#[test]
fn sizes_around_the_block_sizes_survive() {
    for size in [0, 1, 32 * 1024 - 1, 32 * 1024, 32 * 1024 + 1, 64 * 1024, 64 * 1024 + 1, 300_000] {
        let plain = noise(size);
        for codec in Compression::ALL {
            assert_eq!(
                codec.decompress(&compressed(codec, &plain), size),
                Ok(plain.clone()),
                "{codec} {size}"
            );
        }
    }
}

#[test]
fn output_goes_behind_what_is_there() {
    for codec in Compression::ALL {
        let mut out = b"header".to_vec();
        codec.compress(b"records", &mut out).unwrap();
        assert_eq!(&out[..6], b"header");
        assert_eq!(codec.decompress(&out[6..], 7).unwrap(), b"records");
    }
}

#[test]
fn the_limit_is_to_the_byte() {
    let plain = noise(100_000);
    for codec in Compression::ALL {
        let bytes = compressed(codec, &plain);
        assert_eq!(codec.decompress(&bytes, 100_000), Ok(plain.clone()));
        assert_eq!(codec.decompress(&bytes, 99_999), Err(CompressionError::TooBig { limit_bytes: 99_999 }));
        assert_eq!(codec.decompress(&bytes, 0), Err(CompressionError::TooBig { limit_bytes: 0 }));
    }
}

#[test]
fn a_bomb_costs_no_more_than_the_limit() {
    let limit_bytes = 1 << 20;
    for codec in CODECS {
        // 64 MiB of one byte: gzip, zstd and lz4 make it 1000 to 10000 times smaller, snappy 20 times.
        let bomb = compressed(codec, &vec![7; 64 << 20]);
        assert_eq!(
            codec.decompress(&bomb, limit_bytes),
            Err(CompressionError::TooBig { limit_bytes }),
            "{codec}"
        );
    }
}

#[test]
fn what_comes_out_has_no_more_room_than_twice_the_limit() {
    for codec in Compression::ALL {
        for size in [1, 1000, 100_000] {
            let out = codec.decompress(&compressed(codec, &vec![0; size]), size).unwrap();
            assert!(out.capacity() <= 2 * (size + 1).max(32), "{codec} {size}: {}", out.capacity());
        }
    }
}

#[test]
fn snappy_claims_are_not_believed() {
    // The length of the output as a varint: 4 GiB - 1, then nothing.
    let claim = b"\xff\xff\xff\xff\x0f";
    assert_eq!(
        Compression::Snappy.decompress(claim, 1 << 20),
        Err(CompressionError::TooBig { limit_bytes: 1 << 20 })
    );
    check_fails(Compression::Snappy, claim, "5 bytes cannot stand for 4294967295");
    // Within the limit, yet more than so few bytes can say: refused before room is made for it.
    check_fails(Compression::Snappy, b"\xff\xff\x03\x00", "4 bytes cannot stand for 65535");
}

#[test]
fn snappy_is_read_raw_framed_and_concatenated() {
    let raw = |plain: &[u8]| snap::raw::Encoder::new().compress_vec(plain).unwrap();
    let plain = noise(1000);
    assert_eq!(Compression::Snappy.decompress(&raw(&plain), 1000), Ok(plain.clone()));

    let framed = compressed(Compression::Snappy, &plain);
    assert!(framed.starts_with(b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01"));
    assert_eq!(Compression::Snappy.decompress(&[framed.clone(), framed].concat(), 2000), Ok(plain.repeat(2)));
}

#[test]
fn gzip_members_and_zstd_frames_are_read_one_after_the_other() {
    for codec in [Compression::Gzip, Compression::Zstd] {
        let two = [compressed(codec, b"one"), compressed(codec, b"two")].concat();
        assert_eq!(codec.decompress(&two, 6).unwrap(), b"onetwo");
    }
}

#[test]
fn bytes_that_are_cut_or_followed_by_others_are_refused() {
    let plain = noise(200_000);
    for codec in CODECS {
        let bytes = compressed(codec, &plain);
        // Each of the last few lengths, and blocks apart: formats differ in what they notice.
        for cut in (1..=12).chain([1000, 40_000, bytes.len() - 1]) {
            let result = codec.decompress(&bytes[..bytes.len() - cut], NO_LIMIT);
            assert!(result.is_err(), "{codec} without its last {cut} bytes");
        }
        assert!(
            codec.decompress(&[&bytes[..], b"more"].concat(), NO_LIMIT).is_err(),
            "{codec} and four bytes more"
        );
        assert!(codec.decompress(b"", NO_LIMIT).is_err(), "{codec} of nothing");
    }
    check_fails(
        Compression::Lz4,
        &[compressed(Compression::Lz4, b"x"), vec![1]].concat(),
        "1 bytes behind the frame",
    );
    let lz4 = compressed(Compression::Lz4, b"x");
    check_fails(Compression::Lz4, &lz4[..lz4.len() - 4], "the frame is cut short");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_survive(plain in bytes()) {
        for codec in Compression::ALL {
            prop_assert_eq!(codec.decompress(&compressed(codec, &plain), plain.len()), Ok(plain.clone()));
        }
    }

    #[test]
    fn random_input_is_refused_or_read_within_the_limit(input in bytes(), limit_bytes in 0usize..10_000) {
        for codec in Compression::ALL {
            if let Ok(out) = codec.decompress(&input, limit_bytes) {
                prop_assert!(out.len() <= limit_bytes);
            }
        }
    }

    #[test]
    fn damaged_input_is_refused_or_read_within_the_limit(plain in bytes(), at: prop::sample::Index, flip in 1u8..) {
        let limit_bytes = plain.len() + 1000;
        for codec in CODECS {
            let mut input = compressed(codec, &plain);
            let at = at.index(input.len());
            input[at] ^= flip;
            if let Ok(out) = codec.decompress(&input, limit_bytes) {
                prop_assert!(out.len() <= limit_bytes);
            }
        }
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..2000),
        (prop::collection::vec(any::<u8>(), 1..20), 1usize..500).prop_map(|(word, times)| word.repeat(times)),
    ]
}

fn check_fails(codec: Compression, bytes: &[u8], expect: &str) {
    let Err(CompressionError::Failed { reason, .. }) = codec.decompress(bytes, NO_LIMIT) else {
        panic!("{codec} read {bytes:?}");
    };
    assert_eq!(reason, expect);
}

fn compressed(codec: Compression, plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    codec.compress(plain, &mut out).unwrap();
    out
}

/// Bytes that hardly compress, the same each time.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 1u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(size)
    .collect()
}
