//! From a time to an offset.

use leftoff_wire::Offset;
use leftoff_wire::record_batch::{Batch, BatchHeader, Limits};

use super::lookup::{Found, View};
use super::scan::{Check, Scan, Step, Stretch};
use super::segment::path;
use super::{Log, LogError, segment};

/// A record: its offset and its timestamp in milliseconds since 1970.
type Stamped = (Offset, i64);

impl Log {
    /// The first offset whose timestamp is at or after `timestamp_ms`, and that timestamp; `None` if there is none.
    ///
    /// Timestamps need not rise: what is found is the first such record in offset order, as Kafka does it. Only
    /// records from the log start to the high watermark count; damaged batches are passed.
    pub fn offset_for_time(&self, timestamp_ms: i64) -> Result<Option<Stamped>, LogError> {
        for number in self.segments_with_records() {
            let segment = &self.segments[number];
            if segment.max_timestamp_ms.get().is_some_and(|max| *max < timestamp_ms) {
                continue;
            }
            let Some(view) = self.view_if_readable(number)? else { continue };
            if let Some(stamped) = self.time_in_segment(number, &view, timestamp_ms)? {
                return Ok(Some(stamped));
            }
        }
        Ok(None)
    }

    /// The first record with the greatest timestamp: its offset and timestamp (KIP-734).
    pub fn max_timestamp(&self) -> Result<Option<Stamped>, LogError> {
        let mut greatest: Option<(View, Found)> = None;
        for number in self.segments_with_records() {
            let max_so_far = greatest.as_ref().map_or(-1, |(_, found)| found.header.max_timestamp);
            let segment = &self.segments[number];
            if segment.max_timestamp_ms.get().is_some_and(|max| *max <= max_so_far) {
                continue;
            }
            let Some(view) = self.view_if_readable(number)? else { continue };
            if let Some(found) = self.greatest_in_segment(&view, max_so_far)? {
                greatest = Some((view, found));
            }
        }
        let Some((view, found)) = greatest else { return Ok(None) };
        let max = found.header.max_timestamp;
        let record = self.first_record(&view, &found, &|timestamp| timestamp == max)?;
        Ok(Some(record.unwrap_or((found.header.last_offset(), max))))
    }

    fn segments_with_records(&self) -> std::ops::Range<usize> {
        let first = self.segments.partition_point(|segment| segment.base <= self.log_start);
        first.saturating_sub(1)..self.visible_segments()
    }

    fn view_if_readable(&self, number: usize) -> Result<Option<View>, LogError> {
        match self.view(number, self.segments[number].base) {
            Err(LogError::Damaged { .. }) => Ok(None),
            view => view.map(Some),
        }
    }

    fn time_in_segment(
        &self,
        number: usize,
        view: &View,
        timestamp_ms: i64,
    ) -> Result<Option<Stamped>, LogError> {
        let (stretch, mut max) = self.after_time(view, timestamp_ms)?;
        let path = path(&self.dir, view.segment.base, segment::LOG);
        let mut scan = Scan::new(stretch, Check::Headers);
        while let Some(step) = scan.step().map_err(LogError::io("read", &path))? {
            let Step::Batch { position_bytes, header } = step else { continue };
            max = max.max(header.max_timestamp);
            if header.max_timestamp < timestamp_ms || header.next_offset() <= self.log_start {
                continue;
            }
            let found = Found { position_bytes, header };
            let record = self.first_record(view, &found, &|timestamp| timestamp >= timestamp_ms)?;
            if record.is_some() {
                return Ok(record);
            }
        }
        if view.segment.base < self.high.segment_base {
            // The same value again if somebody was faster.
            let _ = self.segments[number].max_timestamp_ms.set(max);
        }
        Ok(None)
    }

    /// The batches behind which no earlier one reaches the time, and the greatest timestamp before them.
    fn after_time(&self, view: &View, timestamp_ms: i64) -> Result<(Stretch, i64), LogError> {
        for _ in 0..2 {
            let Some(entry) = self.last_time_entry(view, timestamp_ms)? else { break };
            if let Some(Found { position_bytes, header }) = self.batch_of_time(view, entry)? {
                let base = header.base_offset;
                return Ok((Stretch { position_bytes, base, ..view.whole.clone() }, entry.timestamp_ms));
            }
            self.rebuild_indexes(view)?;
        }
        Ok((view.whole.clone(), -1))
    }

    fn last_time_entry(
        &self,
        view: &View,
        timestamp_ms: i64,
    ) -> Result<Option<super::index::TimeEntry>, LogError> {
        let path = path(&self.dir, view.segment.base, segment::TIME_INDEX);
        let is_before = |entry: &super::index::TimeEntry| {
            entry.timestamp_ms < timestamp_ms && view.segment.offset(entry.relative_offset) < view.whole.next
        };
        view.segment.lock().times.last_where(is_before).map_err(LogError::io("read", &path))
    }

    /// The first batch of a segment with its greatest timestamp, if that is above `above`.
    fn greatest_in_segment(&self, view: &View, above: i64) -> Result<Option<Found>, LogError> {
        let (stretch, _) = self.after_time(view, i64::MAX)?;
        let path = path(&self.dir, view.segment.base, segment::LOG);
        let mut scan = Scan::new(stretch, Check::Headers);
        let mut greatest = None;
        let mut max = above;
        while let Some(step) = scan.step().map_err(LogError::io("read", &path))? {
            if let Step::Batch { position_bytes, header } = step
                && header.max_timestamp > max
                && header.next_offset() > self.log_start
            {
                max = header.max_timestamp;
                greatest = Some(Found { position_bytes, header });
            }
        }
        Ok(greatest)
    }

    /// The first record of a batch that is not below the log start and has such a timestamp; `None` also if the batch
    /// cannot be read.
    fn first_record(
        &self,
        view: &View,
        found: &Found,
        wanted: &dyn Fn(i64) -> bool,
    ) -> Result<Option<Stamped>, LogError> {
        let path = path(&self.dir, view.segment.base, segment::LOG);
        let Found { position_bytes, header } = found;
        let stretch = Stretch {
            position_bytes: *position_bytes,
            end_bytes: position_bytes + header.size_bytes() as u64,
            base: header.base_offset,
            next: header.next_offset(),
            file: view.segment.log.clone(),
        };
        let mut scan = Scan::new(stretch, Check::Checksums);
        match scan.step().map_err(LogError::io("read", &path))? {
            Some(Step::Batch { .. }) => {}
            Some(Step::Damage { .. }) | None => return Ok(None),
        }
        let bytes = scan.read(*position_bytes, header).map_err(LogError::io("read", &path))?;
        Ok(first_in_batch(&bytes, header, self.log_start, wanted))
    }
}

fn first_in_batch(
    bytes: &[u8],
    header: &BatchHeader,
    log_start: Offset,
    wanted: &dyn Fn(i64) -> bool,
) -> Option<Stamped> {
    let (batch, _) = Batch::parse(bytes).ok()?;
    let records = batch.records(&Limits::default()).ok()?;
    records
        .iter()
        .map_while(Result::ok)
        .map(|record| (record.offset(header), record.timestamp(header)))
        .find(|(offset, timestamp)| *offset >= log_start && wanted(*timestamp))
}
