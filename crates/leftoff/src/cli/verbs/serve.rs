//! `leftoff serve`: Kafka's protocol over the data directory, until it is stopped.

use std::sync::atomic::Ordering;
use std::time::Duration;

use leftoff::server::{ServeError, Server, ServerEvent};

use crate::cli::args::Global;
use crate::cli::args::serve::ServeArgs;
use crate::cli::failure::Failure;
use crate::cli::notes::{Level, Line, tell};
use crate::cli::session;
use crate::cli::stop;

/// How often it is looked whether a signal came.
const LOOK_FOR_STOP: Duration = Duration::from_millis(50);

/// Serves the directory.
///
/// # Errors
/// Exit 3 if the directory or an address is taken, 4 and 5 as for every verb that writes.
pub fn serve(global: &Global, args: &ServeArgs) -> Result<(), Failure> {
    let settings = args.settings().map_err(|bad| Failure::usage(bad.to_string()))?;
    let stop = stop::on_signals()?;
    let store = session::open_writer_with(global, "serve", args.broker())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("serve")
        .enable_all()
        .build()
        .map_err(|error| Failure::cannot_reach("cannot start threads").because(error))?;
    let is_quiet = global.quiet;
    let served = runtime.block_on(async {
        let server = Server::bind(store.clone(), settings).await?;
        for address in server.addresses()? {
            session::note(global, &format!("listens at {address}"));
        }
        session::note(
            global,
            &format!(
                "keeps its data in {}; an acknowledgement (acks=1 or all) means that it is on the disk",
                store.root().display()
            ),
        );
        let stopped = async {
            while !stop.load(Ordering::SeqCst) {
                tokio::time::sleep(LOOK_FOR_STOP).await;
            }
        };
        server.run(stopped, move |event| tell_event(is_quiet, &event)).await
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    served.map_err(failed)?;
    store.close().map_err(|error| session::from_store(&global.data, error))?;
    session::note(global, "stopped; everything acknowledged is on the disk");
    Ok(())
}

fn tell_event(is_quiet: bool, event: &ServerEvent) {
    let (name, text) = match event {
        ServerEvent::Closed { peer, why } => ("closed", format!("closed the connection of {peer}: {why}")),
        ServerEvent::Refused { peer, why } => ("refused", format!("refused a connection of {peer}: {why}")),
    };
    if !is_quiet {
        tell(&Line { event: Some(name), ..Line::new(Level::Warning, &text) });
    }
}

fn failed(error: ServeError) -> Failure {
    match error {
        ServeError::Listen { .. } => Failure::cannot_reach(error.to_string())
            .hint("another address is named with --listen HOST:PORT; port 0 takes a free one"),
        ServeError::Io(_) => Failure::cannot_reach(error.to_string()),
    }
}
