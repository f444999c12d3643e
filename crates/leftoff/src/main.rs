//! The `leftoff` command.
fn main() {}
