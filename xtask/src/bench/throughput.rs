//! Bytes and events a second.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};

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

/// `run` with a Python handler that returns each value: one event at a time with a save after each, and in a pipeline.
pub fn run_handler(place: &Place) -> anyhow::Result<()> {
    const ONE_BY_ONE: &[&str] = &[];
    const PIPELINE: &[&str] = &["--pipeline", "256", "--save", "every=1000"];
    const SIDE_BY_SIDE: &[&str] = &["--order", "none", "--concurrency", "2"];
    let table = [
        ("file: (exactly once)", "file:one.ndjson", 20_000, ONE_BY_ONE),
        ("stdout (at least once)", "stdout", 20_000, ONE_BY_ONE),
        ("file:, two handlers in any order", "file:two.ndjson", 20_000, SIDE_BY_SIDE),
        ("file:, a pipeline of 256, a save every 1,000", "file:many.ndjson", 200_000, PIPELINE),
        ("sqlite:, the same", "sqlite:many.db", 200_000, PIPELINE),
        ("topic:, the same", "topic:many", 200_000, PIPELINE),
    ];
    let handler = crate::root()?.join("examples/handlers/echo.py").display().to_string();
    for (number, (what, out, events, flags)) in table.into_iter().enumerate() {
        let (topic, group) = (format!("t{events}"), format!("g{number}"));
        make_events(place, &topic, events)?;
        let mut args = vec!["run", "-t", &topic, "-g", &group, "--data", "data", "--out", out];
        args.extend(["--until-end", "-q"]);
        args.extend(flags);
        args.extend(["--", "python3", &handler]);
        let took = run(&place.leftoff(&args).stdout(&place.path("stdout").display().to_string()))?;
        ensure!(took.success, "run failed");
        println!("  {what}: {:.0} events/s, {:.1} CPU-s", events as f64 / took.wall_s, took.cpu_s);
    }
    Ok(())
}

/// A topic of this name with so many events, if it is not there.
fn make_events(place: &Place, topic: &str, events: usize) -> anyhow::Result<()> {
    let input = place.path(topic);
    if input.exists() {
        return Ok(());
    }
    let mut out = BufWriter::new(std::fs::File::create(&input)?);
    for number in 0..events {
        writeln!(out, "{{\"n\": {number}}}")?;
    }
    out.flush()?;
    let made = run(&place.leftoff(&["produce", topic, "--data", "data", "-q"]).stdin(input))?;
    ensure!(made.success, "produce failed");
    Ok(())
}

/// A closure that does nothing, in its own program: an example of the crate.
pub fn closure(place: &Place) -> anyhow::Result<()> {
    example(place, "closure_rate", &["3000000"])
}

/// A closure whose rows go to SQLite, in its own program.
pub fn rows(place: &Place) -> anyhow::Result<()> {
    example(place, "rows_rate", &["300000", "sqlite"])
}

/// An example of the crate, in turns: it is given a folder and more, and prints how many, in which time, with how many saves.
fn example(place: &Place, name: &str, more: &[&str]) -> anyhow::Result<()> {
    let root = crate::root()?;
    let build = ["build", "--release", "--locked", "-p", "leftoff", "--example", name];
    ensure!(run(&Run::new(Path::new("cargo"), &build).dir(&root))?.success, "the example does not build");
    let program = place.leftoff.with_file_name("examples").join(name);
    let mut rates = Vec::new();
    for turn in 0..TURNS {
        let (dir, printed) = (place.path(&format!("{name}-{turn}")), place.path("printed"));
        let dir = dir.display().to_string();
        let arguments = [&[dir.as_str()], more].concat();
        let took = run(&Run::new(&program, &arguments).stdout(&printed.display().to_string()))?;
        ensure!(took.success, "the example failed");
        let text = std::fs::read_to_string(&printed)?;
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [count, seconds, saves] = numbers[..] else { bail!("the example printed {text:?}") };
        println!("  {:.0} a second, {saves} saves", count / seconds);
        rates.push(count / seconds);
    }
    println!("  median: {:.0} a second", median(rates));
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
