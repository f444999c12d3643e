//! The `leftoff` command, built from this workspace, on a data directory of its own.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

/// The command and the directory it works on.
pub struct Leftoff {
    binary: PathBuf,
    data: PathBuf,
}

impl Leftoff {
    /// Builds the command as the tests do, with all its assertions.
    pub fn build(data: PathBuf) -> anyhow::Result<Leftoff> {
        let arguments = ["build", "--locked", "--package", "leftoff", "--bin", "leftoff"];
        let output = cargo()
            .args(arguments)
            .arg("--message-format=json-render-diagnostics")
            .current_dir(crate::root()?)
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo")?;
        ensure!(output.status.success(), "the leftoff command does not build");
        let messages = String::from_utf8(output.stdout).context("cargo's messages")?;
        let binary = messages.lines().rev().find_map(executable).context("cargo named no executable")?;
        Ok(Leftoff { binary, data })
    }

    /// The data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The same command on another data directory.
    pub fn on(&self, data: PathBuf) -> Leftoff {
        Leftoff { binary: self.binary.clone(), data }
    }

    /// A verb, to be run as the caller likes.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("--data").arg(&self.data).args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs a verb to its end and gives what it printed. Anything but success is an error with what it said.
    pub fn run(&self, arguments: &[&str], input: &str) -> anyhow::Result<String> {
        let line = format!("leftoff {}", arguments.join(" "));
        let mut child = Command::new(&self.binary)
            .arg("--data")
            .arg(&self.data)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {line}"))?;
        let mut stdin = child.stdin.take().context("a pipe was asked for")?;
        let input = input.to_owned();
        // In a thread of its own, so that neither side waits for the other with a full pipe.
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().with_context(|| format!("cannot wait for {line}"))?;
        let written = writer.join().expect("writing does not panic");
        if !output.status.success() {
            bail!("{line}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
        }
        written.with_context(|| format!("{line} did not read its input"))?;
        String::from_utf8(output.stdout).with_context(|| format!("{line} printed what is no text"))
    }
}

/// The folder that cargo builds into.
pub fn target() -> anyhow::Result<PathBuf> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--locked", "--offline"];
    let output = cargo().args(arguments).current_dir(crate::root()?).output().context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo's metadata")?;
    let target = metadata["target_directory"].as_str().context("cargo named no target directory")?;
    Ok(PathBuf::from(target))
}

fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What the cargo that runs us has told us of ourselves: a build script that looks at it would run again each time.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo
}

/// The path in one of cargo's messages, if it is about an executable.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    message["executable"].as_str().map(PathBuf::from)
}
