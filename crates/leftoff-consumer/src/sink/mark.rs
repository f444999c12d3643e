//! What a place keeps of a partition beside the offset, so that it knows the log again.
//!
//! An offset alone says nothing of which log it counts in: a directory that was brought back from a backup takes other
//! events under the numbers that a newer place has passed. So a place keeps the last event that it passed, by offset and
//! fingerprint, and a start looks whether the log has that event there.

use crc_fast::CrcAlgorithm;
use leftoff_wire::Offset;

use crate::source::Event;

/// What is kept of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The last event that was passed; `None` if there was none, or if it was passed by a version that did not keep it.
    pub last: Option<LastEvent>,
    /// The number of the last reset that reached the place: the offset of its record in the group's log. `None` if none did.
    pub reset: Option<Offset>,
}

/// An event, as it is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastEvent {
    /// Its place in the partition.
    pub offset: Offset,
    /// What [`fingerprint`] makes of it.
    pub fingerprint: u32,
}

impl LastEvent {
    /// What is kept of an event.
    pub fn of(event: &Event) -> LastEvent {
        LastEvent { offset: event.offset, fingerprint: fingerprint(event) }
    }
}

/// A mark as it lies in the columns of a table.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StoredMark {
    pub(super) last_offset: Option<i64>,
    pub(super) last_fingerprint: Option<i64>,
    pub(super) reset: Option<i64>,
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
impl StoredMark {
    /// What it says, or the number that cannot be.
    pub(super) fn checked(self) -> Result<Mark, i64> {
        let offset = |number: Option<i64>| number.map(|n| Offset::new(n).ok_or(n)).transpose();
        let last = offset(self.last_offset)?.zip(self.last_fingerprint);
        let last = last.map(|(offset, print)| {
            u32::try_from(print).map(|fingerprint| LastEvent { offset, fingerprint }).map_err(|_| print)
        });
        Ok(Mark { last: last.transpose()?, reset: offset(self.reset)? })
    }
}

/// CRC-32C over what a producer gave: timestamp, key, value and headers, each with its length, so that no two differ only in
/// where one part ends. The bytes are in `docs/on-disk.md`; the same in every place and every version.
pub fn fingerprint(event: &Event) -> u32 {
    let mut digest = crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&event.timestamp_ms.to_be_bytes());
    let mut part = |bytes: Option<&[u8]>| {
        let length = bytes.map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        digest.update(&length.to_be_bytes());
        digest.update(bytes.unwrap_or_default());
    };
    part(event.key.as_deref());
    part(event.value.as_deref());
    for (name, value) in &event.headers {
        part(Some(name.as_bytes()));
        part(value.as_deref());
    }
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::event;

    type Headers = &'static [(&'static str, Option<&'static str>)];

    fn print(timestamp_ms: i64, key: Option<&str>, value: Option<&str>, headers: Headers) -> u32 {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.map(bytes))).collect();
        fingerprint(&Event {
            timestamp_ms,
            key: key.map(bytes),
            value: value.map(bytes),
            headers,
            ..event(0)
        })
    }

    #[test]
    fn each_part_counts_and_where_it_ends() {
        let all = [
            print(1, Some("ab"), Some("c"), &[]),
            print(2, Some("ab"), Some("c"), &[]),
            print(1, Some("a"), Some("bc"), &[]),
            print(1, None, Some("c"), &[]),
            print(1, Some(""), Some("c"), &[]),
            print(1, Some("ab"), None, &[]),
            print(1, Some("ab"), Some("c"), &[("h", None)]),
            print(1, Some("ab"), Some("c"), &[("h", Some(""))]),
            print(1, Some("ab"), Some("c"), &[("h", Some("x")), ("i", None)]),
            print(1, Some("ab"), Some("c"), &[("i", None), ("h", Some("x"))]),
        ];
        let distinct: std::collections::BTreeSet<u32> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    /// It is on disks: a change would take every log for another one.
    #[test]
    fn it_stays_as_it_is() {
        assert_eq!(print(1_517_363_399_650, Some("k"), Some("v"), &[("h", None)]), KNOWN);
    }

    const KNOWN: u32 = 4_108_330_611;
}
