//! `leftoff serve` against Apache Kafka: the same client, librdkafka (`xtask/load`), in turns, each broker on core 0 and the
//! client on core 1. Every acknowledgement of ours is on disk; Kafka runs once with its default, which leaves that to the
//! operating system, and once with `log.flush.interval.messages=1`.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};

use super::Place;
use super::measure::median;
use crate::compat::apache_kafka::ApacheKafka;
use crate::compat::kafka::Kafka;

const BROKER_CORE: &str = "0";
const CLIENT_CORE: &str = "1";
/// Rounds that count; one before them warms up.
const ROUNDS: usize = 5;
const RECORDS: u64 = 500_000;
const RECORD_BYTES: u64 = 1024;
/// Of the benches that go one at a time.
const SINGLES: &str = "1000";

/// Bytes a second in, and CPU seconds of the broker for them.
pub fn produce(place: &Place) -> anyhow::Result<()> {
    let mut field = Field::start(place)?;
    let sequential = disk_bytes_per_second(place)?;
    println!("  the disk, written through and synced at the end: {:.0} MB/s", sequential / 1e6);
    field.rounds("MB/s", |broker, round| {
        let topic = broker.make(&format!("in{round}"), 1)?;
        broker.through("produce", &[&topic, "1", &RECORDS.to_string(), &RECORD_BYTES.to_string()])
    })?;
    field.report(Better::More);
    Ok(())
}

/// The same into 1,000 partitions.
pub fn produce_wide(place: &Place) -> anyhow::Result<()> {
    let mut field = Field::start(place)?;
    for partitions in [1, 1000] {
        println!("  over {partitions} partitions");
        field.rounds("MB/s", |broker, round| {
            let topic = broker.make(&format!("in{round}-{partitions}"), partitions)?;
            let partitions = partitions.to_string();
            broker.through("produce", &[&topic, &partitions, &RECORDS.to_string(), &RECORD_BYTES.to_string()])
        })?;
        field.report(Better::More);
    }
    Ok(())
}

/// Bytes a second out, from the page cache.
pub fn fetch(place: &Place) -> anyhow::Result<()> {
    let mut field = Field::start(place)?;
    for broker in &field.brokers {
        let topic = broker.make("out", 1)?;
        broker.load("produce", &[&topic, "1", &RECORDS.to_string(), &RECORD_BYTES.to_string()])?;
    }
    field.rounds("MB/s", |broker, _| broker.through("fetch", &["out", &RECORDS.to_string()]))?;
    field.report(Better::More);
    Ok(())
}

/// From the send of one record of 100 bytes to its acknowledgement.
pub fn latency(place: &Place) -> anyhow::Result<()> {
    one_at_a_time(place, |broker, round| {
        let topic = broker.make(&format!("one{round}"), 1)?;
        broker.median_ms("latency", &[&topic, SINGLES, "100"])
    })
}

/// One commit of one group, and the next when it is acknowledged.
pub fn commit(place: &Place) -> anyhow::Result<()> {
    one_at_a_time(place, |broker, round| {
        let topic = broker.make(&format!("commit{round}"), 1)?;
        broker.median_ms("commit", &[&topic, &format!("g{round}"), SINGLES])
    })
}

fn one_at_a_time(
    place: &Place,
    one: impl Fn(&Broker, usize) -> anyhow::Result<Figure>,
) -> anyhow::Result<()> {
    let mut field = Field::start(place)?;
    println!("  the disk's fdatasync after 4 KiB: p50 {:.3} ms", disk_sync_ms(place)?);
    field.rounds("ms p50", one)?;
    println!("  the disk's fdatasync after 4 KiB, again: p50 {:.3} ms", disk_sync_ms(place)?);
    field.report(Better::Less);
    Ok(())
}

/// What one round of one broker gave.
#[derive(Clone, Copy)]
struct Figure {
    value: f64,
    /// CPU seconds of the broker for a gigabyte; of an operation in milliseconds where there are no bytes.
    cpu: f64,
}

enum Better {
    More,
    Less,
}

