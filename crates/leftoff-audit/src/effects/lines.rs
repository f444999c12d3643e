//! Lines of a file, each of bounded length, up to the length that the file had when it was opened.

use std::io::{self, BufRead};

/// A longer line is reported, not read.
pub const DEFAULT_LINE_LIMIT_BYTES: usize = 16 << 20;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawLine {
    /// A whole line, without its end.
    Whole(Vec<u8>),
    /// It is longer than the limit; its bytes were passed over.
    TooLong,
    /// The last one, without an end.
    Torn,
}

/// Numbered lines of a reader.
#[derive(Debug)]
pub struct RawLines<R> {
    reader: R,
    limit_bytes: usize,
    line: u64,
    done: bool,
}

impl<R: BufRead> RawLines<R> {
    /// Lines of at most `limit_bytes` bytes.
    pub fn new(reader: R, limit_bytes: usize) -> RawLines<R> {
        RawLines { reader, limit_bytes, line: 0, done: false }
    }

    fn next_line(&mut self) -> io::Result<Option<RawLine>> {
        let mut bytes = Vec::new();
        let mut too_long = false;
        let mut any = false;
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                return Ok(any.then_some(RawLine::Torn));
            }
            any = true;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            too_long |= bytes.len() + part.len() > self.limit_bytes;
            if too_long {
                bytes = Vec::new();
            } else {
                bytes.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(if too_long { RawLine::TooLong } else { RawLine::Whole(bytes) }));
            }
        }
    }
}

impl<R: BufRead> Iterator for RawLines<R> {
    /// Line number from 1, and the line.
    type Item = io::Result<(u64, RawLine)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        self.line += 1;
        let result = self.next_line();
        self.done = !matches!(result, Ok(Some(RawLine::Whole(_) | RawLine::TooLong)));
        result.map(|found| found.map(|raw| (self.line, raw))).transpose()
    }
}
