//! Topics: made, changed, deleted, trimmed. The record in the metadata log is the commit point of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leftoff_wire::{Offset, Uuid};

use crate::broker::directory::ASIDE;
use crate::broker::rounds::AfterSync;
use crate::broker::{
    Answer, Broker, Change, EMPTY, KeptFor, LogStartReason, OFFSETS_TOPIC, PartitionId, Refusal, Reply,
    Settings, Topic,
};
use crate::disk::{Disk, OpenHow};
use crate::log::{Log, LogConfig, LogError};
use crate::types::Timestamp;

/// Kafka's limit (`Topic.MAX_NAME_LENGTH`).
const MAX_NAME_BYTES: usize = 249;
/// More partitions than this in one topic are refused: each is a folder with four files.
const MAX_PARTITIONS: i32 = 10_000;
/// Settings are kept for at most so many brokers and groups.
const MAX_KEPT: usize = 10_000;
/// So much of a topic's name stays in the name of a folder that is on its way out.
const LONGEST_DELETED_NAME: usize = 200;

impl Broker {
    /// Folders and first segments, synced; marks, synced; then the record.
    pub(super) fn create_topic(
        &mut self,
        now: Timestamp,
        name: String,
        topic_id: Uuid,
        partitions: i32,
        given: Vec<(String, String)>,
    ) -> Result<Answer, Refusal> {
        check_name(&name)?;
        if self.state.topic(&name).is_some() || self.deleting.contains(&name) {
            return Err(Refusal::TopicExists(name));
        }
        if !(1..=MAX_PARTITIONS).contains(&partitions) {
            let why = format!("a topic has 1 to {MAX_PARTITIONS} of them");
            return Err(Refusal::InvalidPartitions { asked: partitions, why });
        }
        let taken =
            self.state.metadata.by_id(&topic_id).is_some() || self.state.metadata.is_deleted(&topic_id);
        assert!(!taken, "a topic id is drawn once");
        let mut settings = Settings::default();
        for (setting, value) in &given {
            settings.set(setting, Some(value))?;
        }
        let topic = Topic { name, topic_id, partitions, created: now, settings };
        self.make_partitions(&topic, 0)?;
        self.record(now, &[Change::Topic(topic.clone())])?;
        Ok(Answer::WithRound(Reply::Topic(topic)))
    }

    pub(super) fn alter_topic(
        &mut self,
        now: Timestamp,
        name: &str,
        settings: Vec<(String, Option<String>)>,
        partitions: Option<i32>,
    ) -> Result<Answer, Refusal> {
        let mut topic = self.known_topic(name)?;
        for (setting, value) in &settings {
            topic.settings.set(setting, value.as_deref())?;
        }
        if let Some(asked) = partitions {
            let had = topic.partitions;
            if asked < had || asked > MAX_PARTITIONS {
                let why = format!("topic {name:?} has {had}; they can only grow, up to {MAX_PARTITIONS}");
                return Err(Refusal::InvalidPartitions { asked, why });
            }
            topic.partitions = asked;
            self.make_partitions(&topic, had)?;
        }
        self.record(now, &[Change::Topic(topic.clone())])?;
        let config = log_config(&topic.settings);
        for (_, log) in
            self.state.logs.iter_mut().filter(|(partition, _)| partition.topic_id == topic.topic_id)
        {
            log.set_config(config);
        }
        Ok(Answer::WithRound(Reply::Topic(topic)))
    }

    /// The record; when it is on disk, and so are the marks that cover it, the folders go.
    pub(super) fn delete_topic(&mut self, now: Timestamp, name: &str) -> Result<Answer, Refusal> {
        let topic = self.known_topic(name)?;
        self.record(now, &[Change::TopicDeleted(topic.topic_id)])?;
        for number in 0..topic.partitions {
            let partition = PartitionId { topic_id: topic.topic_id, partition: number };
            self.state.logs.remove(&partition);
            self.rounds.dirty.remove(&partition);
        }
        self.deleting.insert(topic.name.clone());
        self.rounds.after.push(AfterSync::TopicDeleted {
            name: topic.name,
            topic_id: topic.topic_id,
            partitions: topic.partitions,
        });
        Ok(Answer::WithNextRound(Reply::Done))
    }

