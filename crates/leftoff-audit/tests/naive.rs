//! Random logs and effects, judged once more by a second audit that holds everything in memory and takes the rules literally.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use leftoff_audit::{
    Effect, Given, Limits, LogEntry, LogEvent, Outcome, OutcomeKind, PartitionFacts, Question, Seen,
    UnknownWhy, Verdict, audit,
};
use proptest::prelude::*;

type At = (u32, i64);

/// All lists of a verdict, as sets of places.
#[derive(Debug, Default, PartialEq, Eq)]
struct Lists {
    lost: BTreeSet<At>,
    handled_twice: BTreeSet<At>,
    surplus: u64,
    out_of_order: BTreeSet<At>,
    unfinished: BTreeSet<At>,
    without_output: BTreeSet<At>,
    filtered: BTreeSet<At>,
    dead: BTreeSet<At>,
    skipped: BTreeSet<At>,
    deleted: BTreeSet<At>,
    absorbed: BTreeSet<At>,
    produced_twice: u64,
    unknown: Vec<(String, UnknownWhy)>,
    unknown_count: u64,
    with_effect: u64,
    effects_of_deleted: u64,
}

fn lists_of(verdict: &Verdict) -> Lists {
    let places = |found: &leftoff_audit::Found| {
        let set: BTreeSet<At> = found
            .ranges
            .iter()
            .flat_map(|range| (range.from..=range.to).map(|o| (range.partition, o)))
            .collect();
        assert_eq!(set.len() as u64, found.count, "the ranges hold what is counted");
        set
    };
    Lists {
        lost: places(&verdict.lost),
        handled_twice: places(&verdict.handled_twice),
        surplus: verdict.handled_twice.surplus,
        out_of_order: places(&verdict.out_of_order),
        unfinished: places(&verdict.unfinished),
        without_output: places(&verdict.without_output),
        filtered: places(&verdict.filtered),
        dead: places(&verdict.dead),
        skipped: places(&verdict.skipped),
        deleted: places(&verdict.deleted_before_handling),
        absorbed: places(&verdict.absorbed),
        produced_twice: verdict.produced_twice.count,
        unknown: verdict.unknown_effects.named.iter().map(|one| (one.name.clone(), one.why)).collect(),
        unknown_count: verdict.unknown_effects.count,
        with_effect: verdict.with_effect,
        effects_of_deleted: verdict.effects_of_deleted,
    }
}

struct Naive<'a> {
    facts: BTreeMap<u32, PartitionFacts>,
    events: BTreeMap<At, Option<&'a str>>,
    effects: Vec<&'a Effect>,
    outcomes: Vec<Outcome>,
}

impl<'a> Naive<'a> {
    fn new(given: &'a Given, facts: &[PartitionFacts]) -> Naive<'a> {
        let facts: BTreeMap<u32, PartitionFacts> = facts.iter().map(|one| (one.partition, *one)).collect();
        let mut events = BTreeMap::new();
        for entry in &given.log {
            let LogEntry::Event(LogEvent { partition, offset, id }) = entry else { continue };
            let of = facts[partition];
            if (of.log_start..of.end).contains(offset) {
                events.insert((*partition, *offset), id.as_deref());
            }
        }
        let item = |seen: &'a Seen<Effect>| match seen {
            Seen::Item(effect) => Some(effect),
            _ => None,
        };
        let effects = given.effects.iter().filter_map(item).collect();
        let outcomes = given.outcomes.iter().filter_map(|seen| match seen {
            Seen::Item(outcome) => Some(*outcome),
            _ => None,
        });
        Naive { facts, events, effects, outcomes: outcomes.collect() }
    }

