//! One broker a data directory: it assigns offsets, writes, and says what a sync must cover.
//!
//! A machine without threads, sockets, clock or randomness: [`Broker::handle`] takes an [`Input`] with the time,
//! [`Broker::poll_output`] gives what is to be done, [`Broker::next_deadline`] says when to come back. It never waits for
//! a sync of the write path: [`Output::Sync`] goes out, [`Input::Synced`] comes in, and meanwhile it takes inputs for the
//! next round. Nothing leaves it before the sync that covers it. (Making a topic, which is rare, syncs its folders inline.)

pub mod backup;
mod commit_set;
pub mod directory;
pub mod doctor;
mod group_requests;
mod groups;
mod incoming;
mod io;
mod kept_table;
mod marks;
mod members;
mod metadata;
mod produce;
mod producer_state;
mod producers;
mod reads;
mod recovery;
mod replay;
mod retention;
mod rounds;
mod setting_table;
mod settings;
mod snapshot;
mod state;
mod topics;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use leftoff_wire::record_batch::{BatchBuilder, Batches};
use leftoff_wire::{Offset, Uuid};

use crate::coordinator::classic::{Classic, GroupConfig};
use crate::disk::{Disk, OpenHow};
use crate::log::{LogError, Mark};
use crate::types::Timestamp;

pub use commit_set::{ManifestEntry, RESERVED_PRODUCER_ID};
pub use incoming::{Incoming, InvalidBatch, ProduceRules, RecordError};
pub use io::{
    Appended, CommitSet, Input, Output, Position, Produced, Refusal, Reply, Request, RequestId, Round,
    SyncJob,
};
pub use kept_table::{BROKER_SETTINGS, GROUP_SETTINGS, kept_settings};
pub use marks::{MARKS_FILE, MarksError};
pub use metadata::{Change, KeptFor, LogStartReason, Metadata, MetadataError, Topic};
pub use producer_state::{Judged, MAX_PRODUCERS, PastBatch, Producer, ProducerState, SequenceError};
pub use producers::PRODUCERS_FILE;
pub use reads::{FetchAnswer, FetchPartition, Listed, ReadRefusal, list_offsets};
pub use recovery::{OpenError, Recovered};
pub use retention::RetentionAhead;
pub use setting_table::{Effect, SettingInfo, SettingKind, TOPIC_SETTINGS, topic_setting};
pub use settings::{AlterSetting, SettingError, Settings};
pub use state::{State, View};

use marks::Marks;
use producers::Producers;
use rounds::{AfterSync, InFlight, Rounds};

/// A partition of one incarnation of a topic, by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partition's number.
    pub partition: i32,
}

impl std::fmt::Display for PartitionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.topic_id, self.partition)
    }
}

/// The metadata log.
pub const METADATA_LOG: PartitionId = PartitionId { topic_id: Uuid::METADATA, partition: 0 };
/// The offsets log.
pub const OFFSETS_LOG: PartitionId = PartitionId { topic_id: Uuid::OFFSETS, partition: 0 };
/// The offsets topic's name, Kafka's own.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// A start checks at most this much after a power cut: the marks are synced when so much was appended since they last were.
const UNCHECKED_LIMIT_BYTES: u64 = 64 * 1024 * 1024;
/// Marks that nobody has synced for so long, while nothing happens, are synced.
const REST_MS: i64 = 1_000;
/// Kafka's `log.retention.check.interval.ms`.
const RETENTION_CHECK_MS: i64 = 300_000;
/// Freed for the offsets log when the disk is full.
const RESERVE_FILE: &str = "reserve";
const RESERVE_BYTES: u64 = 1024 * 1024;

/// How a broker treats its internal logs; topics have settings of their own.
#[derive(Debug, Clone)]
pub struct BrokerConfig {
    /// Size at which a segment of the offsets log is closed.
    pub offsets_segment_bytes: u64,
    /// The offsets log drops segments that were closed so long ago; live values are carried forward first.
    pub offsets_retention_ms: i64,
    /// The offsets log drops its oldest segments beyond this size.
    pub offsets_retention_bytes: u64,
    /// A snapshot of the offsets log is written after so many records: a start replays at most about as many, or four for
    /// each key.
    pub snapshot_every_records: u64,
    /// The same at a clean stop.
    pub snapshot_at_stop_records: u64,
    /// What members of groups must keep to.
    pub groups: GroupConfig,
    /// A snapshot of what is known of idempotent producers is written after so many bytes were appended: the first batch of
    /// one after a start reads the headers of at most about as many.
    pub producers_every_bytes: u64,
    /// The same at a clean stop.
    pub producers_at_stop_bytes: u64,
    /// An idempotent producer that was silent for so long is forgotten: Kafka's `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i64,
}

