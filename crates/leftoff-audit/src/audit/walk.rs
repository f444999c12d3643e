//! Walks each partition from its lowest to its highest place and says what became of each event.

use super::by_id::Joined;
use super::gather::Gathered;
use super::order::out_of_order;
use super::parts::{Parts, Reach};
use super::records::{At, FirstEffect, Mark, MarkKind, OutcomeRange, PlaceEffect};
use super::tally::{ProducedTally, Tally, UnknownTally, range_name};
use super::{AuditError, Limits};
use crate::input::{OutcomeKind, PartitionFacts};
use crate::sort::{Cursor, Sorter};
use crate::verdict::{PartitionSummary, PlaceRange, UnknownWhy, Verdict};

mod passed;
use passed::Passed;

/// What was found, before the names are known.
#[derive(Default)]
pub(super) struct Walked {
    pub lost: Tally,
    pub handled_twice: Tally,
    pub repeated: Tally,
    pub out_of_order: Tally,
    pub unfinished: Tally,
    pub without_output: Tally,
    pub filtered: Tally,
    pub dead: Tally,
    pub skipped: Tally,
    pub deleted: Tally,
    pub absorbed: Tally,
    pub produced: ProducedTally,
    pub unknown: UnknownTally,
    /// Events with effects by place and by id.
    pub named_both_ways: u64,
    /// Events in the log that an outcome calls deleted.
    pub called_deleted: u64,
    /// Identities of several events, of which it is unknown which effect belongs to which.
    pub shared_and_handled: u64,
}

pub(super) fn walk(
    parts: &Parts<'_>,
    mut gathered: Gathered,
    joined: Joined<'_>,
    limits: &Limits,
    verdict: &mut Verdict,
) -> Result<Walked, AuditError> {
    let mut reach = joined.reach;
    raise_reach(parts, &gathered, &mut reach)?;
    let mut unknown = joined.unknown;
    unknown.append(std::mem::take(&mut gathered.unknown));
    let walked = Walked {
        produced: joined.produced,
        shared_and_handled: joined.shared_and_handled,
        unknown,
        ..Walked::default()
    };
    let mut walk = Walk {
        topic: parts.topic,
        events: gathered.events.cursor()?,
        effects: gathered.effects_by_place.cursor()?,
        marks: joined.marks.cursor()?,
        outcomes: gathered.outcomes.cursor()?,
        first_effects: joined.first_effects,
        places_rise: gathered.places_rise,
        reach: &reach,
        walked,
        verdict,
    };
    for (index, facts) in parts.facts().iter().enumerate() {
        walk.effects_elsewhere(Some(facts.partition))?;
        walk.partition(index, facts)?;
    }
    walk.effects_elsewhere(None)?;
    let Walk { first_effects, mut walked, .. } = walk;
    walked.out_of_order = out_of_order(first_effects, limits)?;
    Ok(walked)
}

/// Raises the reach of partitions without a saved offset by effects at places and by outcomes.
fn raise_reach(parts: &Parts<'_>, gathered: &Gathered, reach: &mut Reach) -> Result<(), AuditError> {
    if parts.facts().iter().all(|facts| facts.saved_next.is_some()) {
        return Ok(());
    }
    let mut outcomes = gathered.outcomes.cursor()?;
    while let Some(range) = outcomes.next()? {
        if let Some(index) = parts.index_of(range.from.partition) {
            reach.raise(index, range.to.min(parts.facts()[index].end - 1));
        }
    }
    let mut events = gathered.events.cursor()?;
    let mut effects = gathered.effects_by_place.cursor()?;
    while let Some(PlaceEffect { at, .. }) = effects.next()? {
        while events.next_if(|event| *event < at)?.is_some() {}
        if events.peek() == Some(&at) {
            let index = parts.index_of(at.partition).expect("judged events have a known partition");
            reach.raise(index, at.offset);
        }
    }
    Ok(())
}

struct Walk<'a, 'b> {
    topic: &'b str,
    events: Cursor<'b, At>,
    effects: Cursor<'b, PlaceEffect>,
    marks: Cursor<'b, Mark>,
    outcomes: Cursor<'b, OutcomeRange>,
    first_effects: Sorter<'a, FirstEffect>,
    places_rise: bool,
    reach: &'b Reach,
    walked: Walked,
    verdict: &'b mut Verdict,
}

