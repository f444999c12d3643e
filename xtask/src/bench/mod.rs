//! `cargo xtask bench [NAME…]`: the figures of `docs/performance.md`, each measured in one run against a peer that does the same work.
//!
//! Machines are noisy: what is compared is run in turns, and the median of the ratios is what counts.

mod measure;
mod serve;
mod start;
mod throughput;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};

use measure::{Run, run};

/// A bench: its name, what it measures, how.
struct Bench {
    name: &'static str,
    what: &'static str,
    measure: fn(&Place) -> anyhow::Result<()>,
}

const BENCHES: [Bench; 11] = [
    Bench {
        name: "produce-lines",
        what: "1 GiB of lines of 1 KiB, against dd with fdatasync",
        measure: throughput::produce,
    },
    Bench {
        name: "consume-lines",
        what: "1 GiB of events from the page cache, against cat",
        measure: throughput::consume,
    },
    Bench {
        name: "run",
        what: "events through a Python handler: one at a time, side by side, in a pipeline",
        measure: throughput::run_handler,
    },
    Bench {
        name: "closure",
        what: "3 million events of 100 bytes through a closure that does nothing, a save every 1,000",
        measure: throughput::closure,
    },
    Bench {
        name: "rows",
        what: "300,000 rows of 100 bytes from a closure into SQLite, exactly once, a save every 1,000",
        measure: throughput::rows,
    },
    Bench {
        name: "start",
        what: "a start on 2 GiB in 100 partitions, clean and after SIGKILL",
        measure: start::start,
    },
    Bench {
        name: "produce",
        what: "500,000 records of 1 KiB into one partition of leftoff serve, against Apache Kafka",
        measure: serve::produce,
    },
    Bench {
        name: "produce-wide",
        what: "the same into 1 and into 1,000 partitions",
        measure: serve::produce_wide,
    },
    Bench {
        name: "fetch",
        what: "500,000 records of 1 KiB out of leftoff serve, against Apache Kafka",
        measure: serve::fetch,
    },
    Bench {
        name: "latency",
        what: "one record of 100 bytes at a time, until it is acknowledged, against Apache Kafka",
        measure: serve::latency,
    },
    Bench { name: "commit", what: "one commit at a time, against Apache Kafka", measure: serve::commit },
];

/// Where a bench works, and with which binary.
struct Place {
    leftoff: std::path::PathBuf,
    dir: tempfile::TempDir,
}

impl Place {
    fn leftoff(&self, args: &[&str]) -> Run<'_> {
        Run::new(&self.leftoff, args).dir(self.dir.path())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }
}

/// Builds the command and runs the benches that are named, or all.
///
/// # Errors
/// When a bench cannot be run; a figure that falls short is printed, not an error.
pub fn command(names: &[&str]) -> anyhow::Result<ExitCode> {
    if let Some(unknown) = names.iter().find(|name| !BENCHES.iter().any(|bench| bench.name == **name)) {
        let known: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        bail!("no bench {unknown:?}; there are {}", known.join(", "));
    }
    let root = crate::root()?;
    let built =
        run(&Run::new(Path::new("cargo"), &["build", "--release", "--locked", "-p", "leftoff"]).dir(&root))?;
    ensure!(built.success, "the release build failed");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    for bench in BENCHES.iter().filter(|bench| names.is_empty() || names.contains(&bench.name)) {
        println!("\n{}: {}", bench.name, bench.what);
        // On the disk of the workspace: the system's temporary folder may be in memory.
        let dir = tempfile::tempdir_in(&target).context("cannot make a folder to work in")?;
        (bench.measure)(&Place { leftoff: target.join("release/leftoff"), dir })?;
    }
    Ok(ExitCode::SUCCESS)
}
