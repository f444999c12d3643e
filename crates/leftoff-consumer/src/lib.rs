//! The consumer runtime: it reads events from a source, gives each to a handler, writes what comes back to a sink, and saves
//! how far it is. Threads and channels, no async.
//!
//! The one promise that everything here serves: **what is saved is never ahead of what is handled and written.** A stop at
//! any moment, clean or by SIGKILL, may make an event come again; it never passes one over. Whether an event that comes
//! again has its effect twice depends on the sink, and each says so in its [`sink::MatrixRow`].
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`source`] | where events come from: assignments, batches, gaps |
//! | [`ledger`] | per partition: fetched ≥ handed out ≥ handled, and the number that may be saved |
//! | [`handler`] | what is done with an event: a closure, or a child process kept alive |
//! | [`sink`] | where the outcome goes, and who holds the offset that counts |
//! | [`runner`] | the loop over the four |

pub mod crash_point;
pub mod handler;
pub mod ledger;
pub mod runner;
pub mod sink;
pub mod source;
#[cfg(test)]
mod testing;

/// The most characters of somebody's bytes that a message shows.
const SHOWN_CHARS: usize = 200;

/// Bytes from outside as a person can read them on one line: control characters escaped, cut at [`SHOWN_CHARS`].
fn shorten(bytes: &[u8]) -> String {
    // A character has at most four bytes, so this is enough for the characters shown and one more.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * (SHOWN_CHARS + 1))]);
    let mut shown = String::new();
    for char in text.chars().take(SHOWN_CHARS) {
        if char.is_control() { shown.extend(char.escape_default()) } else { shown.push(char) }
    }
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push_str(&format!("… ({} bytes)", bytes.len()));
    }
    shown
}

/// `text` with its control characters escaped, so that a terminal shows them and does not obey them; tabs and line breaks
/// stay, and what is behind `at_most` characters is left out.
fn visible(text: &str, at_most: usize) -> String {
    let mut shown = String::new();
    for (number, char) in text.chars().enumerate() {
        if number == at_most {
            shown.push_str(&format!("… ({} bytes)", text.len()));
            break;
        }
        match char {
            '\n' | '\t' => shown.push(char),
            char if char.is_control() => shown.extend(char.escape_default()),
            char => shown.push(char),
        }
    }
    shown
}