impl Walk<'_, '_> {
    /// Effects of partitions below this one that nobody knows.
    fn effects_elsewhere(&mut self, partition: Option<u32>) -> Result<(), AuditError> {
        let below = |at: &At| partition.is_none_or(|partition| at.partition < partition);
        while let Some(at) = self.effects.peek().map(|effect| effect.at).filter(below) {
            if let Some(placed) = self.placed(at)? {
                self.unknown(at, placed, UnknownWhy::NoSuchPartition);
            }
        }
        while self.outcomes.next_if(|range| below(&range.from))?.is_some() {}
        Ok(())
    }

    fn partition(&mut self, index: usize, facts: &PartitionFacts) -> Result<(), AuditError> {
        let lost_and_unfinished = (self.walked.lost.count(), self.walked.unfinished.count());
        let mut summary = PartitionSummary {
            partition: facts.partition,
            log_start: facts.log_start,
            end: facts.end,
            saved_next: facts.saved_next,
            events: 0,
            with_effect: 0,
            lost: 0,
            unfinished: 0,
        };
        let mut passed = Passed::new(facts);
        while let Some(at) = self.next_place(facts.partition) {
            self.pass_outcomes(&mut passed, at)?;
            let placed = self.placed(at)?;
            if self.events.next_if(|event| *event == at)?.is_some() {
                summary.events += 1;
                let (marked, outcome) = (self.marked(at)?, passed.outcome(at.offset));
                let judged = Judged { at, placed, marked, outcome, again: passed.again(at.offset) };
                summary.with_effect += u64::from(judged.has_effect());
                self.event(index, facts, &judged)?;
            } else if let Some(placed) = placed {
                self.effect_without_event(facts, &mut passed, at, placed);
            }
        }
        self.pass_outcomes(&mut passed, At { partition: facts.partition, offset: i64::MAX })?;
        passed.finish(&mut self.walked.deleted);
        summary.lost = self.walked.lost.count() - lost_and_unfinished.0;
        summary.unfinished = self.walked.unfinished.count() - lost_and_unfinished.1;
        self.verdict.events += summary.events;
        self.verdict.with_effect += summary.with_effect;
        self.walked.called_deleted += passed.called_deleted;
        self.verdict.partitions.push(summary);
        Ok(())
    }

    /// The next place of this partition that has an event or an effect.
    fn next_place(&self, partition: u32) -> Option<At> {
        let here = |at: &At| at.partition == partition;
        let event = self.events.peek().copied().filter(here);
        let effect = self.effects.peek().map(|effect| effect.at).filter(here);
        match (event, effect) {
            (Some(event), Some(effect)) => Some(event.min(effect)),
            (one, other) => one.or(other),
        }
    }

    /// Takes in the outcomes that begin at or below this place.
    fn pass_outcomes(&mut self, passed: &mut Passed, at: At) -> Result<(), AuditError> {
        while let Some(range) = self.outcomes.next_if(|range| range.from <= at)? {
            passed.take(&range, &mut self.walked.deleted);
        }
        Ok(())
    }

    /// All effects at this place.
    fn placed(&mut self, at: At) -> Result<Option<Placed>, AuditError> {
        let Some(first) = self.effects.next_if(|effect| effect.at == at)? else { return Ok(None) };
        let mut placed = Placed { first_seq: first.seq, effects: 1, surplus: 0 };
        let mut n = first.n;
        while let Some(effect) = self.effects.next_if(|effect| effect.at == at)? {
            placed.first_seq = placed.first_seq.min(effect.seq);
            placed.effects += 1;
            placed.surplus += u64::from(effect.n == n);
            n = effect.n;
        }
        Ok(Some(placed))
    }

    /// What the effects by id say of the event at this place.
    fn marked(&mut self, at: At) -> Result<Marked, AuditError> {
        let mut marked = Marked::default();
        while let Some(mark) = self.marks.next_if(|mark| mark.at == at)? {
            match mark.kind {
                MarkKind::Handled => marked.handled = true,
                MarkKind::Surplus => marked.surplus += mark.times,
                MarkKind::Absorbed => marked.absorbed = true,
            }
        }
        Ok(marked)
    }

