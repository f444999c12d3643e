//! One connection: requests are taken in as they come and answered in their order.
//!
//! Each request is begun before the next one is read, so that what a client sends in order reaches the broker in order. While
//! its answer waits for the disk the next requests are taken in, up to a limit; beyond it the client's bytes stay in its
//! socket. A client that does not read its answers is not read from, either.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Shared;
use super::api::{self, Closing};
use super::frames::{Frame, FrameError, FrameLimits, Frames};
use super::settings::Advertised;
use super::stats;

/// What is known of who is at the other end.
#[derive(Debug)]
pub(super) struct Peer {
    /// Where it comes from.
    pub(super) address: SocketAddr,
    /// Where it was told that we are.
    pub(super) advertised: Advertised,
    /// What it says of its software (ApiVersions 3 and later, KIP-511).
    pub(super) software: std::sync::OnceLock<String>,
}

type Answer = Pin<Box<dyn Future<Output = Result<Option<Vec<u8>>, Closing>> + Send>>;

/// Why a connection ended, if it did not simply end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Closing(#[from] Closing),
    #[error("cannot send: {0}")]
    Send(std::io::Error),
}

/// Serves a connection to its end.
pub(super) async fn serve(server: Arc<Shared>, mut stream: TcpStream, peer: Peer) -> Result<(), Ended> {
    // Answers are small and waited for.
    let _slower_without = stream.set_nodelay(true);
    let peer = Arc::new(peer);
    let limits = &server.settings.limits;
    let frame_limits = FrameLimits {
        max_bytes: limits.request_max_bytes,
        patience: limits.request_patience,
        idle: limits.connection_max_idle,
    };
    let (read_half, mut write_half) = stream.split();
    let mut frames = Frames::new(read_half, server.budget.clone(), frame_limits);
    let mut answers: FuturesOrdered<Answer> = FuturesOrdered::new();
    let mut stop = server.stop.clone();
    loop {
        let stops = *stop.borrow();
        if stops && answers.is_empty() {
            return Ok(());
        }
        tokio::select! {
            biased;
            Some(answer) = answers.next(), if !answers.is_empty() => {
                if let Some(bytes) = answer? {
                    stats::add(&server.stats.bytes_out, bytes.len());
                    let sent = tokio::time::timeout(limits.request_patience, write_half.write_all(&bytes)).await;
                    sent.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())).map_err(Ended::Send)?;
                }
            }
            frame = frames.next(), if !stops && answers.len() < limits.requests_per_connection => {
                match frame? {
                    Some(frame) => {
                        stats::add(&server.stats.bytes_in, frame.bytes.len());
                        answers.push_back(begin(&server, &peer, frame));
                    }
                    None => return Ok(()),
                }
            }
            _changed = stop.changed(), if !stops => {}
        }
    }
}

fn begin(server: &Arc<Shared>, peer: &Arc<Peer>, frame: Frame) -> Answer {
    Box::pin(api::answer(server.clone(), peer.clone(), frame))
}
