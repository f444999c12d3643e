//! An event log that remembers where every reader left off.

pub mod store;
