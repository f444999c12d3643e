//! `leftoff demo`: the lesson, on a real log, with processes that are really killed.
//!
//! Nothing is staged. Each consumer is this binary started anew ([`consumer`]); it tells on a pipe what it does and asks
//! before it passes its crash point, where it is killed with SIGKILL. The last line comes from the audit.

pub mod consumer;
mod effects;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use leftoff::{Leftoff, Offset, Record};
use leftoff_audit::effects::{EffectFile, NameBy};
use leftoff_audit::{
    Effect, Evidence, Limits, LogEntry, LogEvent, PartitionFacts, Question, Seen, SourceError, Stream,
};

use crate::cli::args::demo::{Crash, DemoArgs};
use crate::cli::failure::Failure;

/// The demo's topic, with one partition.
const TOPIC: &str = "lesson";
/// The demo's group.
const GROUP: &str = "demo";
/// Events that go into one batch.
const EVENTS_PER_BATCH: u64 = 1000;

/// Runs the demo; exit 1 when the audit finds something.
pub fn demo(args: &DemoArgs) -> Result<(), Failure> {
    let crash_at = args.crash_at()?;
    let place = Place::make(args.keep.as_deref())?;
    let log = Leftoff::open(place.log()).map_err(storage)?;
    append_events(&log, args.events)?;
    log.close().map_err(storage)?;

    let crashing = Consumer { number: 1, args, place: &place, crash: Some((crash_at, args.crash)) };
    crashing.run()?;
    Consumer { number: 2, crash: None, ..crashing }.run()?;
    print(&format!("handled: {}", leftoff_audit::python_list(&effects::ids(&place.effects())?)))?;
    Consumer { number: 3, crash: None, ..crashing }.run()?;
    let verdict = audit(&place, args.events)?;
    print(&verdict.last_line())?;
    if verdict.clean() {
        Ok(())
    } else {
        Err(Failure::check_failed("the audit of the log against the effects found something"))
    }
}

fn append_events(log: &Leftoff, events: u64) -> Result<(), Failure> {
    log.create_topic(TOPIC, 1).map_err(storage)?;
    let mut first = 1;
    while first <= events {
        let last = events.min(first + EVENTS_PER_BATCH - 1);
        let ids: Vec<String> = (first..=last).map(|number| format!("e{number}")).collect();
        let records: Vec<Record<'_>> = ids.iter().map(|id| Record::value(id).key(id)).collect();
        log.append(TOPIC, 0, &records).map_err(storage)?;
        first = last + 1;
    }
    Ok(())
}

/// Where the demo's log and effects are; taken away at the end unless they are to be kept.
struct Place {
    root: PathBuf,
    keep: bool,
}

impl Place {
    fn make(keep: Option<&Path>) -> Result<Place, Failure> {
        let root = match keep {
            Some(dir) => dir.to_owned(),
            None => std::env::temp_dir().join(format!("leftoff-demo-{}", leftoff::store::random_id())),
        };
        let used = root.read_dir().is_ok_and(|mut entries| entries.next().is_some());
        if used {
            return Err(Failure::usage(format!("--keep {}: the directory is not empty", root.display()))
                .hint("name a new one, or remove what is in it"));
        }
        let place = Place { keep: keep.is_some(), root };
        std::fs::create_dir_all(&place.root)
            .map_err(|error| Failure::storage(format!("cannot make {}: {error}", place.root.display())))?;
        effects::create(&place.effects())?;
        Ok(place)
    }

    fn log(&self) -> PathBuf {
        self.root.join("log")
    }

    fn effects(&self) -> PathBuf {
        self.root.join("effects.txt")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.keep
            && let Err(error) = std::fs::remove_dir_all(&self.root)
        {
            crate::cli::notes::say(&format!("could not remove {}: {error}", self.root.display()));
        }
    }
}

/// One consumer process, seen from here.
#[derive(Clone, Copy)]
struct Consumer<'a> {
    number: u32,
    args: &'a DemoArgs,
    place: &'a Place,
    /// At which offset, and where within its handling, it is killed.
    crash: Option<(Offset, Crash)>,
}

