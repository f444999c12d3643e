//! The lesson: what `leftoff demo` prints follows from what happened, for every crash point and both orders of saving.
#![allow(missing_docs, clippy::unwrap_used)]

use std::process::{Command, Output};

fn demo(args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leftoff")).arg("demo").args(args.split_whitespace()).output().unwrap()
}

/// The eight lines of the lesson, with nothing else on stdout.
const LESSON: &str = "\
consumer 1 starts at offset 0
consumer 1 crashes at offset 6
consumer 2 starts at offset 6
consumer 2 is done | saved offset: 9
handled: ['e1', 'e2', 'e3', 'e4', 'e5', 'e6', 'e7', 'e8', 'e9', 'e10']
consumer 3 starts at offset 10
consumer 3 is done | saved offset: 9
lost: [] | handled twice: []
";

#[test]
fn the_eight_lines() {
    let output = demo("");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), LESSON);
    assert_eq!(output.status.code(), Some(0));
}

/// `ARGS => START OF CONSUMER 2 # HANDLED # LAST LINE # EXIT`
const CASES: &str = "
--crash before                             => 6  # 1 2 3 4 5 6 7 8 9 10   # lost: [] | handled twice: []      # 0
--crash between                            => 6  # 1 2 3 4 5 6 7 8 9 10   # lost: [] | handled twice: []      # 0
--crash after                              => 7  # 1 2 3 4 5 6 7 8 9 10   # lost: [] | handled twice: []      # 0
--crash before --dedupe off                => 6  # 1 2 3 4 5 6 7 8 9 10   # lost: [] | handled twice: []      # 0
--crash between --dedupe off               => 6  # 1 2 3 4 5 6 7 7 8 9 10 # lost: [] | handled twice: ['e7']  # 1
--crash after --dedupe off                 => 7  # 1 2 3 4 5 6 7 8 9 10   # lost: [] | handled twice: []      # 0
--save before --crash before               => 6  # 1 2 3 4 5 6 7 8 9 10   # lost: [] | handled twice: []      # 0
--save before --crash between              => 7  # 1 2 3 4 5 6 8 9 10     # lost: ['e7'] | handled twice: []  # 1
--save before --crash between --dedupe off => 7  # 1 2 3 4 5 6 8 9 10     # lost: ['e7'] | handled twice: []  # 1
--save before --crash after                => 7  # 1 2 3 4 5 6 7 8 9 10   # lost: [] | handled twice: []      # 0
--crash-at 0                               => 0  # 1 2 3 4 5 6 7 8 9 10   # lost: [] | handled twice: []      # 0
--crash-at 0 --crash between --dedupe off  => 0  # 1 1 2 3 4 5 6 7 8 9 10 # lost: [] | handled twice: ['e1']  # 1
--crash-at 9 --crash after                 => 10 # 1 2 3 4 5 6 7 8 9 10   # lost: [] | handled twice: []      # 0
--crash-at 9 --crash between --save before => 10 # 1 2 3 4 5 6 7 8 9      # lost: ['e10'] | handled twice: [] # 1
--events 1                                 => 0  # 1                      # lost: [] | handled twice: []      # 0
--events 1 --crash between --save before   => 1  #                        # lost: ['e1'] | handled twice: []  # 1
--events 3 --crash-at 1 --crash after      => 2  # 1 2 3                  # lost: [] | handled twice: []      # 0
";

#[test]
fn every_crash_point_and_order() {
    for case in CASES.lines().filter(|line| !line.is_empty()) {
        let (args, expect) = case.split_once("=>").unwrap();
        let [start, handled, last_line, code] = expect.split('#').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("not a case: {case}");
        };
        let output = demo(args);
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 8, "{args}: {text}");
        assert_eq!(lines[2], format!("consumer 2 starts at offset {start}"), "{args}");
        let ids: Vec<String> = handled.split_whitespace().map(|number| format!("'e{number}'")).collect();
        assert_eq!(lines[4], format!("handled: [{}]", ids.join(", ")), "{args}");
        assert_eq!(lines[7], last_line, "{args}");
        assert_eq!(output.status.code(), Some(code.parse().unwrap()), "{args}");
    }
}

#[test]
fn keep_leaves_the_log_and_the_effects() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    assert!(demo(&format!("--keep {}", kept.display())).status.success());
    assert_eq!(std::fs::read_to_string(kept.join("effects.txt")).unwrap().lines().count(), 10);
    let log = leftoff::Leftoff::open(kept.join("log")).unwrap();
    assert_eq!(log.committed("demo", "lesson", 0).unwrap().next().get(), 10);
    // A second run would mix its effects with these.
    let again = demo(&format!("--keep {}", kept.display()));
    assert_eq!(again.status.code(), Some(2));
}

#[test]
fn wrong_values_are_named() {
    for (args, named) in [
        ("--crash-at 10", "--crash-at 10"),
        ("--events 3 --crash-at 7", "offset from 0 to 2"),
        ("--events 0", "0"),
        ("--crash sometimes", "sometimes"),
        ("--crash-at -1", "-1"),
    ] {
        let output = demo(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(named), "{args}: {stderr}");
    }
}
