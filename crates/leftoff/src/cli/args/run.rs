//! `leftoff run`

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use leftoff_consumer::runner::{self, Backoff, Identify, SavePolicy};
use leftoff_consumer::sink::Promise;
use leftoff_consumer::source::Event;

use super::value::{event_count, group_name, parsed, topic_name, value};
use crate::cli::bad_value::BadValue;
use crate::cli::json_path::JsonPath;
use crate::cli::place::{PLACE_FORMS, Place};
use crate::cli::time::{DURATION_FORMS, TIME_FORMS, Time, parse_duration};

/// `leftoff run`
#[derive(Args, Clone, Debug)]
#[command(after_help = "the command stays alive and gets one JSON object per line, \
    {\"id\": …, \"topic\": …, \"partition\": …, \"offset\": …, \"key\": …, \"value\": …}; \
    it answers each with {\"id\": …} when the event is handled, with \"records\": […] to write to --out, \
    or with \"error\": \"why\". With --exec-per-event it is started for each event, and its exit code is the answer")]
pub struct RunArgs {
    /// Topic to read; may be repeated
    #[arg(short, long = "topic", value_name = "TOPIC", required = true, value_parser = parsed(topic_name))]
    pub topics: Vec<String>,
    /// Group whose offset is saved after each event is handled
    #[arg(short, long, value_name = "GROUP", value_parser = parsed(group_name))]
    pub group: String,
    /// Where the records that the command answers go: file:PATH, sqlite:FILE, postgres://USER@HOST/DATABASE, topic:NAME or stdout
    #[arg(long, value_name = "PLACE", default_value = "stdout", value_parser = value::<Place>())]
    #[arg(long_help = format!("Where the records that the command answers go: {PLACE_FORMS}"))]
    pub out: Place,
    /// Refuse to run where --out cannot promise this; --explain says what it promises
    #[arg(long, value_name = "PROMISE", value_enum)]
    pub require: Option<Require>,
    /// Do not handle what --out has taken already under another offset (an event that was produced twice). What is the
    /// same event: id (the same key, or the same value where there is no key), key, or json:PATH (a field of the value)
    #[arg(long, value_name = "BY", value_parser = value::<Dedupe>())]
    pub dedupe: Option<Dedupe>,
    /// Which events are handled one after the other: those of a partition, those of a partition with the same key, or none.
    /// Records are always written in the order of the offsets
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Order::Partition)]
    pub order: Order,
    /// How many events are handled side by side, each by a command of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = parsed(worker_count))]
    pub concurrency: usize,
    /// How many events a command may have before it has answered the first. Only for commands that do nothing but
    /// return records: after a failure its later answers are thrown away and it is started again with their events
    #[arg(long, value_name = "N", default_value = "1", value_parser = parsed(worker_count))]
    #[arg(conflicts_with_all = ["exec_per_event", "http"])]
    pub pipeline: usize,
    /// Descriptor on which the command answers, 3 to 9, rather than on stdout: then what it prints is harmless, and is passed
    /// on like its stderr. LEFTOFF_FD in its environment has the number; events come on stdin as ever
    #[arg(long, value_name = "N", value_parser = parsed(protocol_fd), conflicts_with_all = ["exec_per_event", "http"])]
    pub protocol_fd: Option<u8>,
    /// Start the command for each event: the event's JSON line on stdin, LEFTOFF_TOPIC, LEFTOFF_PARTITION, LEFTOFF_OFFSET,
    /// LEFTOFF_KEY, LEFTOFF_ATTEMPT and LEFTOFF_ID (the same at each attempt) in the environment. Exit code 0 is handled, and
    /// each line of stdout, a JSON value, a record
    #[arg(long)]
    pub exec_per_event: bool,
    /// Post each event's JSON object to this URL instead of to a command; a status of 2xx is handled, and the body, if any, an
    /// answer object. Idempotency-Key is the same at each attempt. Redirects are not followed, and no proxy is used
    #[arg(long, value_name = "URL", value_parser = value::<HttpUrl>(), conflicts_with_all = ["command", "exec_per_event"])]
    pub http: Option<HttpUrl>,
    /// What to do when an event is not handled (the command answers with an error, exits, dies, takes too long or
    /// prints what is no answer) and its attempts are used up
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnFail::Stop)]
    pub on_fail: OnFail,
    /// Topic of the dead letters where --out is a topic or stdout; it is made if it is not there [default: GROUP.dead]
    #[arg(long, value_name = "TOPIC", value_parser = parsed(topic_name))]
    pub dlq_topic: Option<String>,
    /// How often an event is tried, also over crashes and restarts [default: 1 with stop, 3 with skip and dlq, no limit with
    /// retry]
    #[arg(long, value_name = "N", value_parser = parsed(attempt_count))]
    pub attempts: Option<NonZeroU32>,
    /// How long to wait before the first retry and at most: 1s..1m doubles from 1 second to 1 minute, 5s waits 5
    /// seconds each time; up to half of it is left out at random
    #[arg(long, value_name = "FROM..TO", default_value = "1s..1m", value_parser = value::<Wait>())]
    pub backoff: Wait,
    /// What to do when events that are not handled yet are deleted or damaged
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnGap::Stop)]
    pub on_gap: OnGap,
    /// Where to start when the group has no offset
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = OnNoOffset::Earliest)]
    pub on_no_offset: OnNoOffset,
    /// For a backfill with a group of its own: start with the first event of this time or later. The group must be new:
    /// nobody else is disturbed
    #[arg(long, value_name = "TIME", value_parser = value::<Time>(), requires = "new_group")]
    #[arg(allow_hyphen_values = true, long_help = format!("For a backfill with a group of its own: start with the first \
        event of this time or later. The group must be new: nobody else is disturbed. {TIME_FORMS}"))]
    pub from: Option<Time>,
    /// The group must be new; with --from
    #[arg(long, requires = "from")]
    pub new_group: bool,
    /// What to do when --out keeps the offset and has none, but the group has: the file was lost, or is new to this
    /// group
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnLostState::Stop)]
    pub on_lost_state: OnLostState,
    /// What to do when --out has passed events that are other ones in the log: the data directory was brought back from an
    /// older copy, and has taken other events since
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnOtherLog::Stop)]
    pub on_other_log: OnOtherLog,
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
    /// How long the command may take for one event before it is killed, which is a failed attempt [default: as long as
    /// it likes; with --http 30s]
    #[arg(long, value_name = "DURATION", value_parser = parsed(parse_duration))]
    #[arg(long_help = format!("How long the command may take for one event before it is killed, which is a failed \
        attempt [default: as long as it likes; with --http 30s]: {DURATION_FORMS}"))]
    pub handler_timeout: Option<Duration>,
    /// Answer Prometheus at http://ADDR/metrics, and probes at /healthz; port 0 takes a free one and prints it
    #[arg(long, value_name = "ADDR", value_parser = value::<ListenAddress>())]
    pub metrics_listen: Option<ListenAddress>,
    /// Print what --out promises and where each partition would start, and do nothing
    #[arg(long)]
    pub explain: bool,
    /// Command that handles the events, after --
    #[arg(last = true, required_unless_present_any = ["explain", "http"], value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Where to listen: `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress(pub String);

