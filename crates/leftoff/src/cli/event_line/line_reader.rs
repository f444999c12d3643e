//! Lines of a bounded length, with their number and the place where the next one begins.

use std::io::{BufRead, Read};

use crate::cli::failure::Failure;

/// The longest line that is taken, in bytes: Kafka's default of 1 MiB for a batch, less room for the batch's
/// own header, a key and a few headers.
pub const MAX_LINE_BYTES: usize = 1024 * 1024 - 1024;

/// One line of input without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Counted from 1, from the beginning of the input.
    pub number: u64,
    /// What stands before LF or CR LF.
    pub bytes: &'a [u8],
    /// Where the next line begins, in bytes from the beginning of the input.
    pub next_position_bytes: u64,
    /// Whether the line has its LF; only the last one may lack it. In a file that still grows, such a line
    /// may not be finished yet.
    pub is_ended: bool,
}

/// Reads lines one by one. A line without end takes no more memory than [`MAX_LINE_BYTES`] and a bit.
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    buffer: Vec<u8>,
    lines: u64,
    position_bytes: u64,
    max_line_bytes: usize,
}

impl<R: BufRead> LineReader<R> {
    /// Reads from the beginning.
    pub fn new(input: R) -> LineReader<R> {
        LineReader::resume(input, 0, 0)
    }

    /// Goes on behind `lines` lines: `input` must stand at `position_bytes` already.
    pub fn resume(input: R, position_bytes: u64, lines: u64) -> LineReader<R> {
        LineReader { input, buffer: Vec::new(), lines, position_bytes, max_line_bytes: MAX_LINE_BYTES }
    }

    #[cfg(test)]
    pub(super) fn with_limit(mut self, max_line_bytes: usize) -> LineReader<R> {
        self.max_line_bytes = max_line_bytes;
        self
    }

    /// The next line, or `None` at the end of the input.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, Failure> {
        self.buffer.clear();
        // One line, its CR LF, and not a byte more.
        let limit_bytes = self.max_line_bytes as u64 + 2;
        let number = self.lines + 1;
        let got_bytes =
            self.input.by_ref().take(limit_bytes).read_until(b'\n', &mut self.buffer).map_err(|error| {
                Failure::usage(format!("cannot read the input at line {number}: {error}"))
            })?;
        if got_bytes == 0 {
            return Ok(None);
        }
        let is_ended = self.buffer.ends_with(b"\n");
        let bytes = match self.buffer.as_slice() {
            [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] => line,
            line => line,
        };
        if bytes.len() > self.max_line_bytes {
            return Err(Failure::usage(format!(
                "line {number} is longer than {} bytes",
                self.max_line_bytes
            ))
            .hint("split the event, or keep its bytes elsewhere and produce a reference"));
        }
        self.lines = number;
        self.position_bytes += got_bytes as u64;
        Ok(Some(Line { number, bytes, next_position_bytes: self.position_bytes, is_ended }))
    }
}
