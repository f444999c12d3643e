//! Processes side by side on one directory.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use tempfile::TempDir;

use crate::script::{check_in, leftoff};

struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(dir: &Path, args: &str) -> Running {
        let mut command = leftoff(dir);
        command
            .args(args.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines }
    }

    fn type_line(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    fn signal(&self, name: &str) {
        let status =
            std::process::Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    fn end(mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().code()
    }
}

/// A line is acknowledged, and seen by a follower, while the producer waits for the next one.
#[test]
fn a_follower_sees_each_line_when_it_is_typed() {
    let dir = TempDir::new().unwrap();
    check_in(&dir, "$ topics create t -q -p 2");
    let mut producer = Running::start(dir.path(), "produce t -q -p 1");
    let mut follower = Running::start(dir.path(), "consume t --follow");
    let mut few = Running::start(dir.path(), "consume t --follow -n 3");
    for line in ["one", "two", "three"] {
        producer.type_line(line);
        assert_eq!(follower.line(), line);
        assert_eq!(few.line(), line);
    }
    assert_eq!(few.end(), Some(0));
    // A partition that is added meanwhile is read, too. The producer gives way to whoever adds it.
    check_in(&dir, "$ topics alter t -q -p 3\n$ produce t -q -p 2 <<< 'four\\n'");
    assert_eq!(follower.line(), "four");
    producer.type_line("five");
    assert_eq!(follower.line(), "five");
    assert_eq!(producer.end(), Some(0));
    follower.signal("-KILL");
    assert_eq!(follower.end(), None);
}

#[test]
fn two_producers_and_a_group_take_turns() {
    let dir = TempDir::new().unwrap();
    check_in(&dir, "$ topics create t -q");
    let mut one = Running::start(dir.path(), "produce t -q");
    let mut two = Running::start(dir.path(), "produce t -q");
    let mut group = Running::start(dir.path(), "consume t -g g -q --follow");
    for number in 0..5 {
        one.type_line(&format!("one {number}"));
        assert_eq!(group.line(), format!("one {number}"));
        two.type_line(&format!("two {number}"));
        assert_eq!(group.line(), format!("two {number}"));
    }
    assert_eq!((one.end(), two.end()), (Some(0), Some(0)));
    group.signal("-TERM");
    assert_eq!(group.end(), Some(0));
    check_in(&dir, "$ consume t -g g\n$ consume t -o -1\n> two 4");
}

#[test]
fn a_signal_ends_produce_with_what_was_read() {
    let dir = TempDir::new().unwrap();
    check_in(&dir, "$ topics create t -q");
    let mut producer = Running::start(dir.path(), "produce t -q");
    let mut follower = Running::start(dir.path(), "consume t --follow -n 1");
    producer.type_line("one");
    assert_eq!(follower.line(), "one");
    // Its stdin stays open, so that it is the signal that ends it.
    let open = producer.child.stdin.take();
    producer.signal("-INT");
    assert_eq!(producer.child.wait().unwrap().code(), Some(130));
    drop(open);
    check_in(&dir, "$ consume t\n> one");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let dir = TempDir::new().unwrap();
    let many: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    std::fs::write(dir.path().join("many"), many).unwrap();
    check_in(&dir, "$ produce t -q --source many");
    for args in ["consume t", "consume t -g g -q"] {
        let mut reader = Running::start(dir.path(), args);
        assert_eq!(reader.line(), "0");
        drop(reader.lines);
        assert_eq!(reader.child.wait().unwrap().code(), Some(0), "{args}");
    }
}

#[test]
fn a_follower_ends_when_nobody_reads_it() {
    let dir = TempDir::new().unwrap();
    check_in(&dir, "$ produce t -q <<< 'one\\n'");
    let mut follower = Running::start(dir.path(), "consume t --follow");
    assert_eq!(follower.line(), "one");
    drop(follower.lines);
    assert_eq!(follower.child.wait().unwrap().code(), Some(0));
}

/// Two readers of one source would write its lines twice: one of them is refused, and the file is read once.
#[test]
fn one_source_is_read_by_one_process() {
    let dir = TempDir::new().unwrap();
    let lines: String = (0..300_000).map(|number| format!("{number:0100}\n")).collect();
    std::fs::write(dir.path().join("f"), lines).unwrap();
    check_in(&dir, "$ topics create t -q");
    let both = [(), ()].map(|()| Running::start(dir.path(), "produce t -q --source f"));
    let codes = both.map(Running::end);
    assert!(codes.contains(&Some(0)), "{codes:?}");
    assert!(codes.iter().all(|code| matches!(code, Some(0 | 4))), "{codes:?}");
    let output = leftoff(dir.path()).args(["consume", "t"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let got = text.lines().map(|line| line.parse::<u64>().unwrap());
    assert!(got.eq(0..300_000));
}
