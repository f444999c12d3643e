//! Opening a directory: what a crash left is settled before anything is served.
//!
//! Below its mark a log is as it was synced. Above it is a tail: valid batches in it are kept and synced again, the rest is
//! cut, and commit sets are kept whole or cut whole, as `docs/on-disk.md` says. Cutting the power in here and starting
//! again leads to the same end: nothing is served before the last step, and each step may be done twice.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leftoff_wire::record_batch::{Batch, Limits};
use leftoff_wire::{Offset, Uuid};

use crate::broker::commit_set::{self, MANIFEST_HEADER, ManifestEntry, RESERVED_PRODUCER_ID};
use crate::broker::directory::{self, DirectoryError, METADATA_DIR, OFFSETS_DIR};
use crate::broker::marks::{Marks, MarksError};
use crate::broker::metadata::MetadataError;
use crate::broker::producers::Producers;
use crate::broker::replay;
use crate::broker::rounds::Rounds;
use crate::broker::topics::{
    Deleted, folder, folder_topic_id, log_config, move_aside, unlink_deleted, unlink_folder,
};
use crate::broker::{
    Broker, BrokerConfig, Change, EMPTY, METADATA_LOG, Metadata, OFFSETS_LOG, PartitionId, RESERVE_FILE,
    State, built, make_reserve,
};
use crate::coordinator::ReplayError;
use crate::coordinator::classic::Classic;
use crate::disk::Disk;
use crate::log::{Access, Dirty, Log, LogConfig, LogError, Mark, ReadBatch};
use crate::types::Timestamp;
use leftoff_wire::record_batch::BatchBuilder;

/// The logs that every directory has, with their folders.
pub(super) const INTERNAL_LOGS: [(PartitionId, &str); 2] =
    [(METADATA_LOG, METADATA_DIR), (OFFSETS_LOG, OFFSETS_DIR)];

/// What a start found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Bytes above the marks that were kept and synced again.
    pub kept_bytes: u64,
    /// Bytes of torn batches and incomplete commit sets that were cut. Nothing acknowledged is in them.
    pub cut_bytes: u64,
    /// Folders that no topic claims, and where they were moved to.
    pub set_aside: Vec<PathBuf>,
    /// Partitions whose synced bytes are damaged: they can be read, but take no more until a repair.
    pub damaged: Vec<String>,
}

