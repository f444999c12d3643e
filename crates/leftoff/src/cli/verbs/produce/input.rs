//! Where lines come from: stdin or a file, read without waiting while something can be passed on.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cli::event_line::{Line, LineReader};
use crate::cli::failure::Failure;

/// How often a reader that waits looks whether it is asked to stop.
const LOOK_FOR_STOP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Lines of a file, a pipe or a terminal.
#[derive(Debug)]
pub struct Input {
    lines: LineReader<File>,
    stop: Arc<AtomicBool>,
}

/// What there is to be read.
#[derive(Debug)]
pub enum Next<'a> {
    /// A line.
    Line(Line<'a>),
    /// Nothing now: pass on what is there, then call [`Input::wait`].
    Nothing,
    /// No more lines, ever.
    End,
    /// A signal asks to stop; what was read and is no whole line is left.
    Stopped,
}

impl Input {
    /// Reads `lines`, until they end or `stop` is set.
    pub fn new(lines: LineReader<File>, stop: Arc<AtomicBool>) -> Input {
        Input { lines, stop }
    }

    /// The next line, if there is one without waiting.
    pub fn next(&mut self) -> Result<Next<'_>, Failure> {
        while !self.lines.has_line() {
            if self.is_stopped() {
                return Ok(Next::Stopped);
            }
            if !self.is_ready(NO_WAIT)? {
                return Ok(Next::Nothing);
            }
            self.lines.fill()?;
        }
        Ok(self.lines.next_line()?.map_or(Next::End, Next::Line))
    }

    /// Takes back the line that was given last.
    pub fn step_back(&mut self) {
        self.lines.step_back();
    }

    /// Waits until there is something to read, or a reason to stop.
    pub fn wait(&mut self) -> Result<(), Failure> {
        while !self.is_stopped() && !self.is_ready(LOOK_FOR_STOP)? {}
        Ok(())
    }

    /// The lines and the place behind the last one that was given out.
    pub fn lines(&self) -> &LineReader<File> {
        &self.lines
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Whether a read returns at once. A file is always ready.
    fn is_ready(&self, wait: Timespec) -> Result<bool, Failure> {
        let fd = self.lines.input().as_fd();
        match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&wait)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => {
                Err(Failure::cannot_reach("cannot wait for the input").because(std::io::Error::from(error)))
            }
        }
    }
}