    /// Deletes below an offset: the record first, the new start is seen when it is on disk.
    pub(super) fn trim(
        &mut self,
        now: Timestamp,
        partition: PartitionId,
        before: Offset,
    ) -> Result<Answer, Refusal> {
        let log = self.state.log(&partition).ok_or(Refusal::UnknownPartition(partition))?;
        let (log_start, high_watermark) = (log.log_start(), log.high_watermark());
        if before > high_watermark {
            return Err(Refusal::OutOfRange { asked: before, log_start, high_watermark });
        }
        // As Kafka's DeleteRecords: what is deleted already is no error.
        if before <= log_start {
            return Ok(Answer::Reports(Reply::Done));
        }
        self.record(now, &[Change::LogStart { partition, offset: before, reason: LogStartReason::Asked }])?;
        self.rounds.after.push(AfterSync::AdvanceLogStart(partition, before));
        Ok(Answer::WithRound(Reply::Done))
    }

    /// Settings of something that is no topic.
    pub(super) fn keep_settings(
        &mut self,
        now: Timestamp,
        of: KeptFor,
        changes: &[(String, Option<String>)],
    ) -> Result<Answer, Refusal> {
        let metadata = &self.state.metadata;
        let before = metadata.kept(&of);
        if before.is_empty() && metadata.keepers().len() >= MAX_KEPT {
            return Err(Refusal::TooManyKept { limit: MAX_KEPT });
        }
        let mut after: BTreeMap<String, String> = before.iter().cloned().collect();
        for (name, value) in changes {
            match value {
                Some(value) => after.insert(name.clone(), value.clone()),
                None => after.remove(name),
            };
        }
        let settings: Vec<_> = after.into_iter().collect();
        if settings == before {
            return Ok(Answer::Reports(Reply::Done));
        }
        self.record(now, &[Change::Kept { of, settings }])?;
        Ok(Answer::WithRound(Reply::Done))
    }

    pub(super) fn known_topic(&self, name: &str) -> Result<Topic, Refusal> {
        self.state.topic(name).cloned().ok_or_else(|| Refusal::UnknownTopic(name.to_owned()))
    }

    fn make_partitions(&mut self, topic: &Topic, from: i32) -> Result<(), Refusal> {
        let config = log_config(&topic.settings);
        let mut made = Vec::new();
        for number in from..topic.partitions {
            let partition = PartitionId { topic_id: topic.topic_id, partition: number };
            let dir = PathBuf::from(folder(&topic.name, number));
            // What an interrupted attempt left is taken out of the way, not written over.
            if self.disk.metadata(&dir).map_err(io(&dir))?.is_some() {
                rename_aside(&self.disk, &dir).map_err(io(&dir))?;
                sync_aside(&self.disk).map_err(not_synced(&dir))?;
            }
            made.push((partition, Log::create(&self.disk, &dir, topic.topic_id, config).map_err(refusal)?));
        }
        let root = Path::new("");
        self.disk.sync_dir(root).map_err(not_synced(root))?;
        let marks: Vec<_> = made.iter().map(|(partition, _)| (*partition, EMPTY)).collect();
        let path = Path::new(super::MARKS_FILE);
        self.marks.add(&marks).map_err(io(path))?;
        self.marks.sync_added().map_err(not_synced(path))?;
        self.state.logs.extend(made);
        Ok(())
    }
}

/// What a log needs to know of its topic's settings.
pub(super) fn log_config(settings: &Settings) -> LogConfig {
    LogConfig { segment_bytes: settings.segment_bytes(), ..LogConfig::default() }
}

/// The folder of a partition.
pub(super) fn folder(topic: &str, partition: i32) -> String {
    format!("{topic}-{partition}")
}

/// A full disk is told apart from a failing one: reading and saving offsets go on.
pub(super) fn refusal(error: LogError) -> Refusal {
    if error.is_no_space() { Refusal::DiskFull(error.to_string()) } else { Refusal::Log(error) }
}

/// Renames a deleted topic's folders and unlinks them. What is not there any more is done already.
pub(super) fn remove_folders(
    disk: &Arc<dyn Disk>,
    name: &str,
    topic_id: Uuid,
    partitions: i32,
) -> std::io::Result<()> {
    let mut deleted = Vec::new();
    for number in 0..partitions {
        let folder = PathBuf::from(folder(name, number));
        if disk.metadata(&folder)?.is_some() {
            deleted.push(Deleted::new(folder, topic_id));
        }
    }
    unlink_deleted(disk, &deleted)
}

/// A folder of a deleted topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deleted {
    folder: PathBuf,
    /// The name under which it is unlinked; perhaps it has that already.
    on_its_way_out: PathBuf,
}

