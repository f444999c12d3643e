//! A workload as a line of text.
//!
//! ```text
//! topic t 2 segment.bytes=300; append t/0 3 & append t/1 1,2; commit g t/0 +2; set g t/0 +1 -> out/0 2 out/1 1; kill
//! ```
//!
//! What stands behind a command says what is synced before the next one: `;` all of it, `|` one round, `&` nothing, so
//! that the next command meets a sync that is still under way. A command that begins with `!` must be refused, one that
//! begins with `?` may be.

use std::fmt;

use leftoff_engine::broker::BrokerConfig;

/// A workload.
#[derive(Debug, Clone)]
pub struct Script {
    /// As it was written.
    pub text: String,
    /// Settings of the broker: `config offsets.segment=400 offsets.retention=800`, as the first command.
    pub config: BrokerConfig,
    /// In order.
    pub steps: Vec<Step>,
}

/// A command, and what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub command: Command,
    /// Whether the broker takes it.
    pub verdict: Verdict,
    /// What is synced then.
    pub then: Then,
}

/// Whether a command is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It must be.
    Taken,
    /// `!` It must be refused.
    Refused,
    /// `?` Either.
    Either,
}

/// What is synced after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// `;` everything, until nothing is left to do.
    SyncAll,
    /// `|` the round that is under way, and no more.
    SyncOne,
    /// `&` nothing.
    Leave,
}

/// A partition by its topic's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The topic's name.
    pub topic: String,
    /// The partition's number.
    pub partition: i32,
}

/// Where to move an offset to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// `4`: to this offset.
    To(i64),
    /// `+2`: two further than now, at most to the end; nothing is done if that is no progress.
    Further(i64),
}

/// Data batches of a commit set: where, and how many records.
pub type Outputs = Vec<(Place, u32)>;

/// What can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `topic t 2 segment.bytes=300`
    Topic {
        /// Its name.
        name: String,
        /// How many partitions.
        partitions: i32,
        /// By Kafka's names.
        settings: Vec<(String, String)>,
    },
    /// `grow t 3`: more partitions
    Grow {
        /// Which topic.
        name: String,
        /// How many from now on.
        partitions: i32,
    },
    /// `delete-topic t`
    DeleteTopic(String),
    /// `append t/0 3`: a batch of three records; `append t/0 1,2 t/1 1`: two batches and one, in one request
    Append(Vec<(Place, Vec<u32>)>),
    /// `append-everywhere`: an event to each partition
    AppendEverywhere,
    /// `trim t/0 2`: delete below offset 2
    Trim {
        /// Where.
        at: Place,
        /// The new log start.
        before: Target,
    },
    /// `commit g t/0 2`: save an offset, without data
    Commit {
        /// Which group.
        group: String,
        /// Of which partition.
        at: Place,
        /// The next offset to read.
        next: Target,
    },
    /// `set g t/0 4 -> out/0 2 out/1 1`: save an offset together with records
    Set {
        /// Which group.
        group: String,
        /// Of which partition.
        at: Place,
        /// The next offset to read.
        next: Target,
        /// The records.
        outputs: Outputs,
    },
    /// `source f 120 -> t/0 2`: save how far a file was read together with records
    Source {
        /// Which source.
        name: String,
        /// How many bytes further it was read.
        bytes: u64,
        /// The records.
        outputs: Outputs,
    },
    /// `join g`: a member takes the group
    Join(String),
    /// `leave g`
    Leave(String),
    /// `delete-group g`
    DeleteGroup(String),
    /// `delete-offsets g t/0`
    DeleteOffsets {
        /// Which group.
        group: String,
        /// Of which partition.
        at: Place,
    },
    /// `ask`: topics and groups; the answer waits until it is true for good
    Ask,
    /// `rest`: a second passes, and what is due is done: marks are synced
    Rest,
    /// `retention`: five minutes pass, and what is due is done
    Retention,
    /// `later`: five minutes pass, and nothing is done yet
    Later,
    /// `due`: what is due is done
    Due,
    /// `restart`: a clean stop, and a start
    Restart,
    /// `kill`: SIGKILL, and a start. What was written and not synced is still in the page cache, and not on the disk
    Kill,
}

