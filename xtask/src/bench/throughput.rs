//! Bytes and events a second.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::ensure;

use super::Place;
use super::measure::{Run, Took, median, run};

const LINES: usize = 1 << 20;
const LINE_BYTES: usize = 1024;
const GIB: f64 = (LINES * LINE_BYTES) as f64;
const TURNS: usize = 5;

/// `produce` against `dd … conv=fdatasync`, in turns: both write a gibibyte and end when it is on disk.
pub fn produce(place: &Place) -> anyhow::Result<()> {
    let lines = lines(place)?;
    let dd = Path::new("dd");
    let turns = in_turns(
        || {
            let of = format!("of={}", place.path("dd").display());
            run(&Run::new(dd, &["if=/dev/zero", &of, "bs=1M", "count=1024", "conv=fdatasync", "status=none"]))
        },
        || {
            let data = place.path("data");
            if data.exists() {
                std::fs::remove_dir_all(&data)?;
            }
            run(&place.leftoff(&["produce", "t", "--data", "data", "-q"]).stdin(lines.clone()))
        },
    )?;
    report("dd", "leftoff produce", GIB / 1e6, "MB/s", &turns);
    Ok(())
}

/// `consume` against `cat` of the same bytes, in turns, both from the page cache to `/dev/null`.
pub fn consume(place: &Place) -> anyhow::Result<()> {
    let lines = lines(place)?;
    let made = run(&place.leftoff(&["produce", "t", "--data", "data", "-q"]).stdin(lines.clone()))?;
    ensure!(made.success, "produce failed");
    let file = lines.display().to_string();
    let pipe_to_null =
        |command: String| run(&Run::new(Path::new("sh"), &["-c", &command]).dir(place.dir.path()));
    let leftoff = place.leftoff.display().to_string();
    let turns = in_turns(
        || pipe_to_null(format!("cat {file} > /dev/null")),
        || pipe_to_null(format!("exec {leftoff} consume t --data data > /dev/null")),
    )?;
    report("cat", "leftoff consume", GIB / 1e6, "MB/s", &turns);
    // `cat` to /dev/null copies nothing; through a pipe both have the same work.
    let turns = in_turns(
        || pipe_to_null(format!("cat {file} | cat > /dev/null")),
        || pipe_to_null(format!("{leftoff} consume t --data data | cat > /dev/null")),
    )?;
    report("cat, to a pipe", "leftoff consume, to a pipe", GIB / 1e6, "MB/s", &turns);
    Ok(())
}

/// `run` with a handler that does nothing, saving after each event, against the two syncs an event that exactly once costs.
pub fn run_handler(place: &Place) -> anyhow::Result<()> {
    const EVENTS: usize = 20_000;
    let input = place.path("events");
    let mut out = BufWriter::new(std::fs::File::create(&input)?);
    for number in 0..EVENTS {
        writeln!(out, "{{\"n\": {number}}}")?;
    }
    out.flush()?;
    ensure!(
        run(&place.leftoff(&["produce", "t", "--data", "data", "-q"]).stdin(input))?.success,
        "produce failed"
    );
    let handler = crate::root()?.join("examples/handlers/echo.py").display().to_string();
    for (what, out) in [("file: (exactly once)", "file:out.ndjson"), ("stdout (at least once)", "stdout")] {
        let group = out.split(':').next().unwrap_or("g");
        let args = [
            "run",
            "-t",
            "t",
            "-g",
            group,
            "--data",
            "data",
            "--out",
            out,
            "--until-end",
            "-q",
            "--",
            "python3",
            &handler,
        ];
        let took = run(&place.leftoff(&args).stdout(&place.path("stdout").display().to_string()))?;
        ensure!(took.success, "run failed");
        println!("  {what}: {:.0} events/s, {:.1} CPU-s", EVENTS as f64 / took.wall_s, took.cpu_s);
    }
    Ok(())
}

fn lines(place: &Place) -> anyhow::Result<PathBuf> {
    let path = place.path("lines");
    let mut out = BufWriter::new(std::fs::File::create(&path)?);
    let mut line = vec![b'x'; LINE_BYTES];
    line[LINE_BYTES - 1] = b'\n';
    for number in 0..LINES {
        line[..10].copy_from_slice(format!("{number:010}").as_bytes());
        out.write_all(&line)?;
    }
    out.flush()?;
    Ok(path)
}

type Turn = (Took, Took);

fn in_turns(
    mut peer: impl FnMut() -> anyhow::Result<Took>,
    mut ours: impl FnMut() -> anyhow::Result<Took>,
) -> anyhow::Result<Vec<Turn>> {
    let mut turns = Vec::new();
    // The first turn warms the caches and is not counted.
    for turn in 0..=TURNS {
        let took = (peer()?, ours()?);
        ensure!(took.0.success && took.1.success, "a command of the bench failed");
        if turn > 0 {
            turns.push(took);
        }
    }
    Ok(turns)
}

fn report(peer: &str, ours: &str, work: f64, unit: &str, turns: &[Turn]) {
    let of = |pick: fn(&Turn) -> f64| median(turns.iter().map(pick).collect());
    let (peer_s, ours_s) = (of(|turn| turn.0.wall_s), of(|turn| turn.1.wall_s));
    let ratio = of(|turn| turn.0.wall_s / turn.1.wall_s);
    println!("  {peer}: {:.0} {unit}, {:.2} CPU-s", work / peer_s, of(|turn| turn.0.cpu_s));
    println!(
        "  {ours}: {:.0} {unit}, {:.2} CPU-s, {:.0} MiB resident",
        work / ours_s,
        of(|turn| turn.1.cpu_s),
        of(|turn| turn.1.resident_kib as f64) / 1024.0
    );
    println!("  ratio (median of {} turns): {ratio:.2} of the speed of {peer}", turns.len());
}
