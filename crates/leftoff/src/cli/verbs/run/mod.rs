//! `leftoff run`: events go to a command that is kept alive, its records to a place, and the offset is saved behind them.

mod backfill;
mod explain;
mod handlers;
mod live;
mod metrics;
mod out;

use std::net::TcpListener;
use std::time::Duration;

use leftoff::source::StoreSource;
use leftoff::store::{HandlerLock, LockError, Store};
use leftoff_consumer::handler::Handler;
use leftoff_consumer::handler::child::Running;
use leftoff_consumer::runner::{
    About, Handlers, Parts, Refusal, Report, RunError, RunFailure, Runner, StopReason, SystemClock,
};
use leftoff_wire::Committed;

use super::topics::create_topic;
use super::{authority, dlq};
use crate::cli::args::Global;
use crate::cli::args::run::{ListenAddress, OnFail, RunArgs};
use crate::cli::failure::{Exit, Failure};
use crate::cli::session::{check_ours, find_topic, from_store, note, open_existing};
use crate::cli::stop;

use live::Live;
use metrics::Metrics;

/// How long a start waits for the handler that a killed runner left behind, or for the runner before it to stop.
const WAIT_FOR_HANDLER: Duration = Duration::from_secs(10);
/// For so long it waits without a word.
const WAIT_SILENTLY: Duration = Duration::from_millis(200);

/// Handles events until there is a reason to stop.
pub fn run(global: &Global, args: &RunArgs) -> Result<(), Failure> {
    if args.explain {
        return explain::explain(global, args);
    }
    out::check(args)?;
    let running = Running::default();
    let stop = stop::on_signals_with(handlers::end_of(running.clone()))?;
    let listener = args.metrics_listen.as_ref().map(listen).transpose()?;
    // The group before the directory: whoever is waited for here needs the directory to stop well.
    check_ours(global)?;
    let lock = take_group(global, &args.group)?;
    let lent = lock.share().map_err(|error| Failure::storage(format!("cannot lend a lock: {error}")))?;
    let common = handlers::Common { lock: lent, stop: stop.clone(), running };
    let store = open_existing(global, "run")?;
    check_topics(&store, &args.topics)?;
    let mut options = args.options();
    options.start_from =
        args.from.map(|time| store.with_state(|state| backfill::start(args, time, state))).transpose()?;
    let failed = |error| from_store(&global.data, error);
    let mut source = StoreSource::join_with(lock, &store, &args.group, &args.topics, "run", stop.clone())
        .map_err(failed)?;
    source.set_metadata(authority::metadata_of(&args.out));
    if args.on_fail == OnFail::Dlq {
        source.set_dead_letters_to(dead_letters_to(global, args, &store)?);
    }

    let mut sink = out::open(global, args, &store, &source)?;
    let metrics = listener.is_some().then(|| Metrics::new(&args.group));
    let mut live = Live::new(global, args, metrics.clone());
    if let Some((metrics, listener)) = metrics.zip(listener) {
        let at = metrics.serve(listener, store.glimpses())?;
        live.note("metrics", &format!("metrics are at http://{at}/metrics"));
    }
    let mut handlers = handlers::make(args, &common, || live.stderr())?;
    drop(common);
    let row = sink.row();
    live.note("promise", &format!("{}: {}: {}", sink.place(), row.promise, row.meaning));
    let parts = Parts {
        source: &mut source,
        handlers: if args.concurrency == 1 && args.pipeline == 1 {
            Handlers::One(&mut *handlers[0])
        } else {
            Handlers::Crew(
                handlers.iter_mut().map(|handler| &mut **handler as &mut (dyn Handler + Send)).collect(),
            )
        },
        sink: sink.as_mut(),
        progress: &mut live,
        clock: &SystemClock::new(),
        stop: &stop,
        options: &options,
    };
    let ended = Runner::new(parts).run();
    // After a failed wait for the directory there is nothing open to say good-bye to; the next join ends this one.
    let left = if store.is_open() { source.leave().and_then(|()| store.close()) } else { Ok(()) };
    match ended {
        Ok(report) => {
            tell_summary(&live, &report);
            left.map_err(failed)
        }
        Err(failure) => {
            let RunFailure { error, report } = *failure;
            tell_summary(&live, &report);
            Err(from_run(&error))
        }
    }
}

/// Listens for whoever scrapes.
fn listen(address: &ListenAddress) -> Result<TcpListener, Failure> {
    TcpListener::bind(&address.0).map_err(|error| {
        Failure::cannot_reach(format!("cannot listen on {} for --metrics-listen: {error}", address.0))
            .hint("name another port, or 0 for any that is free")
    })
}

