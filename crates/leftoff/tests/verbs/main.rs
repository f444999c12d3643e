//! The verbs through the real binary: scripts with what they print, and processes that are stopped in the midst of it.
#![allow(missing_docs, clippy::unwrap_used)]

mod check;
mod consume;
mod crash;
mod dead_letters;
mod edges;
mod groups;
mod handlers;
mod kill;
mod live;
mod peek;
mod points;
mod policies;
mod process;
mod produce;
mod resets;
mod restored;
mod run;
mod script;
mod source;
mod to_sqlite;
mod to_topic;
mod told;
mod topics;
mod uses;
mod wait;
