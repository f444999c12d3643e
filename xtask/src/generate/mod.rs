//! `cargo xtask generate`: the messages of `leftoff-wire`, made from its schema table. A test holds that what is checked in is
//! what the table says.

mod emit;
pub mod parse;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, ensure};

/// The schema table.
pub const SCHEMA: &str = "crates/leftoff-wire/schema/messages.txt";

/// A file that is made: its path in the workspace, and its text.
pub type Generated = (String, String);

/// Writes the files.
///
/// # Errors
/// When the table cannot be read, or a file not be written.
pub fn command() -> anyhow::Result<ExitCode> {
    let root = crate::root()?;
    let mut changed = 0;
    for (path, text) in files(&root)? {
        let path = root.join(path);
        if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            changed += 1;
        }
    }
    println!("{changed} files changed");
    Ok(ExitCode::SUCCESS)
}

/// All files, as they should be.
///
/// # Errors
/// When the table cannot be read, or rustfmt is not there.
pub fn files(root: &Path) -> anyhow::Result<Vec<Generated>> {
    let text = std::fs::read_to_string(root.join(SCHEMA)).with_context(|| format!("cannot read {SCHEMA}"))?;
    let apis = parse::parse(&text)?;
    let mut files = vec![
        ("crates/leftoff-wire/src/messages/api.rs".to_owned(), emit::apis(&apis)),
        ("xtask/tests/messages/every.rs".to_owned(), emit::every(&apis)),
    ];
    for api in &apis {
        files.push((
            format!("crates/leftoff-wire/src/messages/{}.rs", emit::module(&api.name)),
            emit::api(api),
        ));
    }
    files.into_iter().map(|(path, text)| Ok((path, formatted(root, &text)?))).collect()
}

fn formatted(root: &Path, text: &str) -> anyhow::Result<String> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(root.join("rustfmt.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start rustfmt")?;
    let mut input = rustfmt.stdin.take().context("rustfmt has an input")?;
    let text = text.to_owned();
    let feeding = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let done = rustfmt.wait_with_output().context("rustfmt")?;
    ensure!(done.status.success(), "rustfmt refuses what was made");
    feeding.join().map_err(|_| anyhow::anyhow!("the thread that feeds rustfmt has panicked"))??;
    String::from_utf8(done.stdout).context("rustfmt's answer")
}
