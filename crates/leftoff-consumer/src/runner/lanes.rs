//! Events that are fetched and not done, in lanes: those of one lane are handled one after the other, in offset order;
//! lanes take turns. An event that waits for another attempt holds up its lane, and no other.
//!
//! What a lane is says [`Order`]: a partition, the events of a partition with the same key, or each event. With a pipeline a
//! worker may have several events of a lane, in order; no other worker has one of it meanwhile. Each failure begins a new
//! *round* of its lane: answers for events of the lane that were handed out before it count no more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use leftoff_wire::Offset;

use super::Order;
use super::policy::Tries;
use crate::ledger::Ticket;
use crate::source::{Event, PartitionId};

#[cfg(test)]
mod tests;

/// An event on its way to a handler.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) ticket: Ticket,
    pub(super) event: Event,
    pub(super) tries: Tries,
    /// Which part of the partition it is handled in order with.
    lane: u64,
    /// The round of its lane in which it was handed out.
    round: u64,
    /// What tells the event from others, where that is asked for.
    pub(super) event_id: Option<Vec<u8>>,
}

impl Work {
    pub(super) fn new(ticket: Ticket, event: Event, tries: Tries, order: Order) -> Work {
        let lane = match order {
            Order::Partition => 0,
            Order::Key => match &event.key {
                Some(key) => BuildHasherDefault::<DefaultHasher>::default().hash_one(key) | 1,
                // Twice the offset is even, so it is nobody's key.
                None => offset_as_lane(&event),
            },
            Order::None => offset_as_lane(&event),
        };
        Work { ticket, event, tries, lane, round: 0, event_id: None }
    }

    /// True if both are handled one after the other.
    pub(super) fn shares_lane_with(&self, other: &Work) -> bool {
        self.lane_id() == other.lane_id()
    }

    fn lane_id(&self) -> LaneId {
        LaneId { id: self.ticket.id, ownership: self.ticket.ownership, lane: self.lane }
    }
}

fn offset_as_lane(event: &Event) -> u64 {
    event.offset.get().unsigned_abs() << 1
}

/// What is handled one after the other, for as long as its partition is owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LaneId {
    id: PartitionId,
    ownership: u64,
    lane: u64,
}

#[derive(Debug, Default)]
struct Lane {
    /// So many of it are in a worker's hands: taken, and neither finished nor back.
    in_hand: usize,
    /// So many of these were handed out in an earlier round: before they are back, what comes next is not known.
    stale: usize,
    /// Whose.
    worker: usize,
    /// It stands in a queue of lanes whose turn it will be.
    is_queued: bool,
    /// Until when the first one waits for another attempt.
    due: Option<Duration>,
    round: u64,
    /// In offset order.
    queue: VecDeque<Work>,
    bytes: usize,
}

impl Lane {
    fn can_be_taken(&self) -> bool {
        !self.is_queued && self.due.is_none() && self.stale == 0 && !self.queue.is_empty()
    }
}

/// All lanes.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: BTreeMap<LaneId, Lane>,
    /// Lanes that no worker has anything of, in the order of their turns.
    free: VecDeque<LaneId>,
    /// For each worker: lanes that it has something of, and may have more.
    of_worker: Vec<VecDeque<LaneId>>,
    /// Lanes of partitions of which too much waits for an unfinished event: only that one is taken.
    parked: BTreeMap<PartitionId, VecDeque<LaneId>>,
    /// Those whose first event waits for another attempt.
    waiting: BTreeSet<(Duration, LaneId)>,
    events: usize,
    bytes: usize,
    events_of: BTreeMap<PartitionId, usize>,
}

impl Lanes {
    pub(super) fn new(workers: usize) -> Lanes {
        Lanes {
            lanes: BTreeMap::new(),
            free: VecDeque::new(),
            of_worker: vec![VecDeque::new(); workers],
            parked: BTreeMap::new(),
            waiting: BTreeSet::new(),
            events: 0,
            bytes: 0,
            events_of: BTreeMap::new(),
        }
    }

