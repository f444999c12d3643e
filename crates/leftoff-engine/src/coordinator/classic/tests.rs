//! Groups without a broker: scripts with virtual time, and random ones.
#![allow(clippy::unwrap_used)]

mod random;
mod scripts;
mod world;
