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
    /// So many of them are taken.
    taken: usize,
    /// Where the search for a line end goes on.
    searched: usize,
}

impl<R: Read + AsFd> Lines<R> {
    /// Makes the pipe non-blocking. Only this end: the child's is another open file description.
    pub(super) fn new(pipe: R) -> io::Result<Lines<R>> {
        set_nonblocking(&pipe)?;
        Ok(Lines { pipe: Some(pipe), bytes: Vec::new(), taken: 0, searched: 0 })
    }

    /// Reads once. False if there is nothing more now: the pipe is empty, or has ended.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        let Some(pipe) = self.pipe.as_mut() else { return Ok(false) };
        self.bytes.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
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
        let end = self.searched + found;
        let mut line = self.bytes[self.taken..end].to_vec();
        (self.taken, self.searched) = (end + 1, end + 1);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Some(line)
    }

    /// What there is of a line that has no end yet. Only after [`Lines::line`] found none.
    pub(super) fn unfinished(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Drops the unfinished line but for its first bytes.
    pub(super) fn take_unfinished(&mut self, keep_bytes: usize) -> Vec<u8> {
        let unfinished = self.unfinished();
        let kept = unfinished[..unfinished.len().min(keep_bytes)].to_vec();
        self.bytes.clear();
        (self.taken, self.searched) = (0, 0);
        kept
    }
}

pub(super) fn set_nonblocking(pipe: &impl AsFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(pipe)?;
    Ok(rustix::fs::fcntl_setfl(pipe, flags | rustix::fs::OFlags::NONBLOCK)?)
}
