//! Events on stdout, in the form that was asked for.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

use crate::cli::args::read_write::ConsumeArgs;
use crate::cli::args::{FormatArg, Global};
use crate::cli::event_format::{EventFormat, EventView, write_csv, write_csv_header, write_json};

/// So much is collected before it is written. Whoever waits for more events flushes first.
const BUFFER_BYTES: usize = 256 * 1024;

/// Prints events and counts them.
pub struct Printer {
    out: BufWriter<Box<dyn Write + Send>>,
    form: Form,
    left: Option<u64>,
}

enum Form {
    Template(EventFormat),
    Json,
    Csv,
}

impl Printer {
    /// To stdout; a header line is written at once.
    pub fn stdout(global: &Global, args: &ConsumeArgs) -> io::Result<Printer> {
        // Not `io::stdout()`: that looks for line ends in all that passes.
        let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let form = match (&args.template, global.format) {
            (Some(template), _) => Form::Template(template.clone()),
            (None, FormatArg::Text) => Form::Template(EventFormat::value_per_line()),
            (None, FormatArg::Wide) => Form::Template(EventFormat::wide()),
            (None, FormatArg::Json | FormatArg::Jsonl) => Form::Json,
            (None, FormatArg::Csv) => Form::Csv,
        };
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, Box::new(stdout) as Box<dyn Write + Send>);
        if matches!(form, Form::Csv) && !global.no_headers {
            write_csv_header(&mut out)?;
        }
        Ok(Printer { out, form, left: args.count })
    }

    /// Prints one event.
    pub fn print(&mut self, event: &EventView<'_>) -> io::Result<()> {
        match &self.form {
            Form::Template(template) => template.write(&mut self.out, event)?,
            Form::Json => write_json(&mut self.out, event)?,
            Form::Csv => write_csv(&mut self.out, event)?,
        }
        self.left = self.left.map(|left| left.saturating_sub(1));
        Ok(())
    }

    /// Whether as many events are printed as were asked for.
    pub fn is_done(&self) -> bool {
        self.left == Some(0)
    }

    /// Everything printed so far goes out.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
