//! Bad examples that every rule must find, and good ones that it must let pass.

use super::source::Source;
use super::{File, RULES, Tree, findings};

/// Runs all rules over the files of `script` (each starts with `--- PATH`) and compares what they say with the lines of `expect`:
/// `PATH:LINE RULE` and a piece of the message.
fn check(script: &str, expect: &[&str]) {
    let found = findings(&tree(script));
    let told: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expect.len(), "{script}\n{told:#?}");
    for (finding, expected) in found.iter().zip(expect) {
        let [place, rule, piece] = expected.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("bad line {expected}")
        };
        let at = format!("{}:{}", finding.problem.file, finding.problem.line);
        assert_eq!((at.as_str(), finding.rule), (place, rule), "{told:#?}");
        assert!(finding.to_string().contains(piece), "no {piece} in {finding}");
    }
}

fn tree(script: &str) -> Tree {
    let pieces = script.split("--- ").skip(1);
    let files = pieces.map(|piece| {
        let (path, text) = piece.split_once('\n').expect("a path ends its line");
        File { path: path.to_owned(), text: text.to_owned() }
    });
    Tree::of(files.collect())
}

/// Every bad example, as given to [`check`].
const BAD: &[(&str, &[&str])] = &[
    // imports: inside the engine
    (
        "--- crates/leftoff-engine/src/log/segment.rs\nuse crate::{types::Millis, broker::Broker};",
        &["crates/leftoff-engine/src/log/segment.rs:1 imports `crate::broker::Broker` is not for log"],
    ),
    (
        "--- crates/leftoff-engine/src/log/mod.rs\nuse crate::disk::Disk;\nuse leftoff_wire::{Offset, consumer_offsets::Key};",
        &[
            "crates/leftoff-engine/src/log/mod.rs:2 imports `leftoff_wire::consumer_offsets::Key` is not for log",
        ],
    ),
    (
        "--- crates/leftoff-engine/src/log/mod.rs\nuse leftoff_wire as wire;",
        &["crates/leftoff-engine/src/log/mod.rs:1 imports `leftoff_wire` is not for log"],
    ),
    (
        "--- crates/leftoff-engine/src/log/mod.rs\nuse super::*;",
        &["crates/leftoff-engine/src/log/mod.rs:1 imports `crate` is not for log"],
    ),
    (
        "--- crates/leftoff-engine/src/coordinator/group.rs\nfn f(log: &crate::log::Log) {}",
        &[
            "crates/leftoff-engine/src/coordinator/group.rs:1 imports coordinator may use crate::coordinator, crate::types",
        ],
    ),
    (
        "--- crates/leftoff-engine/src/coordinator/group.rs\nuse super::super::disk;",
        &["crates/leftoff-engine/src/coordinator/group.rs:1 imports `crate::disk` is not for coordinator"],
    ),
    (
        "--- crates/leftoff-engine/src/coordinator/mod.rs\nmod inner {\n    use super::super::log::Log;\n}",
        &["crates/leftoff-engine/src/coordinator/mod.rs:2 imports `crate::log::Log`"],
    ),
    (
        "--- crates/leftoff-engine/src/disk/mem.rs\nuse crate::types::Millis;\nuse rustix::fs;",
        &["crates/leftoff-engine/src/disk/mem.rs:1 imports `crate::types::Millis` is not for disk"],
    ),
    (
        "--- crates/leftoff-engine/Cargo.toml\n[lints]\nworkspace = true\n[dependencies]\nthis-error.workspace = true\n\
         --- crates/leftoff-engine/src/disk/mem.rs\nuse mem::Image;\nuse this_error::Error;",
        &["crates/leftoff-engine/src/disk/mem.rs:2 imports disk may use std, core, alloc, rustix, crc_fast"],
    ),
    (
        "--- crates/leftoff-engine/src/types.rs\nuse crate::log::Log;",
        &["crates/leftoff-engine/src/types.rs:1 imports `crate::log::Log` is not for types"],
    ),
    (
        "--- crates/leftoff-engine/src/shiny/mod.rs\nuse std::fmt;",
        &["crates/leftoff-engine/src/shiny/mod.rs:1 imports no row in the table of imports"],
    ),
    // imports: files, time, threads, entropy
    (
        "--- crates/leftoff-engine/src/log/mod.rs\nuse std::{fmt, fs::File};",
        &["crates/leftoff-engine/src/log/mod.rs:1 imports go through disk::Disk"],
    ),
    (
        "--- crates/leftoff-engine/src/disk/mem.rs\nfn f() { std::fs::read(path); }",
        &["crates/leftoff-engine/src/disk/mem.rs:1 imports `std::fs::read`"],
    ),
    (
        "--- crates/leftoff-engine/src/broker/mod.rs\nuse std::time::Instant;\nfn f() { ::std::thread::spawn(f); rand::random::<u8>() }",
        &[
            "crates/leftoff-engine/src/broker/mod.rs:1 imports `std::time::Instant`",
            "crates/leftoff-engine/src/broker/mod.rs:2 imports `std::thread::spawn`",
            "crates/leftoff-engine/src/broker/mod.rs:2 imports time and entropy come in as inputs",
        ],
    ),
    (
        "--- crates/leftoff-wire/src/lib.rs\nuse std::fs;",
        &["crates/leftoff-wire/src/lib.rs:1 imports without I/O"],
    ),
    // dependencies
    (
        "--- crates/leftoff-wire/Cargo.toml\n[lints]\nworkspace = true\n[dependencies]\nleftoff-engine.workspace = true",
        &["crates/leftoff-wire/Cargo.toml:4 dependencies leftoff-wire depends on leftoff-engine"],
    ),
    (
        "--- crates/leftoff-consumer/Cargo.toml\n[lints]\nworkspace = true\n[dev-dependencies]\nleftoff-engine = { path = \"x\" }",
        &["crates/leftoff-consumer/Cargo.toml:4 dependencies leftoff-consumer may use leftoff-wire"],
    ),
    (
        "--- crates/leftoff-audit/Cargo.toml\n[lints]\nworkspace = true\n[dependencies.leftoff-wire]\nworkspace = true",
        &["crates/leftoff-audit/Cargo.toml:4 dependencies leftoff-audit may use nothing of ours"],
    ),
    (
        "--- crates/leftoff/Cargo.toml\n[lints]\nworkspace = true\n[dependencies]\nleftoff-sim.workspace = true",
        &["crates/leftoff/Cargo.toml:4 dependencies leftoff depends on leftoff-sim"],
    ),
    (
        "--- crates/leftoff-new/Cargo.toml\n[lints]\nworkspace = true",
        &["crates/leftoff-new/Cargo.toml:1 dependencies no row in the table of dependencies"],
    ),
    // words
    (
        "--- crates/leftoff/src/a.rs\nfn f() { todo!() }\nfn g() { unimplemented!(\"\") }\nfn h() { dbg!(1); }",
        &[
            "crates/leftoff/src/a.rs:1 words `todo!`",
            "crates/leftoff/src/a.rs:2 words `unimplemented!`",
            "crates/leftoff/src/a.rs:3 words `dbg!`",
        ],
    ),
    (
        "--- crates/leftoff/tests/a.rs\n#[test]\n#[ignore = \"slow\"]\nfn f() { std::thread::sleep(one); }",
        &[
            "crates/leftoff/tests/a.rs:2 words does not run",
            "crates/leftoff/tests/a.rs:3 words wait for what you mean",
        ],
    ),
    (
        "--- crates/leftoff/src/a.rs\nfn f() { sleep(backoff) }\n#[cfg(test)]\nmod tests {\n    fn f() { thread::sleep(one); }\n}",
        &["crates/leftoff/src/a.rs:4 words `sleep(`"],
    ),
    (
        "--- crates/leftoff/src/a.rs\n// FIXME later\n/* an XXX */\n--- docs/a.md\nFIXME",
        &[
            "crates/leftoff/src/a.rs:1 words `FIXME`",
            "crates/leftoff/src/a.rs:2 words `XXX`",
            "docs/a.md:1 words `FIXME`",
        ],
    ),
    (
        "--- crates/leftoff/src/a.rs\nconst P: &str = \"/work/main\";\n--- .ci/run\ncd /tmp/wt-a",
        &["crates/leftoff/src/a.rs:1 words no path of one machine", ".ci/run:1 words `/tmp/wt`"],
    ),
    (
        "--- xtask/src/tidy/words.rs\nconst W: &str = \"/tmp/wt\";",
        &["xtask/src/tidy/words.rs:1 words `/work/` is allowed here and not used"],
    ),
    // lints
    (
        "--- crates/leftoff-wire/Cargo.toml\n[package]\nname = \"leftoff-wire\"\n# [lints]\n# workspace = true",
        &["crates/leftoff-wire/Cargo.toml:1 lints add `[lints]`"],
    ),
    (
        "--- crates/leftoff-wire/Cargo.toml\n[lints]\nworkspace = false",
        &["crates/leftoff-wire/Cargo.toml:1 lints the lints of the workspace are not taken"],
    ),
    (
        "--- xtask/load/Cargo.toml\n[lints]\nworkspace = true\n[workspace]",
        &["xtask/load/Cargo.toml:1 lints the lints of the workspace are not taken"],
    ),
    // links
    (
        "--- docs/a.md\nsee [b](b.md#part)\nand ![c](../pictures/c.png \"c\") [top](../../x.md)\n\n[d]: d.md",
        &[
            "docs/a.md:1 links the link to b.md#part leads nowhere",
            "docs/a.md:2 links ../pictures/c.png",
            "docs/a.md:2 links ../../x.md",
            "docs/a.md:4 links d.md",
        ],
    ),
];

