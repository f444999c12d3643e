//! One process, its three pipes, and its end.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::pipes::{Lines, set_nonblocking};
use super::{ChildConfig, HandlerError, MAX_LINE_BYTES, MAX_STDERR_LINE_BYTES, Running};
use crate::{shorten, visible};

/// How often it is looked whether a process that should exit has.
const EXIT_CHECK: Duration = Duration::from_millis(5);
/// The most of stderr that is passed on before stdout gets its turn, in reads.
const STDERR_READS_PER_TURN: usize = 16;
/// The lock is handed on under a number from here on, so that `--protocol-fd` takes none of its numbers away.
const FIRST_LOCK_FD: i32 = 20;

/// A process that runs. Killed with its process group, and reaped, when dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: std::process::Child,
    pid: Pid,
    input: Option<ChildStdin>,
    /// To be written; `written` of it are.
    pending: Vec<u8>,
    written: usize,
    /// Bytes that were written and are not among `pending` any more.
    sent_bytes: u64,
    close_input: bool,
    running: Running,
    output: Lines<ChildStdout>,
    errors: Lines<ChildStderr>,
    /// The rest of a stderr line that was too long is dropped.
    skip_error_line: bool,
    /// From then on its number may be another's.
    reaped: bool,
}

/// What came from the process.
#[derive(Debug)]
pub(super) enum Said {
    /// A line on stdout.
    Line(Vec<u8>),
    /// It closed `output`, or does not read its `input` any more.
    Closed(&'static str),
}

impl Process {
    /// Starts the program with some more variables in its environment.
    pub(super) fn start(config: &ChildConfig, env: &[(&str, String)]) -> Result<Process, HandlerError> {
        let started = config
            .running
            .start(|| Self::spawn(config, env))
            .and_then(|child| Self::over(child, config.running.clone()));
        let command = config.program.to_string_lossy().into_owned();
        started.map_err(|error| HandlerError::Start { command, error })
    }

    fn spawn(config: &ChildConfig, env: &[(&str, String)]) -> io::Result<std::process::Child> {
        // A copy without close-on-exec, for the time of the start only. Another process that another thread starts in this
        // moment would get it, too, and keep the lock for its life: it fails on the safe side.
        let _lent = config.lock.as_ref().map(lend).transpose()?;
        Self::command(config)?
            .env_remove("LEFTOFF_KEY")
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the runner, which then stops it cleanly. And what it starts itself ends with it.
            .process_group(0)
            .spawn()
    }

    /// With a descriptor of its own for answers, a shell moves it there and becomes the program: our end of its stdout is
    /// then where the answers come, and what the program prints goes where its stderr goes. That needs neither unsafe code
    /// nor a crate that has it, and the shell is gone before the program runs.
    fn command(config: &ChildConfig) -> io::Result<Command> {
        let Some(fd) = config.protocol_fd else {
            let mut command = Command::new(&config.program);
            command.args(&config.args).env_remove("LEFTOFF_FD");
            return Ok(command);
        };
        find_program(Path::new(&config.program))?;
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(format!("exec \"$@\" {fd}>&1 1>&2")).arg("sh");
        shell.arg(&config.program).args(&config.args).env("LEFTOFF_FD", fd.to_string());
        Ok(shell)
    }

