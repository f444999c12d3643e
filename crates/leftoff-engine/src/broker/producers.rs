//! Idempotent producers: ids that are given out once, and what each partition remembers of those who wrote to it.
//!
//! A partition's state is read from the log when the first idempotent batch comes for it: from where the snapshot
//! `producers.snapshot` ends to the end of the log. The snapshot is written anew whenever so much was appended since, so
//! that this is bounded; nothing depends on it. A directory in which no producer id was ever given out has none.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use leftoff_wire::primitives::{ReadError, Reader, Writer};
use leftoff_wire::{Offset, crc32c};

use crate::broker::directory::write_whole;
use crate::broker::producer_state::{PastBatch, Producer, ProducerState, REMEMBERED_BATCHES};
use crate::broker::{
    Answer, Broker, Change, METADATA_LOG, Metadata, OFFSETS_LOG, PartitionId, RESERVED_PRODUCER_ID, Refusal,
    Reply,
};
use crate::disk::{Disk, OpenHow};
use crate::log::LogError;
use crate::types::Timestamp;

/// The snapshot's file in the data directory.
pub const PRODUCERS_FILE: &str = "producers.snapshot";

const MAGIC: &[u8; 8] = b"LEFTOFFP";
const VERSION: u32 = 1;
/// Magic, version, checksum of what comes behind it.
const FILE_HEADER_BYTES: usize = 8 + 4 + 4;
/// A file that is larger is not read.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// Ids are taken from the metadata log in blocks of so many, as Kafka's controller gives them out: a start skips what is
/// left of one.
const BLOCK: i64 = 1_000;
/// Writing the snapshot must not cost more than what it saves.
const APPENDED_FOR_EACH_BYTE: u64 = 4;

/// What is known of producers.
#[derive(Debug, Default)]
pub(super) struct Producers {
    partitions: BTreeMap<PartitionId, Known>,
    next_id: i64,
    file_bytes: u64,
    /// Appended since the snapshot was written.
    pub appended_bytes: u64,
}

#[derive(Debug, Default)]
struct Known {
    /// Up to where `state` speaks; `None`: for nothing yet.
    at: Option<Offset>,
    state: ProducerState,
    /// `state` speaks for the whole log.
    is_loaded: bool,
}

impl Producers {
    /// What the snapshot has. Whatever is wrong with it, the logs are read instead.
    pub fn open(disk: &Arc<dyn Disk>, metadata: &Metadata) -> Producers {
        let mut producers = Producers { next_id: metadata.producer_ids(), ..Producers::default() };
        if metadata.producer_ids() > 0
            && let Some((partitions, file_bytes)) = load(disk)
        {
            (producers.partitions, producers.file_bytes) = (partitions, file_bytes);
        }
        producers
    }

    /// Forgets who was silent for too long.
    pub fn expire(&mut self, now: Timestamp, after_ms: i64) {
        for known in self.partitions.values_mut() {
            known.state.expire(now, after_ms);
        }
    }
}

impl Broker {
    /// A producer id that nobody was given before; its epoch is 0.
    ///
    /// As Kafka 4 does without a transactional id, also for a producer that has one already: two that ask with the same id
    /// and epoch must not get the same answer.
    pub(super) fn init_producer_id(&mut self, now: Timestamp) -> Result<Answer, Refusal> {
        if self.producers.next_id >= self.state.metadata.producer_ids() {
            self.reserve_producer_ids(now)?;
        }
        let producer_id = self.producers.next_id;
        self.producers.next_id += 1;
        // The block's record may still be on its way to the disk.
        Ok(Answer::Reports(Reply::ProducerId(producer_id)))
    }

    /// What a partition remembers, read from its log if it was not yet.
    pub(super) fn producers_of(
        &mut self,
        now: Timestamp,
        partition: &PartitionId,
    ) -> Result<&mut ProducerState, Refusal> {
        if self.state.metadata.producer_ids() == 0 {
            // Somebody brings an id from elsewhere: from here on there are idempotent producers.
            self.reserve_producer_ids(now)?;
        }
        Ok(self.load_producers(now, partition)?)
    }

    fn load_producers(
        &mut self,
        now: Timestamp,
        partition: &PartitionId,
    ) -> Result<&mut ProducerState, LogError> {
        let log = self.state.logs.get(partition).expect("callers look the log up first");
        let known = self.producers.partitions.entry(*partition).or_default();
        if !known.is_loaded {
            // A snapshot that speaks of more than there is belongs to another state of this directory.
            let from = known.at.filter(|at| *at <= log.high_watermark());
            if from.is_none() {
                known.state = ProducerState::default();
            }
            // Nothing above the high watermark is of an idempotent producer: it would have been loaded for that.
            let from = from.map_or(log.log_start(), |at| at.max(log.log_start()));
            let state = &mut known.state;
            log.headers_from(from, &mut |header| state.observe(header, now))?;
            known.is_loaded = true;
        }
        Ok(&mut known.state)
    }

    /// Takes a block of ids. Before the first one a snapshot says that no log has anything of an idempotent producer.
    fn reserve_producer_ids(&mut self, now: Timestamp) -> Result<(), LogError> {
        let next = self.state.metadata.producer_ids();
        if next == 0 {
            let is_data = |(partition, _): &(&PartitionId, _)| is_data(partition);
            for (partition, log) in self.state.logs.iter().filter(is_data) {
                let at = Some(log.high_watermark());
                let known = Known { at, state: ProducerState::default(), is_loaded: true };
                self.producers.partitions.insert(*partition, known);
            }
            self.write_producers()?;
        }
        let end = next + BLOCK;
        assert!(end < RESERVED_PRODUCER_ID, "a billion blocks a second would take a century");
        self.record(now, &[Change::ProducerIds(end)])?;
        self.producers.next_id = next;
        Ok(())
    }

