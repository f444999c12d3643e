//! Topic ids and other 16-byte ids, in Kafka's text form (KIP-516).

use std::fmt;
use std::str::FromStr;

#[cfg(test)]
mod tests;

/// Sixteen bytes that name a topic (or a cluster) for good, also after a topic of the same name was made anew.
///
/// As text it is what Kafka prints: 22 characters of URL-safe base64 without padding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// No id: what the protocol sends where a topic id is absent.
    pub const ZERO: Uuid = Uuid::reserved(0);
    /// The topic id of the metadata log, Kafka's own `METADATA_TOPIC_ID`.
    pub const METADATA: Uuid = Uuid::reserved(1);
    /// The topic id of the offsets log.
    pub const OFFSETS: Uuid = Uuid::reserved(2);

    /// The id with these bytes, most significant first.
    pub const fn from_bytes(bytes: [u8; 16]) -> Uuid {
        Uuid(bytes)
    }

    /// The bytes, most significant first.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// True for [`Uuid::ZERO`], which stands for "no id".
    pub fn is_zero(&self) -> bool {
        *self == Uuid::ZERO
    }

    const fn reserved(last: u8) -> Uuid {
        Uuid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last])
    }
}

const TEXT_CHARS: usize = 22;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 128 bits are 21 digits of 6 bits and one last digit with 2 bits on top and 4 zero bits below.
        let bits = u128::from_be_bytes(self.0);
        let text: String = (0..TEXT_CHARS)
            .map(|i| {
                let digit = if i < 21 { bits >> (122 - 6 * i) } else { bits << 4 };
                char::from(ALPHABET[(digit & 0x3f) as usize])
            })
            .collect();
        f.pad(&text)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = UuidError;

    fn from_str(text: &str) -> Result<Uuid, UuidError> {
        let chars = text.as_bytes();
        if chars.len() != TEXT_CHARS {
            return Err(UuidError::Length { bytes: chars.len() });
        }
        let mut bits = 0u128;
        for (position, &char) in chars.iter().enumerate() {
            let digit = digit(char).ok_or(UuidError::Character { position })?;
            if position < 21 {
                bits = bits << 6 | digit;
            } else if digit & 0x0f == 0 {
                bits = bits << 2 | digit >> 4;
            } else {
                // One id has one text: the four bits below the last two must be zero.
                return Err(UuidError::Character { position });
            }
        }
        Ok(Uuid(bits.to_be_bytes()))
    }
}

fn digit(char: u8) -> Option<u128> {
    let digit = match char {
        b'A'..=b'Z' => char - b'A',
        b'a'..=b'z' => char - b'a' + 26,
        b'0'..=b'9' => char - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    };
    Some(u128::from(digit))
}

/// A text that is not the 22 characters of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UuidError {
    /// The text does not have 22 characters.
    #[error("an id has 22 characters, this has {bytes} bytes")]
    Length {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The byte at this position is not one that an id has there.
    #[error("an id is URL-safe base64; byte {position} is not")]
    Character {
        /// Where, counted from 0.
        position: usize,
    },
}
