//! What the broker promises that the crash tests do not look at: damage, repair, backup, a full disk.
#![allow(clippy::unwrap_used)]

mod ahead;
mod damage;
mod group_requests;
mod incoming;
mod members;
mod producers;
mod quick_start;
mod reads;
mod rig;
mod settings;
mod space;
mod unread;
