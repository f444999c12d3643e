//! What a person should know and a script need not: lines on stderr beside the result, silent with `-q`.

use std::io::Write;

/// Prints a line on stderr. Where that cannot be written (its reader has gone, its disk is full) nothing can be told, and
/// what was done stays done: the exit code says it.
pub fn say(text: &str) {
    drop(writeln!(anstream::stderr(), "{text}"));
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
            say(&format!("\x1b[1;33mwarning:\x1b[0m {text}\n\x1b[1;36mhint:\x1b[0m {hint}"));
        }
    }
}
