//! Handlers side by side and with several events at a time, in every order that the threads and a seed make of it: what is in
//! the sink is the contiguous prefix of what was handled, each event once, however a run ends; and the next run goes on there.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use crate::handler::Delivery;
use crate::sink::{MatrixRow, Move, Outcome, Output, Promise};
use crate::source::GroupSaver;

const PARTITIONS: i32 = 3;
const EVENTS: i64 = 40;

/// A run, as a proptest makes it up.
#[derive(Clone, Debug)]
struct Plan {
    order: Order,
    workers: usize,
    depth: usize,
    save: SavePolicy,
    authority: bool,
    /// Events whose first attempt fails.
    fail_once: BTreeSet<(i32, i64)>,
    /// Events whose records the sink refuses once.
    refuse_once: BTreeSet<(i32, i64)>,
    /// Events that are given up.
    fail_always: BTreeSet<(i32, i64)>,
    /// The runs before ended without progress: one event at a time is handed out.
    careful: bool,
    /// The handler ends the run at its event of this number.
    stops_at: Option<usize>,
    seed: u64,
}

/// What outlives a run: the sink, the group, and what handlers did.
#[derive(Default)]
struct World {
    written: BTreeMap<PartitionId, Vec<(i64, &'static str)>>,
    stands: BTreeMap<PartitionId, Committed>,
    in_group: BTreeMap<PartitionId, Committed>,
    refused: BTreeSet<(i32, i64)>,
    attempts: BTreeMap<(i32, i64), u32>,
    handled: usize,
    /// When each event was begun for the last time, counted.
    begun: BTreeMap<(i32, i64), u64>,
    begins: u64,
    /// The same of the event that was written last.
    last_begun: BTreeMap<PartitionId, u64>,
    /// Events that handlers have at this moment, by lane.
    in_hand: Vec<(i32, i64)>,
    broken_order: Vec<String>,
}

type Shared = Arc<Mutex<World>>;

struct KeepSink {
    world: Shared,
    plan: Plan,
}

impl Sink for KeepSink {
    fn claim(&mut self, partitions: &[ClaimPartition]) -> Result<Claimed, SinkError> {
        let world = self.world.lock().unwrap();
        let next = partitions.iter().map(|claim| (claim.id, world.stands.get(&claim.id).copied())).collect();
        Ok(Claimed { authority: self.plan.authority, next, ..Claimed::default() })
    }

    fn check(&self, output: &Output) -> Result<(), crate::sink::BadRecord> {
        let place = (output.id.partition, output.offset.get());
        let is_bad =
            self.plan.refuse_once.contains(&place) && matches!(output.outcome, Outcome::Handled { .. });
        if is_bad && self.world.lock().unwrap().refused.insert(place) {
            return Err(crate::sink::BadRecord { number: 0, why: "not yet".to_owned() });
        }
        Ok(())
    }

    fn write(&mut self, outputs: &[Output], moves: &[Move]) -> Result<Written, SinkError> {
        crate::sink::assert_moves_cover(outputs, moves);
        let mut world = self.world.lock().unwrap();
        for output in outputs {
            if let Outcome::Handled { records } = &output.outcome {
                let begun = records[0].json().parse().unwrap();
                let last = world.last_begun.insert(output.id, begun);
                if self.plan.order == Order::Partition && last.is_some_and(|last| last > begun) {
                    let what =
                        format!("{}:{} was handled before the one before it", output.id, output.offset);
                    world.broken_order.push(what);
                }
            }
            let what = match &output.outcome {
                Outcome::Handled { .. } => "handled",
                Outcome::Filtered => "filtered",
                Outcome::Absorbed => "absorbed",
                Outcome::Skipped(_) => "skipped",
                Outcome::Dead(_) => "dead",
            };
            world.written.entry(output.id).or_default().push((output.offset.get(), what));
        }
        for m in moves {
            if self.plan.authority {
                assert_eq!(world.stands.get(&m.id).copied(), m.expected);
            }
            world.stands.insert(m.id, m.next);
        }
        Ok(Written::Written)
    }

    fn row(&self) -> MatrixRow {
        let promise = Promise::ExactlyOnce;
        MatrixRow { sink: "", how: "", authority: "", promise, meaning: "", left_over: "" }
    }

    fn place(&self) -> String {
        "keep".to_owned()
    }
}

/// The events of three partitions, from where the group or the sink stands.
struct Finite {
    ready: VecDeque<SourceEvent>,
    world: Shared,
}

impl Source for Finite {
    fn event_at(&mut self, _: PartitionId, _: Offset) -> Result<Option<crate::source::Event>, SourceError> {
        Ok(None)
    }

    fn poll(&mut self, wait: Duration) -> Result<SourceEvent, SourceError> {
        Ok(self.ready.pop_front().unwrap_or_else(|| {
            std::thread::park_timeout(wait.min(Duration::from_millis(1)));
            SourceEvent::Idle
        }))
    }

