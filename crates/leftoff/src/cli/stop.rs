//! Stopping on a signal: the work in hand is finished and told, then the process ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::failure::{Exit, Failure};

/// A flag that SIGINT, SIGTERM and SIGHUP set. The second one ends the process at once, for whoever does not want to wait.
pub fn on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals() {
        // The order matters: the first signal finds the flag down.
        flag::register_conditional_shutdown(signal, i32::from(Exit::Interrupted as u8), stop.clone())
            .and_then(|_| flag::register(signal, stop.clone()))
            .map_err(cannot_listen)?;
    }
    Ok(stop)
}

/// The same; what `last` does is done before the second signal ends the process.
pub fn on_signals_with(last: impl FnOnce() + Send + 'static) -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    let mut signals = Signals::new(signals()).map_err(cannot_listen)?;
    let listen = move || {
        let mut last = Some(last);
        for _signal in signals.forever() {
            if asked.swap(true, Ordering::SeqCst) {
                if let Some(last) = last.take() {
                    last();
                }
                std::process::exit(i32::from(Exit::Interrupted as u8));
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(cannot_listen)?;
    Ok(stop)
}

fn signals() -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM];
    if !ignores_hangup() {
        signals.push(SIGHUP);
    }
    signals
}

/// Whether it was started to outlive its terminal, as `nohup` does it; also where that cannot be told.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}

fn cannot_listen(error: std::io::Error) -> Failure {
    Failure::cannot_reach("cannot listen for signals").because(error)
}
