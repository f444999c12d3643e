//! Which crate of ours may lean on which: downward only.

use super::manifest::settings;
use super::tree::{File, Tree};
use super::{Problem, imports};

struct Row {
    name: &'static str,
    /// Ours, in any section.
    may: &'static [&'static str],
    /// Ours, for its tests.
    tests_may: &'static [&'static str],
}

const ALLOWED: &[Row] = &[
    Row { name: "leftoff-wire", may: &[], tests_may: &[] },
    Row { name: "leftoff-engine", may: &["leftoff-wire"], tests_may: &[] },
    Row { name: "leftoff-consumer", may: &["leftoff-wire"], tests_may: &[] },
    // It judges the others, so it shares nothing with them.
    Row { name: "leftoff-audit", may: &[], tests_may: &[] },
    Row { name: "leftoff-sim", may: &["leftoff-engine", "leftoff-wire"], tests_may: &[] },
    Row {
        name: "leftoff",
        may: &["leftoff-audit", "leftoff-consumer", "leftoff-engine", "leftoff-wire"],
        tests_may: &["leftoff-sim"],
    },
    // It makes the messages of the wire, and its tests hold them to the table and to another implementation.
    Row { name: "xtask", may: &[], tests_may: &["leftoff-wire"] },
];

/// Every dependency on a crate of ours that the table does not allow.
pub fn check(tree: &Tree) -> Vec<Problem> {
    tree.ending("/Cargo.toml").flat_map(check_manifest).collect()
}

fn check_manifest(file: &File) -> Vec<Problem> {
    let name = imports::crate_of(&file.path);
    let Some(row) = ALLOWED.iter().find(|row| row.name == name) else {
        let what = format!("crate {name} has no row in the table of dependencies");
        let hint = "add one to xtask/src/tidy/dependencies.rs, and the crate to ARCHITECTURE.md".to_owned();
        return vec![Problem { file: file.path.clone(), line: 1, what, hint }];
    };
    let refused = |section: &str, other: &str| {
        let ours = ALLOWED.iter().any(|row| row.name == other);
        ours && !row.may.contains(&other)
            && !(section == "dev-dependencies" && row.tests_may.contains(&other))
    };
    let problem = |line, other| Problem {
        file: file.path.clone(),
        line,
        what: format!("{name} depends on {other}"),
        hint: format!("crates lean downward only; {name} may use {}", imports::listed(row.may)),
    };
    let dependencies =
        settings(file).filter_map(|setting| Some((setting.section, setting.line, setting.dependency()?)));
    dependencies
        .filter(|(section, _, other)| refused(section, other))
        .map(|(_, line, other)| problem(line, other))
        .collect()
}
