//! Lines to standard output, or any other stream: at least once.

use std::fmt;
use std::io::{self, Write};

use super::line::{append_lines, check_records};
use super::{BadRecord, ClaimPartition, Claimed, MatrixRow, Move, Output, Promise, Sink, SinkError, Written};

/// Writes each record as a line and flushes; the group's offset is saved after that.
pub struct StdoutSink {
    stream: Box<dyn Write + Send>,
    bytes: Vec<u8>,
}

impl StdoutSink {
    /// To this process's standard output.
    pub fn new() -> StdoutSink {
        StdoutSink::to(Box::new(io::stdout()))
    }

    /// To any stream.
    pub fn to(stream: Box<dyn Write + Send>) -> StdoutSink {
        StdoutSink { stream, bytes: Vec::new() }
    }
}

impl Default for StdoutSink {
    fn default() -> StdoutSink {
        StdoutSink::new()
    }
}

impl fmt::Debug for StdoutSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdoutSink").finish_non_exhaustive()
    }
}

impl Sink for StdoutSink {
    fn claim(&mut self, partitions: &[ClaimPartition]) -> Result<Claimed, SinkError> {
        let next = partitions.iter().map(|claim| (claim.id, None)).collect();
        Ok(Claimed { next, ..Claimed::default() })
    }

    fn check(&self, output: &Output) -> Result<(), BadRecord> {
        check_records(output)
    }

    fn write(&mut self, outputs: &[Output], _moves: &[Move]) -> Result<Written, SinkError> {
        self.bytes.clear();
        outputs.iter().for_each(|output| append_lines(&mut self.bytes, output));
        let written = self.stream.write_all(&self.bytes).and_then(|()| self.stream.flush());
        match written {
            Ok(()) => Ok(Written::Written),
            Err(error) => Err(SinkError::Storage { what: "cannot write to stdout".to_owned(), error }),
        }
    }

    fn row(&self) -> MatrixRow {
        MatrixRow {
            sink: "stdout",
            how: "writes and flushes lines, then saves the group's offset",
            authority: "the group's offset",
            promise: Promise::AtLeastOnce,
            meaning: "no event's lines are missing; after a crash those of the last save may come twice, under the same leftoff_id",
            left_over: "whoever reads the pipe may die with what it has not worked off",
        }
    }

    fn place(&self) -> String {
        "stdout".to_owned()
    }
}