impl Consumer<'_> {
    fn run(&self) -> Result<(), Failure> {
        let mut process = Process::start(self)?;
        let number = self.number;
        while let Some(said) = process.said()? {
            match said {
                consumer::Said::Start(offset) => {
                    print(&format!("consumer {number} starts at offset {offset}"))?
                }
                consumer::Said::AtCrashPoint(offset) => {
                    process.kill()?;
                    return print(&format!("consumer {number} crashes at offset {offset}"));
                }
                consumer::Said::Done(saved) => {
                    print(&format!("consumer {number} is done | saved offset: {saved}"))?;
                }
            }
        }
        process.wait()
    }

    fn command(&self) -> Result<Command, Failure> {
        let binary = std::env::current_exe().map_err(|error| {
            Failure::storage(format!("cannot find this program to start a consumer: {error}"))
        })?;
        let mut command = Command::new(binary);
        command.arg("demo-consumer");
        command.arg("--log").arg(self.place.log()).arg("--effects").arg(self.place.effects());
        command
            .arg("--save")
            .arg(value_name(&self.args.save))
            .arg("--dedupe")
            .arg(value_name(&self.args.dedupe));
        if let Some((offset, when)) = self.crash {
            command.arg("--stop-at").arg(offset.to_string()).arg("--stop").arg(value_name(&when));
        }
        Ok(command)
    }
}

fn value_name(value: &impl clap::ValueEnum) -> String {
    value.to_possible_value().expect("no value of the demo's is hidden").get_name().to_owned()
}

/// A started consumer; killed if it is dropped before its end.
struct Process {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn start(consumer: &Consumer<'_>) -> Result<Process, Failure> {
        // Its standard input is a pipe that nothing is written to: at its crash point it reads, and waits to be killed.
        let started = consumer.command()?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child =
            started.map_err(|error| Failure::storage(format!("cannot start a consumer: {error}")))?;
        let stdout = child.stdout.take().expect("stdout is piped");
        Ok(Process { child, said: BufReader::new(stdout) })
    }

    fn said(&mut self) -> Result<Option<consumer::Said>, Failure> {
        let mut line = String::new();
        let got = self
            .said
            .read_line(&mut line)
            .map_err(|error| Failure::storage(format!("a consumer: {error}")))?;
        if got == 0 {
            return Ok(None);
        }
        consumer::Said::parse(line.trim_end())
            .map(Some)
            .ok_or_else(|| Failure::storage(format!("a consumer said {:?}", line.trim_end())))
    }

    fn kill(&mut self) -> Result<(), Failure> {
        // SIGKILL: the process has no chance to save anything.
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map(drop).map_err(|error| Failure::storage(format!("cannot kill the consumer: {error}")))
    }

    fn wait(&mut self) -> Result<(), Failure> {
        let status = self.child.wait().map_err(|error| Failure::storage(format!("a consumer: {error}")))?;
        if status.success() {
            Ok(())
        } else {
            Err(Failure::storage(format!("a consumer ended with {status}")))
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already ended in every case but an error of ours; then the error is what matters.
        if self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}

fn audit(place: &Place, events: u64) -> Result<leftoff_audit::Verdict, Failure> {
    let log = Leftoff::open(place.log()).map_err(storage)?;
    let saved_next = log.committed(GROUP, TOPIC, 0).map(|committed| committed.next().get());
    let effects = EffectFile::open(&place.effects(), NameBy::Line { topic_id: String::new() })
        .map_err(|error| Failure::storage(error.to_string()))?;
    let end = i64::try_from(events).expect("the number of events fits");
    let facts = [PartitionFacts { partition: 0, log_start: 0, end, saved_next }];
    let question = Question { topic: TOPIC, partitions: &facts };
    leftoff_audit::audit(&question, &Limits::default(), &mut Lesson { log, effects })
        .map_err(|error| Failure::storage(error.to_string()))
}

/// The log and the effects, for the audit.
struct Lesson {
    log: Leftoff,
    effects: EffectFile,
}

impl Evidence for Lesson {
    fn log(&mut self) -> Result<Stream<'_, LogEntry>, SourceError> {
        let log = self.log.clone();
        let mut from = Offset::ZERO;
        let chunks = std::iter::from_fn(move || match log.read(TOPIC, 0, from) {
            Ok(chunk) if chunk.next == from => None,
            Ok(chunk) => {
                from = chunk.next;
                let entries = chunk.events.into_iter().map(|event| {
                    let id = event.key.map(|key| String::from_utf8_lossy(&key).into_owned());
                    Ok(LogEntry::Event(LogEvent { partition: 0, offset: event.offset.get(), id }))
                });
                Some(entries.collect::<Vec<_>>())
            }
            Err(error) => Some(vec![Err(error.into())]),
        });
        Ok(Box::new(chunks.flatten()))
    }

    fn effects(&mut self) -> Result<Stream<'_, Seen<Effect>>, SourceError> {
        Ok(Box::new(self.effects.lines()?.map(|line| line.map_err(Into::into))))
    }
}

fn print(line: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(Failure::stdout)
}

fn storage(error: leftoff::Error) -> Failure {
    Failure::storage(error.to_string())
}
