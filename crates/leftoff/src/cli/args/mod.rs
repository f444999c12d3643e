//! The command line as types: every verb, every flag, each value parsed at the door.

pub mod demo;
pub mod dlq;
pub mod groups;
pub mod read_write;
pub mod run;
pub mod serve;
pub mod topics;
pub mod upkeep;
pub mod value;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::notes::LogFormat;
use super::table::Format;
use super::time::parse_duration;
use value::parsed;

/// The whole command line.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "leftoff",
    version,
    about = "An event log that remembers where every reader left off",
    after_help = "exit codes: 0 done, 1 the check failed, 2 usage, 3 cannot reach, 4 refused for safety, \
        5 storage failed or damaged, 130 interrupted before the end",
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What holds for every verb.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The flags that every verb takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Data directory that holds the topics and the groups
    #[arg(long, global = true, value_name = "DIR", env = "LEFTOFF_DATA", default_value = "./leftoff-data")]
    pub data: PathBuf,

    /// Form of the output: text and wide for people (consume: one value per line), json, jsonl and csv for
    /// scripts
    #[arg(long, global = true, value_name = "FORM", value_enum, default_value_t = FormatArg::Text)]
    pub format: FormatArg,

    /// Leave out the names of the columns (text, wide and csv)
    #[arg(long, global = true)]
    pub no_headers: bool,

    /// Print no progress and no notes to stderr, errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Form of what is told on stderr: text for people, json for whoever collects it (one object per line)
    #[arg(long, global = true, value_name = "FORM", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// Print the causes beneath an error, too
    #[arg(short, long, global = true)]
    pub verbose: bool,

    /// Give up after this long: until a data directory that another process writes is free [default: 5s];
    /// in run, until the handler of a killed run has ended [default: 10s]; in wait, until the group is there [default:
    /// never]. A duration: 90s, 1h30m, PT1H30M
    #[arg(long, global = true, value_name = "DURATION", value_parser = parsed(parse_duration))]
    pub timeout: Option<Duration>,
}

/// The names of [`Format`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Columns for people
    Text,
    /// More columns for people
    Wide,
    /// One JSON array (consume: one object per line)
    Json,
    /// One JSON object per line
    Jsonl,
    /// Comma-separated values (RFC 4180)
    Csv,
}

impl From<FormatArg> for Format {
    fn from(arg: FormatArg) -> Format {
        match arg {
            FormatArg::Text => Format::Text,
            FormatArg::Wide => Format::Wide,
            FormatArg::Json => Format::Json,
            FormatArg::Jsonl => Format::Jsonl,
            FormatArg::Csv => Format::Csv,
        }
    }
}

impl Command {
    /// The verb, as it is typed.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Demo(_) | Command::DemoConsumer(_) => "demo",
            Command::Serve(_) => "serve",
            Command::Topics(_) => "topics",
            Command::Produce(_) => "produce",
            Command::Consume(_) => "consume",
            Command::Groups(_) => "groups",
            Command::Wait(_) => "wait",
            Command::Check(_) => "check",
            Command::Run(_) => "run",
            Command::Dlq(_) => "dlq",
            Command::Doctor(_) => "doctor",
            Command::Backup(_) => "backup",
            Command::Completion(_) => "completion",
        }
    }
}

/// The verbs.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Show how a consumer that crashes goes on where it left off
    Demo(demo::DemoArgs),
    /// One consumer of the demo, which starts it
    #[command(hide = true)]
    DemoConsumer(super::verbs::demo::consumer::ConsumerArgs),
    /// Let Kafka clients, in any language, keep their events and offsets in the data directory
    Serve(serve::ServeArgs),
    /// Create, list, describe, change, delete and trim topics
    #[command(subcommand)]
    Topics(topics::TopicsCommand),
    /// Append lines from stdin or a file to a topic
    Produce(read_write::ProduceArgs),
    /// Print the events of topics
    Consume(read_write::ConsumeArgs),
    /// See where groups stand and how they got there, move them, undo that
    #[command(subcommand)]
    Groups(groups::GroupsCommand),
    /// Wait until a group has handled events up to a place
    Wait(upkeep::WaitArgs),
    /// Compare a log with its effects: what was lost, what was handled twice, what is left
    Check(upkeep::CheckArgs),
    /// Handle events with a command and save the offset after each
    Run(Box<run::RunArgs>),
    /// List, show, produce again and drop the events that run --on-fail dlq gave up
    #[command(subcommand)]
    Dlq(dlq::DlqCommand),
    /// Look for damage in the data directory
    Doctor(upkeep::DoctorArgs),
    /// Copy the data directory as it is at one moment, while it is written
    Backup(upkeep::BackupArgs),
    /// Print the completion script for a shell
    Completion(upkeep::CompletionArgs),
}

#[cfg(test)]
mod tests;
