//! `kafka-dump`: Apache Kafka's own `DumpLogSegments` reads what we wrote.
//!
//! Events go through the command line into small segments; groups read, jump and forget. After the last command has stopped, the tool
//! must find every record with its offset, time, key and value, every index in order with its log, and every offset of every
//! group. Then a byte is changed, to see that the tool would have said so.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::Verdict;
use super::dump::{Dump, DumpedRecord, FileDump};
use super::kafka::Kafka;
use super::leftoff::Leftoff;

const TOOL: &str = "org.apache.kafka.tools.DumpLogSegments";
const TOPIC: &str = "dumped";
const PARTITIONS: i32 = 3;
/// A topic that is read from a file, and read by a handler.
const FROM_A_FILE: &str = "from-a-file";
/// Small, so that a partition has many segments and its indexes have entries.
const SEGMENT_BYTES: u32 = 16 * 1024;
/// Each run of `produce` writes so many events, and each run makes batches of its own.
const EVENTS_A_RUN: usize = 150;
const RUNS: usize = 20;

/// Builds, writes, and has it read.
pub fn run() -> anyhow::Result<Verdict> {
    let kafka = match Kafka::install()? {
        Ok(kafka) => kafka,
        Err(missing) => return Ok(Verdict::Skipped(missing)),
    };
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let leftoff = Leftoff::build(folder.path().join("data"))?;
    let events = events();
    write_events(&leftoff, &events)?;
    let offsets = write_offsets(&leftoff, folder.path())?;

    let judge = Judge { kafka, data: leftoff.data().to_owned() };
    let mut complaints = judge.compare_events(&events)?;
    complaints.extend(judge.check_indexes()?);
    complaints.extend(judge.compare_offsets(&offsets)?);
    complaints.extend(judge.sees_damage(folder.path())?);
    if !complaints.is_empty() {
        return Ok(Verdict::Failed(complaints));
    }
    let segments = judge.files_of(TOPIC, ".log")?.len();
    let what = format!("{} events in {segments} segments, {} offsets of groups", events.len(), offsets.len());
    Ok(Verdict::Passed(what))
}

/// An event as it is produced.
struct Event {
    partition: i32,
    timestamp_ms: i64,
    key: Option<String>,
    value: Option<String>,
    headers: Vec<(&'static str, String)>,
}

/// Events with and without keys, values and headers, and with texts of more than one byte a character.
fn events() -> Vec<Event> {
    let event = |number: usize| Event {
        partition: i32::try_from(number * 7 / 5).expect("there are few events") % PARTITIONS,
        timestamp_ms: 1_700_000_000_000 + i64::try_from(number).expect("there are few events"),
        key: (!number.is_multiple_of(5)).then(|| format!("kéy {}", number % 11)),
        value: (!number.is_multiple_of(7)).then(|| format!("value {number} {}", "↦·".repeat(number % 40))),
        headers: if number.is_multiple_of(3) {
            vec![("source", format!("n{number}")), ("try", String::new())]
        } else {
            vec![]
        },
    };
    (0..EVENTS_A_RUN * RUNS).map(event).collect()
}

impl Event {
    fn envelope(&self) -> String {
        let line = json!({
            "key": self.key, "value": self.value, "headers": self.headers,
            "timestamp_ms": self.timestamp_ms, "partition": self.partition,
        });
        format!("{line}\n")
    }

