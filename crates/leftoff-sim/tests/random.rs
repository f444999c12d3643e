//! Scripts made by chance: the power is cut, and calls fail.

#![allow(clippy::unwrap_used)]

use leftoff_sim::crash::{Budget, Only, RANDOM, SCRIPT, explore, new_directory};
use leftoff_sim::faults::{cases, hold};
use leftoff_sim::script::Script;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const BEFORE: &str = "config offsets.segment=700 offsets.retention=900; topic t 2 segment.bytes=400 retention.bytes=900; topic out 2; append t/0 5";

/// One command, with what follows it. Whatever makes no sense is refused.
fn step() -> impl Strategy<Value = String> {
    let place = prop::sample::select(vec!["t/0", "t/1", "out/0", "out/1"]);
    let group = prop::sample::select(vec!["g", "h"]);
    let command = prop_oneof![
        5 => (place.clone(), 1..4u32).prop_map(|(at, count)| format!("append {at} {count}")),
        1 => place.clone().prop_map(|at| format!("append {at} 1,2,1")),
        1 => (1..3u32, 1..3u32).prop_map(|(one, other)| format!("append t/0 {one} out/0 {other},1 t/1 1")),
        3 => (group.clone(), place.clone(), 1..3u32).prop_map(|(group, at, by)| format!("commit {group} {at} +{by}")),
        4 => (group.clone(), 0..2u32, place.clone(), place.clone(), 1..3u32).prop_map(|(group, from, one, other, count)| {
            let second = if one == other { String::new() } else { format!(" {other} 1") };
            format!("set {group} t/{from} +1 -> {one} {count}{second}")
        }),
        2 => (place.clone(), 1..3u32).prop_map(|(at, count)| format!("source f 10 -> {at} {count}")),
        1 => (place.clone(), 1..4u32).prop_map(|(at, by)| format!("trim {at} +{by}")),
        1 => group.clone().prop_map(|group| format!("join {group}")),
        1 => group.clone().prop_map(|group| format!("leave {group}")),
        1 => group.prop_map(|group| format!("delete-group {group}")),
        1 => prop::sample::select(vec!["delete-topic t", "delete-topic out", "topic t 1", "topic out 3", "grow out 3"]).prop_map(str::to_owned),
        1 => Just("retention".to_owned()),
        2 => Just("rest".to_owned()),
        1 => Just("ask".to_owned()),
        1 => Just("restart".to_owned()),
        2 => Just("kill".to_owned()),
    ];
    (command, prop::sample::select(vec!["&", "&", "|", ";", ";"]))
        .prop_map(|(command, then)| format!("? {command}{then}"))
}

fn script() -> impl Strategy<Value = String> {
    prop::collection::vec(step(), 2..14).prop_map(|steps| format!("{BEFORE}; {}", steps.join(" ")))
}

const BUDGET: Budget =
    Budget { point_every: 3, images: 5, second_every: 7, recovery_every: 31, recovery_images: 3 };

fn crash(text: &str, only: &Only) -> Result<(), String> {
    let base = new_directory(&Script::parse(text));
    explore(RANDOM, text, &base, BUDGET, only).map(|_| ()).map_err(|failure| failure.to_string())
}

/// The script of the environment, if there is one.
#[test]
fn the_given_script() {
    if let Ok(text) = std::env::var(SCRIPT) {
        crash(&text, &Only::from_env()).unwrap();
    }
}

/// The same few cases in every run; `LEFTOFF_CASES=1000` tries as many others. A failure prints its script: it is kept as one
/// of the scripts, not as a seed.
fn config() -> ProptestConfig {
    let asked = std::env::var("LEFTOFF_CASES").ok().and_then(|cases| cases.parse().ok());
    let rng_seed = if asked.is_some() { RngSeed::Random } else { RngSeed::Fixed(1) };
    let cases = asked.unwrap_or(30);
    ProptestConfig {
        cases,
        rng_seed,
        max_shrink_iters: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_power_is_cut_in_random_scripts(text in script()) {
        crash(&text, &Only::default()).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn calls_fail_in_random_scripts(text in script(), turn in 0..30usize) {
        let base = new_directory(&Script::parse(&text));
        for (number, plan) in cases(&text, &base).iter().enumerate().skip(turn).step_by(30) {
            hold(RANDOM, &text, number, &base, plan).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
        }
    }
}
