//! The audit's self-test: consumers that are known to be bad, each with the exact verdict it must get, and good ones that must
//! be found clean. An audit that cannot fail proves nothing.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use leftoff_audit::{
    Demand, Effect, Found, Given, Limits, LogEntry, LogEvent, PartitionFacts, Question, Seen, Verdict, audit,
};

const EVENTS: i64 = 10;

/// A log of ten events per partition (a0 to a9, b0 to b9), what a group has saved, and the effects.
struct World {
    log_start: i64,
    saved: Vec<Option<i64>>,
    effects: Vec<(u32, i64)>,
}

impl World {
    fn new(partitions: u32) -> World {
        World { log_start: 0, saved: vec![None; partitions as usize], effects: Vec::new() }
    }

    fn partitions(&self) -> std::ops::Range<u32> {
        0..self.saved.len() as u32
    }

    fn next(&self, partition: u32) -> i64 {
        self.saved[partition as usize].unwrap_or(0)
    }

    fn save(&mut self, partition: u32, next: i64) {
        self.saved[partition as usize] = Some(next);
    }

    fn handle(&mut self, partition: u32, offset: i64) {
        self.effects.push((partition, offset));
    }

    /// As it should be: handle, then save, up to `to` (not included).
    fn handle_and_save_to(&mut self, partition: u32, to: i64) {
        for offset in self.next(partition)..to {
            self.handle(partition, offset);
            self.save(partition, offset + 1);
        }
    }

    fn judge(&self, by_id: bool) -> Verdict {
        let id = |partition: u32, offset: i64| format!("{}{offset}", ['a', 'b'][partition as usize]);
        let places = self.partitions().flat_map(|p| (self.log_start..EVENTS).map(move |o| (p, o)));
        let event = |(partition, offset)| {
            LogEntry::Event(LogEvent { partition, offset, id: Some(id(partition, offset)) })
        };
        let effect = |&(partition, offset): &(u32, i64)| match by_id {
            true => Seen::Item(Effect::ById(id(partition, offset))),
            false => Seen::Item(Effect::ByPlace { partition, offset, n: 0 }),
        };
        let mut given = Given {
            log: places.map(event).collect(),
            effects: self.effects.iter().map(effect).collect(),
            outcomes: Vec::new(),
        };
        let facts: Vec<PartitionFacts> = (0..)
            .zip(&self.saved)
            .map(|(partition, saved_next)| PartitionFacts {
                partition,
                log_start: self.log_start,
                end: EVENTS,
                saved_next: *saved_next,
            })
            .collect();
        audit(&Question { topic: "t", partitions: &facts }, &Limits::default(), &mut given).unwrap()
    }
}

/// Ids with a blank between them, in the order of their places.
#[derive(Default, Clone, Copy)]
struct Expect {
    lost: &'static str,
    twice: &'static str,
    out_of_order: &'static str,
    unfinished: &'static str,
    ahead_of_end: usize,
}

const CLEAN: Expect = Expect { lost: "", twice: "", out_of_order: "", unfinished: "", ahead_of_end: 0 };

struct Case {
    name: &'static str,
    run: fn(&mut World),
    one_partition: Expect,
    two_partitions: Expect,
}