    fn seek(&mut self, id: PartitionId, to: Offset) -> Result<(), SourceError> {
        // In two batches, so that some comes while the rest is worked on.
        let all: Vec<Event> = (to.get()..EVENTS).map(event).collect();
        for half in all.chunks(20) {
            let next = half.last().unwrap().offset.next();
            let end = at(EVENTS);
            self.ready.push_back(SourceEvent::Batch { id, ownership: 1, events: half.to_vec(), next, end });
        }
        self.ready.push_back(SourceEvent::End { id, ownership: 1, end: at(EVENTS) });
        Ok(())
    }

    fn save(&mut self, saves: &[crate::source::Save]) -> Result<(), SourceError> {
        self.world.lock().unwrap().save(saves);
        Ok(())
    }

    fn saver(&self) -> Option<Box<dyn GroupSaver>> {
        Some(Box::new(Saver(self.world.clone())))
    }
}

struct Saver(Shared);

impl GroupSaver for Saver {
    fn save(&mut self, saves: &[crate::source::Save]) -> Result<(), SourceError> {
        std::thread::yield_now();
        self.0.lock().unwrap().save(saves);
        Ok(())
    }
}

impl World {
    fn save(&mut self, saves: &[crate::source::Save]) {
        for save in saves {
            let stands = self.stands.get(&save.id).copied();
            assert!(stands.is_none_or(|stands| save.committed <= stands), "the group is ahead of the sink");
            let before = self.in_group.insert(save.id, save.committed);
            let is_back = before.is_some_and(|before| save.committed < before) && save.decision.is_none();
            if is_back {
                self.broken_order
                    .push(format!("{} goes back from {before:?} to {}", save.id, save.committed));
            }
        }
    }
}

/// Answers in an order that a seed makes up.
struct Odd {
    world: Shared,
    plan: Plan,
    random: u64,
    has: Vec<(u64, i32, i64, Option<Vec<u8>>)>,
}

impl Odd {
    fn random(&mut self, below: usize) -> usize {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.random >> 33).unwrap() % below
    }

    /// Notes what would break the order: an event that is begun while one of its lane before it is not done.
    fn begin(&self, partition: i32, offset: i64, own: &[(u64, i32, i64, Option<Vec<u8>>)]) {
        let mut world = self.world.lock().unwrap();
        let shares = |other: &(i32, i64)| match self.plan.order {
            Order::Partition => other.0 == partition,
            // The keys of the test's events differ.
            Order::Key | Order::None => false,
        };
        let is_own = |other: &(i32, i64)| own.iter().any(|has| (has.1, has.2) == *other);
        let beside: Vec<_> = world.in_hand.iter().filter(|o| shares(o) && !is_own(o)).copied().collect();
        if !beside.is_empty() {
            world.broken_order.push(format!("{partition}:{offset} was begun beside {beside:?}"));
        }
        world.in_hand.push((partition, offset));
        world.begins += 1;
        let begins = world.begins;
        world.begun.insert((partition, offset), begins);
    }

    fn end(&self, partition: i32, offset: i64) -> Result<Answer, HandlerError> {
        let mut world = self.world.lock().unwrap();
        world.in_hand.retain(|other| *other != (partition, offset));
        world.handled += 1;
        if self.plan.stops_at.is_some_and(|at| world.handled == at) {
            return Err(HandlerError::GivenBack { after: Duration::ZERO });
        }
        let attempts = world.attempts.entry((partition, offset)).or_default();
        *attempts += 1;
        let fails = self.plan.fail_always.contains(&(partition, offset))
            || (*attempts == 1 && self.plan.fail_once.contains(&(partition, offset)));
        if fails {
            Ok(Answer::Failed { error: "odd".to_owned(), retry: true })
        } else if offset % 5 == 3 {
            Ok(Answer::Filtered)
        } else {
            let begun = world.begun[&(partition, offset)];
            Ok(Answer::record(Record::from_json(begun.to_string()).unwrap()))
        }
    }

    fn let_go(&mut self) {
        let mut world = self.world.lock().unwrap();
        for (_, partition, offset, _) in self.has.drain(..) {
            world.in_hand.retain(|other| *other != (partition, offset));
        }
    }
}

impl Handler for Odd {
    fn handle(&mut self, delivery: &Delivery<'_>) -> Result<Answer, HandlerError> {
        let (partition, offset) = (delivery.id.partition, delivery.event.offset.get());
        self.begin(partition, offset, &[]);
        for _ in 0..self.random(20) {
            std::thread::yield_now();
        }
        self.end(partition, offset)
    }

    fn depth(&self) -> usize {
        self.plan.depth
    }

    fn give(&mut self, token: u64, delivery: &Delivery<'_>) -> Result<(), HandlerError> {
        let (partition, offset) = (delivery.id.partition, delivery.event.offset.get());
        self.begin(partition, offset, &self.has);
        self.has.push((token, partition, offset, delivery.event.key.clone()));
        assert!(self.has.len() <= self.plan.depth);
        Ok(())
    }

    fn take(&mut self, _wait: Duration) -> Result<Option<(u64, Answer)>, HandlerError> {
        if self.random(4) == 0 {
            std::thread::yield_now();
            return Ok(None);
        }
        let at = self.random(self.has.len());
        let (token, partition, offset, _) = self.has.remove(at);
        match self.end(partition, offset) {
            Ok(answer) => Ok(Some((token, answer))),
            Err(error) => {
                self.has.insert(0, (token, partition, offset, None));
                self.let_go();
                Err(error)
            }
        }
    }

