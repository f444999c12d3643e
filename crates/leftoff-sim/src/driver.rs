//! Runs a script over a broker, on one thread, with time as a counter: same script, same trace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use leftoff_engine::broker::{
    Broker, CommitSet, Input, Output, PartitionId, Position, RESERVED_PRODUCER_ID, Refusal, Reply, Request,
    RequestId, SyncJob, View,
};
use leftoff_engine::coordinator::{Commit, OffsetToCommit, Ownership, PartitionKey, Who, Why};
use leftoff_engine::disk::Disk;
use leftoff_engine::disk::mem::is_power_cut;
use leftoff_engine::types::{Timestamp, TopicPartition};
use leftoff_wire::consumer_offsets::SourceProgress;
use leftoff_wire::record_batch::{BatchBuilder, Batches};
use leftoff_wire::{Committed, Offset, Uuid};

use crate::history::{
    BatchFact, Fact, History, Key, OffsetsChange, TopicChange, Value, least, topics_of, values_of,
};
use crate::oracle::{self, Expect};
use crate::script::{Command, Outputs, Place, Script, Step, Target, Then, Verdict};

/// What the disk may do to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Nothing fails but the power. After each step everything is compared with what it should be.
    Watched,
    /// Nothing fails but the power.
    Sound,
    /// Calls fail: requests may be refused, and a sync may latch the directory.
    Failing,
    /// As [`Mood::Sound`], after calls had failed: folders of topics that were refused may lie about.
    AfterFaults,
}

/// Why a run ended before its script did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The power was cut.
    PowerCut,
    /// The broker does not take anything any more, and said so.
    Latched,
    /// A clean stop failed, and said so.
    NotClosed,
    /// The directory could not be opened, and said so.
    NotOpened,
    /// Something is not as it must be.
    Wrong(String),
}

/// A broker on its way through a script.
#[derive(Debug)]
pub struct Run {
    disk: Arc<dyn Disk>,
    /// What is known so far.
    pub history: History,
    /// Hears of each request that is acknowledged, before the next one is made.
    pub told: fn(RequestId),
    broker: Option<Broker>,
    script: Script,
    mood: Mood,
    now_ms: i64,
    next_request: u64,
    job: Option<SyncJob>,
    owners: BTreeMap<String, Ownership>,
    /// The verdict of the step under way, and the first request of it.
    verdict: (Verdict, RequestId),
    refused: bool,
    not_written: BTreeSet<RequestId>,
}

/// Time does not begin at 0, so that nothing that forgot to set it looks right.
const BEGIN_MS: i64 = 1_000_000;
const REST_MS: i64 = 1_000;
const RETENTION_CHECK_MS: i64 = 300_000;

