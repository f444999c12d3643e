//! What a person should know and a script need not: lines on stderr beside the result, silent with `-q`. With
//! `--log-format json` each is one JSON object, for whoever collects them.

use std::io::Write;
use std::sync::OnceLock;

use clap::ValueEnum;
use leftoff::store::now;
use serde::Serialize;

use super::time::format_time;

/// The form of what is told on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// How this process tells things. Errors of the command line itself come before it is known: they are text.
static TELLS: OnceLock<(LogFormat, String)> = OnceLock::new();

/// Says how things are told from now on, and for which verb. Once for a process.
pub fn tell_as(format: LogFormat, verb: &str) {
    TELLS.get_or_init(|| (format, verb.to_owned()));
}

/// How grave a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Good to know.
    Info,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
}

/// One line: what it says, and what it is about, as far as that is known.
#[derive(Clone, Debug, Serialize)]
pub struct Line<'a> {
    /// How grave it is.
    pub level: Level,
    /// What happened, in one word for scripts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<&'a str>,
    /// The group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<&'a str>,
    /// The topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<&'a str>,
    /// The partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<i32>,
    /// The event, or the offset that is read next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<i64>,
    /// The words for a person.
    pub message: &'a str,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'a str>,
    /// What the process answers to its caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
}

impl<'a> Line<'a> {
    /// A line that is about nothing in particular.
    pub fn new(level: Level, message: &'a str) -> Line<'a> {
        Line {
            level,
            event: None,
            group: None,
            topic: None,
            partition: None,
            offset: None,
            message,
            hint: None,
            exit_code: None,
        }
    }
}

#[derive(Serialize)]
struct Told<'a, T> {
    time: &'a str,
    verb: &'a str,
    #[serde(flatten)]
    what: T,
}

/// As [`Line`], from the handler's stderr.
#[derive(Serialize)]
struct FromHandler<'a> {
    from: &'static str,
    event: Option<&'a str>,
    line: &'a str,
}

/// Prints a line on stderr. Where that cannot be written (its reader has gone, its disk is full) nothing can be told, and
/// what was done stays done: the exit code says it.
pub fn say(text: &str) {
    tell(&Line::new(Level::Info, text));
}

/// As [`say`], with what it is about.
pub fn tell(line: &Line<'_>) {
    tell_or(line, || escape_controls(line.message));
}

/// Prints the line as JSON where that is asked for, and else what `text` makes of it, colours and all.
pub fn tell_or(line: &Line<'_>, text: impl FnOnce() -> String) {
    if !tell_json(line) {
        drop(writeln!(anstream::stderr(), "{}", text()));
    }
}

/// Passes a line of a handler's stderr on, with the event it belongs to; false if that is for the caller to do, as text.
pub fn tell_of_handler(event: Option<&str>, line: &str) -> bool {
    tell_json(&FromHandler { from: "handler", event, line })
}

fn tell_json(what: impl Serialize) -> bool {
    let Some((LogFormat::Json, verb)) = TELLS.get() else { return false };
    let time = format_time(now().as_ms());
    let mut line = serde_json::to_vec(&Told { time: &time, verb, what }).expect("it has text keys only");
    line.push(b'\n');
    // One write, so that lines of several threads do not mix.
    drop(std::io::stderr().write_all(&line));
    true
}

/// Text that cannot steer a terminal: control characters other than the end of a line are escaped.
pub fn escape_controls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// Prints notes and warnings.
#[derive(Clone, Copy, Debug)]
pub struct Notes {
    is_quiet: bool,
}

impl Notes {
    /// Notes that are printed, unless `quiet`.
    pub fn new(quiet: bool) -> Notes {
        Notes { is_quiet: quiet }
    }

    /// Something worth knowing, such as how many events were acknowledged.
    pub fn note(self, text: &str) {
        if !self.is_quiet {
            say(text);
        }
    }

    /// Something that may go wrong, such as a directory on a network file system.
    pub fn warn(self, text: &str, hint: &str) {
        if !self.is_quiet {
            let line = Line { hint: Some(hint), ..Line::new(Level::Warning, text) };
            tell_or(&line, || {
                let (text, hint) = (escape_controls(text), escape_controls(hint));
                format!("\x1b[1;33mwarning:\x1b[0m {text}\n\x1b[1;36mhint:\x1b[0m {hint}")
            });
        }
    }
}
