//! From the two internal logs to the state that they add up to: the same `replay` that live traffic goes through.

use std::sync::Arc;

use leftoff_wire::Offset;
use leftoff_wire::record_batch::{Batch, Limits, RecordView};

use crate::broker::directory::{METADATA_DIR, OFFSETS_DIR};
use crate::broker::recovery::OpenError;
use crate::broker::{Change, Metadata, snapshot};
use crate::coordinator::Coordinator;
use crate::disk::Disk;
use crate::log::{Log, ReadBatch};

/// Reads the metadata log into a state.
pub(super) fn metadata(log: &Log) -> Result<Metadata, OpenError> {
    let mut metadata = Metadata::default();
    each_record(log, log.log_start(), METADATA_DIR, &mut |offset, record| {
        let change = Change::decode(record.key.unwrap_or_default(), record.value)
            .map_err(|error| OpenError::Metadata { offset, error })?;
        metadata.replay(change);
        Ok(())
    })?;
    Ok(metadata)
}

/// Reads the offsets log into a state, from the snapshot on if there is one: the same replay that live traffic goes
/// through. Also says up to where the snapshot spoke.
pub(super) fn coordinator(disk: &Arc<dyn Disk>, log: &Log) -> Result<(Coordinator, Offset), OpenError> {
    let (mut coordinator, from) =
        snapshot::load(disk, log).unwrap_or_else(|| (Coordinator::default(), log.log_start()));
    each_record(log, from, OFFSETS_DIR, &mut |offset, record| {
        let key = record.key.unwrap_or_default();
        Ok(coordinator.replay(offset, key, record.value, record.headers.iter())?)
    })?;
    Ok((coordinator, from))
}

fn each_record(
    log: &Log,
    from: Offset,
    name: &'static str,
    visit: &mut dyn FnMut(Offset, &RecordView<'_>) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    for step in log.read_batches(from) {
        let bytes = match step? {
            ReadBatch::Batch { bytes, .. } => bytes,
            // A repair took damaged batches out; what it could not save it has named.
            ReadBatch::Gap { .. } => continue,
            ReadBatch::Damaged(damaged) => {
                return Err(OpenError::Damaged { log: name, what: damaged.to_string() });
            }
        };
        let damaged = |what: String| OpenError::Damaged { log: name, what };
        let (batch, _) = Batch::parse(&bytes).map_err(|error| damaged(error.to_string()))?;
        let records = batch.records(&Limits::default()).map_err(|error| damaged(error.to_string()))?;
        for record in records.iter() {
            let record = record.map_err(|error| damaged(error.to_string()))?;
            let offset = record.offset(batch.header());
            if offset >= from {
                visit(offset, &record)?;
            }
        }
    }
    Ok(())
}