impl Run {
    /// Opens a directory after a history (none, for a new one), and holds it to the oracle.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn open(
        disk: Arc<dyn Disk>,
        script: &Script,
        history: History,
        mood: Mood,
    ) -> Result<Run, (History, Stop)> {
        let owners = owners(&history);
        // Serial numbers are never used twice, so that what an earlier life wrote is never taken for a later life's.
        let next_request = 1 + history.last_request();
        let mut run = Run {
            disk,
            history,
            told: |_| (),
            broker: None,
            script: script.clone(),
            mood,
            now_ms: BEGIN_MS + next_request as i64,
            next_request,
            job: None,
            owners,
            verdict: (Verdict::Taken, RequestId(0)),
            refused: false,
            not_written: BTreeSet::new(),
        };
        match run.start() {
            Ok(()) => Ok(run),
            Err(stop) => Err((run.history, stop)),
        }
    }

    /// Goes through all of the script's steps.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn go(&mut self) -> Result<(), Stop> {
        for step in self.script.steps.clone() {
            self.step(&step).map_err(|stop| match stop {
                Stop::Wrong(what) => Stop::Wrong(format!("at {:?}: {what}", step.command)),
                other => other,
            })?;
        }
        self.sync_all()
    }

    /// A clean stop.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn close(&mut self) -> Result<(), Stop> {
        self.sync_all()?;
        let Some(broker) = self.broker.take() else { return Ok(()) };
        match broker.close() {
            Ok(()) => Ok(()),
            Err(_) if self.power_is_off() => Err(Stop::PowerCut),
            Err(_) if self.mood == Mood::Failing => Err(Stop::NotClosed),
            Err(error) => Err(Stop::Wrong(format!("close: {error}"))),
        }
    }

    /// The broker, while it is open.
    pub fn broker(&self) -> Option<&Broker> {
        self.broker.as_ref()
    }

    /// Goes on with another script.
    pub fn set_script(&mut self, script: Script) {
        self.script = script;
    }

    fn start(&mut self) -> Result<(), Stop> {
        let now = self.tick(0);
        let opened = Broker::open(self.disk.clone(), now, cluster_id(), self.script.config.clone());
        let broker = match opened {
            Ok(broker) => broker,
            Err(_) if self.power_is_off() => return Err(Stop::PowerCut),
            Err(_) if self.mood == Mood::Failing => return Err(Stop::NotOpened),
            Err(error) => return Err(Stop::Wrong(format!("the directory cannot be opened: {error}"))),
        };
        let found = oracle::check(&self.history, broker.state(), Expect::SETTLED);
        let found = self.unless_off(found)?;
        if matches!(self.mood, Mood::Watched | Mood::Sound) {
            oracle::check_recovered(&self.history, broker.recovered()).map_err(Stop::Wrong)?;
        }
        self.history.settle(broker.state(), found.topics, found.offsets);
        self.owners = owners(&self.history);
        self.broker = Some(broker);
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), Stop> {
        self.verdict = (step.verdict, RequestId(self.next_request));
        self.refused = false;
        self.command(&step.command)?;
        match step.then {
            Then::SyncAll => self.sync_all()?,
            Then::SyncOne => {
                self.sync_one()?;
            }
            Then::Leave => {}
        }
        if step.verdict == Verdict::Refused && !self.refused && self.mood != Mood::Failing {
            return Err(Stop::Wrong("this should have been refused".to_owned()));
        }
        Ok(())
    }

    fn command(&mut self, command: &Command) -> Result<(), Stop> {
        match command {
            Command::Topic { name, partitions, settings } => self.create_topic(name, *partitions, settings),
            Command::Grow { name, partitions } => self.grow(name, *partitions),
            Command::DeleteTopic(name) => self.delete_topic(name),
            Command::Append(appends) => self.append(appends),
            Command::AppendEverywhere => {
                for (topic, partitions) in self.history.topics_after(self.history.topics.len()).into_values()
                {
                    for partition in 0..partitions {
                        self.append(&[(Place { topic: topic.clone(), partition }, vec![1])])?;
                    }
                }
                Ok(())
            }
            Command::Trim { at, before } => self.trim(at, *before),
            Command::Commit { group, at, next } => self.commit(group, at, *next, &Vec::new()),
            Command::Set { group, at, next, outputs } => self.commit(group, at, *next, outputs),
            Command::Source { name, bytes, outputs } => self.source(name, *bytes, outputs),
            Command::Join(group) => self.join(group),
            Command::Leave(group) => self.leave(group),
            Command::DeleteGroup(group) => self.delete_group(group),
            Command::DeleteOffsets { group, at } => self.delete_offsets(group, at),
            Command::Ask => {
                self.submit(Request::Topics)?;
                self.submit(Request::Groups)
            }
            Command::Rest => self.pass(REST_MS),
            Command::Retention => self.pass(RETENTION_CHECK_MS),
            Command::Later => {
                self.tick(RETENTION_CHECK_MS);
                Ok(())
            }
            Command::Due => self.pass(0),
            Command::Restart => {
                self.close()?;
                self.reopen()
            }
            Command::Kill => {
                self.broker = None;
                self.job = None;
                self.reopen()
            }
        }
    }

    fn reopen(&mut self) -> Result<(), Stop> {
        self.job = None;
        self.start()
    }

    // Requests

    fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        settings: &[(String, String)],
    ) -> Result<(), Stop> {
        let topic_id = topic_id(self.next_request);
        if self.history.topic(name).is_none() {
            let what = TopicChange::Made { topic_id, name: name.to_owned(), partitions };
            self.topic_fact(what);
            self.partition_facts(topic_id, partitions);
        }
        let settings = settings.to_vec();
        self.submit(Request::CreateTopic { name: name.to_owned(), topic_id, partitions, settings })
    }

    fn grow(&mut self, name: &str, partitions: i32) -> Result<(), Stop> {
        if let Some((topic_id, _)) = self.history.topic(name) {
            let what = TopicChange::Made { topic_id, name: name.to_owned(), partitions };
            self.topic_fact(what);
            self.partition_facts(topic_id, partitions);
        }
        let (settings, partitions) = (Vec::new(), Some(partitions));
        self.submit(Request::AlterTopic { name: name.to_owned(), settings, partitions })
    }

    fn delete_topic(&mut self, name: &str) -> Result<(), Stop> {
        if let Some((topic_id, _)) = self.history.topic(name) {
            self.topic_fact(TopicChange::Deleted { topic_id });
        }
        self.submit(Request::DeleteTopic { name: name.to_owned() })
    }

    fn append(&mut self, appends: &[(Place, Vec<u32>)]) -> Result<(), Stop> {
        let mut given = Vec::new();
        for (at, batches) in appends {
            let partition = self.partition(at);
            let batches: Vec<Vec<u8>> = batches
                .iter()
                .zip(0..)
                .map(|(count, number)| self.batch(&format!("{at} batch {number}"), *count, -1))
                .collect();
            for batch in &batches {
                self.batch_fact(partition, batch);
            }
            given.push((partition, parsed(batches.concat())));
        }
        self.submit(Request::Append { appends: given })
    }

    fn trim(&mut self, at: &Place, before: Target) -> Result<(), Stop> {
        let partition = self.partition(at);
        let Some(log) = self.broker.as_ref().and_then(|broker| broker.state().log(&partition)) else {
            return self.submit(Request::Trim { partition, before: Offset::ZERO });
        };
        let (start, end) = (log.log_start().get(), log.high_watermark().get());
        let before = match before {
            Target::To(offset) => offset,
            Target::Further(by) => (start + by).min(end),
        };
        if before <= end
            && let Some(events) = self.history.partitions.get_mut(&partition)
        {
            events.possible_start = events.possible_start.max(before);
        }
        self.submit(Request::Trim { partition, before: offset(before) })
    }

    fn commit(&mut self, group: &str, at: &Place, next: Target, outputs: &Outputs) -> Result<(), Stop> {
        let partition = self.partition(at);
        let key = Key::Offset(group.to_owned(), at.topic.clone(), at.partition);
        let now = match self.history.values_after(self.history.offsets.len()).get(&key) {
            Some(Value::Next(topic_id, next)) if *topic_id == partition.topic_id => *next,
            _ => 0,
        };
        let log = self.broker.as_ref().and_then(|broker| broker.state().log(&partition));
        let end = log.map_or(0, |log| log.high_watermark().get());
        let next = match next {
            Target::To(next) => next,
            Target::Further(by) if now < end => (now + by).min(end),
            Target::Further(_) => return Ok(()),
        };
        let what = format!("set of {group} {at} {now}..{next}");
        let appends = self.outputs(&what, outputs);
        let outputs = appends.iter().map(|(partition, _)| *partition).collect();
        let value = Value::Next(partition.topic_id, next);
        self.offsets_fact(OffsetsChange { values: vec![(key, Some(value))], outputs });
        let commit = Commit {
            group: group.to_owned(),
            fence: self.owners.get(group).cloned(),
            offsets: vec![OffsetToCommit {
                key: PartitionKey {
                    topic: at.topic.clone(),
                    topic_id: partition.topic_id,
                    partition: at.partition,
                },
                committed: Committed::end_of_batch(offset(next)),
                leader_epoch: None,
                metadata: String::new(),
            }],
            who: who("-"),
            why: Why::Commit,
            note: None,
            strict: true,
        };
        self.submit(Request::CommitSet(CommitSet { appends, position: Position::Group(commit) }))
    }

    fn source(&mut self, name: &str, bytes: u64, outputs: &Outputs) -> Result<(), Stop> {
        let key = Key::Source(name.to_owned());
        let now = match self.history.values_after(self.history.offsets.len()).get(&key) {
            Some(Value::Bytes(bytes)) => *bytes,
            _ => 0,
        };
        let position_bytes = now + bytes;
        let appends = self.outputs(&format!("set of {name} {now}..{position_bytes}"), outputs);
        let outputs = appends.iter().map(|(partition, _)| *partition).collect();
        self.offsets_fact(OffsetsChange { values: vec![(key, Some(Value::Bytes(position_bytes)))], outputs });
        let topic_id = appends.first().map_or(Uuid::ZERO, |(partition, _)| partition.topic_id);
        let progress =
            SourceProgress { position_bytes, lines: position_bytes / 10, fingerprint: 7, topic_id };
        let position = Position::Source { name: name.to_owned(), progress, who: who("-") };
        self.submit(Request::CommitSet(CommitSet { appends, position }))
    }

    fn join(&mut self, group: &str) -> Result<(), Stop> {
        let member = format!("m{}", self.next_request);
        // The generation is the broker's to choose: the fact is completed by the reply, or by what is found later.
        let generation =
            self.broker.as_ref().and_then(|broker| broker.state().coordinator().known_group(group));
        let generation = generation.map_or(0, |group| group.generation()) + 1;
        let value = Value::Held(member.clone(), generation);
        self.offsets_fact(OffsetsChange {
            values: vec![(Key::Owner(group.to_owned()), Some(value))],
            outputs: Vec::new(),
        });
        self.owners.insert(group.to_owned(), Ownership { member_id: member.clone(), generation });
        self.submit(Request::Join { group: group.to_owned(), who: who(&member) })
    }

    fn leave(&mut self, group: &str) -> Result<(), Stop> {
        let Some(ownership) = self.owners.remove(group) else { return Ok(()) };
        self.offsets_fact(OffsetsChange {
            values: vec![(Key::Owner(group.to_owned()), None)],
            outputs: Vec::new(),
        });
        self.submit(Request::Leave { group: group.to_owned(), ownership })
    }

    fn delete_group(&mut self, group: &str) -> Result<(), Stop> {
        let values = self.history.values_after(self.history.offsets.len());
        let of_group = |key: &Key| match key {
            Key::Offset(of, ..) | Key::Owner(of) => of == group,
            Key::Source(_) => false,
        };
        let gone = values.into_keys().filter(of_group).map(|key| (key, None)).collect();
        self.offsets_fact(OffsetsChange { values: gone, outputs: Vec::new() });
        self.submit(Request::DeleteGroup { group: group.to_owned(), who: who("-"), note: None })
    }

    fn delete_offsets(&mut self, group: &str, at: &Place) -> Result<(), Stop> {
        let key = Key::Offset(group.to_owned(), at.topic.clone(), at.partition);
        self.offsets_fact(OffsetsChange { values: vec![(key, None)], outputs: Vec::new() });
        let partitions = vec![TopicPartition { topic: at.topic.clone(), partition: at.partition }];
        self.submit(Request::DeleteOffsets { group: group.to_owned(), partitions, who: who("-"), note: None })
    }

    // Facts

    fn topic_fact(&mut self, what: TopicChange) {
        self.history.topics.push(Fact { request: RequestId(self.next_request), is_known: false, what });
    }

    fn partition_facts(&mut self, topic_id: Uuid, partitions: i32) {
        for partition in 0..partitions {
            self.history.partitions.entry(PartitionId { topic_id, partition }).or_default();
        }
    }

    fn offsets_fact(&mut self, what: OffsetsChange) {
        self.history.offsets.push(Fact { request: RequestId(self.next_request), is_known: false, what });
    }

    fn batch_fact(&mut self, partition: PartitionId, bytes: &[u8]) {
        let request = RequestId(self.next_request);
        let Some(events) = self.history.partitions.get_mut(&partition) else { return };
        let base = events.end();
        let count: i64 =
            parsed(bytes.to_vec()).headers().map(|(_, header)| i64::from(header.last_offset_delta) + 1).sum();
        let what = BatchFact { base, next: base + count, bytes: bytes.into() };
        events.batches.push(Fact { request, is_known: false, what });
    }

    fn outputs(&mut self, what: &str, outputs: &Outputs) -> Vec<(PartitionId, Batches)> {
        let mut appends = Vec::new();
        for (number, (at, count)) in outputs.iter().enumerate() {
            let partition = self.partition(at);
            let text = format!("{what}, {number} of {}", outputs.len());
            let batch = self.batch(&text, *count, RESERVED_PRODUCER_ID);
            self.batch_fact(partition, &batch);
            appends.push((partition, parsed(batch)));
        }
        appends
    }

    fn batch(&self, text: &str, count: u32, producer_id: i64) -> Vec<u8> {
        let mut batch = BatchBuilder::default();
        if producer_id >= 0 {
            batch.producer(producer_id, 0, 0);
        }
        for number in 0..count {
            let value = format!("request {}, {text}, event {number} of {count}", self.next_request);
            batch.push(self.now_ms, None, Some(value.as_bytes()), &[]);
        }
        batch.build().expect("a few records fit")
    }

    /// An id that no partition has, if there is no such topic: the broker must refuse it.
    fn partition(&self, at: &Place) -> PartitionId {
        let topic_id = self.history.topic(&at.topic).map_or(topic_id(u64::MAX), |(topic_id, _)| topic_id);
        PartitionId { topic_id, partition: at.partition }
    }

    // The broker's side

    fn submit(&mut self, request: Request) -> Result<(), Stop> {
        let id = RequestId(self.next_request);
        self.next_request += 1;
        let now = self.tick(1);
        let Some(broker) = &mut self.broker else { return Ok(()) };
        let before = broker.state().offsets_log().end();
        broker.handle(now, Input::Request { id, request });
        self.forget_what_was_not_written(id, before);
        self.take_outputs()
    }

    /// A refusal may wait for a sync, and later requests do not: what was not appended now never will be.
    fn forget_what_was_not_written(&mut self, id: RequestId, offsets_end: Offset) {
        let Some(broker) = &self.broker else { return };
        if broker.latched().is_some() || self.power_is_off() {
            return;
        }
        let mut logs = self.history.partitions.iter().filter(|(_, events)| events.has(id));
        let is_there = logs.all(|(partition, events)| {
            broker.state().log(partition).is_some_and(|log| log.end().get() >= events.end())
        });
        let has_offsets = self.history.offsets.iter().any(|fact| fact.request == id);
        if !is_there || has_offsets && broker.state().offsets_log().end() == offsets_end {
            self.history.make_ghosts(id);
            self.not_written.insert(id);
        }
    }

    fn pass(&mut self, ms: i64) -> Result<(), Stop> {
        let now = self.tick(ms);
        let Some(broker) = &mut self.broker else { return Ok(()) };
        self.history.allow_retention(broker.state());
        if broker.next_deadline().is_some_and(|deadline| deadline <= now) {
            broker.handle_deadline(now);
        }
        self.take_outputs()
    }

    fn sync_all(&mut self) -> Result<(), Stop> {
        const MANY: u32 = 1_000;
        for _ in 0..MANY {
            if !self.sync_one()? {
                if self.mood == Mood::Watched {
                    self.compare_with_a_fresh_replay()?;
                }
                return Ok(());
            }
        }
        Err(Stop::Wrong("the broker wants one sync after the other, for ever".to_owned()))
    }

    fn sync_one(&mut self) -> Result<bool, Stop> {
        let Some(job) = self.job.take() else { return Ok(false) };
        let result = job.run(&*self.disk);
        let now = self.tick(1);
        let Some(broker) = &mut self.broker else { return Ok(false) };
        let failed = result.is_err();
        broker.handle(now, Input::Synced { round: job.round, result });
        let latched = broker.latched().is_some();
        self.take_outputs()?;
        if failed && !latched {
            return Err(Stop::Wrong("a sync failed and did not latch the directory".to_owned()));
        }
        Ok(true)
    }

    fn take_outputs(&mut self) -> Result<(), Stop> {
        while let Some(output) = self.broker.as_mut().and_then(Broker::poll_output) {
            match output {
                Output::Sync(job) => {
                    if self.job.replace(job).is_some() {
                        return Err(Stop::Wrong("two syncs at a time".to_owned()));
                    }
                }
                Output::Reply { id, reply } => self.replied(id, reply)?,
            }
        }
        let Some(broker) = &self.broker else { return Ok(()) };
        let latched = broker.latched().map(str::to_owned);
        self.history.see(broker.state());
        if self.power_is_off() {
            return Err(Stop::PowerCut);
        }
        match (latched, self.mood) {
            (Some(_), Mood::Failing) => return Err(self.finish_latched()),
            (Some(why), _) => return Err(Stop::Wrong(format!("latched, and nothing had failed: {why}"))),
            (None, _) => {}
        }
        if self.mood == Mood::Watched {
            self.compare_with_a_view()?;
        }
        Ok(())
    }

    /// A sync that was under way ends after another one failed: nothing may come of it.
    fn finish_latched(&mut self) -> Stop {
        let now = self.tick(1);
        let (Some(job), Some(broker)) = (self.job.take(), &mut self.broker) else { return Stop::Latched };
        let result = job.run(&*self.disk);
        broker.handle(now, Input::Synced { round: job.round, result });
        while let Some(output) = broker.poll_output() {
            match output {
                Output::Sync(_) | Output::Reply { reply: Reply::Refused(_), .. } => {}
                Output::Reply { id, reply } => {
                    return Stop::Wrong(format!("after storage failed, {id:?} was answered {reply:?}"));
                }
            }
        }
        Stop::Latched
    }

    fn replied(&mut self, id: RequestId, reply: Reply) -> Result<(), Stop> {
        match reply {
            Reply::Refused(refusal) => return self.refused(id, &refusal),
            Reply::Appended(appended) => self.check_places(id, &appended)?,
            Reply::Committed { appended, .. } => self.check_places(id, &appended)?,
            Reply::Joined(ownership) => self.check_generation(id, &ownership)?,
            Reply::Topics(topics) => {
                let (count, _) =
                    oracle::topics_prefix(&self.history, &topics_of(topics.iter()), Expect::SETTLED)
                        .map_err(Stop::Wrong)?;
                self.history.topics[..count].iter_mut().for_each(|fact| fact.is_known = true);
            }
            Reply::Groups(groups) => {
                let count =
                    oracle::groups_prefix(&self.history, &values_of(groups.iter())).map_err(Stop::Wrong)?;
                self.history.offsets[..count].iter_mut().for_each(|fact| fact.is_known = true);
            }
            Reply::Topic(_) | Reply::Done | Reply::Progress(_) | Reply::Member(_) | Reply::Group(_) => {}
            Reply::Produced(_) | Reply::ProducerId(_) => unreachable!("scripts have no idempotent producers"),
        }
        if self.not_written.contains(&id) {
            return Err(Stop::Wrong(format!("{id:?} was acknowledged and is in no log")));
        }
        self.history.acknowledge(id);
        (self.told)(id);
        Ok(())
    }

    fn refused(&mut self, id: RequestId, refusal: &Refusal) -> Result<(), Stop> {
        let (verdict, first) = self.verdict;
        let may_be = id >= first && verdict != Verdict::Taken;
        self.refused |= may_be;
        // Whatever a broker that failed had begun may be found later, or not.
        if matches!(refusal, Refusal::Latched(_)) || self.power_is_off() {
            return Ok(());
        }
        self.history.forget(id);
        self.owners = owners(&self.history);
        if may_be || self.mood == Mood::Failing {
            Ok(())
        } else {
            Err(Stop::Wrong(format!("refused: {refusal}")))
        }
    }

    fn check_places(&self, id: RequestId, appended: &[leftoff_engine::broker::Appended]) -> Result<(), Stop> {
        for went in appended {
            let Some(events) = self.history.partitions.get(&went.partition) else { continue };
            let mut ours = events.batches.iter().filter(|fact| fact.request == id).map(|fact| &fact.what);
            let fits = ours.clone().any(|batch| batch.base == went.base.get())
                && ours.any(|batch| batch.next == went.next.get());
            if !fits {
                return Err(Stop::Wrong(format!("{went:?} is not where the batches of {id:?} belong")));
            }
        }
        Ok(())
    }

    fn check_generation(&self, id: RequestId, ownership: &Ownership) -> Result<(), Stop> {
        let asked = self.history.offsets.iter().find(|fact| fact.request == id);
        let value = Value::Held(ownership.member_id.clone(), ownership.generation);
        match asked {
            Some(fact) if fact.what.values.iter().any(|(_, held)| held.as_ref() == Some(&value)) => Ok(()),
            other => Err(Stop::Wrong(format!("{ownership:?} does not answer {other:?}"))),
        }
    }

    /// What a reader in another process sees at this moment is what was published, no more and no less.
    fn compare_with_a_view(&self) -> Result<(), Stop> {
        let Some(broker) = &self.broker else { return Ok(()) };
        let view = View::open(&self.disk).map_err(|error| Stop::Wrong(format!("view: {error}")))?;
        oracle::check(&self.history, view.state(), Expect::READER)
            .map_err(|what| Stop::Wrong(format!("view: {what}")))?;
        if !view.is_of_one_moment() {
            return Err(Stop::Wrong("view: not of one moment".to_owned()));
        }
        for topic in view.state().topics() {
            for number in 0..topic.partitions {
                let partition = PartitionId { topic_id: topic.topic_id, partition: number };
                // A topic whose deletion is not published yet is gone for the writer.
                let (Some(log), Some(seen)) = (broker.state().log(&partition), view.state().log(&partition))
                else {
                    continue;
                };
                if log.high_watermark() != seen.high_watermark() || log.log_start() != seen.log_start() {
                    return Err(Stop::Wrong(format!(
                        "view: {partition} has {}..{}, the writer {}..{}",
                        seen.log_start(),
                        seen.high_watermark(),
                        log.log_start(),
                        log.high_watermark()
                    )));
                }
            }
        }
        Ok(())
    }

    /// With nothing under way, the state is what the logs add up to.
    fn compare_with_a_fresh_replay(&self) -> Result<(), Stop> {
        let Some(broker) = &self.broker else { return Ok(()) };
        let view = View::open(&self.disk).map_err(|error| Stop::Wrong(format!("view: {error}")))?;
        if broker.state().coordinator() != view.state().coordinator() {
            return Err(Stop::Wrong(format!(
                "the coordinator is not what its log adds up to:\n{:?}\n{:?}",
                broker.state().coordinator(),
                view.state().coordinator()
            )));
        }
        if broker.state().metadata() != view.state().metadata() {
            return Err(Stop::Wrong("the metadata are not what their log adds up to".to_owned()));
        }
        Ok(())
    }

    fn unless_off<T>(&self, result: Result<T, String>) -> Result<T, Stop> {
        match result {
            Ok(value) => Ok(value),
            Err(_) if self.power_is_off() => Err(Stop::PowerCut),
            Err(_) if self.mood == Mood::Failing => Err(Stop::NotOpened),
            Err(what) => Err(Stop::Wrong(what)),
        }
    }

    fn power_is_off(&self) -> bool {
        self.disk.metadata(Path::new("")).is_err_and(|error| is_power_cut(&error))
    }

    fn tick(&mut self, ms: i64) -> Timestamp {
        self.now_ms += ms;
        Timestamp::from_ms(self.now_ms)
    }
}

