//! Finds the names of what was found, and says what the evidence does not allow to tell.

use super::AuditError;
use super::parts::Parts;
use super::records::At;
use super::tally::{Names, UnknownTally, clipped, range_name};
use super::walk::Walked;
use crate::input::{Effect, Evidence, LogEntry, Seen};
use crate::verdict::{PlaceRange, Verdict};

pub(super) fn finish(
    mut walked: Walked,
    parts: &Parts<'_>,
    evidence: &mut dyn Evidence,
    verdict: &mut Verdict,
) -> Result<(), AuditError> {
    verdict.cannot_tell = cannot_tell(&walked, parts, verdict);
    name_unknown(&mut walked.unknown, evidence)?;
    let ids = ids_of(wanted(&walked), evidence)?;
    let topic = parts.topic;
    verdict.lost = walked.lost.into_found(topic, &ids);
    verdict.handled_twice = walked.handled_twice.into_found(topic, &ids);
    verdict.repeated_by_decision = walked.repeated.into_found(topic, &ids);
    verdict.out_of_order = walked.out_of_order.into_found(topic, &ids);
    verdict.unfinished = walked.unfinished.into_found(topic, &ids);
    verdict.without_output = walked.without_output.into_found(topic, &ids);
    verdict.filtered = walked.filtered.into_found(topic, &ids);
    verdict.dead = walked.dead.into_found(topic, &ids);
    verdict.skipped = walked.skipped.into_found(topic, &ids);
    verdict.deleted_before_handling = walked.deleted.into_found(topic, &ids);
    verdict.absorbed = walked.absorbed.into_found(topic, &ids);
    verdict.produced_twice = walked.produced.into_produced(topic, &ids);
    verdict.unknown_effects = walked.unknown.into_unknown();
    Ok(())
}

/// The places that are to be named.
fn wanted(walked: &Walked) -> Names {
    let tallies = [
        &walked.lost,
        &walked.handled_twice,
        &walked.repeated,
        &walked.out_of_order,
        &walked.unfinished,
        &walked.without_output,
        &walked.filtered,
        &walked.dead,
        &walked.skipped,
        &walked.absorbed,
    ];
    let places = tallies.into_iter().flat_map(|tally| tally.places().iter().copied());
    places.chain(walked.produced.places()).map(|at| (at, None)).collect()
}

/// A second pass over the log, as far as needed.
fn ids_of(mut ids: Names, evidence: &mut dyn Evidence) -> Result<Names, AuditError> {
    let mut left = ids.len();
    if left == 0 {
        return Ok(ids);
    }
    for entry in evidence.log().map_err(AuditError::source("log"))? {
        let LogEntry::Event(event) = entry.map_err(AuditError::source("log"))? else { continue };
        if let Some(id) = ids.get_mut(&At { partition: event.partition, offset: event.offset }) {
            *id = event.id.as_deref().map(clipped);
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    Ok(ids)
}

/// A second pass over the effects, as far as needed.
fn name_unknown(unknown: &mut UnknownTally, evidence: &mut dyn Evidence) -> Result<(), AuditError> {
    let mut nameless = unknown.nameless();
    let Some(last) = nameless.keys().next_back().copied() else { return Ok(()) };
    for (seq, seen) in (0..=last).zip(evidence.effects().map_err(AuditError::source("effects"))?) {
        let seen = seen.map_err(AuditError::source("effects"))?;
        if let (Some(name), Seen::Item(Effect::ById(id))) = (nameless.remove(&seq), seen) {
            *name = Some(clipped(&id));
        }
    }
    if nameless.is_empty() { Ok(()) } else { Err(AuditError::Changed("effects")) }
}

fn cannot_tell(walked: &Walked, parts: &Parts<'_>, verdict: &Verdict) -> Vec<String> {
    let mut sentences = Vec::new();
    let gone = gone(parts);
    let no_such_id = walked.unknown.no_such_id();
    if !gone.is_empty() {
        sentences.push(format!("{} deleted from the log; whether all of it was handled", listed(&gone)));
    }
    if no_such_id > 0 && parts.facts().iter().any(|facts| facts.log_start > 0) {
        sentences.push(format!(
            "{no_such_id} effects have an id that no event has; whether their events were deleted or never there"
        ));
    }
    let unsaved =
        parts.facts().iter().filter(|facts| facts.saved_next.is_none() && facts.end > facts.log_start);
    let unsaved: Vec<String> =
        unsaved.map(|facts| format!("{}/{}", parts.topic, facts.partition)).take(NAMES_SHOWN + 1).collect();
    if !unsaved.is_empty() && walked.lost.count() + walked.unfinished.count() > 0 {
        sentences.push(format!(
            "no offset saved for {}; an event there is called lost only if a later one was handled",
            listed(&unsaved)
        ));
    }
    if walked.shared_and_handled > 0 {
        sentences.push(format!(
            "{} ids were produced more than once; which effect belongs to which event, and so their order",
            walked.shared_and_handled
        ));
    }
    if walked.named_both_ways > 0 {
        sentences.push(format!(
            "{} events have effects by place and by id; whether those are the same effect twice",
            walked.named_both_ways
        ));
    }
    if walked.called_deleted > 0 {
        sentences.push(format!(
            "{} events are noted as deleted and are in the log; they are judged as if nothing were noted",
            walked.called_deleted
        ));
    }
    if verdict.unreadable_lines.count > 0 {
        sentences.push(format!(
            "{} lines are unreadable; whether they stand for events that seem lost or unfinished",
            verdict.unreadable_lines.count
        ));
    }
    sentences
}

/// How many names a sentence lists.
const NAMES_SHOWN: usize = 5;

fn listed(names: &[String]) -> String {
    let shown = &names[..names.len().min(NAMES_SHOWN)];
    let more = if names.len() > NAMES_SHOWN { " and more" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// What the group had passed before it was deleted, or may have.
fn gone(parts: &Parts<'_>) -> Vec<String> {
    let ranges = parts.facts().iter().filter_map(|facts| {
        let to = facts.saved_next.unwrap_or(facts.log_start).min(facts.log_start) - 1;
        (to >= 0).then_some(PlaceRange { partition: facts.partition, from: 0, to })
    });
    ranges.map(|range| range_name(parts.topic, range)).take(NAMES_SHOWN + 1).collect()
}