impl Default for BrokerConfig {
    fn default() -> BrokerConfig {
        BrokerConfig {
            offsets_segment_bytes: 100 * 1024 * 1024,
            offsets_retention_ms: 30 * 24 * 3600 * 1000,
            offsets_retention_bytes: 1024 * 1024 * 1024,
            snapshot_every_records: 20_000,
            snapshot_at_stop_records: 5_000,
            groups: GroupConfig::default(),
            producers_every_bytes: UNCHECKED_LIMIT_BYTES,
            producers_at_stop_bytes: UNCHECKED_LIMIT_BYTES / 4,
            producer_id_expiration_ms: 24 * 3600 * 1000,
        }
    }
}

/// The one that writes a data directory.
#[derive(Debug)]
pub struct Broker {
    disk: Arc<dyn Disk>,
    config: BrokerConfig,
    state: State,
    marks: Marks,
    rounds: Rounds,
    /// Members of groups that come over the wire, as they live.
    classic: Classic,
    outputs: VecDeque<Output>,
    latched: Option<String>,
    /// Names of topics whose deletion is recorded and not yet on disk.
    deleting: BTreeSet<String>,
    /// Bytes appended since the marks file was last synced.
    unchecked_bytes: u64,
    last_append: Timestamp,
    next_retention: Timestamp,
    reserve_is_free: bool,
    /// Up to where the snapshot of the offsets log speaks.
    snapshot_next: Offset,
    producers: Producers,
    recovered: Recovered,
}

impl Broker {
    /// What can be read: topics, groups, logs below their high watermarks. State that is not on disk yet is in it, so
    /// what leaves the process goes through [`Request::Topics`] and its like, which wait.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What the start found and did.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Why nothing is acknowledged any more, if so.
    pub fn latched(&self) -> Option<&str> {
        self.latched.as_deref()
    }

    /// Whether a request was refused and its answer waits for a round: what it had written is cut, and off the disk with that.
    pub fn is_refused(&self, id: RequestId) -> bool {
        self.rounds.is_refused(id)
    }

    /// Whether a sync is under way, or wanted.
    pub fn is_syncing(&self) -> bool {
        self.rounds.in_flight.is_some()
    }

    /// Takes an input; what is to be done comes out of [`Broker::poll_output`].
    pub fn handle(&mut self, now: Timestamp, input: Input) {
        match input {
            Input::Request { id, request } => {
                let waits_for = self.rounds.open;
                match self.decide(now, id, request) {
                    Ok(Answer::WithRound(reply)) => self.rounds.park(self.rounds.open, id, reply),
                    Ok(Answer::WithRoundOf(round, reply)) => self.rounds.park(round, id, reply),
                    Ok(Answer::Now(reply)) => self.outputs.push_back(Output::Reply { id, reply }),
                    Ok(Answer::WithNextRound(reply)) => self.rounds.park(self.rounds.open.next(), id, reply),
                    Ok(Answer::Reports(reply)) => match self.rounds.unfinished_state() {
                        Some(round) => self.rounds.park(round, id, reply),
                        None => self.outputs.push_back(Output::Reply { id, reply }),
                    },
                    Ok(Answer::ByItself) => {}
                    Err(refusal) => self.refuse(id, refusal),
                }
                debug_assert_eq!(waits_for, self.rounds.open, "a request belongs to one round");
            }
            Input::Synced { round, result } => self.synced(now, round, result),
        }
        self.begin_round();
    }