    fn judge(&self) -> Lists {
        let mut lists = Lists::default();
        let mut by_place: BTreeMap<At, Vec<u32>> = BTreeMap::new();
        let mut by_id: BTreeMap<&str, u64> = BTreeMap::new();
        for effect in &self.effects {
            match effect {
                Effect::ByPlace { partition, offset, n } => {
                    by_place.entry((*partition, *offset)).or_default().push(*n);
                }
                Effect::ById(id) => *by_id.entry(id).or_default() += 1,
                Effect::OtherTopic(_) => {}
            }
        }
        let mut carriers: BTreeMap<&str, Vec<At>> = BTreeMap::new();
        for (at, id) in &self.events {
            if let Some(id) = id {
                carriers.entry(id).or_default().push(*at);
            }
        }
        lists.produced_twice = carriers.values().filter(|places| places.len() > 1).count() as u64;

        let mut handled: BTreeSet<At> = BTreeSet::new();
        let mut reach: BTreeMap<u32, i64> = BTreeMap::new();
        for (at, ns) in &by_place {
            let surplus = ns.len() - ns.iter().collect::<BTreeSet<_>>().len();
            let known = self.events.contains_key(at);
            let gone = self.facts.get(&at.0).is_some_and(|of| at.1 < of.log_start);
            if surplus > 0 && (known || gone) {
                lists.handled_twice.insert(*at);
                lists.surplus += surplus as u64;
            }
            if known {
                handled.insert(*at);
                reach.entry(at.0).and_modify(|to| *to = at.1.max(*to)).or_insert(at.1);
            }
            lists.effects_of_deleted += if gone { ns.len() as u64 } else { 0 };
        }
        let mut absorbed_by_id = BTreeSet::new();
        for (id, places) in &carriers {
            let effects = by_id.get(id).copied().unwrap_or(0);
            for (index, at) in places.iter().enumerate() {
                if (index as u64) < effects {
                    handled.insert(*at);
                    if places.len() == 1 {
                        reach.entry(at.0).and_modify(|to| *to = at.1.max(*to)).or_insert(at.1);
                    }
                }
            }
            if effects > places.len() as u64 {
                lists.handled_twice.insert(places[0]);
                lists.surplus += effects - places.len() as u64;
            }
            if places.iter().any(|at| handled.contains(at)) {
                absorbed_by_id.extend(places.iter().copied());
            }
        }
        for outcome in &self.outcomes {
            let Some(of) = self.facts.get(&outcome.partition) else { continue };
            let to = outcome.to.min(of.end - 1);
            reach.entry(outcome.partition).and_modify(|old| *old = to.max(*old)).or_insert(to);
        }
        lists.with_effect = handled.len() as u64;

        for at in self.events.keys().filter(|at| !handled.contains(at)) {
            let kinds: BTreeSet<OutcomeKind> = self
                .outcomes
                .iter()
                .filter(|outcome| outcome.partition == at.0 && (outcome.from..=outcome.to).contains(&at.1))
                .map(|outcome| outcome.kind)
                .filter(|kind| *kind != OutcomeKind::Deleted)
                .collect();
            let saved = self.facts[&at.0].saved_next;
            let passed = match saved {
                Some(saved) => at.1 < saved,
                None => reach.get(&at.0).is_some_and(|reach| at.1 < *reach),
            };
            let list = match kinds.first() {
                Some(OutcomeKind::Handled) => &mut lists.without_output,
                Some(OutcomeKind::Filtered) => &mut lists.filtered,
                Some(OutcomeKind::Dead) => &mut lists.dead,
                Some(_) => &mut lists.skipped,
                None if absorbed_by_id.contains(at) && (passed || saved.is_none()) => &mut lists.absorbed,
                None if passed => &mut lists.lost,
                None => &mut lists.unfinished,
            };
            list.insert(*at);
        }
        self.judge_deleted(&by_place, &mut lists);
        self.judge_order(&carriers, &mut lists);
        self.judge_unknown(&carriers, &mut lists);
        lists
    }

    fn judge_deleted(&self, by_place: &BTreeMap<At, Vec<u32>>, lists: &mut Lists) {
        for of in self.facts.values() {
            for offset in 0..of.log_start {
                let at = (of.partition, offset);
                let covering = self
                    .outcomes
                    .iter()
                    .filter(|one| one.partition == of.partition && (one.from..=one.to).contains(&offset));
                let kinds: Vec<OutcomeKind> = covering.map(|one| one.kind).collect();
                let unread = of.saved_next.is_some_and(|saved| offset >= saved)
                    && !by_place.contains_key(&at)
                    && kinds.is_empty();
                if unread || kinds.contains(&OutcomeKind::Deleted) {
                    lists.deleted.insert(at);
                }
            }
        }
    }

    fn judge_order(&self, carriers: &BTreeMap<&str, Vec<At>>, lists: &mut Lists) {
        for by_id in [false, true] {
            let mut seen: BTreeSet<At> = BTreeSet::new();
            for effect in &self.effects {
                let at = match effect {
                    Effect::ByPlace { partition, offset, .. } if !by_id => (*partition, *offset),
                    Effect::ById(id) if by_id => match carriers.get(id.as_str()).map(Vec::as_slice) {
                        Some([at]) => *at,
                        _ => continue,
                    },
                    _ => continue,
                };
                let later = seen.iter().any(|other| other.0 == at.0 && other.1 > at.1);
                if self.events.contains_key(&at) && seen.insert(at) && later {
                    lists.out_of_order.insert(at);
                }
            }
        }
    }

    fn judge_unknown(&self, carriers: &BTreeMap<&str, Vec<At>>, lists: &mut Lists) {
        let mut named = BTreeSet::new();
        for effect in &self.effects {
            let (name, why) = match effect {
                Effect::OtherTopic(name) => (name.clone(), UnknownWhy::OtherTopic),
                Effect::ById(id) if carriers.contains_key(id.as_str()) => continue,
                Effect::ById(id) => (id.clone(), UnknownWhy::NoSuchId),
                Effect::ByPlace { partition, offset, .. } => {
                    let why = match self.facts.get(partition) {
                        None => UnknownWhy::NoSuchPartition,
                        Some(_) if self.events.contains_key(&(*partition, *offset)) => continue,
                        Some(of) if *offset < of.log_start => continue,
                        Some(of) if *offset >= of.end => UnknownWhy::PastTheEnd,
                        Some(_) => UnknownWhy::NotAnEvent,
                    };
                    (format!("t/{partition}/{offset}"), why)
                }
            };
            lists.unknown_count += 1;
            if why == UnknownWhy::OtherTopic || named.insert(name.clone()) {
                lists.unknown.push((name, why));
            }
        }
    }
}

