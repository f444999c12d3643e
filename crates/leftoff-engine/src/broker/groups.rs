//! Groups: an embedded runner joins and leaves; people delete. Commits come as commit sets.

use crate::broker::{Answer, Broker, Refusal, Reply};
use crate::coordinator::{Outcome, Ownership, Who};
use crate::types::{Timestamp, TopicPartition};

impl Broker {
    pub(super) fn join(&mut self, now: Timestamp, group: &str, who: &Who) -> Result<Answer, Refusal> {
        let outcome = self.state.coordinator.join(now, group, who)?;
        self.classic.check_no_living_members(group)?;
        let answer = self.apply(now, outcome, Reply::Joined)?;
        self.classic.embedded_joins(group);
        Ok(answer)
    }

    pub(super) fn leave(&mut self, now: Timestamp, group: &str, held: &Ownership) -> Result<Answer, Refusal> {
        let outcome = self.state.coordinator.leave(now, group, held)?;
        self.classic.check_no_living_members(group)?;
        let answer = self.apply(now, outcome, |()| Reply::Done)?;
        self.classic.embedded_leaves(group);
        Ok(answer)
    }

    pub(super) fn delete_group(
        &mut self,
        now: Timestamp,
        group: &str,
        who: &Who,
        note: Option<&str>,
    ) -> Result<Answer, Refusal> {
        self.classic.check_no_living_members(group)?;
        let outcome = self.state.coordinator.delete_group(group, who, note)?;
        self.apply(now, outcome, |_| Reply::Done)
    }

    pub(super) fn delete_offsets(
        &mut self,
        now: Timestamp,
        group: &str,
        partitions: &[TopicPartition],
        who: &Who,
        note: Option<&str>,
    ) -> Result<Answer, Refusal> {
        self.classic.check_no_living_members(group)?;
        let outcome = self.state.coordinator.delete_offsets(group, partitions, who, note)?;
        self.apply(now, outcome, |_| Reply::Done)
    }

    fn apply<T>(
        &mut self,
        now: Timestamp,
        outcome: Outcome<T>,
        reply: impl FnOnce(T) -> Reply,
    ) -> Result<Answer, Refusal> {
        let changed = !outcome.records.is_empty();
        self.append_offsets(now, &outcome.records, &[])?;
        let reply = reply(outcome.reply);
        Ok(if changed { Answer::WithRound(reply) } else { Answer::Reports(reply) })
    }
}
