//! A handler that is a child process, kept alive.
//!
//! It gets one event at a time on stdin and answers on stdout; see the protocol's table in `protocol.rs`. The handler's
//! thread does all the waiting, with `poll(2)` on the three pipes: so nothing the child does or leaves undone (not reading,
//! flooding stderr, half a line) can block it beyond the time-out, and what the child wrote to stderr before an answer
//! is passed on before that answer counts, with the event it belongs to.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::deadline::{Deadline, TICK};
use super::protocol::{self, Expected};
use super::{Answer, Delivery, Handler, HandlerError};

mod exec;
mod pipes;
mod process;
mod running;
#[cfg(test)]
mod tests;

pub use exec::Exec;
use process::{Process, Said};
pub use running::Running;

/// The longest line that a child may write, in bytes.
pub const MAX_LINE_BYTES: usize = 8 << 20;
/// The most of a stderr line that is passed on, in bytes.
pub const MAX_STDERR_LINE_BYTES: usize = 8 << 10;
/// How long a child that closed its pipes may take to exit before it is killed.
const EXIT_GRACE: Duration = Duration::from_secs(1);
/// So many events at most are named one by one when a pipeline fails.
const NAMED_EVENTS: usize = 8;

/// How a child is started and kept.
pub struct ChildConfig {
    /// The program, looked up in `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The topic's name, for the hello.
    pub topic: String,
    /// The group, for the hello.
    pub group: String,
    /// How long an event may take, the start of the process included; `None`: as long as it wants.
    pub timeout: Option<Duration>,
    /// How many events it may have at a time: more than one only for a handler whose only effect are the records that it
    /// returns. After a failure all that it has is given to it again.
    pub pipeline: usize,
    /// A descriptor for its answers alone, 3 to 9; `LEFTOFF_FD` in its environment names it. What it prints then goes where
    /// its stderr goes. `None`: it answers on stdout.
    pub protocol_fd: Option<u8>,
    /// Where its process is entered for as long as it lives.
    pub running: Running,
    /// How long it may go on with its event after a stop.
    pub drain: Duration,
    /// The flag that asks the runner to stop.
    pub stop: Option<Arc<AtomicBool>>,
    /// A file that the child inherits, under a number of its own: with `flock(2)` held on it, the lock lasts until the last
    /// process that has it is gone, so a runner killed with SIGKILL leaves no old handler working unseen beside a new one.
    pub lock: Option<OwnedFd>,
    /// Where a line of the child's stderr goes.
    pub stderr: StderrTo,
}

/// Takes a line of a child's stderr: the event it belongs to (`quakes/0/41`), or `None` between events; and the line.
pub type StderrTo = Box<dyn FnMut(Option<&str>, &str) + Send>;

/// Passes a line on to this process's stderr, with the event before it.
pub fn to_stderr(event: Option<&str>, line: &str) {
    // Nobody may be there to read it any more; that is no reason to stop.
    drop(
        std::io::stderr().write_all(
            format!(
                "{} | {line}
",
                event.unwrap_or("handler")
            )
            .as_bytes(),
        ),
    );
}

impl ChildConfig {
    /// A child without time-out, with 30 seconds of drain, no lock, and its stderr passed on.
    pub fn new(
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> ChildConfig {
        ChildConfig {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            topic: String::new(),
            group: String::new(),
            timeout: None,
            pipeline: 1,
            protocol_fd: None,
            running: Running::default(),
            drain: Duration::from_secs(30),
            stop: None,
            lock: None,
            stderr: Box::new(to_stderr),
        }
    }
}

impl ChildConfig {
    fn check(&self, deadline: &mut Deadline) -> Result<(), HandlerError> {
        deadline.check(self.timeout, self.drain, self.stop.as_deref())
    }
}

impl fmt::Debug for ChildConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildConfig")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// A child process that handles events.
///
/// After any error the process, and all in its process group, are killed; the next event starts it anew. Dropping it does the same. The program
/// that runs it must ignore SIGPIPE, as Rust programs do by default.
#[derive(Debug)]
pub struct Child {
    config: ChildConfig,
    process: Option<Process>,
    /// The id that was answered last, by this process.
    answered: Option<String>,
    /// It answered the hello, or an event.
    greeted: bool,
    /// It was asked to exit.
    stopping: bool,
    /// What it has, with a pipeline, in the order in which it was given.
    given: VecDeque<Given>,
    tokens: Tokens,
}

/// Words that nobody can guess, one for each delivery. An id that names only place and attempt can be counted on by a handler
/// that has not read its event: the answer would be believed, and the event lost.
#[derive(Debug, Default)]
struct Tokens {
    keys: RandomState,
    drawn: u64,
}

impl Tokens {
    /// The event's name on the wire, with a new token.
    fn id_of(&mut self, delivery: &Delivery<'_>) -> String {
        self.drawn += 1;
        format!("{}.{:016x}", protocol::event_id(delivery), self.keys.hash_one(self.drawn))
    }
}

/// An event that the child has.
#[derive(Debug)]
struct Given {
    token: u64,
    id: String,
    /// Where its line ends among all that is written to this process.
    line_end: u64,
    deadline: Deadline,
}

impl Child {
    /// Starts nothing yet.
    pub fn new(config: ChildConfig) -> Child {
        Child {
            config,
            process: None,
            answered: None,
            greeted: false,
            stopping: false,
            given: VecDeque::new(),
            tokens: Tokens::default(),
        }
    }

