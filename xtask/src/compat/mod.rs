//! Outside judges: programs of other people that say whether our files and our answers are what they should be.
//!
//! A judge is one file and one row in `JUDGES`. It brings what it needs by an ordinary package client, says what it looked at,
//! and names what it skipped and why. With `CI=true` nothing may be skipped.

pub(crate) mod apache_kafka;
mod dump;
mod handlers;
pub(crate) mod kafka;
mod kafka_dump;
mod kcat;
pub(crate) mod leftoff;
mod postgres;
mod storm;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;

/// One outside judge.
struct Judge {
    name: &'static str,
    about: &'static str,
    run: fn() -> anyhow::Result<Verdict>,
}

const JUDGES: &[Judge] = &[
    Judge {
        name: "kafka-dump",
        about: "Apache Kafka's DumpLogSegments reads our segments, indexes and offsets log",
        run: kafka_dump::run,
    },
    Judge {
        name: "handlers",
        about: "Python, Node and Go run the examples, one event at a time and in a pipeline",
        run: handlers::run,
    },
    Judge {
        name: "postgres",
        about: "PostgreSQL holds each event's rows once, whoever is killed; LEFTOFF_KILLS says how often",
        run: postgres::run,
    },
    Judge {
        name: "kcat",
        about: "Debian's kcat on an old librdkafka: topics, codecs, times and groups on leftoff serve",
        run: kcat::run,
    },
    Judge {
        name: "storm",
        about: "random flags, handlers that lie, kills: nothing lost, exactly once where promised; --seed N --runs N for more",
        run: storm::run,
    },
];

/// What a judge says.
enum Verdict {
    /// All is as it should be; what was looked at.
    Passed(String),
    /// Nothing was looked at; why.
    Skipped(String),
    /// What is wrong.
    Failed(Vec<String>),
}

/// `cargo xtask compat [NAME…]`: asks the judges named, or all of them.
///
/// # Errors
///
/// When a name is unknown, or something that a judge needs fails.
pub fn command(names: &[&str]) -> anyhow::Result<ExitCode> {
    if names == ["--list"] {
        JUDGES.iter().for_each(|judge| println!("{:<12} {}", judge.name, judge.about));
        return Ok(ExitCode::SUCCESS);
    }
    if let ["storm", flags @ ..] = names
        && !flags.is_empty()
    {
        return storm::command(flags);
    }
    let mut all_passed = true;
    for judge in chosen(names)? {
        all_passed &= ask(judge)?;
    }
    Ok(if all_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn chosen(names: &[&str]) -> anyhow::Result<Vec<&'static Judge>> {
    if names.is_empty() {
        return Ok(JUDGES.iter().collect());
    }
    let find = |name: &&str| match JUDGES.iter().find(|judge| judge.name == *name) {
        Some(judge) => Ok(judge),
        None => bail!("no judge is called {name}; cargo xtask compat --list names them"),
    };
    names.iter().map(find).collect()
}

/// Whether the judge has nothing against us. A judge that was skipped has not, unless nothing may be skipped.
fn ask(judge: &Judge) -> anyhow::Result<bool> {
    let start = Instant::now();
    let verdict = (judge.run)()?;
    let took_s = start.elapsed().as_secs_f64();
    match verdict {
        Verdict::Passed(what) => println!("{}: passed in {took_s:.1} s: {what}", judge.name),
        Verdict::Skipped(why) => {
            println!("{}: SKIPPED: {why}", judge.name);
            return Ok(!nothing_may_be_skipped());
        }
        Verdict::Failed(complaints) => {
            complaints.iter().for_each(|complaint| eprintln!("{}: {complaint}", judge.name));
            eprintln!("{}: FAILED with {} complaints", judge.name, complaints.len());
            return Ok(false);
        }
    }
    Ok(true)
}

fn nothing_may_be_skipped() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}
