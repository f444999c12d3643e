//! What all messages are read and written with: values in the old form and in the flexible one (KIP-482), tagged fields, and
//! errors that name message, version, field and place.

use crate::Uuid;
use crate::primitives::{ReadError, ReadFault, Reader, Writer};

/// The most elements that all arrays of one message may have together: an element takes more memory than bytes on the wire.
pub const MAX_ELEMENTS: usize = 1 << 20;

/// Why bytes are not the message that they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} version {version}, field {field}: {fault}")]
pub struct DecodeError {
    /// Which message: `ProduceRequest`.
    pub message: &'static str,
    /// Its version.
    pub version: i16,
    /// The field that was read.
    pub field: &'static str,
    /// What is wrong, and at which byte.
    pub fault: DecodeFault,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeFault {
    /// A value cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Null, in a version in which the field may not be.
    #[error("at byte {at}: null, where a value must be")]
    Null {
        /// How far the reader was.
        at: usize,
    },
    /// More elements than [`MAX_ELEMENTS`].
    #[error("at byte {at}: more than {MAX_ELEMENTS} elements in one message")]
    Elements {
        /// How far the reader was.
        at: usize,
    },
    /// A tagged field is not as long as it says.
    #[error("at byte {at}: a tagged field of {said} bytes that ends elsewhere")]
    Tag {
        /// How far the reader was.
        at: usize,
        /// The size that was given.
        said: usize,
    },
    /// Bytes are left behind the message.
    #[error("at byte {at}: {left} bytes behind the message")]
    Trailing {
        /// How far the reader was.
        at: usize,
        /// How many.
        left: usize,
    },
    /// The version is not one that is known here.
    #[error("not a version that is known here")]
    Version,
}

/// Why a message cannot be written in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} version {version}, field {field}: {fault}")]
pub struct EncodeError {
    /// Which message.
    pub message: &'static str,
    /// The version asked for.
    pub version: i16,
    /// The field.
    pub field: &'static str,
    /// What is wrong.
    pub fault: EncodeFault,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeFault {
    /// It is not in this version, and is not what it is without it.
    #[error("it is not in this version, and has a value")]
    Missing,
    /// Null, in a version in which it may not be.
    #[error("it may not be null")]
    Null,
    /// Longer than the form allows.
    #[error("{bytes} bytes or elements are too many")]
    TooLong {
        /// How many.
        bytes: usize,
    },
    /// The version is not one that is known here.
    #[error("not a version that is known here")]
    Version,
}

/// Reads one message; what it gives borrows from the bytes.
#[derive(Debug)]
pub struct Decoder<'a> {
    reader: Reader<'a>,
    message: &'static str,
    version: i16,
    field: &'static str,
    elements_left: usize,
}

type Decoded<T> = Result<T, DecodeError>;

impl<'a> Decoder<'a> {
    /// At the front of a message's bytes.
    pub fn new(bytes: &'a [u8], message: &'static str, version: i16) -> Decoder<'a> {
        Decoder { reader: Reader::new(bytes), message, version, field: "", elements_left: MAX_ELEMENTS }
    }

    /// Names the field that is read next.
    pub(super) fn at(&mut self, field: &'static str) {
        self.field = field;
    }

    pub(super) fn fault<T>(&self, fault: DecodeFault) -> Decoded<T> {
        Err(DecodeError { message: self.message, version: self.version, field: self.field, fault })
    }

    fn read<T>(&mut self, read: impl FnOnce(&mut Reader<'a>) -> Result<T, ReadError>) -> Decoded<T> {
        match read(&mut self.reader) {
            Ok(value) => Ok(value),
            Err(error) => self.fault(error.into()),
        }
    }

    fn null<T>(&self) -> Decoded<T> {
        self.fault(DecodeFault::Null { at: self.reader.position_bytes() })
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.reader.rest()
    }

    /// Refuses bytes behind the message.
    pub(super) fn end(&mut self) -> Decoded<()> {
        match self.reader.remaining() {
            0 => Ok(()),
            left => self.fault(DecodeFault::Trailing { at: self.reader.position_bytes(), left }),
        }
    }

    pub(super) fn bool(&mut self) -> Decoded<bool> {
        Ok(self.read(Reader::u8)? != 0)
    }

    pub(super) fn i8(&mut self) -> Decoded<i8> {
        self.read(Reader::i8)
    }

    pub(super) fn i16(&mut self) -> Decoded<i16> {
        self.read(Reader::i16)
    }

    pub(super) fn i32(&mut self) -> Decoded<i32> {
        self.read(Reader::i32)
    }

    pub(super) fn i64(&mut self) -> Decoded<i64> {
        self.read(Reader::i64)
    }

    pub(super) fn uuid(&mut self) -> Decoded<Uuid> {
        self.read(Reader::uuid)
    }

    pub(super) fn str(&mut self, flexible: bool, nullable: bool) -> Decoded<Option<&'a str>> {
        let value =
            self.read(|reader| if flexible { reader.nullable_compact_str() } else { reader.nullable_str() })?;
        if value.is_none() && !nullable { self.null() } else { Ok(value) }
    }

