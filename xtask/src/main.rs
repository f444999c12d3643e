//! Tidy checks, benches and compatibility runs.
fn main() {}
