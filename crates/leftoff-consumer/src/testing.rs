//! A source and a clock for tests.
