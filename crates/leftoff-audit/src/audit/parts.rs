//! The partitions of a question, checked and in order.

use super::records::At;
use super::{AuditError, Question};
use crate::input::PartitionFacts;

pub(super) struct Parts<'a> {
    pub topic: &'a str,
    facts: Vec<PartitionFacts>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(question: &Question<'a>) -> Result<Parts<'a>, AuditError> {
        let mut facts = question.partitions.to_vec();
        facts.sort_by_key(|one| one.partition);
        let twice = facts.windows(2).find(|pair| pair[0].partition == pair[1].partition);
        let wrong = twice.map(|pair| &pair[0]).or_else(|| facts.iter().find(|one| !holds(one)));
        match wrong {
            Some(one) => Err(AuditError::Facts(one.partition)),
            None => Ok(Parts { topic: question.topic, facts }),
        }
    }

    /// In ascending order.
    pub(super) fn facts(&self) -> &[PartitionFacts] {
        &self.facts
    }

    pub(super) fn index_of(&self, partition: u32) -> Option<usize> {
        self.facts.binary_search_by_key(&partition, |one| one.partition).ok()
    }

    /// Whether an entry of the log at this place is to be judged.
    ///
    /// # Errors
    /// When nothing is known of its partition.
    pub(super) fn judges(&self, at: At) -> Result<bool, AuditError> {
        let index = self.index_of(at.partition).ok_or(AuditError::UnknownPartition(at.partition))?;
        Ok((self.facts[index].log_start..self.facts[index].end).contains(&at.offset))
    }
}

fn holds(facts: &PartitionFacts) -> bool {
    0 <= facts.log_start && facts.log_start <= facts.end && facts.saved_next.is_none_or(|saved| saved >= 0)
}

/// Per partition the highest offset that is known to have been handled or passed on purpose. It stands in for the saved
/// offset where there is none.
pub(super) struct Reach(Vec<Option<i64>>);

impl Reach {
    pub(super) fn new(parts: &Parts<'_>) -> Reach {
        Reach(vec![None; parts.facts().len()])
    }

    pub(super) fn raise(&mut self, index: usize, offset: i64) {
        self.0[index] = self.0[index].max(Some(offset));
    }

    pub(super) fn at(&self, index: usize) -> Option<i64> {
        self.0[index]
    }
}
