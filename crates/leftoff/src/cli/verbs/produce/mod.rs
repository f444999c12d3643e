//! `leftoff produce`.

use crate::cli::args::Global;
use crate::cli::args::read_write::ProduceArgs;
use crate::cli::failure::Failure;

/// Not wired yet.
pub fn run(_global: &Global, _args: &ProduceArgs) -> Result<(), Failure> {
    Err(Failure::usage("this verb is not wired yet"))
}
