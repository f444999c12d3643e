//! The bytes of requests that may be in the server at once, over all connections: who has read nothing yet waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What one permit of the semaphore stands for.
const UNIT_BYTES: usize = 1024;

/// A bound on bytes, shared by all connections.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    units: Arc<Semaphore>,
}

/// Bytes that were taken from a [`Budget`]; given back when dropped.
#[derive(Debug, Default)]
pub(super) struct Taken {
    permit: Option<OwnedSemaphorePermit>,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Budget {
        Budget { units: Arc::new(Semaphore::new((bytes / UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS))) }
    }

    /// Takes room for so many bytes in all, of which `taken` has some; waits for others to give theirs back, but not longer
    /// than `patience`. Whether there was room in time.
    pub(super) async fn take(&self, taken: &mut Taken, bytes: usize, patience: Duration) -> bool {
        let have = taken.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let want = bytes.div_ceil(UNIT_BYTES).saturating_sub(have);
        if want == 0 {
            return true;
        }
        let want = u32::try_from(want).unwrap_or(u32::MAX);
        let more = match self.units.clone().try_acquire_many_owned(want) {
            Ok(more) => more,
            Err(_) => match tokio::time::timeout(patience, self.units.clone().acquire_many_owned(want)).await
            {
                Ok(Ok(more)) => more,
                _ => return false,
            },
        };
        match &mut taken.permit {
            Some(permit) => permit.merge(more),
            None => taken.permit = Some(more),
        }
        true
    }
}