/// Examples that break nothing.
const GOOD: &[&str] = &[
    // Each folder with what it may use.
    "--- crates/leftoff-engine/src/log/segment.rs\nuse super::{Log, error::LogError};\nuse crate::disk::{Disk, DiskFile};\nuse leftoff_wire::record_batch::*;",
    "--- crates/leftoff-engine/src/coordinator/mod.rs\nmod tests;\nuse self::group::Group;\nuse leftoff_wire::consumer_offsets::{self, Key};\nfn f() {}",
    "--- crates/leftoff-engine/src/disk/os.rs\nuse std::{fs, time::Instant, thread};\nuse rustix::fs::fdatasync;",
    "--- crates/leftoff-engine/src/broker/mod.rs\nuse crate::{coordinator, disk, log, types};\nuse leftoff_wire::Uuid;",
    "--- crates/leftoff-engine/src/lib.rs\npub mod broker;\npub use broker::Broker;",
    // A name that only starts like an allowed or a refused one.
    "--- crates/leftoff-engine/src/broker/mod.rs\nuse std::fmt;\nfn f() { operand::new(); my_std::fs::read(); }",
    // Comments and strings use nothing.
    "--- crates/leftoff-engine/src/log/mod.rs\n//! See [`crate::broker::Broker`] and std::time.\n/* /* use crate::broker; */ todo!() */\nconst A: &str = \"use std::fs; \\\" todo!()\";\nconst B: &str = r#\"std::fs \"dbg!()\"#;\nconst C: char = '\"';\nfn f<'a>() {}",
    // Tests may use the real file system and clocks.
    "--- crates/leftoff-engine/src/disk/tests.rs\nuse std::{fs, time};",
    "--- crates/leftoff-engine/src/disk/os.rs\n#[cfg(test)]\nmod tests {\n    use super::*;\n    use std::thread;\n}",
    "--- crates/leftoff/Cargo.toml\n[lints]\nworkspace = true\n[dependencies]\nleftoff-engine.workspace = true\n[dev-dependencies]\nleftoff-sim.workspace = true",
    "--- scripts/a.sh\nmktemp -d /tmp/aXXXXXX",
    "--- docs/a.md\n[b](b.md#x), [up](../README.md), [here](#a), [there](https://example.org/x.md), [folder](../crates/)\n`[c](c.md)`\n```\n[d](d.md)\n```\n--- docs/b.md\n--- README.md\n--- crates/x.rs\n",
];

