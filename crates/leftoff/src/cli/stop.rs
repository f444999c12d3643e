//! Stopping on a signal: the work in hand is finished and told, then the process ends.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::failure::{Exit, Failure};

/// A flag that SIGINT and SIGTERM set. The second one ends the process at once, for whoever does not want to wait.
pub fn on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the first signal finds the flag down.
        flag::register_conditional_shutdown(signal, i32::from(Exit::Interrupted as u8), stop.clone())
            .and_then(|_| flag::register(signal, stop.clone()))
            .map_err(|error| Failure::cannot_reach("cannot listen for signals").because(error))?;
    }
    Ok(stop)
}
