//! From the files of a partition to the printer: large reads, every batch checked, nothing copied but into the output.

use leftoff_engine::log::{FileRange, Log, LogError};
use leftoff_wire::record_batch::{Batch, BatchError, BatchHeader, Limits};
use leftoff_wire::{Offset, Run};

use super::leg::Leg;
use super::printer::Printer;
use crate::cli::args::Global;
use crate::cli::event_format::EventView;
use crate::cli::failure::Failure;
use crate::cli::session::note;

/// One read asks for about so much.
const READ_BYTES: u64 = 2 * 1024 * 1024;

/// Reads legs.
pub struct Reader<'a> {
    global: &'a Global,
    printer: &'a mut Printer,
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    /// Prints to `printer`.
    pub fn new(global: &'a Global, printer: &'a mut Printer) -> Reader<'a> {
        Reader { global, printer, buffer: Vec::new() }
    }

    /// Whether enough is printed.
    pub fn is_done(&self) -> bool {
        self.printer.is_done()
    }

    /// Everything printed so far goes out.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.printer.flush().map_err(Failure::stdout)
    }

    /// Prints what can be read of a leg now.
    ///
    /// # Errors
    /// Exit 5 at damage; everything before it is printed.
    pub fn read(&mut self, log: &Log, leg: &mut Leg) -> Result<(), Failure> {
        let end = leg.until.map_or(log.high_watermark(), |until| until.min(log.high_watermark()));
        while leg.at < end && !self.is_done() {
            let fetched = log.fetch(leg.at, READ_BYTES).map_err(|error| self.not_read(leg, error))?;
            if fetched.ranges.is_empty() {
                self.pass_gap(leg, end);
            }
            for range in &fetched.ranges {
                self.read_range(range, leg)?;
            }
        }
        Ok(())
    }

    fn read_range(&mut self, range: &FileRange, leg: &mut Leg) -> Result<(), Failure> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let length = usize::try_from(range.len_bytes).expect("a fetch is bounded, and so is a batch");
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        let got = range.file.read_at(&mut buffer[..length], range.position_bytes);
        let got = got.map_err(|error| Failure::storage(format!("{}: cannot read: {error}", leg.place())))?;
        let printed = self.print_batches(&buffer[..got], range, leg);
        self.buffer = buffer;
        printed
    }

    fn print_batches(&mut self, bytes: &[u8], range: &FileRange, leg: &mut Leg) -> Result<(), Failure> {
        let mut rest = bytes;
        while !rest.is_empty() && !leg.is_done() && !self.is_done() {
            let (batch, behind) = match Batch::parse(rest) {
                Ok(parsed) => parsed,
                Err(error) => return Err(self.damaged_batch(leg, rest, range, &error)),
            };
            if batch.header().base_offset > leg.at {
                self.pass_gap(leg, batch.header().base_offset);
            }
            if let Err(wrong) = self.print_batch(&batch, leg)? {
                return Err(self.damaged_batch(leg, rest, range, &wrong));
            }
            rest = behind;
        }
        Ok(())
    }

    fn print_batch(&mut self, batch: &Batch<'_>, leg: &mut Leg) -> Result<Result<(), BatchError>, Failure> {
        let header = batch.header();
        if !header.attributes.is_control() {
            let records = match batch.records(&Limits::default()) {
                Ok(records) => records,
                Err(error) => return Ok(Err(error)),
            };
            for record in &records {
                let record = match record {
                    Ok(record) => record,
                    Err(error) => return Ok(Err(error)),
                };
                let offset = record.offset(header);
                if offset < leg.at {
                    continue;
                }
                if leg.until.is_some_and(|until| offset >= until) || self.is_done() {
                    return Ok(Ok(()));
                }
                // Without headers nothing is allocated.
                let headers: Vec<(&[u8], Option<&[u8]>)> = record.headers.iter().collect();
                let event = EventView {
                    topic: &leg.topic,
                    partition: leg.partition.partition,
                    offset,
                    timestamp_ms: record.timestamp(header),
                    key: record.key,
                    value: record.value,
                    headers: &headers,
                };
                self.printer.print(&event).map_err(Failure::stdout)?;
                leg.at = offset.next();
            }
        }
        leg.at = leg.at.max(header.next_offset());
        Ok(Ok(()))
    }

    /// Offsets that no batch holds: a repair has taken them out. That is said, and reading goes on.
    fn pass_gap(&mut self, leg: &mut Leg, to: Offset) {
        let (place, run) = (leg.place(), Run::new(leg.at, to));
        note(self.global, &format!("{place}: not there, a repair took it out: {run}"));
        leg.at = to;
    }

    fn not_read(&mut self, leg: &Leg, error: LogError) -> Failure {
        match error {
            LogError::Damaged { damaged, .. } => self.damaged(leg, damaged.to, &damaged.to_string()),
            LogError::OutOfRange { log_start, high_watermark, .. } => Failure::refused(format!(
                "{}: offset {} was deleted meanwhile; the partition has {}",
                leg.place(),
                leg.at,
                Run::new(log_start, high_watermark)
            ))
            .hint(format!("go on with -o {log_start}")),
            LogError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Failure::refused(format!("{}: offset {} was deleted meanwhile", leg.place(), leg.at))
                    .hint("`leftoff topics describe` tells what there is now")
            }
            error => Failure::storage(format!("{}: {error}", leg.place())),
        }
    }

    fn damaged_batch(&mut self, leg: &Leg, rest: &[u8], range: &FileRange, error: &BatchError) -> Failure {
        // Where the header still makes sense, only this batch is lost; else what is left of the range.
        let next = BatchHeader::parse(rest).map(|header| header.next_offset()).ok();
        let to = next.filter(|to| *to > leg.at && *to <= range.next).unwrap_or(range.next);
        self.damaged(leg, to, &error.to_string())
    }

    fn damaged(&mut self, leg: &Leg, to: Offset, what: &str) -> Failure {
        // What came before it is good, and is wanted the more; if it cannot be written, the damage is still the news.
        drop(self.printer.flush());
        let (place, run, number) = (leg.place(), Run::new(leg.at, to), leg.partition.partition);
        Failure::storage(format!("{place}: damage at {run}: {what}")).hint(format!(
            "go on behind them with -p {number} -o {to}; `leftoff doctor` tells what can be done"
        ))
    }
}
