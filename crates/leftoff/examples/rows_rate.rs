//! How many rows a second go from a closure into a database that keeps its own offset: rows of about 100 bytes, one partition,
//! a save every 1,000.
//!
//! `cargo xtask bench rows` runs it. Arguments: a folder that does not exist, how many events, and `sqlite`, or the address of a
//! PostgreSQL database.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use leftoff::consumer::handler::{Answer, Closure, Delivery, Record as Row};
use leftoff::consumer::runner::{Handlers, NoProgress, Parts, RunOptions, Runner, SavePolicy, SystemClock};
use leftoff::consumer::sink::{PostgresSink, Sink, SqliteSink};
use leftoff::source::StoreSource;
use leftoff::{Leftoff, Record};

const BATCH: u64 = 5_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("which folder?")?;
    let events: u64 = arguments.next().ok_or("how many events?")?.parse()?;
    let out = arguments.next().ok_or("sqlite, or which database?")?;
    let log = Leftoff::open(&dir)?;
    log.create_topic("events", 1)?;
    let value = format!("{{\"text\":\"{}\"}}", "x".repeat(88)).into_bytes();
    let batch: Vec<Record<'_>> = (0..BATCH).map(|_| Record::value(&value)).collect();
    for _ in 0..events / BATCH {
        log.append("events", 0, &batch)?;
    }
    let mut sink: Box<dyn Sink> = match out.as_str() {
        "sqlite" => Box::new(SqliteSink::new(format!("{dir}.db"), None, "rate")),
        url => Box::new(PostgresSink::new(url.parse()?, "rate")),
    };
    let save = SavePolicy::Events(NonZeroU64::new(1_000).ok_or("1,000 is not zero")?);
    let options = RunOptions { group: "rate".to_owned(), save, until_end: true, ..RunOptions::default() };
    let mut handler = Closure::new(|delivery: &Delivery<'_>| {
        let text = String::from_utf8(delivery.event.value.clone().unwrap_or_default()).unwrap_or_default();
        Row::from_json(text)
            .map_or_else(|error| Answer::Failed { error: error.to_string(), retry: false }, Answer::record)
    });
    let stop = Arc::new(AtomicBool::new(false));
    let mut source =
        StoreSource::join(log.store(), "rate", &["events".to_owned()], "rows-rate", stop.clone())?;
    let started = Instant::now();
    let report = Runner::new(Parts {
        source: &mut source,
        handlers: Handlers::One(&mut handler),
        sink: sink.as_mut(),
        progress: &mut NoProgress,
        clock: &SystemClock::new(),
        stop: &stop,
        options: &options,
    })
    .run()?;
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!((report.handled, report.written), (events, events));
    println!("{} {seconds:.4} {}", report.written, report.saves);
    sink.close()?;
    source.leave()?;
    Ok(log.close()?)
}
