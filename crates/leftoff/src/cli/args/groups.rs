//! `leftoff groups …`

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use leftoff_wire::Offset;

use super::value::{TopicPartitions, event_count, group_name, offset, parsed, shift, value};
use crate::cli::time::{DURATION_FORMS, TIME_FORMS, Time, parse_duration};

/// What to do with groups.
#[derive(Clone, Debug, Subcommand)]
pub enum GroupsCommand {
    /// List the groups
    Ls,
    /// Show where groups stand: last handled, next, end, what is left
    Describe(DescribeArgs),
    /// Show the events around the place where a group stands
    Peek(PeekArgs),
    /// Show every move of a group: when, who, from, to, why
    History(HistoryArgs),
    /// Move a group; shows what would be repeated or skipped, and moves only with --execute
    Reset(ResetArgs),
    /// Pass the next event of one partition by, unhandled; only with --execute
    Skip(SkipArgs),
    /// Take back the last move of a group; only with --execute
    Undo(UndoArgs),
    /// Delete groups with their offsets
    Delete(DeleteArgs),
    /// Delete the offsets of a group for a topic
    DeleteOffsets(DeleteOffsetsArgs),
    /// Print the offsets of a group as lines TOPIC,PARTITION,NEXT for import, reset --from-file or Kafka's
    /// tools
    Export(ExportArgs),
    /// Set the offsets of a group from lines TOPIC,PARTITION,NEXT; only with --execute
    Import(ImportArgs),
}

/// `leftoff groups describe`
#[derive(Args, Clone, Debug)]
pub struct DescribeArgs {
    /// Which groups
    #[arg(required = true, value_name = "GROUP", value_parser = parsed(group_name))]
    pub groups: Vec<String>,
    /// Only this topic, as TOPIC or TOPIC:0,1; may be repeated
    #[arg(short, long = "topic", value_name = "TOPIC", value_parser = value::<TopicPartitions>())]
    pub topics: Vec<TopicPartitions>,
    /// Only partitions with something left to handle
    #[arg(long)]
    pub only_lag: bool,
}

/// `leftoff groups peek`
#[derive(Args, Clone, Debug)]
pub struct PeekArgs {
    /// Which group
    #[arg(value_parser = parsed(group_name))]
    pub group: String,
    /// Only this topic, as TOPIC or TOPIC:0,1; may be repeated
    #[arg(short, long = "topic", value_name = "TOPIC", value_parser = value::<TopicPartitions>())]
    pub topics: Vec<TopicPartitions>,
    /// So many events before the next one to handle
    #[arg(short = 'B', long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(..=1000))]
    pub before: u16,
    /// So many events from the next one to handle on
    #[arg(short = 'A', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(..=1000))]
    pub after: u16,
}

/// `leftoff groups skip`
#[derive(Args, Clone, Debug)]
pub struct SkipArgs {
    /// Which group
    #[arg(value_parser = parsed(group_name))]
    pub group: String,
    /// Which partition, as TOPIC:PARTITION, or TOPIC where it has only one
    #[arg(short, long = "topic", value_name = "TOPIC:PARTITION", value_parser = value::<TopicPartitions>())]
    pub topic: TopicPartitions,
    /// The event that is meant; refused if it is not the next one to handle
    #[arg(long, value_name = "OFFSET", value_parser = parsed(offset))]
    pub offset: Option<Offset>,
    /// Do it; without this the plan is printed and nothing moves
    #[arg(long)]
    pub execute: bool,
}

/// `leftoff groups history`
#[derive(Args, Clone, Debug)]
pub struct HistoryArgs {
    /// Which group
    #[arg(value_parser = parsed(group_name))]
    pub group: String,
    /// Only this topic, as TOPIC or TOPIC:0,1; may be repeated
    #[arg(short, long = "topic", value_name = "TOPIC", value_parser = value::<TopicPartitions>())]
    pub topics: Vec<TopicPartitions>,
    /// Only the last N moves
    #[arg(short = 'n', long, value_name = "N", value_parser = parsed(event_count))]
    pub last: Option<u64>,
}

/// `leftoff groups reset`
#[derive(Args, Clone, Debug)]
pub struct ResetArgs {
    /// Which group
    #[arg(value_parser = parsed(group_name))]
    pub group: String,
    /// Topic to move on, as TOPIC or TOPIC:0,1; may be repeated
    #[arg(short, long = "topic", value_name = "TOPIC", value_parser = value::<TopicPartitions>())]
    #[arg(required_unless_present_any = ["all_topics", "from_file"])]
    pub topics: Vec<TopicPartitions>,
    /// Move on every topic that the group has offsets for
    #[arg(long, conflicts_with = "topics")]
    pub all_topics: bool,
    #[command(flatten)]
    target: ResetTarget,
    /// Do it; without this the plan is printed and nothing moves
    #[arg(long)]
    pub execute: bool,
}

