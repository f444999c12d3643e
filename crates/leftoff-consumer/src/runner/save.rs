//! When what is handled is saved: first in the sink, with its outputs; then in the group, never ahead of the sink.

use std::time::Duration;

use super::{RunError, Runner, SavePolicy, StopReason};
use crate::crash_point;
use crate::sink::{Move, Outcome, Output, SinkError, Written};
use crate::source::{Decision, PartitionId, Save, SourceError};

/// The most bytes of records that wait for a save; more makes one, whatever the policy says.
const MAX_UNSAVED_BYTES: usize = 8 << 20;
/// The most events that wait for a save.
const MAX_UNSAVED_EVENTS: usize = 100_000;

/// Outcomes that are not in the sink yet, in the order they came.
pub(super) struct Unsaved {
    outputs: Vec<Output>,
    bytes: usize,
    /// When the last save was, or the oldest outcome came.
    since: Duration,
}

impl Unsaved {
    pub(super) fn new(now: Duration) -> Unsaved {
        Unsaved { outputs: Vec::new(), bytes: 0, since: now }
    }

    pub(super) fn push(&mut self, output: Output) {
        if let Outcome::Handled { records } = &output.outcome {
            self.bytes += records.iter().map(|record| record.json().len()).sum::<usize>();
        }
        self.outputs.push(output);
    }

    /// Returns how many were dropped.
    pub(super) fn drop_partition(&mut self, id: PartitionId) -> u64 {
        let before = self.outputs.len();
        self.outputs.retain(|output| output.id != id);
        (before - self.outputs.len()) as u64
    }

    pub(super) fn len(&self) -> usize {
        self.outputs.len()
    }

    fn is_full(&self) -> bool {
        self.bytes >= MAX_UNSAVED_BYTES || self.outputs.len() >= MAX_UNSAVED_EVENTS
    }

    fn is_due(&self, policy: SavePolicy, now: Duration) -> bool {
        self.is_full()
            || match policy {
                SavePolicy::EveryEvent => true,
                SavePolicy::Events(count) => self.outputs.len() as u64 >= count.get(),
                SavePolicy::Every(period) => now.saturating_sub(self.since) >= period,
                SavePolicy::AtStop => false,
            }
    }
}