fn cases() -> Vec<Case> {
    let case = |name, run, one_partition, two_partitions| Case { name, run, one_partition, two_partitions };
    let lost = |lost| Expect { lost, ..CLEAN };
    let twice = |twice| Expect { twice, ..CLEAN };
    let unfinished = |unfinished| Expect { unfinished, ..CLEAN };
    vec![
        case("good", good, CLEAN, CLEAN),
        case(
            "good, but not finished yet",
            good_so_far,
            unfinished("a6 a7 a8 a9"),
            unfinished("a6 a7 a8 a9 b6 b7 b8 b9"),
        ),
        case("commits on delivery", commits_on_delivery, lost("a2 a3"), lost("a2 a3 b2 b3")),
        case("commits last instead of next", commits_last, twice("a4"), twice("a4 b4")),
        case(
            "commits next + 1",
            commits_next_plus_one,
            Expect { lost: "a5", ahead_of_end: 1, ..CLEAN },
            Expect { lost: "a5 b5", ahead_of_end: 2, ..CLEAN },
        ),
        // One partition cannot show it: tests with one partition are how it came into the world.
        case(
            "commits only the last partition of a batch",
            commits_only_last_partition,
            CLEAN,
            twice("a0 a1 a2 a3"),
        ),
        case("commits the maximum of parallel work", commits_maximum, lost("a4"), lost("a4 b4")),
        case(
            "commits after revoke",
            commits_after_revoke,
            twice("a4 a5 a6 a7"),
            twice("a4 a5 a6 a7 b4 b5 b6 b7"),
        ),
        case(
            "keeps its local number across assignments",
            keeps_local_number,
            twice("a3 a4 a5"),
            twice("a3 a4 a5 b3 b4 b5"),
        ),
        case(
            "keeps a higher local number across assignments",
            keeps_higher_local_number,
            lost("a4 a5"),
            lost("a4 a5 b4 b5"),
        ),
        case("swallows handler errors", swallows_errors, lost("a5"), lost("a5 b5")),
        case(
            "jumps to the end when out of range",
            jumps_to_end,
            lost("a4 a5 a6 a7 a8 a9"),
            lost("a4 a5 a6 a7 a8 a9 b4 b5 b6 b7 b8 b9"),
        ),
        case(
            "treats an empty answer as the end",
            empty_is_end,
            unfinished("a6 a7 a8 a9"),
            unfinished("a6 a7 a8 a9 b6 b7 b8 b9"),
        ),
        case(
            "starts anew on a damaged store",
            starts_anew,
            twice("a0 a1 a2 a3 a4"),
            twice("a0 a1 a2 a3 a4 b0 b1 b2 b3 b4"),
        ),
        case(
            "dedupes by offset without partition",
            dedupes_by_offset,
            CLEAN,
            lost("b0 b1 b2 b3 b4 b5 b6 b7 b8 b9"),
        ),
        case("remembers the id before the effect", remembers_before_effect, lost("a5"), lost("a5 b5")),
        case(
            "never commits",
            never_commits,
            twice("a0 a1 a2 a3 a4 a5 a6 a7 a8 a9"),
            twice("a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 b0 b1 b2 b3 b4 b5 b6 b7 b8 b9"),
        ),
        case(
            "exits 0 with its queue not empty",
            exits_with_queue,
            unfinished("a7 a8 a9"),
            unfinished("a7 a8 a9 b7 b8 b9"),
        ),
        case(
            "exits 0 with its queue not empty, committed on delivery",
            exits_with_committed_queue,
            lost("a7 a8 a9"),
            lost("a7 a8 a9 b7 b8 b9"),
        ),
        case(
            "retries a failed event behind the next one",
            retries_behind,
            Expect { out_of_order: "a5", ..CLEAN },
            Expect { out_of_order: "a5 b5", ..CLEAN },
        ),
        case(
            "three lost and three twice, so the counts agree",
            counts_agree,
            Expect { lost: "a7 a8 a9", twice: "a2 a3 a4", ..CLEAN },
            Expect { lost: "a7 a8 a9 b7 b8 b9", twice: "a2 a3 a4 b2 b3 b4", ..CLEAN },
        ),
    ]
}

#[test]
fn each_known_bad_consumer_gets_its_verdict() {
    for case in cases() {
        for (partitions, expect) in [(1, case.one_partition), (2, case.two_partitions)] {
            let mut world = World::new(partitions);
            (case.run)(&mut world);
            for by_id in [false, true] {
                let what = format!("{}, {partitions} partitions, by id: {by_id}", case.name);
                check(&what, &world.judge(by_id), &expect);
            }
        }
    }
}

fn check(what: &str, verdict: &Verdict, expect: &Expect) {
    let lists = [
        ("lost", &verdict.lost, expect.lost),
        ("twice", &verdict.handled_twice, expect.twice),
        ("out of order", &verdict.out_of_order, expect.out_of_order),
        ("unfinished", &verdict.unfinished, expect.unfinished),
        ("deleted", &verdict.deleted_before_handling, ""),
        ("absorbed", &verdict.absorbed, ""),
        ("filtered", &verdict.filtered, ""),
    ];
    for (list, found, expect) in lists {
        check_list(&format!("{what}: {list}"), found, expect);
    }
    assert_eq!(verdict.unknown_effects.count, 0, "{what}: unknown effects");
    assert_eq!(verdict.produced_twice.count, 0, "{what}: produced twice");
    assert_eq!(verdict.ahead_of_end.len(), expect.ahead_of_end, "{what}: ahead of the end");
    let clean = [expect.lost, expect.twice, expect.out_of_order].iter().all(|list| list.is_empty());
    assert_eq!(verdict.exit_code(Demand::Clean), u8::from(!clean), "{what}: exit code");
    let drained = clean && expect.unfinished.is_empty();
    assert_eq!(verdict.exit_code(Demand::Drained), u8::from(!drained), "{what}: exit code when drained");
}

fn check_list(what: &str, found: &Found, expect: &str) {
    let expect: Vec<&str> = expect.split_ascii_whitespace().collect();
    assert_eq!(found.names, expect, "{what}");
    assert_eq!(found.count, expect.len() as u64, "{what}");
}

fn good(world: &mut World) {
    for p in world.partitions() {
        world.handle_and_save_to(p, 6);
        world.handle_and_save_to(p, EVENTS);
        world.handle_and_save_to(p, EVENTS);
    }
}

fn good_so_far(world: &mut World) {
    for p in world.partitions() {
        world.handle_and_save_to(p, 6);
    }
}

fn commits_on_delivery(world: &mut World) {
    for p in world.partitions() {
        world.save(p, 4);
        world.handle(p, 0);
        world.handle(p, 1);
        // Crash. What was delivered and not handled is behind the saved offset.
        world.handle_and_save_to(p, EVENTS);
    }
}

