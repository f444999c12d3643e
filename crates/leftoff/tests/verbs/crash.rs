//! Runner, handler and producer are killed with SIGKILL, again and again, while they work: no event is lost, none is twice in
//! the file, and the order of each partition is kept. Judged by `leftoff check`, and by this test on its own.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leftoff::engine::broker::{PartitionId, View};
use leftoff::engine::disk::Disk;
use leftoff::engine::disk::os::OsDisk;
use leftoff::engine::log::ReadBatch;
use leftoff_wire::record_batch::{Batch, Limits};
use rusqlite::types::FromSql;
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use crate::process::{Background, kill, pid_in, stdout, until};
use crate::script::check_in;

/// For each test; `LEFTOFF_KILLS` asks for more.
const KILLS: usize = 20;

fn kills() -> usize {
    std::env::var("LEFTOFF_KILLS").map_or(KILLS, |kills| kills.parse().unwrap())
}

#[test]
fn earthquakes_on_one_partition() {
    Crashes::new(1, 3, earthquakes(), "event", Out::File).survive();
}

#[test]
fn earthquakes_on_four_partitions() {
    Crashes::new(4, 5, earthquakes(), "event", Out::File).survive();
}

#[test]
fn twenty_thousand_flights_on_one_partition() {
    Crashes::new(1, 7, flights(), "every=40", Out::File).survive();
}

#[test]
fn twenty_thousand_flights_on_four_partitions() {
    Crashes::new(4, 11, flights(), "every=5ms", Out::File).survive();
}

#[test]
fn earthquakes_into_a_topic() {
    Crashes::new(4, 13, earthquakes(), "event", Out::Topic { partitions: 3 }).survive();
}

#[test]
fn flights_into_a_topic() {
    Crashes::new(1, 17, flights(), "every=40", Out::Topic { partitions: 1 }).survive();
}

#[test]
#[cfg(feature = "sqlite")]
fn earthquakes_into_sqlite() {
    Crashes::new(4, 19, earthquakes(), "event", Out::Sqlite).survive();
}

#[test]
#[cfg(feature = "sqlite")]
fn flights_into_sqlite() {
    Crashes::new(1, 23, flights(), "every=40", Out::Sqlite).survive();
}

#[test]
fn flights_side_by_side_and_in_any_order() {
    let crashes = Crashes::new(4, 29, flights(), "every=40", Out::File);
    Crashes { flags: "--order none --concurrency 3", ..crashes }.survive();
}

#[test]
fn flights_in_a_pipeline() {
    let crashes = Crashes::new(2, 31, flights(), "event", Out::Topic { partitions: 1 });
    Crashes { flags: "--pipeline 20", ..crashes }.survive();
}

#[test]
#[cfg(feature = "sqlite")]
fn flights_side_by_side_each_with_a_pipeline() {
    let crashes = Crashes::new(4, 37, flights(), "every=5ms", Out::Sqlite);
    Crashes { flags: "--order key --concurrency 2 --pipeline 5", ..crashes }.survive();
}

#[test]
fn dead_letters_beside_a_file() {
    Crashes::new(2, 41, few_flights(), "event", Out::File).with_dead_letters().survive();
}

#[test]
fn dead_letters_in_a_topic() {
    Crashes::new(2, 43, few_flights(), "every=40", Out::Topic { partitions: 1 })
        .with_dead_letters()
        .survive();
}

