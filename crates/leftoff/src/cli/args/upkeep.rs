//! `leftoff wait`, `check`, `doctor`, `backup` and `completion`

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use leftoff_audit::effects::IdTemplate;
use leftoff_wire::Offset;

use super::value::{TopicPartitions, group_name, offset, parsed, value};
use crate::cli::bad_value::BadValue;
use crate::cli::place::{PLACE_FORMS, Place};
use crate::cli::time::{TIME_FORMS, Time};

/// `leftoff wait`
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "exit codes: 0 the group is there, 1 it is not after --timeout, 130 interrupted, and those of \
    every verb (`leftoff --help`)"
)]
pub struct WaitArgs {
    /// Which group
    #[arg(short, long, value_name = "GROUP", value_parser = parsed(group_name))]
    pub group: String,
    /// Only this topic, as TOPIC or TOPIC:0,1; may be repeated [default: all that it has offsets for]
    #[arg(short, long = "topic", value_name = "TOPIC", value_parser = value::<TopicPartitions>())]
    pub topics: Vec<TopicPartitions>,
    /// Until what is handled: end (as it is now), an offset (handled up to, not including it), or a time
    /// (forms with --help)
    #[arg(long, value_name = "PLACE", default_value = "end", allow_hyphen_values = true)]
    #[arg(value_parser = value::<Until>())]
    #[arg(long_help = format!("Until what is handled: end (as it is now), an offset N (all before it), or all events \
        before a time: {TIME_FORMS}. A plain number is an offset; @ before a time is allowed, and needed for unix \
        times"))]
    pub until: Until,
}

/// What a wait waits for, in each partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The end as it is when the wait begins.
    End,
    /// The next offset to read is this one or later.
    Offset(Offset),
    /// Every event before the time is handled.
    Time(Time),
}

impl FromStr for Until {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Until, BadValue> {
        if matches!(text, "end" | "latest" | "newest") {
            return Ok(Until::End);
        }
        if let Some(time) = text.strip_prefix('@') {
            return time.parse().map(Until::Time);
        }
        if let Ok(number) = offset(text) {
            return Ok(Until::Offset(number));
        }
        text.parse().map(Until::Time).map_err(|_| {
            BadValue::new(
                text,
                "a place to wait for",
                "end, an offset, or a time",
                "end, 42 or 2026-01-31T09:30:00Z",
            )
        })
    }
}

/// `leftoff check`
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// Which group
    #[arg(short, long, value_name = "GROUP", value_parser = parsed(group_name))]
    pub group: String,
    /// Only this topic; may be repeated [default: all that it has offsets for]
    #[arg(short, long = "topic", value_name = "TOPIC", value_parser = value::<TopicPartitions>())]
    pub topics: Vec<TopicPartitions>,
    /// Where its effects are: file:PATH, sqlite:FILE, postgres://USER@HOST/DATABASE or topic:NAME; without it only the offsets are looked at
    #[arg(long, value_name = "PLACE", value_parser = value::<Place>())]
    #[arg(long_help = format!("Where its effects are: {PLACE_FORMS}. What `leftoff run` writes names the place of each event; \
        in any other file a line is the key of its event, or the value where there is no key. Without it only the \
        offsets are looked at"))]
    pub out: Option<Place>,
    /// What an event is called in --out and --expect: a field of its JSON value (id, properties.code), or a template of such
    /// ({shop}-{number})
    #[arg(long, requires = "out", value_name = "TEMPLATE", value_parser = parsed(id_template))]
    #[arg(
        long_help = "What an event is called in --out and --expect: a field of its JSON value (id, properties.code), or a \
        template of such ({shop}-{number}; {{ and }} are braces). A line there that is a JSON object is called by the same \
        fields, any other is the name itself. Without it an event is called by its key, or its value where it has no key. Not for \
        what `leftoff run` wrote: that names the place of each event"
    )]
    pub id: Option<IdTemplate>,
    /// A file of all events that there should be, a name a line: what is not in the log, or in it more often, fails the check
    #[arg(long, requires = "out", value_name = "FILE")]
    pub expect: Option<PathBuf>,
    /// Fail if events are left to handle, too
    #[arg(long)]
    pub drained: bool,
}

fn id_template(text: &str) -> Result<IdTemplate, BadValue> {
    IdTemplate::parse(text).map_err(|error| {
        let forms = format!("a field of JSON, or fields in braces: {error}");
        BadValue::new(text, "a template of ids", &forms, "id or {shop}-{number}")
    })
}

/// `leftoff doctor`
#[derive(Args, Clone, Debug)]
pub struct DoctorArgs {
    /// Set damaged bytes aside, in a folder beside the log, so that the rest can be served; nothing is
    /// deleted
    #[arg(long)]
    pub repair: bool,
}

/// `leftoff backup`
#[derive(Args, Clone, Debug)]
pub struct BackupArgs {
    /// Where to: a directory that does not exist or is empty
    #[arg(value_name = "DIR")]
    pub to: PathBuf,
}

/// `leftoff completion`
#[derive(Args, Clone, Debug)]
pub struct CompletionArgs {
    /// Which shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
