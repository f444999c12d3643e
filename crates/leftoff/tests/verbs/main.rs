//! The verbs `topics`, `produce` and `consume` through the real binary: scripts with what they print, and processes that
//! are stopped in the midst of it.
#![allow(missing_docs, clippy::unwrap_used)]

mod consume;
mod kill;
mod live;
mod produce;
mod script;
mod source;
mod topics;
