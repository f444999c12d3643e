//! The handlers under `examples/handlers/`, each run by the interpreter or compiler that a user would run it with: one event at a
//! time, in a pipeline, and with a descriptor for its answers; and with an event that it must fail at.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::Verdict;
use super::leftoff::{Leftoff, target};

/// How many events each copies.
const EVENTS: usize = 500;
/// The ways to run a handler.
const WAYS: &[&[&str]] =
    &[&[], &["--pipeline", "50"], &["--protocol-fd", "3"], &["--pipeline", "50", "--protocol-fd", "9"]];

/// A language and how its example is run.
struct Language {
    name: &'static str,
    /// The program that it needs, and how that tells its version.
    version: &'static [&'static str],
    /// Makes the command out of the folder of the examples and a folder to build in.
    command: fn(&Path, &Path) -> anyhow::Result<Vec<String>>,
}

const LANGUAGES: &[Language] = &[
    Language {
        name: "Python",
        version: &["python3", "--version"],
        command: |examples, _| Ok(vec!["python3".to_owned(), text(&examples.join("copy.py"))]),
    },
    Language {
        name: "Node",
        version: &["node", "--version"],
        command: |examples, _| Ok(vec!["node".to_owned(), text(&examples.join("copy.mjs"))]),
    },
    Language { name: "Go", version: &["go", "version"], command: build_go },
];

pub(super) fn run() -> anyhow::Result<Verdict> {
    let missing: Vec<&str> =
        LANGUAGES.iter().filter(|language| !language.is_there()).map(|language| language.name).collect();
    let folder = target()?.join("handlers");
    let examples = crate::root()?.join("examples/handlers");
    let mut complaints = Vec::new();
    for language in LANGUAGES.iter().filter(|language| language.is_there()) {
        if let Err(error) = try_out(language, &examples, &folder) {
            complaints.push(format!("{}: {error:#}", language.name));
        }
    }
    if !complaints.is_empty() {
        return Ok(Verdict::Failed(complaints));
    }
    if !missing.is_empty() {
        let there = LANGUAGES.len() - missing.len();
        let missing = missing.join(" and ");
        return Ok(Verdict::Skipped(format!("{missing}: not on this machine (the other {there} passed)")));
    }
    let ways = WAYS.len();
    Ok(Verdict::Passed(format!("Python, Node and Go, {ways} ways each, {EVENTS} events and one to fail at")))
}

impl Language {
    fn is_there(&self) -> bool {
        let output = Command::new(self.version[0]).args(&self.version[1..]).output();
        output.is_ok_and(|output| output.status.success())
    }
}

fn try_out(language: &Language, examples: &Path, folder: &Path) -> anyhow::Result<()> {
    let folder = folder.join(language.name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let command = (language.command)(examples, &folder)?;
    let leftoff = Leftoff::build(folder.join("data"))?;
    let lines: String =
        (0..EVENTS).map(|number| format!("{{\"number\":{number},\"text\":\"ä\"}}\n")).collect();
    leftoff.run(&["produce", "t", "-q"], &lines)?;
    for (number, flags) in WAYS.iter().enumerate() {
        copies(&leftoff, &folder, number, flags, &command).with_context(|| format!("{flags:?}"))?;
    }
    leftoff.run(&["produce", "bad", "-q"], "no json\n")?;
    let out = format!("file:{}", text(&folder.join("bad")));
    let failed = leftoff.run(&arguments("bad", "bad", &out, &[], &command), "");
    let said = failed.err().context("an event that is no JSON was handled")?.to_string();
    ensure!(said.contains("bad/0 offset 0 was not handled: the handler reports: "), "{said}");
    Ok(())
}

fn copies(
    leftoff: &Leftoff,
    folder: &Path,
    number: usize,
    flags: &[&str],
    command: &[String],
) -> anyhow::Result<()> {
    let path: PathBuf = folder.join(format!("copy-{number}"));
    let (group, out) = (format!("g{number}"), format!("file:{}", text(&path)));
    leftoff.run(&arguments("t", &group, &out, flags, command), "")?;
    let written = std::fs::read_to_string(&path)?;
    let is_copy = |(number, line): (usize, &str)| {
        let record: Value = serde_json::from_str(line).unwrap_or_default();
        record["number"] == number && record["text"] == "ä"
    };
    let lines = written.lines().count();
    ensure!(lines == EVENTS && written.lines().enumerate().all(is_copy), "not a copy: {}", text(&path));
    Ok(())
}

fn arguments<'a>(
    topic: &'a str,
    group: &'a str,
    out: &'a str,
    flags: &[&'a str],
    command: &'a [String],
) -> Vec<&'a str> {
    let mut arguments = vec!["run", "-t", topic, "-g", group, "--out", out, "--until-end"];
    arguments.extend(flags);
    arguments.push("--");
    arguments.extend(command.iter().map(String::as_str));
    arguments
}

fn build_go(examples: &Path, folder: &Path) -> anyhow::Result<Vec<String>> {
    let program = folder.join("copy");
    let sources = ["copy.go", "leftoff.go"].map(|name| examples.join("go").join(name));
    let output = Command::new("go").args(["build", "-o"]).arg(&program).args(sources).output()?;
    ensure!(output.status.success(), "go build: {}", String::from_utf8_lossy(&output.stderr));
    Ok(vec![text(&program)])
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
