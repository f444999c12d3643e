//! The same oracle over a real file system: a process that runs a script is killed with SIGKILL.
//!
//! The child tells of each request that was acknowledged; the parent kills it after some of them, opens the directory and
//! holds it to what it was told. What the script would have done is known from a run in memory: same script, same trace.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use leftoff_engine::broker::RequestId;
use leftoff_engine::disk::Disk;
use leftoff_engine::disk::mem::MemDisk;
use leftoff_engine::disk::os::OsDisk;
use leftoff_sim::driver::{Mood, Run};
use leftoff_sim::history::History;
use leftoff_sim::script::Script;

/// Set for the child only: the directory.
const CHILD: &str = "LEFTOFF_KILL_DIR";

const KILLS: usize = 12;

fn script() -> Script {
    let begin = "config offsets.segment=2000 offsets.retention=5000; topic t 2 segment.bytes=700 retention.bytes=3000; topic out 2 segment.bytes=900; append t/0 9; append t/1 9";
    let round = "append t/0 2 & append t/1 1,2 & append t/0 1; set g t/0 +1 -> out/0 2 out/1 1; set g t/1 +2 -> out/1 1 & set g t/0 +1 -> out/1 1 & source f 7 -> out/0 1; commit h t/0 +3; retention; topic x 1; append x/0 1; delete-topic x";
    let rounds = [round; 12].join("; ");
    Script::parse(&format!("{begin}; {rounds}"))
}

#[test]
fn child() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(Path::new(&dir)).unwrap());
    let mut run =
        Run::open(disk, &script(), History::default(), Mood::Sound).map_err(|(_, stop)| stop).unwrap();
    run.told = |id| {
        let mut out = std::io::stderr();
        writeln!(out, "told {}", id.0).and_then(|()| out.flush()).unwrap();
    };
    run.go().unwrap();
}

#[test]
fn nothing_that_was_told_is_lost_by_sigkill() {
    if std::env::var(CHILD).is_ok() {
        return;
    }
    let script = script();
    let disk = Arc::new(MemDisk::new());
    let mut whole =
        Run::open(disk, &script, History::default(), Mood::Sound).map_err(|(_, stop)| stop).unwrap();
    whole.go().unwrap();
    let requests = whole.history.topics.len() + whole.history.offsets.len();
    for kill in 0..KILLS {
        let dir = tempfile::tempdir().unwrap();
        let told = told_before_kill(dir.path(), 1 + kill * requests / KILLS);
        let history = whole.history.as_told(&told);
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
        let opened = Run::open(disk.clone(), &script, history, Mood::Sound);
        let run = opened
            .map_err(|(_, stop)| format!("kill {kill} after {} answers: {stop:?}", told.len()))
            .unwrap();
        let settled = run.history.clone();
        drop(run);
        let again = Run::open(disk, &script, settled, Mood::Sound);
        again.map_err(|(_, stop)| format!("kill {kill}, second start: {stop:?}")).unwrap();
    }
}

/// Runs the script in a process of its own, and kills that when it has told of so many answers.
fn told_before_kill(dir: &Path, answers: usize) -> BTreeSet<RequestId> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BTreeSet::new();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    for line in lines {
        // What it told between the last line that is read here and its death counts, too: all lines are read.
        let line = line.unwrap();
        let Some(id) = line.strip_prefix("told ") else { panic!("the child failed: {line}") };
        told.insert(RequestId(id.parse().unwrap()));
        if told.len() == answers {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    told
}
