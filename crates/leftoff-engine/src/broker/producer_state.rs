//! What one partition remembers of idempotent producers, so that a batch that is sent again is there once.
//!
//! The rules are those of Kafka 4's `ProducerAppendInfo` and `ProducerStateEntry`: the last five batches of each producer
//! are remembered, as many as a client has under way at once. Only [`ProducerState::observe`] changes what is remembered,
//! for a batch that was just appended and for one that a start finds in the log alike.

use std::collections::{BTreeMap, VecDeque};

use leftoff_wire::Offset;
use leftoff_wire::record_batch::{BatchHeader, TimestampType};

use crate::broker::RESERVED_PRODUCER_ID;
use crate::types::Timestamp;

/// Kafka's `ProducerStateEntry.NUM_BATCHES_TO_RETAIN`, and the most that its clients have under way.
pub const REMEMBERED_BATCHES: usize = 5;
/// More producers than this are not remembered for one partition: those that were silent longest are forgotten, and are
/// then taken as new ones.
pub const MAX_PRODUCERS: usize = 100_000;

/// A batch that was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastBatch {
    /// The sequence number of its first record.
    pub first_sequence: i32,
    /// The sequence number of its last record.
    pub last_sequence: i32,
    /// The offset of its first record.
    pub base: Offset,
    /// The offset of its last record.
    pub last: Offset,
    /// When the broker appended it, if the batch says so; −1 if its timestamps are the producer's.
    pub append_time_ms: i64,
}

/// One producer, as a partition knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Producer {
    /// The epoch of its last batch.
    pub epoch: i16,
    /// The sequence number that comes next.
    pub next_sequence: i32,
    /// When it was last heard of, by the broker's clock: a producer's own timestamps cannot make it forgotten.
    pub seen: Timestamp,
    /// Its last batches of this epoch, oldest first.
    pub batches: VecDeque<PastBatch>,
}

/// What a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// Next in its sequence, or of no idempotent producer.
    New,
    /// It is in the log already, here.
    Duplicate(PastBatch),
}

/// A batch that does not continue what its producer sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SequenceError {
    /// Batches are missing before it, or it overlaps with one that is there. Kafka's `OUT_OF_ORDER_SEQUENCE_NUMBER`.
    #[error(
        "producer {producer_id} epoch {epoch}: sequence number {got} is out of order, {expected} comes next"
    )]
    OutOfOrder {
        /// Whose.
        producer_id: i64,
        /// Of which epoch.
        epoch: i16,
        /// What would be taken.
        expected: i32,
        /// What came.
        got: i32,
    },
    /// A newer instance of the producer has written. Kafka's `INVALID_PRODUCER_EPOCH`.
    #[error("producer {producer_id}: epoch {got} is over, it is in epoch {current}")]
    StaleEpoch {
        /// Whose.
        producer_id: i64,
        /// The epoch that was last seen.
        current: i16,
        /// What came.
        got: i16,
    },
}

/// The producers of one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProducerState {
    producers: BTreeMap<i64, Producer>,
}

impl ProducerState {
    /// Each producer with its id.
    pub fn producers(&self) -> impl ExactSizeIterator<Item = (i64, &Producer)> {
        self.producers.iter().map(|(id, producer)| (*id, producer))
    }

    /// Whether a batch is new, or which one it repeats.
    ///
    /// A producer that is not known may begin anywhere: what it wrote before may have been deleted.
    ///
    /// # Errors
    /// [`SequenceError`].
    pub fn judge(&self, header: &BatchHeader) -> Result<Judged, SequenceError> {
        let Some(last_sequence) = sequence_of(header) else { return Ok(Judged::New) };
        let Some(known) = self.producers.get(&header.producer_id) else { return Ok(Judged::New) };
        let BatchHeader { producer_id, producer_epoch: epoch, base_sequence: got, .. } = *header;
        let is_same = |past: &&PastBatch| past.first_sequence == got && past.last_sequence == last_sequence;
        if epoch == known.epoch
            && let Some(past) = known.batches.iter().find(is_same)
        {
            return Ok(Judged::Duplicate(*past));
        }
        if epoch < known.epoch {
            return Err(SequenceError::StaleEpoch { producer_id, current: known.epoch, got: epoch });
        }
        let expected = if epoch == known.epoch { known.next_sequence } else { 0 };
        if got != expected {
            return Err(SequenceError::OutOfOrder { producer_id, epoch, expected, got });
        }
        Ok(Judged::New)
    }

    /// Remembers a batch that is in the log.
    pub fn observe(&mut self, header: &BatchHeader, now: Timestamp) {
        let Some(last_sequence) = sequence_of(header) else { return };
        if self.producers.len() >= MAX_PRODUCERS && !self.producers.contains_key(&header.producer_id) {
            self.forget_silent();
        }
        let producer = self.producers.entry(header.producer_id).or_insert_with(|| Producer {
            epoch: header.producer_epoch,
            next_sequence: 0,
            seen: now,
            batches: VecDeque::new(),
        });
        if producer.epoch != header.producer_epoch {
            producer.batches.clear();
        }
        if producer.batches.len() == REMEMBERED_BATCHES {
            producer.batches.pop_front();
        }
        let append_time_ms = match header.attributes.timestamp_type() {
            TimestampType::LogAppendTime => header.max_timestamp,
            TimestampType::CreateTime => -1,
        };
        producer.batches.push_back(PastBatch {
            first_sequence: header.base_sequence,
            last_sequence,
            base: header.base_offset,
            last: header.last_offset(),
            append_time_ms,
        });
        producer.epoch = header.producer_epoch;
        producer.next_sequence = last_sequence.wrapping_add(1) & i32::MAX;
        producer.seen = now;
    }

    /// Forgets who was silent for so long.
    pub fn expire(&mut self, now: Timestamp, after_ms: i64) {
        self.producers.retain(|_, producer| now.as_ms().saturating_sub(producer.seen.as_ms()) < after_ms);
    }

    /// Forgets the batches at this offset and above: they were not on disk yet. The next sequence number is then that of
    /// the first of them, so that they are taken again in order.
    pub fn forget_from(&mut self, offset: Offset) {
        for producer in self.producers.values_mut() {
            while let Some(last) = producer.batches.back().copied().filter(|batch| batch.last >= offset) {
                producer.batches.pop_back();
                producer.next_sequence = last.first_sequence;
            }
        }
    }

    /// Takes a producer as a snapshot has it.
    pub fn insert(&mut self, producer_id: i64, producer: Producer) {
        self.producers.insert(producer_id, producer);
    }

    /// Makes room: a tenth of them go at once, so that this is rare.
    fn forget_silent(&mut self) {
        let mut seen: Vec<Timestamp> = self.producers.values().map(|producer| producer.seen).collect();
        let (_, until, _) = seen.select_nth_unstable(MAX_PRODUCERS / 10);
        let until = *until;
        let mut left = MAX_PRODUCERS / 10;
        self.producers.retain(|_, producer| {
            let goes = producer.seen <= until && left > 0;
            left -= usize::from(goes);
            !goes
        });
    }
}

/// The last sequence number of a batch of an idempotent producer; commit sets have rules of their own.
fn sequence_of(header: &BatchHeader) -> Option<i32> {
    let is_idempotent = (0..RESERVED_PRODUCER_ID).contains(&header.producer_id);
    header.last_sequence().filter(|_| is_idempotent && !header.attributes.is_control())
}