    /// Behind all others of its lane.
    pub(super) fn push(&mut self, work: Work) {
        let lane_id = work.lane_id();
        self.count_in(&work);
        self.lanes.entry(lane_id).or_default().queue.push_back(work);
        self.queue_up(lane_id);
    }

    /// The next event whose turn it is for a worker. It comes back with [`Lanes::finished`] or [`Lanes::again`].
    pub(super) fn take(&mut self, worker: usize, now: impl FnOnce() -> Duration) -> Option<Work> {
        self.wake(now);
        let lane_id = self.of_worker[worker].pop_front().or_else(|| self.free.pop_front())?;
        Some(self.take_from(lane_id, worker))
    }

    /// This event, if it can be taken, even of a partition that is parked.
    pub(super) fn take_exactly(
        &mut self,
        worker: usize,
        (id, offset): (PartitionId, Offset),
        now: impl FnOnce() -> Duration,
    ) -> Option<Work> {
        self.wake(now);
        let is_it = |lane: &Lane| {
            let first = lane.queue.front().is_some_and(|work| work.event.offset == offset);
            first && lane.is_queued && (lane.in_hand == 0 || lane.worker == worker)
        };
        let from = LaneId { id, ownership: 0, lane: 0 };
        let of_partition = self.lanes.range(from..).take_while(|(lane_id, _)| lane_id.id == id);
        let lane_id = of_partition.filter(|(_, lane)| is_it(lane)).map(|(lane_id, _)| *lane_id).next()?;
        self.unqueue(lane_id);
        Some(self.take_from(lane_id, worker))
    }

    fn take_from(&mut self, lane_id: LaneId, worker: usize) -> Work {
        let lane = self.lanes.get_mut(&lane_id).expect("a lane that is queued exists");
        let mut work = lane.queue.pop_front().expect("a lane that is queued has an event");
        work.round = lane.round;
        (lane.is_queued, lane.worker) = (false, worker);
        lane.in_hand += 1;
        self.count_out(lane_id, &work);
        self.queue_up(lane_id);
        work
    }

    /// Too much waits for an unfinished event of this partition: of the others none is taken.
    pub(super) fn park(&mut self, id: PartitionId) {
        if self.parked.contains_key(&id) {
            return;
        }
        let mut parked = VecDeque::new();
        for queue in self.of_worker.iter_mut().chain([&mut self.free]) {
            parked.extend(queue.iter().copied().filter(|lane| lane.id == id));
            queue.retain(|lane| lane.id != id);
        }
        self.parked.insert(id, parked);
    }

    pub(super) fn unpark(&mut self, id: PartitionId) {
        for lane_id in self.parked.remove(&id).unwrap_or_default() {
            self.lanes.get_mut(&lane_id).expect("a lane that is queued exists").is_queued = false;
            self.queue_up(lane_id);
        }
    }

    /// Takes a lane out of the queue that it stands in.
    fn unqueue(&mut self, lane_id: LaneId) {
        let lane = self.lanes.get_mut(&lane_id).expect("the caller has just touched it");
        if std::mem::take(&mut lane.is_queued) {
            let queue = match self.parked.get_mut(&lane_id.id) {
                Some(parked) => parked,
                None if lane.in_hand > 0 => &mut self.of_worker[lane.worker],
                None => &mut self.free,
            };
            queue.retain(|queued| *queued != lane_id);
        }
    }

    fn wake(&mut self, now: impl FnOnce() -> Duration) {
        if self.waiting.is_empty() {
            return;
        }
        let now = now();
        while let Some((_, lane_id)) = self.waiting.first().copied().filter(|(due, _)| *due <= now) {
            self.waiting.pop_first();
            self.lanes.get_mut(&lane_id).expect("a lane that waits exists").due = None;
            self.queue_up(lane_id);
        }
    }

