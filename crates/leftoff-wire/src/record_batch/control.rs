//! The record of a control batch that ends a transaction.

use crate::primitives::{ReadError, Reader, Writer};

const ABORT: i16 = 0;
const COMMIT: i16 = 1;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndTxnResult {
    /// Its records are not to be seen by readers of committed records.
    Abort,
    /// Its records can be read.
    Commit,
}

/// The end of a producer's transaction in one partition: the only record of a control batch (KIP-98).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndTxnMarker {
    /// How it ended.
    pub result: EndTxnResult,
    /// The epoch of the transaction coordinator that wrote the marker.
    pub coordinator_epoch: i32,
}

impl EndTxnMarker {
    /// The record's key: version 0 and the type.
    pub fn encode_key(&self) -> Vec<u8> {
        let mut key = Vec::with_capacity(4);
        let mut writer = Writer::new(&mut key);
        writer.i16(0);
        writer.i16(match self.result {
            EndTxnResult::Abort => ABORT,
            EndTxnResult::Commit => COMMIT,
        });
        key
    }

    /// The record's value: version 0 and the coordinator's epoch.
    pub fn encode_value(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(6);
        let mut writer = Writer::new(&mut value);
        writer.i16(0);
        writer.i32(self.coordinator_epoch);
        value
    }

    /// The marker in a control record; `None` for other control records, such as a Raft leader's, which readers skip. Later
    /// versions may have further fields; they are left unread, as Kafka does.
    ///
    /// # Errors
    /// [`ReadError`] if key or value are too short.
    pub fn decode(key: &[u8], value: &[u8]) -> Result<Option<EndTxnMarker>, ReadError> {
        let mut key = Reader::new(key);
        let _version = key.i16()?;
        let result = match key.i16()? {
            ABORT => EndTxnResult::Abort,
            COMMIT => EndTxnResult::Commit,
            _ => return Ok(None),
        };
        let mut value = Reader::new(value);
        let _version = value.i16()?;
        Ok(Some(EndTxnMarker { result, coordinator_epoch: value.i32()? }))
    }
}
