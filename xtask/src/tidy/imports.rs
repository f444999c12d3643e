//! Which folder may use which paths, as Kafka's import control does.

use super::Problem;
use super::manifest::settings;
use super::paths::{UsedPath, module_of, used_paths};
use super::source::Source;
use super::tree::{File, Tree};

/// A folder of a crate, and what it may use of ours.
struct Folder {
    /// `crates/x/src/log` means `log.rs` and everything below `log/`.
    path: &'static str,
    /// Paths of this crate and of other crates of ours; what lies below one is meant, too.
    may: &'static [&'static str],
    /// The crates of others, where that is limited, too.
    others: Option<&'static [&'static str]>,
}

const ENGINE: &str = "crates/leftoff-engine/src";

const FOLDERS: &[Folder] = &[
    Folder {
        path: "crates/leftoff-engine/src/types",
        may: &[
            "crate::types",
            "leftoff_wire::Offset",
            "leftoff_wire::Committed",
            "leftoff_wire::Run",
            "leftoff_wire::Uuid",
        ],
        others: None,
    },
    Folder {
        path: "crates/leftoff-engine/src/disk",
        may: &["crate::disk"],
        // `crc_fast` is arithmetic: it tells two images of a disk apart.
        others: Some(&["std", "core", "alloc", "rustix", "crc_fast"]),
    },
    Folder {
        path: "crates/leftoff-engine/src/log",
        may: &[
            "crate::log",
            "crate::disk",
            "crate::types",
            "leftoff_wire::record_batch",
            "leftoff_wire::primitives",
            "leftoff_wire::Offset",
            "leftoff_wire::Committed",
            "leftoff_wire::Run",
            "leftoff_wire::Uuid",
        ],
        others: None,
    },
    Folder {
        path: "crates/leftoff-engine/src/coordinator",
        may: &["crate::coordinator", "crate::types", "leftoff_wire"],
        others: None,
    },
    Folder {
        path: "crates/leftoff-engine/src/broker",
        may: &[
            "crate::broker",
            "crate::log",
            "crate::coordinator",
            "crate::disk",
            "crate::types",
            "leftoff_wire",
        ],
        others: None,
    },
];

/// What code below a folder never uses, and where it may all the same.
struct Never {
    below: &'static str,
    paths: &'static [&'static str],
    /// Files that are the one place for it. Tests may use it anywhere.
    except: &'static [&'static str],
    hint: &'static str,
}

const NEVER: &[Never] = &[
    Never {
        below: "crates/leftoff-engine/src/",
        paths: &["std::fs"],
        except: &["crates/leftoff-engine/src/disk/os.rs"],
        hint: "go through disk::Disk, so that a test can take the power away",
    },
    Never {
        below: "crates/leftoff-engine/src/",
        paths: &["std::time", "std::thread", "std::net", "std::env", "rand", "std::hash::RandomState"],
        except: &["crates/leftoff-engine/src/disk/os.rs"],
        hint: "time and entropy come in as inputs, so that the same inputs give the same trace",
    },
    Never {
        below: "crates/leftoff-wire/src/",
        paths: &["std::fs", "std::net", "std::time", "std::thread", "std::env"],
        except: &[],
        hint: "leftoff-wire turns bytes into values and back, without I/O",
    },
];

/// Every path that the tables do not allow.
pub fn check(tree: &Tree) -> Vec<Problem> {
    let in_src = tree.ending(".rs").filter(|file| file.path.contains("/src/"));
    in_src.flat_map(|file| check_file(tree, file)).collect()
}

fn check_file(tree: &Tree, file: &File) -> Vec<Problem> {
    let source = Source::of(&file.text);
    let used = used_paths(&module_of(&file.path), &source.tokens());
    let never = used.iter().filter_map(|used| check_never(file, used));
    let mut problems: Vec<Problem> = never.collect();
    match FOLDERS.iter().find(|folder| folder.holds(&file.path)) {
        Some(folder) => {
            let crates = Crates::of(tree, &file.path);
            problems.extend(used.iter().filter_map(|used| folder.refuses(file, &crates, used)));
        }
        None => problems.extend(check_has_row(file)),
    }
    problems
}