/// The brokers, all running, and what they gave.
struct Field {
    brokers: Vec<Broker>,
    unit: &'static str,
    figures: Vec<Vec<Figure>>,
}

impl Field {
    fn start(place: &Place) -> anyhow::Result<Field> {
        let kafka = match Kafka::install()? {
            Ok(kafka) => kafka,
            Err(missing) => bail!("{missing}"),
        };
        let load = build_load()?;
        let ours = Broker::leftoff(place, &load)?;
        let plain = ApacheKafka::start(&kafka, &place.path("kafka"), &[], Some(BROKER_CORE))?;
        let flushed = ["log.flush.interval.messages=1"];
        let flushed = ApacheKafka::start(&kafka, &place.path("flushed"), &flushed, Some(BROKER_CORE))?;
        let theirs = |name, kafka: ApacheKafka| Broker {
            name,
            address: kafka.address.clone(),
            pid: kafka.pid(),
            load: load.clone(),
            _process: Process::Kafka(kafka),
        };
        let brokers =
            vec![ours, theirs("Kafka, default", plain), theirs("Kafka, flush.interval.messages=1", flushed)];
        Ok(Field { brokers, unit: "", figures: Vec::new() })
    }

    fn rounds(
        &mut self,
        unit: &'static str,
        one: impl Fn(&Broker, usize) -> anyhow::Result<Figure>,
    ) -> anyhow::Result<()> {
        self.unit = unit;
        self.figures = vec![Vec::new(); self.brokers.len()];
        for round in 0..=ROUNDS {
            for (broker, figures) in self.brokers.iter().zip(&mut self.figures) {
                let figure = one(broker, round).with_context(|| broker.name)?;
                if round > 0 {
                    figures.push(figure);
                }
            }
        }
        Ok(())
    }

    fn report(&self, better: Better) {
        let medians: Vec<(f64, f64)> = self.figures.iter().map(|figures| medians(figures)).collect();
        for ((broker, figures), (value, cpu)) in self.brokers.iter().zip(&self.figures).zip(&medians) {
            let values = figures.iter().map(|figure| figure.value);
            let (least, most) = (values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max));
            let cpu_unit = if matches!(better, Better::More) { "CPU s/GB" } else { "CPU ms each" };
            println!(
                "  {:34} median {value:.3} {} ({least:.3} to {most:.3}), {cpu:.3} {cpu_unit}",
                broker.name, self.unit
            );
        }
        // Ratios of the same round, since the machine's pace changes between rounds.
        for (at, broker) in self.brokers.iter().enumerate().skip(1) {
            let of_rounds = |ratio: fn(&Figure, &Figure) -> f64| {
                median(self.figures[0].iter().zip(&self.figures[at]).map(|(a, b)| ratio(a, b)).collect())
            };
            let (value, cpu) = (of_rounds(|a, b| a.value / b.value), of_rounds(|a, b| a.cpu / b.cpu));
            println!("  leftoff / {}: {value:.2}, its CPU {cpu:.2}", broker.name);
        }
    }
}

fn medians(figures: &[Figure]) -> (f64, f64) {
    let of = |what: fn(&Figure) -> f64| median(figures.iter().map(what).collect());
    (of(|figure| figure.value), of(|figure| figure.cpu))
}

/// A broker that runs.
struct Broker {
    name: &'static str,
    address: String,
    pid: u32,
    load: PathBuf,
    _process: Process,
}

