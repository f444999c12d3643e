//! How a verb fails: an exit code for scripts, a message that names the value, and one hint what to do.

use std::fmt;
use std::io;
use std::process::ExitCode;

use super::notes::{Level, Line, escape_controls, tell_or};

/// Why the command ends without having done its work. Scripts rely on the numbers (README, "Exit codes").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Something was lost, handled twice, out of order or not finished, or a handler failed.
    CheckFailed = 1,
    /// The command line or its input is wrong; nothing was changed by the wrong part.
    Usage = 2,
    /// The data directory, topic or group cannot be reached, or another process holds it.
    CannotReach = 3,
    /// Refused because events could be lost or repeated; the hint says how to go on.
    Refused = 4,
    /// The disk failed, is full, or holds damaged bytes.
    Storage = 5,
    /// SIGINT or SIGTERM came before the work was done; what was begun is finished and told.
    Interrupted = 130,
}

/// A failure as a person reads it: `error: MESSAGE`, then `hint: HINT`.
#[derive(Debug)]
pub struct Failure {
    reason: Reason,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

#[derive(Debug)]
enum Reason {
    /// The reader of our stdout has gone. That is its choice and no error (`leftoff consume t | head`).
    ReaderGone,
    Exit(Exit),
}

impl Failure {
    /// A failure with `message`: lower case, no full stop, naming the value.
    pub fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { reason: Reason::Exit(exit), message: message.into(), hint: None, source: None }
    }

    /// [`Exit::CheckFailed`] with `message`.
    pub fn check_failed(message: impl Into<String>) -> Failure {
        Failure::new(Exit::CheckFailed, message)
    }

    /// [`Exit::Usage`] with `message`.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// [`Exit::CannotReach`] with `message`.
    pub fn cannot_reach(message: impl Into<String>) -> Failure {
        Failure::new(Exit::CannotReach, message)
    }

    /// [`Exit::Refused`] with `message`.
    pub fn refused(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Refused, message)
    }

    /// [`Exit::Storage`] with `message`.
    pub fn storage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Storage, message)
    }

    /// A write to our own stdout failed: quiet if the reader closed the pipe, else [`Exit::Storage`].
    ///
    /// Only for stdout: a closed pipe to a handler or a broken socket is a failure like any other, so there
    /// is no blanket conversion from [`io::Error`].
    pub fn stdout(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure { reason: Reason::ReaderGone, message: String::new(), hint: None, source: None };
        }
        Failure::storage(format!("cannot write to stdout: {error}"))
            .hint("free some space, or write elsewhere")
    }

    /// Adds what to do next, in one line.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the hint if there is one.
    pub fn maybe_hint(mut self, hint: Option<String>) -> Failure {
        self.hint = hint.or(self.hint);
        self
    }

    /// Says more about what happened, behind the message.
    pub fn also(mut self, more: &str) -> Failure {
        self.message.push_str("; ");
        self.message.push_str(more);
        self
    }

    /// Keeps the error underneath; its chain is printed with `-v`.
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
        self.source = Some(source.into());
        self
    }

    /// What the process answers to its caller.
    pub fn exit_code(&self) -> u8 {
        match self.reason {
            Reason::ReaderGone => 0,
            Reason::Exit(exit) => exit as u8,
        }
    }

    /// The lines for stderr without colour: the message, the causes where asked for, the hint.
    pub fn lines(&self, with_causes: bool) -> Vec<(&'static str, String)> {
        if matches!(self.reason, Reason::ReaderGone) {
            return Vec::new();
        }
        let mut lines = vec![("error", self.message.clone())];
        if with_causes {
            let first = self.source.as_deref().map(|source| source as &dyn std::error::Error);
            let causes = std::iter::successors(first, |error| error.source());
            lines.extend(causes.map(|error| ("cause", error.to_string())));
        }
        lines.extend(self.hint.iter().map(|hint| ("hint", hint.clone())));
        lines
    }

    /// Prints the failure to stderr and gives the exit code. Colour only where stderr is a terminal that
    /// wants it.
    pub fn report(&self, with_causes: bool) -> ExitCode {
        let lines = self.lines(with_causes);
        let Some((_, message)) = lines.first() else { return ExitCode::from(self.exit_code()) };
        let causes = lines[1..].iter().filter(|(label, _)| *label == "cause").map(|(_, text)| text.as_str());
        let message = std::iter::once(message.as_str()).chain(causes).collect::<Vec<_>>().join(": ");
        let (hint, exit_code) = (self.hint.as_deref(), Some(self.exit_code()));
        let event = Some("failed");
        tell_or(&Line { event, hint, exit_code, ..Line::new(Level::Error, &message) }, || {
            let line = |(label, text): &(&str, String)| {
                let style = if *label == "error" { "\x1b[1;31m" } else { "\x1b[1;36m" };
                format!("{style}{label}:\x1b[0m {}", escape_controls(text))
            };
            lines.iter().map(line).collect::<Vec<_>>().join("\n")
        });
        ExitCode::from(self.exit_code())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests;
