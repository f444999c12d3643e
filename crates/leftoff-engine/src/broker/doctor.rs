//! `leftoff doctor`: looks at every byte below the marks and tells what is wrong; `--repair` takes it out of the way.
//!
//! Nothing is deleted: what cannot be served is copied or moved to `aside/` first. No offset is ever given out twice: lost
//! offsets stay a hole. The repair goes log by log, the metadata log first, since it says which others there are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leftoff_wire::{Offset, Run};

use crate::broker::directory::{self, ASIDE, METADATA_DIR, OFFSETS_DIR};
use crate::broker::marks::{Marks, MarksError, ReadMarks};
use crate::broker::recovery::{self, OpenError};
use crate::broker::replay;
use crate::broker::topics::{folder, folder_topic_id, move_aside};
use crate::broker::{MARKS_FILE, METADATA_LOG, Metadata, OFFSETS_LOG, PartitionId};
use crate::disk::{Disk, OpenHow};
use crate::log::{Access, Finding, FindingKind, Log, LogConfig, Mark, MarkDamage, Verified};

/// Something that is wrong with a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ailment {
    /// The marks file is missing or not one.
    NoMarksFile {
        /// What is wrong with it.
        what: String,
    },
    /// A partition has no valid mark.
    NoMark,
    /// A live partition's folder is gone.
    FolderGone {
        /// The synced end: so many offsets were given out.
        end: Offset,
    },
    /// The segment that holds the synced end is short or gone.
    Short(MarkDamage),
    /// Something within the log.
    Log(Finding),
    /// Records of an internal log cannot be understood, so what depends on them cannot be looked at.
    Unreadable {
        /// Why.
        what: String,
    },
}

/// A finding, and what was done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The folder, or file, it is about.
    pub place: String,
    /// What is wrong.
    pub ailment: Ailment,
    /// What was done; `None` if nothing was.
    pub repaired: Option<String>,
}

/// What was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Examined {
    /// Partitions, the internal logs included.
    pub partitions: u64,
    /// Segments.
    pub segments: u64,
    /// Good batches.
    pub batches: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Looks at everything, and with `repair` (under the directory's lock) mends what can be mended. `tell` hears of each
/// finding. A repair wants to be preceded by a start, if that is possible, so that tails are settled.
///
/// # Errors
/// [`OpenError`] if it is not a directory of ours, or the disk fails.
pub fn examine(
    disk: &Arc<dyn Disk>,
    repair: bool,
    tell: &mut dyn FnMut(Diagnosis),
) -> Result<Examined, OpenError> {
    if directory::inspect(disk)? == directory::Found::Empty {
        return Err(OpenError::Empty);
    }
    let mut doctor = Doctor { disk, marks: None, ends: BTreeMap::new(), tell, examined: Examined::default() };
    doctor.look_at_marks(repair)?;
    let metadata_log = doctor.look_at_log(METADATA_DIR, METADATA_LOG, None)?;
    let metadata = match metadata_log.map(|log| replay::metadata(&log)) {
        Some(Ok(metadata)) => metadata,
        Some(Err(error)) => {
            doctor.say(METADATA_DIR, Ailment::Unreadable { what: error.to_string() }, None);
            return Ok(doctor.examined);
        }
        None => return Ok(doctor.examined),
    };
    if let Some(log) = doctor.look_at_log(OFFSETS_DIR, OFFSETS_LOG, Some(&metadata))?
        && let Err(error) = replay::coordinator(disk, &log)
    {
        doctor.say(OFFSETS_DIR, Ailment::Unreadable { what: error.to_string() }, None);
    }
    for topic in metadata.topics() {
        for number in 0..topic.partitions {
            let partition = PartitionId { topic_id: topic.topic_id, partition: number };
            doctor.look_at_log(&folder(&topic.name, number), partition, Some(&metadata))?;
        }
    }
    Ok(doctor.examined)
}

struct Doctor<'a> {
    disk: &'a Arc<dyn Disk>,
    /// Present when repairing.
    marks: Option<Marks>,
    ends: BTreeMap<PartitionId, Mark>,
    tell: &'a mut dyn FnMut(Diagnosis),
    examined: Examined,
}