    pub(super) fn bytes(&mut self, flexible: bool, nullable: bool) -> Decoded<Option<&'a [u8]>> {
        let value =
            self.read(
                |reader| {
                    if flexible { reader.nullable_compact_bytes() } else { reader.nullable_bytes() }
                },
            )?;
        if value.is_none() && !nullable { self.null() } else { Ok(value) }
    }

    /// Whether a struct that may be null is there.
    pub(super) fn is_present(&mut self) -> Decoded<bool> {
        Ok(self.i8()? >= 0)
    }

    /// An array, whose elements are read one by one: nothing is reserved on the word of a count.
    pub(super) fn array<T>(
        &mut self,
        flexible: bool,
        nullable: bool,
        mut element: impl FnMut(&mut Decoder<'a>) -> Decoded<T>,
    ) -> Decoded<Option<Vec<T>>> {
        let Some(count) = self.count(flexible)? else {
            return if nullable { Ok(None) } else { self.null() };
        };
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(element(self)?);
        }
        Ok(Some(all))
    }

    fn count(&mut self, flexible: bool) -> Decoded<Option<usize>> {
        let count = if flexible {
            i64::from(self.read(Reader::unsigned_varint)?) - 1
        } else {
            i64::from(self.i32()?)
        };
        if count == -1 {
            return Ok(None);
        }
        let at = self.reader.position_bytes();
        let Ok(elements) = usize::try_from(count) else {
            return self.fault(ReadError { at, fault: ReadFault::Length { value: count } }.into());
        };
        // An element has a byte at least.
        let left = self.reader.remaining();
        if elements > left {
            return self.fault(ReadError { at, fault: ReadFault::End { want: elements, left } }.into());
        }
        match self.elements_left.checked_sub(elements) {
            Some(rest) => self.elements_left = rest,
            None => return self.fault(DecodeFault::Elements { at }),
        }
        Ok(Some(elements))
    }

    /// The tagged fields of a struct; `known` reads one and says whether it knows it. Others are passed over.
    pub(super) fn tags(
        &mut self,
        mut known: impl FnMut(&mut Decoder<'a>, u32) -> Decoded<bool>,
    ) -> Decoded<()> {
        self.at("tagged fields");
        let count = self.read(Reader::unsigned_varint)?;
        for _ in 0..count {
            let tag = self.read(Reader::unsigned_varint)?;
            let said = self.read(Reader::unsigned_varint)? as usize;
            let from = self.reader.position_bytes();
            if !known(self, tag)? {
                self.read(|reader| reader.take(said))?;
            }
            let at = self.reader.position_bytes();
            if at - from != said {
                return self.fault(DecodeFault::Tag { at, said });
            }
        }
        Ok(())
    }
}

/// Writes one message.
#[derive(Debug)]
pub struct Encoder<'o> {
    out: &'o mut Vec<u8>,
    message: &'static str,
    version: i16,
    field: &'static str,
}

type Encoded = Result<(), EncodeError>;

