//! An event log that remembers where every reader left off.

pub mod source;
pub mod store;
