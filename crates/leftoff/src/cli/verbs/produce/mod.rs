//! `leftoff produce`: lines become events, acknowledged when they are on disk.

mod input;
mod source;
mod unit;
mod writer;

use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{SyncSender, sync_channel};

use leftoff::store::{Store, now, random_id};
use leftoff_engine::broker::{RESERVED_PRODUCER_ID, Topic};

use crate::cli::args::Global;
use crate::cli::args::read_write::ProduceArgs;
use crate::cli::event_line::{EventParser, KeyFrom, LineReader};
use crate::cli::failure::{Exit, Failure};
use crate::cli::nearest::nearest;
use crate::cli::progress::Progress;
use crate::cli::session::{note, open_writer};
use crate::cli::stop;
use crate::cli::verbs::events;
use crate::cli::verbs::topics::{create_topic, partitions};

use input::{Input, Next};
use source::Source;
use unit::{Unit, Units};
use writer::{Acknowledged, Writer, saved_progress};

/// So many units wait to be written while more lines are read.
const UNITS_AHEAD: usize = 2;

/// How reading came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// Everything was read.
    Whole,
    /// All but a last line that has no line feed yet.
    Unfinished,
    /// A signal.
    Stopped,
}

/// Reads lines until they end and writes them.
pub fn run(global: &Global, args: &ProduceArgs) -> Result<(), Failure> {
    let stop = stop::on_signals()?;
    let parser = parser(args)?;
    if let Some(path) = &args.source {
        source::check_plain(path)?;
    }
    let store = open_writer(global, "produce")?;
    check_partition_of_new(&store, args)?;
    let topic = topic(global, &store, args)?;
    let mut reading = begin(global, args, &store, &topic, parser, &stop)?;
    let progress = Progress::bytes(reading.total_bytes, global.quiet);
    let mut writer = Writer::start(global, store, topic.clone(), stop, progress);
    if let Some((name, saved)) = reading.source_name.take() {
        writer = writer.with_source(&name, saved);
    }
    let acknowledged = writer.acknowledged();
    let (send, units) = sync_channel(UNITS_AHEAD);
    let reader = std::thread::spawn(move || reading.run(&send));
    // On a failure the reader may still wait for input: it is not waited for, the process ends.
    writer.run(&units).map_err(|failure| cut_short(failure, args, &acknowledged))?;
    let ended = reader.join().expect("the thread that reads does not panic");
    tell_end(global, args, ended, &acknowledged)
}

fn parser(args: &ProduceArgs) -> Result<EventParser, Failure> {
    let key = match (&args.key, &args.key_field) {
        (Some(key), _) => KeyFrom::Literal(key.clone().into_bytes()),
        (None, Some(path)) => KeyFrom::Field(path.clone()),
        (None, None) => KeyFrom::Nowhere,
    };
    EventParser::new(args.input.into(), key, args.headers.clone())
}

/// Nothing is made for a line that then goes nowhere.
fn check_partition_of_new(store: &Store, args: &ProduceArgs) -> Result<(), Failure> {
    match args.partition {
        Some(number) if number > 0 && store.topic(&args.topic).is_none() => Err(Failure::usage(format!(
            "there is no topic {:?}, and one that is made now has no partition {number}",
            args.topic
        ))
        .hint(format!(
            "`leftoff topics create {} -p {}` makes it with enough",
            args.topic,
            number.saturating_add(1)
        ))),
        _ => Ok(()),
    }
}

/// The topic, made if there is none.
fn topic(global: &Global, store: &Store, args: &ProduceArgs) -> Result<Topic, Failure> {
    if let Some(topic) = store.topic(&args.topic) {
        return Ok(topic);
    }
    let near = store.with_state(|state| {
        nearest(&args.topic, state.topics().map(|topic| topic.name.as_str())).map(str::to_owned)
    });
    let topic = create_topic(store, &args.topic, 1, Vec::new())?;
    let doubt = near.map_or(String::new(), |near| format!(" (there is also {near})"));
    note(global, &format!("made {} with {}{doubt}", topic.name, partitions(topic.partitions)));
    Ok(topic)
}

/// What the reading thread has.
struct Reading {
    input: Input,
    units: Units,
    source: Option<Source>,
    source_name: Option<(String, Option<leftoff_wire::consumer_offsets::SourceProgress>)>,
    total_bytes: Option<u64>,
}

fn begin(
    global: &Global,
    args: &ProduceArgs,
    store: &Store,
    topic: &Topic,
    parser: EventParser,
    stop: &Arc<AtomicBool>,
) -> Result<Reading, Failure> {
    let draw = u32::from(random_id().as_bytes()[0]);
    let producer_id = args.source.as_ref().map(|_| RESERVED_PRODUCER_ID);
    let mut units = Units::new(parser, topic, args.partition, producer_id, draw)?;
    let Some(path) = &args.source else {
        let (stdin, total_bytes) = stdin(global)?;
        let input = Input::new(LineReader::new(stdin), stop.clone());
        return Ok(Reading { input, units, source: None, source_name: None, total_bytes });
    };
    let mut source = Source::open(path, topic)?;
    let saved = saved_progress(store, source.name())?;
    let start = source.start(saved.as_ref(), args.from_start)?;
    if let Some(remark) = start.remark {
        note(global, &remark);
    }
    let position_bytes = start.lines.position_bytes();
    units.begin_at(position_bytes);
    let total_bytes = Some(source.len_bytes()?.saturating_sub(position_bytes));
    let source_name = Some((source.name().to_owned(), saved));
    let input = Input::new(start.lines, stop.clone());
    Ok(Reading { input, units, source: Some(source), source_name, total_bytes })
}

