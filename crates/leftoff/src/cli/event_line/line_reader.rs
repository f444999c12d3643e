//! Lines of a bounded length, with their number and the place where the next one begins.

use std::io::{self, Read};

use crate::cli::failure::Failure;

/// The longest line that is taken, in bytes: Kafka's default of 1 MiB for a batch, less room for the batch's
/// own header, a key and a few headers.
pub const MAX_LINE_BYTES: usize = 1024 * 1024 - 1024;
/// How many of the bytes that were passed stay at hand, see [`LineReader::passed`].
pub const PASSED_BYTES: usize = 4096;
/// One read asks for so much.
const READ_BYTES: usize = 256 * 1024;

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

/// Reads lines one by one, in place: a line is looked at where it was read. A line without end takes no more memory than
/// [`MAX_LINE_BYTES`] and a bit.
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    buffer: Vec<u8>,
    /// The next line begins here in the buffer.
    start: usize,
    /// Up to here the buffer holds input.
    end: usize,
    /// No LF lies between `start` and here.
    searched: usize,
    /// Where the next line's LF is, if it has been found.
    line_feed: Option<usize>,
    /// How many bytes the last line took with its end, until the next read.
    last_bytes: usize,
    /// The input has ended.
    is_over: bool,
    lines: u64,
    position_bytes: u64,
    max_line_bytes: usize,
}

impl<R: Read> LineReader<R> {
    /// Reads from the beginning.
    pub fn new(input: R) -> LineReader<R> {
        LineReader::resume(input, 0, 0)
    }

    /// Goes on behind `lines` lines: `input` must stand at `position_bytes` already.
    pub fn resume(input: R, position_bytes: u64, lines: u64) -> LineReader<R> {
        LineReader {
            input,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            searched: 0,
            line_feed: None,
            last_bytes: 0,
            is_over: false,
            lines,
            position_bytes,
            max_line_bytes: MAX_LINE_BYTES,
        }
    }

    #[cfg(test)]
    pub(super) fn with_limit(mut self, max_line_bytes: usize) -> LineReader<R> {
        self.max_line_bytes = max_line_bytes;
        self
    }

    /// The next line, or `None` at the end of the input. Reads, and so may wait, unless [`LineReader::has_line`].
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, Failure> {
        while !self.has_line() {
            self.fill()?;
        }
        let (line, passed) = match self.line_feed.take() {
            Some(line_feed) => (self.start..line_feed, line_feed + 1),
            None if self.start < self.end => (self.start..self.end, self.end),
            None => return Ok(None),
        };
        let is_ended = line.end < passed;
        let bytes = &self.buffer[line];
        let bytes = if is_ended { bytes.strip_suffix(b"\r").unwrap_or(bytes) } else { bytes };
        let number = self.lines + 1;
        if bytes.len() > self.max_line_bytes {
            return Err(too_long(number, self.max_line_bytes));
        }
        self.lines = number;
        self.last_bytes = passed - self.start;
        self.position_bytes += self.last_bytes as u64;
        self.start = passed;
        Ok(Some(Line { number, bytes, next_position_bytes: self.position_bytes, is_ended }))
    }

    /// Takes back the line that was given last, before anything else is done: it will be given again.
    pub fn step_back(&mut self) {
        assert!(self.last_bytes > 0, "a line is taken back once");
        self.start -= self.last_bytes;
        self.position_bytes -= self.last_bytes as u64;
        self.lines -= 1;
        self.last_bytes = 0;
        (self.line_feed, self.searched) = (None, self.start);
    }

    /// Whether [`LineReader::next_line`] has an answer without reading: a whole line, or the end.
    pub fn has_line(&mut self) -> bool {
        if self.line_feed.is_none() {
            let from = self.searched.max(self.start);
            self.line_feed = memchr::memchr(b'\n', &self.buffer[from..self.end]).map(|at| from + at);
            self.searched = self.line_feed.unwrap_or(self.end);
        }
        self.line_feed.is_some() || self.is_over
    }

    /// Reads once: waits if nothing is there, and takes what there is.
    pub fn fill(&mut self) -> Result<(), Failure> {
        let number = self.lines + 1;
        self.last_bytes = 0;
        // One line and its CR LF; more without an LF among them is too long.
        if self.end - self.start > self.max_line_bytes + 2 {
            return Err(too_long(number, self.max_line_bytes));
        }
        self.make_room();
        loop {
            match self.input.read(&mut self.buffer[self.end..self.end + READ_BYTES]) {
                Ok(0) => self.is_over = true,
                Ok(got_bytes) => self.end += got_bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let what = format!("cannot read the input at line {number}: {error}");
                    return Err(Failure::usage(what));
                }
            }
            return Ok(());
        }
    }

    /// Room for one read, behind what is still wanted.
    fn make_room(&mut self) {
        if self.buffer.len() >= self.end + READ_BYTES {
            return;
        }
        let kept_from = self.start.saturating_sub(PASSED_BYTES);
        self.buffer.copy_within(kept_from..self.end, 0);
        self.start -= kept_from;
        self.end -= kept_from;
        self.searched = self.searched.saturating_sub(kept_from);
        if self.buffer.len() < self.end + READ_BYTES {
            self.buffer.resize(self.end + 2 * READ_BYTES, 0);
        }
    }

    /// What is read from.
    pub fn input(&self) -> &R {
        &self.input
    }

    /// How many lines were passed, from the beginning of the input.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Where the next line begins, in bytes from the beginning of the input.
    pub fn position_bytes(&self) -> u64 {
        self.position_bytes
    }

    /// The bytes just before the next line, as they were read: the last [`PASSED_BYTES`], or fewer if this reader has not
    /// passed so many.
    pub fn passed(&self) -> &[u8] {
        &self.buffer[self.start.saturating_sub(PASSED_BYTES)..self.start]
    }
}

fn too_long(number: u64, max_line_bytes: usize) -> Failure {
    Failure::usage(format!("line {number} is longer than {max_line_bytes} bytes"))
        .hint("split the event, or keep its bytes elsewhere and produce a reference")
}