impl Doctor<'_> {
    fn say(&mut self, place: &str, ailment: Ailment, repaired: Option<String>) {
        (self.tell)(Diagnosis { place: place.to_owned(), ailment, repaired });
    }

    fn look_at_marks(&mut self, repair: bool) -> Result<(), OpenError> {
        match ReadMarks::read(self.disk) {
            Ok(read) => {
                self.ends = read.ends();
                self.marks = repair.then(|| Marks::open(self.disk)).transpose()?;
            }
            Err(MarksError::Io(error)) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(MarksError::Io(error).into());
            }
            Err(error) => {
                let repaired = repair.then(|| self.replace_marks()).transpose()?;
                self.say(MARKS_FILE, Ailment::NoMarksFile { what: error.to_string() }, repaired);
            }
        }
        Ok(())
    }

    fn replace_marks(&mut self) -> Result<String, OpenError> {
        let path = Path::new(MARKS_FILE);
        let mut done = "made anew; each log's end is looked up".to_owned();
        if self.disk.metadata(path).map_err(io(path))?.is_some() {
            let aside = move_aside(self.disk, path).map_err(io(path))?;
            done = format!("moved to {}, {done}", aside.display());
        }
        self.marks = Some(Marks::create(self.disk)?);
        self.disk.sync_dir(Path::new("")).map_err(io(path))?;
        Ok(done)
    }

    /// Looks at one log, and mends it. `None` if it cannot be opened even so.
    fn look_at_log(
        &mut self,
        dir: &str,
        partition: PartitionId,
        metadata: Option<&Metadata>,
    ) -> Result<Option<Log>, OpenError> {
        self.examined.partitions += 1;
        if !self.find_end(dir, &partition)? {
            return Ok(None);
        }
        let access = if self.marks.is_some() { Access::Writer } else { Access::Reader };
        let open = |ends: &BTreeMap<PartitionId, Mark>| {
            recovery::open_log(self.disk, dir, partition, ends, metadata, access)
        };
        let mut log = open(&self.ends)?;
        let short = log.mark_damage();
        if let Some(damage) = short {
            let repaired = match self.marks {
                Some(_) => Some(self.begin_anew(dir, partition)?),
                None => None,
            };
            self.say(dir, Ailment::Short(damage), repaired);
            if self.marks.is_some() {
                log = recovery::open_log(self.disk, dir, partition, &self.ends, metadata, access)?;
            }
        }
        let mut findings = Vec::new();
        let Verified { segments, batches, bytes, .. } = log.verify(&mut |finding| findings.push(finding))?;
        self.examined.segments += segments;
        self.examined.batches += batches;
        self.examined.bytes += bytes;
        // From the last to the first: cutting something out moves what lies behind it.
        for finding in findings.into_iter().rev() {
            if finding.kind == FindingKind::Short && short.is_some() {
                continue; // Told already.
            }
            let repaired = match self.marks {
                Some(_) => self.mend(&mut log, partition, &finding)?,
                None => None,
            };
            self.say(dir, Ailment::Log(finding), repaired);
        }
        Ok(Some(log))
    }

    /// Makes sure that the log has a folder and a mark. False if it has not, and is not to be repaired.
    fn find_end(&mut self, dir: &str, partition: &PartitionId) -> Result<bool, OpenError> {
        let path = Path::new(dir);
        let has_folder = self.disk.metadata(path).map_err(io(path))?.is_some();
        let mark = self.ends.get(partition).copied();
        match (has_folder, mark) {
            (true, Some(_)) => return Ok(true),
            (false, mark) => {
                let end = mark.map_or(Offset::ZERO, |mark| mark.end);
                self.ends.entry(*partition).or_insert(Mark::START);
                let repaired = match self.marks {
                    Some(_) => Some(self.begin_anew(dir, *partition)?),
                    None => None,
                };
                self.say(dir, Ailment::FolderGone { end }, repaired);
            }
            (true, None) => {
                let repaired = match self.marks {
                    Some(_) => Some(self.look_up_end(dir, *partition)?),
                    None => None,
                };
                self.say(dir, Ailment::NoMark, repaired);
            }
        }
        Ok(self.marks.is_some())
    }

    /// Takes the log's end from its batches: up to the first that is not valid. What is behind that goes to `aside/`.
    fn look_up_end(&mut self, dir: &str, partition: PartitionId) -> Result<String, OpenError> {
        let path = Path::new(dir);
        let first = self.first_segment(path)?;
        let mark = Mark { segment_base: first, end: first, position_bytes: 0 };
        let topic_id = folder_topic_id(self.disk, path).unwrap_or(partition.topic_id);
        let mut log =
            Log::open(self.disk, path, topic_id, LogConfig::default(), mark, first, Access::Writer)?;
        let found = log.read_tail(&mut |_| {})?;
        let mut done = format!("the end is offset {}, behind the last of the valid batches", found.valid_end);
        if found.torn_bytes > 0 {
            let kept = self.copy_aside(path)?;
            done += &format!("; {} bytes behind it are kept in {}", found.torn_bytes, kept.display());
        }
        log.settle_tail(found.valid_end)?;
        self.save_mark(partition, log.end_mark())?;
        Ok(done)
    }

    fn first_segment(&self, dir: &Path) -> Result<Offset, OpenError> {
        let entries = self.disk.list(dir).map_err(io(dir))?;
        let bases = entries.iter().filter_map(|entry| entry.name.strip_suffix(".log")?.parse().ok());
        Ok(bases.filter_map(Offset::new).min().unwrap_or(Offset::ZERO))
    }

    /// Copies all segments of a folder into one below `aside/`, before something is cut from them.
    fn copy_aside(&self, dir: &Path) -> Result<PathBuf, OpenError> {
        let aside = Path::new(ASIDE);
        if self.disk.metadata(aside).map_err(io(aside))?.is_none() {
            self.disk.create_dir(aside).map_err(io(aside))?;
            self.disk.sync_dir(Path::new("")).map_err(io(aside))?;
        }
        let mut to = aside.join(dir);
        let mut copy = 1;
        while self.disk.metadata(&to).map_err(io(&to))?.is_some() {
            to = aside.join(format!("{}.{copy}", dir.display()));
            copy += 1;
        }
        self.disk.create_dir(&to).map_err(io(&to))?;
        for entry in self.disk.list(dir).map_err(io(dir))? {
            if !entry.name.ends_with(".log") {
                continue;
            }
            let source = self.disk.open(&dir.join(&entry.name), OpenHow::Read).map_err(io(dir))?;
            let target = self.disk.open(&to.join(&entry.name), OpenHow::CreateNew).map_err(io(&to))?;
            copy_bytes(&*source, &*target).map_err(io(&to))?;
            target.sync_data().map_err(io(&to))?;
        }
        self.disk.sync_dir(&to).map_err(io(&to))?;
        self.disk.sync_dir(aside).map_err(io(aside))?;
        Ok(to)
    }

    /// Gives a log whose synced end is gone a new segment there.
    fn begin_anew(&mut self, dir: &str, partition: PartitionId) -> Result<String, OpenError> {
        let end = self.ends[&partition].end;
        let mark = Log::begin_anew(self.disk, Path::new(dir), partition.topic_id, end)?;
        self.disk.sync_dir(Path::new("")).map_err(io(Path::new(dir)))?;
        self.save_mark(partition, mark)?;
        Ok(format!("goes on at offset {end}; what is gone stays a hole, no offset is given out twice"))
    }

    fn mend(
        &mut self,
        log: &mut Log,
        partition: PartitionId,
        finding: &Finding,
    ) -> Result<Option<String>, OpenError> {
        match finding.kind {
            FindingKind::Damage => {}
            FindingKind::OffsetIndex | FindingKind::TimeIndex => {
                log.set_aside(finding, Path::new(ASIDE))?;
                return Ok(Some("made anew from the log".to_owned()));
            }
            // A hole is what a repair leaves; the others have no bytes to be put aside.
            FindingKind::Short | FindingKind::Hole | FindingKind::EpochFell => return Ok(None),
        }
        if finding.segment >= log.end_mark().segment_base {
            // A tail above the mark is for a start to settle, with the commit sets in it; then a repair comes again.
            if log.tail_bytes() > 0 {
                return Ok(None);
            }
            // The segment is written to: close it first, so that nothing that counts from its end changes.
            log.roll()?;
            let dirty = log.take_dirty();
            self.disk.sync(&dirty.files, &dirty.dirs).map_err(io(log.dir()))?;
            log.publish(log.end_mark());
            self.save_mark(partition, log.end_mark())?;
        }
        let aside = Path::new(ASIDE);
        if self.disk.metadata(aside).map_err(io(aside))?.is_none() {
            self.disk.create_dir(aside).map_err(io(aside))?;
            self.disk.sync_dir(Path::new("")).map_err(io(aside))?;
        }
        let kept = log.set_aside(finding, aside)?;
        Ok(kept.map(|kept| format!("taken out, and kept in {}", kept.display())))
    }

    fn save_mark(&mut self, partition: PartitionId, mark: Mark) -> Result<(), OpenError> {
        self.ends.insert(partition, mark);
        let path = Path::new(MARKS_FILE);
        let marks = self.marks.as_mut().expect("marks are saved by a repair only");
        if marks.get(&partition).is_none() {
            return marks.add(&[(partition, mark)]).and_then(|()| marks.sync_added()).map_err(io(path));
        }
        marks.write_round(&[(partition, mark)]).map_err(io(path))?;
        marks.sync_now().map_err(io(path))
    }
}

