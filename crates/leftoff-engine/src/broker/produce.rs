//! Appends and commit sets.

use leftoff_wire::Offset;
use leftoff_wire::record_batch::{BatchBuilder, BatchHeader, Batches, TimestampType};

use crate::broker::commit_set::{MANIFEST_HEADER, ManifestEntry, RESERVED_PRODUCER_ID, encode_manifest};
use crate::broker::topics::refusal;
use crate::broker::{
    Answer, Appended, Broker, Change, CommitSet, Incoming, Judged, METADATA_LOG, OFFSETS_LOG, PartitionId,
    PastBatch, Position, Produced, Refusal, Reply, Round, built,
};
use crate::coordinator::{Flags, Record};
use crate::log::LogError;
use crate::types::Timestamp;

impl Broker {
    pub(super) fn append(
        &mut self,
        now: Timestamp,
        appends: Vec<(PartitionId, Batches)>,
    ) -> Result<Answer, Refusal> {
        self.check_appends(&appends, |producer_id| producer_id < 0)?;
        let logs = appends.iter().map(|(partition, _)| *partition).collect();
        let appended = self.all_or_nothing(logs, |broker| {
            appends
                .into_iter()
                .map(|(partition, batches)| broker.append_data(now, partition, batches))
                .collect()
        });
        answer(appended.map(Reply::Appended))
    }

    /// Each partition by itself. What is new waits for the open round, what is refused because a write failed, too; what
    /// is there already waits for the round that puts it on disk, if that is not done.
    pub(super) fn produce(
        &mut self,
        now: Timestamp,
        produces: Vec<(PartitionId, Incoming)>,
    ) -> Result<Answer, Refusal> {
        let mut waits_for = None;
        let mut produced = Vec::with_capacity(produces.len());
        for (partition, incoming) in produces {
            let went = self.produce_one(now, partition, incoming);
            let waits = match &went {
                Err(refusal) if refusal.is_final() => return Err(went.expect_err("matched just now")),
                // What was written and cut again is off the disk when the round is.
                Err(_) => self.rounds.dirty.contains(&partition).then_some(self.rounds.open),
                Ok((_, round)) => *round,
            };
            waits_for = waits_for.max(waits);
            produced.push(went.map(|(produced, _)| produced));
        }
        let reply = Reply::Produced(produced);
        Ok(match waits_for {
            Some(round) => Answer::WithRoundOf(round, reply),
            None => Answer::Now(reply),
        })
    }

    /// Where the batches are, and the round that puts them on disk if they are not.
    fn produce_one(
        &mut self,
        now: Timestamp,
        partition: PartitionId,
        incoming: Incoming,
    ) -> Result<(Produced, Option<Round>), Refusal> {
        let Incoming { mut header, batches } = incoming;
        self.check_batches(&partition, &batches, |producer_id| producer_id < RESERVED_PRODUCER_ID)?;
        self.check_room()?;
        let is_idempotent = header.producer_id >= 0;
        if is_idempotent {
            let state = self.producers_of(now, &partition)?;
            if let Judged::Duplicate(past) = state.judge(&header)? {
                return Ok(self.duplicate(&partition, &past));
            }
        }
        let went = self.append_data(now, partition, batches)?;
        header.base_offset = went.base;
        if is_idempotent {
            self.producers_of(now, &partition)?.observe(&header, now);
        }
        let produced = Produced {
            base: went.base,
            append_time_ms: append_time_of(&header),
            log_start: self.state.logs[&partition].log_start(),
            is_duplicate: false,
        };
        Ok((produced, Some(self.rounds.open)))
    }

    fn duplicate(&self, partition: &PartitionId, past: &PastBatch) -> (Produced, Option<Round>) {
        let log = &self.state.logs[partition];
        let produced = Produced {
            base: past.base,
            append_time_ms: past.append_time_ms,
            log_start: log.log_start(),
            is_duplicate: true,
        };
        (produced, self.round_of(partition, past.last))
    }

    /// The round that puts the record at an offset on disk; `None` if it is there.
    fn round_of(&self, partition: &PartitionId, offset: Offset) -> Option<Round> {
        if offset < self.state.logs[partition].high_watermark() {
            return None;
        }
        let in_flight = self.rounds.in_flight.as_ref().filter(|round| {
            let end = round.ends.iter().find(|(of, _)| of == partition);
            end.is_some_and(|(_, end)| offset < end.end)
        });
        Some(in_flight.map_or(self.rounds.open, |round| round.round))
    }

