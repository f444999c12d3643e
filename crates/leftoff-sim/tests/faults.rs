//! Every call of the disk fails, once or from then on.

use leftoff_engine::disk::mem::MemDisk;
use leftoff_sim::crash::new_directory;
use leftoff_sim::faults::{ONLY, cases, hold};
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
