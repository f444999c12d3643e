//! Progress per partition and ownership: fetched ≥ handed out ≥ handled.
//!
//! What may be saved is the end of the contiguous handled prefix of what was *delivered*. The ledger keeps the offsets that
//! were delivered and are not passed yet, not a range of numbers: so no hole (a marker, a compacted offset) can hold it up
//! for ever, and no event in flight is ever passed because a later one finished first. Results of an ownership that has
//! ended are dropped and counted.

use std::collections::{BTreeMap, VecDeque};

use leftoff_wire::{Committed, Offset};

use crate::source::PartitionId;

#[cfg(test)]
mod tests;

/// The progress of all partitions that are owned.
#[derive(Debug, Default)]
pub struct Ledger {
    partitions: BTreeMap<PartitionId, Progress>,
    late: u64,
}

/// An event that was handed out: who gives it back gives the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Which partition.
    pub id: PartitionId,
    /// Under which assignment.
    pub ownership: u64,
    /// Which event.
    pub offset: Offset,
}

/// What a result did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// The prefix grew: this may be saved now.
    Advanced(Committed),
    /// An earlier event is not handled yet; nothing more may be saved than before.
    Waits {
        /// The first one that is not.
        for_offset: Offset,
    },
    /// The ownership has ended; the result was dropped.
    Late,
}

/// What a source delivered that it must not deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// An offset below the position, or not above the one before it.
    #[error("partition {id}: offset {offset} was delivered where {position} or a later one must follow")]
    Backwards {
        /// Which partition.
        id: PartitionId,
        /// What came.
        offset: Offset,
        /// The least that could have come.
        position: Offset,
    },
    /// More than may wait in memory.
    #[error("partition {id}: more than {MAX_OUTSTANDING} events were delivered and not handled")]
    TooMany {
        /// Which partition.
        id: PartitionId,
    },
}

/// The most events of a partition that may be fetched and not passed.
pub const MAX_OUTSTANDING: usize = 1 << 20;

#[derive(Debug)]
struct Progress {
    ownership: u64,
    /// Behind all that is delivered.
    position: Offset,
    /// The end of the handled prefix.
    committed: Committed,
    /// Delivered and not passed, in rising order; the first `handed_out` of them were handed out.
    window: VecDeque<Entry>,
    handed_out: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    offset: Offset,
    /// What may be saved when this one and all before it are handled.
    then: Committed,
    handled: bool,
}

impl Ledger {
    /// Nothing owned.
    pub fn new() -> Ledger {
        Ledger::default()
    }

    /// The partition is owned from now on, and read from `start`. What was known of it is dropped.
    pub fn assign(&mut self, id: PartitionId, ownership: u64, start: Committed) {
        let progress = Progress {
            ownership,
            position: start.next(),
            committed: start,
            window: VecDeque::new(),
            handed_out: 0,
        };
        self.partitions.insert(id, progress);
    }

    /// The ownership has ended. What is still to come of it is late.
    pub fn end(&mut self, id: PartitionId, ownership: u64) {
        if self.owns(id, ownership) {
            self.partitions.remove(&id);
        }
    }

    /// True if this is the ownership under which the partition is held now.
    pub fn owns(&self, id: PartitionId, ownership: u64) -> bool {
        self.partitions.get(&id).is_some_and(|p| p.ownership == ownership)
    }