/// Stdin without a buffer of its own, and its size where it is a file.
fn stdin(global: &Global) -> Result<(File, Option<u64>), Failure> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        note(global, "each line is an event; end with Ctrl-D");
    }
    let unreadable = |error: std::io::Error| Failure::usage(format!("cannot read stdin: {error}"));
    let file = File::from(stdin.as_fd().try_clone_to_owned().map_err(unreadable)?);
    let metadata = file.metadata().map_err(unreadable)?;
    Ok((file, metadata.is_file().then_some(metadata.len())))
}

impl Reading {
    /// Makes units of lines until there are no more. What was read before an error is passed on.
    fn run(mut self, send: &SyncSender<Unit>) -> Result<Ended, Failure> {
        let read = self.read(send);
        if !self.units.is_empty() {
            self.pass_on(send)?;
        }
        read
    }

    fn read(&mut self, send: &SyncSender<Unit>) -> Result<Ended, Failure> {
        let mut now_ms = now().as_ms();
        loop {
            if self.units.is_full() {
                self.pass_on(send)?;
                now_ms = now().as_ms();
            }
            match self.input.next()? {
                Next::Line(line) if !line.is_ended && self.source.is_some() => {
                    self.input.step_back();
                    return Ok(Ended::Unfinished);
                }
                Next::Line(line) => {
                    if let Err(failure) = self.units.add(&line, now_ms) {
                        // It is in no unit, so the place that goes with the unit is before it.
                        self.input.step_back();
                        return Err(failure);
                    }
                }
                Next::Nothing => {
                    if !self.units.is_empty() {
                        self.pass_on(send)?;
                    }
                    self.input.wait()?;
                    now_ms = now().as_ms();
                }
                Next::End => return Ok(Ended::Whole),
                Next::Stopped => return Ok(Ended::Stopped),
            }
        }
    }

    fn pass_on(&mut self, send: &SyncSender<Unit>) -> Result<(), Failure> {
        let lines = self.input.lines();
        let mut unit = self.units.take(lines.lines(), lines.position_bytes());
        if let Some(source) = &mut self.source {
            unit.progress = Some(source.progress(lines)?);
        }
        // Nobody takes it after a refusal, which the writer tells; the process is about to end.
        drop(send.send(unit));
        Ok(())
    }
}

fn tell_end(
    global: &Global,
    args: &ProduceArgs,
    ended: Result<Ended, Failure>,
    acknowledged: &Acknowledged,
) -> Result<(), Failure> {
    let (count, lines, topic) = (acknowledged.events(), acknowledged.lines(), &args.topic);
    let source = args.source.as_ref().map(|path| path.display());
    let ended = ended.map_err(|failure| told(failure, args, acknowledged))?;
    if ended == Ended::Stopped {
        return Err(told(Failure::new(Exit::Interrupted, "interrupted"), args, acknowledged));
    }
    match source {
        Some(source) if count == 0 => note(global, &format!("nothing new in {source} for {topic}")),
        Some(source) => {
            let events = events(count);
            note(global, &format!("{events} in {topic}, on disk; {source} is read up to line {lines}"));
        }
        None => note(global, &format!("{} in {topic}, on disk", events(count))),
    }
    if ended == Ended::Unfinished {
        note(global, "the last line has no line feed yet; it is left for the next run");
    }
    Ok(())
}

/// The failure of reading, with how much is on disk and how to go on behind it.
fn told(failure: Failure, args: &ProduceArgs, acknowledged: &Acknowledged) -> Failure {
    let (events, next) = (events(acknowledged.events()), acknowledged.lines() + 1);
    match args.source {
        Some(_) => failure.also(&format!("{events} before it on disk, run again to go on")),
        None if acknowledged.events() == 0 => failure.also("no event was written"),
        None => {
            failure.also(&format!("{events} before it on disk, go on with line {next} (tail -n +{next})"))
        }
    }
}

/// The failure of writing. What was refused is not there; where storage failed, events behind those that are known to be on
/// disk may be there, too.
fn cut_short(failure: Failure, args: &ProduceArgs, acknowledged: &Acknowledged) -> Failure {
    if args.source.is_some() || !acknowledged.perhaps_more() {
        return told(failure, args, acknowledged);
    }
    let (events, lines) = (events(acknowledged.events()), acknowledged.lines());
    failure
        .also(&format!("{events} on disk, those of the first {lines} lines; perhaps some behind them, too"))
}
