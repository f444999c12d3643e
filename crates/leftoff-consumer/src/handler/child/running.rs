//! The process groups in which handlers work, so that another thread can end them all at once.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

use super::process::kill_group;

/// All handler processes of a run. Clones are the same set.
#[derive(Clone, Debug, Default)]
pub struct Running(Arc<Mutex<Groups>>);

#[derive(Debug, Default)]
struct Groups {
    pids: BTreeSet<i32>,
    /// No process starts any more.
    ended: bool,
}

impl Running {
    /// Kills every handler, with all in its process group, and lets none start from now on. Says how many there were.
    pub fn end(&self) -> usize {
        let mut groups = self.lock();
        groups.ended = true;
        // One that is in here is not reaped, so its number is its own.
        groups.pids.iter().filter_map(|pid| Pid::from_raw(*pid)).for_each(kill_group);
        groups.pids.len()
    }

    /// Starts a process, which is in the set before anybody can look.
    pub(super) fn start(
        &self,
        start: impl FnOnce() -> io::Result<std::process::Child>,
    ) -> io::Result<std::process::Child> {
        let mut groups = self.lock();
        if groups.ended {
            return Err(io::Error::other("the run is at its end"));
        }
        let child = start()?;
        groups.pids.insert(Pid::from_child(&child).as_raw_pid());
        Ok(child)
    }

    /// Before the process is reaped: from then on its number may be another's.
    pub(super) fn forget(&self, pid: Pid) {
        self.lock().pids.remove(&pid.as_raw_pid());
    }

    fn lock(&self) -> MutexGuard<'_, Groups> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
