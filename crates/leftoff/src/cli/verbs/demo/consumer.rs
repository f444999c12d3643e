//! One consumer of the demo: `leftoff demo-consumer`, started by `leftoff demo` and by nobody else.
//!
//! It has the whole lesson in it: it starts where the group left off, handles each event, and saves the offset after
//! that (or, to show what is wrong with it, before).

use std::collections::HashSet;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use leftoff::consumer::source::{Event, PartitionId, Save as SaveOffset, Source, SourceError, SourceEvent};
use leftoff::source::StoreSource;
use leftoff::store::{OpenOptions, Store};
use leftoff::{Committed, Offset};

use super::effects::{self, Effects};
use super::{GROUP, TOPIC};
use crate::cli::args::demo::{Crash, Save, Switch};
use crate::cli::failure::Failure;

/// `leftoff demo-consumer`
#[derive(Args, Clone, Debug)]
pub struct ConsumerArgs {
    /// The log's directory
    #[arg(long)]
    log: PathBuf,
    /// The file of effects
    #[arg(long)]
    effects: PathBuf,
    #[arg(long, value_enum)]
    save: Save,
    #[arg(long, value_enum)]
    dedupe: Switch,
    /// Stop at this offset and wait to be killed
    #[arg(long)]
    stop_at: Option<u64>,
    #[arg(long, value_enum, default_value_t = Crash::Before)]
    stop: Crash,
}

/// What a consumer says on its standard output, a line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It starts at this offset.
    Start(i64),
    /// It has come to its crash point, at this offset, and waits.
    AtCrashPoint(i64),
    /// Nothing is left; the last handled offset as saved, -1 for none.
    Done(i64),
}

impl Said {
    /// Reads a line back.
    pub fn parse(line: &str) -> Option<Said> {
        let (word, number) = line.split_once(' ')?;
        let number = number.parse().ok()?;
        match word {
            "start" => Some(Said::Start(number)),
            "crash-point" => Some(Said::AtCrashPoint(number)),
            "done" => Some(Said::Done(number)),
            _ => None,
        }
    }

    fn say(self) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        let said = match self {
            Said::Start(number) => writeln!(stdout, "start {number}"),
            Said::AtCrashPoint(number) => writeln!(stdout, "crash-point {number}"),
            Said::Done(number) => writeln!(stdout, "done {number}"),
        };
        said.and_then(|()| stdout.flush()).map_err(Failure::stdout)
    }
}

/// Handles what is left, from where the group left off.
pub fn consume(args: &ConsumerArgs) -> Result<(), Failure> {
    let options = OpenOptions { verb: "demo".to_owned(), ..OpenOptions::default() };
    let store = Store::open(&args.log, &options).map_err(|error| Failure::storage(error.to_string()))?;
    let source = StoreSource::join(&store, GROUP, &[TOPIC.to_owned()], "demo", Default::default())
        .map_err(|error| Failure::storage(error.to_string()))?;
    // A consumer forgets in a crash what it has handled; the file remembers.
    let done = match args.dedupe {
        Switch::On => effects::ids(&args.effects)?.into_iter().collect(),
        Switch::Off => HashSet::new(),
    };
    let consumer = Consumer { args, source, effects: Effects::open(&args.effects)?, done, saved: None };
    consumer.run()?;
    store.close().map_err(|error| Failure::storage(error.to_string()))
}

struct Consumer<'a> {
    args: &'a ConsumerArgs,
    source: StoreSource,
    effects: Effects,
    /// Ids that have their effect already.
    done: HashSet<String>,
    saved: Option<Committed>,
}

impl Consumer<'_> {
    fn run(mut self) -> Result<(), Failure> {
        loop {
            match self.source.poll(Duration::ZERO).map_err(source_failed)? {
                SourceEvent::Assigned { id, committed, log_start, .. } => {
                    self.saved = committed;
                    let start = committed.map_or(log_start, Committed::next);
                    Said::Start(start.get()).say()?;
                    self.source.seek(id, start).map_err(source_failed)?;
                }
                SourceEvent::Batch { id, events, .. } => {
                    for event in &events {
                        self.take(id, event)?;
                    }
                }
                SourceEvent::End { .. } => break,
                other => return Err(Failure::storage(format!("the demo's log said {other:?}"))),
            }
        }
        let last_handled = self.saved.and_then(Committed::before).map_or(-1, Offset::get);
        Said::Done(last_handled).say()?;
        self.source.leave().map_err(|error| Failure::storage(error.to_string()))
    }

    fn take(&mut self, id: PartitionId, event: &Event) -> Result<(), Failure> {
        self.crash_point(event, Crash::Before)?;
        match self.args.save {
            Save::After => self.handle(event)?,
            Save::Before => self.save(id, event)?,
        }
        self.crash_point(event, Crash::Between)?;
        match self.args.save {
            Save::After => self.save(id, event)?,
            Save::Before => self.handle(event)?,
        }
        self.crash_point(event, Crash::After)
    }

    fn handle(&mut self, event: &Event) -> Result<(), Failure> {
        let id = String::from_utf8_lossy(event.value.as_deref().unwrap_or_default()).into_owned();
        if self.args.dedupe == Switch::On && self.done.contains(&id) {
            return Ok(());
        }
        self.effects
            .add(&id)
            .map_err(|error| Failure::storage(format!("cannot write an effect: {error}")))?;
        self.done.insert(id);
        Ok(())
    }

    fn save(&mut self, id: PartitionId, event: &Event) -> Result<(), Failure> {
        let committed = Committed::after(event.offset);
        let save = SaveOffset {
            id,
            ownership: leftoff::source::OWNERSHIP,
            committed,
            leader_epoch: event.leader_epoch,
            metadata: String::new(),
            decision: None,
            dead: None,
        };
        self.source.save(&[save]).map_err(source_failed)?;
        self.saved = Some(committed);
        Ok(())
    }

    /// Says so and waits to be killed, if this is the place.
    fn crash_point(&self, event: &Event, here: Crash) -> Result<(), Failure> {
        let offset = event.offset.get();
        if self.args.stop == here
            && self.args.stop_at.is_some_and(|stop_at| Ok(offset) == i64::try_from(stop_at))
        {
            Said::AtCrashPoint(offset).say()?;
            // Nothing ever comes: this ends with SIGKILL, or with the demo itself.
            let waited = std::io::stdin().read(&mut [0]);
            return Err(Failure::storage(format!(
                "the demo ended before it killed this consumer ({waited:?})"
            )));
        }
        Ok(())
    }
}

fn source_failed(error: SourceError) -> Failure {
    Failure::storage(error.to_string())
}