impl Runner<'_> {
    pub(super) fn save_if_due(&mut self, now: Duration) -> Result<(), RunError> {
        let policy = if self.careful_events > 0 { SavePolicy::EveryEvent } else { self.options.save };
        if self.sink.is_home() && self.unsaved.is_due(policy, now) { self.save_meanwhile() } else { Ok(()) }
    }

    /// Nothing to handle: a good moment, unless saves were asked for at the stop only.
    pub(super) fn save_if_idle(&mut self) -> Result<(), RunError> {
        match self.options.save {
            SavePolicy::AtStop => Ok(()),
            SavePolicy::EveryEvent | SavePolicy::Events(_) | SavePolicy::Every(_) if self.sink.is_home() => {
                self.save_meanwhile()
            }
            SavePolicy::EveryEvent | SavePolicy::Events(_) | SavePolicy::Every(_) => Ok(()),
        }
    }

    /// A decision is saved at once, everywhere; a start without one only where the sink has nothing yet.
    pub(super) fn save_decision(&mut self, id: PartitionId) -> Result<(), RunError> {
        let held = self.partitions.held(id);
        if held.decision.is_none() && held.saved.is_some() {
            return Ok(());
        }
        self.save()?;
        self.mirror()
    }

    /// What the group is to know of attempts, if it does not yet.
    pub(super) fn mirror_words(&mut self, id: PartitionId) -> Result<(), RunError> {
        let held = self.partitions.held(id);
        if held.tried.encode() == held.mirrored_words { Ok(()) } else { self.mirror() }
    }

    /// Everything handled goes into the sink with the offset behind it, in one step; returns when it is there.
    pub(super) fn save(&mut self) -> Result<(), RunError> {
        self.bring_sink_home()?;
        let Some(moves) = self.moves_to_save() else { return Ok(()) };
        crash_point::pass("sink-before");
        let written = self.sink.home().write(&self.unsaved.outputs, &moves);
        crash_point::pass("sink-after");
        self.unsaved = Unsaved::new(self.clock.now());
        self.saved(moves, written, None)
    }

    /// The same, but events are handled meanwhile, if there is anybody who could.
    fn save_meanwhile(&mut self) -> Result<(), RunError> {
        let Some(saver) = &self.saver else { return self.save() };
        let Some(moves) = self.moves_to_save() else { return Ok(()) };
        let unsaved = std::mem::replace(&mut self.unsaved, Unsaved::new(self.clock.now()));
        self.saving = unsaved.len();
        let saves = if saver.saves_group && !self.authority { self.saves_with(&moves) } else { None };
        saver.write(&mut self.sink, unsaved.outputs, moves, saves);
        Ok(())
    }

    /// What the group is to have behind these moves. `None` where a decision is to be told: that is saved by itself.
    fn saves_with(&self, moves: &[Move]) -> Option<Vec<Save>> {
        let save = |m: &Move| {
            let held = self.partitions.get(m.id)?;
            let is_plain = held.decision.is_none() && held.passed_by.is_none();
            is_plain.then(|| Save {
                id: m.id,
                ownership: held.ownership,
                committed: m.next,
                leader_epoch: m.leader_epoch,
                metadata: held.tried.encode(),
                decision: None,
                dead: None,
            })
        };
        moves.iter().map(save).collect()
    }

    fn moves_to_save(&self) -> Option<Vec<Move>> {
        let moves: Vec<Move> = self.moves().collect();
        assert!(!moves.is_empty() || self.unsaved.outputs.is_empty(), "an outcome moves its partition");
        (!moves.is_empty()).then_some(moves)
    }

    /// What came of a write.
    pub(super) fn saved(
        &mut self,
        moves: Vec<Move>,
        written: Result<Written, SinkError>,
        in_group: Option<(Vec<Save>, Result<(), SourceError>)>,
    ) -> Result<(), RunError> {
        self.saving = 0;
        match written? {
            Written::Written => {}
            Written::Fenced { id } => {
                return Err(RunError::Fenced { id, place: self.sink.home().place() });
            }
        }
        for Move { id, next, .. } in moves {
            // It may have been taken away while it was saved.
            if self.partitions.get(id).is_some() {
                self.partitions.held(id).saved = Some(next);
            }
        }
        self.report.saves += 1;
        self.last_save = self.clock.now();
        match in_group {
            None => {}
            Some((saves, Ok(()))) => self.saved_in_group(saves),
            Some((saves, Err(error))) => self.lost_while_saving(&saves, error)?,
        }
        if self.authority { Ok(()) } else { self.mirror() }
    }

    fn moves(&self) -> impl Iterator<Item = Move> {
        self.partitions.iter().filter_map(|(id, held)| {
            let next = self.ledger.committed(id).expect("a held partition is in the ledger");
            let (expected, leader_epoch) = (held.saved, held.leader_epoch);
            let skips = held.decision.as_ref().and_then(Decision::skips);
            let mark = held.mark;
            (expected != Some(next)).then_some(Move { id, expected, next, leader_epoch, skips, mark })
        })
    }

    pub(super) fn mirror_if_due(&mut self, now: Duration) -> Result<(), RunError> {
        // A sink in the same directory is not disturbed while it writes.
        let is_due = now.saturating_sub(self.last_mirror) >= self.options.mirror_every;
        if is_due && self.sink.is_home() { self.mirror() } else { Ok(()) }
    }

    /// The group gets what the sink has, no more. Where nobody else keeps the offset, a save under way is waited for: it moves
    /// the group's offset, and what is known of that here would move it back.
    pub(super) fn mirror(&mut self) -> Result<(), RunError> {
        if !self.authority {
            self.bring_sink_home()?;
        }
        self.last_mirror = self.clock.now();
        loop {
            let saves: Vec<Save> = self.behind().collect();
            if saves.is_empty() {
                return Ok(());
            }
            crash_point::pass("group-before");
            match self.source.save(&saves) {
                Ok(()) => {
                    crash_point::pass("group-after");
                    self.saved_in_group(saves);
                    return Ok(());
                }
                Err(error) => self.lost_while_saving(&saves, error)?,
            }
        }
    }

    fn saved_in_group(&mut self, saves: Vec<Save>) {
        for save in saves {
            // It may have been taken away while it was saved.
            if self.partitions.get(save.id).is_none() {
                continue;
            }
            let held = self.partitions.held(save.id);
            held.mirrored = Some(save.committed);
            held.mirrored_words = save.metadata;
            if save.decision.is_some() {
                held.decision = None;
                held.passed_by = None;
                held.dead = None;
            }
        }
    }

    /// A partition whose assignment has ended: its next owner goes on from what was saved before; the others are tried again
    /// without it.
    fn lost_while_saving(&mut self, saves: &[Save], error: SourceError) -> Result<(), RunError> {
        match error {
            SourceError::Ended(id) if saves.iter().any(|save| save.id == id) => {
                if let Some(ownership) = self.partitions.get(id).map(|held| held.ownership) {
                    self.lost(id, ownership);
                }
                Ok(())
            }
            error => Err(error.into()),
        }
    }

    /// The partitions whose group offset is not what is saved.
    fn behind(&self) -> impl Iterator<Item = Save> {
        self.partitions.iter().filter(|(_, held)| held.is_ahead_of_the_group()).filter_map(|(id, held)| {
            Some(Save {
                id,
                ownership: held.ownership,
                committed: held.saved?,
                leader_epoch: held.leader_epoch,
                metadata: held.tried.encode(),
                decision: held.decision.clone().or_else(|| held.passed_by.clone()),
                dead: held.dead.clone(),
            })
        })
    }

    /// At the end of a run: what is handled is saved, unless the sink or the group is what failed.
    pub(super) fn save_the_rest(
        &mut self,
        ended: Result<StopReason, RunError>,
    ) -> Result<StopReason, RunError> {
        let saved = match &ended {
            Err(RunError::Sink(_) | RunError::Fenced { .. }) => return ended,
            // The sink can take its part where it has authority; without it the outputs would come twice.
            Err(RunError::Source(_)) if self.authority => self.save(),
            Err(RunError::Source(_)) => return ended,
            Ok(_)
            | Err(
                RunError::Refused(_)
                | RunError::HandlerStart(_)
                | RunError::HandlerIdle(_)
                | RunError::HandlerFailed(_)
                | RunError::BadSource(_),
            ) => self.save().and_then(|()| self.mirror()),
        };
        match (ended, saved) {
            (ended, Ok(())) => ended,
            (Ok(_), Err(error)) => Err(error),
            // Both matter; that the work before the failure could not be saved matters more.
            (Err(first), Err(error)) => {
                self.notice(first.to_string());
                Err(error)
            }
        }
    }
}
