//! Asking the broker from a task.

use leftoff_engine::broker::{Reply, Request};
use tokio::sync::oneshot;

use super::Shared;

/// The server ends before the answer is on the disk: nobody is told that it is.
#[derive(Debug, thiserror::Error)]
#[error("the server stops")]
pub(super) struct Stopping;

impl Shared {
    /// Asks; the request is with the broker when this returns, and the answer comes once what it says is on the disk.
    pub(super) fn ask(&self, request: Request) -> impl Future<Output = Result<Reply, Stopping>> + use<> {
        let (tell, told) = oneshot::channel();
        self.store.submit_then(request, move |reply| drop(tell.send(reply)));
        async { told.await.map_err(|_| Stopping) }
    }
}
