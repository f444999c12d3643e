//! What the runner's other threads tell: answers, handlers that start and stop, the sink that comes back.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::crew::News;
use super::lanes::Work;
use super::saver::Saved;
use super::{Hands, POLL_WAIT, RunError, Runner, StopReason};
use crate::handler::HandlerError;
use crate::source::PartitionId;

/// While somebody has nothing to do, new events are looked for so often.
const LOOK_FOR_EVENTS: Duration = Duration::from_millis(5);
/// For so long beyond the drain is waited for a handler that was told to end.
const GRACE: Duration = Duration::from_secs(2);

impl<'a> Runner<'a> {
    /// All that has come, without waiting.
    pub(super) fn take_news(&mut self) -> Result<(), RunError> {
        while let Some(news) = self.mailbox.pop_front().or_else(|| self.news.try_recv().ok()) {
            self.learn(news)?;
        }
        // Whoever waited for the sink in the midst of something has not looked at what had waited for it.
        if self.sink.is_home() && !self.arrived.is_empty() { self.admit_all() } else { Ok(()) }
    }

    /// Waits for a short time until something has come, and takes it.
    pub(super) fn wait_for_news(&mut self) -> Result<(), RunError> {
        let has_room = match &self.hands {
            Hands::Crew(crew) => !crew.with_room().is_empty(),
            Hands::One(_) | Hands::Nobody => false,
        };
        let wait = self.until_due(if has_room { LOOK_FOR_EVENTS } else { POLL_WAIT });
        if let Some(news) = self.next_news(wait) {
            self.learn(news)?;
        }
        self.take_news()
    }

    /// What was kept for later comes first: an answer in there is waited for by nobody else.
    fn next_news(&mut self, wait: Duration) -> Option<News<'a>> {
        self.mailbox.pop_front().or_else(|| self.news.recv_timeout(wait).ok())
    }

    fn learn(&mut self, news: News<'a>) -> Result<(), RunError> {
        match news {
            News::Answered { worker, work, answer } => {
                self.out_of_hands(worker, &work);
                self.answered(work, answer)
            }
            News::Returned { worker, work } => {
                self.out_of_hands(worker, &work);
                self.returned(work);
                Ok(())
            }
            News::Fault(error) => self.fault_between_events(error),
            News::Started(started) => started.map_err(RunError::HandlerStart),
            News::Stopped(stopped) => {
                self.tell_of_the_end(stopped);
                Ok(())
            }
            News::Saved(saved) => {
                self.is_back(saved)?;
                self.admit_all()
            }
        }
    }

    fn is_back(&mut self, saved: Saved<'a>) -> Result<(), RunError> {
        let Saved { sink, moves, written, in_group } = saved;
        self.sink.is_back(sink);
        self.saved(moves, written, in_group)
    }

    fn out_of_hands(&mut self, worker: usize, work: &Work) {
        self.in_hand.remove(&(work.ticket.id, work.ticket.offset));
        if let Hands::Crew(crew) = &mut self.hands {
            crew.took_back(worker, work);
        }
    }

    /// Waits until the saver has done its work; what else comes is kept for later.
    pub(super) fn bring_sink_home(&mut self) -> Result<(), RunError> {
        while !self.sink.is_home() {
            match self.news.recv().expect("the runner itself holds a sender") {
                News::Saved(saved) => self.is_back(saved)?,
                news => self.mailbox.push_back(news),
            }
        }
        Ok(())
    }

    pub(super) fn wait_for_starts(&mut self, count: usize) -> Result<(), RunError> {
        for _ in 0..count {
            let news = self.news.recv().expect("the runner itself holds a sender");
            self.learn(news)?;
        }
        Ok(())
    }

    /// Waits until no worker has an event (of a partition) any more, for as long as a handler may take at a stop.
    pub(super) fn wait_for_hands(&mut self, of: Option<PartitionId>) -> Result<(), RunError> {
        let deadline = Instant::now() + self.options.drain + GRACE;
        self.take_news()?;
        while self.in_hand.keys().any(|(id, _)| of.is_none_or(|of| of == *id)) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(news) = self.next_news(left) else { break };
            self.learn(news)?;
        }
        Ok(())
    }

    /// At the end of a run: events that workers have are finished, or given back. What failed first is what is told.
    pub(super) fn collect(
        &mut self,
        mut ended: Result<StopReason, RunError>,
    ) -> Result<StopReason, RunError> {
        if ended.is_err() && !self.in_hand.is_empty() {
            self.stop.store(true, Ordering::SeqCst);
        }
        loop {
            match self.wait_for_hands(None).and_then(|()| self.bring_sink_home()) {
                Ok(()) => break,
                // Another event may have failed, too.
                Err(error) => ended = ended.and(Err(error)),
            }
        }
        if !self.in_hand.is_empty() {
            let count = self.in_hand.len();
            self.notice(format!(
                "{count} events were in the hands of handlers that did not stop; they come again"
            ));
        }
        match self.sink_failed(&ended) {
            true => ended,
            false => match self.admit_all() {
                Ok(()) => ended,
                Err(error) => ended.and(Err(error)),
            },
        }
    }

    fn sink_failed(&self, ended: &Result<StopReason, RunError>) -> bool {
        matches!(ended, Err(RunError::Sink(_) | RunError::Fenced { .. }))
    }

    /// No more events: handlers end, each within the drain.
    pub(super) fn stop_handlers(&mut self) {
        match std::mem::replace(&mut self.hands, Hands::Nobody) {
            Hands::One(handler) => {
                let stopped = handler.stop(self.options.drain);
                self.tell_of_the_end(stopped);
            }
            Hands::Crew(crew) => {
                let mut count = crew.len();
                drop(crew);
                while count > 0 {
                    let news = self.mailbox.pop_front();
                    match news.unwrap_or_else(|| self.news.recv().expect("the runner itself holds a sender"))
                    {
                        News::Stopped(stopped) => {
                            self.tell_of_the_end(stopped);
                            count -= 1;
                        }
                        // Answers that came too late for this run: their events come again.
                        News::Answered { .. } | News::Returned { .. } => self.report.late_events += 1,
                        News::Fault(_) | News::Started(_) => {}
                        News::Saved(_) => unreachable!("the sink is at home when the run has ended"),
                    }
                }
            }
            Hands::Nobody => {}
        }
        self.saver = None;
    }

    fn tell_of_the_end(&mut self, stopped: Result<(), HandlerError>) {
        if let Err(error) = stopped {
            self.notice(format!("the handler did not stop well: {error}"));
        }
    }
}
