//! What is done with each event.
//!
//! A handler answers for one event at a time. Whatever is not a clear "handled" is *not handled*: an error it reports, an
//! exit, a crash, silence. There is no third way.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::source::{Event, PartitionId};

pub mod child;
pub mod closure;
mod deadline;
mod fault;
#[cfg(feature = "http")]
pub mod http;
mod protocol;

pub use child::{Child, ChildConfig, Exec};
pub use closure::Closure;
pub use fault::HandlerError;
#[cfg(feature = "http")]
pub use http::Http;

/// An event on its way to a handler.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// The topic's name.
    pub topic: &'a str,
    /// Which partition.
    pub id: PartitionId,
    /// The event.
    pub event: &'a Event,
    /// 1 for the first time this runner hands it out.
    pub attempt: u32,
}

/// What a handler says about an event.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Done; these records are to be written to the sink, in this order.
    Handled {
        /// May be empty: handled, nothing to write.
        records: Vec<Record>,
    },
    /// Left out on purpose: done, without effect.
    Filtered,
    /// Not handled.
    Failed {
        /// What the handler says why.
        error: String,
        /// False if trying again cannot help.
        retry: bool,
    },
}

impl Answer {
    /// Handled, nothing to write.
    pub fn done() -> Answer {
        Answer::Handled { records: Vec::new() }
    }

    /// Handled, one record to write.
    pub fn record(record: Record) -> Answer {
        Answer::Handled { records: vec![record] }
    }
}

/// One JSON value on one line, kept as the handler wrote it, down to the digits of its numbers.
#[derive(Clone, Debug)]
pub struct Record(Box<RawValue>);

impl Record {
    /// The JSON form of any value.
    ///
    /// # Errors
    /// If the value has none (a map with keys that are no strings).
    pub fn from_value(value: &impl Serialize) -> Result<Record, serde_json::Error> {
        Record::from_json(serde_json::to_string(value)?)
    }

    /// The JSON text as it is; line breaks, which JSON allows between tokens, become spaces.
    ///
    /// # Errors
    /// If it is not one JSON value.
    pub fn from_json(json: String) -> Result<Record, serde_json::Error> {
        // Inside a JSON string a line break can only be written as an escape, so every one found stands between tokens.
        let line = if json.contains(['\n', '\r']) { json.replace(['\n', '\r'], " ") } else { json };
        Ok(Record(RawValue::from_string(line)?))
    }

    /// The JSON text: one line, no white space around it.
    pub fn json(&self) -> &str {
        self.0.get().trim_ascii()
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Record) -> bool {
        self.json() == other.json()
    }
}

/// Something that handles events. Called by one thread at a time.
///
/// Most take one event at a time, with [`Handler::handle`]. One whose [`Handler::depth`] is greater than one may be given so
/// many before it has answered the first, with [`Handler::give`] and [`Handler::take`]; the two faces are never mixed.
pub trait Handler {
    /// Called once before the first event, so that what cannot start fails before anything is claimed.
    ///
    /// # Errors
    /// If the handler cannot start.
    fn start(&mut self) -> Result<(), HandlerError> {
        Ok(())
    }

    /// Handles one event.
    ///
    /// # Errors
    /// If there is no answer. The event is then not handled, whatever the handler may have done already.
    fn handle(&mut self, delivery: &Delivery<'_>) -> Result<Answer, HandlerError>;

    /// How many events it may have at a time.
    fn depth(&self) -> usize {
        1
    }

    /// Gives it one more event, without waiting for what comes of it. `token` names the event in [`Handler::take`].
    ///
    /// # Errors
    /// As [`Handler::handle`]. What it has is not handled then, and it is started anew with the next event.
    fn give(&mut self, token: u64, delivery: &Delivery<'_>) -> Result<(), HandlerError> {
        let _ = (token, delivery);
        unreachable!("a handler with a depth of one is asked to handle")
    }

    /// The next answer, to any of the events that it has; waits at most `wait` for it.
    ///
    /// # Errors
    /// As [`Handler::give`].
    fn take(&mut self, wait: Duration) -> Result<Option<(u64, Answer)>, HandlerError> {
        let _ = wait;
        unreachable!("a handler with a depth of one is asked to handle")
    }

    /// Takes back all that it was given: it is ended, and started anew with the next event.
    fn give_back(&mut self) {}

    /// Called from time to time while there is nothing to handle.
    ///
    /// # Errors
    /// If the handler did something it must not do, or died, between two events.
    fn idle(&mut self) -> Result<(), HandlerError> {
        Ok(())
    }

    /// No more events. Waits at most `drain` for the handler to finish, then ends it.
    ///
    /// # Errors
    /// If it did not end well. Every event it answered for stays handled.
    fn stop(&mut self, drain: Duration) -> Result<(), HandlerError> {
        let _ = drain;
        Ok(())
    }
}
