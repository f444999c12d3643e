#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn text_is_what_kafka_prints() {
    check(Uuid::ZERO, "AAAAAAAAAAAAAAAAAAAAAA");
    check(Uuid::METADATA, "AAAAAAAAAAAAAAAAAAAAAQ");
    check(Uuid::OFFSETS, "AAAAAAAAAAAAAAAAAAAAAg");
    check(Uuid::from_bytes([0xff; 16]), "_____________________w");
    check(
        Uuid::from_bytes(*b"\xfb\xef\xbe\xfb\xef\xbe\xfb\xef\xbe\xfb\xef\xbe\xfb\xef\xbe\xfb"),
        "---------------------w",
    );
    check(Uuid::from_bytes(*b"0123456789abcdef"), "MDEyMzQ1Njc4OWFiY2RlZg");
}

#[test]
fn text_that_is_no_id() {
    let refused = |text: &str| text.parse::<Uuid>().unwrap_err();
    assert_eq!(refused(""), UuidError::Length { bytes: 0 });
    assert_eq!(refused("AAAAAAAAAAAAAAAAAAAAAA=="), UuidError::Length { bytes: 24 });
    assert_eq!(refused("AAAAAAAAAAAAAAAAAAAA+A"), UuidError::Character { position: 20 });
    // Bits below the last two would give one id several texts.
    assert_eq!(refused("AAAAAAAAAAAAAAAAAAAAAB"), UuidError::Character { position: 21 });
    assert_eq!(refused("ÄÄÄÄÄÄÄÄÄÄÄ"), UuidError::Character { position: 0 });
}

#[test]
fn every_id_survives_its_text() {
    for byte in 0..=255u8 {
        let id = Uuid::from_bytes(std::array::from_fn(|i| byte.wrapping_mul(31).wrapping_add(i as u8 * 17)));
        assert_eq!(id.to_string().parse::<Uuid>(), Ok(id));
    }
}

fn check(id: Uuid, text: &str) {
    assert_eq!(id.to_string(), text);
    assert_eq!(text.parse::<Uuid>(), Ok(id));
}
