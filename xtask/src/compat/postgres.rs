//! `postgres`: a real PostgreSQL, and runners that are killed, cut off, refused and overtaken while they write to it.
//!
//! `leftoff check` says after each part what was lost or handled twice, and PostgreSQL itself how many rows there are. The seed
//! of the random moments is printed; `LEFTOFF_SEED` repeats it, `LEFTOFF_KILLS` says how many kills there are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};

use super::Verdict;
use super::leftoff::Leftoff;

mod dead_letters;
mod points;
mod proxy;
mod refusals;
mod resets;
mod server;
mod tls;
mod types;

use proxy::Proxy;
use server::Server;

const TOPIC: &str = "orders";
const EVENTS: usize = 1_200;
const DEFAULT_KILLS: u64 = 12;

/// Every third event becomes an event's row, a row of a named table, nothing.
const HANDLER: &str = r#"
import json, os, sys
open(sys.argv[1], "w").write(str(os.getpid()))
for line in iter(sys.stdin.readline, ""):
    event = json.loads(line)
    if event.get("stop"): break
    if "id" not in event: continue
    value = json.loads(event["value"])
    n = value["n"]
    records = [[value], [{"table": sys.argv[2], "row": {"key": "k%d" % n, "n": n}}], []][n % 3]
    print(json.dumps({"id": event["id"], "records": records}), flush=True)
"#;

/// Builds, starts a server, and does what can go wrong.
pub fn run() -> anyhow::Result<Verdict> {
    let programs = match Server::programs()? {
        Ok(programs) => programs,
        Err(missing) => return Ok(Verdict::Skipped(missing)),
    };
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let leftoff = Leftoff::build(folder.path().join("data"))?;
    let server = Server::start(programs, folder.path())?;
    let handler = folder.path().join("handler.py");
    fs::write(&handler, HANDLER).context("cannot write the handler")?;
    leftoff.run(&["topics", "create", TOPIC, "-p", "2"], "")?;
    let lines: String = (0..EVENTS).map(|n| format!("{{\"id\":\"k{n}\",\"n\":{n}}}\n")).collect();
    leftoff.run(&["produce", TOPIC, "--key-field", "id"], &lines)?;

    let seed = number("LEFTOFF_SEED").unwrap_or_else(now);
    println!("postgres: seed {seed}");
    let mut judge =
        Judge { leftoff, server, folder: folder.path().to_owned(), random: seed, complaints: Vec::new() };
    let types = judge.types()?;
    let cuts = judge.lost_answers()?;
    let kills = judge.kills(number("LEFTOFF_KILLS").unwrap_or(DEFAULT_KILLS))?;
    judge.resets()?;
    let points = judge.points()?;
    judge.overtaken()?;
    judge.refusals()?;
    judge.encrypted()?;
    judge.dead_letters()?;
    if judge.complaints.is_empty() {
        let what = format!(
            "{EVENTS} events once each, through {kills} kills, {points} deaths at points of a save, {cuts} cuts around COMMIT and an overtaken runner; with and without TLS; {types} values in columns of each type"
        );
        Ok(Verdict::Passed(what))
    } else {
        Ok(Verdict::Failed(judge.complaints))
    }
}

/// Everything that is judged.
struct Judge {
    leftoff: Leftoff,
    server: Server,
    folder: PathBuf,
    random: u64,
    complaints: Vec<String>,
}

impl Judge {
    /// The answers to `COMMIT` do not arrive, or the question does not.
    fn lost_answers(&mut self) -> anyhow::Result<usize> {
        let proxy = Proxy::start(self.folder.join("proxy"), self.server.socket())?;
        let place = address("judge", proxy.socket(), "");
        self.make_table("cut")?;
        let ended = self.runner("cut", &place, &[])?.wait_with_output().context("a run")?;
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        self.expect("cut", ended.status.success(), &format!("the run ended with {}: {told}", ended.status));
        let cuts = proxy.cuts();
        self.expect("cut", cuts >= 20, &format!("only {cuts} commits were cut"));
        self.expect("cut", told.contains("connected again"), "nobody was told of it");
        self.audit("cut")?;
        Ok(cuts)
    }

