//! How many events a second a closure that does nothing handles: 100 bytes each, one partition, a save every 1,000.
//!
//! `cargo xtask bench closure` runs it. Arguments: a folder that does not exist, and how many events.

use std::num::NonZeroU64;
use std::time::Instant;

use leftoff::consumer::runner::{RunOptions, SavePolicy};
use leftoff::{Leftoff, Record};

const VALUE_BYTES: usize = 100;
const BATCH: u64 = 5_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("which folder?")?;
    let events: u64 = arguments.next().ok_or("how many events?")?.parse()?;
    let log = Leftoff::open(&dir)?;
    log.create_topic("events", 1)?;
    let value = vec![b'x'; VALUE_BYTES];
    let batch: Vec<Record<'_>> = (0..BATCH).map(|_| Record::value(&value)).collect();
    for _ in 0..events / BATCH {
        log.append("events", 0, &batch)?;
    }
    let save = SavePolicy::Events(NonZeroU64::new(1_000).ok_or("1,000 is not zero")?);
    let options = RunOptions { save, until_end: true, ..RunOptions::default() };
    let mut bytes = 0_usize;
    let started = Instant::now();
    let topics = ["events".to_owned()];
    let report = log.consume_with("rate", &topics, &options, &std::sync::Arc::default(), |event| {
        bytes += event.value.as_ref().map_or(0, Vec::len);
        Ok::<_, String>(())
    })?;
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(bytes as u64, report.handled * VALUE_BYTES as u64);
    println!("{} {seconds:.4} {}", report.handled, report.saves);
    Ok(log.close()?)
}
