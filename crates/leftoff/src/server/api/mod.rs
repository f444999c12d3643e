//! What each request does, a file for each API.

use std::sync::Arc;

use super::Shared;
use super::connection::Peer;
use super::frames::Frame;

/// The connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Closing {
    #[error(transparent)]
    Stopping(#[from] super::ask::Stopping),
}

pub(super) async fn answer(
    _server: Arc<Shared>,
    _peer: Arc<Peer>,
    _frame: Frame,
) -> Result<Option<Vec<u8>>, Closing> {
    Ok(None)
}
