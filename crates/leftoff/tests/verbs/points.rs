//! The runner dies at each named point of a save, as by SIGKILL: what the next run finds goes on exactly there. Only builds
//! with debug assertions have the points.
#![cfg(debug_assertions)]

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Output, Stdio};

use tempfile::TempDir;

use crate::process::{folder, stdout};
use crate::script::{check_in, leftoff};

/// Beside the ten that each folder begins with.
const MORE: usize = 190;
/// So many events are in one save, or more while one before it is under way.
const EVERY: usize = 3;

/// Whoever saves passes these.
const ALL: &[&str] = &["sink-before:1", "sink-before:3", "sink-after:1", "sink-after:3"];

#[test]
fn a_file_has_each_event_once() {
    // The first two slots are written by the claim.
    let own = [
        "file-written:1",
        "file-written:3",
        "file-synced:1",
        "file-synced:3",
        "slot-written:2",
        "slot-written:3",
        "slot-written:5",
        "group-before:1",
        "group-after:1",
    ];
    dies("file:out", &own, file);
}

#[test]
fn a_topic_has_each_event_once() {
    let own = ["sync-before:4", "sync-before:6", "sync-after:4", "sync-after:6"];
    dies("topic:out", &own, |dir| stdout(dir.path(), "consume out -f %v\\n"));
}

#[test]
#[cfg(feature = "sqlite")]
fn a_database_has_each_event_once() {
    let own = [
        "commit-before:1",
        "commit-before:3",
        "commit-after:1",
        "commit-after:3",
        "group-before:1",
        "group-after:1",
    ];
    dies("sqlite:out", &own, |dir| {
        let connection = rusqlite::Connection::open(dir.path().join("out")).unwrap();
        let mut select = connection.prepare("SELECT record FROM leftoff_events ORDER BY \"offset\"").unwrap();
        let rows: Vec<String> = select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        rows.join("\n")
    });
}

/// At least once: what repeats was in the save that was under way.
#[test]
fn what_was_written_to_a_pipe_and_not_saved_comes_again_and_nothing_else() {
    // The first save has the decision where to start, and no event.
    for (point, comes_again) in [
        ("sink-before:3", false),
        ("sink-after:1", false),
        ("sink-after:3", true),
        ("group-before:3", true),
        ("group-after:3", false),
    ] {
        let (dir, first) = die("stdout", point);
        let second = run(&dir, "stdout", None);
        assert!(second.status.success(), "{point}: {}", String::from_utf8_lossy(&second.stderr));
        let (first, second) = (keys(&first.stdout), keys(&second.stdout));
        let again = first.iter().filter(|key| second.contains(key)).count();
        assert_eq!(again > 0, comes_again, "{point}: {again} events came again");
        assert_eq!(
            first[first.len() - again..],
            second[..again],
            "{point}: the last of the first run, in order"
        );
        let expect: Vec<String> = (0..10 + MORE).map(|number| format!("k{number}")).collect();
        let all: Vec<String> = first.into_iter().chain(second.into_iter().skip(again)).collect();
        assert_eq!(all, expect, "{point}: nothing is lost");
    }
}

fn dies(place: &str, own: &[&str], read: impl Fn(&TempDir) -> String) {
    for point in ALL.iter().chain(own) {
        let (dir, _) = die(place, point);
        let ended = run(&dir, place, None);
        assert!(ended.status.success(), "{place} {point}: {}", String::from_utf8_lossy(&ended.stderr));
        let checked = stdout(dir.path(), &format!("check -g g --out {place} --drained"));
        assert!(checked.ends_with("nothing left\nlost: [] | handled twice: []\n"), "{point}: {checked}");
        let expect: Vec<String> = (0..10 + MORE).map(|number| format!("k{number}")).collect();
        assert_eq!(keys(read(&dir).as_bytes()), expect, "{place} {point}: each event once, in order");
    }
}

fn make() -> TempDir {
    let dir = folder(1);
    let lines: String = (10..10 + MORE).map(|number| format!("{{\"id\":\"k{number}\"}}\n")).collect();
    std::fs::write(dir.path().join("more"), lines).unwrap();
    check_in(&dir, "$ produce t -q --key-field id --source more\n$ topics create out -q -p 1");
    dir
}

/// A runner that died at the point. How many saves there are is the machine's to say, since one that is under way gathers what
/// is handled meanwhile: where there were too few, the time before is tried, down to the second.
fn die(place: &str, point: &str) -> (TempDir, Output) {
    let (name, count) = point.split_once(':').unwrap();
    let count: u32 = count.parse().unwrap();
    for count in (count.min(2)..=count).rev() {
        let dir = make();
        let ended = run(&dir, place, Some(&format!("{name}:{count}")));
        if ended.status.signal() == Some(9) {
            return (dir, ended);
        }
        assert!(ended.status.success(), "{place} {point}: {}", String::from_utf8_lossy(&ended.stderr));
    }
    panic!("{place} {point} was not passed");
}

fn run(dir: &TempDir, place: &str, point: Option<&str>) -> Output {
    let mut command = leftoff(dir.path());
    let args = format!("run -t t -g g --out {place} --save every={EVERY} --until-end -- sh copy.sh");
    command.args(args.split_whitespace()).stdin(Stdio::null());
    point.map(|point| command.env("LEFTOFF_DIE_AT", point));
    command.output().unwrap()
}

fn file(dir: &TempDir) -> String {
    std::fs::read_to_string(dir.path().join("out")).unwrap()
}

/// The keys that outputs have.
fn keys(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    let key = |line: &str| {
        let (_, rest) = line.split_once("\"key\":\"").unwrap_or_else(|| panic!("no key in {line}"));
        rest.split('"').next().unwrap().to_owned()
    };
    text.lines().map(key).collect()
}
