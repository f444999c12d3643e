//! A command that is started for each event: the event on stdin, what there is to know of it in the environment, and the exit
//! code as the answer. For scripts, and for what cannot be kept alive; a process a event is its price.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::process::{Process, Said};
use super::{ChildConfig, HandlerError, label_of};
use crate::handler::deadline::{Deadline, TICK};
use crate::handler::{Answer, Delivery, Handler, Record, protocol};
use crate::shorten;

#[cfg(test)]
mod tests;

/// The most that a command may write to stdout for one event, in bytes.
pub const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// So many lines of stderr are named when it fails.
const LAST_WORDS: usize = 3;
/// A longer key is not in the environment, where the operating system has its own limits; it is in the event's line.
const MAX_KEY_BYTES: usize = 32 << 10;

/// Starts a command for each event. Exit code 0: handled, and each line of stdout is a record. Anything else: not handled.
///
/// The command, and all in its process group, are gone when the event is answered for.
#[derive(Debug)]
pub struct Exec {
    config: ChildConfig,
}

impl Exec {
    /// Starts nothing yet. `pipeline` and `protocol_fd` say nothing here.
    pub fn new(config: ChildConfig) -> Exec {
        Exec { config: ChildConfig { pipeline: 1, protocol_fd: None, ..config } }
    }

    fn run(&mut self, delivery: &Delivery<'_>) -> Result<Answer, HandlerError> {
        let mut deadline = Deadline::new(self.config.timeout);
        let id = protocol::event_id(delivery);
        let mut process = Process::start(&self.config, &environment(delivery, &self.config.group))?;
        process.queue(&protocol::event(&id, delivery));
        process.close_input_when_written();
        let mut words = VecDeque::new();
        let ChildConfig { stderr: to, timeout, drain, stop, .. } = &mut self.config;
        let mut error_line = |line: &str| {
            if words.len() == LAST_WORDS {
                words.pop_front();
            }
            words.push_back(shorten(line.as_bytes()));
            to(Some(label_of(&id)), line);
        };
        let mut records = Records::default();
        loop {
            match process.next_line(deadline.next_tick(), &mut error_line)? {
                Some(Said::Line(line)) => records.add(&line)?,
                // It need not read its event.
                Some(Said::Closed("input")) => process.close_input(),
                Some(Said::Closed(_)) => break,
                None => deadline.check(*timeout, *drain, stop.as_deref())?,
            }
        }
        records.add(&process.take_unfinished())?;
        let how = loop {
            let tick = deadline.next_tick().min(Instant::now() + TICK);
            if let Some(how) = process.ended_within(tick, &mut error_line)? {
                break how;
            }
            deadline.check(*timeout, *drain, stop.as_deref())?;
        };
        match how {
            Some(how) => Err(HandlerError::CommandFailed { how, words: words.into() }),
            None => records.answer(),
        }
    }
}

impl Handler for Exec {
    fn handle(&mut self, delivery: &Delivery<'_>) -> Result<Answer, HandlerError> {
        self.run(delivery)
    }

    fn stop(&mut self, _drain: Duration) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// What it wrote to stdout: records, unless a line is none, which matters only if it says that all went well.
#[derive(Default)]
struct Records {
    records: Vec<Record>,
    bytes: usize,
    bad: Option<HandlerError>,
}

impl Records {
    fn add(&mut self, line: &[u8]) -> Result<(), HandlerError> {
        self.bytes += line.len();
        if self.bytes > MAX_OUTPUT_BYTES {
            return Err(HandlerError::TooMuch { limit_bytes: MAX_OUTPUT_BYTES });
        }
        if line.trim_ascii().is_empty() || self.bad.is_some() {
            return Ok(());
        }
        let text = String::from_utf8(line.to_vec()).map_err(|_| "it is not UTF-8".to_owned());
        match text.and_then(|text| Record::from_json(text).map_err(|error| error.to_string())) {
            Ok(record) => self.records.push(record),
            Err(why) => self.bad = Some(HandlerError::NoRecord { line: shorten(line), why }),
        }
        Ok(())
    }

    fn answer(self) -> Result<Answer, HandlerError> {
        match self.bad {
            Some(bad) => Err(bad),
            None => Ok(Answer::Handled { records: self.records }),
        }
    }
}

/// What a script wants to know without reading JSON.
fn environment(delivery: &Delivery<'_>, group: &str) -> Vec<(&'static str, String)> {
    let Delivery { topic, id, event, attempt } = delivery;
    let mut variables = vec![
        ("LEFTOFF_TOPIC", (*topic).to_owned()),
        ("LEFTOFF_GROUP", group.to_owned()),
        ("LEFTOFF_PARTITION", id.partition.to_string()),
        ("LEFTOFF_OFFSET", event.offset.to_string()),
        ("LEFTOFF_ATTEMPT", attempt.to_string()),
        // The same at every attempt: what the effect is to be remembered under.
        ("LEFTOFF_ID", format!("{}/{}/{}", id.topic_id, id.partition, event.offset)),
    ];
    let key = event.key.as_deref().and_then(|key| std::str::from_utf8(key).ok());
    if let Some(key) = key.filter(|key| key.len() <= MAX_KEY_BYTES && !key.contains('\0')) {
        variables.push(("LEFTOFF_KEY", key.to_owned()));
    }
    variables
}
