//! `doctor --repair`: takes damage out of the way without renumbering anything.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use leftoff_wire::{Offset, Uuid};

use super::epochs::{self, Epochs};
use super::scan::{Check, Scan, Step};
use super::verify::{Finding, FindingKind, index_file};
use super::window::read_exact;
use super::{Access, Log, LogError, METADATA, Mark, metadata_text, segment, small_file};
use crate::disk::{Disk, DiskFile, OpenHow};

/// Bytes are copied in steps of this size.
const COPY_BYTES: u64 = 1 << 20;
/// The ending of a segment file that is being rewritten. A start ignores it.
const REWRITTEN: &str = "log.repair";

impl Log {
    /// Takes what a finding is about out of the way.
    ///
    /// Damaged bytes are copied to a new file in `aside_dir`, whose path is returned, and synced there; then the segment
    /// is rewritten without them, so that readers see a gap. Offsets stay. Positions behind the damage change, so
    /// findings of the same [`Log::verify`] in the same segment are repaired from the last to the first. A wrong
    /// index is removed and made anew. `None`: there is nothing to be put aside.
    ///
    /// # Errors
    /// [`LogError::NotClosed`] for the segment in which the mark lies: [`Log::roll`], sync, [`Log::publish`] and save
    /// the mark before. [`LogError::NoSuchDamage`] if the finding is not true any more.
    pub fn set_aside(&mut self, finding: &Finding, aside_dir: &Path) -> Result<Option<PathBuf>, LogError> {
        let path = self.dir.clone();
        if self.access == Access::Reader {
            return Err(LogError::ReadOnly { path });
        }
        match finding.kind {
            FindingKind::Damage if finding.segment >= self.high.segment_base => {
                Err(LogError::NotClosed { path, segment: finding.segment })
            }
            FindingKind::Damage => self.cut_out(finding, aside_dir).map(Some),
            FindingKind::OffsetIndex | FindingKind::TimeIndex => {
                self.make_indexes_anew(finding).map(|()| None)
            }
            FindingKind::Short | FindingKind::Hole | FindingKind::EpochFell => Ok(None),
        }
    }

