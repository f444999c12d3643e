//! The ways in which a handler gives no answer. Each means: not handled.

use std::time::Duration;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HandlerError {
    /// The command did not start.
    #[error("cannot start the handler {command}: {error}")]
    Start {
        /// The program.
        command: String,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// The process ended, by itself or by a signal.
    #[error("the handler {how}{}", said(.unfinished))]
    Ended {
        /// `exited with code 1`, `was killed by signal 9`.
        how: String,
        /// A last line without its end, shortened; empty if there is none.
        unfinished: String,
    },
    /// It lives, but closed the pipe that it should read from or answer on.
    #[error("the handler closed its {0} and did not exit")]
    Closed(&'static str),
    /// A line that is no JSON object.
    #[error(
        "the handler wrote a line that is no answer: {line}\n  ({why}; {})", where_answers_go(*on_fd)
    )]
    NoAnswer {
        /// The line, shortened.
        line: String,
        /// What is wrong with it.
        why: String,
        /// The descriptor that is for answers only, if there is one.
        on_fd: Option<u8>,
    },
    /// An answer for an event that it was not given.
    #[error("the handler answered for {id}, which it has not: {line}\n  (in flight: {in_flight})")]
    UnknownId {
        /// The id it named.
        id: String,
        /// The id of the event that it has; `none`.
        in_flight: String,
        /// The line, shortened.
        line: String,
    },
    /// A second answer for the event before.
    #[error("the handler answered twice for {id}: {line}")]
    AnsweredTwice {
        /// The id.
        id: String,
        /// The second answer, shortened.
        line: String,
    },
    /// A line longer than may be kept in memory.
    #[error("the handler wrote a line of more than {limit_bytes} bytes: {line}")]
    TooLong {
        /// The limit.
        limit_bytes: usize,
        /// Its beginning.
        line: String,
    },
    /// It took too long.
    #[error("the handler gave no answer within {after:?} and was killed")]
    TimedOut {
        /// The limit that was given.
        after: Duration,
    },
    /// The runner was asked to stop, and the handler did not finish its event in time. The event is given back.
    #[error("the handler did not finish within {after:?} of the stop and was killed")]
    GivenBack {
        /// The time it was given.
        after: Duration,
    },
    /// It broke the rules, or ended, when the event before was answered for and this one not given to it yet.
    #[error("between two events, {0}")]
    Between(#[source] Box<HandlerError>),
    /// It had several events when it failed; all of them are given to it again.
    #[error("{error}\n  (it had {had}; they are handed out again)")]
    Pipelined {
        /// What it did.
        #[source]
        error: Box<HandlerError>,
        /// `3 events: quakes/0/4, quakes/0/5, quakes/0/6`.
        had: String,
    },
    /// A command that is started for each event said no.
    #[error("the command {how}{}", last_words(.words))]
    CommandFailed {
        /// `exited with code 1`.
        how: String,
        /// The last lines of its stderr, shortened.
        words: Vec<String>,
    },
    /// A command that is started for each event wrote something that is no record.
    #[error(
        "the command wrote a line that is no record: {line}\n  ({why}; each line of stdout is to be a JSON value, everything else goes to stderr)"
    )]
    NoRecord {
        /// The line, shortened.
        line: String,
        /// What is wrong with it.
        why: String,
    },
    /// A command that is started for each event wrote more than can be kept.
    #[error("the command wrote more than {limit_bytes} bytes for one event")]
    TooMuch {
        /// The limit.
        limit_bytes: usize,
    },
    /// Asked to end, it did not.
    #[error("the handler did not exit within {after:?} of the stop and was killed")]
    DidNotStop {
        /// The time it was given.
        after: Duration,
    },
    /// The operating system failed us.
    #[error("{what}: {error}")]
    Io {
        /// What was done.
        what: &'static str,
        /// Why it failed.
        #[source]
        error: std::io::Error,
    },
}

fn where_answers_go(fd: Option<u8>) -> String {
    match fd {
        Some(fd) => format!("descriptor {fd} is for answers only"),
        None => "answers go to stdout, everything else to stderr: is this a stray print? \
             with --protocol-fd 3 answers go to a descriptor of their own, and prints are harmless"
            .to_owned(),
    }
}

fn last_words(words: &[String]) -> String {
    if words.is_empty() { String::new() } else { format!("; its last words: {}", words.join("\n  ")) }
}

fn said(unfinished: &str) -> String {
    if unfinished.is_empty() { String::new() } else { format!("; its last, unfinished line: {unfinished}") }
}