/// The topic of dead letters, made if they will go there and it is not there.
fn dead_letters_to(global: &Global, args: &RunArgs, store: &Store) -> Result<String, Failure> {
    if authority::keeps_offset(&args.out) {
        return Ok(String::new());
    }
    let name = dlq::topic_name(&args.group, args.dlq_topic.as_deref())?;
    if args.topics.contains(&name) {
        return Err(Failure::refused(format!(
            "topic {name} is read: dead letters would be handled again for ever"
        ))
        .hint("name another topic with --dlq-topic"));
    }
    if store.topic(&name).is_none() {
        create_topic(store, &name, 1, Vec::new())?;
        note(global, &format!("made {name} with 1 partition, for dead letters"));
    }
    Ok(name)
}

/// Takes the group's lock, which a handler whose runner was killed still holds.
fn take_group(global: &Global, group: &str) -> Result<HandlerLock, Failure> {
    let in_use = |holder: &str| match holder.contains(", gone; ") {
        true => format!("group '{group}' is in use by {holder}"),
        // Where it cannot be seen who has the lock.
        false => format!("group '{group}' is in use by {holder}, or by a handler that it left behind"),
    };
    match HandlerLock::take(&global.data, group, "run", WAIT_SILENTLY) {
        Ok(lock) => return Ok(lock),
        Err(LockError::Held { holder, .. }) => {
            note(global, &format!("{}; waiting for its end", in_use(&holder)));
        }
        Err(error) => return Err(Failure::storage(error.to_string()).because(error)),
    }
    let wait = global.timeout.unwrap_or(WAIT_FOR_HANDLER);
    HandlerLock::take(&global.data, group, "run", wait).map_err(|error| match error {
        LockError::Held { holder, .. } => Failure::refused(in_use(&holder))
            .hint("one runner works for a group at a time; stop it, or end its handler, and try again"),
        error @ LockError::Io { .. } => Failure::storage(error.to_string()).because(error),
    })
}

fn check_topics(store: &Store, names: &[String]) -> Result<(), Failure> {
    for name in names {
        store.with_state(|state| find_topic(state.topics().collect::<Vec<_>>().into_iter(), name))?;
    }
    Ok(())
}

/// What was done, and where each partition goes on.
fn tell_summary(live: &Live<'_>, report: &Report) {
    live.note("stopped", &summary(report));
    for partition in &report.partitions {
        let (topic, number) = (partition.topic.as_str(), partition.id.partition);
        let offset = partition.committed.map(Committed::next);
        let text = match offset {
            Some(next) => format!("{topic}/{number} goes on at offset {next}"),
            None => format!("{topic}/{number} has no offset"),
        };
        live.note_about(&About { event: "goes-on", topic, partition: number, offset }, &text);
    }
}

/// What was done.
fn summary(report: &Report) -> String {
    let why = match report.stopped {
        Some(StopReason::Asked) => "stopped",
        Some(StopReason::MaxEvents) => "stopped after --max events",
        Some(StopReason::End) => "nothing left",
        None => "stopped by a failure",
    };
    let mut text = format!("{why}: {} handled", report.handled);
    if report.filtered > 0 {
        text += &format!(" ({} filtered)", report.filtered);
    }
    text += &format!(", {} written", report.written);
    if report.absorbed > 0 {
        text += &format!(", {} absorbed", report.absorbed);
    }
    if report.skipped > 0 {
        text += &format!(", {} skipped", report.skipped);
    }
    if report.dead > 0 {
        text += &format!(", {} dead", report.dead);
    }
    if report.failed_attempts > 0 {
        let s = if report.failed_attempts == 1 { "" } else { "s" };
        text += &format!(", {} failed attempt{s}", report.failed_attempts);
    }
    if report.faults > 0 {
        text += &format!(", the handler ended or broke the rules {} times", report.faults);
    }
    text
}

/// What the end of a run means to a person and a script.
fn from_run(error: &RunError) -> Failure {
    let exit = match error.exit_code() {
        1 => Exit::CheckFailed,
        3 => Exit::CannotReach,
        4 => Exit::Refused,
        _ => Exit::Storage,
    };
    let failure = Failure::new(exit, error.to_string());
    match error {
        RunError::HandlerStart(_) => failure.hint("the words behind -- are the command and its arguments"),
        RunError::Refused(Refusal::LostState { .. }) => {
            failure.hint("--on-lost-state group goes on where the group says")
        }
        RunError::HandlerFailed(_) => {
            failure.hint("to try it more often: --on-fail retry; to pass it by: --on-fail skip; to keep it for later: --on-fail dlq")
        }
        RunError::Refused(
            Refusal::Gap { .. }
            | Refusal::AboveEnd { .. }
            | Refusal::NoOffset { .. }
            | Refusal::OtherLog { .. },
        )
        | RunError::HandlerIdle(_)
        | RunError::Fenced { .. }
        | RunError::Sink(_)
        | RunError::Source(_)
        | RunError::BadSource(_) => failure,
    }
}
