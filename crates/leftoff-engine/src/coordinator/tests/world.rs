//! A coordinator, its log and some topics, moved by a small script language.

use std::collections::BTreeMap;

use leftoff_wire::{Committed, Offset, Uuid, consumer_offsets::SourceProgress};

use crate::coordinator::*;
use crate::types::{Timestamp, TopicPartition};

/// Runs a script of lines `command => answer` and compares the answers. After each line a fresh coordinator that is fed the log must equal
/// the live one.
#[track_caller]
pub fn check(script: &str) {
    let mut world = World::default();
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    let (mut actual, mut expected) = (String::new(), String::new());
    for line in lines {
        let (command, answer) = line.split_once("=>").unwrap_or((line, "ok"));
        let command = command.trim();
        let said = world.run(command);
        actual += &format!("{command} => {said}\n");
        expected += &format!("{command} => {}\n", answer.trim());
        assert_eq!(world.live, world.rebuilt(), "after {command}");
    }
    assert_eq!(actual, expected, "\nactual:\n{actual}");
}

#[derive(Default)]
pub struct World {
    pub live: Coordinator,
    /// The offsets log, from its start on.
    pub log: BTreeMap<Offset, (Timestamp, Record)>,
    next: i64,
    now: i64,
    topics: BTreeMap<String, (Uuid, i32, Bounds)>,
    holds: BTreeMap<(String, String), Ownership>,
}

pub fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

pub fn next(offset: i64) -> Committed {
    Committed::from_wire(offset).unwrap()
}

pub fn bounds(log_start: i64, end: i64) -> Bounds {
    Bounds { log_start: at(log_start), end: at(end) }
}

pub fn topic_id(n: u8) -> Uuid {
    Uuid::from_bytes([n; 16])
}

