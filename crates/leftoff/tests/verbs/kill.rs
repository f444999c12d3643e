//! `produce --source` is killed with SIGKILL again and again: no line is lost, none comes twice.

use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use crate::script::{check_in, leftoff};

/// Small enough to be quick, and large enough for several units and rounds.
const LINES: u64 = 60_000;

#[test]
fn no_line_is_lost_or_comes_twice() {
    for (partitions, seed) in [(1, 7), (4, 11)] {
        survives(partitions, seed);
    }
}

fn survives(partitions: u32, seed: u64) {
    let dir = TempDir::new().unwrap();
    let filler = "x".repeat(400);
    let lines: String =
        (0..LINES).map(|number| format!("{{\"id\":{number},\"f\":\"{filler}\"}}\n")).collect();
    std::fs::write(dir.path().join("f"), lines).unwrap();
    check_in(&dir, &format!("$ topics create t -q -p {partitions} -c segment.bytes=4000000"));
    let mut seed = seed;
    let mut killed = 0;
    loop {
        let mut command = leftoff(dir.path());
        command.args(["produce", "t", "-q", "--key-field", "id", "--source", "f"]);
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        // It is killed when the logs have grown by some bytes more, so wherever it then is.
        let wanted = log_bytes(dir.path()) + next(&mut seed) % 4_000_000;
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if log_bytes(dir.path()) > wanted {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            std::thread::yield_now();
        };
        match ended {
            Some(status) => {
                assert!(status.success(), "{status}");
                break;
            }
            None => killed += 1,
        }
    }
    assert!(killed >= 3, "it was killed only {killed} times");
    let output = leftoff(dir.path()).args(["consume", "t", "-f", "%p %k\n"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let events: Vec<(u32, u64)> = text
        .lines()
        .map(|line| {
            let (partition, id) = line.split_once(' ').unwrap();
            (partition.parse().unwrap(), id.parse().unwrap())
        })
        .collect();
    // Each partition has its lines in the order of the file.
    assert!(events.is_sorted(), "{partitions} partitions, killed {killed} times");
    let mut ids: Vec<u64> = events.iter().map(|(_, id)| *id).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..LINES), "{partitions} partitions, killed {killed} times");
    check_in(&dir, "$ produce t --key-field id --source f\n! nothing new in f for t");
}

fn log_bytes(dir: &Path) -> u64 {
    let folders = std::fs::read_dir(dir.join("d")).unwrap().flatten();
    let partitions = folders.filter(|entry| entry.file_name().to_string_lossy().starts_with("t-"));
    let files = partitions.flat_map(|entry| std::fs::read_dir(entry.path()).unwrap().flatten());
    files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// A xorshift generator: the same kills from the same seed, as far as the machine plays along.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}