    /// A batch was delivered: these offsets, and reading goes on at `next`. False, and nothing done, if the ownership has
    /// ended.
    ///
    /// # Errors
    /// If an offset is below the position or they do not rise. Nothing is changed then.
    pub fn fetched(
        &mut self,
        id: PartitionId,
        ownership: u64,
        offsets: impl Iterator<Item = Offset> + Clone,
        next: Offset,
    ) -> Result<bool, LedgerError> {
        let Some(progress) = self.partitions.get_mut(&id).filter(|p| p.ownership == ownership) else {
            return Ok(false);
        };
        let mut position = progress.position;
        let mut count = 0;
        for offset in offsets.clone() {
            if offset < position {
                return Err(LedgerError::Backwards { id, offset, position });
            }
            position = offset.next();
            count += 1;
        }
        if next < position {
            return Err(LedgerError::Backwards { id, offset: next, position });
        }
        if progress.window.len() + count > MAX_OUTSTANDING {
            return Err(LedgerError::TooMany { id });
        }
        let entries = offsets.map(|offset| Entry { offset, then: Committed::after(offset), handled: false });
        progress.window.extend(entries);
        progress.pass_to(next);
        Ok(true)
    }

    /// The next event to hand out, in offset order; `None` if all that is fetched is handed out.
    pub fn hand_out(&mut self, id: PartitionId) -> Option<Ticket> {
        let progress = self.partitions.get_mut(&id)?;
        let entry = progress.window.get(progress.handed_out)?;
        let ticket = Ticket { id, ownership: progress.ownership, offset: entry.offset };
        progress.handed_out += 1;
        Some(ticket)
    }

    /// An event that was handed out is handled. In any order.
    ///
    /// # Panics
    /// If it was not handed out, or is handled already: a promise of our own, broken.
    pub fn handled(&mut self, ticket: Ticket) -> Handled {
        let Some(progress) = self.partitions.get_mut(&ticket.id).filter(|p| p.ownership == ticket.ownership)
        else {
            self.late += 1;
            return Handled::Late;
        };
        progress.handled(ticket.offset)
    }

    /// What may be saved: everything delivered below it is handled. `None` if the partition is not owned.
    pub fn committed(&self, id: PartitionId) -> Option<Committed> {
        self.partitions.get(&id).map(|p| p.committed)
    }

    /// Where reading goes on. `None` if the partition is not owned.
    pub fn position(&self, id: PartitionId) -> Option<Offset> {
        self.partitions.get(&id).map(|p| p.position)
    }

    /// The first event that was handed out and is not handled: what the next save waits for.
    pub fn blocked_on(&self, id: PartitionId) -> Option<Offset> {
        let progress = self.partitions.get(&id).filter(|p| p.handed_out > 0)?;
        progress.window.front().map(|entry| entry.offset)
    }

    /// The first event that is fetched and not handled, handed out or not.
    pub fn first_open(&self, id: PartitionId) -> Option<Offset> {
        self.partitions.get(&id)?.window.front().map(|entry| entry.offset)
    }

    /// How many events of the partition are fetched and not passed, handled or not.
    pub fn outstanding(&self, id: PartitionId) -> usize {
        self.partitions.get(&id).map_or(0, |p| p.window.len())
    }

    /// How many results came when their ownership had ended.
    pub fn late(&self) -> u64 {
        self.late
    }
}

impl Progress {
    /// Behind what is delivered lie holes or markers up to `next`: they are passed with the last event before them, or at
    /// once if none is outstanding.
    fn pass_to(&mut self, next: Offset) {
        self.position = next;
        let then = Committed::end_of_batch(next);
        match self.window.back_mut() {
            Some(last) => last.then = then,
            None => self.committed = then,
        }
    }

    fn handled(&mut self, offset: Offset) -> Handled {
        let found = self.window.binary_search_by_key(&offset, |entry| entry.offset);
        let index = found.expect("a result is for an event that is outstanding");
        assert!(index < self.handed_out, "offset {offset} is handled and was not handed out");
        assert!(!self.window[index].handled, "offset {offset} is handled twice");
        self.window[index].handled = true;
        while let Some(first) = self.window.front().copied().filter(|first| first.handled) {
            self.window.pop_front();
            self.handed_out -= 1;
            self.committed = first.then;
        }
        match self.window.front() {
            Some(first) if first.offset < offset => Handled::Waits { for_offset: first.offset },
            _ => Handled::Advanced(self.committed),
        }
    }
}
