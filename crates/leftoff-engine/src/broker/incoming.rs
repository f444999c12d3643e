//! What a producer's bytes must be before the broker takes them, by the rules of Kafka 4's `ProduceRequest` and
//! `LogValidator`.
//!
//! Every record is looked at here, outside the broker, so that those who hold connections can do it side by side: the
//! broker itself does nothing for each record.

use leftoff_wire::record_batch::{
    Batch, BatchError, BatchFault, BatchHeader, Batches, Limits, RecordView, TimestampType,
};

use crate::broker::Settings;
use crate::types::Timestamp;

/// So many of the records that are wrong are told of.
const MAX_RECORD_ERRORS: usize = 100;

/// What a topic's settings ask of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProduceRules {
    /// `max.message.bytes`.
    pub max_message_bytes: u64,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub after_max_ms: i64,
    /// The topic is compacted: by key.
    pub needs_keys: bool,
}

impl ProduceRules {
    /// Those of a topic.
    pub fn of(settings: &Settings) -> ProduceRules {
        let (before_max_ms, after_max_ms) = settings.timestamp_limits_ms();
        ProduceRules {
            max_message_bytes: settings.max_message_bytes(),
            timestamp_type: settings.timestamp_type(),
            before_max_ms,
            after_max_ms,
            needs_keys: settings.needs_keys(),
        }
    }
}

/// One batch of a producer, checked, with the timestamps that the topic wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    pub(super) header: BatchHeader,
    pub(super) batches: Batches,
}

/// One record that is refused, and with it its batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// Which, counted from 0.
    pub index: i32,
    /// Why.
    pub message: String,
}

/// Why a producer's bytes are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBatch {
    /// Cut short, or changed on the way. Kafka's `CORRUPT_MESSAGE`.
    #[error("the record batch is corrupt {0}")]
    Corrupt(BatchError),
    /// Larger than `max.message.bytes`. `MESSAGE_TOO_LARGE`.
    #[error("a batch of {bytes} bytes is larger than max.message.bytes={limit}")]
    TooLarge {
        /// The batch.
        bytes: u64,
        /// The setting.
        limit: u64,
    },
    /// An old message format, no or several batches, or a header that cannot be. `INVALID_RECORD`.
    #[error("{0}")]
    Batch(String),
    /// Some records are wrong. `INVALID_RECORD`.
    #[error("{} of the batch's records are refused, the first, number {}: {}", .0.len(), .0[0].index, .0[0].message)]
    Records(Vec<RecordError>),
    /// Some timestamps are wrong. `INVALID_TIMESTAMP`.
    #[error("{} of the batch's timestamps are refused, the first, of record {}: {}", .0.len(), .0[0].index, .0[0].message)]
    Timestamps(Vec<RecordError>),
    /// A part of a transaction, which are not served yet. `INVALID_TXN_STATE`.
    #[error("transactions are not served yet")]
    Transactional,
}

impl InvalidBatch {
    /// Kafka's error code.
    pub fn error_code(&self) -> i16 {
        match self {
            InvalidBatch::Corrupt(_) => 2,
            InvalidBatch::TooLarge { .. } => 10,
            InvalidBatch::Timestamps(_) => 32,
            InvalidBatch::Transactional => 48,
            InvalidBatch::Batch(_) | InvalidBatch::Records(_) => 87,
        }
    }

    /// The records that are wrong, as a produce reply names them.
    pub fn record_errors(&self) -> &[RecordError] {
        match self {
            InvalidBatch::Records(errors) | InvalidBatch::Timestamps(errors) => errors,
            _ => &[],
        }
    }
}

impl Incoming {
    /// Checks one partition's bytes of a produce request, and gives the batch the timestamps that the topic wants.
    ///
    /// # Errors
    /// [`InvalidBatch`].
    pub fn check(bytes: Vec<u8>, rules: &ProduceRules, now: Timestamp) -> Result<Incoming, InvalidBatch> {
        if bytes.is_empty() {
            return Err(invalid(
                "a produce request has one record batch for each partition, this one has none",
            ));
        }
        let header = BatchHeader::parse(&bytes).map_err(fault)?;
        let (size, limit) = (header.size_bytes() as u64, rules.max_message_bytes);
        if size > limit {
            return Err(InvalidBatch::TooLarge { bytes: size, limit });
        }
        if size < bytes.len() as u64 {
            return Err(invalid(
                "a produce request has one record batch for each partition, this one has more",
            ));
        }
        let mut batches = Batches::parse(bytes).map_err(fault)?;
        check_header(&header)?;
        let (_, batch) = batches.iter().next().expect("there is one");
        let max_timestamp = check_records(&batch, rules, now)?;
        match rules.timestamp_type {
            TimestampType::LogAppendTime => batches.set_timestamps(rules.timestamp_type, now.as_ms()),
            // As Kafka: what the header says of the records is made true.
            TimestampType::CreateTime if max_timestamp != header.max_timestamp => {
                batches.set_timestamps(rules.timestamp_type, max_timestamp);
            }
            TimestampType::CreateTime => {}
        }
        let (_, header) = batches.headers().next().expect("there is one");
        Ok(Incoming { header, batches })
    }