impl Script {
    /// Reads a script.
    ///
    /// # Panics
    /// If it cannot be understood: scripts are part of the tests.
    pub fn parse(text: &str) -> Script {
        let mut script = Script { text: text.to_owned(), config: BrokerConfig::default(), steps: Vec::new() };
        for part in text.split_inclusive([';', '&', '|']) {
            let (words, then) = match part.as_bytes().last() {
                Some(b'&') => (&part[..part.len() - 1], Then::Leave),
                Some(b'|') => (&part[..part.len() - 1], Then::SyncOne),
                Some(b';') => (&part[..part.len() - 1], Then::SyncAll),
                _ => (part, Then::SyncAll),
            };
            let mut words: Vec<&str> = words.split_whitespace().collect();
            let verdict = match words.first() {
                Some(&"!") => Verdict::Refused,
                Some(&"?") => Verdict::Either,
                _ => Verdict::Taken,
            };
            if verdict != Verdict::Taken {
                words.remove(0);
            }
            match words.as_slice() {
                [] => {}
                ["config", settings @ ..] => configure(&mut script.config, settings),
                words => {
                    let command = command(words).unwrap_or_else(|| panic!("cannot understand {part:?}"));
                    script.steps.push(Step { command, verdict, then });
                }
            }
        }
        script
    }
}

fn configure(config: &mut BrokerConfig, settings: &[&str]) {
    for setting in settings {
        match setting.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?))) {
            Some(("offsets.segment", bytes)) => config.offsets_segment_bytes = bytes,
            Some(("offsets.retention", bytes)) => config.offsets_retention_bytes = bytes,
            Some(("snapshot.every", records)) => config.snapshot_every_records = records,
            Some(("snapshot.at-stop", records)) => config.snapshot_at_stop_records = records,
            _ => panic!("cannot understand config {setting:?}"),
        }
    }
}

fn command(words: &[&str]) -> Option<Command> {
    let text = |word: &str| word.to_owned();
    Some(match words {
        ["topic", name, partitions, settings @ ..] => Command::Topic {
            name: text(name),
            partitions: partitions.parse().ok()?,
            settings: settings
                .iter()
                .map(|setting| setting.split_once('=').map(|(name, value)| (text(name), text(value))))
                .collect::<Option<_>>()?,
        },
        ["grow", name, partitions] => {
            Command::Grow { name: text(name), partitions: partitions.parse().ok()? }
        }
        ["delete-topic", name] => Command::DeleteTopic(text(name)),
        ["append", to @ ..] => Command::Append(pairs(to, |batches| {
            batches.split(',').map(|count| count.parse().ok()).collect()
        })?),
        ["append-everywhere"] => Command::AppendEverywhere,
        ["trim", at, before] => Command::Trim { at: place(at)?, before: target(before)? },
        ["commit", group, at, next] => {
            Command::Commit { group: text(group), at: place(at)?, next: target(next)? }
        }
        ["set", group, at, next, "->", to @ ..] => {
            Command::Set { group: text(group), at: place(at)?, next: target(next)?, outputs: outputs(to)? }
        }
        ["source", name, bytes, "->", to @ ..] => {
            Command::Source { name: text(name), bytes: bytes.parse().ok()?, outputs: outputs(to)? }
        }
        ["join", group] => Command::Join(text(group)),
        ["leave", group] => Command::Leave(text(group)),
        ["delete-group", group] => Command::DeleteGroup(text(group)),
        ["delete-offsets", group, at] => Command::DeleteOffsets { group: text(group), at: place(at)? },
        ["ask"] => Command::Ask,
        ["rest"] => Command::Rest,
        ["retention"] => Command::Retention,
        ["later"] => Command::Later,
        ["due"] => Command::Due,
        ["restart"] => Command::Restart,
        ["kill"] => Command::Kill,
        _ => return None,
    })
}

fn place(word: &str) -> Option<Place> {
    let (topic, partition) = word.split_once('/')?;
    Some(Place { topic: topic.to_owned(), partition: partition.parse().ok()? })
}

fn target(word: &str) -> Option<Target> {
    match word.strip_prefix('+') {
        Some(further) => further.parse().ok().map(Target::Further),
        None => word.parse().ok().map(Target::To),
    }
}

fn outputs(words: &[&str]) -> Option<Outputs> {
    pairs(words, |count| count.parse().ok())
}

fn pairs<T>(words: &[&str], second: impl Fn(&str) -> Option<T>) -> Option<Vec<(Place, T)>> {
    let pairs = words.chunks_exact(2);
    if words.is_empty() || !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| Some((place(pair[0])?, second(pair[1])?))).collect()
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.partition)
    }
}
