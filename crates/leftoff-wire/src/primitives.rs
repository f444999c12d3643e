//! Kafka's primitive types: a [`Reader`] that trusts no length, and a [`Writer`] over a `Vec<u8>`.
//!
//! All integers are big endian. Varints are LEB128; the signed ones are zigzag encoded, as in Protocol Buffers.

use crate::Uuid;

#[cfg(test)]
mod tests;

/// The longest string that the protocol can carry (KIP-482 keeps the 16-bit limit for compact strings, too).
pub const MAX_STR_BYTES: usize = i16::MAX as usize;

/// Reads values from the front of some bytes and borrows from them. A failed read says where; what it consumed is undefined.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the front of these bytes.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { all: bytes, at: 0 }
    }

    /// Where the next read starts, in bytes from the front.
    pub fn position_bytes(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.all.len() - self.at
    }

    /// True if no byte is left.
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// The bytes that are left, without reading them.
    pub fn rest(&self) -> &'a [u8] {
        &self.all[self.at..]
    }

    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], ReadError> {
        let left = self.remaining();
        if count > left {
            return Err(self.fault(ReadFault::End { want: count, left }));
        }
        let taken = &self.all[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        Ok(self.take(N)?.try_into().expect("take gave N bytes"))
    }

    /// An unsigned byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, ReadError> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    /// A signed byte.
    #[inline]
    pub fn i8(&mut self) -> Result<i8, ReadError> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    /// A 16-bit integer.
    #[inline]
    pub fn i16(&mut self) -> Result<i16, ReadError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// An unsigned 16-bit integer.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, ReadError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// A 32-bit integer.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, ReadError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// An unsigned 32-bit integer.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, ReadError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// A 64-bit integer.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, ReadError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// An unsigned 64-bit integer.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, ReadError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// An unsigned varint of at most 32 bits, so at most 5 bytes.
    #[inline]
    pub fn unsigned_varint(&mut self) -> Result<u32, ReadError> {
        let value = self.leb128(5)?;
        u32::try_from(value).map_err(|_| self.fault(ReadFault::Varint { bits: 32 }))
    }

    /// A zigzag varint of at most 32 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<i32, ReadError> {
        let zigzag = self.unsigned_varint()?;
        Ok((zigzag >> 1) as i32 ^ -((zigzag & 1) as i32))
    }

    /// A zigzag varint of at most 64 bits, so at most 10 bytes.
    #[inline]
    pub fn varlong(&mut self) -> Result<i64, ReadError> {
        let zigzag = self.leb128(10)?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    #[inline]
    fn leb128(&mut self, max_bytes: u32) -> Result<u64, ReadError> {
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        self.leb128_rest(u64::from(first & 0x7f), max_bytes)
    }

    fn leb128_rest(&mut self, mut value: u64, max_bytes: u32) -> Result<u64, ReadError> {
        for index in 1..max_bytes {
            let byte = self.u8()?;
            let group = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit only; more would fall off the top.
            if index == 9 && group > 1 {
                break;
            }
            value |= group << (7 * index);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.fault(ReadFault::Varint { bits: if max_bytes == 5 { 32 } else { 64 } }))
    }

    /// A 16-byte id.
    pub fn uuid(&mut self) -> Result<Uuid, ReadError> {
        Ok(Uuid::from_bytes(self.array()?))
    }

    /// A string with a 16-bit length.
    pub fn str(&mut self) -> Result<&'a str, ReadError> {
        self.nullable_str()?.ok_or_else(|| self.fault(ReadFault::Length { value: -1 }))
    }

    /// A string with a 16-bit length; -1 is null.
    pub fn nullable_str(&mut self) -> Result<Option<&'a str>, ReadError> {
        let length = self.i16()?;
        self.text(i64::from(length))
    }

    /// A string with an unsigned varint for its length plus one.
    pub fn compact_str(&mut self) -> Result<&'a str, ReadError> {
        self.nullable_compact_str()?.ok_or_else(|| self.fault(ReadFault::Length { value: -1 }))
    }

    /// A string with an unsigned varint for its length plus one; 0 is null.
    pub fn nullable_compact_str(&mut self) -> Result<Option<&'a str>, ReadError> {
        let length = i64::from(self.unsigned_varint()?) - 1;
        if length > MAX_STR_BYTES as i64 {
            return Err(self.fault(ReadFault::Length { value: length }));
        }
        self.text(length)
    }

    fn text(&mut self, length: i64) -> Result<Option<&'a str>, ReadError> {
        let Some(bytes) = self.sized(length)? else { return Ok(None) };
        str::from_utf8(bytes).map(Some).map_err(|_| self.fault(ReadFault::Utf8))
    }

    /// Bytes with a 32-bit length.
    pub fn bytes(&mut self) -> Result<&'a [u8], ReadError> {
        self.nullable_bytes()?.ok_or_else(|| self.fault(ReadFault::Length { value: -1 }))
    }

    /// Bytes with a 32-bit length; -1 is null.
    pub fn nullable_bytes(&mut self) -> Result<Option<&'a [u8]>, ReadError> {
        let length = self.i32()?;
        self.sized(i64::from(length))
    }

    /// Bytes with an unsigned varint for their length plus one.
    pub fn compact_bytes(&mut self) -> Result<&'a [u8], ReadError> {
        self.nullable_compact_bytes()?.ok_or_else(|| self.fault(ReadFault::Length { value: -1 }))
    }

    /// Bytes with an unsigned varint for their length plus one; 0 is null.
    pub fn nullable_compact_bytes(&mut self) -> Result<Option<&'a [u8]>, ReadError> {
        let length = i64::from(self.unsigned_varint()?) - 1;
        self.sized(length)
    }

    /// Bytes with a zigzag varint for their length, as in records; -1 is null.
    #[inline]
    pub fn varint_bytes(&mut self) -> Result<Option<&'a [u8]>, ReadError> {
        let length = self.varint()?;
        self.sized(i64::from(length))
    }

    #[inline]
    fn sized(&mut self, length: i64) -> Result<Option<&'a [u8]>, ReadError> {
        match length {
            -1 => Ok(None),
            0.. => self.take(usize::try_from(length).unwrap_or(usize::MAX)).map(Some),
            _ => Err(self.fault(ReadFault::Length { value: length })),
        }
    }

    /// The count of an array whose elements take at least `min_element_bytes` each, with a 32-bit length.
    ///
    /// A count that the bytes left cannot hold is refused here, so it is safe to reserve room for it.
    pub fn count(&mut self, min_element_bytes: usize) -> Result<usize, ReadError> {
        let count = self.i32()?;
        self.fitting(i64::from(count), min_element_bytes)
    }

    /// The same for an array with an unsigned varint for its count plus one.
    pub fn compact_count(&mut self, min_element_bytes: usize) -> Result<usize, ReadError> {
        let count = i64::from(self.unsigned_varint()?) - 1;
        self.fitting(count, min_element_bytes)
    }

    fn fitting(&self, count: i64, min_element_bytes: usize) -> Result<usize, ReadError> {
        let Ok(elements) = usize::try_from(count) else {
            return Err(self.fault(ReadFault::Length { value: count }));
        };
        let want = elements.saturating_mul(min_element_bytes.max(1));
        let left = self.remaining();
        if want > left {
            return Err(self.fault(ReadFault::End { want, left }));
        }
        Ok(elements)
    }

    fn fault(&self, fault: ReadFault) -> ReadError {
        ReadError { at: self.at, fault }
    }
}