impl<'o> Encoder<'o> {
    /// At the end of a buffer.
    pub fn new(out: &'o mut Vec<u8>, message: &'static str, version: i16) -> Encoder<'o> {
        Encoder { out, message, version, field: "" }
    }

    /// Names the field that is written next.
    pub(super) fn at(&mut self, field: &'static str) {
        self.field = field;
    }

    pub(super) fn fault(&self, fault: EncodeFault) -> Encoded {
        Err(EncodeError { message: self.message, version: self.version, field: self.field, fault })
    }

    /// Refuses a value that would be lost.
    pub(super) fn lost(&self, is_default: bool) -> Encoded {
        if is_default { Ok(()) } else { self.fault(EncodeFault::Missing) }
    }

    fn writer(&mut self) -> Writer<'_> {
        Writer::new(self.out)
    }

    pub(super) fn bool(&mut self, value: bool) -> Encoded {
        self.writer().u8(u8::from(value));
        Ok(())
    }

    pub(super) fn i8(&mut self, value: i8) -> Encoded {
        self.writer().i8(value);
        Ok(())
    }

    pub(super) fn i16(&mut self, value: i16) -> Encoded {
        self.writer().i16(value);
        Ok(())
    }

    pub(super) fn i32(&mut self, value: i32) -> Encoded {
        self.writer().i32(value);
        Ok(())
    }

    pub(super) fn i64(&mut self, value: i64) -> Encoded {
        self.writer().i64(value);
        Ok(())
    }

    pub(super) fn uuid(&mut self, value: &Uuid) -> Encoded {
        self.writer().uuid(value);
        Ok(())
    }

    /// A length, or its absence, in the form that has 16 or 32 bits, or the flexible one.
    fn length(&mut self, flexible: bool, is_short: bool, length: Option<usize>) -> Encoded {
        let most = if is_short && !flexible { i16::MAX as usize } else { i32::MAX as usize - 1 };
        if let Some(bytes) = length.filter(|length| *length > most) {
            return self.fault(EncodeFault::TooLong { bytes });
        }
        // The bound above holds both.
        let number = length.map_or(-1, |length| i32::try_from(length).unwrap_or(i32::MAX));
        match (flexible, is_short) {
            (true, _) => self.writer().unsigned_varint(number.wrapping_add(1).unsigned_abs()),
            (false, true) => self.writer().i16(i16::try_from(number).unwrap_or(i16::MAX)),
            (false, false) => self.writer().i32(number),
        }
        Ok(())
    }

    pub(super) fn str(&mut self, flexible: bool, nullable: bool, value: Option<&str>) -> Encoded {
        if value.is_none() && !nullable {
            return self.fault(EncodeFault::Null);
        }
        self.length(flexible, true, value.map(str::len))?;
        self.writer().raw(value.unwrap_or_default().as_bytes());
        Ok(())
    }

    pub(super) fn bytes(&mut self, flexible: bool, nullable: bool, value: Option<&[u8]>) -> Encoded {
        if value.is_none() && !nullable {
            return self.fault(EncodeFault::Null);
        }
        self.length(flexible, false, value.map(<[u8]>::len))?;
        self.writer().raw(value.unwrap_or_default());
        Ok(())
    }

    pub(super) fn is_present(&mut self, nullable: bool, is_there: bool) -> Encoded {
        match (is_there, nullable) {
            (true, _) => self.i8(1),
            (false, true) => self.i8(-1),
            (false, false) => self.fault(EncodeFault::Null),
        }
    }

    pub(super) fn array<T>(
        &mut self,
        flexible: bool,
        nullable: bool,
        value: Option<&[T]>,
        mut element: impl FnMut(&mut Encoder<'_>, &T) -> Encoded,
    ) -> Encoded {
        if value.is_none() && !nullable {
            return self.fault(EncodeFault::Null);
        }
        self.length(flexible, false, value.map(<[T]>::len))?;
        value.unwrap_or_default().iter().try_for_each(|one| element(self, one))
    }

    /// How many tagged fields follow.
    pub(super) fn tags(&mut self, count: u32) {
        self.writer().unsigned_varint(count);
    }

    /// A tagged field.
    pub(super) fn tag(&mut self, tag: u32, write: impl FnOnce(&mut Encoder<'_>) -> Encoded) -> Encoded {
        let mut body = Vec::new();
        write(&mut Encoder { out: &mut body, ..*self })?;
        let Ok(size) = u32::try_from(body.len()) else {
            return self.fault(EncodeFault::TooLong { bytes: body.len() });
        };
        let mut writer = self.writer();
        writer.unsigned_varint(tag);
        writer.unsigned_varint(size);
        writer.raw(&body);
        Ok(())
    }
}
