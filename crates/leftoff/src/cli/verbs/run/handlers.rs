//! The handlers of a run: a command that is kept alive, one that is started for each event, or a URL.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use leftoff_consumer::handler::child::Running;
use leftoff_consumer::handler::{Child, ChildConfig, Exec, Handler};

use super::live::StderrTo;
use crate::cli::args::run::RunArgs;
use crate::cli::failure::Failure;
use crate::cli::notes::say;

/// What the handlers of a run have in common.
pub struct Common {
    /// The group's lock, which every process among them inherits.
    pub lock: OwnedFd,
    /// Set when they are to stop.
    pub stop: Arc<AtomicBool>,
    /// Where their processes are entered.
    pub running: Running,
}

/// As many as are to work side by side.
pub fn make(
    args: &RunArgs,
    common: &Common,
    stderr: impl Fn() -> StderrTo,
) -> Result<Vec<Box<dyn Handler + Send>>, Failure> {
    (0..args.concurrency).map(|_| one(args, common, stderr())).collect()
}

fn one(args: &RunArgs, common: &Common, stderr: StderrTo) -> Result<Box<dyn Handler + Send>, Failure> {
    #[cfg(feature = "http")]
    if let Some(url) = &args.http {
        use leftoff_consumer::handler::http::{DEFAULT_TIMEOUT, Http, HttpConfig};
        return Ok(Box::new(Http::new(HttpConfig {
            endpoint: url.0.clone(),
            group: args.group.clone(),
            timeout: args.handler_timeout.unwrap_or(DEFAULT_TIMEOUT),
            drain: args.drain,
            stop: Some(common.stop.clone()),
        })));
    }
    let config = child(args, common, stderr)
        .map_err(|error| Failure::storage(format!("cannot lend a lock: {error}")))?;
    Ok(if args.exec_per_event { Box::new(Exec::new(config)) } else { Box::new(Child::new(config)) })
}

fn child(args: &RunArgs, common: &Common, stderr: StderrTo) -> io::Result<ChildConfig> {
    let (program, rest) = args.command.split_first().expect("clap asks for a command");
    Ok(ChildConfig {
        topic: args.topics.join(","),
        group: args.group.clone(),
        timeout: args.handler_timeout,
        pipeline: args.pipeline,
        protocol_fd: args.protocol_fd,
        running: common.running.clone(),
        drain: args.drain,
        stop: Some(common.stop.clone()),
        lock: Some(common.lock.as_fd().try_clone_to_owned()?),
        stderr,
        ..ChildConfig::new(program, rest)
    })
}

/// What the second signal does before the process ends at once.
pub fn end_of(running: Running) -> impl FnOnce() + Send + 'static {
    move || {
        let ended = match running.end() {
            0 => "",
            1 => "; the handler was killed",
            _ => "; the handlers were killed",
        };
        say(&format!("stopped at once{ended}; what was saved stays saved, the next run goes on behind it"));
    }
}

/// What may be promised for effects that are not records: a row of the matrix beside that of the place.
pub fn effects(args: &RunArgs) -> Option<&'static str> {
    if args.http.is_some() {
        return Some(
            "of the URL: at least once; exactly once only if the endpoint stores the Idempotency-Key in one step with its effect",
        );
    }
    args.exec_per_event.then_some(
        "of the command: at least once; exactly once only if it stores LEFTOFF_ID in one step with its effect",
    )
}