/// Why a value could not be read, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: {fault}")]
pub struct ReadError {
    /// How far the reader was, in bytes from its front.
    pub at: usize,
    /// What is wrong there.
    pub fault: ReadFault,
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadFault {
    /// The bytes end before the value does.
    #[error("{want} bytes wanted, {left} left")]
    End {
        /// How many bytes the value, or the claimed elements, need at least.
        want: usize,
        /// How many there are.
        left: usize,
    },
    /// A varint does not end in time, or has more bits than its type.
    #[error("a varint of more than {bits} bits")]
    Varint {
        /// The bits of its type.
        bits: u8,
    },
    /// A length or count that cannot be: negative, or null where a value must be, or above the protocol's limit.
    #[error("{value} is no length")]
    Length {
        /// The length or count.
        value: i64,
    },
    /// A string that is not UTF-8.
    #[error("a string that is not UTF-8")]
    Utf8,
}

/// Writes values to the end of a buffer. Nothing can fail; a length that the format has no room for is a bug of the caller.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    /// A writer at the end of this buffer.
    pub fn new(out: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { out }
    }

    /// These bytes, as they are.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// An unsigned byte.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// A signed byte.
    #[inline]
    pub fn i8(&mut self, value: i8) {
        self.raw(&value.to_be_bytes());
    }