/// Where to: exactly one of these, under Kafka's names.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
struct ResetTarget {
    /// To the first event that is still there
    #[arg(long)]
    to_earliest: bool,
    /// Behind the last event
    #[arg(long)]
    to_latest: bool,
    /// To where it is now, which makes a missing or impossible offset explicit
    #[arg(long)]
    to_current: bool,
    /// To this offset, the next to read
    #[arg(long, value_name = "N", value_parser = parsed(offset))]
    to_offset: Option<Offset>,
    /// Forward by N offsets, or back by -N
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parsed(shift))]
    shift_by: Option<i64>,
    /// To the first event at or after a time (forms with --help)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = value::<Time>())]
    #[arg(long_help = format!("To the first event at or after a time: {TIME_FORMS}"))]
    to_datetime: Option<Time>,
    /// To the first event of the last D: 90s, 1h30m, 7d, PT1H30M
    #[arg(long, value_name = "DURATION", value_parser = parsed(parse_duration))]
    #[arg(long_help = format!("To the first event of the last so long: {DURATION_FORMS}"))]
    by_duration: Option<Duration>,
    /// To the offsets in a file of lines TOPIC,PARTITION,NEXT
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
    /// To where another group stands
    #[arg(long, value_name = "GROUP", value_parser = parsed(group_name))]
    to_group: Option<String>,
}

/// Where a reset leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResetTo {
    /// The log start offset.
    Earliest,
    /// The end.
    Latest,
    /// The committed offset as it is.
    Current,
    /// This next offset.
    Offset(Offset),
    /// The committed offset and so many more, or fewer.
    ShiftBy(i64),
    /// The first event at or after the time.
    Time(Time),
    /// What each line of a file says.
    File(PathBuf),
    /// The committed offsets of another group.
    Group(String),
}

impl ResetArgs {
    /// Where to. clap holds that exactly one of the flags is given.
    pub fn to(&self) -> ResetTo {
        let target = &self.target;
        let flags = [
            target.to_earliest.then_some(ResetTo::Earliest),
            target.to_latest.then_some(ResetTo::Latest),
            target.to_current.then_some(ResetTo::Current),
            target.to_offset.map(ResetTo::Offset),
            target.shift_by.map(ResetTo::ShiftBy),
            target.to_datetime.map(ResetTo::Time),
            target.by_duration.map(|length| ResetTo::Time(Time::Ago(length))),
            target.from_file.clone().map(ResetTo::File),
            target.to_group.clone().map(ResetTo::Group),
        ];
        flags.into_iter().flatten().next().expect("clap requires one of the group ResetTarget")
    }
}

/// `leftoff groups undo`
#[derive(Args, Clone, Debug)]
pub struct UndoArgs {
    /// Which group
    #[arg(value_parser = parsed(group_name))]
    pub group: String,
    /// Only on this topic, as TOPIC or TOPIC:0,1; may be repeated [default: all that the last move touched]
    #[arg(short, long = "topic", value_name = "TOPIC", value_parser = value::<TopicPartitions>())]
    pub topics: Vec<TopicPartitions>,
    /// Do it; without this the plan is printed and nothing moves
    #[arg(long)]
    pub execute: bool,
}

/// `leftoff groups delete`
#[derive(Args, Clone, Debug)]
pub struct DeleteArgs {
    /// Which groups
    #[arg(required = true, value_name = "GROUP", value_parser = parsed(group_name))]
    pub groups: Vec<String>,
    /// Do not ask; needed where stdin is no terminal
    #[arg(long)]
    pub noconfirm: bool,
}

/// `leftoff groups delete-offsets`
#[derive(Args, Clone, Debug)]
pub struct DeleteOffsetsArgs {
    /// Which group
    #[arg(value_parser = parsed(group_name))]
    pub group: String,
    /// Topic whose offsets go, as TOPIC or TOPIC:0,1; may be repeated
    #[arg(short, long = "topic", value_name = "TOPIC", required = true, value_parser = value::<TopicPartitions>())]
    pub topics: Vec<TopicPartitions>,
    /// Do not ask; needed where stdin is no terminal
    #[arg(long)]
    pub noconfirm: bool,
}

/// `leftoff groups export`
#[derive(Args, Clone, Debug)]
pub struct ExportArgs {
    /// Which group
    #[arg(value_parser = parsed(group_name))]
    pub group: String,
    /// Only this topic, as TOPIC or TOPIC:0,1; may be repeated
    #[arg(short, long = "topic", value_name = "TOPIC", value_parser = value::<TopicPartitions>())]
    pub topics: Vec<TopicPartitions>,
}

/// `leftoff groups import`
#[derive(Args, Clone, Debug)]
pub struct ImportArgs {
    /// Which group
    #[arg(value_parser = parsed(group_name))]
    pub group: String,
    /// File of lines TOPIC,PARTITION,NEXT, or - for stdin
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// Do it; without this the plan is printed and nothing moves
    #[arg(long)]
    pub execute: bool,
}
