//! Work on the project itself: [`tidy`] checks the rules of the house, [`compat`] lets outside judges look at our files,
//! [`bench`](mod@bench) measures, [`generate`] makes the messages of the wire.

pub mod bench;
pub mod compat;
pub mod generate;
pub mod tidy;

use std::path::PathBuf;

/// The folder of the workspace.
///
/// # Errors
///
/// When the folder that this crate was built in is not there any more.
pub fn root() -> anyhow::Result<PathBuf> {
    use anyhow::Context as _;
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    std::fs::canonicalize(here).with_context(|| format!("no workspace at {here}"))
}
