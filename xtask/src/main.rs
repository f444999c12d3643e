//! Work on the project itself: `cargo xtask tidy`, `cargo xtask compat [NAME…]`, `cargo xtask bench [NAME…]`.

use std::process::ExitCode;

use xtask::{bench, compat, generate, tidy};

const USAGE: &str = "\
usage: cargo xtask tidy              check the rules of the house
       cargo xtask generate          make the messages of leftoff-wire from its schema table
       cargo xtask compat [NAME…]    let outside judges look at our files (all of them, or those named)
       cargo xtask compat --list     name the judges
       cargo xtask compat storm --seed N --runs N   the random attack, from another seed or for longer
       cargo xtask bench [NAME…]     measure the figures of docs/performance.md (produce, consume, run, closure, rows, start)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["tidy"] => tidy::command(),
        ["compat", names @ ..] => compat::command(names),
        ["generate"] => generate::command(),
        ["bench", names @ ..] => bench::command(names),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
