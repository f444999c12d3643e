//! Processes that work in the background, and what can be seen of them: no test sleeps, each waits for something to happen.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::script::{check_in, leftoff};

/// What takes longer than this never happens.
const NEVER: Duration = Duration::from_secs(60);

/// A folder with the handlers in it, and a topic `t` of so many partitions with the events `k0` to `k9`.
pub fn folder(partitions: u32) -> TempDir {
    let dir = TempDir::new().unwrap();
    for name in ["copy.sh", "bad_at.sh", "deaf.sh", "fails_times.sh", "pick.sh", "rows.sh", "sevens.sh"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/handlers").join(name);
        std::fs::copy(from, dir.path().join(name)).unwrap();
    }
    let lines: String = (0..10).map(|number| format!("{{\"id\":\"k{number}\"}}\n")).collect();
    std::fs::write(dir.path().join("ten"), lines).unwrap();
    check_in(
        &dir,
        &format!("$ topics create t -q -p {partitions}\n$ produce t -q --key-field id --source ten"),
    );
    dir
}

/// A process that is killed when it is dropped.
pub struct Background(pub Child, PathBuf);

impl Background {
    /// Starts the binary in a folder; its stderr goes into the file `stderr` there, to be shown if the test fails.
    pub fn start(dir: &Path, args: &str) -> Background {
        let path = dir.join("stderr");
        let mut stderr = File::options().create(true).append(true).open(&path).unwrap();
        writeln!(stderr, "$ {args}").unwrap();
        let mut command = leftoff(dir);
        command.args(args.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::null());
        Background(command.stderr(stderr).spawn().unwrap(), path)
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        kill(name, self.0.id());
    }

    /// Waits for its end: the exit code, none if a signal ended it.
    pub fn end(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = std::fs::read_to_string(&self.1).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(40).collect();
            eprintln!("{}", lines.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to any process.
pub fn kill(name: &str, pid: u32) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(status.success(), "kill {name} {pid}");
}

/// Waits until something can be seen.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(started.elapsed() < NEVER, "{what} has not happened");
        std::thread::yield_now();
    }
}

/// Waits until a process has ended, whether or not somebody has noticed.
pub fn gone(pid: u32) {
    until("the end of a process", || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => {
            stat.rsplit_once(')').is_some_and(|(_, state)| state.trim_start().starts_with('Z')).then_some(())
        }
        Err(_) => Some(()),
    });
}

/// The process id that a handler has written.
pub fn pid_in(path: &Path) -> u32 {
    until("a handler's start", || std::fs::read_to_string(path).ok()?.trim().parse().ok())
}

/// What the binary prints.
pub fn stdout(dir: &Path, args: &str) -> String {
    let output = leftoff(dir).args(args.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
