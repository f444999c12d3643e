//! The deterministic log and broker: no sockets, threads, clocks or randomness.

pub mod broker;
pub mod coordinator;
pub mod disk;
pub mod log;
pub mod types;
