//! Keys and values of the offsets log.
