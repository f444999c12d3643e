//! The verbs, a file each.

pub mod demo;
