//! Runner, handler and producer are killed with SIGKILL, again and again, while they work: no event is lost, none is twice in
//! the file, and the order of each partition is kept. Judged by `leftoff check`, and by this test on its own.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::process::{Background, kill, pid_in, stdout, until};
use crate::script::check_in;

const KILLS: usize = 20;

#[test]
fn earthquakes_on_one_partition() {
    Crashes::new(1, 3, earthquakes(), "event").survive();
}

#[test]
fn earthquakes_on_four_partitions() {
    Crashes::new(4, 5, earthquakes(), "event").survive();
}

#[test]
fn twenty_thousand_flights_on_one_partition() {
    Crashes::new(1, 7, flights(), "every=40").survive();
}

#[test]
fn twenty_thousand_flights_on_four_partitions() {
    Crashes::new(4, 11, flights(), "every=5ms").survive();
}

/// Real ones, whose ids are their keys.
fn earthquakes() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/earthquakes.ndjson");
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

/// Made up, in the form of the real ones, with an id each.
fn flights() -> Vec<String> {
    const AIRPORTS: [&str; 6] = ["DTW", "LAS", "HNL", "SFO", "ATL", "ORD"];
    let mut seed = 2001;
    let mut random = |below: u64| usize::try_from(next(&mut seed) % below).unwrap();
    let flight = |number| {
        let (delay, distance) = (random(200), 100 + random(2_500));
        let (origin, destination) = (AIRPORTS[random(6)], AIRPORTS[random(6)]);
        format!(
            "{{\"id\": \"f{number}\", \"delay\": {delay}, \"distance\": {distance}, \"origin\": \"{origin}\", \
             \"destination\": \"{destination}\"}}"
        )
    };
    (0..20_000).map(flight).collect()
}

struct Crashes {
    dir: TempDir,
    lines: Vec<String>,
    /// How many of them are in the producer's file.
    fed: usize,
    save: &'static str,
    seed: u64,
    runner: Option<Background>,
    /// How often it was started.
    starts: usize,
    /// Kills of runner, handler and producer.
    kills: [usize; 3],
}

impl Crashes {
    fn new(partitions: u32, seed: u64, lines: Vec<String>, save: &'static str) -> Crashes {
        let dir = TempDir::new().unwrap();
        let handler = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/handlers/copy.sh");
        std::fs::copy(handler, dir.path().join("copy.sh")).unwrap();
        check_in(&dir, &format!("$ topics create t -q -p {partitions} -c segment.bytes=200000"));
        Crashes { dir, lines, fed: 0, save, seed, runner: None, starts: 0, kills: [0; 3] }
    }

    fn survive(mut self) {
        while self.kills.iter().sum::<usize>() < KILLS {
            let bytes = self.feed(self.lines.len() / (KILLS + 5));
            match next(&mut self.seed) % 3 {
                0 => self.kill_producer(bytes),
                1 => self.kill_runner(),
                _ => self.kill_handler(),
            }
        }
        assert!(self.kills.iter().all(|kills| *kills > 0), "{:?}", self.kills);
        self.feed(self.lines.len());
        self.produce_to_the_end();
        self.work();
        self.finish();
        self.judge();
    }

    /// More lines for the producer to read; tells how many bytes.
    fn feed(&mut self, count: usize) -> u64 {
        let to = (self.fed + count).min(self.lines.len());
        let mut file =
            std::fs::OpenOptions::new().create(true).append(true).open(self.path("source")).unwrap();
        let text: String = self.lines[self.fed..to].iter().map(|line| format!("{line}\n")).collect();
        file.write_all(text.as_bytes()).unwrap();
        self.fed = to;
        text.len() as u64
    }

    /// Killed at once, or when the logs have grown by a random number of bytes; if it is done before, somebody else's turn
    /// comes.
    fn kill_producer(&mut self, bytes: u64) {
        self.work();
        let mut producer = Background::start(self.dir.path(), "produce t --key-field id --source source");
        let wanted = (self.log_bytes() + next(&mut self.seed) % (2 * bytes + 1)).saturating_sub(bytes);
        until("progress of the producer", || {
            (self.log_bytes() >= wanted || producer.has_ended()).then_some(())
        });
        let _too_late = producer.0.kill();
        match producer.end() {
            None => self.kills[2] += 1,
            code => assert_eq!(code, Some(0)),
        }
    }

    fn kill_runner(&mut self) {
        self.produce_to_the_end();
        self.work();
        self.wait_for_some_events();
        let mut runner = self.runner.take().expect("it works");
        runner.signal("-KILL");
        assert_eq!(runner.end(), None);
        self.kills[0] += 1;
    }

    /// The runner stops by itself, with exit code 1, and names the event.
    fn kill_handler(&mut self) {
        self.produce_to_the_end();
        self.work();
        let pid = pid_in(&self.pid_file());
        self.wait_for_some_events();
        kill("-KILL", pid);
        let mut runner = self.runner.take().expect("it works");
        assert_eq!(runner.end(), Some(1));
        self.kills[1] += 1;
    }

