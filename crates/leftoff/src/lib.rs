//! An event log that remembers where every reader left off.
//!
//! [`Leftoff`] is the log in your own program: synchronous, no runtime, no server.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`embed`] | open a directory, append, read, consume with a closure |
//! | [`store`] | what that is made of: one writer of a directory, and everything that can be asked of it |
//! | [`source`] | the consumer runtime's source over a directory |
//! | [`topic_sink`] | the consumer runtime's sink into the same directory: records and offset in one step |
//! | [`dead_letters`] | events that were given up, in a topic of the same directory |
//! | [`server`] | Kafka's protocol over a directory (feature `serve`) |
//! | [`http`] | the HTTP side of a process: one listener that pages, probes and the API join (feature `serve`) |
//! | [`partitioner`] | which partition an event goes to, as Kafka's producers decide |
//!
//! Two meanings never share a type: [`Offset`] is a record's place, [`Committed`] the *next offset to read*.

pub mod dead_letters;
pub mod embed;
mod hold;
#[cfg(feature = "serve")]
pub mod http;
pub mod partitioner;
#[cfg(feature = "serve")]
pub mod server;
pub mod source;
pub mod store;
pub mod topic_sink;

pub use embed::{Error, Leftoff, Record};
pub use leftoff_consumer as consumer;
pub use leftoff_engine as engine;
pub use leftoff_wire::{Committed, Offset, Uuid};
