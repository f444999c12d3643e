//! `leftoff run`

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use leftoff_consumer::runner::{self, SavePolicy};
use leftoff_consumer::sink::Promise;

use super::value::{event_count, group_name, parsed, topic_name, value};
use crate::cli::bad_value::BadValue;
use crate::cli::place::{PLACE_FORMS, Place};
use crate::cli::time::{DURATION_FORMS, parse_duration};

/// `leftoff run`
#[derive(Args, Clone, Debug)]
#[command(after_help = "the command stays alive and gets one JSON object per line, \
    {\"id\": …, \"topic\": …, \"partition\": …, \"offset\": …, \"key\": …, \"value\": …}; \
    it answers each with {\"id\": …} when the event is handled, with \"records\": […] to write to --out, \
    or with \"error\": \"why\"")]
pub struct RunArgs {
    /// Topic to read; may be repeated
    #[arg(short, long = "topic", value_name = "TOPIC", required = true, value_parser = parsed(topic_name))]
    pub topics: Vec<String>,
    /// Group whose offset is saved after each event is handled
    #[arg(short, long, value_name = "GROUP", value_parser = parsed(group_name))]
    pub group: String,
    /// Where the records that the command answers go: file:PATH, topic:NAME or stdout
    #[arg(long, value_name = "PLACE", default_value = "stdout", value_parser = value::<Place>())]
    #[arg(long_help = format!("Where the records that the command answers go: {PLACE_FORMS}"))]
    pub out: Place,
    /// Refuse to run where --out cannot promise this; --explain says what it promises
    #[arg(long, value_name = "PROMISE", value_enum)]
    pub require: Option<Require>,
    /// What to do when the command answers with an error or exits
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnFail::Stop)]
    pub on_fail: OnFail,
    /// What to do when events that are not handled yet are deleted or damaged
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnGap::Stop)]
    pub on_gap: OnGap,
    /// Where to start when the group has no offset
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = OnNoOffset::Earliest)]
    pub on_no_offset: OnNoOffset,
    /// What to do when --out keeps the offset and has none, but the group has: the file was lost, or is new to this
    /// group
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnLostState::Stop)]
    pub on_lost_state: OnLostState,
    /// When to save, always after handling: event (after each), every=100, every=5s, or stop (at the end only)
    #[arg(long, value_name = "WHEN", default_value = "event", value_parser = value::<Save>())]
    pub save: Save,
    /// Stop when everything up to the end, as it is at the start, is handled, rather than wait for more
    #[arg(long)]
    pub until_end: bool,
    /// Stop after N events
    #[arg(long, value_name = "N", value_parser = parsed(event_count))]
    pub max: Option<u64>,
    /// How long the command may go on with its event after a stop
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parsed(parse_duration))]
    pub drain: Duration,
    /// How long the command may take for one event before it is killed, which stops the run [default: as long as it
    /// likes]
    #[arg(long, value_name = "DURATION", value_parser = parsed(parse_duration))]
    #[arg(long_help = format!("How long the command may take for one event before it is killed, which stops the run \
        [default: as long as it likes]: {DURATION_FORMS}"))]
    pub handler_timeout: Option<Duration>,
    /// Print what --out promises and where each partition would start, and do nothing
    #[arg(long)]
    pub explain: bool,
    /// Command that handles the events, after --
    #[arg(last = true, required_unless_present = "explain", value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// A promise of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Require {
    /// No event's effect is missing
    AtLeastOnce,
    /// Each event's effect is there once
    ExactlyOnce,
}

impl Require {
    /// Whether a place with this promise will do.
    pub fn is_met_by(self, promise: Promise) -> bool {
        match (self, promise) {
            (Require::AtLeastOnce, Promise::AtLeastOnce | Promise::ExactlyOnce)
            | (Require::ExactlyOnce, Promise::ExactlyOnce) => true,
            (Require::ExactlyOnce, Promise::AtLeastOnce) => false,
        }
    }
}

/// What a failed event leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnFail {
    /// Stop before it; the next run begins with it
    Stop,
}

/// What a gap leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnGap {
    /// Stop and name the offsets
    Stop,
    /// Go on with the first event that can be read; the skip is in the group's history
    Earliest,
}

/// Where a group without an offset starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnNoOffset {
    /// With the first event that can be read
    Earliest,
    /// With what comes from now on
    Latest,
    /// Nowhere: stop
    Stop,
}

/// What a place without the offset that it should have leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnLostState {
    /// Stop and name both
    Stop,
    /// Go on where the group says
    Group,
}

/// When to save: `event`, `every=100`, `every=5s` or `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Save(pub SavePolicy);

impl FromStr for Save {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Save, BadValue> {
        let bad =
            || BadValue::new(text, "a time to save", "event, every=N, every=DURATION or stop", "every=100");
        let policy = match text.strip_prefix("every=") {
            Some(number) if number.bytes().all(|b| b.is_ascii_digit()) => {
                SavePolicy::Events(number.parse::<NonZeroU64>().map_err(|_| bad())?)
            }
            Some(length) => SavePolicy::Every(parse_duration(length).map_err(|_| bad())?),
            None => match text {
                "event" => SavePolicy::EveryEvent,
                "stop" => SavePolicy::AtStop,
                _ => return Err(bad()),
            },
        };
        Ok(Save(policy))
    }
}

impl RunArgs {
    /// What the flags mean to the runtime.
    pub fn options(&self) -> runner::RunOptions {
        runner::RunOptions {
            save: self.save.0,
            on_fail: match self.on_fail {
                OnFail::Stop => runner::OnFail::Stop,
            },
            on_gap: match self.on_gap {
                OnGap::Stop => runner::OnGap::Stop,
                OnGap::Earliest => runner::OnGap::Earliest,
            },
            on_no_offset: match self.on_no_offset {
                OnNoOffset::Earliest => runner::OnNoOffset::Earliest,
                OnNoOffset::Latest => runner::OnNoOffset::Latest,
                OnNoOffset::Stop => runner::OnNoOffset::Stop,
            },
            on_lost_state: match self.on_lost_state {
                OnLostState::Stop => runner::OnLostState::Refuse,
                OnLostState::Group => runner::OnLostState::FollowGroup,
            },
            until_end: self.until_end,
            max_events: self.max,
            drain: self.drain,
            ..runner::RunOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_moment_to_save_is_read_from_a_word() {
        let hundred = SavePolicy::Events(NonZeroU64::new(100).unwrap());
        let table = [
            ("event", Some(SavePolicy::EveryEvent)),
            ("every=100", Some(hundred)),
            ("every=5s", Some(SavePolicy::Every(Duration::from_secs(5)))),
            ("stop", Some(SavePolicy::AtStop)),
            ("every=0", None),
            ("every=", None),
            ("every=x", None),
            ("before", None),
            ("", None),
        ];
        for (text, expect) in table {
            assert_eq!(text.parse::<Save>().ok().map(|save| save.0), expect, "{text}");
        }
    }
}