    fn queue_up(&mut self, lane_id: LaneId) {
        let lane = self.lanes.get_mut(&lane_id).expect("the caller has just touched it");
        if lane.can_be_taken() {
            lane.is_queued = true;
            let queue = match self.parked.get_mut(&lane_id.id) {
                Some(parked) => parked,
                None if lane.in_hand > 0 => &mut self.of_worker[lane.worker],
                None => &mut self.free,
            };
            queue.push_back(lane_id);
        }
    }

    /// True if an answer for this event counts: nothing of its lane before it has failed since it was handed out.
    pub(super) fn is_current(&self, work: &Work) -> bool {
        self.lanes.get(&work.lane_id()).is_some_and(|lane| lane.round == work.round)
    }

    /// An event that was taken is done with its worker; the next ones of its lane can be taken. Nothing, if the lane is gone.
    pub(super) fn finished(&mut self, work: &Work) {
        let lane_id = work.lane_id();
        let Some(lane) = self.lanes.get(&lane_id) else { return };
        if lane.queue.is_empty() && lane.in_hand == 1 {
            self.lanes.remove(&lane_id);
        } else {
            self.out_of_hand(work.round, lane_id);
            self.queue_up(lane_id);
        }
    }

    /// What was handed out of the lane of an event that has failed for good comes again before what follows it.
    pub(super) fn given_up(&mut self, work: &Work) {
        let lane_id = work.lane_id();
        if self.lanes.contains_key(&lane_id) {
            self.out_of_hand(work.round, lane_id);
            self.unqueue(lane_id);
            self.begin_round(lane_id);
            self.queue_up(lane_id);
            let lane = &self.lanes[&lane_id];
            if lane.queue.is_empty() && lane.in_hand == 0 {
                self.lanes.remove(&lane_id);
            }
        }
    }

    /// Its worker has lost an event, through no fault of that: it comes again, and with it what was handed out behind it.
    pub(super) fn returned(&mut self, work: Work) {
        let (lane_id, is_current) = (work.lane_id(), self.is_current(&work));
        self.again(work, None);
        if is_current {
            self.unqueue(lane_id);
            self.begin_round(lane_id);
            self.queue_up(lane_id);
        }
    }

    fn begin_round(&mut self, lane_id: LaneId) {
        let lane = self.lanes.get_mut(&lane_id).expect("the caller has just touched it");
        lane.round += 1;
        lane.stale = lane.in_hand;
    }

    /// Without an event in hand a lane is any worker's.
    fn out_of_hand(&mut self, round: u64, lane_id: LaneId) {
        if self.lanes[&lane_id].in_hand == 1 {
            self.unqueue(lane_id);
        }
        let lane = self.lanes.get_mut(&lane_id).expect("it was found a moment ago");
        lane.in_hand -= 1;
        if round < lane.round {
            lane.stale -= 1;
        }
    }

    /// An event that was taken comes again, before those of its lane that follow it. `due`: not before then; and what was
    /// handed out of its lane comes again, too.
    pub(super) fn again(&mut self, work: Work, due: Option<Duration>) {
        let lane_id = work.lane_id();
        if !self.lanes.contains_key(&lane_id) {
            return;
        }
        self.out_of_hand(work.round, lane_id);
        self.put_back(work);
        match due {
            Some(due) => self.hold_up(lane_id, due),
            None => self.queue_up(lane_id),
        }
    }

    /// An event that was [finished](Lanes::finished) is to be handled again after all, since one before it failed.
    pub(super) fn reopen(&mut self, work: Work) {
        let lane_id = work.lane_id();
        self.lanes.entry(lane_id).or_default();
        self.put_back(work);
        self.queue_up(lane_id);
    }

    /// An event that was [finished](Lanes::finished) has failed after all.
    pub(super) fn reopen_later(&mut self, work: Work, due: Duration) {
        let lane_id = work.lane_id();
        self.lanes.entry(lane_id).or_default();
        self.put_back(work);
        self.hold_up(lane_id, due);
    }