/// Why a directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It is not a directory of ours.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// It is empty, and was to be read only.
    #[error("there is no data here yet")]
    Empty,
    /// The marks file cannot be used.
    #[error(transparent)]
    Marks(#[from] MarksError),
    /// A partition has no valid mark: where it was synced to is not known, and is not guessed.
    #[error("{dir} has no valid mark: where it was synced to is not known; run `leftoff doctor`")]
    NoMark {
        /// The partition's folder.
        dir: String,
    },
    /// A partition's folder is gone.
    #[error("the folder {dir} of a live partition is gone; put it back, or run `leftoff doctor`")]
    MissingFolder {
        /// The folder.
        dir: String,
    },
    /// A log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Records of an internal log that were synced once cannot be read.
    #[error("{log} is damaged: {what}; run `leftoff doctor`")]
    Damaged {
        /// Which log.
        log: &'static str,
        /// What is wrong.
        what: String,
    },
    /// A record of the metadata log cannot be understood.
    #[error("{METADATA_DIR}, offset {offset}: {error}")]
    Metadata {
        /// Where.
        offset: Offset,
        /// Why.
        error: MetadataError,
    },
    /// A record of the offsets log cannot be understood.
    #[error("{OFFSETS_DIR}: {0}")]
    Offsets(#[from] ReplayError),
    /// The disk failed.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Broker {
    /// Opens a directory to write it, or makes a new one with the given id. The caller holds the directory's lock.
    ///
    /// # Errors
    /// [`OpenError`]; the directory is left as it was found, but for tails that were settled.
    pub fn open(
        disk: Arc<dyn Disk>,
        now: Timestamp,
        new_cluster_id: Uuid,
        config: BrokerConfig,
    ) -> Result<Broker, OpenError> {
        let cluster_id = match directory::inspect(&disk)? {
            directory::Found::Ours { cluster_id } => cluster_id,
            directory::Found::Empty => {
                make_directory(&disk, new_cluster_id, &config)?;
                new_cluster_id
            }
        };
        let mut recovered = Recovered::default();
        let mut marks = Marks::open(&disk)?;
        let ends = marks.ends();

        let mut metadata_log = open_log(&disk, METADATA_DIR, METADATA_LOG, &ends, None, Access::Writer)?;
        let end = metadata_log.read_tail(&mut |_| {})?.valid_end;
        let mut unsynced = Dirty::default();
        settle(&mut metadata_log, end, &mut recovered, &mut unsynced)?;
        if !marks.was_clean() {
            add_ends(std::iter::once(&metadata_log), &mut unsynced)?;
        }
        // Before folders that it does not claim are moved out of the way.
        disk.sync(&unsynced.files, &unsynced.dirs).map_err(io(Path::new(METADATA_DIR)))?;
        let metadata = replay::metadata(&metadata_log)?;
        marks.retain(|partition| {
            INTERNAL_LOGS.iter().any(|(internal, _)| internal == partition)
                || metadata.has_partition(partition)
        });

        let deleted = tidy_folders(&disk, &metadata, &mut recovered)?;
        let mut logs = BTreeMap::from([(METADATA_LOG, metadata_log)]);
        open_logs(&disk, &metadata, &ends, &config, &mut logs)?;
        let mut unsynced = settle_tails(&metadata, &mut logs, &mut recovered)?;
        if !marks.was_clean() {
            add_ends(logs.values(), &mut unsynced)?;
        }
        disk.sync(&unsynced.files, &unsynced.dirs).map_err(io(Path::new("")))?;
        for log in logs.values() {
            if let Some(damage) = log.mark_damage() {
                recovered.damaged.push(format!("{}: {damage}", log.dir().display()));
            }
        }
        let (coordinator, snapshot_next) = replay::coordinator(&disk, &logs[&OFFSETS_LOG])?;
        let producers = Producers::open(&disk, &metadata);
        let state = State { cluster_id, metadata, coordinator, logs };
        let mut broker = Broker {
            reserve_is_free: !has_reserve(&disk)?,
            disk,
            config,
            state,
            marks,
            rounds: Rounds::new(),
            classic: Classic::default(),
            outputs: VecDeque::new(),
            latched: None,
            deleting: BTreeSet::new(),
            unchecked_bytes: 0,
            last_append: now,
            next_retention: now,
            snapshot_next,
            producers,
            recovered,
        };
        broker.finish_opening(now, &deleted)?;
        broker.load_members(now);
        Ok(broker)
    }

    /// Raises the leader epoch if bytes were cut, then moves the marks up to what was settled.
    fn finish_opening(&mut self, now: Timestamp, deleted: &[Deleted]) -> Result<(), OpenError> {
        if self.recovered.cut_bytes > 0 {
            let epoch = self.state.metadata.leader_epoch() + 1;
            let mut batch = BatchBuilder::default();
            let change = Change::Epoch(epoch);
            let (key, value) = change.encode();
            batch.push(now.as_ms(), Some(&key), value.as_deref(), &[]);
            let log = self.state.logs.get_mut(&METADATA_LOG).expect("opened first");
            log.append(built(&mut batch), epoch)?;
            let dirty = log.take_dirty();
            self.disk.sync(&dirty.files, &dirty.dirs).map_err(io(Path::new(METADATA_DIR)))?;
            log.publish(log.end_mark());
            self.state.metadata.replay(change);
        }
        let ends: Vec<(PartitionId, Mark)> = self
            .state
            .logs
            .iter()
            .map(|(partition, log)| (*partition, log.end_mark()))
            .filter(|(partition, end)| self.marks.get(partition) != Some(*end))
            .filter(|(partition, _)| self.state.logs[partition].mark_damage().is_none())
            .collect();
        if !ends.is_empty() || !self.marks.is_of_one_moment() {
            let path = Path::new(super::MARKS_FILE);
            self.marks.write_round(&ends).map_err(io(path))?;
            self.marks.sync_now().map_err(io(path))?;
        }
        // What a crash left of deleted topics, and of segments below the log start: the marks, which no longer name them, or
        // cover what deleted them, are on disk.
        unlink_deleted(&self.disk, deleted).map_err(io(Path::new("")))?;
        for log in self.state.logs.values_mut() {
            for segment in log.take_removable() {
                segment.unlink(&self.disk)?;
            }
        }
        Ok(())
    }
}

/// Makes a directory's own logs, marks and reserve; `meta.properties` is written last and makes it ours.
fn make_directory(disk: &Arc<dyn Disk>, cluster_id: Uuid, config: &BrokerConfig) -> Result<(), OpenError> {
    let root = Path::new("");
    for (partition, dir) in INTERNAL_LOGS {
        let dir = Path::new(dir);
        if disk.metadata(dir).map_err(io(dir))?.is_some() {
            unlink_folder(disk, dir).map_err(io(dir))?;
        }
        Log::create(disk, dir, partition.topic_id, internal_config(config))?;
    }
    let mut marks = Marks::create(disk)?;
    marks
        .add(&INTERNAL_LOGS.map(|(partition, _)| (partition, EMPTY)))
        .and_then(|()| marks.sync_added())
        .map_err(io(Path::new(super::MARKS_FILE)))?;
    make_reserve(disk).map_err(io(Path::new(RESERVE_FILE)))?;
    disk.sync_dir(root).map_err(io(root))?;
    Ok(directory::write_meta(disk, cluster_id)?)
}

fn internal_config(config: &BrokerConfig) -> LogConfig {
    LogConfig { segment_bytes: config.offsets_segment_bytes, ..LogConfig::default() }
}

fn has_reserve(disk: &Arc<dyn Disk>) -> Result<bool, OpenError> {
    let found = disk.metadata(Path::new(RESERVE_FILE)).map_err(io(Path::new(RESERVE_FILE)))?;
    Ok(found.is_some_and(|reserve| reserve.len_bytes == super::RESERVE_BYTES))
}

/// Opens one partition's log at its mark.
pub(super) fn open_log(
    disk: &Arc<dyn Disk>,
    dir: &str,
    partition: PartitionId,
    ends: &BTreeMap<PartitionId, Mark>,
    metadata: Option<&Metadata>,
    access: Access,
) -> Result<Log, OpenError> {
    let mark = *ends.get(&partition).ok_or_else(|| OpenError::NoMark { dir: dir.to_owned() })?;
    let path = Path::new(dir);
    if disk.metadata(path).map_err(io(path))?.is_none() {
        return Err(OpenError::MissingFolder { dir: dir.to_owned() });
    }
    let topic = metadata.and_then(|metadata| metadata.by_id(&partition.topic_id));
    let config = topic.map_or_else(LogConfig::default, |topic| log_config(&topic.settings));
    let log_start = metadata.map_or(Offset::ZERO, |metadata| metadata.log_start(&partition));
    Ok(Log::open(disk, path, partition.topic_id, config, mark, log_start, access)?)
}

fn open_logs(
    disk: &Arc<dyn Disk>,
    metadata: &Metadata,
    ends: &BTreeMap<PartitionId, Mark>,
    config: &BrokerConfig,
    logs: &mut BTreeMap<PartitionId, Log>,
) -> Result<(), OpenError> {
    let mut offsets = open_log(disk, OFFSETS_DIR, OFFSETS_LOG, ends, Some(metadata), Access::Writer)?;
    offsets.set_config(internal_config(config));
    logs.insert(OFFSETS_LOG, offsets);
    for topic in metadata.topics() {
        for number in 0..topic.partitions {
            let partition = PartitionId { topic_id: topic.topic_id, partition: number };
            let dir = folder(&topic.name, number);
            logs.insert(partition, open_log(disk, &dir, partition, ends, Some(metadata), Access::Writer)?);
        }
    }
    Ok(())
}

/// Moves folders that no topic claims out of the way; tells which ones are of deleted topics.
fn tidy_folders(
    disk: &Arc<dyn Disk>,
    metadata: &Metadata,
    recovered: &mut Recovered,
) -> Result<Vec<Deleted>, OpenError> {
    let root = Path::new("");
    let mut live: BTreeSet<String> = INTERNAL_LOGS.iter().map(|(_, dir)| (*dir).to_owned()).collect();
    for topic in metadata.topics() {
        live.extend((0..topic.partitions).map(|number| folder(&topic.name, number)));
    }
    let mut deleted = Vec::new();
    let ours = ["handlers", directory::ASIDE, "lost+found"];
    for entry in disk.list(root).map_err(io(root))? {
        if !entry.is_dir || ours.contains(&&*entry.name) {
            continue;
        }
        let path = PathBuf::from(&entry.name);
        // By its name alone, since its files may be gone in part; but only one of a topic that was deleted.
        if Deleted::topic_of(&entry.name).is_some_and(|topic_id| metadata.is_deleted(&topic_id)) {
            deleted.push(Deleted::renamed(path));
            continue;
        }
        match folder_topic_id(disk, &path).filter(|id| metadata.is_deleted(id)) {
            Some(topic_id) => deleted.push(Deleted::new(path, topic_id)),
            None if live.contains(&entry.name) => {}
            None => recovered.set_aside.push(move_aside(disk, &path).map_err(io(&path))?),
        }
    }
    Ok(deleted)
}

/// A batch above its log's mark.
#[derive(Debug, Clone, Copy)]
struct TailBatch {
    base: Offset,
    last: Offset,
    crc: u32,
    reserved: bool,
}

/// Decides where each log ends, then settles each one there. What is to be synced for that is returned.
fn settle_tails(
    metadata: &Metadata,
    logs: &mut BTreeMap<PartitionId, Log>,
    recovered: &mut Recovered,
) -> Result<Dirty, OpenError> {
    let mut tails: BTreeMap<PartitionId, Vec<TailBatch>> = BTreeMap::new();
    let mut cuts: BTreeMap<PartitionId, Offset> = BTreeMap::new();
    let mut manifests = Vec::new();
    for (partition, log) in
        logs.iter().filter(|(partition, log)| **partition != METADATA_LOG && log.tail_bytes() > 0)
    {
        let mut tail = Vec::new();
        let end = log.read_tail(&mut |batch| {
            let header = batch.header;
            if *partition == OFFSETS_LOG
                && let Some(entries) = manifest_of(batch.bytes)
            {
                manifests.push((header.base_offset, entries));
            }
            tail.push(TailBatch {
                base: header.base_offset,
                last: header.last_offset(),
                crc: header.crc,
                reserved: header.producer_id >= RESERVED_PRODUCER_ID,
            });
        })?;
        tails.insert(*partition, tail);
        cuts.insert(*partition, end.valid_end);
    }
    let below = named_below_the_mark(&logs[&OFFSETS_LOG], &tails)?;
    cut_incomplete_sets(metadata, logs, &tails, &manifests, &below, &mut cuts);
    let mut unsynced = Dirty::default();
    for (partition, end) in cuts {
        settle(logs.get_mut(&partition).expect("its tail was read"), end, recovered, &mut unsynced)?;
    }
    Ok(unsynced)
}

/// The batches that manifests below the offsets log's own mark name. Marks are written without waiting for the disk, so
/// after a power cut that log's mark can be newer than a data log's: a reserved batch in a tail may well be named below it.
/// What is below it was finished, so its batches are whole. Read only if there is a reserved batch above a mark.
fn named_below_the_mark(
    offsets: &Log,
    tails: &BTreeMap<PartitionId, Vec<TailBatch>>,
) -> Result<BTreeSet<(PartitionId, Offset)>, OpenError> {
    let mut named = BTreeSet::new();
    if !tails.values().flatten().any(|batch| batch.reserved) {
        return Ok(named);
    }
    for step in offsets.read_batches(offsets.log_start()) {
        // Damage is told of when the log is loaded.
        if let ReadBatch::Batch { bytes, .. } = step?
            && let Some(entries) = manifest_of(&bytes)
        {
            // Of all that was ever named only what may be in a tail is kept in memory.
            let in_a_tail = |entry: &&ManifestEntry| {
                let tail = tails.get(&entry.partition);
                tail.and_then(|tail| tail.first()).is_some_and(|first| entry.base >= first.base)
            };
            named.extend(entries.iter().filter(in_a_tail).map(|entry| (entry.partition, entry.base)));
        }
    }
    Ok(named)
}

/// A process that was killed may have cut a log back after a failed write, and not have synced that: the page cache shows the
/// cut, the disk does not have it, and a power cut would bring back what was taken away. So everything that a reader is
/// about to see is to be synced first.
fn add_ends<'a>(logs: impl Iterator<Item = &'a Log>, unsynced: &mut Dirty) -> Result<(), OpenError> {
    for log in logs {
        unsynced.files.extend(log.end_file()?);
        // A segment that was made for the refused append has gone from the folder in the same way.
        unsynced.dirs.push(log.dir().to_owned());
    }
    Ok(())
}