    /// Writes the snapshot if so much was appended since. Rare enough that it is done inline.
    pub(super) fn renew_producers(&mut self, now: Timestamp, every_bytes: u64) -> Result<(), LogError> {
        let worth_it = every_bytes.max(APPENDED_FOR_EACH_BYTE * self.producers.file_bytes);
        if self.state.metadata.producer_ids() == 0 || self.producers.appended_bytes < worth_it {
            return Ok(());
        }
        let logs = &self.state.logs;
        self.producers.partitions.retain(|partition, _| logs.contains_key(partition));
        let partitions: Vec<PartitionId> =
            self.state.logs.keys().filter(|partition| is_data(partition)).copied().collect();
        for partition in partitions {
            self.load_producers(now, &partition)?;
        }
        self.write_producers()
    }

    /// Everything below the high watermarks. A full disk does without.
    fn write_producers(&mut self) -> Result<(), LogError> {
        let mut body = Vec::new();
        let mut out = Writer::new(&mut body);
        out.u32(u32::try_from(self.producers.partitions.len()).expect("partitions are counted in 31 bits"));
        for (partition, known) in &self.producers.partitions {
            let log = self.state.logs.get(partition).expect("those of deleted topics were dropped");
            write_partition(&mut out, partition, log.high_watermark(), &known.state);
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_be_bytes());
        bytes.extend(crc32c(&body).to_be_bytes());
        bytes.extend(body);
        let path = Path::new(PRODUCERS_FILE);
        match write_whole(&self.disk, path, &bytes) {
            Ok(()) => self.producers.file_bytes = bytes.len() as u64,
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {}
            // Its sync may be what failed, and that is final.
            Err(source) => return Err(LogError::Sync { path: path.to_owned(), source }),
        }
        self.producers.appended_bytes = 0;
        Ok(())
    }
}

fn is_data(partition: &PartitionId) -> bool {
    *partition != METADATA_LOG && *partition != OFFSETS_LOG
}

/// What is above `at` is left out, and read from the log again: `ProducerState::forget_from` says how.
fn write_partition(out: &mut Writer, partition: &PartitionId, at: Offset, state: &ProducerState) {
    out.uuid(&partition.topic_id);
    out.i32(partition.partition);
    out.i64(at.get());
    let mut synced = state.clone();
    synced.forget_from(at);
    out.u32(u32::try_from(synced.producers().len()).expect("there is a limit on producers"));
    for (producer_id, producer) in synced.producers() {
        out.i64(producer_id);
        out.i16(producer.epoch);
        out.i32(producer.next_sequence);
        out.i64(producer.seen.as_ms());
        out.u8(u8::try_from(producer.batches.len()).expect("five at most"));
        for batch in &producer.batches {
            out.i32(batch.first_sequence);
            out.i32(batch.last_sequence);
            out.i64(batch.base.get());
            out.i64(batch.last.get());
            out.i64(batch.append_time_ms);
        }
    }
}

fn load(disk: &Arc<dyn Disk>) -> Option<(BTreeMap<PartitionId, Known>, u64)> {
    let path = Path::new(PRODUCERS_FILE);
    let len_bytes = disk.metadata(path).ok()??.len_bytes;
    if len_bytes > MAX_FILE_BYTES {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(len_bytes).ok()?];
    let got = disk.open(path, OpenHow::Read).ok()?.read_at(&mut bytes, 0).ok()?;
    bytes.truncate(got);
    let (header, body) = bytes.split_at_checked(FILE_HEADER_BYTES)?;
    let is_ours = &header[..8] == MAGIC && header[8..12] == VERSION.to_be_bytes();
    if !is_ours || header[12..16] != crc32c(body).to_be_bytes() {
        return None;
    }
    let mut input = Reader::new(body);
    let mut partitions = BTreeMap::new();
    for _ in 0..input.u32().ok()? {
        let (partition, known) = read_partition(&mut input).ok()??;
        partitions.insert(partition, known);
    }
    Some((partitions, bytes.len() as u64))
}

/// `Ok(None)` for a field that cannot be.
fn read_partition(input: &mut Reader<'_>) -> Result<Option<(PartitionId, Known)>, ReadError> {
    let partition = PartitionId { topic_id: input.uuid()?, partition: input.i32()? };
    let Some(at) = Offset::new(input.i64()?) else { return Ok(None) };
    let mut state = ProducerState::default();
    for _ in 0..input.u32()? {
        let producer_id = input.i64()?;
        let (epoch, next_sequence) = (input.i16()?, input.i32()?);
        let seen = Timestamp::from_ms(input.i64()?);
        let mut producer = Producer { epoch, next_sequence, seen, batches: [].into() };
        for _ in 0..usize::from(input.u8()?).min(REMEMBERED_BATCHES) {
            let (first_sequence, last_sequence) = (input.i32()?, input.i32()?);
            let (base, last) = (Offset::new(input.i64()?), Offset::new(input.i64()?));
            let (Some(base), Some(last)) = (base, last) else { return Ok(None) };
            let append_time_ms = input.i64()?;
            let batch = PastBatch { first_sequence, last_sequence, base, last, append_time_ms };
            producer.batches.push_back(batch);
        }
        state.insert(producer_id, producer);
    }
    Ok(Some((partition, Known { at: Some(at), state, is_loaded: false })))
}
