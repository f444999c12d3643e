//! Bytes from a pipe, cut into lines, within bounds.

use std::io::{self, Read};
use std::os::fd::AsFd;

/// How much is read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A pipe that is read without blocking, and what came of it that is not taken yet.
#[derive(Debug)]
pub(super) struct Lines<R> {
    /// `None` when it has ended.
    pub(super) pipe: Option<R>,
    bytes: Vec<u8>,
    /// Where the search for a line end goes on.
    searched: usize,
}

impl<R: Read + AsFd> Lines<R> {
    /// Makes the pipe non-blocking. Only this end: the child's is another open file description.
    pub(super) fn new(pipe: R) -> io::Result<Lines<R>> {
        set_nonblocking(&pipe)?;
        Ok(Lines { pipe: Some(pipe), bytes: Vec::new(), searched: 0 })
    }

    /// Reads once. False if there is nothing more now: the pipe is empty, or has ended.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        let Some(pipe) = self.pipe.as_mut() else { return Ok(false) };
        let old = self.bytes.len();
        self.bytes.resize(old + CHUNK_BYTES, 0);
        let read = pipe.read(&mut self.bytes[old..]);
        self.bytes.truncate(old + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => {
                self.pipe = None;
                Ok(false)
            }
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The next whole line, without its end (`\n` or `\r\n`).
    pub(super) fn line(&mut self) -> Option<Vec<u8>> {
        let Some(found) = self.bytes[self.searched..].iter().position(|&byte| byte == b'\n') else {
            self.searched = self.bytes.len();
            return None;
        };
        let mut line: Vec<u8> = self.bytes.drain(..=self.searched + found).collect();
        self.searched = 0;
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Some(line)
    }

    /// What there is of a line that has no end yet. Only after [`Lines::line`] found none.
    pub(super) fn unfinished(&self) -> &[u8] {
        &self.bytes
    }

    /// Drops the unfinished line but for its first bytes.
    pub(super) fn take_unfinished(&mut self, keep_bytes: usize) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        self.searched = 0;
        bytes.truncate(keep_bytes);
        bytes
    }
}

pub(super) fn set_nonblocking(pipe: &impl AsFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(pipe)?;
    Ok(rustix::fs::fcntl_setfl(pipe, flags | rustix::fs::OFlags::NONBLOCK)?)
}
