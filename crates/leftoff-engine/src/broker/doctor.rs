//! Looks at a directory that may be damaged, and sets damaged bytes aside. Filled in with the log's own verification.
