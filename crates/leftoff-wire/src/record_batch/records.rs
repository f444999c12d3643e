//! The records of a batch, read in place.

use std::borrow::Cow;

use super::{BatchError, BatchFault, BatchHeader, RecordFault, TimestampType};
use crate::Offset;
use crate::primitives::{ReadError, ReadFault, Reader};

/// The least that a record takes: length, attributes, two deltas, key, value and header count, a byte each.
const MIN_RECORD_BYTES: usize = 7;
/// The least that a record's header takes: the lengths of key and value.
const MIN_HEADER_BYTES: usize = 2;

/// The records of one batch, decompressed. Iterate over `&records`: each view borrows from it.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    header: BatchHeader,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Records<'a> {
    pub(super) fn new(header: BatchHeader, bytes: Cow<'a, [u8]>) -> Result<Records<'a>, BatchError> {
        let (records_count, left_bytes) = (header.records_count, bytes.len());
        if (records_count as usize).saturating_mul(MIN_RECORD_BYTES) > left_bytes {
            return Err(BatchFault::RecordsCount { records_count, left_bytes }.at(0));
        }
        Ok(Records { header, bytes })
    }

    /// The records in order. The iterator ends after the first error.
    pub fn iter(&self) -> RecordIter<'_> {
        RecordIter { header: &self.header, reader: Reader::new(&self.bytes), index: 0, min_delta: 0 }
    }

    /// The header of their batch.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Their bytes, without compression.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<'r> IntoIterator for &'r Records<'_> {
    type Item = Result<RecordView<'r>, BatchError>;
    type IntoIter = RecordIter<'r>;

    fn into_iter(self) -> RecordIter<'r> {
        self.iter()
    }
}

/// Iterator over the records of a batch. Gives an error, as its last item, where the bytes are not what the header claims.
#[derive(Clone, Debug)]
pub struct RecordIter<'r> {
    header: &'r BatchHeader,
    reader: Reader<'r>,
    index: i32,
    /// The least that the next offset delta may be; one behind the greatest i32 is possible.
    min_delta: i64,
}

impl<'r> Iterator for RecordIter<'r> {
    type Item = Result<RecordView<'r>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = if self.index < self.header.records_count {
            self.record().map_err(|error| self.record_error(error))
        } else if !self.reader.is_empty() {
            let fault = BatchFault::Trailing { left_bytes: self.reader.remaining() };
            Err(fault.at(self.reader.position_bytes()))
        } else {
            return None;
        };
        match &item {
            Ok(record) => {
                self.index += 1;
                self.min_delta = i64::from(record.offset_delta) + 1;
            }
            Err(_) => self.end(),
        }
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // One more for the error about trailing bytes.
        (0, Some(self.header.records_count.saturating_sub(self.index).max(0) as usize + 1))
    }
}

impl std::iter::FusedIterator for RecordIter<'_> {}

impl<'r> RecordIter<'r> {
    fn record(&mut self) -> Result<RecordView<'r>, RecordError> {
        let length = self.reader.varint()?;
        let Ok(length) = usize::try_from(length) else {
            let fault = ReadFault::Length { value: i64::from(length) };
            return Err(ReadError { at: self.reader.position_bytes(), fault }.into());
        };
        let start = self.reader.position_bytes();
        let body = self.reader.take(length)?;
        let record = RecordView::parse(body).map_err(|error| error.moved_by(start))?;
        let (min, max) = (self.min_delta, self.header.last_offset_delta);
        if i64::from(record.offset_delta) < min || record.offset_delta > max {
            let fault = RecordFault::OffsetDelta { offset_delta: record.offset_delta, min, max };
            return Err(RecordError { at: start, fault });
        }
        Ok(record)
    }

    fn record_error(&self, error: RecordError) -> BatchError {
        BatchFault::Record { index: self.index, fault: error.fault }.at(error.at)
    }

    fn end(&mut self) {
        self.index = self.header.records_count;
        self.reader = Reader::new(&[]);
    }
}

/// One record, in the bytes of its batch.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'r> {
    /// Its offset minus the batch's base offset; from 0 to the batch's last offset delta.
    pub offset_delta: i32,
    /// Its timestamp minus the batch's base timestamp, in milliseconds. May be negative.
    pub timestamp_delta: i64,
    /// Its key; `None` is null, which is not the same as empty.
    pub key: Option<&'r [u8]>,
    /// Its value; `None` is null: in a compacted topic, a tombstone.
    pub value: Option<&'r [u8]>,
    /// Its headers.
    pub headers: Headers<'r>,
}