    fn event(&mut self, index: usize, facts: &PartitionFacts, judged: &Judged) -> Result<(), AuditError> {
        if self.events.peek() == Some(&judged.at) {
            let At { partition, offset } = judged.at;
            return Err(AuditError::PlaceTwice { partition, offset });
        }
        if judged.again > 0 && facts.saved_next.is_some_and(|saved| judged.at.offset >= saved) {
            // Whatever it left behind: it was given back, and a restart handles it.
            self.walked.unfinished.add(judged.at);
            return Ok(());
        }
        if judged.has_effect() {
            return self.event_with_effect(judged);
        }
        let passed = self.passed_by_group(index, facts, judged.at.offset);
        let at = judged.at;
        match judged.outcome {
            Some(OutcomeKind::Handled) => self.walked.without_output.add(at),
            Some(OutcomeKind::Filtered) => self.walked.filtered.add(at),
            Some(OutcomeKind::Dead) => self.walked.dead.add(at),
            Some(OutcomeKind::Skipped) => self.walked.skipped.add(at),
            Some(OutcomeKind::Absorbed) => self.walked.absorbed.add(at),
            Some(OutcomeKind::Deleted | OutcomeKind::Again) | None => match passed {
                _ if judged.marked.absorbed && facts.saved_next.is_none_or(|saved| at.offset < saved) => {
                    self.walked.absorbed.add(at);
                }
                true => self.walked.lost.add(at),
                false => self.walked.unfinished.add(at),
            },
        }
        Ok(())
    }

    fn event_with_effect(&mut self, judged: &Judged) -> Result<(), AuditError> {
        let Judged { at, placed, marked, again, .. } = judged;
        let surplus = placed.as_ref().map_or(0, |placed| placed.surplus);
        let decided = placed.as_ref().map_or(0, |placed| again * (placed.effects - placed.surplus));
        if surplus > 0 && again > &0 {
            self.walked.repeated.add_surplus(*at, surplus.min(decided));
        }
        let surplus = marked.surplus + surplus.saturating_sub(decided);
        if surplus > 0 {
            self.walked.handled_twice.add_surplus(*at, surplus);
        }
        if let Some(placed) = placed {
            self.walked.named_both_ways += u64::from(marked.handled);
            if !self.places_rise {
                self.first_effects.push(FirstEffect { seq: placed.first_seq, at: *at, way: 0 })?;
            }
        }
        Ok(())
    }

    /// Whether the group would not come back to this offset.
    fn passed_by_group(&self, index: usize, facts: &PartitionFacts, offset: i64) -> bool {
        match facts.saved_next {
            Some(saved_next) => offset < saved_next,
            None => self.reach.at(index).is_some_and(|reach| offset < reach),
        }
    }

    fn effect_without_event(&mut self, facts: &PartitionFacts, passed: &mut Passed, at: At, placed: Placed) {
        if (0..facts.log_start).contains(&at.offset) {
            self.verdict.effects_of_deleted += placed.effects;
            passed.handled_below_start(at.offset, &mut self.walked.deleted);
            if placed.surplus > 0 {
                self.walked.handled_twice.add_surplus(at, placed.surplus);
            }
        } else if at.offset >= facts.end {
            self.unknown(at, placed, UnknownWhy::PastTheEnd);
        } else {
            self.unknown(at, placed, UnknownWhy::NotAnEvent);
        }
    }

    fn unknown(&mut self, at: At, placed: Placed, why: UnknownWhy) {
        let range = PlaceRange { partition: at.partition, from: at.offset, to: at.offset };
        let name = range_name(self.topic, range);
        self.walked.unknown.add(placed.first_seq, why, Some(name), placed.effects);
    }
}

/// The effects at one place.
struct Placed {
    first_seq: u64,
    effects: u64,
    /// Effects whose number another effect of the event has, too.
    surplus: u64,
}

/// What the effects by id say of one event.
#[derive(Default)]
struct Marked {
    handled: bool,
    surplus: u64,
    absorbed: bool,
}

/// All that is known of one event.
struct Judged {
    at: At,
    placed: Option<Placed>,
    marked: Marked,
    outcome: Option<OutcomeKind>,
    /// How often it was given back by decision.
    again: u64,
}

impl Judged {
    fn has_effect(&self) -> bool {
        self.placed.is_some() || self.marked.handled
    }
}