    /// Gives a partition whose synced end is known, and whose segment there is short or gone, a new segment at that end: what
    /// is left of the old ones stays readable, the lost offsets are a hole, and none is given out twice. Makes the folder
    /// if it is gone, too; its name in the parent is for the caller to sync. The mark that holds from then on.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn begin_anew(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        topic_id: Uuid,
        end: Offset,
    ) -> Result<Mark, LogError> {
        if disk.metadata(dir).map_err(LogError::io("look at", dir))?.is_none() {
            disk.create_dir(dir).map_err(LogError::io("create", dir))?;
        }
        let mut files = Vec::new();
        for (name, text) in
            [(METADATA, metadata_text(topic_id)), (epochs::CHECKPOINT, Epochs::default().text())]
        {
            let path = dir.join(name);
            if disk.metadata(&path).map_err(LogError::io("look at", &path))?.is_none() {
                files.push(small_file(&**disk, &path, &text)?);
            }
        }
        let segment = segment::create(&**disk, dir, end)?;
        files.extend(segment.lock().files());
        files.push(segment.log);
        disk.sync(&files, &[dir.to_owned()]).map_err(LogError::sync(dir))?;
        Ok(Mark { segment_base: end, end, position_bytes: 0 })
    }

    fn cut_out(&mut self, finding: &Finding, aside_dir: &Path) -> Result<PathBuf, LogError> {
        let Finding { segment, position_bytes, len_bytes, .. } = *finding;
        if !self.is_true(finding)? {
            return Err(LogError::NoSuchDamage { path: self.dir.clone(), segment, position_bytes });
        }
        let path = segment::path(&self.dir, segment, segment::LOG);
        let file = self.disk.open(&path, OpenHow::Read).map_err(LogError::io("open", &path))?;
        let end_bytes = file.len().map_err(LogError::io("look at", &path))?;
        let aside = self.free_name(finding, aside_dir)?;
        self.copy(&aside, &[(position_bytes, len_bytes)], &*file)?;
        self.disk.sync_dir(aside_dir).map_err(LogError::sync(aside_dir))?;

        let rewritten = segment::path(&self.dir, segment, REWRITTEN);
        let behind = position_bytes + len_bytes;
        let rest = end_bytes.saturating_sub(behind);
        self.copy(&rewritten, &[(0, position_bytes), (behind, rest)], &*file)?;
        self.drop_opened(segment);
        // The indexes would be found to be wrong; without them nobody has to find out.
        self.remove_indexes(segment)?;
        self.disk.rename(&rewritten, &path).map_err(LogError::io("replace", &path))?;
        self.disk.sync_dir(&self.dir).map_err(LogError::sync(&self.dir))?;
        if let Some(segment) = self.segments.iter_mut().find(|other| other.base == segment) {
            *segment = segment::Segment::new(segment.base);
        }
        Ok(aside)
    }

    /// Whether the damage is there, and there just so: good batches are never taken out.
    fn is_true(&self, finding: &Finding) -> Result<bool, LogError> {
        let Some(number) = self.segments.iter().position(|segment| segment.base == finding.segment) else {
            return Ok(false);
        };
        let view = self.view(number, finding.segment)?;
        let path = segment::path(&self.dir, finding.segment, segment::LOG);
        let mut scan = Scan::new(view.whole, Check::Checksums);
        while let Some(step) = scan.step().map_err(LogError::io("read", &path))? {
            if let Step::Damage { position_bytes, len_bytes, .. } = step
                && (position_bytes, len_bytes) == (finding.position_bytes, finding.len_bytes)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn make_indexes_anew(&mut self, finding: &Finding) -> Result<(), LogError> {
        assert!(index_file(finding.kind).is_some(), "the finding is about an index");
        self.drop_opened(finding.segment);
        self.remove_indexes(finding.segment)?;
        let Some(number) = self.segment_of(finding.segment) else { return Ok(()) };
        // Opening a segment without indexes makes them.
        match self.view(number, finding.segment) {
            Err(LogError::Damaged { .. }) => Ok(()),
            view => view.map(drop),
        }
    }

    fn remove_indexes(&self, base: Offset) -> Result<(), LogError> {
        for kind in [segment::INDEX, segment::TIME_INDEX] {
            let path = segment::path(&self.dir, base, kind);
            if self.disk.metadata(&path).map_err(LogError::io("look at", &path))?.is_some() {
                self.disk.remove_file(&path).map_err(LogError::io("remove", &path))?;
            }
        }
        Ok(())
    }

    /// `TOPIC-PARTITION.SEGMENT.POSITION.bytes`, with a number behind it if an earlier repair left such a file.
    fn free_name(&self, finding: &Finding, aside_dir: &Path) -> Result<PathBuf, LogError> {
        let dir = self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("{dir}.{:020}.{}.bytes", finding.segment.get(), finding.position_bytes);
        let (mut path, mut number) = (aside_dir.join(&name), 0);
        while self.disk.metadata(&path).map_err(LogError::io("look at", &path))?.is_some() {
            number += 1;
            path = aside_dir.join(format!("{name}.{number}"));
        }
        Ok(path)
    }

    /// Writes parts of a file, given by place and length, to a new file, and syncs that.
    fn copy(&self, to: &Path, parts: &[(u64, u64)], from: &dyn DiskFile) -> Result<(), LogError> {
        let io = || LogError::io("write", to);
        let copy: Arc<dyn DiskFile> = self.disk.open(to, OpenHow::CreateOrTruncate).map_err(io())?;
        let mut written_bytes = 0;
        let mut step = Vec::new();
        for (position_bytes, len_bytes) in parts {
            let (mut at, end) = (*position_bytes, position_bytes + len_bytes);
            while at < end {
                step.resize(usize::try_from(COPY_BYTES.min(end - at)).expect("at most one step"), 0);
                read_exact(from, &mut step, at).map_err(io())?;
                copy.write_all_at(&step, written_bytes).map_err(io())?;
                at += step.len() as u64;
                written_bytes += step.len() as u64;
            }
        }
        copy.sync_data().map_err(LogError::sync(to))
    }
}