    /// Begins a new round of the lane, at `due`.
    fn hold_up(&mut self, lane_id: LaneId, due: Duration) {
        self.unqueue(lane_id);
        self.begin_round(lane_id);
        let lane = self.lanes.get_mut(&lane_id).expect("the caller has just touched it");
        if let Some(other) = lane.due.replace(due) {
            self.waiting.remove(&(other, lane_id));
        }
        self.waiting.insert((due, lane_id));
    }

    fn put_back(&mut self, work: Work) {
        self.count_in(&work);
        let lane = self.lanes.get_mut(&work.lane_id()).expect("the caller has just touched it");
        let at = lane.queue.partition_point(|other| other.event.offset < work.event.offset);
        lane.queue.insert(at, work);
    }

    /// Forgets a partition, what is taken of it too.
    pub(super) fn drop_partition(&mut self, id: PartitionId) {
        let dropped: Vec<LaneId> = self.lanes.keys().copied().filter(|lane| lane.id == id).collect();
        for lane_id in dropped {
            let lane = self.lanes.remove(&lane_id).expect("its key was just found");
            self.events -= lane.queue.len();
            self.bytes -= lane.bytes;
            if let Some(due) = lane.due {
                self.waiting.remove(&(due, lane_id));
            }
        }
        self.unlist(id);
    }

    /// Forgets the events of a partition that are in nobody's hands.
    pub(super) fn drop_queued(&mut self, id: PartitionId) {
        let lanes: Vec<LaneId> = self.lanes.keys().copied().filter(|lane| lane.id == id).collect();
        for lane_id in lanes {
            let lane = self.lanes.get_mut(&lane_id).expect("its key was just found");
            self.events -= lane.queue.len();
            self.bytes -= lane.bytes;
            if let Some(due) = lane.due.take() {
                self.waiting.remove(&(due, lane_id));
            }
            (lane.is_queued, lane.bytes) = (false, 0);
            lane.queue.clear();
            if lane.in_hand == 0 {
                self.lanes.remove(&lane_id);
            }
        }
        self.unlist(id);
    }

    fn unlist(&mut self, id: PartitionId) {
        self.parked.remove(&id);
        self.events_of.remove(&id);
        self.free.retain(|queued| queued.id != id);
        self.of_worker.iter_mut().for_each(|queue| queue.retain(|queued| queued.id != id));
    }

    /// When the first event that waits for another attempt is to be taken.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.waiting.first().map(|(due, _)| *due)
    }

    /// True if nothing is in a lane and nothing is taken.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// How many events are in lanes, and about how many bytes they take.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.events, self.bytes)
    }

    /// How many events of a partition are in lanes.
    pub(super) fn events_of(&self, id: PartitionId) -> usize {
        self.events_of.get(&id).copied().unwrap_or(0)
    }

    fn count_in(&mut self, work: &Work) {
        let size = size_bytes(&work.event);
        self.events += 1;
        self.bytes += size;
        self.lanes.entry(work.lane_id()).or_default().bytes += size;
        *self.events_of.entry(work.ticket.id).or_default() += 1;
    }

    fn count_out(&mut self, lane_id: LaneId, work: &Work) {
        let size = size_bytes(&work.event);
        self.events -= 1;
        self.bytes -= size;
        self.lanes.get_mut(&lane_id).expect("the caller has just touched it").bytes -= size;
        *self.events_of.get_mut(&lane_id.id).expect("it was counted in") -= 1;
    }
}

/// About what an event takes in memory.
pub(super) fn size_bytes(event: &Event) -> usize {
    let of = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
    let headers: usize = event.headers.iter().map(|(name, value)| name.len() + of(value)).sum();
    std::mem::size_of::<Work>() + of(&event.key) + of(&event.value) + headers
}