    fn over(mut child: std::process::Child, running: Running) -> io::Result<Process> {
        let pid = Pid::from_child(&child);
        let input = child.stdin.take().expect("stdin is piped");
        let output = child.stdout.take().expect("stdout is piped");
        let errors = child.stderr.take().expect("stderr is piped");
        let piped = set_nonblocking(&input)
            .and_then(|()| Lines::new(output))
            .and_then(|output| Lines::new(errors).map(|errors| (output, errors)));
        match piped {
            Ok((output, errors)) => Ok(Process {
                child,
                pid,
                input: Some(input),
                pending: Vec::new(),
                written: 0,
                sent_bytes: 0,
                close_input: false,
                running,
                output,
                errors,
                skip_error_line: false,
                reaped: false,
            }),
            Err(error) => {
                kill_and_reap(&mut child, pid, &running);
                Err(error)
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// To be written while waiting for lines. Returns the place behind it among all bytes: see [`Process::has_sent`].
    pub(super) fn queue(&mut self, line: &[u8]) -> u64 {
        self.pending.extend_from_slice(line);
        self.sent_bytes + self.pending.len() as u64
    }

    /// Whether all up to this place is in the pipe. What is not cannot have been answered.
    pub(super) fn has_sent(&self, place: u64) -> bool {
        self.sent_bytes + self.written as u64 >= place
    }

    /// Nobody has to read what was queued.
    pub(super) fn close_input(&mut self) {
        (self.input, self.written) = (None, 0);
        self.pending.clear();
    }

    /// What it has not ended a line of.
    pub(super) fn take_unfinished(&mut self) -> Vec<u8> {
        self.output.take_unfinished(MAX_LINE_BYTES)
    }

    pub(super) fn close_input_when_written(&mut self) {
        self.close_input = true;
    }

    /// A line that was read already.
    pub(super) fn buffered_line(&mut self) -> Result<Option<Vec<u8>>, HandlerError> {
        let line = self.output.line();
        match line {
            Some(line) if line.len() <= MAX_LINE_BYTES => Ok(Some(line)),
            Some(line) => Err(too_long(&line)),
            None if self.output.unfinished().len() > MAX_LINE_BYTES => {
                Err(too_long(self.output.unfinished()))
            }
            None => Ok(None),
        }
    }

    /// Writes, reads and passes stderr on until there is a line, an end, or the deadline (`None`). With a deadline that has
    /// passed it does what can be done without waiting.
    pub(super) fn next_line(
        &mut self,
        deadline: Instant,
        mut error_line: impl FnMut(&str),
    ) -> Result<Option<Said>, HandlerError> {
        loop {
            let broken = self.write()?;
            // First stderr, then stdout: what was said before an answer comes before it.
            self.pass_errors_on(&mut error_line)?;
            if let Some(line) = self.buffered_line()? {
                return Ok(Some(Said::Line(line)));
            }
            if self.output.fill().map_err(io_error("reading from the handler"))? {
                continue;
            }
            if self.output.pipe.is_none() {
                return Ok(Some(Said::Closed("output")));
            }
            if broken {
                return Ok(Some(Said::Closed("input")));
            }
            let wait = deadline.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                // One that it started itself may still hold the pipe, and would keep us waiting for ever.
                let exited = self.has_exited();
                if exited && self.output.fill().map_err(io_error("reading from the handler"))? {
                    continue;
                }
                return Ok(exited.then_some(Said::Closed("output")));
            }
            self.wait(wait)?;
        }
    }

    /// Writes what the pipe takes. True if nobody reads it any more.
    fn write(&mut self) -> Result<bool, HandlerError> {
        while self.written < self.pending.len() {
            let Some(input) = self.input.as_mut() else { return Ok(true) };
            match input.write(&self.pending[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(false),
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::BrokenPipe => return Ok(true),
                    _ => return Err(io_error("writing to the handler")(error)),
                },
            }
        }
        self.sent_bytes += self.written as u64;
        self.pending.clear();
        self.written = 0;
        if self.close_input {
            self.input = None;
        }
        Ok(false)
    }

    fn pass_errors_on(&mut self, error_line: &mut impl FnMut(&str)) -> Result<(), HandlerError> {
        for _ in 0..STDERR_READS_PER_TURN {
            let more = self.errors.fill().map_err(io_error("reading the handler's stderr"))?;
            while let Some(line) = self.errors.line() {
                if !std::mem::take(&mut self.skip_error_line) {
                    pass_on(&line, error_line);
                }
            }
            let ended = self.errors.pipe.is_none() && !self.errors.unfinished().is_empty();
            if ended || self.errors.unfinished().len() > MAX_STDERR_LINE_BYTES {
                let line = self.errors.take_unfinished(MAX_STDERR_LINE_BYTES + 1);
                if !std::mem::replace(&mut self.skip_error_line, true) {
                    pass_on(&line, error_line);
                }
            }
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn wait(&mut self, at_most: Duration) -> Result<(), HandlerError> {
        let mut fds = Vec::with_capacity(3);
        if let Some(output) = &self.output.pipe {
            fds.push(PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN));
        }
        if let Some(errors) = &self.errors.pipe {
            fds.push(PollFd::from_borrowed_fd(errors.as_fd(), PollFlags::IN));
        }
        if let Some(input) = self.input.as_ref().filter(|_| !self.pending.is_empty()) {
            fds.push(PollFd::from_borrowed_fd(input.as_fd(), PollFlags::OUT));
        }
        let timeout = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: at_most.subsec_nanos().into() };
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(io_error("waiting for the handler")(error.into())),
        }
    }

    /// Why a process that closed a pipe did so: most have exited, or are about to.
    pub(super) fn ended(
        &mut self,
        closed: &'static str,
        grace: Duration,
        mut error_line: impl FnMut(&str),
    ) -> HandlerError {
        let exited = self.exits_within(grace);
        // Its last words, a stack trace as a rule, are what a person needs now.
        if let Err(error) = self.pass_errors_on(&mut error_line) {
            return error;
        }
        if !exited {
            return HandlerError::Closed(closed);
        }
        let unfinished = shorten(self.output.unfinished());
        match self.reap() {
            Ok(status) => HandlerError::Ended { how: how(status), unfinished },
            Err(error) => io_error("waiting for the handler's end")(error),
        }
    }

    /// Waits for the end that was asked for.
    pub(super) fn exited_well(&mut self, at_most: Duration, given: Duration) -> Result<(), HandlerError> {
        if !self.exits_within(at_most) {
            return Err(HandlerError::DidNotStop { after: given });
        }
        match self.reap().map_err(io_error("waiting for the handler's end"))? {
            status if status.success() => Ok(()),
            status => Err(HandlerError::Ended { how: how(status), unfinished: String::new() }),
        }
    }

    fn exits_within(&self, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        while !self.has_exited() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(EXIT_CHECK);
        }
        true
    }