    /// The runner, its handler and the server are killed at random moments.
    fn kills(&mut self, kills: u64) -> anyhow::Result<u64> {
        self.make_table("killed")?;
        let place = self.place();
        for number in 0..kills {
            let mut runner = self.runner("killed", &place, &[])?;
            std::thread::sleep(Duration::from_millis(self.below(350)));
            match number % 4 {
                0 => signal("-KILL", runner.id())?,
                1 => {
                    let pid = fs::read_to_string(self.folder.join("killed.pid"))
                        .ok()
                        .and_then(|pid| pid.parse().ok());
                    // It may have ended by itself, at the end of the topic.
                    let _ =
                        pid.map(|pid: u32| Command::new("kill").args(["-KILL", &pid.to_string()]).output());
                }
                2 => self.server.end("-KILL")?,
                _ => self.server.end("-QUIT")?,
            }
            if number % 4 >= 2 {
                self.server.start_again()?;
                // It goes on by itself.
                let ended = runner.wait_with_output().context("a run")?;
                let told = String::from_utf8_lossy(&ended.stderr);
                // A server that is not there yet is not waited for at the start of a run.
                let is_survived = ended.status.success() || told.contains("cannot ");
                self.expect("killed", is_survived, &format!("the server's restart ended the run: {told}"));
                // There is something left for the next kill.
                self.produce_more()?;
            } else {
                runner.wait().context("a run")?;
            }
        }
        let last = self.runner("killed", &place, &[])?.wait_with_output().context("a run")?;
        let told = String::from_utf8_lossy(&last.stderr).into_owned();
        self.expect("killed", last.status.success(), &told);
        self.audit("killed")?;
        Ok(kills)
    }

    fn produce_more(&mut self) -> anyhow::Result<()> {
        let first =
            self.server.sql("SELECT pg_catalog.nextval('numbers')")?.parse::<usize>().context("a number")?;
        let lines: String = (0..600)
            .map(|n| 100_000 * first + n)
            .map(|n| format!("{{\"id\":\"k{n}\",\"n\":{n}}}\n"))
            .collect();
        self.leftoff.run(&["produce", TOPIC, "--key-field", "id"], &lines).map(|_| ())
    }

    /// A runner that was stopped wakes up after another one, on a copy of the directory, has done its work.
    fn overtaken(&mut self) -> anyhow::Result<()> {
        self.make_table("overtaken")?;
        // Nothing but the fence is to keep the late rows out.
        self.server.sql("ALTER TABLE overtaken DROP CONSTRAINT overtaken_key_key")?;
        let place = self.place();
        let first = self.runner("overtaken", &place, &["--save", "every=5"])?;
        let started = std::time::Instant::now();
        let count = "SELECT coalesce(max(next), 0) FROM leftoff_offsets WHERE \"group\" = 'overtaken'";
        while self.server.sql(count)? == "0" {
            ensure!(started.elapsed() < Duration::from_secs(60), "the first runner saved nothing");
        }
        signal("-STOP", first.id())?;
        // What it holds is rolled back by the server, as that of a machine that is gone is after a while.
        self.server.sql("SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE application_name = 'leftoff'")?;
        let copy = self.folder.join("copy");
        let copied = Command::new("cp")
            .arg("-r")
            .arg(self.leftoff.data())
            .arg(&copy)
            .status()
            .context("cannot run cp")?;
        ensure!(copied.success(), "cp failed");
        // The locks in it are files; nobody holds them there.
        let other = self.leftoff.on(copy);
        let second = self.runner_of(&other, "overtaken", &place, &[])?.wait_with_output().context("a run")?;
        let told = String::from_utf8_lossy(&second.stderr).into_owned();
        self.expect("overtaken", second.status.success(), &format!("the second runner: {told}"));
        signal("-CONT", first.id())?;
        let ended = first.wait_with_output().context("a run")?;
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        self.expect(
            "overtaken",
            ended.status.code() == Some(4) && told.contains("another runner has taken over"),
            &format!("the overtaken runner was not fenced: {told}"),
        );
        self.audit_of(&other, "overtaken")
    }

