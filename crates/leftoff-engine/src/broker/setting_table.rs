//! Every topic setting that Apache Kafka 4.2 has, and two of our own, as tools show them: name, kind, default, what may be given, what it does.
//!
//! Kafka's names and defaults are those of its `TopicConfig` and `LogConfig`.

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// A whole number of 64 bits from `least` to `most`.
    Long {
        /// The least.
        least: i64,
        /// The most.
        most: i64,
    },
    /// The same of 32 bits.
    Int {
        /// The least.
        least: i64,
        /// The most.
        most: i64,
    },
    /// A number from 0 to 1.
    Share,
    /// `true` or `false`.
    Boolean,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// Some of these, separated by commas; with no words given: any.
    List(&'static [&'static str]),
}

/// Whether a setting changes anything here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It does what it says.
    Applies,
    /// It is taken, kept and shown, and changes nothing.
    Kept,
}

/// One topic setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingInfo {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: SettingKind,
    /// Its value where none is given.
    pub default: &'static str,
    /// Kafka's broker setting that gives the default there; empty if there is none.
    pub broker_name: &'static str,
    /// Whether it changes anything here.
    pub effect: Effect,
    /// What it is for, in a line.
    pub doc: &'static str,
    /// The unit of a number, as an error names it.
    pub(super) unit: &'static str,
}

impl SettingInfo {
    /// What may be given, in words.
    pub fn expected(&self) -> String {
        match self.kind {
            SettingKind::Long { least, most } | SettingKind::Int { least, most } => {
                format!("a whole number from {least} to {most} ({})", self.unit)
            }
            SettingKind::Share => "a number from 0 to 1".to_owned(),
            SettingKind::Boolean => "true or false".to_owned(),
            SettingKind::OneOf(words) => format!("one of {}", words.join(", ")),
            SettingKind::List([]) => "words separated by commas".to_owned(),
            SettingKind::List(words) => format!("some of {}, separated by commas", words.join(", ")),
        }
    }

    /// Whether it takes a value.
    pub fn takes(&self, value: &str) -> bool {
        match self.kind {
            SettingKind::Long { least, most } | SettingKind::Int { least, most } => {
                value.parse::<i64>().is_ok_and(|number| (least..=most).contains(&number))
            }
            SettingKind::Share => value.parse::<f64>().is_ok_and(|share| (0.0..=1.0).contains(&share)),
            SettingKind::Boolean => matches!(value, "true" | "false"),
            SettingKind::OneOf(words) => words.contains(&value),
            SettingKind::List([]) => true,
            SettingKind::List(words) => {
                !value.is_empty() && value.split(',').all(|word| words.contains(&word.trim()))
            }
        }
    }

    /// True if its value is a list, to which words can be appended.
    pub fn is_list(&self) -> bool {
        matches!(self.kind, SettingKind::List(_))
    }
}

pub(super) const fn long(least: i64) -> SettingKind {
    SettingKind::Long { least, most: i64::MAX }
}

pub(super) const fn int(least: i64) -> SettingKind {
    SettingKind::Int { least, most: i32::MAX as i64 }
}

const EVER: &str = "9223372036854775807";

macro_rules! settings {
    ($($name:literal $kind:expr, $default:expr, $effect:ident, $broker:literal, $unit:literal, $doc:literal;)*) => {
        &[$(SettingInfo {
            name: $name,
            kind: $kind,
            default: $default,
            broker_name: $broker,
            effect: Effect::$effect,
            doc: $doc,
            unit: $unit,
        }),*]
    };
}

pub(super) use settings;