    /// Starts the runner if it does not work. It never ends by itself.
    fn work(&mut self) {
        if self.runner.is_none() {
            self.starts += 1;
            let pid = self.pid_file();
            let args =
                format!("run -t t -g g --out file:out --save {} -- sh copy.sh {}", self.save, pid.display());
            self.runner = Some(Background::start(self.dir.path(), &args));
        }
        let runner = self.runner.as_mut().expect("it was started");
        assert!(!runner.has_ended(), "the runner ended by itself");
    }

    fn produce_to_the_end(&self) {
        let mut producer = Background::start(self.dir.path(), "produce t --key-field id --source source");
        assert_eq!(producer.end(), Some(0));
    }

    /// A random number of outputs, at most all there are to come.
    fn wait_for_some_events(&mut self) {
        // Looked at once: the runner goes on meanwhile.
        let outputs = count_lines(&self.path("out")).min(self.fed);
        let left = self.fed - outputs;
        let wanted = outputs + usize::try_from(next(&mut self.seed)).unwrap() % (left + 1);
        let runner = self.runner.as_mut().expect("it works");
        let out = self.dir.path().join("out");
        until("progress of the runner", || {
            assert!(!runner.has_ended(), "the runner ended by itself");
            (count_lines(&out) >= wanted).then_some(())
        });
    }

    fn finish(&mut self) {
        until("a description with the member", || {
            stdout(self.dir.path(), "groups describe g").contains(" run@").then_some(())
        });
        stdout(self.dir.path(), "wait -g g --until end --timeout 60s");
        let mut runner = self.runner.take().expect("it works");
        runner.signal("-TERM");
        assert_eq!(runner.end(), Some(0));
    }

    fn judge(&self) {
        check_in(
            &self.dir,
            "$ check -g g --out file:out --drained\n> nothing left\n> lost: [] | handled twice: []",
        );
        let log = self.log();
        let mut keys: Vec<&str> = log.values().map(String::as_str).collect();
        keys.sort_unstable();
        let mut expect: Vec<&str> = self.lines.iter().map(|line| between(line, "\"id\": \"")).collect();
        expect.sort_unstable();
        assert_eq!(keys, expect, "each line is in the log once");

        let text = std::fs::read_to_string(self.path("out")).unwrap();
        let mut outputs: BTreeMap<(i32, i64), &str> = BTreeMap::new();
        let mut last: BTreeMap<i32, i64> = BTreeMap::new();
        for line in text.lines() {
            let place: Vec<&str> = between(line, "\"leftoff_id\":\"").split('/').collect();
            let (partition, offset) = (place[1].parse().unwrap(), place[2].parse().unwrap());
            assert!(last.insert(partition, offset).is_none_or(|last| last < offset), "out of order: {line}");
            assert_eq!(
                outputs.insert((partition, offset), between(line, "\"key\":\"")),
                None,
                "twice: {line}"
            );
        }
        let log: Vec<_> = log.iter().map(|(place, key)| (*place, key.as_str())).collect();
        assert_eq!(outputs.into_iter().collect::<Vec<_>>(), log, "each event has its output");
    }

    fn log(&self) -> BTreeMap<(i32, i64), String> {
        let text = stdout(self.dir.path(), "consume t --format csv --no-headers");
        let event = |line: &str| {
            let [_, partition, offset, _, key, ..] = line.splitn(6, ',').collect::<Vec<_>>()[..] else {
                panic!("not an event: {line}");
            };
            ((partition.parse().unwrap(), offset.parse().unwrap()), key.to_owned())
        };
        text.lines().map(event).collect()
    }

    fn log_bytes(&self) -> u64 {
        let folders = std::fs::read_dir(self.path("d")).unwrap().flatten();
        let partitions = folders.filter(|entry| entry.file_name().to_string_lossy().starts_with("t-"));
        let files = partitions.flat_map(|entry| std::fs::read_dir(entry.path()).unwrap().flatten());
        let logs = files.filter(|file| file.path().extension().is_some_and(|name| name == "log"));
        logs.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
    }

    /// Each start has its own: a handler whose runner is killed may still be about to write it.
    fn pid_file(&self) -> PathBuf {
        self.path(&format!("pid-{}", self.starts))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn count_lines(path: &Path) -> usize {
    std::fs::read(path).map_or(0, |bytes| bytes.iter().filter(|byte| **byte == b'\n').count())
}

/// What stands in quotes behind `start`.
fn between<'a>(line: &'a str, start: &str) -> &'a str {
    let (_, rest) = line.split_once(start).unwrap_or_else(|| panic!("no {start} in {line}"));
    rest.split('"').next().unwrap()
}

/// A xorshift generator: the same kills from the same seed, as far as the machine plays along.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}