#[test]
fn bad_examples_are_found() {
    for (script, expect) in BAD {
        check(script, expect);
    }
    let long = format!("--- docs/a.md\n{}", "line\n".repeat(1_001));
    check(&long, &["docs/a.md:1001 length 1001 lines"]);
}

#[test]
fn good_examples_pass() {
    for script in GOOD {
        check(script, &[]);
    }
    let generated =
        format!("--- crates/leftoff-wire/src/a.rs\n// @generated by xtask\n{}", "\n".repeat(2_000));
    check(&generated, &[]);
}

#[test]
fn every_rule_has_a_bad_example() {
    let long = format!("--- docs/a.md\n{}", "line\n".repeat(1_001));
    let scripts = BAD.iter().map(|(script, _)| *script).chain([long.as_str()]);
    let found: Vec<&str> =
        scripts.flat_map(|script| findings(&tree(script))).map(|finding| finding.rule).collect();
    for rule in RULES {
        assert!(found.contains(&rule.name), "no bad example for {}", rule.name);
    }
}

#[test]
fn both_views_of_a_file_keep_its_lines() {
    let text = "let a = 'x'; // one\n/* two\n*/ let b = \"é // no\n comment\"; // é\n";
    let source = Source::of(text);
    for view in [&source.code, &source.comments] {
        assert_eq!((view.len(), view.lines().count()), (text.len(), text.lines().count()));
    }
    assert!(source.code.contains("let b") && !source.code.contains("no"));
    assert!(
        source.comments.contains("// one")
            && source.comments.contains("two")
            && !source.comments.contains("no")
    );
}
