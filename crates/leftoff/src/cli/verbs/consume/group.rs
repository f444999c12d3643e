//! `leftoff consume -g GROUP`: goes on where the group stands, and saves its offset after printing. It is the consumer
//! runtime with a printer for a handler: what is saved was flushed before.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leftoff::source::StoreSource;
use leftoff::store::{HandlerLock, LockError};
use leftoff_consumer::handler::{Answer, Closure, Delivery};
use leftoff_consumer::runner::{
    Handlers, NoProgress, Parts, RunError, RunFailure, RunOptions, Runner, SavePolicy, StopReason,
    SystemClock,
};
use leftoff_consumer::sink::{
    ClaimPartition, Claimed, MatrixRow, Move, Output, Promise, Sink, SinkError, Written,
};

use super::printer::Printer;
use crate::cli::args::Global;
use crate::cli::args::read_write::ConsumeArgs;
use crate::cli::event_format::EventView;
use crate::cli::failure::{Exit, Failure};
use crate::cli::offset_spec::{OffsetSpec, Point};
use crate::cli::session::{WAIT_FOR_LOCK, check_ours, find_topic, from_store, note, open_existing};
use crate::cli::stop;

/// The offset is saved so often while events are printed, and whenever there are none.
const SAVE_EVERY: Duration = Duration::from_millis(100);

/// Prints what the group has not handled yet.
pub fn run(global: &Global, args: &ConsumeArgs) -> Result<(), Failure> {
    let group = args.group.as_deref().expect("only called with a group");
    must_go_on(args, group)?;
    let stop = stop::on_signals()?;
    // The group before the directory: whoever is waited for here needs the directory to stop well.
    check_ours(global)?;
    let wait = global.timeout.unwrap_or(WAIT_FOR_LOCK);
    let alone =
        HandlerLock::take(&global.data, group, "consume", wait).map_err(|error| held(group, &error))?;
    let store = open_existing(global, "consume")?;
    store.with_state(|state| {
        let topics: Vec<_> = state.topics().collect();
        args.topics.iter().try_for_each(|name| find_topic(topics.iter().copied(), name).map(drop))
    })?;
    let mut source = StoreSource::join_with(alone, &store, group, &args.topics, "consume", stop.clone())
        .map_err(|error| from_store(&global.data, error))?;
    let printer = Printer::stdout(global, args).map_err(Failure::stdout)?;
    let printing = Shared(Arc::new(Mutex::new(Printing { printer, failed: None })));
    let (for_handler, for_sink) = (printing.clone(), printing.clone());
    let options = RunOptions {
        save: SavePolicy::Every(SAVE_EVERY),
        // A flush behind events that are printed meanwhile would say less than is saved, so nothing is.
        save_meanwhile: false,
        until_end: !args.follow,
        max_events: args.count,
        ..RunOptions::default()
    };
    let ran = Runner::new(Parts {
        source: &mut source,
        handlers: Handlers::One(&mut Closure::new(|delivery: &Delivery<'_>| {
            for_handler.lock().print(delivery)
        })),
        sink: &mut PrintSink(for_sink),
        progress: &mut NoProgress,
        clock: &SystemClock::new(),
        stop: &stop,
        options: &options,
    })
    .run();
    // After a failed wait for the directory there is nothing open to say good-bye to; the next join ends this one.
    let left = if store.is_open() { source.leave() } else { Ok(()) };
    let left = left.map_err(|error| from_store(&global.data, error));
    if let Some(error) = printing.lock().failed.take() {
        return Err(Failure::stdout(error));
    }
    let report = ran.map_err(|failure| failed(*failure))?;
    report.notices.iter().for_each(|notice| note(global, notice));
    left?;
    store.close().map_err(|error| from_store(&global.data, error))?;
    match report.stopped {
        Some(StopReason::Asked) if !args.follow => Err(Failure::new(Exit::Interrupted, "interrupted")),
        _ => Ok(()),
    }
}

/// Starting anywhere else would move the group without a word in its history about why.
fn must_go_on(args: &ConsumeArgs, group: &str) -> Result<(), Failure> {
    if args.offset()? != OffsetSpec::from(Point::Stored) {
        return Err(Failure::usage(format!("-o with -g would move {group} when its offset is saved"))
            .hint(format!("move it with `leftoff groups reset {group}`, or only look with --no-commit")));
    }
    if !args.partitions.is_empty() {
        return Err(Failure::usage("-p with -g: a group reads all partitions of its topics")
            .hint("leave -p out, or only look with --no-commit"));
    }
    Ok(())
}

struct Printing {
    printer: Printer,
    /// Why stdout takes no more.
    failed: Option<io::Error>,
}

impl Printing {
    fn print(&mut self, delivery: &Delivery<'_>) -> Answer {
        let event = delivery.event;
        let headers: Vec<(&[u8], Option<&[u8]>)> =
            event.headers.iter().map(|(name, value)| (name.as_bytes(), value.as_deref())).collect();
        let printed = self.printer.print(&EventView {
            topic: delivery.topic,
            partition: delivery.id.partition,
            offset: event.offset,
            timestamp_ms: event.timestamp_ms,
            key: event.key.as_deref(),
            value: event.value.as_deref(),
            headers: &headers,
        });
        match printed {
            Ok(()) => Answer::done(),
            Err(error) => {
                let why = error.to_string();
                self.failed = Some(error);
                Answer::Failed { error: why, retry: false }
            }
        }
    }
}

/// The handler prints, and the sink flushes.
#[derive(Clone)]
struct Shared(Arc<Mutex<Printing>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Printing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was printed is out before it is saved.
struct PrintSink(Shared);

impl Sink for PrintSink {
    fn claim(&mut self, partitions: &[ClaimPartition]) -> Result<Claimed, SinkError> {
        let next = partitions.iter().map(|claim| (claim.id, None)).collect();
        Ok(Claimed { next, ..Claimed::default() })
    }

    fn write(&mut self, _outputs: &[Output], _moves: &[Move]) -> Result<Written, SinkError> {
        let mut printing = self.0.lock();
        match printing.printer.flush() {
            Ok(()) => Ok(Written::Written),
            Err(error) => {
                let told = io::Error::from(error.kind());
                printing.failed = Some(error);
                Err(SinkError::Storage { what: "cannot write to stdout".to_owned(), error: told })
            }
        }
    }

    fn row(&self) -> MatrixRow {
        MatrixRow {
            sink: "consume",
            how: "prints and flushes, then saves the group's offset",
            authority: "the group's offset",
            promise: Promise::AtLeastOnce,
            meaning: "no event is missing; after a crash those of the last save may be printed again",
            left_over: "whoever reads the pipe may die with what it has not worked off",
        }
    }

    fn place(&self) -> String {
        "stdout".to_owned()
    }
}

fn held(group: &str, error: &LockError) -> Failure {
    match error {
        LockError::Held { holder, .. } => Failure::refused(format!("group {group} is in use by {holder}"))
            .hint("one process works for a group at a time; stop it first, or only look with --no-commit"),
        LockError::Io { .. } => Failure::storage(error.to_string()),
    }
}

fn failed(failure: RunFailure) -> Failure {
    let exit = match failure.error.exit_code() {
        1 => Exit::CheckFailed,
        3 => Exit::CannotReach,
        4 => Exit::Refused,
        _ => Exit::Storage,
    };
    let text = match &failure.error {
        RunError::HandlerFailed(event) => {
            format!("cannot print {}/{} offset {}", event.topic, event.id.partition, event.offset)
        }
        error => error.to_string(),
    };
    Failure::new(exit, text)
}