    /// Data batches, then one batch of the offsets log that names them; if one write fails, none stays.
    pub(super) fn commit_set(&mut self, now: Timestamp, set: CommitSet) -> Result<Answer, Refusal> {
        let CommitSet { appends, position } = set;
        self.check_appends(&appends, |producer_id| producer_id >= RESERVED_PRODUCER_ID)?;
        let (flags, records) = self.decide_position(now, &position)?;
        let mut logs: Vec<PartitionId> = appends.iter().map(|(partition, _)| *partition).collect();
        logs.push(OFFSETS_LOG);
        let appended = self.all_or_nothing(logs, |broker| broker.write_set(now, appends, &records));
        answer(appended.map(|appended| Reply::Committed { appended, flags }))
    }

    /// Cuts what was written to these logs if not all of it could be.
    fn all_or_nothing<T>(
        &mut self,
        mut logs: Vec<PartitionId>,
        write: impl FnOnce(&mut Broker) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        logs.sort_unstable();
        logs.dedup();
        let savepoints: Vec<_> = logs.iter().map(|id| (*id, self.state.logs[id].savepoint())).collect();
        let refused = match write(self) {
            Ok(written) => return Ok(written),
            Err(refused) => refused,
        };
        for (id, savepoint) in savepoints {
            let log = self.state.logs.get_mut(&id).expect("it was there a moment ago");
            if let Err(error) = log.undo_to(savepoint) {
                self.storage_failed(error.to_string());
                return Err(Refusal::Latched(error.to_string()));
            }
            // The cut is synced with the round, and the refusal waits for it: no power cut brings back what was refused.
            self.rounds.dirty.insert(id);
        }
        Err(refused)
    }

    fn decide_position(
        &self,
        now: Timestamp,
        position: &Position,
    ) -> Result<(Vec<Flags>, Vec<Record>), Refusal> {
        match position {
            Position::Group(commit) => {
                let outcome = self.state.coordinator.commit(now, commit, &|key| self.state.bounds(key))?;
                Ok((outcome.reply, outcome.records))
            }
            Position::Source { name, progress, who } => {
                Ok((Vec::new(), self.state.coordinator.progress(name, progress, who)?.records))
            }
        }
    }

    fn write_set(
        &mut self,
        now: Timestamp,
        appends: Vec<(PartitionId, Batches)>,
        records: &[Record],
    ) -> Result<Vec<Appended>, Refusal> {
        let mut appended = Vec::with_capacity(appends.len());
        let mut manifest = Vec::with_capacity(appends.len());
        for (partition, batches) in appends {
            let headers: Vec<BatchHeader> = batches.headers().map(|(_, header)| header).collect();
            let went = self.append_data(now, partition, batches)?;
            manifest.extend(manifest_entries(&went, &headers));
            appended.push(went);
        }
        self.append_offsets(now, records, &manifest)?;
        Ok(appended)
    }

    /// Appends coordinator records as one batch and applies them: the only way in which group state changes.
    pub(super) fn append_offsets(
        &mut self,
        now: Timestamp,
        records: &[Record],
        manifest: &[ManifestEntry],
    ) -> Result<(), Refusal> {
        if records.is_empty() {
            return Ok(());
        }
        let manifest = (!manifest.is_empty()).then(|| encode_manifest(manifest));
        let batches = offsets_batch(now, records, manifest.as_deref());
        let went = match self.append_to(OFFSETS_LOG, batches) {
            Err(error) if error.is_no_space() && self.free_reserve() => {
                self.append_to(OFFSETS_LOG, offsets_batch(now, records, manifest.as_deref()))
            }
            other => other,
        }
        .map_err(refusal)?;
        let mut at = went.base;
        for record in records {
            let replayed = self.state.coordinator.replay_record(at, record);
            replayed.expect("a record that a handler made can be replayed");
            at = at.next();
        }
        self.rounds.state_round = Some(self.rounds.open);
        self.note_roll(now, OFFSETS_LOG, went.rolled)?;
        Ok(())
    }

