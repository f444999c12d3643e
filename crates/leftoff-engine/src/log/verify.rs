//! Looks at everything, for `doctor`.

use std::io;

use leftoff_wire::Offset;
use leftoff_wire::record_batch::BatchHeader;

use super::index::{Entry, Index};
use super::lookup::View;
use super::scan::{Check, Scan, Step};
use super::segment::{self, INDEX, Indexes, TIME_INDEX};
use super::{Log, LogError};
use crate::disk::OpenHow;

/// What [`Log::verify`] looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verified {
    /// Segments.
    pub segments: u64,
    /// Good batches.
    pub batches: u64,
    /// Bytes of segments, good or not.
    pub bytes: u64,
    /// How many findings were reported.
    pub findings: u64,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// Base offset of the segment.
    pub segment: Offset,
    /// Where in the file (the segment's or the index's) it begins.
    pub position_bytes: u64,
    /// How many bytes it takes.
    pub len_bytes: u64,
    /// The first offset it is about.
    pub from: Offset,
    /// The offset behind the last one it is about.
    pub to: Offset,
}

/// The kinds of [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// Bytes of the segment that are no valid batch.
    Damage,
    /// The segment is missing or ends before the mark up to which it was synced.
    Short,
    /// Offsets that no batch holds: taken out by a repair, or cut off with the end of a file.
    Hole,
    /// A batch with a lower leader epoch than one before it.
    EpochFell,
    /// The offset index is missing or has an entry that names no batch. It is only a hint, and is made anew when used.
    OffsetIndex,
    /// The time index is missing or has an entry that names no batch with that timestamp. Only a hint, too.
    TimeIndex,
}

impl Log {
    /// Looks at every byte below the high watermark, and at the indexes, and tells what is wrong.
    pub fn verify(&self, visit: &mut dyn FnMut(Finding)) -> Result<Verified, LogError> {
        let mut verified = Verified::default();
        let mut epoch = i32::MIN;
        // What a power cut left of deleted segments is nobody's business any more.
        let deleted = self.segments.windows(2).take_while(|pair| pair[1].base <= self.log_start).count();
        let mut expected = self.segments[deleted].base;
        if expected > self.log_start {
            verified.findings += 1;
            visit(self.hole(expected, self.log_start, expected));
        }
        for number in deleted..self.visible_segments() {
            let base = self.segments[number].base;
            let mut report = |finding| {
                verified.findings += 1;
                visit(finding);
            };
            let view = match self.view(number, base) {
                Err(LogError::Damaged { .. }) => {
                    report(self.short(base, expected, 0));
                    continue;
                }
                view => view?,
            };
            expected = expected.max(base);
            let mut walk = Walk { log: self, epoch, expected, batches: 0 };
            walk.segment(&view, &mut report)?;
            (epoch, expected) = (walk.epoch, walk.expected);
            verified.segments += 1;
            verified.batches += walk.batches;
            verified.bytes += view.whole.end_bytes;
        }
        Ok(verified)
    }

    fn hole(&self, segment: Offset, from: Offset, to: Offset) -> Finding {
        Finding { kind: FindingKind::Hole, segment, position_bytes: 0, len_bytes: 0, from, to }
    }

    fn short(&self, segment: Offset, from: Offset, position_bytes: u64) -> Finding {
        let to = self.high.end;
        Finding { kind: FindingKind::Short, segment, position_bytes, len_bytes: 0, from, to }
    }
}

struct Walk<'a> {
    log: &'a Log,
    epoch: i32,
    expected: Offset,
    batches: u64,
}

