//! Members of groups that come over the wire: their requests may be answered later, and time-outs happen by themselves.

use crate::broker::{Answer, Broker, Output, Refusal, Reply, RequestId};
use crate::coordinator::classic::{self, Classic, MemberReply, MemberRequest, Step, Waiter};
use crate::types::Timestamp;

impl Broker {
    /// Answers go out by themselves: of this one and of whoever else has waited for it.
    pub(super) fn member_request(&mut self, now: Timestamp, id: RequestId, request: MemberRequest) -> Answer {
        let step = self.classic.handle(now, &self.state.coordinator, Waiter(id.0), request);
        self.take_step(now, step);
        Answer::ByItself
    }

    /// Time-outs of groups up to `heard_until`.
    pub(super) fn member_deadlines(&mut self, now: Timestamp, heard_until: Timestamp) {
        while self.latched.is_none() {
            let Some(step) = self.classic.handle_deadline(now, heard_until, &self.state.coordinator) else {
                break;
            };
            self.take_step(now, step);
        }
    }

    /// Writes what a step wants written, and answers whom it answers.
    fn take_step(&mut self, now: Timestamp, step: Step) {
        let Step { replies, write } = step;
        let mut replies = replies;
        if let Some(write) = write {
            let written = self.append_offsets(now, std::slice::from_ref(&write.record), &[]);
            if let Err(refusal) = &written
                && refusal.is_final()
            {
                let why = refusal.to_string();
                self.members_latched(replies.into_iter().map(|answer| answer.waiter), &why);
                let then = self.classic.written(now, &self.state.coordinator, write, false);
                self.members_latched(then.replies.into_iter().map(|answer| answer.waiter), &why);
                return self.storage_failed(why);
            }
            let then = self.classic.written(now, &self.state.coordinator, write, written.is_ok());
            assert!(then.write.is_none(), "what follows a record is no other record");
            replies.extend(then.replies);
        }
        for answer in replies {
            self.answer_member(now, answer);
        }
    }

    fn answer_member(&mut self, now: Timestamp, answer: classic::Answer) {
        let id = RequestId(answer.waiter.0);
        let reply = Reply::Member(answer.reply);
        match self.rounds.unfinished_state().filter(|_| answer.reports) {
            Some(round) => self.rounds.park(round, id, reply),
            None => self.send(now, id, reply),
        }
    }

    /// Lets a reply go out, and tells the groups if it is one that they wait for.
    pub(super) fn send(&mut self, now: Timestamp, id: RequestId, reply: Reply) {
        if matches!(reply, Reply::Member(MemberReply::Sync(_))) {
            self.classic.sent(now, Waiter(id.0));
        }
        self.outputs.push_back(Output::Reply { id, reply });
    }

    /// Storage has failed: nobody waits for members any more.
    pub(super) fn release_members(&mut self, why: &str) {
        let waiters = self.classic.release_all();
        self.members_latched(waiters, why);
    }

    fn members_latched(&mut self, waiters: impl IntoIterator<Item = Waiter>, why: &str) {
        for waiter in waiters {
            let reply = Reply::Refused(Refusal::Latched(why.to_owned()));
            self.outputs.push_back(Output::Reply { id: RequestId(waiter.0), reply });
        }
    }

    /// The members as they were found in the log.
    pub(super) fn load_members(&mut self, now: Timestamp) {
        self.classic = Classic::load(now, self.config.groups.clone(), &self.state.coordinator);
    }
}