    /// Looks without reaping: while the process is not reaped, its number cannot be another's.
    pub(super) fn has_exited(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(rustix::process::waitid(WaitId::Pid(self.pid), look), Ok(None))
    }

    /// The end of a command that is expected to end: `None` if all is well, else how it ended.
    pub(super) fn ended_within(
        &mut self,
        deadline: Instant,
        error_line: &mut impl FnMut(&str),
    ) -> Result<Option<Option<String>>, HandlerError> {
        if !self.exits_within(deadline.saturating_duration_since(Instant::now())) {
            return Ok(None);
        }
        self.pass_errors_on(error_line)?;
        let status = self.reap().map_err(io_error("waiting for the handler's end"))?;
        Ok(Some((!status.success()).then(|| how(status))))
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        kill_group(self.pid);
        self.running.forget(self.pid);
        self.reaped = true;
        self.child.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.reaped {
            kill_and_reap(&mut self.child, self.pid, &self.running);
        }
    }
}

/// A copy of a descriptor that a process which starts now inherits.
fn lend(lock: &OwnedFd) -> io::Result<OwnedFd> {
    let copy = rustix::io::fcntl_dupfd_cloexec(lock, FIRST_LOCK_FD)?;
    rustix::io::fcntl_setfd(&copy, rustix::io::FdFlags::empty())?;
    Ok(copy)
}

/// Fails as the start of the program would, which the shell between us could say only with its exit code.
fn find_program(program: &Path) -> io::Result<()> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let found = if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        std::fs::metadata(program)?;
        is_program(program)
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).any(|folder| is_program(&folder.join(program)));
        if !found {
            return Err(rustix::io::Errno::NOENT.into());
        }
        found
    };
    if found { Ok(()) } else { Err(rustix::io::Errno::ACCESS.into()) }
}

fn kill_and_reap(child: &mut std::process::Child, pid: Pid, running: &Running) {
    kill_group(pid);
    running.forget(pid);
    // Neither can fail for a child of ours that is not reaped; and if it did, there would be nothing left to try.
    let _ = child.kill();
    let _ = child.wait();
}

/// The process and what it started, while its number is certainly its own.
pub(super) fn kill_group(pid: Pid) {
    // Fails only if the whole group is gone, which is what is wanted.
    let _ = rustix::process::kill_process_group(pid, Signal::KILL);
}

fn pass_on(line: &[u8], error_line: &mut impl FnMut(&str)) {
    let shown = String::from_utf8_lossy(&line[..line.len().min(MAX_STDERR_LINE_BYTES)]);
    // It may go to a terminal, which would obey what is in it.
    let shown = visible(&shown, MAX_STDERR_LINE_BYTES);
    if line.len() > MAX_STDERR_LINE_BYTES {
        error_line(&format!("{shown}… (cut)"));
    } else {
        error_line(&shown);
    }
}

fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => format!("ended: {status}"),
    }
}

fn too_long(line: &[u8]) -> HandlerError {
    HandlerError::TooLong { limit_bytes: MAX_LINE_BYTES, line: shorten(line) }
}

fn io_error(what: &'static str) -> impl Fn(io::Error) -> HandlerError {
    move |error| HandlerError::Io { what, error }
}
