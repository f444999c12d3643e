//! Workloads, faults and oracles for crash tests (not shipped).
//!
//! - [`script`]: a workload as a line of text
//! - [`driver`]: runs one over a broker, on one thread, with time as a counter: same script, same trace
//! - [`history`]: what was asked, acknowledged and seen meanwhile
//! - [`oracle`]: what must hold of a directory that is opened again, given that history
//! - [`crash`]: cuts the power after every disk operation of a script, and holds every image that is left to the oracle
//! - [`faults`]: lets calls of the disk fail instead
//! - [`scripts`]: the workloads
//!
//! A failing case prints a line for the environment that runs just that one.

pub mod crash;
pub mod driver;
pub mod faults;
pub mod history;
pub mod oracle;
pub mod script;
pub mod scripts;