    fn dumped(&self, offset: i64) -> DumpedRecord {
        DumpedRecord {
            offset,
            timestamp_ms: self.timestamp_ms,
            key: self.key.clone(),
            value: self.value.clone(),
            header_keys: self.headers.iter().map(|(name, _)| (*name).to_owned()).collect(),
        }
    }
}

fn write_events(leftoff: &Leftoff, events: &[Event]) -> anyhow::Result<()> {
    let partitions = PARTITIONS.to_string();
    let segment_bytes = format!("segment.bytes={SEGMENT_BYTES}");
    leftoff.run(&["topics", "create", TOPIC, "-p", &partitions, "-c", &segment_bytes], "")?;
    for run in events.chunks(EVENTS_A_RUN) {
        let lines: String = run.iter().map(Event::envelope).collect();
        leftoff.run(&["produce", TOPIC, "--input", "json-envelope"], &lines)?;
    }
    Ok(())
}

/// Where a group stands: the key of a record of the offsets log.
type Place = (String, String, i32);

/// Commits, a jump, an offset that is deleted, the progress of a source, and a handler; gives what must be in the log, `None` for what was deleted.
fn write_offsets(leftoff: &Leftoff, folder: &Path) -> anyhow::Result<BTreeMap<Place, Option<i64>>> {
    let mut offsets = BTreeMap::new();
    leftoff.run(&["consume", TOPIC, "-g", "reader"], "")?;
    for partition in 0..PARTITIONS {
        let events = events().iter().filter(|event| event.partition == partition).count();
        let end = i64::try_from(events).expect("there are few events");
        offsets.insert(("reader".to_owned(), TOPIC.to_owned(), partition), Some(end));
    }
    leftoff.run(&["consume", TOPIC, "-g", "mover"], "")?;
    leftoff.run(&["groups", "reset", "mover", "-t", TOPIC, "--to-offset", "17", "--execute"], "")?;
    leftoff.run(&["groups", "delete-offsets", "mover", "-t", &format!("{TOPIC}:1"), "--noconfirm"], "")?;
    for partition in 0..PARTITIONS {
        let offset = (partition != 1).then_some(17);
        offsets.insert(("mover".to_owned(), TOPIC.to_owned(), partition), offset);
    }
    // Its records are of a type of our own, which the tool must pass over.
    let source = folder.join("lines.txt");
    fs::write(&source, "one\ntwo\nthree\n").with_context(|| format!("cannot write {}", source.display()))?;
    leftoff.run(&["produce", FROM_A_FILE, "--source", &source.to_string_lossy()], "")?;
    let handler = crate::root()?.join("examples/handlers/echo.py");
    let verb = [
        "run",
        "-t",
        FROM_A_FILE,
        "-g",
        "runner",
        "--until-end",
        "--",
        "python3",
        &handler.to_string_lossy(),
    ];
    leftoff.run(&verb, "")?;
    offsets.insert(("runner".to_owned(), FROM_A_FILE.to_owned(), 0), Some(3));
    Ok(offsets)
}

/// The tool, and the directory that it looks at.
struct Judge {
    kafka: Kafka,
    data: PathBuf,
}

impl Judge {
    /// Every record of every partition, as produced.
    fn compare_events(&self, events: &[Event]) -> anyhow::Result<Vec<String>> {
        let dump = self.dump(&self.files_of(TOPIC, ".log")?, &["--print-data-log", "--deep-iteration"])?;
        let mut complaints = dump.complaints;
        for partition in 0..PARTITIONS {
            let folder = format!("/{TOPIC}-{partition}/");
            let files: Vec<&FileDump> =
                dump.files.iter().filter(|file| file.path.contains(&folder)).collect();
            let found: Vec<&DumpedRecord> = files.iter().flat_map(|file| &file.records).collect();
            let produced = events.iter().filter(|event| event.partition == partition);
            let expected: Vec<DumpedRecord> =
                (0..).zip(produced).map(|(offset, event)| event.dumped(offset)).collect();
            complaints.extend(difference(partition, &found, &expected));
            // Else the test would not say much.
            if files.len() < 3 || files.iter().all(|file| file.batches < 2) {
                complaints
                    .push(format!("{TOPIC}-{partition}: {} segments, too few to judge by", files.len()));
            }
        }
        Ok(complaints)
    }

    /// Every index passes the tool's check by itself, and against its log.
    fn check_indexes(&self) -> anyhow::Result<Vec<String>> {
        let mut files = self.files_of(TOPIC, "index")?;
        files.extend(self.files_of("__consumer_offsets", "index")?);
        let sane = self.dump(&files, &["--index-sanity-check"])?;
        let verified = self.dump(&files, &["--verify-index-only"])?;
        let mut complaints = [sane.complaints, verified.complaints].concat();
        let unsure = sane.files.iter().filter(|file| !file.is_sane && !file.is_empty);
        complaints
            .extend(unsure.map(|file| format!("{}: the tool does not say that it is sound", file.path)));
        let with_entries = |end: &str| sane.files.iter().any(|file| file.is_sane && file.path.ends_with(end));
        if !with_entries(".index") || !with_entries(".timeindex") {
            complaints.push("no index has entries, nothing to judge by".to_owned());
        }
        Ok(complaints)
    }

    /// The last record for each place in the offsets log says where the group stands.
    fn compare_offsets(&self, expected: &BTreeMap<Place, Option<i64>>) -> anyhow::Result<Vec<String>> {
        let dump = self.dump(&self.files_of("__consumer_offsets", ".log")?, &["--offsets-decoder"])?;
        let mut complaints = dump.complaints;
        let mut found = BTreeMap::new();
        let mut groups = 0_usize;
        for record in dump.files.iter().flat_map(|file| &file.records) {
            groups += usize::from(is_group(record));
            if let Some((place, offset)) = committed(record)? {
                found.insert(place, offset);
            }
        }
        for (place, offset) in expected {
            if found.get(place) != Some(offset) {
                complaints
                    .push(format!("{place:?}: the tool shows {:?} and not {offset:?}", found.get(place)));
            }
        }
        if groups == 0 {
            complaints.push("the tool shows no group in the offsets log".to_owned());
        }
        Ok(complaints)
    }