impl std::fmt::Display for Ailment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ailment::NoMarksFile { what } => write!(f, "{what}"),
            Ailment::NoMark => f.write_str("it has no valid mark: where it was synced to is not known"),
            Ailment::FolderGone { end } => {
                write!(f, "the folder is gone; its log ended before offset {end}, which comes next")
            }
            Ailment::Short(damage) => write!(f, "{damage}"),
            Ailment::Unreadable { what } => f.write_str(what),
            Ailment::Log(finding) => {
                let Finding { segment, position_bytes, len_bytes, from, to, kind } = finding;
                let run = Run::new(*from, *to);
                let what = match kind {
                    FindingKind::Damage => "damaged bytes",
                    FindingKind::Short => "synced bytes are gone",
                    FindingKind::Hole => {
                        return write!(f, "not there: {run} (a hole, as a repair leaves it)");
                    }
                    FindingKind::EpochFell => "the leader epoch falls",
                    FindingKind::OffsetIndex => "the offset index does not fit the log",
                    FindingKind::TimeIndex => "the time index does not fit the log",
                };
                write!(
                    f,
                    "{what} in segment {segment} at position {position_bytes} ({len_bytes} bytes), {run}"
                )
            }
        }
    }
}

impl Ailment {
    /// False for what is only a remark: nothing that can be read is missing because of it.
    pub fn is_damage(&self) -> bool {
        match self {
            Ailment::Log(finding) => matches!(finding.kind, FindingKind::Damage | FindingKind::Short),
            Ailment::NoMarksFile { .. }
            | Ailment::NoMark
            | Ailment::FolderGone { .. }
            | Ailment::Short(_)
            | Ailment::Unreadable { .. } => true,
        }
    }
}

fn copy_bytes(from: &dyn crate::disk::DiskFile, to: &dyn crate::disk::DiskFile) -> std::io::Result<()> {
    const BUFFER_BYTES: usize = 1024 * 1024;
    let mut buffer = vec![0u8; BUFFER_BYTES];
    let mut position = 0;
    loop {
        let got = from.read_at(&mut buffer, position)?;
        if got == 0 {
            return Ok(());
        }
        to.write_all_at(&buffer[..got], position)?;
        position += got as u64;
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io { path, source }
}