    /// The next thing to be done.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`Broker::handle_deadline`], if nothing comes before.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        if self.latched.is_some() {
            return None;
        }
        let rest = self.marks.is_dirty().then_some(Timestamp::from_ms(self.last_append.as_ms() + REST_MS));
        [rest, self.classic.next_deadline(), Some(self.next_retention)].into_iter().flatten().min()
    }

    /// Does what is due by now. Everything that has arrived was handed over before: a member whose heartbeat lies in a queue is alive. A
    /// caller that cannot say so calls [`Broker::handle_deadline_heard`].
    pub fn handle_deadline(&mut self, now: Timestamp) {
        self.handle_deadline_heard(now, now);
    }

    /// Does what is due by now, but members of groups are given up only for a silence until `heard_until`: the moment until which everything
    /// that had arrived then was handed over, so the arrival of the oldest input that still waits, or `now` if none does.
    ///
    /// While inputs wait, [`Broker::next_deadline`] may lie in the past: hand them over first.
    pub fn handle_deadline_heard(&mut self, now: Timestamp, heard_until: Timestamp) {
        if self.latched.is_some() {
            return;
        }
        self.member_deadlines(now, heard_until);
        if self.marks.is_dirty() && now.as_ms() >= self.last_append.as_ms() + REST_MS {
            self.rounds.sync_marks = true;
        }
        if now >= self.next_retention {
            self.next_retention = Timestamp::from_ms(now.as_ms() + RETENTION_CHECK_MS);
            self.renew_reserve();
            self.producers.expire(now, self.config.producer_id_expiration_ms);
            match self.check_retention(now) {
                Err(refusal) if refusal.is_final() => self.storage_failed(refusal.to_string()),
                // The disk may be full, or a read may have failed: the next check tries again.
                Ok(()) | Err(_) => {}
            }
        }
        self.begin_round();
    }

    /// A clean stop: indexes and marks go to disk, so that the next start has nothing to check. Every round must have
    /// finished; what is still waiting for one is simply not acknowledged.
    ///
    /// # Errors
    /// When the disk fails; nothing acknowledged is at risk.
    pub fn close(mut self) -> Result<(), LogError> {
        if self.latched.is_some() || self.rounds.in_flight.is_some() {
            return Ok(());
        }
        for log in self.state.logs.values_mut() {
            log.close()?;
        }
        self.renew_snapshot(self.config.snapshot_at_stop_records)?;
        self.renew_producers(self.last_append, self.config.producers_at_stop_bytes)?;
        let path = Path::new(MARKS_FILE);
        self.marks.close().map_err(|source| LogError::Io { action: "sync", path: path.to_owned(), source })
    }

    fn decide(&mut self, now: Timestamp, id: RequestId, request: Request) -> Result<Answer, Refusal> {
        if let Some(reason) = &self.latched {
            return Err(Refusal::Latched(reason.clone()));
        }
        match request {
            Request::CreateTopic { name, topic_id, partitions, settings } => {
                self.create_topic(now, name, topic_id, partitions, settings)
            }
            Request::AlterTopic { name, settings, partitions } => {
                self.alter_topic(now, &name, settings, partitions)
            }
            Request::Keep { of, settings } => self.keep_settings(now, of, &settings),
            Request::DeleteTopic { name } => self.delete_topic(now, &name),
            Request::Trim { partition, before } => self.trim(now, partition, before),
            Request::Append { appends } => self.append(now, appends),
            Request::Produce { produces } => self.produce(now, produces),
            Request::InitProducerId => self.init_producer_id(now),
            Request::CommitSet(set) => self.commit_set(now, set),
            Request::Join { group, who } => self.join(now, &group, &who),
            Request::Leave { group, ownership } => self.leave(now, &group, &ownership),
            Request::Member(request) => Ok(self.member_request(now, id, request)),
            Request::Group(request) => self.group_request(now, request),
            Request::DeleteGroup { group, who, note } => {
                self.delete_group(now, &group, &who, note.as_deref())
            }
            Request::DeleteOffsets { group, partitions, who, note } => {
                self.delete_offsets(now, &group, &partitions, &who, note.as_deref())
            }
            Request::Topics => Ok(Answer::Reports(Reply::Topics(self.state.topics().cloned().collect()))),
            Request::Groups => {
                let groups = self.state.coordinator.groups();
                Ok(Answer::Reports(Reply::Groups(groups.cloned().collect())))
            }
            Request::Progress { source } => Ok(Answer::Reports(Reply::Progress(
                self.state.coordinator.source(&source).map(|source| source.progress),
            ))),
        }
    }

    /// Begins the sync of the open round if there is something to sync and none is under way.
    fn begin_round(&mut self) {
        if self.rounds.in_flight.is_some() || !self.rounds.has_work() || self.latched.is_some() {
            return;
        }
        let mut job = SyncJob { round: self.rounds.open, files: Vec::new(), dirs: Vec::new() };
        let mut ends = Vec::new();
        for partition in std::mem::take(&mut self.rounds.dirty) {
            // A log that was deleted in this round has nothing to make readable.
            let Some(log) = self.state.logs.get_mut(&partition) else { continue };
            let dirty = log.take_dirty();
            job.files.extend(dirty.files);
            job.dirs.extend(dirty.dirs);
            ends.push((partition, log.end_mark()));
        }
        let with_marks =
            std::mem::take(&mut self.rounds.sync_marks) || self.unchecked_bytes >= UNCHECKED_LIMIT_BYTES;
        if with_marks {
            self.unchecked_bytes = 0;
            job.files.push(self.marks.begin_sync());
        }
        let after = std::mem::take(&mut self.rounds.after);
        self.rounds.in_flight = Some(InFlight { round: job.round, ends, after, with_marks });
        self.rounds.open = job.round.next();
        self.outputs.push_back(Output::Sync(job));
    }

    fn synced(&mut self, now: Timestamp, round: Round, result: std::io::Result<()>) {
        let in_flight =
            self.rounds.in_flight.take().expect("a sync is reported once, for the round that was given out");
        assert_eq!(in_flight.round, round, "rounds finish in order");
        if self.latched.is_some() {
            // Another sync failed meanwhile, and this one may have covered bytes that it took for clean.
            return;
        }
        let done = result.and_then(|()| self.publish(now, in_flight));
        if let Err(error) = done {
            self.storage_failed(format!("the sync of round {} failed: {error}", round.0));
            return;
        }
        for (id, reply) in self.rounds.release(round) {
            self.send(now, id, reply);
        }
        let renewed = self.renew_snapshot(self.config.snapshot_every_records);
        let renewed = renewed.and_then(|()| self.renew_producers(now, self.config.producers_every_bytes));
        if let Err(error) = renewed {
            self.storage_failed(error.to_string());
        }
    }

    /// Writes a snapshot of the offsets log if so many records came since the last one, and all of them are on disk. Rare
    /// enough that it is done inline. A full disk does without.
    fn renew_snapshot(&mut self, every: u64) -> Result<(), LogError> {
        let log = self.state.offsets_log();
        let since = log.high_watermark().get() - self.snapshot_next.get();
        if since < i64::try_from(every).unwrap_or(i64::MAX) || log.end() != log.high_watermark() {
            return Ok(());
        }
        // Rewriting many keys for a few records would cost more than it saves.
        if since < 4 * self.state.coordinator.newest_records().len() as i64 {
            return Ok(());
        }
        match snapshot::write(&self.disk, log, &self.state.coordinator) {
            Ok(next) => self.snapshot_next = next,
            Err(error) if error.is_no_space() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes a finished round readable, in one step.
    fn publish(&mut self, now: Timestamp, round: InFlight) -> std::io::Result<()> {
        if round.with_marks {
            self.marks.synced();
        }
        // The marks first: what a reader of this process has seen, one of another process sees, too, whenever we are killed.
        self.marks.write_round(&round.ends)?;
        for (partition, mark) in &round.ends {
            if let Some(log) = self.state.logs.get_mut(partition) {
                log.publish(*mark);
            }
        }
        for step in round.after {
            self.after_sync(now, step)?;
        }
        Ok(())
    }

    fn after_sync(&mut self, now: Timestamp, step: AfterSync) -> std::io::Result<()> {
        match step {
            AfterSync::Carried(partition, offset, reason) => {
                self.rounds.sync_marks = true;
                self.rounds.after.push(AfterSync::MoveLogStart(partition, offset, reason));
            }
            // Deleted meanwhile, or trimmed further: a log start never falls.
            AfterSync::MoveLogStart(partition, offset, _)
                if !self.state.logs.contains_key(&partition)
                    || offset <= self.state.metadata.log_start(&partition) => {}
            AfterSync::MoveLogStart(partition, offset, reason) => {
                let change = Change::LogStart { partition, offset, reason };
                match self.record(now, &[change]) {
                    Ok(()) => self.rounds.after.push(AfterSync::AdvanceLogStart(partition, offset)),
                    Err(error) if error.is_final() => return Err(std::io::Error::other(error)),
                    // The next check carries again, and tries again.
                    Err(_) => {}
                }
            }
            AfterSync::AdvanceLogStart(partition, offset) => {
                if let Some(log) = self.state.logs.get_mut(&partition) {
                    log.advance_log_start(offset);
                    if partition == OFFSETS_LOG {
                        self.state.coordinator.trimmed(offset);
                    }
                    let removed = log.take_removable();
                    if !removed.is_empty() {
                        self.rounds.after.push(AfterSync::Unlink(removed));
                        self.rounds.sync_marks = true;
                    }
                }
            }
            AfterSync::Unlink(segments) => {
                for segment in segments {
                    segment.unlink(&self.disk).map_err(std::io::Error::other)?;
                }
            }
            AfterSync::TopicDeleted { name, topic_id, partitions } => {
                self.rounds.sync_marks = true;
                self.rounds.after.push(AfterSync::RemoveTopic { name, topic_id, partitions });
            }
            AfterSync::RemoveTopic { name, topic_id, partitions } => {
                topics::remove_folders(&self.disk, &name, topic_id, partitions)?;
                self.deleting.remove(&name);
            }
        }
        Ok(())
    }

    /// A sync that failed ends everything, whatever asked for it; what is refused otherwise has left nothing.
    fn refuse(&mut self, id: RequestId, refusal: Refusal) {
        let refusal = if refusal.is_final() && self.latched.is_none() {
            self.storage_failed(refusal.to_string());
            Refusal::Latched(refusal.to_string())
        } else {
            refusal
        };
        self.outputs.push_back(Output::Reply { id, reply: Reply::Refused(refusal) });
    }

    /// Nothing is acknowledged any more: what the disk holds is known again only after a recovery.
    fn storage_failed(&mut self, why: String) {
        for id in self.rounds.release_all() {
            let reply = Reply::Refused(Refusal::Latched(why.clone()));
            self.outputs.push_back(Output::Reply { id, reply });
        }
        self.release_members(&why);
        self.latched = Some(why);
    }

    /// Appends changes to the metadata log and applies them.
    fn record(&mut self, now: Timestamp, changes: &[Change]) -> Result<(), LogError> {
        let mut batch = BatchBuilder::default();
        for change in changes {
            let (key, value) = change.encode();
            batch.push(now.as_ms(), Some(&key), value.as_deref(), &[]);
        }
        let batches = built(&mut batch);
        // What makes room must not fail for want of room.
        let makes_room =
            |change: &Change| matches!(change, Change::LogStart { .. } | Change::TopicDeleted(_));
        match self.append_to(METADATA_LOG, batches.clone()) {
            Err(error) if error.is_no_space() && changes.iter().all(makes_room) && self.free_reserve() => {
                self.append_to(METADATA_LOG, batches)?
            }
            other => other?,
        };
        for change in changes {
            self.state.metadata.replay(change.clone());
        }
        self.rounds.state_round = Some(self.rounds.open);
        Ok(())
    }

    /// Appends to one log and marks it dirty. Returns where it went and the segment that was closed for it.
    fn append_to(
        &mut self,
        partition: PartitionId,
        batches: Batches,
    ) -> Result<crate::log::Appended, LogError> {
        let epoch = self.state.metadata.leader_epoch();
        let log = self.state.logs.get_mut(&partition).expect("callers look the log up first");
        // Should it fail: what was cut off again is synced with the round.
        self.rounds.dirty.insert(partition);
        let appended = log.append(batches, epoch)?;
        self.unchecked_bytes += appended.bytes;
        self.producers.appended_bytes += appended.bytes;
        Ok(appended)
    }

    /// Frees the reserve, so that offsets can still be saved on a full disk.
    fn free_reserve(&mut self) -> bool {
        if self.reserve_is_free {
            return false;
        }
        self.reserve_is_free = true;
        self.disk.remove_file(Path::new(RESERVE_FILE)).is_ok()
    }

    /// Makes the reserve again once there is room for it twice; until then no data is taken, so that producers cannot eat
    /// what was freed for offsets.
    fn renew_reserve(&mut self) {
        if !self.reserve_is_free {
            return;
        }
        let room = self.disk.free_bytes().ok().flatten().is_none_or(|free| free >= 2 * RESERVE_BYTES);
        if room && make_reserve(&self.disk).is_ok() {
            self.reserve_is_free = false;
        }
    }
}

/// A decided request: what to answer, and what the answer waits for.
#[derive(Debug)]
enum Answer {
    /// It has changed something, and waits for the open round.
    WithRound(Reply),
    /// It repeats what an earlier request changed, and waits for that one's round.
    WithRoundOf(Round, Reply),
    /// It says nothing that is not on disk.
    Now(Reply),
    /// It has changed something, and something is to be done once that is on disk: it waits for the round in which it is.
    WithNextRound(Reply),
    /// It reports state, and waits for the round in which that state last changed.
    Reports(Reply),
    /// It has gone its way already, or will.
    ByItself,
}

/// Writes the reserve file in full: a file with holes would reserve nothing.
fn make_reserve(disk: &Arc<dyn Disk>) -> std::io::Result<()> {
    let file = disk.open(Path::new(RESERVE_FILE), OpenHow::CreateOrTruncate)?;
    let zeros = vec![0u8; 64 * 1024];
    let mut position = 0;
    while position < RESERVE_BYTES {
        if let Err(error) = file.write_all_at(&zeros, position) {
            disk.remove_file(Path::new(RESERVE_FILE))?;
            return Err(error);
        }
        position += zeros.len() as u64;
    }
    Ok(())
}

/// A batch of ours, checked like any other.
fn built(batch: &mut BatchBuilder) -> Batches {
    let bytes = batch.build().expect("a batch of ours has records and fits");
    Batches::parse(bytes).expect("a batch that was just built is whole")
}

/// The end of an empty log.
const EMPTY: Mark = Mark::START;
