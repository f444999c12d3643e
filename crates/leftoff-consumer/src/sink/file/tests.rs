#![allow(clippy::unwrap_used)]

use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::handler::Record;
use crate::sink::{LastEvent, Outcome};
use crate::testing::{at, id, next};

mod crashes;
mod damage;

/// In memory where the system offers that: these tests copy many files, and no disk needs to be waited for.
fn tempdir() -> io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }
}

fn claim_of(partition: i32) -> ClaimPartition {
    ClaimPartition { id: id(partition), topic: "quakes".to_owned() }
}

fn json(text: &str) -> Record {
    Record::from_json(text.to_owned()).unwrap()
}

fn output(partition: i32, offset: i64, outcome: Outcome) -> Output {
    Output { id: id(partition), offset: at(offset), event_id: None, outcome }
}

fn records(texts: &[&str]) -> Outcome {
    Outcome::Handled { records: texts.iter().map(|text| json(text)).collect() }
}

fn nothing() -> Outcome {
    records(&[])
}

fn moved(partition: i32, expected: Option<i64>, to: i64) -> Move {
    Move {
        id: id(partition),
        expected: expected.map(next),
        next: next(to),
        leader_epoch: -1,
        skips: None,
        mark: Mark::default(),
    }
}

/// A sink in `folder` that does everything but wait for the disk.
fn sink(folder: &Path) -> FileSink {
    FileSink::with_ops(folder.join("out"), "alerts".to_owned(), Box::new(Unsynced))
}

