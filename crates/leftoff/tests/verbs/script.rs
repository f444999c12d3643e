//! A script is a transcript: what is typed, and what is printed then.
//!
//! ```text
//! $ produce t <<< 'a\nb\n'        the binary, in an empty folder of its own; text for stdin after <<<
//! > one line of stdout
//! ! one line of stderr
//! = 2                             the exit code, where it is not 0
//! write FILE 'text'               makes a file anew
//! append FILE 'text'
//! ```
//! `[..]` stands for any text within a line. Empty lines and lines with `#` say nothing.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Runs the script and compares everything that is printed.
#[track_caller]
pub fn check(script: &str) {
    check_in(&TempDir::new().unwrap(), script);
}

/// The same in a folder that is there already.
#[track_caller]
pub fn check_in(dir: &TempDir, script: &str) {
    let expect: Vec<&str> =
        script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let mut actual = String::new();
    for line in &expect {
        match line.split(' ').next().unwrap_or_default() {
            "$" => {
                writeln!(actual, "{line}").unwrap();
                run(dir.path(), &words(line)[1..], &mut actual);
            }
            "write" => {
                let words = words(line);
                writeln!(actual, "{line}").unwrap();
                std::fs::write(dir.path().join(&words[1]), &words[2]).unwrap();
            }
            "append" => {
                let words = words(line);
                writeln!(actual, "{line}").unwrap();
                let mut file =
                    std::fs::OpenOptions::new().append(true).open(dir.path().join(&words[1])).unwrap();
                file.write_all(words[2].as_bytes()).unwrap();
            }
            _ => {}
        }
    }
    // A backslash is a backslash here.
    snapbox::Assert::new().normalize_paths(false).eq(actual, expect.join("\n") + "\n");
}

/// The binary over the data in `dir`.
pub fn leftoff(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leftoff"));
    command.current_dir(dir).env("LEFTOFF_DATA", "d");
    command
}

fn run(dir: &Path, words: &[String], transcript: &mut String) {
    let split = words.iter().position(|word| word == "<<<");
    let (args, input) = match split {
        Some(at) => (&words[..at], words[at + 1].as_str()),
        None => (words, ""),
    };
    let mut command = leftoff(dir);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that does not read its input may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    for (mark, bytes) in [('>', &output.stdout), ('!', &output.stderr)] {
        for line in String::from_utf8_lossy(bytes).lines() {
            writeln!(transcript, "{}", format!("{mark} {line}").trim_end()).unwrap();
        }
    }
    if let Some(code) = output.status.code().filter(|code| *code != 0) {
        writeln!(transcript, "= {code}").unwrap();
    }
}

/// Words as in a shell, with single quotes only; in them `\n`, `\r`, `\t` and `\\` mean what they say.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let mut word = String::new();
        while let Some(c) = rest.chars().next().filter(|c| *c != ' ') {
            rest = &rest[c.len_utf8()..];
            if c != '\'' {
                word.push(c);
                continue;
            }
            let (quoted, after) = rest.split_once('\'').expect("a quote has its end");
            word.push_str(&unescaped(quoted));
            rest = after;
        }
        words.push(word);
        rest = rest.trim_start();
    }
    words
}

fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => plain.push('\n'),
                Some('r') => plain.push('\r'),
                Some('t') => plain.push('\t'),
                Some(other) => plain.push(other),
                None => plain.push('\\'),
            },
            (c, false) => plain.push(c),
        }
    }
    plain
}