fn commits_last(world: &mut World) {
    for p in world.partitions() {
        for stop in [5, EVENTS] {
            for offset in world.next(p)..stop {
                world.handle(p, offset);
                world.save(p, offset);
            }
        }
    }
}

fn commits_next_plus_one(world: &mut World) {
    for p in world.partitions() {
        for stop in [5, EVENTS] {
            for offset in world.next(p)..stop {
                world.handle(p, offset);
                world.save(p, offset + 2);
            }
        }
    }
}

fn commits_only_last_partition(world: &mut World) {
    for p in world.partitions() {
        (0..4).for_each(|offset| world.handle(p, offset));
    }
    let last = world.partitions().end - 1;
    world.save(last, 4);
    for p in world.partitions() {
        world.handle_and_save_to(p, EVENTS);
    }
}

fn commits_maximum(world: &mut World) {
    for p in world.partitions() {
        world.handle_and_save_to(p, 4);
        // 4 and 5 are worked on side by side; 5 is done first, then comes a crash.
        world.handle(p, 5);
        world.save(p, 6);
        world.handle_and_save_to(p, EVENTS);
    }
}

fn commits_after_revoke(world: &mut World) {
    for p in world.partitions() {
        world.handle_and_save_to(p, 4);
        let mine = world.next(p);
        // Revoked; the next owner goes on.
        world.handle_and_save_to(p, 8);
        // The former owner still saves, and the next restart believes it.
        world.save(p, mine);
        world.handle_and_save_to(p, EVENTS);
    }
}

fn keeps_local_number(world: &mut World) {
    for p in world.partitions() {
        world.handle_and_save_to(p, 3);
        let local = world.next(p);
        world.handle_and_save_to(p, 6);
        // It gets the partition back and goes on at its own number.
        for offset in local..EVENTS {
            world.handle(p, offset);
            world.save(p, offset + 1);
        }
    }
}

fn keeps_higher_local_number(world: &mut World) {
    for p in world.partitions() {
        world.handle_and_save_to(p, 4);
        // It had read up to 6 when it lost the partition, and goes on there when it gets it back.
        for offset in 6..EVENTS {
            world.handle(p, offset);
            world.save(p, offset + 1);
        }
    }
}

fn swallows_errors(world: &mut World) {
    for p in world.partitions() {
        for offset in 0..EVENTS {
            let failed = offset == 5;
            if !failed {
                world.handle(p, offset);
            }
            world.save(p, offset + 1);
        }
    }
}

fn jumps_to_end(world: &mut World) {
    for p in world.partitions() {
        world.handle_and_save_to(p, 1);
    }
    world.log_start = 4;
    for p in world.partitions() {
        world.save(p, EVENTS);
    }
    // Effects of deleted events say nothing by id: their ids are in no log. Keep the case to what can be told apart.
    world.effects.clear();
}

fn empty_is_end(world: &mut World) {
    for p in world.partitions() {
        world.handle_and_save_to(p, 6);
        // An empty answer; it believes that this is the end and stops, well content.
    }
}

fn starts_anew(world: &mut World) {
    for p in world.partitions() {
        world.handle_and_save_to(p, 5);
        // The store is damaged, which it takes for a first run.
        world.save(p, 0);
        world.handle_and_save_to(p, EVENTS);
    }
}

fn dedupes_by_offset(world: &mut World) {
    let mut known = BTreeSet::new();
    for p in world.partitions() {
        for offset in 0..EVENTS {
            if known.insert(offset) {
                world.handle(p, offset);
            }
            world.save(p, offset + 1);
        }
    }
}

fn remembers_before_effect(world: &mut World) {
    for p in world.partitions() {
        let mut known = BTreeSet::new();
        world.handle_and_save_to(p, 5);
        // Remembered, and killed before the effect.
        known.insert(5);
        for offset in world.next(p)..EVENTS {
            if known.insert(offset) {
                world.handle(p, offset);
            }
            world.save(p, offset + 1);
        }
    }
}

fn never_commits(world: &mut World) {
    for _run in 0..2 {
        for p in world.partitions() {
            (0..EVENTS).for_each(|offset| world.handle(p, offset));
        }
    }
}

fn exits_with_queue(world: &mut World) {
    for p in world.partitions() {
        world.handle_and_save_to(p, 7);
    }
}

fn exits_with_committed_queue(world: &mut World) {
    for p in world.partitions() {
        world.handle_and_save_to(p, 7);
        world.save(p, EVENTS);
    }
}

fn retries_behind(world: &mut World) {
    for p in world.partitions() {
        world.handle_and_save_to(p, 5);
        world.handle(p, 6);
        world.handle(p, 5);
        world.save(p, 7);
        world.handle_and_save_to(p, EVENTS);
    }
}

fn counts_agree(world: &mut World) {
    for p in world.partitions() {
        world.handle_and_save_to(p, 7);
        (2..5).for_each(|offset| world.handle(p, offset));
        world.save(p, EVENTS);
        assert_eq!(world.effects.iter().filter(|(of, _)| *of == p).count() as i64, EVENTS);
    }
}