impl History {
    fn last_request(&self) -> u64 {
        let topics = self.topics.iter().map(|fact| fact.request.0);
        let offsets = self.offsets.iter().map(|fact| fact.request.0);
        let batches =
            self.partitions.values().flat_map(|events| events.batches.iter().map(|fact| fact.request.0));
        topics.chain(offsets).chain(batches).max().unwrap_or(0)
    }
}

/// Who holds which group, after all that is known for certain.
fn owners(history: &History) -> BTreeMap<String, Ownership> {
    let values = history.values_after(history.offsets.len().max(least(&history.offsets)));
    let held = values.into_iter().filter_map(|(key, value)| match (key, value) {
        (Key::Owner(group), Value::Held(member_id, generation)) => {
            Some((group, Ownership { member_id, generation }))
        }
        _ => None,
    });
    held.collect()
}

fn parsed(bytes: Vec<u8>) -> Batches {
    Batches::parse(bytes).expect("batches that were just built")
}

fn offset(number: i64) -> Offset {
    Offset::new(number).expect("scripts name no negative offsets")
}

fn who(member_id: &str) -> Who {
    Who::new(member_id, "sim", "localhost", "leftoff-sim")
}

fn cluster_id() -> Uuid {
    Uuid::from_bytes([0x11; 16])
}

/// A different one for each request, so that no id is used twice.
fn topic_id(request: u64) -> Uuid {
    let mut bytes = [0x40; 16];
    bytes[8..].copy_from_slice(&request.to_be_bytes());
    Uuid::from_bytes(bytes)
}
