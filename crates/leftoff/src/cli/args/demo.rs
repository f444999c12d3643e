//! `leftoff demo`

use clap::{Args, ValueEnum};
use leftoff_wire::Offset;

use super::value::{event_count, parsed};
use crate::cli::failure::Failure;

/// The offset at which the lesson's consumer 1 crashes.
const LESSON_CRASH_AT: u64 = 6;

/// `leftoff demo`
#[derive(Args, Clone, Debug)]
pub struct DemoArgs {
    /// Offset at which consumer 1 is killed [default: 6, or the last event if there are fewer]
    #[arg(long, value_name = "N", value_parser = parsed(super::value::offset))]
    crash_at: Option<Offset>,
    /// When it is killed: before handling the event, between handling and saving, or after both
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Crash::Before)]
    pub crash: Crash,
    /// Save the offset after handling (right) or before it (wrong: a crash between the two loses the event)
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Save::After)]
    pub save: Save,
    /// Whether a consumer leaves out events that it finds handled already
    #[arg(long, value_name = "ON|OFF", value_enum, default_value_t = Switch::On)]
    pub dedupe: Switch,
    /// Number of events
    #[arg(long, value_name = "N", default_value = "10", value_parser = parsed(event_count))]
    pub events: u64,
    /// Keep the log and the effects in this directory, which must not exist or be empty
    #[arg(long, value_name = "DIR")]
    pub keep: Option<std::path::PathBuf>,
}

/// When consumer 1 is killed, seen from the event it has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Crash {
    /// Before it is handled
    Before,
    /// After the first and before the second of handling and saving
    Between,
    /// After both
    After,
}

/// The order of saving and handling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Save {
    /// Handle, then save
    After,
    /// Save, then handle
    Before,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Yes
    On,
    /// No
    Off,
}

impl DemoArgs {
    /// The offset at which consumer 1 is killed, one of the events'.
    pub fn crash_at(&self) -> Result<Offset, Failure> {
        let last = self.events - 1;
        match self.crash_at {
            None => Ok(Offset::ZERO.plus(LESSON_CRASH_AT.min(last))),
            Some(offset) if offset.since(Offset::ZERO) <= last => Ok(offset),
            Some(offset) => Err(Failure::usage(format!("--crash-at {offset} is behind the last event"))
                .hint(format!("give an offset from 0 to {last}, or more --events"))),
        }
    }
}
