//! `ConsumerProtocolSubscription`: which topics a consumer reads. The rest of it is between the clients.

use leftoff_wire::primitives::{ReadError, Reader};

/// The least that a topic's name takes.
const MIN_NAME_BYTES: usize = 2;

/// Whether a subscription names the topic. One that does not read may name anything.
pub(super) fn subscribes(subscription: &[u8], topic: &str) -> bool {
    names(subscription, topic).unwrap_or(true)
}

fn names(subscription: &[u8], topic: &str) -> Result<bool, ReadError> {
    let mut reader = Reader::new(subscription);
    // Every version so far begins with the topics.
    reader.i16()?;
    let mut is_named = false;
    for _ in 0..reader.count(MIN_NAME_BYTES)? {
        is_named |= reader.str()? == topic;
    }
    Ok(is_named)
}
