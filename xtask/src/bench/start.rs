//! How long a start takes: a verb that opens the directory for writing, does next to nothing, and ends.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::Place;
use super::measure::{median, run};

const PARTITIONS: u32 = 100;
const LINES: u32 = 2 << 20;
const STARTS: usize = 9;

/// Makes 2 GiB in 100 partitions, then starts again and again: after a clean stop, and after SIGKILL of a writer.
pub fn start(place: &Place) -> anyhow::Result<()> {
    let partitions = PARTITIONS.to_string();
    let made = run(&place.leftoff(&["topics", "create", "t", "-p", &partitions, "--data", "data", "-q"]))?;
    ensure!(made.success, "topics create failed");
    let mut producer = producer(place)?;
    let mut input = std::io::BufWriter::new(producer.stdin.take().context("stdin is piped")?);
    let pad = "x".repeat(1024 - 30);
    for number in 0..LINES {
        writeln!(input, "{{\"id\": {number}, \"pad\": \"{pad}\"}}").context("produce ended early")?;
    }
    drop(input.into_inner()?);
    ensure!(producer.wait()?.success(), "produce failed");
    starts(place, "after a clean stop", &|| Ok(()))?;
    starts(place, "after SIGKILL of a writer", &|| kill_a_writer(place))
}

fn producer(place: &Place) -> anyhow::Result<std::process::Child> {
    let mut command = Command::new(&place.leftoff);
    command.args(["produce", "t", "--key-field", "id", "--data", "data", "-q"]).current_dir(place.dir.path());
    Ok(command.stdin(Stdio::piped()).spawn()?)
}

/// A writer that is killed after it has written and while it waits for more.
fn kill_a_writer(place: &Place) -> anyhow::Result<()> {
    let before = bytes(place)?;
    let mut producer = producer(place)?;
    let input = producer.stdin.as_mut().context("stdin is piped")?;
    for number in 0..1000 {
        writeln!(input, "{{\"id\": {number}, \"pad\": \"{}\"}}", "y".repeat(1000))?;
    }
    input.flush()?;
    while bytes(place)? == before {
        std::thread::yield_now();
    }
    producer.kill()?;
    producer.wait()?;
    Ok(())
}

fn bytes(place: &Place) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for partition in 0..PARTITIONS {
        let log = place.path("data").join(format!("t-{partition}/00000000000000000000.log"));
        bytes += std::fs::metadata(log)?.len();
    }
    Ok(bytes)
}

fn starts(place: &Place, what: &str, before: &dyn Fn() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut took = Vec::new();
    for _ in 0..STARTS {
        before()?;
        let start = run(&place.leftoff(&[
            "topics",
            "alter",
            "t",
            "-c",
            "segment.ms=604800000",
            "--data",
            "data",
            "-q",
        ]))?;
        ensure!(start.success, "topics alter failed");
        took.push(start);
    }
    let wall_ms = median(took.iter().map(|start| start.wall_s * 1000.0).collect());
    let most_ms = took.iter().map(|start| start.wall_s * 1000.0).fold(0.0, f64::max);
    let resident = took.iter().map(|start| start.resident_kib).max().unwrap_or(0);
    println!(
        "  {what}: median {wall_ms:.0} ms, most {most_ms:.0} ms, {:.0} MiB resident",
        resident as f64 / 1024.0
    );
    Ok(())
}
