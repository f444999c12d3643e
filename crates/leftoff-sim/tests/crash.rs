//! The power is cut after every disk operation of every script.
#![allow(clippy::unwrap_used)]

use leftoff_engine::disk::mem::MemDisk;
use leftoff_sim::crash::{Budget, Only, explore, new_directory};
use leftoff_sim::script::Script;
use leftoff_sim::scripts::{FROM_NOTHING, SCRIPTS};

const BUDGET: Budget =
    Budget { point_every: 1, images: 24, second_every: 7, recovery_every: 23, recovery_images: 4 };

fn check(names: impl Fn(usize) -> bool) {
    let only = Only::from_env();
    let mut failures = Vec::new();
    let scripts = FROM_NOTHING.iter().map(|script| (script, true));
    let scripts = scripts.chain(SCRIPTS.iter().map(|script| (script, false)));
    for (_, ((name, text), from_nothing)) in scripts.enumerate().filter(|(number, _)| names(*number)) {
        if !only.is_wanted(name) {
            continue;
        }
        let base = if from_nothing { MemDisk::new() } else { new_directory(&Script::parse(text)) };
        let begin = std::time::Instant::now();
        match explore(name, text, &base, BUDGET, &only) {
            Ok(tried) => println!("{name}: {tried:?} in {:?}", begin.elapsed()),
            Err(failure) => failures.push(failure.to_string()),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

// Two tests, for two cores.

#[test]
fn every_operation_of_every_other_script() {
    check(|number| number % 2 == 0);
}

#[test]
fn every_operation_of_the_remaining_scripts() {
    check(|number| number % 2 == 1);
}
