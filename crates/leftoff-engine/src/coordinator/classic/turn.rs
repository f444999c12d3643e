//! One turn of the machine: what it may look at, and what comes out of it.

use super::io::{JoinReply, MemberReply, SyncReply, Waiter};
use super::live::Member;
use super::{ErrorCode, GroupConfig};
use crate::coordinator::{Group, Record};
use crate::types::Timestamp;

/// What one input led to, in one group.
#[derive(Debug, Default)]
#[must_use = "somebody waits for these replies"]
pub struct Step {
    /// To be answered, in this order. What is to be written comes first.
    pub replies: Vec<Answer>,
    /// A record to append; how that went is told with [`Classic::written`](super::Classic::written).
    pub write: Option<Write>,
}

/// An answer to somebody who asked, now or earlier.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Who.
    pub waiter: Waiter,
    /// What.
    pub reply: MemberReply,
    /// Whether it speaks of what lasts, and must wait until that is on disk.
    pub reports: bool,
}

/// A record, and what follows once it is appended, or was refused.
#[derive(Debug)]
pub struct Write {
    /// The group.
    pub group: String,
    /// The group's metadata.
    pub record: Record,
    pub(super) then: Then,
}

/// What a record was for.
#[derive(Debug)]
pub(super) enum Then {
    /// The group is stable with what the leader has assigned.
    Assigned(Vec<(String, Vec<u8>)>),
    /// The last member has gone.
    Emptied,
    /// A static member came back under a new id.
    Replaced(Box<Replaced>),
}

#[derive(Debug)]
pub(super) struct Replaced {
    pub(super) waiter: Waiter,
    pub(super) reply: JoinReply,
    /// What to go back to if it cannot be written.
    pub(super) old_id: String,
    pub(super) old: Member,
    pub(super) old_leader: Option<String>,
}

/// What the functions of a group share during one input.
pub(super) struct Turn<'a> {
    pub(super) now: Timestamp,
    pub(super) config: &'a GroupConfig,
    pub(super) name: &'a str,
    pub(super) lasting: Option<&'a Group>,
    pub(super) step: Step,
    /// Whether one more member id may be given out.
    pub(super) has_room_for_ids: bool,
    /// Members whose assignment is on its way to the disk.
    pub(super) unsent: Vec<(Waiter, String)>,
}

impl Turn<'_> {
    pub(super) fn after_ms(&self, ms: i32) -> Timestamp {
        Timestamp::from_ms(self.now.as_ms().saturating_add(i64::from(ms.max(0))))
    }

    pub(super) fn answer(&mut self, waiter: Waiter, reply: MemberReply) {
        self.step.replies.push(Answer { waiter, reply, reports: false });
    }

    /// For what says something that lasts.
    pub(super) fn report(&mut self, waiter: Waiter, reply: MemberReply) {
        self.step.replies.push(Answer { waiter, reply, reports: true });
    }

    pub(super) fn refuse_join(&mut self, waiter: Waiter, error: ErrorCode, member_id: &str) {
        self.answer(waiter, MemberReply::Join(JoinReply::refused(error, member_id)));
    }

    pub(super) fn refuse_sync(&mut self, waiter: Waiter, error: ErrorCode) {
        self.answer(waiter, MemberReply::Sync(SyncReply::refused(error)));
    }

    pub(super) fn write(&mut self, record: Record, then: Then) {
        assert!(self.step.write.is_none(), "one input leads to one record at most");
        self.step.write = Some(Write { group: self.name.to_owned(), record, then });
    }
}
