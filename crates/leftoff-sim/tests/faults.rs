//! Every call of the disk fails, once or from then on.
#![allow(clippy::unwrap_used)]

use leftoff_engine::disk::mem::MemDisk;
use leftoff_sim::crash::new_directory;
use leftoff_sim::faults::{ONLY, cases, hold, hold_full};
use leftoff_sim::script::Script;
use leftoff_sim::scripts::{FROM_NOTHING, SCRIPTS};

fn check(wanted: impl Fn(usize) -> bool) {
    let only = std::env::var(ONLY).unwrap_or_default();
    let (only_name, only_number) = only.split_once(':').unwrap_or((&only, ""));
    let only_number: Option<usize> = only_number.parse().ok();
    // A panic is caught and told of with the script; what the hook would print of each is noise.
    std::panic::set_hook(Box::new(|_| ()));
    let mut failures = Vec::new();
    let scripts = FROM_NOTHING.iter().map(|script| (script, true));
    let scripts = scripts.chain(SCRIPTS.iter().map(|script| (script, false)));
    for (_, ((name, text), from_nothing)) in scripts.enumerate().filter(|(number, _)| wanted(*number)) {
        if !only_name.is_empty() && only_name != *name {
            continue;
        }
        let begin = std::time::Instant::now();
        let base = if from_nothing { MemDisk::new() } else { new_directory(&Script::parse(text)) };
        let cases = cases(text, &base);
        for (number, plan) in cases.iter().enumerate() {
            if only_number.is_none_or(|only| only == number)
                && let Err(failure) = hold(name, text, number, &base, plan)
            {
                failures.push(failure.to_string());
                break;
            }
        }
        println!("{name}: {} cases in {:?}", cases.len(), begin.elapsed());
    }
    let _ = std::panic::take_hook();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

// Two tests, for two cores.

#[test]
fn every_call_of_every_other_script_fails() {
    check(|number| number % 2 == 0);
}

#[test]
fn every_call_of_the_remaining_scripts_fails() {
    check(|number| number % 2 == 1);
}

/// Events are refused, offsets are saved, deletions make room, a start works.
const FULL: &[&str] = &[
    "topic t 1; append t/0 5; ? append t/0 9; ? append t/0 9; commit g t/0 +1; ? append t/0 1; commit g t/0 +1; kill; commit g t/0 +1; ask",
    "topic t 1 segment.bytes=300; append t/0 2; append t/0 2; append t/0 2; ? append t/0 9; ? append t/0 9; trim t/0 4; retention; commit g t/0 +5; restart; commit g t/0 +1",
    "topic t 1; append t/0 3; topic u 1; append u/0 1; ? append t/0 9; ? topic v 1; ? append t/0 9; delete-topic u; retention; commit g t/0 +1; ? append t/0 1",
    "topic t 1; topic out 2; append t/0 9; ? set g t/0 +1 -> out/0 1 out/1 1; ? set g t/0 +1 -> out/0 1 out/1 1; ? set g t/0 +1 -> out/0 1 out/1 1; commit h t/0 2; ? source f 9 -> out/0 1; join h; kill; leave h",
];

#[test]
fn a_full_disk_takes_offsets_and_deletions() {
    let mut failures = Vec::new();
    for text in FULL {
        let base = new_directory(&Script::parse(text));
        let held = |more_bytes: &u64| hold_full(text, &base, *more_bytes).is_ok();
        // What stands before the first `?` must fit.
        let must: Vec<&str> = text.split(';').take_while(|part| !part.contains('?')).collect();
        let must = must.join(";");
        let least = (0..40_000).step_by(16).find(|more| hold_full(&must, &base, *more).is_ok()).unwrap();
        if let Some(more_bytes) = (least..least + 3_000).step_by(29).find(|more| !held(more)) {
            let what = hold_full(text, &base, more_bytes).unwrap_err();
            failures.push(format!("{text}\nwith {more_bytes} bytes (at least {least}): {what}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