/// Cuts the offsets log at the first manifest that names a missing batch, and data logs at the first reserved batch that
/// no manifest names, until nothing changes.
fn cut_incomplete_sets(
    metadata: &Metadata,
    logs: &BTreeMap<PartitionId, Log>,
    tails: &BTreeMap<PartitionId, Vec<TailBatch>>,
    manifests: &[(Offset, Vec<ManifestEntry>)],
    below: &BTreeSet<(PartitionId, Offset)>,
    cuts: &mut BTreeMap<PartitionId, Offset>,
) {
    loop {
        let before = cuts.clone();
        let kept = |at: Offset, cuts: &BTreeMap<PartitionId, Offset>| {
            cuts.get(&OFFSETS_LOG).is_none_or(|end| at < *end)
        };
        for (at, entries) in manifests {
            if kept(*at, cuts) && !entries.iter().all(|entry| is_there(metadata, logs, tails, cuts, entry)) {
                cuts.insert(OFFSETS_LOG, *at);
            }
        }
        let kept_manifests = manifests.iter().filter(|(at, _)| kept(*at, cuts));
        let mut named: BTreeSet<(PartitionId, Offset)> = kept_manifests
            .flat_map(|(_, entries)| entries.iter().map(|entry| (entry.partition, entry.base)))
            .collect();
        named.extend(below);
        for (partition, tail) in tails {
            let end = cuts[partition];
            let orphan = tail
                .iter()
                .filter(|batch| batch.base < end)
                .find(|batch| batch.reserved && !named.contains(&(*partition, batch.base)));
            if let Some(orphan) = orphan {
                cuts.insert(*partition, orphan.base);
            }
        }
        if *cuts == before {
            return;
        }
    }
}

