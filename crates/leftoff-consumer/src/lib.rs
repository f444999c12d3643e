//! The consumer runtime: ledger, handlers, sinks.
