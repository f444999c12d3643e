//! Requests as they come on a connection: four bytes of length, then so many bytes.
//!
//! Nothing is allocated on the word of a length: the buffer grows as bytes arrive, and each step takes its room from the
//! budget of all connections first.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::budget::{Budget, Taken};

/// The bytes of a frame's length.
const LENGTH_BYTES: usize = 4;
/// A buffer grows by so much at a time.
const STEP_BYTES: usize = 64 * 1024;
/// What a connection has before its first bytes come.
const FIRST_BYTES: usize = 1024;

/// What is taken from one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameLimits {
    /// The largest request: Kafka's `socket.request.max.bytes`.
    pub(super) max_bytes: usize,
    /// How long the rest of a frame that has begun may keep us waiting, and how long it waits for room.
    pub(super) patience: Duration,
    /// How long a connection may be silent: Kafka's `connections.max.idle.ms`.
    pub(super) idle: Duration,
}

/// A whole request; its room in the budget is given back with it.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) bytes: Bytes,
    pub(super) _room: Taken,
}

/// Why no more requests are read from a connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("a request of {bytes} bytes; socket.request.max.bytes is {limit}")]
    TooLarge { bytes: i64, limit: usize },
    #[error("not Kafka's protocol: it begins with {0}")]
    Foreign(&'static str),
    #[error("the connection ended within a request: {got} of {want} bytes came")]
    Torn { got: usize, want: usize },
    #[error("a request stopped in its midst: {got} of {want} bytes came, and none for {patience:?}")]
    Stalled { got: usize, want: usize, patience: Duration },
    #[error(
        "no room for a request of {bytes} bytes: requests of other connections take all of queued.max.request.bytes"
    )]
    NoRoom { bytes: usize },
    #[error("silent for {0:?}")]
    Idle(Duration),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The requests of one connection.
#[derive(Debug)]
pub(super) struct Frames<R> {
    from: R,
    buffer: BytesMut,
    room: Taken,
    budget: Budget,
    limits: FrameLimits,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(super) fn new(from: R, budget: Budget, limits: FrameLimits) -> Frames<R> {
        Frames { from, buffer: BytesMut::new(), room: Taken::default(), budget, limits }
    }

    /// The next request; `None` at the end. Nothing is lost when this is dropped before it is ready.
    pub(super) async fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            let want = match self.buffer.first_chunk::<LENGTH_BYTES>() {
                Some(length) => LENGTH_BYTES + self.check_length(*length)?,
                None => LENGTH_BYTES,
            };
            if want > LENGTH_BYTES && self.buffer.len() >= want {
                return Ok(Some(self.cut(want).await?));
            }
            if !self.read_more(want).await? {
                return match self.buffer.len() {
                    0 => Ok(None),
                    got => Err(FrameError::Torn { got, want }),
                };
            }
        }
    }

    fn check_length(&self, length: [u8; LENGTH_BYTES]) -> Result<usize, FrameError> {
        // A browser or a TLS client at the wrong port deserves its name in the log.
        match length {
            [0x16, 3, _, _] => return Err(FrameError::Foreign("a TLS handshake")),
            [b'G', b'E', b'T', b' '] | [b'P', b'O', b'S', b'T'] | [b'H', b'E', b'A', b'D'] => {
                return Err(FrameError::Foreign("an HTTP request"));
            }
            _ => {}
        }
        let bytes = i32::from_be_bytes(length);
        match usize::try_from(bytes) {
            Ok(bytes) if bytes > 0 && bytes <= self.limits.max_bytes => Ok(bytes),
            _ => Err(FrameError::TooLarge { bytes: i64::from(bytes), limit: self.limits.max_bytes }),
        }
    }

    async fn cut(&mut self, whole: usize) -> Result<Frame, FrameError> {
        // Small requests may have come in one read, behind a larger one or before it: each takes its own room.
        self.take_room(whole, whole).await?;
        let mut frame = self.buffer.split_to(whole);
        let _length = frame.split_to(LENGTH_BYTES);
        Ok(Frame { bytes: frame.freeze(), _room: std::mem::take(&mut self.room) })
    }

    async fn read_more(&mut self, want: usize) -> Result<bool, FrameError> {
        let has_begun = !self.buffer.is_empty();
        let missing = want - self.buffer.len();
        if has_begun && missing > FIRST_BYTES {
            self.take_room(self.buffer.len() + missing.min(STEP_BYTES), want).await?;
        }
        self.buffer.reserve(missing.clamp(FIRST_BYTES, STEP_BYTES));
        let patience = if has_begun { self.limits.patience } else { self.limits.idle };
        match tokio::time::timeout(patience, self.from.read_buf(&mut self.buffer)).await {
            Ok(read) => Ok(read? > 0),
            Err(_) if has_begun => {
                Err(FrameError::Stalled { got: self.buffer.len(), want, patience: self.limits.patience })
            }
            Err(_) => Err(FrameError::Idle(patience)),
        }
    }

    async fn take_room(&mut self, bytes: usize, want: usize) -> Result<(), FrameError> {
        if self.budget.take(&mut self.room, bytes, self.limits.patience).await {
            return Ok(());
        }
        Err(FrameError::NoRoom { bytes: want })
    }
}

#[cfg(test)]
mod tests;