#[test]
#[cfg(feature = "sqlite")]
fn dead_letters_in_sqlite() {
    Crashes::new(2, 47, few_flights(), "event", Out::Sqlite).with_dead_letters().survive();
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

/// Each dead letter is some syncs.
fn few_flights() -> Vec<String> {
    let mut flights = flights();
    flights.truncate(1_500);
    flights
}

struct Crashes {
    dir: TempDir,
    lines: Vec<String>,
    /// How many of them are in the producer's file.
    fed: usize,
    save: &'static str,
    /// Its name, in the folder of handlers.
    handler: &'static str,
    /// How events are handed out.
    flags: &'static str,
    out: Out,
    seed: u64,
    runner: Option<Background>,
    /// The handler that was killed last.
    killed: u32,
    /// How often it was started.
    starts: usize,
    /// Kills of runner, handler and producer.
    kills: [usize; 3],
}

impl Crashes {
    fn new(partitions: u32, seed: u64, lines: Vec<String>, save: &'static str, out: Out) -> Crashes {
        let dir = TempDir::new().unwrap();
        for name in ["copy.sh", "sevens.sh"] {
            let handler = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/handlers").join(name);
            std::fs::copy(handler, dir.path().join(name)).unwrap();
        }
        check_in(&dir, &format!("$ topics create t -q -p {partitions} -c segment.bytes=200000"));
        out.make(&dir);
        Crashes {
            dir,
            lines,
            fed: 0,
            save,
            handler: "copy.sh",
            flags: "",
            out,
            seed,
            runner: None,
            killed: 0,
            starts: 0,
            kills: [0; 3],
        }
    }

    /// Some events cannot be handled.
    fn with_dead_letters(self) -> Crashes {
        Crashes { handler: "sevens.sh", flags: "--on-fail dlq", ..self }
    }

    fn survive(mut self) {
        while self.kills.iter().sum::<usize>() < kills() {
            let bytes = self.feed(self.lines.len() / (kills() + 5));
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
        let path = self.pid_file();
        // One that was killed may have been started again by its runner.
        let pid = until("a handler's start", || Some(pid_in(&path)).filter(|pid| *pid != self.killed));
        self.killed = pid;
        self.wait_for_some_events();
        kill("-KILL", pid);
        self.kills[1] += 1;
        // With dead letters its end is a failed attempt, and it is started again.
        if self.handler == "copy.sh" {
            let mut runner = self.runner.take().expect("it works");
            assert_eq!(runner.end(), Some(1));
        }
    }

    /// Starts the runner if it does not work. It never ends by itself.
    fn work(&mut self) {
        if self.runner.is_none() {
            self.starts += 1;
            let pid = self.pid_file();
            let (out, save, flags, pid) = (self.out.place(), self.save, self.flags, pid.display());
            let handler = self.handler;
            let args = format!("run -t t -g g --out {out} --save {save} {flags} -- sh {handler} {pid}");
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
        let key = |line: &String| between(line, "\"id\": \"").to_owned();
        let to_come = self.lines[..self.fed].iter().filter(|line| !self.is_bad(&key(line))).count();
        let outputs = self.out.count(self.dir.path()).min(to_come);
        let left = to_come - outputs;
        let wanted = outputs + usize::try_from(next(&mut self.seed)).unwrap() % (left + 1);
        let runner = self.runner.as_mut().expect("it works");
        let (out, dir) = (self.out, self.dir.path());
        until("progress of the runner", || {
            assert!(!runner.has_ended(), "the runner ended by itself");
            (out.count(dir) >= wanted).then_some(())
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
        let checked = stdout(self.dir.path(), &format!("check -g g --out {} --drained", self.out.place()));
        assert!(checked.ends_with("nothing left\nlost: [] | handled twice: []\n"), "{checked}");
        let dead = self.dead();
        assert_eq!(checked.contains("dead: "), !dead.is_empty(), "{checked}");
        let log = self.log();
        let mut keys: Vec<&str> = log.values().map(String::as_str).collect();
        keys.sort_unstable();
        let mut expect: Vec<&str> = self.lines.iter().map(|line| between(line, "\"id\": \"")).collect();
        expect.sort_unstable();
        assert_eq!(keys, expect, "each line is in the log once");

        let all = self.out.read(self.dir.path());
        let mut outputs: BTreeMap<(i32, i64), &str> = BTreeMap::new();
        let mut last: BTreeMap<(usize, i32), i64> = BTreeMap::new();
        for Written { into, id, key } in &all {
            let place: Vec<&str> = id.split('/').collect();
            let (partition, offset) = (place[1].parse().unwrap(), place[2].parse().unwrap());
            let before = last.insert((*into, partition), offset);
            assert!(before.is_none_or(|before| before < offset), "out of order: {id}");
            assert_eq!(outputs.insert((partition, offset), key), None, "twice: {id}");
        }
        // A dead letter is no output, and what cannot be handled is a dead letter.
        let (bad, good): (Vec<_>, Vec<_>) =
            log.iter().map(|(place, key)| (*place, key.as_str())).partition(|(_, key)| self.is_bad(key));
        assert_eq!(outputs.into_iter().collect::<Vec<_>>(), good, "each event has its output");
        let bad: Vec<_> = bad.into_iter().map(|(place, _)| place).collect();
        assert_eq!(dead, bad, "each event without is kept as a dead letter, once");
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

    fn is_bad(&self, key: &str) -> bool {
        self.handler == "sevens.sh" && key.ends_with('7')
    }

    /// The events of which there is a dead letter.
    fn dead(&self) -> Vec<(i32, i64)> {
        let text = stdout(self.dir.path(), "dlq ls g --format csv --no-headers");
        let place = |line: &str| {
            let words: Vec<&str> = line.split(',').next().unwrap().split('/').collect();
            (words[1].parse().unwrap(), words[2].parse().unwrap())
        };
        let mut dead: Vec<_> = text.lines().map(place).collect();
        dead.sort_unstable();
        dead
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

/// The place that the runner writes to.
#[derive(Clone, Copy)]
enum Out {
    File,
    Topic {
        partitions: i32,
    },
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code))]
    Sqlite,
}

/// An output: in which of the parts of the place that keep an order it is, and what it says of its event.
struct Written {
    into: usize,
    id: String,
    key: String,
}

impl Out {
    fn place(self) -> &'static str {
        match self {
            Out::File => "file:out",
            Out::Topic { .. } => "topic:out",
            Out::Sqlite => "sqlite:out",
        }
    }

    fn make(self, dir: &TempDir) {
        if let Out::Topic { partitions } = self {
            check_in(dir, &format!("$ topics create out -q -p {partitions} -c segment.bytes=20000"));
        }
    }

    /// How many outputs there are, roughly.
    fn count(self, dir: &Path) -> usize {
        match self {
            Out::File => count_lines(&dir.join("out")),
            Out::Topic { .. } => topic_ends(dir),
            Out::Sqlite => rows(dir, "SELECT count(*), '' FROM leftoff_events", |count: usize, _| count)
                .map_or(0, |counts| counts[0]),
        }
    }

    fn read(self, dir: &Path) -> Vec<Written> {
        match self {
            Out::File => {
                let text = std::fs::read_to_string(dir.join("out")).unwrap();
                let line = |line: &str| Written {
                    into: 0,
                    id: between(line, "\"leftoff_id\":\"").to_owned(),
                    key: between(line, "\"key\":\"").to_owned(),
                };
                text.lines().map(line).collect()
            }
            Out::Topic { .. } => self.records(dir),
            Out::Sqlite => {
                let sql = "SELECT topic_id || '/' || partition || '/' || \"offset\", record FROM leftoff_events ORDER BY rowid";
                let row = |id, record: String| Written {
                    into: 0,
                    id,
                    key: between(&record, "\"key\":\"").to_owned(),
                };
                rows(dir, sql, row).unwrap()
            }
        }
    }

    /// The records of each partition, as another program would read them.
    fn records(self, dir: &Path) -> Vec<Written> {
        let view = view(dir);
        let topic = view.state().topic("out").unwrap();
        let log = |partition| {
            let id = PartitionId { topic_id: topic.topic_id, partition };
            let log = view.state().log(&id).unwrap();
            (log.read_batches(log.log_start()), usize::try_from(partition).unwrap())
        };
        let logs = (0..topic.partitions).map(log);
        logs.flat_map(|(steps, into)| {
            let mut all = Vec::new();
            for step in steps.map_while(Result::ok) {
                let ReadBatch::Batch { bytes, .. } = step else { panic!("a hole") };
                let (batch, _) = Batch::parse(&bytes).unwrap();
                // Evidence for what has no records.
                if batch.header().attributes.is_control() {
                    continue;
                }
                for record in batch.records(&Limits::default()).unwrap().iter() {
                    let record = record.unwrap();
                    let id =
                        record.headers.iter().find(|(name, _)| *name == b"leftoff_id").unwrap().1.unwrap();
                    let id = String::from_utf8(id.to_vec()).unwrap();
                    let value = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
                    all.push(Written { into, id, key: between(&value, "\"key\":\"").to_owned() });
                }
            }
            all
        })
        .collect()
    }
}

/// Two columns of each row; `None` before there is anything to read.
fn rows<A: FromSql, T>(dir: &Path, sql: &str, row: impl Fn(A, String) -> T) -> Option<Vec<T>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(dir.join("out"), flags).ok()?;
    let mut select = connection.prepare(sql).ok()?;
    let rows = select.query_map([], |found| Ok(row(found.get(0)?, found.get(1)?))).ok()?;
    rows.collect::<Result<_, _>>().ok()
}

fn view(dir: &Path) -> View {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.join("d")).unwrap());
    until("a moment to look", || View::open(&disk).ok())
}

fn topic_ends(dir: &Path) -> usize {
    let view = view(dir);
    let topic = view.state().topic("out").unwrap();
    let ids = (0..topic.partitions).map(|partition| PartitionId { topic_id: topic.topic_id, partition });
    ids.map(|id| usize::try_from(view.state().log(&id).unwrap().high_watermark().get()).unwrap()).sum()
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
