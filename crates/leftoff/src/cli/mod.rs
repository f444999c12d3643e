//! The command line: words in, exit code out. Verbs live in files of their own; what they share is here.

// Until every verb is wired some of this is used by its tests only.
#![allow(dead_code, unused_imports)]

pub mod args;
pub mod bad_value;
pub mod confirm;
pub mod event_format;
pub mod event_line;
pub mod failure;
pub mod json_path;
pub mod metrics_page;
pub mod nearest;
pub mod notes;
pub mod offset_lines;
pub mod offset_spec;
pub mod place;
pub mod progress;
pub mod session;
pub mod stop;
pub mod table;
pub mod time;
pub mod verbs;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::upkeep::CompletionArgs;
use args::{Cli, Command};
use failure::Failure;

/// Parses the command line, does what it says, and reports a failure.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    notes::tell_as(cli.global.log_format, cli.command.name());
    match dispatch(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(cli.global.verbose),
    }
}

/// One arm for each verb.
fn dispatch(cli: &Cli) -> Result<(), Failure> {
    match &cli.command {
        Command::Completion(args) => completion(args),
        Command::Demo(args) => verbs::demo::demo(args),
        Command::DemoConsumer(args) => verbs::demo::consumer::consume(args),
        Command::Serve(args) => verbs::serve::serve(&cli.global, args),
        Command::Topics(command) => verbs::topics::run(&cli.global, command),
        Command::Produce(args) => verbs::produce::run(&cli.global, args),
        Command::Consume(args) => verbs::consume::run(&cli.global, args),
        Command::Doctor(args) => verbs::doctor::doctor(&cli.global, args),
        Command::Backup(args) => verbs::backup::backup(&cli.global, args),
        Command::Run(args) => verbs::run::run(&cli.global, args),
        Command::Dlq(command) => verbs::dlq::run(&cli.global, command),
        Command::Groups(command) => verbs::groups::run(&cli.global, command),
        Command::Wait(args) => verbs::wait::wait(&cli.global, args),
        Command::Check(args) => verbs::check::check(&cli.global, args),
    }
}

/// `leftoff completion SHELL`
fn completion(args: &CompletionArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "leftoff", &mut script);
    io::stdout().write_all(&script).map_err(Failure::stdout)
}