    /// A 16-bit integer.
    pub fn i16(&mut self, value: i16) {
        self.raw(&value.to_be_bytes());
    }

    /// An unsigned 16-bit integer.
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_be_bytes());
    }

    /// A 32-bit integer.
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_be_bytes());
    }

    /// An unsigned 32-bit integer.
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    /// A 64-bit integer.
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_be_bytes());
    }

    /// An unsigned 64-bit integer.
    pub fn u64(&mut self, value: u64) {
        self.raw(&value.to_be_bytes());
    }

    /// An unsigned varint.
    #[inline]
    pub fn unsigned_varint(&mut self, value: u32) {
        self.leb128(u64::from(value));
    }

    /// A zigzag varint of 32 bits.
    #[inline]
    pub fn varint(&mut self, value: i32) {
        self.leb128(u64::from(zigzag_32(value)));
    }

    /// A zigzag varint of 64 bits.
    #[inline]
    pub fn varlong(&mut self, value: i64) {
        self.leb128(zigzag_64(value));
    }

    #[inline]
    fn leb128(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }

    /// A 16-byte id.
    pub fn uuid(&mut self, value: &Uuid) {
        self.raw(value.as_bytes());
    }

    /// A string with a 16-bit length.
    ///
    /// # Panics
    /// If it is longer than [`MAX_STR_BYTES`].
    pub fn str(&mut self, value: &str) {
        assert!(
            value.len() <= MAX_STR_BYTES,
            "a string of {} bytes does not fit its length field",
            value.len()
        );
        self.i16(value.len() as i16);
        self.raw(value.as_bytes());
    }

    /// A string with a 16-bit length, or null.
    ///
    /// # Panics
    /// If it is longer than [`MAX_STR_BYTES`].
    pub fn nullable_str(&mut self, value: Option<&str>) {
        match value {
            Some(value) => self.str(value),
            None => self.i16(-1),
        }
    }

    /// A string with an unsigned varint for its length plus one.
    ///
    /// # Panics
    /// If it is longer than [`MAX_STR_BYTES`].
    pub fn compact_str(&mut self, value: &str) {
        assert!(
            value.len() <= MAX_STR_BYTES,
            "a string of {} bytes is longer than Kafka allows",
            value.len()
        );
        self.unsigned_varint(value.len() as u32 + 1);
        self.raw(value.as_bytes());
    }

    /// Bytes with a 32-bit length.
    ///
    /// # Panics
    /// If there are 2 GiB or more.
    pub fn bytes(&mut self, value: &[u8]) {
        self.i32(i32::try_from(value.len()).expect("a value of 2 GiB does not fit its length field"));
        self.raw(value);
    }

    /// Bytes with a zigzag varint for their length, as in records; null is -1. See [`varint_bytes_size`].
    #[inline]
    pub(crate) fn varint_bytes(&mut self, value: Option<&[u8]>) {
        match value {
            Some(bytes) => {
                self.varint(bytes.len() as i32);
                self.raw(bytes);
            }
            None => self.varint(-1),
        }
    }
}

/// How many bytes [`Writer::varint`] writes.
#[inline]
pub fn varint_size(value: i32) -> usize {
    leb128_size(u64::from(zigzag_32(value)))
}

/// How many bytes [`Writer::varlong`] writes.
#[inline]
pub fn varlong_size(value: i64) -> usize {
    leb128_size(zigzag_64(value))
}

#[inline]
pub(crate) fn varint_bytes_size(value: Option<&[u8]>) -> usize {
    value.map_or(1, |bytes| varint_size(bytes.len() as i32) + bytes.len())
}

#[inline]
fn leb128_size(value: u64) -> usize {
    // Seven bits a byte; zero takes one byte, too.
    (70 - (value | 1).leading_zeros() as usize) / 7
}

#[inline]
fn zigzag_32(value: i32) -> u32 {
    (value << 1 ^ value >> 31) as u32
}

#[inline]
fn zigzag_64(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}