    /// A changed byte in a segment and in an index is seen: the judge can fail.
    fn sees_damage(&self, folder: &Path) -> anyhow::Result<Vec<String>> {
        let mut complaints = Vec::new();
        let damaged = folder.join("damaged");
        fs::create_dir(&damaged).context("cannot make a folder")?;
        let log = self.files_of(TOPIC, ".log")?.into_iter().next().context("no segment")?;
        for (end, position_bytes) in [("log", 100), ("index", 3)] {
            let original = log.with_extension(end);
            let name = original.file_name().context("a segment has a name")?;
            // The tool compares an index with the log beside it.
            fs::copy(&log, damaged.join(name).with_extension("log")).context("cannot copy a segment")?;
            let mut bytes =
                fs::read(&original).with_context(|| format!("cannot read {}", original.display()))?;
            let byte = bytes.get_mut(position_bytes);
            *byte.with_context(|| format!("{} is too short to damage", original.display()))? ^= 1;
            fs::write(damaged.join(name), bytes).context("cannot write a damaged copy")?;
            if self.dump(&[damaged.join(name)], &["--deep-iteration"])?.complaints.is_empty() {
                complaints.push(format!("the tool does not see a changed byte in a .{end} file"));
            }
        }
        Ok(complaints)
    }

    fn dump(&self, files: &[PathBuf], flags: &[&str]) -> anyhow::Result<Dump> {
        let names: Vec<String> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        let mut arguments = vec!["--files".to_owned(), names.join(",")];
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        Ok(Dump::parse(&self.kafka.tool(TOOL, &arguments)?))
    }

    /// The files of a topic that end so, by partition and base offset.
    fn files_of(&self, topic: &str, end: &str) -> anyhow::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for folder in list(&self.data)?.iter().filter(|folder| is_partition(folder, topic)) {
            found.extend(list(folder)?.into_iter().filter(|file| file.to_string_lossy().ends_with(end)));
        }
        ensure!(!found.is_empty(), "no {end} file of {topic} in {}", self.data.display());
        Ok(found)
    }
}

/// `dumped-0` is a partition of `dumped`.
fn is_partition(folder: &Path, topic: &str) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once('-').is_some_and(|(of, number)| of == topic && number.parse::<i32>().is_ok())
}

fn list(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<PathBuf>>>()?;
    paths.sort();
    Ok(paths)
}

/// The first record that is not as produced.
fn difference(partition: i32, found: &[&DumpedRecord], expected: &[DumpedRecord]) -> Option<String> {
    let differs = found.iter().zip(expected).find(|(found, expected)| *found != expected);
    if let Some((found, expected)) = differs {
        return Some(format!("{TOPIC}-{partition}: the tool shows {found:?} and not {expected:?}"));
    }
    let (found, expected) = (found.len(), expected.len());
    (found != expected)
        .then(|| format!("{TOPIC}-{partition}: the tool shows {found} records and not {expected}"))
}

/// Whether the tool shows a record of type 2, Kafka's `GroupMetadataKey`.
fn is_group(record: &DumpedRecord) -> bool {
    record.key.as_deref().is_some_and(|key| key.starts_with(r#"{"type":"2","#))
}

/// The place and the offset of a record of type 1, Kafka's `OffsetCommitKey`; a deleted offset is `None`.
fn committed(record: &DumpedRecord) -> anyhow::Result<Option<(Place, Option<i64>)>> {
    let Some(key) = record.key.as_deref().filter(|key| key.starts_with(r#"{"type":"1","#)) else {
        return Ok(None);
    };
    let key: Value = serde_json::from_str(key).with_context(|| format!("the tool shows the key {key}"))?;
    let text = |name: &str| key["data"][name].as_str().map(str::to_owned);
    let partition = key["data"]["partition"].as_i64().and_then(|number| i32::try_from(number).ok());
    let place = text("group")
        .zip(text("topic"))
        .zip(partition)
        .with_context(|| format!("a key without a place: {key}"))?;
    let ((group, topic), partition) = place;
    let offset = match record.value.as_deref() {
        None => None,
        Some(value) => {
            let value: Value =
                serde_json::from_str(value).with_context(|| format!("the tool shows {value}"))?;
            Some(
                value["data"]["offset"]
                    .as_i64()
                    .with_context(|| format!("a value without an offset: {value}"))?,
            )
        }
    };
    Ok(Some(((group, topic, partition), offset)))
}