impl<'r> RecordView<'r> {
    /// Its place in the partition.
    pub fn offset(&self, header: &BatchHeader) -> Offset {
        header.base_offset.plus(u64::from(self.offset_delta.unsigned_abs()))
    }

    /// Its timestamp in milliseconds since 1970; -1 if it has none. With log append time, the batch's.
    pub fn timestamp(&self, header: &BatchHeader) -> i64 {
        match header.attributes.timestamp_type() {
            TimestampType::LogAppendTime => header.max_timestamp,
            // Wraps as Java does, so that every timestamp survives the way through a delta.
            TimestampType::CreateTime => header.base_timestamp.wrapping_add(self.timestamp_delta),
        }
    }

    /// The record in these bytes, which are all of it but for its length.
    fn parse(body: &'r [u8]) -> Result<RecordView<'r>, RecordError> {
        let mut reader = Reader::new(body);
        // Its own attributes are unused in v2.
        reader.i8()?;
        let timestamp_delta = reader.varlong()?;
        let offset_delta = reader.varint()?;
        let key = reader.varint_bytes()?;
        let value = reader.varint_bytes()?;
        let headers = Headers::parse(&mut reader)?;
        if !reader.is_empty() {
            let fault = RecordFault::Trailing { left_bytes: reader.remaining() };
            return Err(RecordError { at: reader.position_bytes(), fault });
        }
        Ok(RecordView { offset_delta, timestamp_delta, key, value, headers })
    }
}

/// The headers of a record: pairs of a key and a value that may be null, in order; a key may occur more than once.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'r> {
    count: usize,
    /// The pairs, each of which has been read once.
    bytes: &'r [u8],
}

impl<'r> Headers<'r> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Keys and values in order. Keys should be UTF-8, but nobody checked what the producer wrote.
    pub fn iter(&self) -> HeadersIter<'r> {
        HeadersIter { left: self.count, reader: Reader::new(self.bytes) }
    }

    /// The value of the last header with this key, as Kafka's `lastHeader` gives it. `Some(None)` is a null value.
    pub fn get(&self, key: &str) -> Option<Option<&'r [u8]>> {
        self.iter().filter(|(name, _)| *name == key.as_bytes()).map(|(_, value)| value).last()
    }

    fn parse(reader: &mut Reader<'r>) -> Result<Headers<'r>, RecordError> {
        let count = reader.varint()?;
        let at = reader.position_bytes();
        let Ok(count) = usize::try_from(count) else {
            return Err(ReadError { at, fault: ReadFault::Length { value: i64::from(count) } }.into());
        };
        let (want, left) = (count.saturating_mul(MIN_HEADER_BYTES), reader.remaining());
        if want > left {
            return Err(ReadError { at, fault: ReadFault::End { want, left } }.into());
        }
        let bytes = reader.rest();
        for _ in 0..count {
            read_header(reader)?;
        }
        Ok(Headers { count, bytes })
    }
}

impl<'r> IntoIterator for Headers<'r> {
    type Item = (&'r [u8], Option<&'r [u8]>);
    type IntoIter = HeadersIter<'r>;

    fn into_iter(self) -> HeadersIter<'r> {
        self.iter()
    }
}

/// Iterator over the headers of a record.
#[derive(Clone, Debug)]
pub struct HeadersIter<'r> {
    left: usize,
    reader: Reader<'r>,
}

impl<'r> Iterator for HeadersIter<'r> {
    type Item = (&'r [u8], Option<&'r [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(read_header(&mut self.reader).expect("read once before, when the record was parsed"))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for HeadersIter<'_> {}

fn read_header<'r>(reader: &mut Reader<'r>) -> Result<(&'r [u8], Option<&'r [u8]>), ReadError> {
    let at = reader.position_bytes();
    let key = reader.varint_bytes()?.ok_or(ReadError { at, fault: ReadFault::Length { value: -1 } })?;
    Ok((key, reader.varint_bytes()?))
}

struct RecordError {
    at: usize,
    fault: RecordFault,
}

impl RecordError {
    fn moved_by(self, bytes: usize) -> RecordError {
        RecordError { at: self.at + bytes, ..self }
    }
}

impl From<ReadError> for RecordError {
    fn from(error: ReadError) -> RecordError {
        RecordError { at: error.at, fault: error.fault.into() }
    }
}