    /// Appends data to a partition, closing its segment first if that is old enough.
    fn append_data(
        &mut self,
        now: Timestamp,
        partition: PartitionId,
        batches: Batches,
    ) -> Result<Appended, Refusal> {
        let segment_ms =
            self.state.metadata.by_id(&partition.topic_id).map(|topic| topic.settings.segment_ms());
        let since = self.state.metadata.active_since(&partition);
        if let (Some(segment_ms), Some(since)) = (segment_ms, since)
            && now.as_ms().saturating_sub(since.as_ms()) >= segment_ms
        {
            let log = self.state.logs.get_mut(&partition).expect("callers look the log up first");
            let rolled = log.roll().map_err(refusal)?;
            self.rounds.dirty.insert(partition);
            self.note_roll(now, partition, rolled)?;
        }
        let went = self.append_to(partition, batches).map_err(refusal)?;
        self.last_append = now;
        self.note_roll(now, partition, went.rolled)?;
        Ok(Appended { partition, base: went.base, next: went.next })
    }

    /// The age of a closed segment counts from here, by the broker's clock. If it cannot be written down, the segment is kept
    /// until bytes decide: what was appended stands.
    fn note_roll(
        &mut self,
        at: Timestamp,
        partition: PartitionId,
        rolled: Option<Offset>,
    ) -> Result<(), LogError> {
        let Some(segment_base) = rolled.filter(|_| partition != METADATA_LOG) else { return Ok(()) };
        match self.record(at, &[Change::Rolled { partition, segment_base, at }]) {
            Err(error) if !error.is_final() => Ok(()),
            other => other,
        }
    }

    fn check_appends(
        &mut self,
        appends: &[(PartitionId, Batches)],
        may_have: impl Fn(i64) -> bool,
    ) -> Result<(), Refusal> {
        for (partition, batches) in appends {
            self.check_batches(partition, batches, &may_have)?;
        }
        if appends.is_empty() { Ok(()) } else { self.check_room() }
    }

    fn check_batches(
        &self,
        partition: &PartitionId,
        batches: &Batches,
        may_have: impl Fn(i64) -> bool,
    ) -> Result<(), Refusal> {
        let topic = self.state.metadata.by_id(&partition.topic_id);
        let topic = topic.filter(|topic| (0..topic.partitions).contains(&partition.partition));
        let topic = topic.ok_or(Refusal::UnknownPartition(*partition))?;
        let limit = topic.settings.max_message_bytes();
        for (_, header) in batches.headers() {
            if header.size_bytes() as u64 > limit {
                let (topic, bytes) = (topic.name.clone(), header.size_bytes() as u64);
                return Err(Refusal::TooLarge { topic, bytes, limit });
            }
            if !may_have(header.producer_id) {
                return Err(Refusal::ProducerId { producer_id: header.producer_id });
            }
        }
        Ok(())
    }

    /// While the reserve is in use for offsets, no data is taken.
    fn check_room(&mut self) -> Result<(), Refusal> {
        self.renew_reserve();
        if self.reserve_is_free {
            return Err(Refusal::DiskFull("what is left is kept for saving offsets".to_owned()));
        }
        Ok(())
    }
}

/// As a produce reply tells it.
fn append_time_of(header: &BatchHeader) -> i64 {
    match header.attributes.timestamp_type() {
        TimestampType::LogAppendTime => header.max_timestamp,
        TimestampType::CreateTime => -1,
    }
}

/// Whoever is refused because a write failed hears of it when what was written is off the disk again.
fn answer(written: Result<Reply, Refusal>) -> Result<Answer, Refusal> {
    match written {
        Ok(reply) => Ok(Answer::WithRound(reply)),
        Err(refusal) if refusal.is_final() => Err(refusal),
        Err(refusal) => Ok(Answer::WithRound(Reply::Refused(refusal))),
    }
}

fn offsets_batch(now: Timestamp, records: &[Record], manifest: Option<&[u8]>) -> Batches {
    let mut batch = BatchBuilder::default();
    for (number, record) in records.iter().enumerate() {
        let mut headers: Vec<(&str, Option<&[u8]>)> =
            record.headers.iter().map(|(name, value)| (*name, Some(value.as_slice()))).collect();
        if number == 0
            && let Some(manifest) = manifest
        {
            headers.push((MANIFEST_HEADER, Some(manifest)));
        }
        batch.push(now.as_ms(), Some(&record.key), record.value.as_deref(), &headers);
    }
    built(&mut batch)
}

fn manifest_entries<'a>(
    went: &Appended,
    headers: &'a [BatchHeader],
) -> impl Iterator<Item = ManifestEntry> + 'a {
    let partition = went.partition;
    let mut base = went.base;
    headers.iter().map(move |header| {
        let last = base.plus(u64::from(header.last_offset_delta.unsigned_abs()));
        let entry = ManifestEntry { partition, base, last, crc: header.crc };
        base = last.next();
        entry
    })
}