    /// The process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// Starts it if it does not run.
    fn run(&mut self) -> Result<(), HandlerError> {
        if self.process.is_none() {
            let mut process = Process::start(&self.config, &[])?;
            process.queue(&protocol::hello(&self.config.topic, &self.config.group));
            (self.process, self.answered, self.greeted) = (Some(process), None, false);
        }
        Ok(())
    }

    fn ask(&mut self, delivery: &Delivery<'_>) -> Result<Answer, HandlerError> {
        let mut deadline = Deadline::new(self.config.timeout);
        let id = self.tokens.id_of(delivery);
        if self.process.is_some() {
            self.between_events().map_err(|error| HandlerError::Between(Box::new(error)))?;
        }
        self.run()?;
        let line_end = self.queue(&protocol::event(&id, delivery));
        let answer = loop {
            if let Some(answer) = self.hear(Some((&id, line_end)), deadline.next_tick())?.answer() {
                break answer;
            }
            self.config.check(&mut deadline)?;
        };
        (self.answered, self.greeted) = (Some(id), true);
        self.second_answer()?;
        Ok(answer)
    }

    fn queue(&mut self, line: &[u8]) -> u64 {
        self.process.as_mut().expect("it runs").queue(line)
    }

    /// The next thing that the child says, with `in_flight` the event that it has and where its line ends.
    fn hear(&mut self, in_flight: Option<(&str, u64)>, deadline: Instant) -> Result<Taken, HandlerError> {
        let process = self.process.as_mut().expect("it runs");
        let label = in_flight.map(|(id, _)| label_of(id));
        let mut error_line = |line: &str| (self.config.stderr)(label, line);
        match process.next_line(deadline, &mut error_line)? {
            None => Ok(Taken::Nothing),
            Some(Said::Closed(_)) if self.stopping => Ok(Taken::Closed),
            Some(Said::Closed(what)) => Err(process.ended(what, EXIT_GRACE, error_line)),
            Some(Said::Line(line)) => {
                // An answer to what it cannot have read is a guess.
                let has = in_flight.filter(|(_, line_end)| process.has_sent(*line_end));
                self.read(&line, has.map(|(id, _)| id))
            }
        }
    }

    fn read(&mut self, line: &[u8], in_flight: Option<&str>) -> Result<Taken, HandlerError> {
        let expected = Expected { in_flight, answered: self.answered.as_deref(), greeted: self.greeted };
        match protocol::answer(line, expected)? {
            Some(answer) => Ok(Taken::Answer(answer)),
            None => {
                self.greeted = true;
                Ok(Taken::Hello)
            }
        }
    }

    /// A line that came along with the answer already.
    fn second_answer(&mut self) -> Result<(), HandlerError> {
        match self.process.as_mut().expect("it has just answered").buffered_line()? {
            None => Ok(()),
            Some(line) => self.read(&line, None).map(|_| ()),
        }
    }

    /// Takes what came since the last answer: stderr is passed on, a line or an end is an error.
    fn between_events(&mut self) -> Result<(), HandlerError> {
        while self.process.is_some() {
            if let Taken::Nothing = self.hear(None, Instant::now())? {
                break;
            }
        }
        Ok(())
    }

    fn wait_for_exit(&mut self, drain: Duration) -> Result<(), HandlerError> {
        self.between_events()?;
        let Some(process) = self.process.as_mut() else { return Ok(()) };
        process.queue(&protocol::stop());
        process.close_input_when_written();
        self.stopping = true;
        let deadline = Instant::now() + drain;
        loop {
            let taken = self.hear(None, deadline.min(Instant::now() + TICK))?;
            let process = self.process.as_mut().expect("it runs until it is reaped");
            match taken {
                // It may exit on the closed input without having read the last line.
                Taken::Closed => {
                    return process.exited_well(deadline.saturating_duration_since(Instant::now()), drain);
                }
                Taken::Nothing if process.has_exited() => return process.exited_well(Duration::ZERO, drain),
                Taken::Nothing if Instant::now() >= deadline => {
                    return Err(HandlerError::DidNotStop { after: drain });
                }
                Taken::Nothing | Taken::Hello | Taken::Answer(_) => {}
            }
        }
    }