impl Walk<'_> {
    fn segment(&mut self, view: &View, report: &mut dyn FnMut(Finding)) -> Result<(), LogError> {
        let segment = view.segment.base;
        let path = segment::path(&self.log.dir, segment, segment::LOG);
        let io = || LogError::io("read", &path);
        // Where the mark lies, no sync has covered the indexes; whoever writes there next puts them right.
        let is_closed = segment < self.log.high.segment_base;
        let files = Indexes::open(&*self.log.disk, &self.log.dir, segment, OpenHow::Read).map_err(io())?;
        let mut indexes = files.filter(|_| is_closed).map(IndexWalk::new);
        if indexes.is_none() && is_closed {
            let missing = |kind| Finding {
                kind,
                segment,
                position_bytes: 0,
                len_bytes: 0,
                from: segment,
                to: view.whole.next,
            };
            report(missing(FindingKind::OffsetIndex));
        }
        let mut scan = Scan::new(view.whole.clone(), Check::Checksums);
        while let Some(step) = scan.step().map_err(io())? {
            match step {
                Step::Batch { position_bytes, header } => {
                    self.batch(segment, position_bytes, &header, report);
                    if let Some(indexes) = &mut indexes {
                        indexes.batch(view, position_bytes, &header).map_err(io())?;
                    }
                }
                Step::Damage { position_bytes, len_bytes, from, to } => {
                    let kind = FindingKind::Damage;
                    report(Finding { kind, segment, position_bytes, len_bytes, from, to });
                    self.expected = to;
                }
            }
        }
        if self.expected < view.whole.next {
            let mut finding = self.log.hole(segment, self.expected, view.whole.next);
            finding.position_bytes = view.whole.end_bytes;
            if self.log.is_short(view) {
                finding.kind = FindingKind::Short;
            }
            report(finding);
            self.expected = view.whole.next;
        }
        if let Some(indexes) = indexes {
            indexes.report(view, report);
        }
        Ok(())
    }

    fn batch(
        &mut self,
        segment: Offset,
        position_bytes: u64,
        header: &BatchHeader,
        report: &mut dyn FnMut(Finding),
    ) {
        self.batches += 1;
        let (from, to) = (header.base_offset, header.next_offset());
        if from > self.expected {
            report(Finding { position_bytes, ..self.log.hole(segment, self.expected, from) });
        }
        if header.partition_leader_epoch < self.epoch {
            let (kind, len_bytes) = (FindingKind::EpochFell, header.size_bytes() as u64);
            report(Finding { kind, segment, position_bytes, len_bytes, from, to });
        }
        self.epoch = self.epoch.max(header.partition_leader_epoch);
        self.expected = to;
    }
}

/// Goes along the batches of a segment with both index files.
struct IndexWalk {
    indexes: Indexes,
    offset_at: u64,
    time_at: u64,
    max_timestamp_ms: i64,
    wrong_offset: Option<u64>,
    wrong_time: Option<u64>,
}

impl IndexWalk {
    fn new(indexes: Indexes) -> IndexWalk {
        let (wrong_offset, wrong_time) = (None, None);
        IndexWalk { indexes, offset_at: 0, time_at: 0, max_timestamp_ms: -1, wrong_offset, wrong_time }
    }

    /// The entries up to this batch must be right.
    fn batch(&mut self, view: &View, position_bytes: u64, header: &BatchHeader) -> io::Result<()> {
        self.max_timestamp_ms = self.max_timestamp_ms.max(header.max_timestamp);
        let last_offset = header.last_offset();
        while let Some(entry) = self.indexes.offsets.get(self.offset_at)?
            && u64::from(entry.position_bytes) <= position_bytes
        {
            let is_right = u64::from(entry.position_bytes) == position_bytes
                && view.segment.offset(entry.relative_offset) == last_offset;
            if !is_right {
                self.wrong_offset.get_or_insert(self.offset_at);
            }
            self.offset_at += 1;
        }
        while let Some(entry) = self.indexes.times.get(self.time_at)?
            && view.segment.offset(entry.relative_offset) <= last_offset
        {
            let is_right = view.segment.offset(entry.relative_offset) == last_offset
                && entry.timestamp_ms == header.max_timestamp
                && entry.timestamp_ms == self.max_timestamp_ms;
            if !is_right {
                self.wrong_time.get_or_insert(self.time_at);
            }
            self.time_at += 1;
        }
        Ok(())
    }

    /// No entry may be left.
    fn report(mut self, view: &View, report: &mut dyn FnMut(Finding)) {
        if self.offset_at < self.indexes.offsets.len() {
            self.wrong_offset.get_or_insert(self.offset_at);
        }
        if self.time_at < self.indexes.times.len() {
            self.wrong_time.get_or_insert(self.time_at);
        }
        let (segment, to) = (view.segment.base, view.whole.next);
        let finding = |kind, at: u64, entry_bytes: usize| Finding {
            kind,
            segment,
            position_bytes: at * entry_bytes as u64,
            len_bytes: entry_bytes as u64,
            from: segment,
            to,
        };
        if let Some(at) = self.wrong_offset {
            report(finding(FindingKind::OffsetIndex, at, entry_bytes(&self.indexes.offsets)));
        }
        if let Some(at) = self.wrong_time {
            report(finding(FindingKind::TimeIndex, at, entry_bytes(&self.indexes.times)));
        }
    }
}

fn entry_bytes<E: Entry>(_: &Index<E>) -> usize {
    E::BYTES
}

/// Index files by the kind of finding that is about them.
pub(super) fn index_file(kind: FindingKind) -> Option<&'static str> {
    match kind {
        FindingKind::OffsetIndex => Some(INDEX),
        FindingKind::TimeIndex => Some(TIME_INDEX),
        FindingKind::Damage | FindingKind::Short | FindingKind::Hole | FindingKind::EpochFell => None,
    }
}