impl FromStr for ListenAddress {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<ListenAddress, BadValue> {
        let parts = text.rsplit_once(':').filter(|(host, port)| {
            !host.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok()
        });
        match parts {
            Some(_) => Ok(ListenAddress(text.to_owned())),
            None => Err(BadValue::new(text, "an address to listen on", "HOST:PORT", "127.0.0.1:9464")),
        }
    }
}

/// What makes two events the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dedupe {
    /// What the audit calls them: the key, or the value where there is no key.
    Id,
    /// The key. Events without one are never the same.
    Key,
    /// A field of the value: text, a number, or true and false. Events without one are never the same.
    Json(JsonPath),
}

impl FromStr for Dedupe {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Dedupe, BadValue> {
        match (text, text.strip_prefix("json:")) {
            ("id", _) => Ok(Dedupe::Id),
            ("key", _) => Ok(Dedupe::Key),
            (_, Some(path)) => path.parse().map(Dedupe::Json),
            _ => Err(BadValue::new(
                text,
                "a way to tell events apart",
                "id, key or json:PATH",
                "json:order.id",
            )),
        }
    }
}

impl Dedupe {
    /// The id of an event, if it has one.
    fn id_of(&self, event: &Event) -> Option<Vec<u8>> {
        match self {
            Dedupe::Id => event.key.clone().or_else(|| event.value.clone()),
            Dedupe::Key => event.key.clone(),
            Dedupe::Json(path) => {
                let value = std::str::from_utf8(event.value.as_deref()?).ok()?;
                let found = path.find(value).ok()??;
                match serde_json::from_str(found.get()).ok()? {
                    serde_json::Value::String(text) => Some(text.into_bytes()),
                    serde_json::Value::Number(_) | serde_json::Value::Bool(_) => {
                        Some(found.get().as_bytes().to_vec())
                    }
                    _ => None,
                }
            }
        }
    }
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

/// Which events are handled one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// Those of a partition
    Partition,
    /// Those of a partition with the same key; events without a key follow nobody
    Key,
    /// None
    None,
}

