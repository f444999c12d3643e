//! `leftoff dlq …`

use clap::{Args, Subcommand};

use super::value::{group_name, parsed, topic_name, value};
use crate::cli::place::Place;

/// What to do with dead letters: events that `run --on-fail dlq` gave up.
#[derive(Clone, Debug, Subcommand)]
pub enum DlqCommand {
    /// List them: which event, how often it was tried, why it failed, what became of it
    Ls(LsArgs),
    /// Show one whole: key, value, headers, why
    Show(ShowArgs),
    /// Produce their events again, into their topic or another; shows which, and does it only with --execute
    Replay(ReplayArgs),
    /// Mark them as not wanted; shows which, and does it only with --execute. They stay where they are
    Drop(DropArgs),
}

/// Whose letters, and where they are.
#[derive(Args, Clone, Debug)]
pub struct Whose {
    /// Group that gave the events up
    #[arg(value_parser = parsed(group_name))]
    pub group: String,
    /// Where its records go: file:PATH or sqlite:FILE keep their own dead letters [default: what the group remembers]
    #[arg(long, value_name = "PLACE", value_parser = value::<Place>())]
    pub out: Option<Place>,
    /// Topic of the dead letters of groups that write to topics or to stdout [default: GROUP.dead]
    #[arg(long, value_name = "TOPIC", value_parser = parsed(topic_name))]
    pub dlq_topic: Option<String>,
}

/// Which of them.
#[derive(Args, Clone, Debug)]
pub struct Which {
    /// Events, as TOPIC/PARTITION/OFFSET
    #[arg(value_name = "EVENT")]
    pub events: Vec<String>,
    /// All that are open
    #[arg(long, conflicts_with = "events")]
    pub all: bool,
    /// Only those whose reason has this text
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Only those of this topic
    #[arg(short, long, value_name = "TOPIC", value_parser = parsed(topic_name))]
    pub topic: Option<String>,
}

/// `leftoff dlq ls`
#[derive(Args, Clone, Debug)]
pub struct LsArgs {
    /// Whose.
    #[command(flatten)]
    pub whose: Whose,
    /// Only those whose reason has this text
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Only those of this topic
    #[arg(short, long, value_name = "TOPIC", value_parser = parsed(topic_name))]
    pub topic: Option<String>,
}

/// `leftoff dlq show`
#[derive(Args, Clone, Debug)]
pub struct ShowArgs {
    /// Whose.
    #[command(flatten)]
    pub whose: Whose,
    /// Event, as TOPIC/PARTITION/OFFSET
    #[arg(value_name = "EVENT")]
    pub event: String,
}

/// `leftoff dlq replay`
#[derive(Args, Clone, Debug)]
pub struct ReplayArgs {
    /// Whose.
    #[command(flatten)]
    pub whose: Whose,
    /// Which.
    #[command(flatten)]
    pub which: Which,
    /// Topic to produce them to [default: the topic that each came from]
    #[arg(long, value_name = "TOPIC", value_parser = parsed(topic_name))]
    pub to_topic: Option<String>,
    /// Take those that were replayed or dropped, too
    #[arg(long)]
    pub again: bool,
    /// Do it
    #[arg(long)]
    pub execute: bool,
}

/// `leftoff dlq drop`
#[derive(Args, Clone, Debug)]
pub struct DropArgs {
    /// Whose.
    #[command(flatten)]
    pub whose: Whose,
    /// Which.
    #[command(flatten)]
    pub which: Which,
    /// Do it
    #[arg(long)]
    pub execute: bool,
}