const OFFSETS: i64 = 14;

fn facts(partition: u32) -> impl Strategy<Value = PartitionFacts> {
    (0..6i64, 6..=OFFSETS, proptest::option::of(0..=OFFSETS + 1)).prop_map(
        move |(log_start, end, saved_next)| PartitionFacts { partition, log_start, end, saved_next },
    )
}

fn entries(partition: u32, ids: bool) -> impl Strategy<Value = Vec<LogEntry>> {
    proptest::collection::vec((0..10u8, 0..12u8), OFFSETS as usize).prop_map(move |kinds| {
        let entry = |(offset, (kind, id)): (i64, (u8, u8))| match kind {
            0 => None,
            1 => Some(LogEntry::Marker { partition, offset }),
            2 => Some(LogEntry::Aborted { partition, offset }),
            _ => {
                let own = || format!("p{partition}o{offset}");
                let id = match kind {
                    3 => Some(format!("shared{id}")),
                    4 => None,
                    _ => Some(own()),
                };
                Some(LogEntry::Event(LogEvent { partition, offset, id: id.filter(|_| ids) }))
            }
        };
        (0..).zip(kinds).filter_map(entry).collect()
    })
}

fn effect() -> impl Strategy<Value = Effect> {
    prop_oneof![
        6 => (0..3u32, 0..OFFSETS + 1, 0..2u32).prop_map(|(partition, offset, n)| Effect::ByPlace { partition, offset, n }),
        6 => (0..2u32, 0..OFFSETS).prop_map(|(p, o)| Effect::ById(format!("p{p}o{o}"))),
        3 => (0..12u8).prop_map(|id| Effect::ById(format!("shared{id}"))),
        1 => (0..3u8).prop_map(|n| Effect::OtherTopic(format!("other/0/{n}/0"))),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let kind = prop_oneof![
        Just(OutcomeKind::Handled),
        Just(OutcomeKind::Filtered),
        Just(OutcomeKind::Dead),
        Just(OutcomeKind::Skipped),
        Just(OutcomeKind::Deleted),
    ];
    (0..3u32, 0..OFFSETS, 0..4i64, kind).prop_map(|(partition, from, more, kind)| Outcome {
        partition,
        from,
        to: from + more,
        kind,
    })
}

/// Which effects a case has: only places, only ids, or both.
fn effects() -> impl Strategy<Value = Vec<Seen<Effect>>> {
    (0..3u8, proptest::collection::vec(effect(), 0..40)).prop_map(|(which, effects)| {
        let wanted = |effect: &Effect| match effect {
            Effect::ByPlace { .. } => which != 1,
            Effect::ById(_) => which != 0,
            Effect::OtherTopic(_) => true,
        };
        effects.into_iter().filter(wanted).map(Seen::Item).collect()
    })
}

fn case() -> impl Strategy<Value = (Given, Vec<PartitionFacts>)> {
    let facts = (facts(0), facts(1)).prop_map(|(one, other)| vec![other, one]);
    let log = (entries(0, true), entries(1, true), any::<bool>()).prop_map(|(one, other, interleaved)| {
        let mut log: Vec<LogEntry> = one.into_iter().chain(other).collect();
        if interleaved {
            log.sort_by_key(|entry| match entry {
                LogEntry::Event(event) => event.offset,
                LogEntry::Aborted { offset, .. } | LogEntry::Marker { offset, .. } => *offset,
            });
        }
        log
    });
    let outcomes = proptest::collection::vec(outcome().prop_map(Seen::Item), 0..4);
    (log, effects(), outcomes, facts)
        .prop_map(|(log, effects, outcomes, facts)| (Given { log, effects, outcomes }, facts))
}

/// `sort_bytes` of 1 holds one record in memory: each further one is a run in the temporary file.
fn check(given: &mut Given, facts: &[PartitionFacts], sort_bytes: usize) -> Result<(), TestCaseError> {
    let expect = Naive::new(given, facts).judge();
    let limits = Limits { sort_bytes, temp_dir: None };
    let verdict = audit(&Question { topic: "t", partitions: facts }, &limits, given).unwrap();
    prop_assert_eq!(lists_of(&verdict), expect);
    let partition_events: u64 = verdict.partitions.iter().map(|one| one.events).sum();
    prop_assert_eq!(partition_events, verdict.events);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn judges_as_the_naive_audit_does((mut given, facts) in case()) {
        check(&mut given, &facts, 4 << 20)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn judges_the_same_when_everything_is_spilled((mut given, facts) in case()) {
        check(&mut given, &facts, 1)?;
    }
}