/// What a failed event leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnFail {
    /// Stop before it and show it; the next run begins with it
    Stop,
    /// The same, but try it again and again first
    Retry,
    /// Pass it by; that is in the group's history, and in the outcomes of a file
    Skip,
    /// Pass it by and keep it whole as a dead letter, in one step with the offset: `leftoff dlq` shows it and produces it
    /// again. It is in --out where that keeps the offset, else in a topic
    Dlq,
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

/// What a place that counts in another log leads to
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnOtherLog {
    /// Stop and name the offset
    Stop,
    /// Go on where the place says, all the same
    Accept,
}

/// How long to wait before a retry: `1s..1m`, or `5s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait(pub Backoff);

impl FromStr for Wait {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Wait, BadValue> {
        let bad = || BadValue::new(text, "a wait", "FROM..TO or a duration", "1s..1m");
        let (first, most) = text.split_once("..").unwrap_or((text, text));
        let (first, most) =
            (parse_duration(first).map_err(|_| bad())?, parse_duration(most).map_err(|_| bad())?);
        if first > most { Err(bad()) } else { Ok(Wait(Backoff { first, most })) }
    }
}

/// How often, at least once.
fn attempt_count(text: &str) -> Result<NonZeroU32, BadValue> {
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    let bad = || BadValue::new(text, "a number of attempts", "a whole number from 1", "3");
    if is_number { text.parse().map_err(|_| bad()) } else { Err(bad()) }
}

