//! The verbs, a file each.