/// All of them; those that a person changes come first.
pub const TOPIC_SETTINGS: &[SettingInfo] = settings! {
    "retention.ms" long(-1), "604800000", Applies, "log.retention.ms", "milliseconds, -1 for ever",
        "segments that were closed so long ago are deleted";
    "retention.bytes" long(-1), "-1", Applies, "log.retention.bytes", "bytes, -1 without limit",
        "the oldest segments of a partition that is larger are deleted";
    "segment.bytes" int(1), "1073741824", Applies, "log.segment.bytes", "bytes",
        "a segment that would grow beyond this is closed";
    "segment.ms" long(1), "604800000", Applies, "log.roll.ms", "milliseconds",
        "a segment older than this is closed at the next append";
    "max.message.bytes" SettingKind::Int { least: 61, most: i32::MAX as i64 - 1 }, "1048588", Applies, "message.max.bytes", "bytes",
        "the largest record batch that is taken";
    "cleanup.policy" SettingKind::List(&["compact", "delete"]), "delete", Applies, "log.cleanup.policy", "",
        "delete: by age and size; compact: records need keys, and nothing is deleted by age or size; nothing is compacted yet";
    "message.timestamp.type" SettingKind::OneOf(&["CreateTime", "LogAppendTime"]), "CreateTime", Applies, "log.message.timestamp.type", "",
        "whose clock the timestamps of what producers send are from: their own, or the broker's";
    "message.timestamp.before.max.ms" long(0), EVER, Applies, "log.message.timestamp.before.max.ms", "milliseconds",
        "records of producers with a timestamp so far in the past are refused";
    "message.timestamp.after.max.ms" long(0), "3600000", Applies, "log.message.timestamp.after.max.ms", "milliseconds",
        "records of producers with a timestamp so far in the future are refused";
    "leftoff.retention.unread" SettingKind::OneOf(&["delete", "keep"]), "delete", Applies, "", "",
        "keep: what a group with a committed offset there has yet to read is not deleted by age or size";
    "leftoff.retention.unread.bytes" long(-1), "-1", Applies, "", "bytes, -1 without limit",
        "a partition that is larger loses its oldest segments, read or not";
    "compression.type" SettingKind::OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]), "producer", Kept, "compression.type", "",
        "batches stay as their producers sent them";
    "compression.gzip.level" SettingKind::Int { least: -1, most: 9 }, "-1", Kept, "compression.gzip.level", "level, -1 for its own default",
        "batches stay as their producers sent them";
    "compression.lz4.level" SettingKind::Int { least: 1, most: 17 }, "9", Kept, "compression.lz4.level", "level",
        "batches stay as their producers sent them";
    "compression.zstd.level" SettingKind::Int { least: -131_072, most: 22 }, "3", Kept, "compression.zstd.level", "level",
        "batches stay as their producers sent them";
    "delete.retention.ms" long(0), "86400000", Kept, "log.cleaner.delete.retention.ms", "milliseconds",
        "how long compaction keeps a deletion; nothing is compacted yet";
    "min.compaction.lag.ms" long(0), "0", Kept, "log.cleaner.min.compaction.lag.ms", "milliseconds",
        "what is younger is not compacted; nothing is compacted yet";
    "max.compaction.lag.ms" long(1), EVER, Kept, "log.cleaner.max.compaction.lag.ms", "milliseconds",
        "what is older is compacted; nothing is compacted yet";
    "min.cleanable.dirty.ratio" SettingKind::Share, "0.5", Kept, "log.cleaner.min.cleanable.ratio", "",
        "when compaction begins; nothing is compacted yet";
    "file.delete.delay.ms" long(0), "60000", Kept, "log.segment.delete.delay.ms", "milliseconds",
        "files go as soon as nothing names them";
    "flush.messages" long(1), EVER, Kept, "log.flush.interval.messages", "records",
        "everything is on disk before it is acknowledged";
    "flush.ms" long(0), EVER, Kept, "log.flush.interval.ms", "milliseconds",
        "everything is on disk before it is acknowledged";
    "follower.replication.throttled.replicas" SettingKind::List(&[]), "", Kept, "", "",
        "there is one copy";
    "leader.replication.throttled.replicas" SettingKind::List(&[]), "", Kept, "", "",
        "there is one copy";
    "min.insync.replicas" int(1), "1", Kept, "min.insync.replicas", "copies",
        "there is one copy";
    "unclean.leader.election.enable" SettingKind::Boolean, "false", Kept, "unclean.leader.election.enable", "",
        "there is one copy";
    "index.interval.bytes" int(0), "4096", Kept, "log.index.interval.bytes", "bytes",
        "an index has an entry for each 4096 bytes";
    "segment.index.bytes" int(4), "10485760", Kept, "log.index.size.max.bytes", "bytes",
        "indexes grow with their segments";
    "segment.jitter.ms" long(0), "0", Kept, "log.roll.jitter.ms", "milliseconds",
        "segments are closed when they are due";
    "preallocate" SettingKind::Boolean, "false", Kept, "log.preallocate", "",
        "files are not preallocated";
    "remote.storage.enable" SettingKind::Boolean, "false", Kept, "", "",
        "there is no remote storage";
    "remote.log.copy.disable" SettingKind::Boolean, "false", Kept, "", "",
        "there is no remote storage";
    "remote.log.delete.on.disable" SettingKind::Boolean, "false", Kept, "", "",
        "there is no remote storage";
    "local.retention.bytes" long(-2), "-2", Kept, "log.local.retention.bytes", "bytes, -2 as retention.bytes",
        "there is no remote storage";
    "local.retention.ms" long(-2), "-2", Kept, "log.local.retention.ms", "milliseconds, -2 as retention.ms",
        "there is no remote storage";
};

/// A topic setting by its name.
pub fn topic_setting(name: &str) -> Option<&'static SettingInfo> {
    TOPIC_SETTINGS.iter().find(|known| known.name == name)
}