    fn make_table(&self, group: &str) -> anyhow::Result<()> {
        self.server.sql("CREATE SEQUENCE IF NOT EXISTS numbers")?;
        self.server
            .sql(&format!("CREATE TABLE {group} (key text UNIQUE, n int NOT NULL, leftoff_id text)"))
            .map(|_| ())
    }

    fn place(&self) -> String {
        address("judge", self.server.socket(), "")
    }

    fn runner(&self, group: &str, place: &str, more: &[&str]) -> anyhow::Result<Child> {
        self.runner_of(&self.leftoff, group, place, more)
    }

    fn runner_of(&self, leftoff: &Leftoff, group: &str, place: &str, more: &[&str]) -> anyhow::Result<Child> {
        let mut command = self.command_of(leftoff, group, place, more);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("cannot start a run")
    }

    /// A run until the end, its rows for the table of the group's name.
    fn command_of(&self, leftoff: &Leftoff, group: &str, place: &str, more: &[&str]) -> Command {
        let (handler, pid) = (self.folder.join("handler.py"), self.folder.join(format!("{group}.pid")));
        let mut command = leftoff.command(&[
            "run",
            "-t",
            TOPIC,
            "-g",
            group,
            "--out",
            place,
            "--until-end",
            "--on-fail",
            "retry",
        ]);
        command.args(more).args(["--", "python3"]).arg(handler).arg(pid).arg(group);
        command
    }

    fn audit(&mut self, group: &str) -> anyhow::Result<()> {
        let leftoff = self.leftoff.on(self.leftoff.data().to_owned());
        self.audit_of(&leftoff, group)
    }

    /// The project's own audit, and PostgreSQL's count.
    fn audit_of(&mut self, leftoff: &Leftoff, group: &str) -> anyhow::Result<()> {
        let place = self.place();
        let check = leftoff
            .command(&["check", "-g", group, "--out", &place, "--drained"])
            .output()
            .context("a check")?;
        let told =
            format!("{}{}", String::from_utf8_lossy(&check.stdout), String::from_utf8_lossy(&check.stderr));
        self.expect(group, check.status.success(), &told);
        let sql = format!(
            "SELECT count(*) || ' ' || count(DISTINCT record->>'id') FROM leftoff_events WHERE \"group\" = '{group}'
             UNION ALL SELECT count(*) || ' ' || count(DISTINCT leftoff_id) FROM {group}"
        );
        for counts in self.server.sql(&sql)?.lines() {
            let (all, distinct) = counts.split_once(' ').unwrap_or_default();
            self.expect(group, all == distinct && all != "0", &format!("rows and distinct rows: {counts}"));
        }
        Ok(())
    }

    fn expect(&mut self, part: &str, holds: bool, complaint: &str) {
        if !holds {
            self.complaints.push(format!("{part}: {complaint}"));
        }
    }

    /// A random number, by xorshift.
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }
}

/// The address of a database behind a socket in a folder.
fn address(user: &str, socket: &Path, more: &str) -> String {
    let folder = socket.to_string_lossy().replace('/', "%2F");
    format!("postgres://{user}@{folder}/postgres{more}")
}

fn signal(name: &str, pid: u32) -> anyhow::Result<()> {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status().context("cannot run kill")?;
    ensure!(sent.success(), "kill {name} {pid} failed");
    Ok(())
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn now() -> u64 {
    // Never zero, which xorshift does not leave.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| u64::from(since.subsec_nanos()) + 1)
}
