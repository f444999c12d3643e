//! One pass over each source; what is read is sorted, so that it can be compared without holding it in memory.

use std::collections::HashMap;

use super::parts::Parts;
use super::records::{At, IdEffect, IdEvent, IdHasher, OutcomeRange, PlaceEffect};
use super::tally::{UnknownTally, clipped};
use super::{AuditError, Limits};
use crate::input::{Effect, Evidence, LogEntry, LogEvent, Outcome, Seen};
use crate::sort::Sorted;
use crate::verdict::{Line, UnknownWhy, Verdict};

pub(super) struct Gathered {
    pub effects_by_place: Sorted<PlaceEffect>,
    pub effects_by_id: Sorted<IdEffect>,
    pub outcomes: Sorted<OutcomeRange>,
    pub events: Sorted<At>,
    pub events_by_id: Sorted<IdEvent>,
    pub unknown: UnknownTally,
    /// No effect by place came after one of a higher offset, so their order need not be looked at.
    pub places_rise: bool,
}

pub(super) fn gather(
    parts: &Parts<'_>,
    hasher: &IdHasher,
    limits: &Limits,
    evidence: &mut dyn Evidence,
    verdict: &mut Verdict,
) -> Result<Gathered, AuditError> {
    let effects = gather_effects(hasher, limits, evidence, verdict)?;
    let outcomes = gather_outcomes(limits, evidence, verdict)?;
    let (events, events_by_id) = gather_log(parts, hasher, limits, evidence, verdict)?;
    Ok(Gathered {
        effects_by_place: effects.by_place,
        effects_by_id: effects.by_id,
        outcomes,
        events,
        events_by_id,
        unknown: effects.unknown,
        places_rise: effects.places_rise,
    })
}

struct GatheredEffects {
    by_place: Sorted<PlaceEffect>,
    by_id: Sorted<IdEffect>,
    unknown: UnknownTally,
    places_rise: bool,
}

fn gather_effects(
    hasher: &IdHasher,
    limits: &Limits,
    evidence: &mut dyn Evidence,
    verdict: &mut Verdict,
) -> Result<GatheredEffects, AuditError> {
    let mut by_place = limits.sorter();
    let mut by_id = limits.sorter();
    let mut unknown = UnknownTally::default();
    let mut highest = Highest::default();
    let stream = evidence.effects().map_err(AuditError::source("effects"))?;
    for (seq, seen) in (0..).zip(stream) {
        let seen = seen.map_err(AuditError::source("effects"))?;
        let Some(effect) = item_of("effects", seen, verdict) else { continue };
        verdict.effects += 1;
        match effect {
            Effect::ByPlace { partition, offset, n } => {
                let at = At { partition, offset };
                highest.see(at);
                by_place.push(PlaceEffect { at, n, seq })?;
            }
            Effect::ById(id) => by_id.push(IdEffect { hash: hasher.hash(&id), seq })?,
            Effect::OtherTopic(place) => unknown.add(seq, UnknownWhy::OtherTopic, Some(clipped(&place)), 1),
        }
    }
    Ok(GatheredEffects {
        by_place: by_place.finish()?,
        by_id: by_id.finish()?,
        unknown,
        places_rise: !highest.fell,
    })
}

/// How many partitions of effects are watched for falling offsets; effects can name any number of partitions.
const PARTITIONS_WATCHED: usize = 100_000;

/// Whether the offsets of a partition ever fell.
#[derive(Default)]
struct Highest {
    offsets: HashMap<u32, i64>,
    fell: bool,
}

impl Highest {
    fn see(&mut self, at: At) {
        if self.fell {
            return;
        }
        let highest = self.offsets.entry(at.partition).or_insert(at.offset);
        self.fell = at.offset < *highest;
        *highest = at.offset;
        self.fell |= self.offsets.len() > PARTITIONS_WATCHED;
    }
}

fn gather_outcomes(
    limits: &Limits,
    evidence: &mut dyn Evidence,
    verdict: &mut Verdict,
) -> Result<Sorted<OutcomeRange>, AuditError> {
    let mut outcomes = limits.sorter();
    let stream = evidence.outcomes().map_err(AuditError::source("outcomes"))?;
    for seen in stream {
        let seen = seen.map_err(AuditError::source("outcomes"))?;
        let Some(Outcome { partition, from, to, kind }) = item_of("outcomes", seen, verdict) else {
            continue;
        };
        if from <= to {
            outcomes.push(OutcomeRange { from: At { partition, offset: from }, to, kind })?;
        }
    }
    Ok(outcomes.finish()?)
}

/// An item, or none after the line in its place has been noted.
fn item_of<T>(source: &'static str, seen: Seen<T>, verdict: &mut Verdict) -> Option<T> {
    match seen {
        Seen::Item(item) => Some(item),
        Seen::Torn { line } => {
            let why = "its end is missing".to_owned();
            verdict.torn_lines.push(Line { source, line, why });
            None
        }
        Seen::Unreadable { line, why } => {
            verdict.unreadable_lines.push(Line { source, line, why: clipped(&why) });
            None
        }
    }
}

fn gather_log(
    parts: &Parts<'_>,
    hasher: &IdHasher,
    limits: &Limits,
    evidence: &mut dyn Evidence,
    verdict: &mut Verdict,
) -> Result<(Sorted<At>, Sorted<IdEvent>), AuditError> {
    let mut events = limits.sorter();
    let mut events_by_id = limits.sorter();
    for entry in evidence.log().map_err(AuditError::source("log"))? {
        match entry.map_err(AuditError::source("log"))? {
            LogEntry::Event(LogEvent { partition, offset, id }) => {
                let at = At { partition, offset };
                if parts.judges(at)? {
                    events.push(at)?;
                    if let Some(id) = id {
                        events_by_id.push(IdEvent { hash: hasher.hash(&id), at })?;
                    }
                }
            }
            LogEntry::Aborted { partition, offset } => {
                verdict.aborted += u64::from(parts.judges(At { partition, offset })?);
            }
            LogEntry::Marker { .. } => {}
        }
    }
    Ok((events.finish()?, events_by_id.finish()?))
}
