//! `leftoff serve`: Kafka's protocol over the data directory, until it is stopped.

mod http;
mod numbers;

use std::sync::atomic::Ordering;
use std::time::Duration;

use leftoff::server::{ServeError, Server, ServerEvent, ServerSettings};
use tokio::sync::watch;

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
    let served: Result<(), Failure> = runtime.block_on(async {
        let http = http::bind(args).await?;
        let settings =
            ServerSettings { http_listener: http.as_ref().map(|http| http.address.to_string()), ..settings };
        let server = Server::bind(store.clone(), settings).await?;
        let addresses = server.addresses()?;
        let _token = http::say_where(&store, &addresses, http.as_ref())?;
        for address in addresses {
            session::note(global, &format!("listens at {address}"));
        }
        if let Some(http) = &http {
            session::note(global, &format!("numbers and the API are at http://{}", http.told));
        }
        session::note(
            global,
            &format!(
                "keeps its data in {}; an acknowledgement (acks=1 or all) means that it is on the disk",
                store.root().display()
            ),
        );
        let (stopping, stopped) = watch::channel(false);
        let beside = http.map(|http| {
            tokio::spawn(http.run(store.clone(), server.stats(), async move {
                let mut stopped = stopped;
                let _either_way = stopped.wait_for(|stops| *stops).await;
            }))
        });
        let on_stop = async {
            while !stop.load(Ordering::SeqCst) {
                tokio::time::sleep(LOOK_FOR_STOP).await;
            }
        };
        server.run(on_stop, move |event| tell_event(is_quiet, &event)).await?;
        let _nobody_left = stopping.send(true);
        if let Some(beside) = beside {
            let _ended = beside.await;
        }
        Ok(())
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    served?;
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

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        match error {
            ServeError::Listen { .. } => Failure::cannot_reach(error.to_string())
                .hint("another address is named with --listen HOST:PORT; port 0 takes a free one"),
            ServeError::Io(_) => Failure::cannot_reach(error.to_string()),
        }
    }
}