/// Whether the batch that a manifest names is there, and the very one. Below its log's mark it is, by the mark's meaning;
/// a topic that was deleted since has taken its batches with it.
fn is_there(
    metadata: &Metadata,
    logs: &BTreeMap<PartitionId, Log>,
    tails: &BTreeMap<PartitionId, Vec<TailBatch>>,
    cuts: &BTreeMap<PartitionId, Offset>,
    entry: &ManifestEntry,
) -> bool {
    let Some(log) = logs.get(&entry.partition) else {
        return metadata.is_deleted(&entry.partition.topic_id);
    };
    if entry.last < log.high_watermark() {
        return true;
    }
    let in_tail = tails.get(&entry.partition).is_some_and(|tail| {
        let found = tail.binary_search_by_key(&entry.base, |batch| batch.base).map(|at| tail[at]);
        found.is_ok_and(|batch| batch.last == entry.last && batch.crc == entry.crc)
    });
    in_tail && cuts.get(&entry.partition).is_some_and(|end| entry.last < *end)
}

fn manifest_of(bytes: &[u8]) -> Option<Vec<ManifestEntry>> {
    let (batch, _) = Batch::parse(bytes).ok()?;
    let records = batch.records(&Limits::default()).ok()?;
    let first = records.iter().next()?.ok()?;
    let manifest = first.headers.iter().find(|(name, _)| *name == MANIFEST_HEADER.as_bytes())?.1?;
    // A manifest that cannot be read names a batch that cannot be there: the set is cut.
    Some(commit_set::decode_manifest(manifest).unwrap_or_else(|_| vec![NOWHERE]))
}

/// An entry that no log has.
const NOWHERE: ManifestEntry = ManifestEntry {
    partition: PartitionId { topic_id: Uuid::ZERO, partition: -1 },
    base: Offset::ZERO,
    last: Offset::ZERO,
    crc: 0,
};

fn settle(
    log: &mut Log,
    end: Offset,
    recovered: &mut Recovered,
    unsynced: &mut Dirty,
) -> Result<(), OpenError> {
    if log.tail_bytes() > 0 {
        let settled = log.settle_tail_unsynced(end, unsynced)?;
        recovered.kept_bytes += settled.kept_bytes;
        recovered.cut_bytes += settled.cut_bytes;
    }
    Ok(())
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io { path, source }
}
