//! What moves while a verb works: a bar or a line on a terminal, nothing in a pipe, in a log or with `-q`.

use std::fmt;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// How often the line is drawn again while nothing else happens.
const TICK: Duration = Duration::from_millis(200);

/// A bar, a line, or nothing. All of it goes to stderr; dropping it clears the line.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar over a known number of bytes, or a count where the number is not known (stdin from a pipe).
    pub fn bytes(total_bytes: Option<u64>, quiet: bool) -> Progress {
        let progress = Progress::start(total_bytes, quiet);
        let template = match total_bytes {
            Some(_) => "{bytes:>10} of {total_bytes}  [{bar:30}]  {bytes_per_sec}  {msg}",
            None => "{bytes:>10}  {bytes_per_sec}  {msg}",
        };
        progress.styled(template)
    }

    /// A bar over a known number of events, or a count.
    pub fn events(total: Option<u64>, quiet: bool) -> Progress {
        let progress = Progress::start(total, quiet);
        let template = match total {
            Some(_) => "{human_pos:>10} of {human_len} events  [{bar:30}]  {per_sec}  {msg}",
            None => "{human_pos:>10} events  {per_sec}  {msg}",
        };
        progress.styled(template)
    }

    /// A line of text that changes.
    pub fn line(quiet: bool) -> Progress {
        Progress::start(None, quiet).styled("{spinner} {msg}")
    }

    /// A line that `draw` writes anew each time it is shown, whatever the rest of the program waits for.
    pub fn live(quiet: bool, draw: impl Fn() -> String + Clone + Send + Sync + 'static) -> Progress {
        let progress = Progress::start(None, quiet);
        let write = move |_: &ProgressState, out: &mut dyn fmt::Write| {
            // A line that is not drawn is drawn again in a moment.
            let _ = out.write_str(&draw());
        };
        let style = ProgressStyle::with_template("{spinner} {live}").expect("the template is well formed");
        progress.bar.set_style(style.with_key("live", write));
        progress
    }

    /// Whether anybody sees it.
    pub fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    fn start(total: Option<u64>, quiet: bool) -> Progress {
        let is_shown = !quiet && std::io::stderr().is_terminal();
        let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(total, target);
        if is_shown {
            bar.enable_steady_tick(TICK);
        }
        Progress { bar }
    }

    fn styled(self, template: &str) -> Progress {
        let style = ProgressStyle::with_template(template).expect("the templates above are well formed");
        self.bar.set_style(style.progress_chars("=> "));
        self
    }

    /// Moves on by so much.
    pub fn advance(&self, by: u64) {
        self.bar.inc(by);
    }

    /// Says what is going on, behind the numbers.
    pub fn say(&self, text: impl Into<String>) {
        self.bar.set_message(text.into());
    }

    /// Prints to stdout or stderr without tearing the line.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_well_formed_and_quiet_draws_nothing() {
        for progress in [
            Progress::bytes(Some(1), true),
            Progress::bytes(None, true),
            Progress::events(Some(1), true),
            Progress::events(None, true),
            Progress::line(true),
            Progress::live(true, || "x".to_owned()),
        ] {
            progress.advance(1);
            progress.say("x");
            assert!(progress.bar.is_hidden());
            assert_eq!(progress.suspend(|| 7), 7);
        }
    }
}
