#![allow(clippy::unwrap_used)]

mod bytes;
mod lag;
mod plan;
mod random;
mod scripts;
mod words;
mod world;