    fn give_back(&mut self) {
        self.let_go();
    }
}

fn run_once(world: &Shared, plan: &Plan) -> Result<Report, Box<RunFailure>> {
    let in_group = world.lock().unwrap().in_group.clone();
    let ready = (0..PARTITIONS).map(|partition| {
        let committed = in_group.get(&id(partition)).map(|committed| committed.next().get());
        let mut told = assigned(partition, committed, 0, EVENTS);
        if let SourceEvent::Assigned { metadata, unclean, .. } = &mut told
            && plan.careful
        {
            (*metadata, *unclean) = (format!("start={}:3:many", committed.unwrap_or(0)), true);
        }
        told
    });
    let mut source = Finite { ready: ready.collect(), world: world.clone() };
    let mut sink = KeepSink { world: world.clone(), plan: plan.clone() };
    let mut handlers: Vec<Odd> = (0..plan.workers)
        .map(|worker| Odd {
            world: world.clone(),
            plan: plan.clone(),
            random: plan.seed.wrapping_add(worker as u64),
            has: Vec::new(),
        })
        .collect();
    let options = RunOptions {
        save: plan.save,
        order: plan.order,
        on_fail: OnFail::Skip,
        attempts: std::num::NonZeroU32::new(2),
        backoff: Backoff { first: Duration::ZERO, most: Duration::ZERO },
        until_end: true,
        on_lost_state: OnLostState::FollowGroup,
        ..RunOptions::default()
    };
    let stop = AtomicBool::new(false);
    Runner::new(Parts {
        source: &mut source,
        handlers: Handlers::Crew(handlers.iter_mut().map(|one| one as &mut (dyn Handler + Send)).collect()),
        sink: &mut sink,
        progress: &mut NoProgress,
        clock: &SystemClock::new(),
        stop: &stop,
        options: &options,
    })
    .run()
}

fn check_world(world: &World, plan: &Plan, is_done: bool) {
    assert!(world.broken_order.is_empty(), "{:?}", world.broken_order);
    for partition in 0..PARTITIONS {
        let written = world.written.get(&id(partition)).cloned().unwrap_or_default();
        let offsets: Vec<i64> = written.iter().map(|(offset, _)| *offset).collect();
        let next = world.stands.get(&id(partition)).map_or(0, |stands| stands.next().get());
        // Exactly the prefix, each once and in order: nothing here handles an event whose outcome is in the sink again.
        assert_eq!(offsets, (0..next).collect::<Vec<_>>(), "partition {partition}");
        if is_done {
            assert_eq!(next, EVENTS, "partition {partition}");
        }
        for (offset, what) in written {
            let place = (partition, offset);
            let is_bad = plan.fail_always.contains(&place)
                || (plan.fail_once.contains(&place) && plan.refuse_once.contains(&place) && offset % 5 != 3);
            assert_eq!(what == "skipped", is_bad, "{place:?} is {what}");
        }
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    let place = || prop::collection::btree_set((0..PARTITIONS, 0..EVENTS), 0..6);
    let order = prop_oneof![Just(Order::Partition), Just(Order::Key), Just(Order::None)];
    let save = prop_oneof![
        Just(SavePolicy::EveryEvent),
        Just(SavePolicy::Events(NonZeroU64::new(7).unwrap())),
        Just(SavePolicy::AtStop)
    ];
    let shape = (order, 1..5_usize, 1..5_usize, save, any::<bool>(), any::<bool>());
    (shape, place(), place(), place(), prop::option::of(1..150_usize), any::<u64>()).prop_map(
        |(
            (order, workers, depth, save, authority, careful),
            fail_once,
            refuse_once,
            fail_always,
            stops_at,
            seed,
        )| {
            Plan {
                order,
                workers,
                depth,
                save,
                authority,
                careful,
                fail_once,
                refuse_once,
                fail_always,
                stops_at,
                seed,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn what_is_in_the_sink_is_the_handled_prefix(plan in plan()) {
        let world = Shared::default();
        let report = run_once(&world, &plan).unwrap();
        let is_done = report.stopped == Some(StopReason::End);
        check_world(&world.lock().unwrap(), &plan, is_done);
        world.lock().unwrap().in_hand.clear();
        // The next run goes on there. Attempts are counted anew, as after a stop.
        let again = Plan { stops_at: None, careful: false, ..plan.clone() };
        let report = run_once(&world, &again).unwrap();
        assert_eq!(report.stopped, Some(StopReason::End));
        let broken = world.lock().unwrap().broken_order.clone();
        assert!(broken.is_empty(), "{broken:?}");
        for partition in 0..PARTITIONS {
            let offsets: Vec<i64> = world.lock().unwrap().written[&id(partition)].iter().map(|(offset, _)| *offset).collect();
            assert_eq!(offsets, (0..EVENTS).collect::<Vec<_>>());
        }
    }
}
