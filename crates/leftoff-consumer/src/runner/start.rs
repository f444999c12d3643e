//! Where to start: a pure decision from what the sink, the group and the log say. Nothing is guessed; what is neither
//! plain nor decided by an option is refused with the numbers.

use leftoff_wire::{Committed, Offset};

use super::{OnGap, OnLostState, OnNoOffset, OnOtherLog, Refusal, RunOptions, StartFrom};
use crate::source::{Decision, GapReason, Reset};

/// What is known of a partition at its assignment.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The topic's name.
    pub topic: &'a str,
    /// The partition.
    pub partition: i32,
    /// The sink, if its offset is the one that counts.
    pub place: Option<&'a str>,
    /// What the sink has.
    pub in_sink: Option<Committed>,
    /// The last event that the sink has passed, if the log has another one at its offset.
    pub other_event_at: Option<Offset>,
    /// A reset that is to reach the sink, and has not: `in_group` is where it goes.
    pub reset: Option<&'a Reset>,
    /// The topic got it when the group had begun with its others.
    pub added: bool,
    /// What the group has.
    pub in_group: Option<Committed>,
    /// The first offset that can be read.
    pub log_start: Offset,
    /// The high watermark.
    pub end: Offset,
}

/// Where to start, and the decision that led there, if it was one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The next offset to read.
    pub at: Committed,
    /// The rule that was applied, where the start is not simply what was saved.
    pub decision: Option<Decision>,
}

/// Where a runner with these options would start: what [`Runner::run`](super::Runner::run) does, too.
///
/// # Errors
/// Why it would not start.
pub fn decide(facts: &Facts<'_>, options: &RunOptions) -> Result<Start, Refusal> {
    match candidate(facts, options)? {
        None => without_offset(facts, options),
        Some(start) => within_the_log(start, facts, options),
    }
}

/// What was saved, by the one whose word counts.
fn candidate(facts: &Facts<'_>, options: &RunOptions) -> Result<Option<Start>, Refusal> {
    let Some(place) = facts.place else { return Ok(facts.in_group.map(plain)) };
    // A reset does not know of it either: its numbers may be those of the other log.
    if let (Some(in_sink), Some(other), OnOtherLog::Refuse) =
        (facts.in_sink, facts.other_event_at, options.on_other_log)
    {
        return Err(Refusal::OtherLog {
            topic: facts.topic.to_owned(),
            partition: facts.partition,
            place: place.to_owned(),
            in_sink,
            other,
        });
    }
    if let (Some(reset), Some(to)) = (facts.reset, facts.in_group) {
        let jumped =
            jump(format!("{} reaches {place}", reset.what), facts.in_sink.map(Committed::next), to.next());
        return Ok(Some(Start { at: to, decision: Some(Decision { follows: true, ..jumped }) }));
    }
    if let (Some(in_sink), Some(_)) = (facts.in_sink, facts.other_event_at) {
        let accepted = jump("--on-other-log accept".to_owned(), None, in_sink.next());
        return Ok(Some(Start { at: in_sink, decision: Some(accepted) }));
    }
    match (facts.in_sink, facts.in_group) {
        (Some(in_sink), Some(in_group)) if in_group > in_sink => Ok(Some(Start {
            at: in_sink,
            decision: Some(jump(format!("{place} keeps the offset"), Some(in_group.next()), in_sink.next())),
        })),
        (Some(in_sink), _) => Ok(Some(plain(in_sink))),
        (None, None) => Ok(None),
        (None, Some(in_group)) if in_group.next() <= facts.log_start => Ok(Some(plain(in_group))),
        (None, Some(in_group)) => match options.on_lost_state {
            OnLostState::FollowGroup => Ok(Some(plain(in_group))),
            OnLostState::Refuse => Err(Refusal::LostState {
                topic: facts.topic.to_owned(),
                partition: facts.partition,
                place: place.to_owned(),
                in_group,
            }),
        },
    }
}

fn without_offset(facts: &Facts<'_>, options: &RunOptions) -> Result<Start, Refusal> {
    if let Some(start) = named_start(facts, options) {
        return Ok(start);
    }
    let (rule, at, from) = match options.on_no_offset {
        // Whoever wanted only what comes from then on wants all that came since.
        OnNoOffset::Earliest | OnNoOffset::Latest if facts.added => {
            ("a partition that was added", Committed::log_start(facts.log_start), None)
        }
        OnNoOffset::Earliest => ("--on-no-offset earliest", Committed::log_start(facts.log_start), None),
        // What lies before the end is skipped, and said to be.
        OnNoOffset::Latest => {
            ("--on-no-offset latest", Committed::resolved_reset(facts.end), Some(facts.log_start))
        }
        OnNoOffset::Stop => {
            return Err(Refusal::NoOffset {
                topic: facts.topic.to_owned(),
                partition: facts.partition,
                log_start: facts.log_start,
                end: facts.end,
            });
        }
    };
    Ok(Start { at, decision: Some(jump(rule.to_owned(), from, at.next())) })
}

/// What lies before it is skipped, and said to be.
fn named_start(facts: &Facts<'_>, options: &RunOptions) -> Option<Start> {
    let StartFrom { rule, at } = options.start_from.as_ref()?;
    let is_it = |(topic, partition, _): &&(String, i32, Offset)| {
        topic == facts.topic && *partition == facts.partition
    };
    let (_, _, offset) = at.iter().find(is_it)?;
    let at = (*offset).clamp(facts.log_start, facts.end);
    let decision = Some(jump(rule.clone(), Some(facts.log_start), at));
    Some(Start { at: Committed::resolved_reset(at), decision })
}

fn within_the_log(start: Start, facts: &Facts<'_>, options: &RunOptions) -> Result<Start, Refusal> {
    let next = start.at.next();
    let refusal = if next < facts.log_start {
        Refusal::Gap {
            topic: facts.topic.to_owned(),
            partition: facts.partition,
            from: next,
            to: facts.log_start,
            reason: GapReason::Deleted,
        }
    } else if next > facts.end {
        Refusal::AboveEnd {
            topic: facts.topic.to_owned(),
            partition: facts.partition,
            saved: start.at,
            end: facts.end,
        }
    } else {
        return Ok(start);
    };
    match options.on_gap {
        OnGap::Stop => Err(refusal),
        OnGap::Earliest => Ok(Start {
            at: Committed::log_start(facts.log_start),
            decision: Some(jump("--on-gap earliest".to_owned(), Some(next), facts.log_start)),
        }),
    }
}

fn plain(at: Committed) -> Start {
    Start { at, decision: None }
}

fn jump(rule: String, from: Option<Offset>, to: Offset) -> Decision {
    let count = from.map_or(0, |from| to.since(from).max(from.since(to)));
    Decision { rule, from, to, count, follows: false }
}
