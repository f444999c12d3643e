//! Random scripts: whatever members, time, restarts and a log that refuses do to a group, it keeps its promises.

use std::collections::BTreeMap;

use leftoff_wire::consumer_offsets::GroupMetadataValue;
use proptest::prelude::*;

use super::world::World;
use crate::coordinator::classic::live::{GroupState, LiveGroup};
use crate::coordinator::classic::{Classic, GroupConfig};

#[derive(Clone, Debug)]
enum Op {
    Play(String),
    /// The leader's sync, with parts that nobody was ever given before.
    Assign(&'static str),
}

const CLIENTS: [&str; 4] = ["a", "b", "c", "d"];

fn op() -> impl Strategy<Value = Op> {
    let client = || prop::sample::select(CLIENTS.to_vec());
    let play = |line: String| Op::Play(line);
    let join = prop::sample::select(vec![
        "",
        "",
        "v=3",
        "speaks=range:t",
        "speaks=sticky:s,range:s",
        "speaks=sticky:s",
        "new",
        "new v=3",
        "instance=i",
        "instance=j v=8",
        "new instance=i",
        "session=6000 rebalance=1000",
        "session=60000 rebalance=0",
        "session=1",
        "type=connect",
    ]);
    let wait = prop::sample::select(vec![1, 500, 3_000, 5_999, 10_000, 20_000, 300_000]);
    prop_oneof![
        8 => (client(), join).prop_map(move |(client, how)| play(format!("{client} join {how}"))),
        5 => client().prop_map(Op::Assign),
        3 => client().prop_map(move |client| play(format!("{client} sync"))),
        3 => client().prop_map(move |client| play(format!("{client} heartbeat"))),
        1 => client().prop_map(move |client| play(format!("{client} sync gen=1"))),
        2 => client().prop_map(move |client| play(format!("{client} leave"))),
        1 => Just(play("x leave names=i,j".to_owned())),
        5 => wait.prop_map(move |ms| play(format!("wait {ms}"))),
        1 => Just(play("restart".to_owned())),
        1 => Just(play("carry".to_owned())),
        1 => Just(play("fail".to_owned())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_group_keeps_its_promises(
        ops in prop::collection::vec(op(), 1..80),
        delay in prop::sample::select(vec![0, 3_000]),
        max_size in 1..5usize,
    ) {
        let config = GroupConfig { initial_rebalance_delay_ms: delay, max_size, ..GroupConfig::default() };
        let mut world = World::new(config);
        for (number, op) in ops.iter().enumerate() {
            match op {
                Op::Play(line) => world.play(line),
                Op::Assign(client) => {
                    let parts: Vec<String> =
                        CLIENTS.iter().map(|name| format!("+{name}={name}{number}")).collect();
                    world.play(&format!("{client} sync {}", parts.join(" ")));
                }
            }
            check_groups(&world);
        }
        // Whoever waits is answered in the end: nothing is awaited longer than a new member's time.
        world.fails = false;
        world.wait(2_000_000);
        prop_assert!(world.waiting.is_empty(), "{:?} wait for ever", world.waiting);
        check_groups(&world);
        prop_assert_eq!(&world.replayed(), &world.lasting);
        check_assignments(&world);
    }
}

fn check_groups(world: &World) {
    let Classic { groups, due, pending_count, .. } = &world.classic;
    assert_eq!(*pending_count, groups.values().map(|group| group.pending.len()).sum::<usize>());
    for (name, group) in groups {
        check_group(group, world.now);
        let place = group.indexed.map(|at| (at, name.clone()));
        assert!(place.is_none_or(|place| due.contains(&place)), "{group:?}");
        assert!(
            group.indexed <= group.next_deadline()
                && group.indexed.is_some() == group.next_deadline().is_some(),
            "{group:?}"
        );
    }
    assert_eq!(due.len(), groups.values().filter(|group| group.indexed.is_some()).count());
}

fn check_group(group: &LiveGroup, now: i64) {
    let any =
        |test: &dyn Fn(&crate::coordinator::classic::live::Member) -> bool| group.members.values().any(test);
    match group.state {
        GroupState::Empty => assert!(group.members.is_empty() && group.leader.is_none(), "{group:?}"),
        GroupState::PreparingRebalance => {
            assert!(group.join_timer.is_some() && !any(&|m| m.syncing.is_some()), "{group:?}")
        }
        GroupState::CompletingRebalance => assert!(!any(&|m| m.joining.is_some()), "{group:?}"),
        GroupState::Stable => {
            assert!(!any(&|m| m.joining.is_some() || m.syncing.is_some() || m.is_new), "{group:?}");
            assert!(group.protocol.is_some() && group.leader.is_some(), "{group:?}");
        }
        GroupState::Dead => panic!("{group:?}"),
    }
    if group.state != GroupState::PreparingRebalance {
        assert!(group.join_timer.is_none(), "{group:?}");
    }
    assert!(group.leader.iter().all(|leader| group.members.contains_key(leader)), "{group:?}");
    assert!(group.pending_sync.iter().all(|id| group.members.contains_key(id)), "{group:?}");
    assert_eq!(group.sync_deadline.is_some(), !group.pending_sync.is_empty(), "{group:?}");
    let statics: BTreeMap<_, _> =
        group.members.iter().filter_map(|(id, m)| Some((m.instance.clone()?, id.clone()))).collect();
    assert_eq!(statics, group.statics, "{group:?}");
    for member in group.members.values() {
        // Every member has a session that ends: soon, if it can speak.
        let most = if member.is_new { 300_000 } else { i64::from(member.session_timeout_ms) };
        let left = member.session_deadline.as_ms() - now;
        assert!((1..=most).contains(&left), "{left} of {most}: {group:?}");
    }
}

/// One generation has one assignment, whatever restarts and static members do.
fn check_assignments(world: &World) {
    let mut by_generation: BTreeMap<i32, Vec<Vec<u8>>> = BTreeMap::new();
    for record in &world.log {
        let value = GroupMetadataValue::decode(record.value.as_ref().unwrap()).unwrap();
        if value.members.is_empty() {
            continue;
        }
        let mut parts: Vec<Vec<u8>> = value.members.iter().map(|member| member.assignment.clone()).collect();
        parts.sort();
        let first = by_generation.entry(value.generation).or_insert_with(|| parts.clone());
        assert_eq!(*first, parts, "two assignments in generation {}", value.generation);
    }
}