fn check_never(file: &File, used: &UsedPath) -> Option<Problem> {
    let tests = used.in_tests || is_test(&file.path);
    let rows =
        NEVER.iter().filter(|row| file.path.starts_with(row.below) && !row.except.contains(&&*file.path));
    let row = rows.filter(|_| !tests).find(|row| row.paths.iter().any(|path| is_below(&used.path, path)))?;
    Some(problem(file, used, "is not for this folder".to_owned(), row.hint.to_owned()))
}

/// In the engine every folder has a row, so that a new one is a decision.
fn check_has_row(file: &File) -> Option<Problem> {
    let below_engine = file.path.strip_prefix(ENGINE)?;
    (below_engine != "/lib.rs").then(|| Problem {
        file: file.path.clone(),
        line: 1,
        what: "this folder of the engine has no row in the table of imports".to_owned(),
        hint: "add one to xtask/src/tidy/imports.rs, and the folder to ARCHITECTURE.md".to_owned(),
    })
}

impl Folder {
    fn holds(&self, path: &str) -> bool {
        path.strip_prefix(self.path).is_some_and(|below| below == ".rs" || below.starts_with('/'))
    }

    fn refuses(&self, file: &File, crates: &Crates, used: &UsedPath) -> Option<Problem> {
        let first = used.path.split("::").next().unwrap_or_default();
        let ours = first == "crate" || first.starts_with("leftoff");
        if ours {
            let allowed = self.may.iter().any(|may| is_below(&used.path, may));
            return (!allowed).then(|| self.refusal(file, used, self.may));
        }
        let tests = used.in_tests || is_test(&file.path);
        let others = self.others.filter(|_| !tests && crates.has(first))?;
        (!others.contains(&first)).then(|| self.refusal(file, used, others))
    }

    fn refusal(&self, file: &File, used: &UsedPath, may: &[&str]) -> Problem {
        let name = self.path.strip_prefix(ENGINE).unwrap_or(self.path).trim_start_matches('/');
        problem(file, used, format!("is not for {name}"), format!("{name} may use {}", listed(may)))
    }
}

/// The crates of others that a crate can name in a path.
struct Crates(Vec<String>);

impl Crates {
    fn of(tree: &Tree, path: &str) -> Crates {
        let folder = path.split_once("/src/").map_or("", |(folder, _)| folder);
        let manifest = tree.file(&format!("{folder}/Cargo.toml"));
        let names = manifest
            .into_iter()
            .flat_map(settings)
            .filter_map(|setting| Some(setting.dependency()?.replace('-', "_")));
        Crates(names.chain(["std", "core", "alloc"].map(str::to_owned)).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|one| one == name)
    }
}

fn problem(file: &File, used: &UsedPath, what: String, hint: String) -> Problem {
    Problem { file: file.path.clone(), line: used.line, what: format!("`{}` {what}", used.path), hint }
}

/// `crate::log::Log` is below `crate::log`; `crate::logs` is not.
fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|below| below.is_empty() || below.starts_with("::"))
}

/// Whether all of the file is tests.
pub(super) fn is_test(path: &str) -> bool {
    let mut names = path.split('/');
    names.any(|name| ["tests", "tests.rs", "benches"].contains(&name))
}

/// The crate whose folder a path is in: `leftoff-wire` for `crates/leftoff-wire/Cargo.toml`.
pub(super) fn crate_of(path: &str) -> &str {
    let below = path.strip_prefix("crates/").unwrap_or(path);
    below.split('/').next().unwrap_or(below)
}

/// `a, b`, or `nothing of ours`.
pub(super) fn listed(names: &[&str]) -> String {
    if names.is_empty() { "nothing of ours".to_owned() } else { names.join(", ") }
}
