//! Every crate takes the lints of the workspace; one with a workspace of its own, which cannot, forbids `unsafe` itself.

use super::Problem;
use super::manifest::settings;
use super::tree::{File, Tree};

/// Every crate without `[lints] workspace = true`, or what stands for it.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let without = tree.ending("/Cargo.toml").filter(|file| !has_lints(file));
    let problem = |file: &File| Problem {
        file: file.path.clone(),
        line: 1,
        what: "the lints of the workspace are not taken".to_owned(),
        hint: "add `[lints]` with `workspace = true`".to_owned(),
    };
    without.map(problem).collect()
}

fn has_lints(file: &File) -> bool {
    let is_alone = file.text.lines().any(|line| line.trim() == "[workspace]");
    let wanted =
        if is_alone { ("lints.rust", "unsafe_code", "\"forbid\"") } else { ("lints", "workspace", "true") };
    settings(file).any(|setting| (setting.section, setting.key, setting.value) == wanted)
}