impl Deleted {
    pub fn new(folder: PathBuf, topic_id: Uuid) -> Deleted {
        let name = folder.to_string_lossy().into_owned();
        let (topic, partition) = name.rsplit_once('-').unwrap_or((&name, "0"));
        // As in Kafka, a long name is cut, so that what is put behind it fits into a file name.
        let topic: String = topic.chars().take(LONGEST_DELETED_NAME).collect();
        let on_its_way_out = PathBuf::from(format!("{topic}-{partition}.{topic_id}-delete"));
        Deleted { folder, on_its_way_out }
    }

    /// The topic of a folder that was renamed to go, by its name.
    pub fn topic_of(folder: &str) -> Option<Uuid> {
        folder.strip_suffix("-delete")?.rsplit_once('.')?.1.parse().ok()
    }

    /// One that was renamed before a crash.
    pub fn renamed(folder: PathBuf) -> Deleted {
        Deleted { folder: folder.clone(), on_its_way_out: folder }
    }
}

/// Unlinks folders of deleted topics. The new names are on disk before anything in them goes: a folder of which a power
/// cut left only some files says by its name alone that it is to go.
pub(super) fn unlink_deleted(disk: &Arc<dyn Disk>, deleted: &[Deleted]) -> std::io::Result<()> {
    if deleted.is_empty() {
        return Ok(());
    }
    for Deleted { folder, on_its_way_out } in
        deleted.iter().filter(|deleted| deleted.folder != deleted.on_its_way_out)
    {
        disk.rename(folder, on_its_way_out)?;
    }
    disk.sync_dir(Path::new(""))?;
    deleted.iter().try_for_each(|deleted| unlink_folder(disk, &deleted.on_its_way_out))
}

/// Unlinks a folder of a partition, which has files and no folders in it.
pub(super) fn unlink_folder(disk: &Arc<dyn Disk>, dir: &Path) -> std::io::Result<()> {
    for entry in disk.list(dir)? {
        disk.remove_file(&dir.join(entry.name))?;
    }
    disk.remove_dir(dir)
}

/// The topic id that a partition's folder says it belongs to, if it can be read.
pub(super) fn folder_topic_id(disk: &Arc<dyn Disk>, dir: &Path) -> Option<Uuid> {
    const LIMIT_BYTES: usize = 1024;
    let file = disk.open(&dir.join("partition.metadata"), OpenHow::Read).ok()?;
    let mut bytes = [0u8; LIMIT_BYTES];
    let got = file.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(&bytes[..got]).ok()?;
    text.lines().find_map(|line| line.strip_prefix("topic_id:"))?.trim().parse().ok()
}

/// Moves something into `aside/` under a name that is free there.
pub(super) fn move_aside(disk: &Arc<dyn Disk>, path: &Path) -> std::io::Result<PathBuf> {
    let to = rename_aside(disk, path)?;
    sync_aside(disk)?;
    Ok(to)
}

fn rename_aside(disk: &Arc<dyn Disk>, path: &Path) -> std::io::Result<PathBuf> {
    let aside = Path::new(ASIDE);
    if disk.metadata(aside)?.is_none() {
        disk.create_dir(aside)?;
    }
    let name = path.to_string_lossy().replace('/', ".");
    let taken = |candidate: &Path| disk.metadata(candidate).map(|found| found.is_some());
    let mut to = aside.join(&name);
    let mut copy = 1;
    while taken(&to)? {
        to = aside.join(format!("{name}.{copy}"));
        copy += 1;
    }
    disk.rename(path, &to)?;
    Ok(to)
}

fn sync_aside(disk: &Arc<dyn Disk>) -> std::io::Result<()> {
    disk.sync_dir(Path::new(ASIDE))?;
    disk.sync_dir(Path::new(""))
}

/// Kafka's rules (`Topic.validate`), and no name of ours.
fn check_name(name: &str) -> Result<(), Refusal> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name == "." || name == ".." {
        "it may not be . or .."
    } else if name.len() > MAX_NAME_BYTES {
        "it has more than 249 characters"
    } else if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')) {
        "only letters, digits, '.', '_' and '-' are allowed"
    } else if name == OFFSETS_TOPIC || name.starts_with("__leftoff_") {
        "it is the name of an internal topic"
    } else {
        return Ok(());
    };
    Err(Refusal::InvalidTopic { name: name.to_owned(), why })
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> LogError {
    let path = path.to_owned();
    move |source| LogError::Io { action: "use", path, source }
}

fn not_synced(path: &Path) -> impl FnOnce(std::io::Error) -> LogError {
    let path = path.to_owned();
    move |source| LogError::Sync { path, source }
}