    /// An error means that nothing is known of the process any more.
    fn or_kill<T>(&mut self, result: Result<T, HandlerError>) -> Result<T, HandlerError> {
        result.map_err(|error| {
            let error = self.naming_what_it_had(error);
            self.give_back();
            match error {
                HandlerError::NoAnswer { line, why, .. } => {
                    HandlerError::NoAnswer { line, why, on_fd: self.config.protocol_fd }
                }
                error => error,
            }
        })
    }
}

/// What was taken from the child.
enum Taken {
    Answer(Answer),
    Hello,
    /// Only while stopping: at any other time that is an error.
    Closed,
    Nothing,
}

impl Taken {
    fn answer(self) -> Option<Answer> {
        match self {
            Taken::Answer(answer) => Some(answer),
            Taken::Hello | Taken::Closed | Taken::Nothing => None,
        }
    }
}

/// With a pipeline.
impl Child {
    fn give_more(&mut self, token: u64, delivery: &Delivery<'_>) -> Result<(), HandlerError> {
        if self.process.is_some() && self.given.is_empty() {
            self.between_events().map_err(|error| HandlerError::Between(Box::new(error)))?;
        }
        self.run()?;
        let id = self.tokens.id_of(delivery);
        let line_end = self.queue(&protocol::event(&id, delivery));
        self.given.push_back(Given { token, id, line_end, deadline: Deadline::new(self.config.timeout) });
        Ok(())
    }

    fn take_one(&mut self, wait: Duration) -> Result<Option<(u64, Answer)>, HandlerError> {
        let until = Instant::now() + wait;
        loop {
            let first = self.given.front().expect("it is asked for what it has");
            let tick = first.deadline.next_tick().min(until);
            let label = label_of(&first.id);
            let process = self.process.as_mut().expect("it runs, since it has something");
            let mut error_line = |line: &str| (self.config.stderr)(Some(label), line);
            let line = match process.next_line(tick, &mut error_line)? {
                Some(Said::Line(line)) => line,
                Some(Said::Closed(what)) => return Err(process.ended(what, EXIT_GRACE, error_line)),
                None => {
                    self.config.check(&mut self.given[0].deadline)?;
                    if Instant::now() >= until {
                        return Ok(None);
                    }
                    continue;
                }
            };
            if let Some(answered) = self.read_any(&line)? {
                return Ok(Some(answered));
            }
        }
    }

    /// An answer to any of the events that it has; `None` is one to the hello.
    fn read_any(&mut self, line: &[u8]) -> Result<Option<(u64, Answer)>, HandlerError> {
        let parsed = protocol::Parsed::new(line)?;
        let process = self.process.as_ref().expect("it has just said something");
        let is_meant =
            |given: &Given| Some(given.id.as_str()) == parsed.id() && process.has_sent(given.line_end);
        let at = self.given.iter().position(is_meant);
        let expected = Expected {
            in_flight: at.map(|at| self.given[at].id.as_str()),
            answered: self.answered.as_deref(),
            greeted: self.greeted,
        };
        let answer = parsed.answer(expected)?;
        self.greeted = true;
        let Some(answer) = answer else { return Ok(None) };
        let given = at.and_then(|at| self.given.remove(at)).expect("the answer names what it has");
        // How long the next one takes is counted from here: it had to wait for this one.
        if let Some(next) = self.given.front_mut() {
            next.deadline.begin_anew(self.config.timeout);
        }
        self.answered = Some(given.id);
        Ok(Some((given.token, answer)))
    }

    /// Says what it had, where that is more than one event.
    fn naming_what_it_had(&self, error: HandlerError) -> HandlerError {
        let (Some(first), Some(last)) = (self.given.front(), self.given.back()) else { return error };
        if self.given.len() == 1 || matches!(error, HandlerError::GivenBack { .. } | HandlerError::Between(_))
        {
            return error;
        }
        let had = match self.given.len() {
            many if many > NAMED_EVENTS => {
                format!("{many} events: {} and others up to {}", label_of(&first.id), label_of(&last.id))
            }
            few => {
                let names: Vec<_> = self.given.iter().map(|given| label_of(&given.id)).collect();
                format!("{few} events: {}", names.join(", "))
            }
        };
        HandlerError::Pipelined { error: Box::new(error), had }
    }
}

/// The place of an event, as it is named for a person.
fn label_of(id: &str) -> &str {
    id.rsplit_once('#').map_or(id, |(label, _)| label)
}

impl Handler for Child {
    fn start(&mut self) -> Result<(), HandlerError> {
        self.run()
    }

    fn depth(&self) -> usize {
        self.config.pipeline
    }

    fn give(&mut self, token: u64, delivery: &Delivery<'_>) -> Result<(), HandlerError> {
        let given = self.give_more(token, delivery);
        self.or_kill(given)
    }

    fn take(&mut self, wait: Duration) -> Result<Option<(u64, Answer)>, HandlerError> {
        let taken = self.take_one(wait);
        self.or_kill(taken)
    }

    fn give_back(&mut self) {
        (self.process, self.answered) = (None, None);
        self.given.clear();
    }

    fn handle(&mut self, delivery: &Delivery<'_>) -> Result<Answer, HandlerError> {
        let answer = self.ask(delivery);
        self.or_kill(answer)
    }

    fn idle(&mut self) -> Result<(), HandlerError> {
        let quiet = self.between_events();
        self.or_kill(quiet)
    }

    fn stop(&mut self, drain: Duration) -> Result<(), HandlerError> {
        let ended = self.wait_for_exit(drain);
        (self.process, self.stopping) = (None, false);
        ended
    }
}
