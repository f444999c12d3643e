//! `storm`: random flags, handlers that lie, and deaths of runner, handler and producer. Then the topic's events are held against
//! what is at the place, by a reader of its own that shares no code with ours: nothing lost, exactly once where that is promised,
//! in order. A run is made by its seed: `--seed N --runs 1` repeats it (not what the machine makes of the moments of kills).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::Verdict;
use super::leftoff::Leftoff;

mod judge;

const HANDLER: &str = include_str!("storm/handler.py");
/// What CI runs.
const RUNS: u64 = 12;
const SEED: u64 = 1;
/// After so many starts the handler is honest, so that there is an end.
const STARTS: usize = 40;
/// So many more, and the run has no end.
const MORE_STARTS: usize = 20;
/// No run of a runner takes this long.
const NEVER: Duration = Duration::from_secs(60);
/// Where a runner dies by itself, beside what its handler does to it.
const POINTS: &[&str] =
    &["sink-before", "sink-after", "group-before", "group-after", "sync-before", "sync-after"];

/// The short run with a fixed seed.
pub(super) fn run() -> anyhow::Result<Verdict> {
    runs(SEED, RUNS)
}

/// `cargo xtask compat storm --seed N --runs N`
///
/// # Errors
///
/// When a flag is not understood, or something that a run needs fails.
pub(super) fn command(flags: &[&str]) -> anyhow::Result<ExitCode> {
    let (mut seed, mut count) = (SEED, RUNS);
    for pair in flags.chunks(2) {
        match pair {
            ["--seed", value] => seed = value.parse().context("--seed takes a number")?,
            ["--runs", value] => count = value.parse().context("--runs takes a number")?,
            other => bail!("storm takes --seed N and --runs N, not {other:?}"),
        }
    }
    match runs(seed, count)? {
        Verdict::Passed(what) | Verdict::Skipped(what) => println!("storm: {what}"),
        Verdict::Failed(complaints) => {
            eprintln!("storm: FAILED: {} of {count} runs", complaints.len());
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn runs(first: u64, count: u64) -> anyhow::Result<Verdict> {
    if Command::new("python3").arg("--version").output().is_err() {
        return Ok(Verdict::Skipped("there is no python3".to_owned()));
    }
    let leftoff = Leftoff::build(PathBuf::new())?;
    let (mut complaints, mut deaths, mut events) = (Vec::new(), 0, 0);
    for seed in first..first + count {
        let storm = Storm::new(&leftoff, seed)?;
        let flags = storm.flags.join(" ");
        match storm.run() {
            Ok(seen) if (seed + 1 - first).is_multiple_of(10) => {
                (deaths, events) = (deaths + seen.deaths, events + seen.events);
                println!("storm: up to seed {seed}: {events} events, {deaths} deaths");
            }
            Ok(seen) => (deaths, events) = (deaths + seen.deaths, events + seen.events),
            Err(why) => complaints.push(told(format!(
                "seed {seed}: {why:#}\n  flags: {flags}\n  again: cargo xtask compat storm --seed {seed} --runs 1"
            ))),
        }
    }
    if !complaints.is_empty() {
        return Ok(Verdict::Failed(complaints));
    }
    let last = first + count - 1;
    Ok(Verdict::Passed(format!(
        "seeds {first} to {last}: {events} events through {deaths} deaths: nothing lost, nothing twice where that is promised"
    )))
}

/// Says at once what a long attack has found.
fn told(complaint: String) -> String {
    eprintln!("storm: {complaint}");
    complaint
}

/// What a run saw.
struct Seen {
    deaths: usize,
    events: usize,
}

/// A run.
struct Storm {
    leftoff: Leftoff,
    folder: tempfile::TempDir,
    random: u64,
    seed: u64,
    partitions: u64,
    /// The lines of the source.
    lines: Vec<judge::Line>,
    place: &'static str,
    flags: Vec<String>,
    on_fail: &'static str,
    has_ids: bool,
    is_checked_in_order: Option<judge::By>,
    deaths: usize,
    /// What runners have printed.
    printed: Vec<String>,
}

impl Storm {
    fn new(leftoff: &Leftoff, seed: u64) -> anyhow::Result<Storm> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let leftoff = leftoff.on(folder.path().join("data"));
        let mut storm = Storm {
            leftoff,
            folder,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            seed,
            partitions: 0,
            lines: Vec::new(),
            place: "",
            flags: Vec::new(),
            on_fail: "",
            has_ids: false,
            is_checked_in_order: None,
            deaths: 0,
            printed: Vec::new(),
        };
        storm.draw();
        Ok(storm)
    }

    /// Flags and events.
    fn draw(&mut self) {
        self.partitions = 1 + self.below(4);
        self.place = self.one_of(&["file", "sqlite", "topic", "stdout"]);
        self.on_fail = self.one_of(&["stop", "retry", "dlq", "skip"]);
        self.has_ids = self.place == "sqlite" && self.below(2) == 0;
        let order = self.one_of(&["partition", "key", "none"]);
        let (concurrency, pipeline) = (1 + self.below(4), self.one_of(&["1", "1", "7"]));
        let save = self.one_of(&["event", "every=7", "every=3ms"]);
        let place = match self.place {
            "file" => format!("file:{}", self.path("out").display()),
            "sqlite" => format!("sqlite:{}", self.path("out").display()),
            "topic" => "topic:out".to_owned(),
            other => other.to_owned(),
        };
        let words = format!(
            "--out {place} --order {order} --concurrency {concurrency} --pipeline {pipeline} --save {save} \
             --on-fail {} --handler-timeout 500ms --drain 2s",
            self.on_fail
        );
        self.flags = words.split_whitespace().map(str::to_owned).collect();
        if self.on_fail != "stop" {
            self.flags.extend(["--attempts", "60", "--backoff", "5ms..20ms"].map(str::to_owned));
        }
        if self.has_ids {
            self.flags.extend(["--dedupe", "json:id"].map(str::to_owned));
        }
        self.is_checked_in_order = match (order, pipeline) {
            ("partition", "1") => Some(judge::By::Partition),
            ("key", "1") => Some(judge::By::Key),
            _ => None,
        };
        let has_bad = matches!(self.on_fail, "dlq" | "skip");
        let count = 60 + self.below(120);
        for n in 0..count {
            let is_bad = has_bad && self.below(25) == 0;
            let line = judge::Line { id: format!("e{n}"), key: format!("k{}", self.below(9)), n, is_bad };
            // Some are produced twice, one behind the other.
            if self.has_ids && self.below(10) == 0 {
                self.lines.push(line.clone());
            }
            self.lines.push(line);
        }
    }

    fn run(mut self) -> anyhow::Result<Seen> {
        fs::write(self.path("handler.py"), HANDLER).context("cannot write the handler")?;
        fs::create_dir(self.path("lies")).context("cannot make a folder")?;
        let partitions = self.partitions.to_string();
        for topic in ["t", "out"] {
            self.leftoff.run(&["topics", "create", topic, "-q", "-p", &partitions], "")?;
        }
        self.produce()?;
        let mut starts = 0;
        while !self.handle(starts)? {
            starts += 1;
            if starts == STARTS {
                fs::write(self.path("lies/honest"), "").context("cannot write a file")?;
            }
            ensure!(starts < STARTS + MORE_STARTS, "it does not end: {}", self.told());
        }
        self.judge()?;
        Ok(Seen { deaths: self.deaths, events: self.lines.len() })
    }

    /// Part by part, killed now and then; then to the end.
    fn produce(&mut self) -> anyhow::Result<()> {
        let source = self.path("source").display().to_string();
        let arguments = ["produce", "t", "-q", "--key-field", "key", "--source", &source];
        let all: Vec<String> = self.lines.iter().map(judge::Line::text).collect();
        for _ in 0..3 {
            let fed = usize::try_from(self.below(all.len() as u64 + 1)).unwrap_or_default();
            let known = fs::read_to_string(&source).unwrap_or_default().lines().count();
            fs::write(&source, all[..fed.max(known)].concat()).context("cannot write the source")?;
            let mut producer = self.leftoff.command(&arguments).spawn().context("cannot start a producer")?;
            std::thread::sleep(Duration::from_micros(self.below(25_000)));
            // It may have ended by itself.
            let _ = producer.kill();
            self.deaths += usize::from(producer.wait().context("a producer")?.code().is_none());
        }
        fs::write(&source, all.concat()).context("cannot write the source")?;
        self.leftoff.run(&arguments, "").map(|_| ())
    }

    /// Starts a runner. Whether it came to the end.
    fn handle(&mut self, starts: usize) -> anyhow::Result<bool> {
        let mut arguments = vec!["run", "-t", "t", "-g", "g", "--until-end"];
        arguments.extend(self.flags.iter().map(String::as_str));
        let mut command = self.leftoff.command(&arguments);
        let output = |name: &str| fs::File::create(self.path(name)).context("cannot make a file");
        command.stdout(output("printed")?).stderr(output("told")?);
        command.args(["--", "python3"]).arg(self.path("handler.py")).arg(self.path("lies"));
        command.arg(self.seed.to_string()).arg(starts.to_string());
        if starts < STARTS && self.below(3) == 0 {
            let point = self.one_of(POINTS);
            command.env("LEFTOFF_DIE_AT", format!("{point}:{}", 1 + self.below(12)));
        }
        let mut runner = command.stdin(Stdio::null()).spawn().context("cannot start a run")?;
        // A kill at a random moment, in a third of the starts.
        let killed_after =
            (starts < STARTS && self.below(3) == 0).then(|| Duration::from_millis(self.below(400)));
        let began = Instant::now();
        let ended = loop {
            if let Some(ended) = runner.try_wait().context("a run")? {
                break ended;
            }
            let is_over = began.elapsed() > NEVER;
            if is_over || killed_after.is_some_and(|after| began.elapsed() > after) {
                runner.kill().context("cannot kill a run")?;
                let ended = runner.wait().context("a run")?;
                ensure!(!is_over, "a run has hung for {} s: {}", NEVER.as_secs(), self.told());
                break ended;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        self.printed.push(fs::read_to_string(self.path("printed")).context("what a run printed")?);
        self.deaths += usize::from(ended.code().is_none());
        match ended.code() {
            Some(0) => Ok(true),
            // Stopped by a failure of the handler, or the last one's handler is still there.
            None | Some(1 | 4) => Ok(false),
            Some(code) => bail!("a run ended with {code}: {}", self.told()),
        }
    }

    fn judge(&self) -> anyhow::Result<()> {
        let log = self.leftoff.run(&["consume", "t", "-f", "%p %o %k %v\n"], "")?;
        let log = judge::log(&log, &self.lines, self.has_ids)?;
        let outputs = match self.place {
            "file" => judge::lines(&fs::read_to_string(self.path("out")).context("the file")?)?,
            "stdout" => judge::printed(&self.printed)?,
            "topic" => judge::topic(&self.leftoff.run(&["consume", "out", "-f", "%p\t%h\t%v\n"], "")?)?,
            _ => judge::lines(&rows(&self.path("out"))?)?,
        };
        judge::effects(&log, &outputs, self.place != "stdout")?;
        if self.on_fail == "dlq" {
            judge::dead(
                &log,
                &self.leftoff.run(&["dlq", "ls", "g", "--format", "csv", "--no-headers"], "")?,
            )?;
        }
        if let Some(by) = self.is_checked_in_order {
            judge::handled_in_order(&fs::read_to_string(self.path("lies/handled")).unwrap_or_default(), by)?;
        }
        if self.place != "stdout" {
            let out = self.flags[1].as_str();
            let said = self.leftoff.run(&["check", "-g", "g", "--out", out, "--drained"], "")?;
            ensure!(said.contains("lost: [] | handled twice: []"), "the audit says: {said}");
        }
        Ok(())
    }

    fn told(&self) -> String {
        fs::read_to_string(self.path("told")).unwrap_or_default()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn one_of(&mut self, all: &[&'static str]) -> &'static str {
        all[usize::try_from(self.below(all.len() as u64)).unwrap_or_default()]
    }

    /// A random number, by xorshift.
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }
}

/// The rows of a database as lines of a file, by Python's own reader.
fn rows(path: &Path) -> anyhow::Result<String> {
    const READ: &str = "import json, sqlite3, sys
for t, p, o, n, r in sqlite3.connect(sys.argv[1]).execute('SELECT topic_id, partition, \"offset\", n, record FROM leftoff_events ORDER BY rowid'):
    print(json.dumps({'leftoff_id': f'{t}/{p}/{o}/{n}', **json.loads(r)}))";
    let read = Command::new("python3").args(["-c", READ]).arg(path).output().context("cannot run python3")?;
    ensure!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    String::from_utf8(read.stdout).context("rows")
}
