//! Workloads, faults and oracles for crash tests (not shipped).
