//! The rules of the house that a machine can check.
//!
//! Each rule is one file with one function from a [`Tree`] to [`Problem`]s. A new rule is a row in [`RULES`] and at least one bad
//! example in `tests.rs`: a rule that cannot fail is a defect, and a test says so.

mod dependencies;
mod imports;
mod length;
mod links;
mod lints;
mod manifest;
mod paths;
mod source;
mod tree;
mod words;

#[cfg(test)]
mod tests;

use std::fmt;
use std::process::ExitCode;

pub use tree::{File, Tree};

/// A rule of the house.
#[derive(Debug)]
pub struct Rule {
    /// What it is called in a message.
    pub name: &'static str,
    /// All that breaks it.
    pub check: fn(&Tree) -> Vec<Problem>,
}

/// Every rule.
pub const RULES: &[Rule] = &[
    Rule { name: "dependencies", check: dependencies::check },
    Rule { name: "imports", check: imports::check },
    Rule { name: "length", check: length::check },
    Rule { name: "words", check: words::check },
    Rule { name: "lints", check: lints::check },
    Rule { name: "links", check: links::check },
];

/// A place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, relative to the root.
    pub file: String,
    /// The line, from 1 on.
    pub line: usize,
    /// What is wrong, with the value named.
    pub what: String,
    /// What to do.
    pub hint: String,
}

/// A place that breaks a rule, and the rule's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static str,
    /// The place.
    pub problem: Problem,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { file, line, what, hint } = &self.problem;
        write!(f, "{file}:{line}: {}: {what}; {hint}", self.rule)
    }
}

/// Everything in `tree` that breaks a rule, rule by rule.
#[must_use]
pub fn findings(tree: &Tree) -> Vec<Finding> {
    let of_rule = |rule: &Rule| {
        let name = rule.name;
        (rule.check)(tree).into_iter().map(move |problem| Finding { rule: name, problem })
    };
    RULES.iter().flat_map(of_rule).collect()
}

/// `cargo xtask tidy`: prints what it finds, and fails if that is anything.
///
/// # Errors
///
/// When a file cannot be read.
pub fn command() -> anyhow::Result<ExitCode> {
    let tree = Tree::read(&crate::root()?)?;
    let found = findings(&tree);
    for finding in &found {
        eprintln!("{finding}");
    }
    if found.is_empty() {
        println!("tidy: {} files, {} rules, nothing to do", tree.files.len(), RULES.len());
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("tidy: {} to put right", found.len());
    Ok(ExitCode::FAILURE)
}