/// What ends with it.
enum Process {
    Leftoff {
        _child: Killed,
    },
    #[expect(dead_code, reason = "it is held until the bench is over")]
    Kafka(ApacheKafka),
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Broker {
    fn leftoff(place: &Place, load: &Path) -> anyhow::Result<Broker> {
        let mut command = Command::new("taskset");
        command.args(["-c", BROKER_CORE]).arg(&place.leftoff).arg("--data").arg(place.path("leftoff"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start leftoff")?;
        let pid = child.id();
        let mut told = BufReader::new(child.stderr.take().context("a pipe was asked for")?);
        let process = Process::Leftoff { _child: Killed(child) };
        let mut line = String::new();
        while !line.starts_with("listens at ") {
            line.clear();
            ensure!(told.read_line(&mut line)? > 0, "serve ended before it listened");
        }
        let address = line.trim_start_matches("listens at ").trim().to_owned();
        std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        Ok(Broker { name: "leftoff serve", address, pid, load: load.to_owned(), _process: process })
    }

    fn make(&self, topic: &str, partitions: u32) -> anyhow::Result<String> {
        self.load("make", &[topic, &partitions.to_string()])?;
        Ok(topic.to_owned())
    }

    /// Runs the client to its end and gives its numbers by name.
    fn load(&self, what: &str, arguments: &[&str]) -> anyhow::Result<Vec<(String, f64)>> {
        let mut command = Command::new("taskset");
        command.args(["-c", CLIENT_CORE]).arg(&self.load).args([what, &self.address]).args(arguments);
        let output = command.stdin(Stdio::null()).output().context("cannot start the client")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "load {what} {}: {said}", arguments.join(" "));
        let line = String::from_utf8(output.stdout)?;
        let number = |word: &str| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Ok(line.split_whitespace().filter_map(number).collect())
    }

    fn through(&self, what: &str, arguments: &[&str]) -> anyhow::Result<Figure> {
        let before = cpu_seconds(self.pid)?;
        let numbers = self.load(what, arguments)?;
        let cpu = cpu_seconds(self.pid)? - before;
        let (seconds, bytes) = (of(&numbers, "seconds")?, of(&numbers, "bytes")?);
        Ok(Figure { value: bytes / 1e6 / seconds, cpu: cpu / (bytes / 1e9) })
    }

    fn median_ms(&self, what: &str, arguments: &[&str]) -> anyhow::Result<Figure> {
        let before = cpu_seconds(self.pid)?;
        let numbers = self.load(what, arguments)?;
        let cpu = cpu_seconds(self.pid)? - before;
        let each: f64 = SINGLES.parse()?;
        Ok(Figure { value: of(&numbers, "p50")? * 1e3, cpu: cpu * 1e3 / each })
    }
}

fn of(numbers: &[(String, f64)], name: &str) -> anyhow::Result<f64> {
    let found = numbers.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| *value).with_context(|| format!("the client did not tell {name}"))
}

/// User and system time of all threads of a process, as the kernel has counted it.
fn cpu_seconds(pid: u32) -> anyhow::Result<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("the broker is gone")?;
    let behind_the_name = stat.rsplit_once(") ").context("/proc/PID/stat")?.1;
    let ticks = behind_the_name.split(' ').skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / TICKS_PER_SECOND)
}

fn build_load() -> anyhow::Result<PathBuf> {
    let target = crate::compat::leftoff::target()?.join("load");
    let manifest = crate::root()?.join("xtask/load/Cargo.toml");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--release", "--locked", "--manifest-path"]).arg(manifest);
    let status = command.arg("--target-dir").arg(&target).status().context("cannot run cargo")?;
    ensure!(status.success(), "the client (librdkafka) does not build: it needs a C compiler and make");
    Ok(target.join("release/load"))
}

/// How fast the disk takes as many bytes as a round has, with a sync at the end.
fn disk_bytes_per_second(place: &Place) -> anyhow::Result<f64> {
    let block = vec![0x5a; 1 << 20];
    let blocks = (RECORDS * RECORD_BYTES) >> 20;
    let mut rates = Vec::new();
    for _ in 0..3 {
        let mut file = File::create(place.path("disk"))?;
        let started = Instant::now();
        for _ in 0..blocks {
            file.write_all(&block)?;
        }
        file.sync_data()?;
        rates.push((blocks << 20) as f64 / started.elapsed().as_secs_f64());
    }
    std::fs::remove_file(place.path("disk"))?;
    Ok(median(rates))
}

fn disk_sync_ms(place: &Place) -> anyhow::Result<f64> {
    let mut file = File::create(place.path("disk"))?;
    let mut times = Vec::new();
    for _ in 0..500 {
        let started = Instant::now();
        file.write_all(&[0x5a; 4096])?;
        file.sync_data()?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    std::fs::remove_file(place.path("disk"))?;
    Ok(median(times))
}
