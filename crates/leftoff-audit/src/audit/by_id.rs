//! Compares identities: events and effects, each sorted by the hash of their id, are read side by side.
//!
//! One event and several effects are handled twice. Several events of one identity were produced twice: then the first
//! effect is set against the first of their places, and so on; too many effects are handled twice, too few were absorbed
//! by a dedupe.

use super::gather::Gathered;
use super::parts::{Parts, Reach};
use super::records::{At, FirstEffect, IdEffect, IdEvent, IdHash, Mark, MarkKind, Twin, TwinSeen};
use super::tally::{Group, ProducedTally, UnknownTally};
use super::{AuditError, Limits};
use crate::sort::{Cursor, Sorted, Sorter};
use crate::verdict::UnknownWhy;

pub(super) struct Joined<'a> {
    pub marks: Sorted<Mark>,
    pub produced: ProducedTally,
    /// Effects whose id no event has.
    pub unknown: UnknownTally,
    pub reach: Reach,
    /// First effects of events; more are to come.
    pub first_effects: Sorter<'a, FirstEffect>,
    /// Identities of several events that have effects by id: their order is not judged.
    pub shared_and_handled: u64,
}

pub(super) fn join<'a>(
    parts: &Parts<'_>,
    gathered: &Gathered,
    limits: &'a Limits,
) -> Result<Joined<'a>, AuditError> {
    let mut join = Join {
        parts,
        events: gathered.events_by_id.cursor()?,
        effects: gathered.effects_by_id.cursor()?,
        marks: limits.sorter(),
        twins: limits.sorter(),
        joined: Joined {
            marks: Sorted::InMemory(Vec::new()),
            produced: ProducedTally::default(),
            unknown: UnknownTally::default(),
            reach: Reach::new(parts),
            first_effects: limits.sorter(),
            shared_and_handled: 0,
        },
    };
    while let Some(hash) = join.next_identity() {
        join.identity(hash)?;
    }
    let Join { mut marks, twins, mut joined, .. } = join;
    absorb_twins(&twins.finish()?, gathered, limits, &mut marks)?;
    joined.marks = marks.finish()?;
    Ok(joined)
}

struct Join<'a, 'b> {
    parts: &'b Parts<'b>,
    events: Cursor<'b, IdEvent>,
    effects: Cursor<'b, IdEffect>,
    marks: Sorter<'a, Mark>,
    twins: Sorter<'a, Twin>,
    joined: Joined<'a>,
}

impl Join<'_, '_> {
    fn next_identity(&self) -> Option<IdHash> {
        let event = self.events.peek().map(|event| event.hash);
        let effect = self.effects.peek().map(|effect| effect.hash);
        match (event, effect) {
            (Some(event), Some(effect)) => Some(event.min(effect)),
            (one, other) => one.or(other),
        }
    }

    fn identity(&mut self, hash: IdHash) -> Result<(), AuditError> {
        let mut group = Group::default();
        while let Some(IdEvent { at, .. }) = self.events.next_if(|event| event.hash == hash)? {
            let more = self.events.peek().is_some_and(|event| event.hash == hash);
            let alone = group.events == 0 && !more;
            group.add_event(at);
            match self.effects.next_if(|effect| effect.hash == hash)? {
                Some(effect) => self.handled(&mut group, at, effect, alone)?,
                None if group.effects > 0 => self.mark(at, MarkKind::Absorbed, 0)?,
                None if !alone => self.twins.push(Twin { at, hash })?,
                None => {}
            }
        }
        self.surplus(hash, &group)?;
        if group.events > 1 {
            self.joined.produced.add(&group);
            self.joined.shared_and_handled += u64::from(group.effects > 0);
        }
        Ok(())
    }

    fn handled(
        &mut self,
        group: &mut Group,
        at: At,
        effect: IdEffect,
        alone: bool,
    ) -> Result<(), AuditError> {
        group.effects += 1;
        self.mark(at, MarkKind::Handled, 1)?;
        if alone {
            self.joined.first_effects.push(FirstEffect { seq: effect.seq, at, way: 1 })?;
            let index = self.parts.index_of(at.partition).expect("judged events have a known partition");
            self.joined.reach.raise(index, at.offset);
        }
        Ok(())
    }

    /// Effects that no event is left for.
    fn surplus(&mut self, hash: IdHash, group: &Group) -> Result<(), AuditError> {
        let Some(first) = self.effects.next_if(|effect| effect.hash == hash)? else { return Ok(()) };
        let mut times = 1;
        while self.effects.next_if(|effect| effect.hash == hash)?.is_some() {
            times += 1;
        }
        match group.first {
            Some(at) => self.mark(at, MarkKind::Surplus, times),
            None => {
                self.joined.unknown.add(first.seq, UnknownWhy::NoSuchId, None, times);
                Ok(())
            }
        }
    }

    fn mark(&mut self, at: At, kind: MarkKind, times: u64) -> Result<(), AuditError> {
        Ok(self.marks.push(Mark { at, kind, times })?)
    }
}

/// Events that share their identity, when effects name places: those without an effect are absorbed if another of the same
/// identity has one.
fn absorb_twins(
    twins: &Sorted<Twin>,
    gathered: &Gathered,
    limits: &Limits,
    marks: &mut Sorter<'_, Mark>,
) -> Result<(), AuditError> {
    if twins.is_empty() || gathered.effects_by_place.is_empty() {
        return Ok(());
    }
    let mut seen = limits.sorter();
    let mut twins = twins.cursor()?;
    let mut effects = gathered.effects_by_place.cursor()?;
    while let Some(Twin { at, hash }) = twins.next()? {
        while effects.next_if(|effect| effect.at < at)?.is_some() {}
        let without_effect = effects.peek().is_none_or(|effect| effect.at != at);
        seen.push(TwinSeen { hash, without_effect, at })?;
    }
    let seen = seen.finish()?;
    let mut seen = seen.cursor()?;
    let mut handled = None;
    while let Some(TwinSeen { hash, without_effect, at }) = seen.next()? {
        if !without_effect {
            handled = Some(hash);
        } else if handled == Some(hash) {
            marks.push(Mark { at, kind: MarkKind::Absorbed, times: 0 })?;
        }
    }
    Ok(())
}
