//! `leftoff produce` and `leftoff consume`

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::value::{event_count, group_name, parsed, partition, topic_name, value};
use crate::cli::event_format::{EventFormat, FORMAT_FORMS};
use crate::cli::event_line::{Header, INPUT_FORMS, InputForm, JsonPath};
use crate::cli::failure::Failure;
use crate::cli::offset_spec::{OFFSET_FORMS, OffsetSpec, Point};

/// `leftoff produce`
#[derive(Args, Clone, Debug)]
pub struct ProduceArgs {
    /// Which topic; it is created with one partition if there is none
    #[arg(value_parser = parsed(topic_name))]
    pub topic: String,
    /// Key of every event, as it stands
    #[arg(short, long, value_name = "KEY")]
    pub key: Option<String>,
    /// Take the key from the JSON on each line: id, a.b, a[0].c or a["odd.name"]. A string is taken without
    /// its quotes, numbers, true and false as written; null means no key; a line without the field is an
    /// error
    #[arg(long, value_name = "PATH", conflicts_with = "key", value_parser = value::<JsonPath>())]
    pub key_field: Option<JsonPath>,
    /// Header of every event, as NAME:VALUE; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME:VALUE", value_parser = value::<Header>())]
    pub headers: Vec<Header>,
    /// What a line is (forms with --help)
    #[arg(long, value_name = "FORM", value_enum, default_value_t = InputArg::Lines)]
    #[arg(long_help = INPUT_FORMS)]
    pub input: InputArg,
    /// Partition for every event [default: by the key, as Kafka does; without a key one
    /// partition for each batch of lines, and another for the next]
    #[arg(short, long, value_name = "P", value_parser = parsed(partition))]
    pub partition: Option<i32>,
    /// Read FILE, not stdin, and remember how far: run again after any stop, it goes on with the next line
    #[arg(long, value_name = "FILE")]
    pub source: Option<PathBuf>,
    /// Read FILE from its beginning again: it is another one than at the last run
    #[arg(long, requires = "source")]
    pub from_start: bool,
}

/// The names of [`InputForm`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InputArg {
    /// Each line is a value, whatever it holds
    Lines,
    /// Each line is one JSON object, which is the value
    JsonEachRow,
    /// Each line is one JSON object that holds key, value, headers, timestamp_ms and partition
    JsonEnvelope,
}

impl From<InputArg> for InputForm {
    fn from(arg: InputArg) -> InputForm {
        match arg {
            InputArg::Lines => InputForm::Lines,
            InputArg::JsonEachRow => InputForm::JsonEachRow,
            InputArg::JsonEnvelope => InputForm::JsonEnvelope,
        }
    }
}

/// `leftoff consume`
#[derive(Args, Clone, Debug)]
#[command(after_help = "partitions are printed one after the other, each in the order of its offsets; with \
    --follow, new events as they come")]
pub struct ConsumeArgs {
    /// Which topics
    #[arg(required = true, value_name = "TOPIC", value_parser = parsed(topic_name))]
    pub topics: Vec<String>,
    /// Where to start, or a range: start, end, stored, N, +N, -N, @TIME, A:B (more with --help) [default:
    /// start, or stored with -g]
    #[arg(short, long = "offset", value_name = "OFFSET", allow_hyphen_values = true)]
    #[arg(value_parser = value::<OffsetSpec>())]
    #[arg(long_help = format!("Where to start, or a range [default: start, or stored with -g]:\n{OFFSET_FORMS}"))]
    offsets: Vec<OffsetSpec>,
    /// Partitions, as 0 or 0,2 [default: all]
    #[arg(short, long, value_name = "P", value_delimiter = ',', value_parser = parsed(partition))]
    pub partitions: Vec<i32>,
    /// Go on where this group stands, and save its offset after printing
    #[arg(short, long, value_name = "GROUP", value_parser = parsed(group_name))]
    pub group: Option<String>,
    /// Save no offset
    #[arg(long, requires = "group")]
    pub no_commit: bool,
    /// Stop after N events
    #[arg(short = 'n', long, value_name = "N", value_parser = parsed(event_count))]
    pub count: Option<u64>,
    /// Stop at the end as it was at the start (the default; undoes --follow)
    #[arg(short, long, overrides_with = "follow")]
    pub exit: bool,
    /// Wait for more at the end, until interrupted
    #[arg(long, overrides_with = "exit")]
    pub follow: bool,
    /// Print each event like this: %t topic, %p partition, %o offset, %k key, %s value (more with --help)
    #[arg(short = 'f', long = "print", value_name = "TEMPLATE", value_parser = value::<EventFormat>())]
    #[arg(long_help = FORMAT_FORMS, conflicts_with = "format")]
    pub template: Option<EventFormat>,
}

impl ConsumeArgs {
    /// Where to start and perhaps to stop.
    pub fn offset(&self) -> Result<OffsetSpec, Failure> {
        let asked = OffsetSpec::join(&self.offsets)
            .map_err(|bad| Failure::usage(format!("-o: {}", bad.problem())).hint(bad.hint()))?;
        let default = if self.group.is_some() { Point::Stored } else { Point::Start };
        let spec = asked.unwrap_or(OffsetSpec::from(default));
        let is_stored = spec.from == Point::Stored || spec.until == Some(Point::Stored);
        if is_stored && self.group.is_none() {
            return Err(Failure::usage("-o stored: there is no group to ask").hint("name it with -g GROUP"));
        }
        Ok(spec)
    }
}