impl World {
    /// `topic NAME ID PARTITIONS START..END`, `drop NAME`, `join MEMBER GROUP`, `leave MEMBER GROUP`,
    /// `commit|strict|reset|undo|import MEMBER|- GROUP T/P=N[@ID]...`, `delete GROUP [T/P...]`, `progress SOURCE BYTES`, `carry BELOW`,
    /// `trim START`, `roll` (carries all and trims to there), `show GROUP`, `number GROUP T/P` (of the reset that the offset is), `history GROUP T/P`.
    pub fn run(&mut self, command: &str) -> String {
        self.now += 1000;
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["topic", name, id, partitions, range] => self.topic(name, id, partitions, range),
            ["drop", name] => {
                self.topics.remove(*name);
                "ok".to_owned()
            }
            ["join", member, group] => self.join(member, group),
            ["leave", member, group] => {
                let held = self.hold(member, group);
                let left = self.live.leave(Timestamp::from_ms(self.now), group, &held);
                self.apply(left, |()| "ok".to_owned())
            }
            [why @ ("commit" | "strict" | "reset" | "undo" | "import"), member, group, offsets @ ..] => {
                self.commit(why, member, group, offsets)
            }
            ["delete", group] => {
                let deleted = self.live.delete_group(group, &person(), None);
                self.apply(deleted, |was| format!("was {was:?}"))
            }
            ["delete", group, partitions @ ..] => {
                let partitions: Vec<TopicPartition> =
                    partitions.iter().map(|text| topic_partition(text)).collect();
                let deleted = self.live.delete_offsets(group, &partitions, &person(), Some("by hand"));
                self.apply(deleted, |was| format!("was {was:?}"))
            }
            ["progress", source, bytes] => {
                let progress = SourceProgress {
                    position_bytes: bytes.parse().unwrap(),
                    lines: 1,
                    fingerprint: 7,
                    topic_id: topic_id(1),
                };
                let saved = self.live.progress(source, &progress, &person());
                self.apply(saved, |()| "ok".to_owned())
            }
            ["carry", below] => {
                let records = self.live.carry(at(below.parse().unwrap()));
                let count = records.len();
                self.append(&records);
                format!("{count} carried")
            }
            ["trim", start] => {
                let start = at(start.parse().unwrap());
                self.log = self.log.split_off(&start);
                self.live.trimmed(start);
                "ok".to_owned()
            }
            ["roll"] => {
                let start = self.next;
                self.run(&format!("carry {start}"));
                self.run(&format!("trim {start}"))
            }
            ["number", group, partition] => {
                let entry = self.live.entry(group, &self.key(partition));
                entry.and_then(|entry| entry.reset).map_or("none".to_owned(), |number| number.to_string())
            }
            ["show", group] => self.show(group),
            ["history", group, partition] => self.history(group, partition),
            other => panic!("no such command: {other:?}"),
        }
    }

    /// A coordinator that was fed the log.
    pub fn rebuilt(&self) -> Coordinator {
        let mut fresh = Coordinator::default();
        for (at, (_, record)) in &self.log {
            fresh.replay_record(*at, record).unwrap();
        }
        fresh
    }

    /// The history of a key, newest first.
    pub fn moves(&self, group: &str, partition: &TopicPartition) -> Walked {
        let head = self
            .live
            .known_group(group)
            .and_then(|group| {
                group
                    .heads()
                    .find(|head| head.topic == partition.topic && head.partition == partition.partition)
            })
            .unwrap();
        walk(head.at, &mut |at| Ok::<_, ()>(self.read(at)), usize::MAX).unwrap()
    }

    pub fn read(&self, at: Offset) -> Option<RawRecord> {
        let (timestamp, record) = self.log.get(&at)?;
        Some(RawRecord {
            timestamp: *timestamp,
            key: record.key.clone(),
            value: record.value.clone(),
            headers: record
                .headers
                .iter()
                .map(|(name, value)| (name.as_bytes().to_vec(), Some(value.clone())))
                .collect(),
        })
    }

    pub fn key(&self, text: &str) -> PartitionKey {
        let (name, id) = text.split_once('@').map_or((text, None), |(name, id)| (name, Some(id)));
        let TopicPartition { topic, partition } = topic_partition(name);
        let topic_id = match id {
            Some(id) => topic_id(id.parse().unwrap()),
            None => self.topics.get(&topic).map_or(Uuid::ZERO, |(id, _, _)| *id),
        };
        PartitionKey { topic, topic_id, partition }
    }

    fn topic(&mut self, name: &str, id: &str, partitions: &str, range: &str) -> String {
        let (start, end) = range.split_once("..").unwrap();
        let bounds = bounds(start.parse().unwrap(), end.parse().unwrap());
        self.topics
            .insert(name.to_owned(), (topic_id(id.parse().unwrap()), partitions.parse().unwrap(), bounds));
        "ok".to_owned()
    }

    fn join(&mut self, member: &str, group: &str) -> String {
        let who = Who::new(member, "client", "host", "leftoff/0.1");
        let joined = self.live.join(Timestamp::from_ms(self.now), group, &who);
        if let Ok(outcome) = &joined {
            self.holds.insert((member.to_owned(), group.to_owned()), outcome.reply.clone());
        }
        self.apply(joined, |held| format!("generation {}", held.generation))
    }

    fn commit(&mut self, why: &str, member: &str, group: &str, offsets: &[&str]) -> String {
        let commit = Commit {
            group: group.to_owned(),
            fence: (member != "-").then(|| self.hold(member, group)),
            offsets: offsets.iter().map(|text| self.offset(text)).collect(),
            who: if member == "-" { person() } else { Who::new(member, "client", "host", "leftoff/0.1") },
            why: Why::parse(why).unwrap_or(Why::Commit),
            note: None,
            strict: why == "strict",
        };
        let topics = self.topics.clone();
        let bounds = |key: &PartitionKey| {
            let (id, partitions, bounds) = topics.get(&key.topic)?;
            (key.topic_id == *id && key.partition < *partitions).then_some(*bounds)
        };
        let committed = self.live.commit(Timestamp::from_ms(self.now), &commit, &bounds);
        self.apply(committed, |flags| {
            let words: Vec<String> = flags
                .iter()
                .map(|flags| if flags.is_empty() { "ok".into() } else { flags.to_string() })
                .collect();
            words.join(" ")
        })
    }

    /// `T/P=N` or `T/P@ID=N`; the metadata has as many bytes as `*LEN` at the end says.
    fn offset(&self, text: &str) -> OffsetToCommit {
        let (key, rest) = text.split_once('=').unwrap();
        let (number, metadata_bytes) = rest.split_once('*').unwrap_or((rest, "0"));
        OffsetToCommit {
            key: self.key(key),
            committed: next(number.parse().unwrap()),
            leader_epoch: Some(3),
            metadata: "m".repeat(metadata_bytes.parse().unwrap()),
        }
    }

    /// The hold that the member got when it joined last, or one that it never had.
    pub fn hold(&self, member: &str, group: &str) -> Ownership {
        let none = Ownership { member_id: member.to_owned(), generation: 0 };
        self.holds.get(&(member.to_owned(), group.to_owned())).cloned().unwrap_or(none)
    }

    fn apply<T, E: ToString>(
        &mut self,
        decided: Result<Outcome<T>, E>,
        show: impl Fn(T) -> String,
    ) -> String {
        match decided {
            Ok(outcome) => {
                self.append(&outcome.records);
                show(outcome.reply)
            }
            Err(error) => error.to_string(),
        }
    }

    fn append(&mut self, records: &[Record]) {
        for record in records {
            self.live.replay_record(at(self.next), record).unwrap();
            self.log.insert(at(self.next), (Timestamp::from_ms(self.now), record.clone()));
            self.next += 1;
        }
    }

    fn show(&self, name: &str) -> String {
        let Some(group) = self.live.group(name) else { return "no group".to_owned() };
        let mut text = format!("generation {}", group.generation());
        for member in group.members() {
            text += &format!(" ({member})");
        }
        for (topic, partition, entry) in group.offsets() {
            let last = entry.last_handled().map_or("-".to_owned(), |last| last.to_string());
            text += &format!(" {topic}/{partition}={} last {last} {}", entry.committed, entry.why);
        }
        text
    }

    fn history(&self, group: &str, partition: &str) -> String {
        let walked = self.moves(group, &topic_partition(partition));
        let number = |value: Option<Committed>| value.map_or("-".to_owned(), |value| value.to_string());
        let mut words: Vec<String> = walked
            .moves
            .iter()
            .map(|found| format!("{} {}>{}", found.why, number(found.old), number(found.new)))
            .collect();
        if walked.truncated {
            words.push("…".to_owned());
        }
        words.join(", ")
    }
}

pub fn topic_partition(text: &str) -> TopicPartition {
    let (topic, partition) = text.split_once('/').unwrap();
    TopicPartition { topic: topic.to_owned(), partition: partition.parse().unwrap() }
}

pub fn person() -> Who {
    Who::new("", "leftoff", "host", "leftoff/0.1")
}