/// Where `--http` posts to.
#[derive(Clone, Debug)]
pub struct HttpUrl(#[cfg(feature = "http")] pub leftoff_consumer::handler::http::Endpoint);

impl FromStr for HttpUrl {
    type Err = BadValue;

    /// The text is not repeated where it is refused: it may hold a password.
    #[cfg(feature = "http")]
    fn from_str(text: &str) -> Result<HttpUrl, BadValue> {
        let hint =
            "expected http://HOST[:PORT][/PATH] or https://…, for example http://localhost:8080/events";
        text.parse()
            .map(HttpUrl)
            .map_err(|bad| BadValue::refuse(format!("cannot post to that URL: {bad}"), hint))
    }

    #[cfg(not(feature = "http"))]
    fn from_str(_text: &str) -> Result<HttpUrl, BadValue> {
        Err(BadValue::refuse("this build has no HTTP in it", "build it with the feature http"))
    }
}

/// A descriptor that no shell and no library has for itself, and whose number a shell can name.
fn protocol_fd(text: &str) -> Result<u8, BadValue> {
    let bad = || BadValue::new(text, "a descriptor for answers", "a number from 3 to 9", "3");
    text.parse().ok().filter(|fd| (3..=9).contains(fd)).ok_or_else(bad)
}

/// How many at a time: handlers, or events of one.
fn worker_count(text: &str) -> Result<usize, BadValue> {
    const MOST: usize = 1_024;
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    let number = if is_number { text.parse().ok() } else { None };
    number.filter(|number| (1..=MOST).contains(number)).ok_or_else(|| {
        BadValue::new(text, "a number of events at a time", "a whole number from 1 to 1024", "4")
    })
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
            group: self.group.clone(),
            save: self.save.0,
            order: match self.order {
                Order::Partition => runner::Order::Partition,
                Order::Key => runner::Order::Key,
                Order::None => runner::Order::None,
            },
            on_fail: match self.on_fail {
                OnFail::Stop => runner::OnFail::Stop,
                OnFail::Retry => runner::OnFail::Retry,
                OnFail::Skip => runner::OnFail::Skip,
                OnFail::Dlq => runner::OnFail::Dead,
            },
            attempts: self.attempts,
            backoff: self.backoff.0,
            seed: RandomState::new().build_hasher().finish(),
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
            on_other_log: match self.on_other_log {
                OnOtherLog::Stop => runner::OnOtherLog::Refuse,
                OnOtherLog::Accept => runner::OnOtherLog::Accept,
            },
            identify: self.dedupe.clone().map(|by| Identify::new(move |event| by.id_of(event))),
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
    fn what_makes_events_the_same() {
        let event = |key: Option<&str>, value: Option<&str>| Event {
            offset: leftoff_wire::Offset::ZERO,
            timestamp_ms: 0,
            key: key.map(|key| key.as_bytes().to_vec()),
            value: value.map(|value| value.as_bytes().to_vec()),
            headers: Vec::new(),
            leader_epoch: -1,
        };
        let table = [
            ("id", event(Some("k"), Some("v")), Some("k")),
            ("id", event(None, Some("v")), Some("v")),
            ("id", event(None, None), None),
            ("key", event(Some("k"), Some("v")), Some("k")),
            ("key", event(None, Some("v")), None),
            ("json:a.b", event(None, Some(r#"{"a":{"b":"x"}}"#)), Some("x")),
            ("json:a.b", event(None, Some(r#"{"a":{"b":7.0}}"#)), Some("7.0")),
            ("json:a.b", event(None, Some(r#"{"a":{"b":null}}"#)), None),
            ("json:a.b", event(None, Some(r#"{"a":{"b":[1]}}"#)), None),
            ("json:a.b", event(None, Some("{}")), None),
            ("json:a.b", event(None, Some("no json")), None),
            ("json:a.b", event(Some("k"), None), None),
        ];
        for (by, event, expect) in table {
            let id = by.parse::<Dedupe>().unwrap().id_of(&event);
            assert_eq!(id.as_deref(), expect.map(str::as_bytes), "{by} {event:?}");
        }
        for bad in ["", "ids", "json:", "json"] {
            assert!(bad.parse::<Dedupe>().is_err(), "{bad}");
        }
    }

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

    #[test]
    fn a_wait_is_read_as_a_range_or_a_duration() {
        let wait = |first, most| {
            Some(Backoff { first: Duration::from_millis(first), most: Duration::from_millis(most) })
        };
        let table = [
            ("1s..1m", wait(1_000, 60_000)),
            ("0ms..0ms", wait(0, 0)),
            ("5s", wait(5_000, 5_000)),
            ("1m..1s", None),
            ("1..2", None),
            ("..", None),
            ("", None),
        ];
        for (text, expect) in table {
            assert_eq!(text.parse::<Wait>().ok().map(|wait| wait.0), expect, "{text}");
        }
    }
}