    /// The batch's header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }
}

fn check_header(header: &BatchHeader) -> Result<(), InvalidBatch> {
    let BatchHeader { records_count, last_offset_delta, producer_id, producer_epoch, .. } = *header;
    if header.base_offset.get() != 0 {
        return Err(invalid(format!(
            "the base offset of a producer's batch is 0, not {}",
            header.base_offset
        )));
    }
    if header.attributes.is_control() {
        return Err(invalid("control records are the broker's own"));
    }
    if records_count < 1 || i64::from(records_count) != i64::from(last_offset_delta) + 1 {
        let what = format!("{records_count} records with a last offset delta of {last_offset_delta}");
        return Err(invalid(format!("the batch claims {what}")));
    }
    if header.attributes.is_transactional() {
        return Err(InvalidBatch::Transactional);
    }
    if producer_id >= 0 && (header.base_sequence < 0 || producer_epoch < 0) {
        let what = format!("sequence number {} and epoch {producer_epoch}", header.base_sequence);
        return Err(invalid(format!("producer {producer_id} with {what}")));
    }
    Ok(())
}

/// Checks each record; tells the greatest timestamp.
fn check_records(batch: &Batch<'_>, rules: &ProduceRules, now: Timestamp) -> Result<i64, InvalidBatch> {
    let (mut records_wrong, mut times_wrong) = (Vec::new(), Vec::new());
    let mut max_timestamp = -1;
    let records = batch.records(&Limits::default()).map_err(|error| invalid(error.to_string()))?;
    for (record, index) in records.iter().zip(0..) {
        let record = record.map_err(|error| invalid(error.to_string()))?;
        if rules.needs_keys && record.key.is_none() && records_wrong.len() < MAX_RECORD_ERRORS {
            let message = "a compacted topic takes no record without a key".to_owned();
            records_wrong.push(RecordError { index, message });
        }
        if let Some(message) = wrong_time(&record, batch.header(), rules, now)
            && times_wrong.len() < MAX_RECORD_ERRORS
        {
            times_wrong.push(RecordError { index, message });
        }
        max_timestamp = max_timestamp.max(record.timestamp(batch.header()));
    }
    // As Kafka: where there are both, the timestamps decide the code.
    if !times_wrong.is_empty() {
        return Err(InvalidBatch::Timestamps(times_wrong));
    }
    if !records_wrong.is_empty() {
        return Err(InvalidBatch::Records(records_wrong));
    }
    Ok(max_timestamp)
}

fn wrong_time(
    record: &RecordView<'_>,
    header: &BatchHeader,
    rules: &ProduceRules,
    now: Timestamp,
) -> Option<String> {
    if rules.timestamp_type == TimestampType::LogAppendTime {
        return None;
    }
    if header.attributes.timestamp_type() == TimestampType::LogAppendTime {
        return Some("a producer does not set the type of timestamps to LogAppendTime".to_owned());
    }
    let at = record.timestamp(header);
    let after_ms = at.saturating_sub(now.as_ms());
    let setting = if after_ms > rules.after_max_ms {
        "message.timestamp.after.max.ms"
    } else if after_ms.saturating_neg() > rules.before_max_ms {
        "message.timestamp.before.max.ms"
    } else {
        return None;
    };
    // −1 is "none".
    (at != -1).then(|| format!("timestamp {at} is beyond {setting} from {now}, the broker's time"))
}

fn invalid(why: impl Into<String>) -> InvalidBatch {
    InvalidBatch::Batch(why.into())
}

fn fault(error: BatchError) -> InvalidBatch {
    match error.fault {
        BatchFault::Incomplete { .. } | BatchFault::Length { .. } | BatchFault::Crc { .. } => {
            InvalidBatch::Corrupt(error)
        }
        BatchFault::Magic { .. } => {
            invalid(format!("{}; clients older than Kafka 0.11 write others", error.fault))
        }
        _ => invalid(error.to_string()),
    }
}
