//! Compares a log with its effects and names what was lost or handled twice.
