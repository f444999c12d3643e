//! No file so long that nobody reads it.

use super::Problem;
use super::tree::{File, Tree};

/// More than this is more than one thing.
const LIMIT_LINES: usize = 1_000;

/// Generated files say so in one of their first lines.
const GENERATED: &str = "@generated";
const GENERATED_WITHIN_LINES: usize = 5;

/// Every file with more than [`LIMIT_LINES`] lines that people wrote.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let long = tree.files.iter().filter(|file| lines(file) > LIMIT_LINES && !is_generated(file));
    let problem = |file: &File| Problem {
        file: file.path.clone(),
        line: LIMIT_LINES + 1,
        what: format!("{} lines, more than {LIMIT_LINES}", lines(file)),
        hint: "split it by what its parts are for".to_owned(),
    };
    long.map(problem).collect()
}

fn lines(file: &File) -> usize {
    file.text.lines().count()
}

fn is_generated(file: &File) -> bool {
    file.text.lines().take(GENERATED_WITHIN_LINES).any(|line| line.contains(GENERATED))
}
