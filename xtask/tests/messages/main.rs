//! The messages of `leftoff-wire`: made from the table as it is, and the same bytes as another implementation's.
#![allow(missing_docs, clippy::unwrap_used)]

mod every;
mod sample;

use leftoff_wire::messages::{ApiKey, RequestHeader};
use sample::{Random, sample};
use xtask::generate::parse::{Api, parse};

fn table() -> Vec<Api> {
    let root = xtask::root().unwrap();
    parse(&std::fs::read_to_string(root.join(xtask::generate::SCHEMA)).unwrap()).unwrap()
}

#[test]
fn what_is_checked_in_is_what_the_table_says() {
    let root = xtask::root().unwrap();
    for (path, text) in xtask::generate::files(&root).unwrap() {
        let is = std::fs::read_to_string(root.join(&path)).unwrap_or_default();
        assert!(is == text, "{path} is not what the table says: run `cargo xtask generate`");
    }
    assert_eq!(table().len(), ApiKey::ALL.len());
}

/// Kind and version, and bytes that are such a message.
fn each_message(rounds: u64, mut check: impl FnMut(&str, i16, bool, i16, &[u8], &mut Random)) {
    for api in table() {
        for (message, is_request) in [(&api.request, true), (&api.response, false)] {
            let name = format!("{}{}", api.name, if is_request { "Request" } else { "Response" });
            for version in api.versions.first..=api.versions.last {
                for round in 0..rounds {
                    let mut random = Random::new(round ^ (u64::from(api.key.unsigned_abs()) << 32));
                    let bytes = sample(&api, message, version, &mut random);
                    check(&name, api.key, is_request, version, &bytes, &mut random);
                }
            }
        }
    }
}

/// Every API, every version, values by chance: what is decoded is encoded to the same bytes, here and by the crate
/// `kafka-protocol`, which knows most of the versions.
#[test]
fn every_message_in_every_version_is_the_same_bytes_here_and_elsewhere() {
    let (mut ours, mut theirs) = (0, 0);
    each_message(12, |name, key, is_request, version, bytes, _| {
        let what = format!("{name} version {version}: {bytes:?}");
        let recoded = every::recode(key, is_request, version, bytes);
        assert_eq!(recoded.as_deref(), Ok(bytes), "{what}");
        ours += 1;
        if let Some(recoded) = every::recode_theirs(key, is_request, version, bytes) {
            assert_eq!(recoded.as_deref(), Ok(bytes), "elsewhere: {what}");
            theirs += 1;
        }
    });
    assert!(theirs * 10 > ours * 9, "compared {theirs} of {ours}");
}

/// Bytes from a socket may be anything: the answer is a message or an error with the field's name, and never a panic.
#[test]
fn damaged_messages_are_refused_or_read_and_never_a_panic() {
    let mut refused = 0;
    each_message(4, |name, key, is_request, version, bytes, random| {
        for cut in 0..bytes.len().min(60) {
            let error = every::recode(key, is_request, version, &bytes[..cut]).unwrap_err();
            assert!(error.starts_with(&format!("{name} version {version}, field ")), "{error}");
            refused += 1;
        }
        for _ in 0..20 {
            let mut damaged = bytes.to_vec();
            if damaged.is_empty() {
                continue;
            }
            for _ in 0..=random.below(3) {
                let at = random.below(damaged.len());
                damaged[at] = [0, 1, 0x7f, 0x80, 0xff, random.byte()][random.below(6)];
            }
            // Read or refused: both will do.
            let _ = every::recode(key, is_request, version, &damaged);
        }
        let longer = [bytes, &[0]].concat();
        assert!(every::recode(key, is_request, version, &longer).unwrap_err().contains("behind the message"));
    });
    assert!(refused > 10_000, "{refused}");
}

/// A count of two thousand million costs nothing, in each place where a count is.
#[test]
fn a_claimed_count_reserves_nothing() {
    let mut topics = vec![0xff, 0xff, 0xff, 0xff, 0x07];
    topics.extend([0; 64]);
    let error = every::recode(3, true, 9, &topics).unwrap_err();
    assert!(error.contains("field topics: at byte 5: 2147483646 bytes wanted, 64 left"), "{error}");
    // As many elements as there are bytes: each would cost more memory than its byte.
    let many = [&5_000_000_i32.to_be_bytes()[..], &vec![0; 10_000_000]].concat();
    let error = every::recode(3, true, 1, &many).unwrap_err();
    assert!(error.contains("more than 1048576 elements in one message"), "{error}");
}

#[test]
fn a_request_is_read_behind_its_header() {
    let mut frame = Vec::new();
    let header = RequestHeader { api_key: 18, api_version: 3, correlation_id: 1, client_id: None };
    header.encode(&mut frame);
    frame.extend(b"\x03ab\x02c\0");
    let (found, body) = RequestHeader::decode(&frame).unwrap();
    assert_eq!(found, header);
    let request = leftoff_wire::messages::api_versions::Request::decode(body, 3).unwrap();
    assert_eq!((request.client_software_name, request.client_software_version), ("ab", "c"));
}