fn claimed(folder: &Path, partitions: &[i32]) -> (FileSink, Claimed) {
    let mut sink = sink(folder);
    let claims: Vec<_> = partitions.iter().map(|&partition| claim_of(partition)).collect();
    let claimed = sink.claim(&claims).unwrap();
    (sink, claimed)
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The operating system without its syncs: tests of content need not wait for the disk.
#[derive(Debug)]
struct Unsynced;

impl FileOps for Unsynced {
    fn create(&mut self, part: Part, path: &Path) -> io::Result<File> {
        OsOps.create(part, path)
    }
    fn write_all_at(&mut self, part: Part, file: &File, bytes: &[u8], position_bytes: u64) -> io::Result<()> {
        OsOps.write_all_at(part, file, bytes, position_bytes)
    }
    fn append(&mut self, part: Part, file: &File, bytes: &[u8]) -> io::Result<()> {
        OsOps.append(part, file, bytes)
    }

    fn set_len(&mut self, part: Part, file: &File, bytes: u64) -> io::Result<()> {
        OsOps.set_len(part, file, bytes)
    }
    fn sync(&mut self, _part: Part, _file: &File) -> io::Result<()> {
        Ok(())
    }
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        OsOps.rename(from, to)
    }
    fn sync_folder(&mut self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_the_files_hold() {
    let folder = tempdir().unwrap();
    let mut sink = FileSink::new(folder.path().join("out"), "alerts");
    let found = sink.claim(&[claim_of(0), claim_of(1)]).unwrap();
    assert!(found.authority && found.notices.is_empty());
    assert_eq!(found.next.values().collect::<Vec<_>>(), [&None, &None]);
    let outputs = [
        output(0, 5, records(&[r#"{"a": 1.10}"#, "{ }", "[1, 2]", r#""x""#])),
        output(0, 6, nothing()),
        output(1, 0, Outcome::Filtered),
        output(0, 7, nothing()),
        output(0, 8, Outcome::Filtered),
        output(0, 10, Outcome::Filtered),
        output(1, 1, Outcome::Filtered),
    ];
    let written = sink.write(&outputs, &[moved(0, None, 12), moved(1, None, 2)]).unwrap();
    assert_eq!(written, Written::Written);
    let topic = id(0).topic_id;
    assert_eq!(
        read(folder.path(), "out"),
        format!(
            "{{\"a\": 1.10,\"leftoff_id\":\"{topic}/0/5/0\"}}\n\
             {{ \"leftoff_id\":\"{topic}/0/5/1\"}}\n\
             {{\"value\":[1, 2],\"leftoff_id\":\"{topic}/0/5/2\"}}\n\
             {{\"value\":\"x\",\"leftoff_id\":\"{topic}/0/5/3\"}}\n"
        )
    );
    assert_eq!(
        read(folder.path(), "out.outcomes"),
        format!(
            "{topic} 0 6-7 handled\n{topic} 0 8-8 filtered\n{topic} 0 10-10 filtered\n{topic} 1 0-1 filtered\n"
        )
    );
    read(folder.path(), "out").lines().for_each(|line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    });
    // Read beside the runner, and by the next one.
    let state = FileSink::inspect(folder.path().join("out")).unwrap().unwrap();
    assert_eq!((state.group.as_str(), state.claim_epoch), ("alerts", 1));
    assert_eq!(state.data_bytes, read(folder.path(), "out").len() as u64);
    drop(sink);
    let (_sink, found) = claimed(folder.path(), &[0, 1, 2]);
    assert_eq!(found.next.into_values().collect::<Vec<_>>(), [Some(next(12)), Some(next(2)), None]);
    assert_eq!(FileSink::inspect(folder.path().join("out")).unwrap().unwrap().claim_epoch, 2);
    assert_eq!(FileSink::inspect(folder.path().join("none")).unwrap(), None);
}

#[test]
fn a_record_with_the_ids_own_key_is_refused() {
    let folder = tempdir().unwrap();
    let sink = sink(folder.path());
    let check = |texts: &[&str]| sink.check(&output(0, 0, records(texts))).map_err(|bad| bad.number);
    assert_eq!(check(&["{}", r#"{"leftoff": 1, "a": {"leftoff_id": 2}}"#, r#"["leftoff_id"]"#]), Ok(()));
    assert_eq!(check(&["{}", r#"{"a": 1, "leftoff_id": 2}"#]), Err(1));
    assert_eq!(check(&[r#"{"leftoff_i\u0064": 2}"#]), Err(0));
}

#[test]
fn a_record_stays_on_its_line() {
    let folder = tempdir().unwrap();
    let (mut sink, _) = claimed(folder.path(), &[0]);
    let odd = records(&["  {\n \"a\":\r\n\"b\\n\"}\n ", "\n1\n"]);
    sink.write(&[output(0, 0, odd)], &[moved(0, None, 1)]).unwrap();
    assert_eq!(read(folder.path(), "out").lines().count(), 2);
}

#[test]
fn a_write_that_does_not_start_where_it_stands_is_fenced() {
    let folder = tempdir().unwrap();
    let (mut sink, _) = claimed(folder.path(), &[0]);
    let one = |offset| [output(0, offset, records(&["{}"]))];
    assert_eq!(sink.write(&one(0), &[moved(0, None, 1)]).unwrap(), Written::Written);
    for expected in [None, Some(0), Some(2)] {
        let fenced = sink.write(&one(7), &[moved(0, expected, 8)]).unwrap();
        assert_eq!(fenced, Written::Fenced { id: id(0) });
    }
    assert_eq!(read(folder.path(), "out").lines().count(), 1);
    assert_eq!(sink.write(&one(1), &[moved(0, Some(1), 2)]).unwrap(), Written::Written);
}

#[test]
#[should_panic(expected = "is written again")]
fn an_output_below_where_it_stands_is_a_broken_promise() {
    let folder = tempdir().unwrap();
    let (mut sink, _) = claimed(folder.path(), &[0]);
    let _ = sink.write(&[output(0, 1, nothing()), output(0, 1, nothing())], &[moved(0, None, 2)]);
}

#[test]
fn one_runner_at_a_time() {
    let folder = tempdir().unwrap();
    let (first, _) = claimed(folder.path(), &[0]);
    let error = sink(folder.path()).claim(&[claim_of(0)]).unwrap_err().to_string();
    assert!(error.contains("in use by another"), "{error}");
    drop(first);
    claimed(folder.path(), &[0]);
}

#[test]
fn as_many_partitions_as_fit_and_no_more() {
    let folder = tempdir().unwrap();
    let group = "g".repeat(MAX_GROUP_BYTES);
    let open = || FileSink::with_ops(folder.path().join("out"), group.clone(), Box::new(Unsynced));
    let all: Vec<_> = (0..MAX_PARTITIONS as i32).map(claim_of).collect();
    let mut sink = open();
    sink.claim(&all).unwrap();
    let moves: Vec<_> = (0..MAX_PARTITIONS as i32).map(|partition| moved(partition, None, 7)).collect();
    sink.write(&[], &moves).unwrap();
    drop(sink);
    let mut sink = open();
    assert!(sink.claim(&all).unwrap().next.values().all(|at| *at == Some(next(7))));
    let error = sink.claim(&[claim_of(-1)]).unwrap_err().to_string();
    assert!(error.contains("2000 partitions"), "{error}");
}
