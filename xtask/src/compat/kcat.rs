//! `kcat`: Debian's kcat, on librdkafka 2.0.2, the oldest wire versions in wide use, against `leftoff serve`: lists, produces with
//! every codec, reads back by offset and by time, goes on as a group, and finds all of it after the server was killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};

use super::Verdict;
use super::leftoff::Leftoff;

/// No call takes longer, or it hangs.
const SECONDS: &str = "30";

pub(super) fn run() -> anyhow::Result<Verdict> {
    if !is_there() {
        let apt_get = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
            command.stdout(Stdio::null()).status()
        };
        // Lists of packages that are old do not keep it from trying.
        let _ = apt_get(&["update", "-qq"]);
        let status = apt_get(&["install", "-y", "-qq", "kcat"]);
        if !is_there() {
            return Ok(Verdict::Skipped(format!(
                "there is no kcat, and apt-get install kcat gave {status:?}"
            )));
        }
    }
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let leftoff = Leftoff::build(folder.path().join("data"))?;
    let mut judge = Judge { server: Server::start(&leftoff)?, complaints: Vec::new(), looked: 0 };
    judge.topics()?;
    judge.events()?;
    judge.codecs()?;
    judge.places_and_times()?;
    judge.groups()?;
    judge.server.child.kill().context("cannot kill the server")?;
    judge.server.child.wait().context("a killed server")?;
    judge.server = Server::start(&leftoff)?;
    judge.after_a_kill()?;
    if judge.complaints.is_empty() {
        Ok(Verdict::Passed(format!("{} answers as Apache Kafka gives them", judge.looked)))
    } else {
        Ok(Verdict::Failed(judge.complaints))
    }
}

fn is_there() -> bool {
    Command::new("kcat").arg("-V").output().is_ok_and(|output| output.status.success())
}

/// A server at a free port.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(leftoff: &Leftoff) -> anyhow::Result<Server> {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--group-initial-rebalance-delay", "0s"];
        let mut child =
            leftoff.command(&serve).stderr(Stdio::piped()).spawn().context("cannot start serve")?;
        let mut told = BufReader::new(child.stderr.take().context("a pipe was asked for")?);
        let mut line = String::new();
        while !line.starts_with("listens at ") {
            line.clear();
            ensure!(told.read_line(&mut line)? > 0, "serve ended before it listened");
        }
        let address = line.trim_start_matches("listens at ").trim().to_owned();
        // Whatever more it says must not fill its pipe.
        std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        Ok(Server { child, address })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Judge {
    server: Server,
    complaints: Vec<String>,
    looked: usize,
}

impl Judge {
    /// What kcat prints, and whether it says that all went well.
    fn kcat(&self, arguments: &str, input: &str) -> anyhow::Result<(bool, String)> {
        let mut command = Command::new("timeout");
        command.args([SECONDS, "kcat", "-b", &self.server.address]).args(arguments.split_whitespace());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start kcat")?;
        let mut stdin = child.stdin.take().context("a pipe was asked for")?;
        let input = input.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().context("kcat")?;
        // One that has enough need not read all.
        let _ = writer.join();
        Ok((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// Does this, and expects these lines.
    fn check(&mut self, arguments: &str, input: &str, expect: &str) -> anyhow::Result<()> {
        let (is_well, printed) = self.kcat(arguments, input)?;
        self.looked += 1;
        if !is_well || printed != expect {
            let shown: String = printed.chars().take(400).collect();
            self.complaints.push(format!("kcat {arguments}: ended well: {is_well}, printed {shown:?}"));
        }
        Ok(())
    }

    fn topics(&mut self) -> anyhow::Result<()> {
        let (is_well, printed) = self.kcat("-L -J", "")?;
        let listed: Result<serde_json::Value, _> = serde_json::from_str(&printed);
        self.looked += 1;
        if !is_well || listed.is_err() {
            self.complaints.push(format!("kcat -L -J: {printed}"));
        }
        // The first question makes it.
        self.kcat("-L -t T", "")?;
        let (is_well, _) = self.kcat("-C -t T -p 99 -o beginning -e -q", "")?;
        self.looked += 1;
        if is_well {
            self.complaints.push("kcat -p 99: there is no such partition, and it ended well".to_owned());
        }
        Ok(())
    }

    fn events(&mut self) -> anyhow::Result<()> {
        self.check("-P -t T -p 0", "a\nb\nc\n", "")?;
        let form = r"-f %p_%o_%K|%s|%S\n";
        self.check(
            &format!("-C -t T -p 0 -o beginning -e -q {form}"),
            "",
            "0_0_-1|a|1\n0_1_-1|b|1\n0_2_-1|c|1\n",
        )?;
        self.check("-P -t K -p 0 -K: -Z -H h1=x -H h2=y -z lz4", "k1:v1\nk3:\n", "")?;
        self.check(r"-C -t K -p 0 -o beginning -e -q -f %k_%h_%S\n", "", "k1_h1=x,h2=y_2\nk3_h1=x,h2=y_-1\n")
    }

    fn codecs(&mut self) -> anyhow::Result<()> {
        let lines: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
            self.check(&format!("-P -t of-{codec} -z {codec}"), &lines, "")?;
            self.check(&format!("-C -t of-{codec} -o beginning -e -q"), "", &lines)?;
        }
        self.check("-P -t idempotent -X enable.idempotence=true", &lines, "")?;
        self.check("-C -t idempotent -o beginning -e -q", "", &lines)
    }

    fn places_and_times(&mut self) -> anyhow::Result<()> {
        self.check("-C -t of-none -o -2 -e -q", "", "line 998\nline 999\n")?;
        self.check("-C -t of-none -o 990 -c 2 -q", "", "line 990\nline 991\n")?;
        self.check("-C -t of-none -o 1000 -e -q", "", "")?;
        self.check("-C -t of-none -o s@9999999999999 -e -q", "", "")?;
        for (time, offset) in [("-1", 1000), ("-2", 0), ("1", 0), ("9999999999999", -1)] {
            self.check(&format!("-Q -t of-none:0:{time}"), "", &format!("of-none [0] offset {offset}\n"))?;
        }
        Ok(())
    }

    fn groups(&mut self) -> anyhow::Result<()> {
        let group = "-G G -e -q -X auto.offset.reset=earliest T";
        self.check(group, "", "a\nb\nc\n")?;
        self.check(group, "", "")?;
        self.check("-P -t T -p 0", "d\n", "")?;
        self.check(group, "", "d\n")
    }

    fn after_a_kill(&mut self) -> anyhow::Result<()> {
        self.check("-C -t T -p 0 -o beginning -e -q", "", "a\nb\nc\nd\n")?;
        self.check("-P -t T -p 0", "e\n", "")?;
        self.check("-G G -e -q -X auto.offset.reset=earliest T", "", "e\n")
    }
}
