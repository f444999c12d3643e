//! What members see, step by step.

use super::world::World;
use crate::coordinator::classic::{GroupConfig, MAX_PENDING_MEMBERS};

fn check(script: &[&str], expect: &[&str]) {
    check_with(GroupConfig { initial_rebalance_delay_ms: 0, ..GroupConfig::default() }, script, expect);
}

fn check_with(config: GroupConfig, script: &[&str], expect: &[&str]) {
    let mut world = World::new(config);
    script.iter().for_each(|line| world.play(line));
    assert_eq!(world.said, expect, "{script:#?}");
}

/// A stable group of two, `a` leading; what comes before it is left out of what is expected.
fn check_two(script: &[&str], expect: &[&str]) {
    let mut world = World::new(GroupConfig { initial_rebalance_delay_ms: 0, ..GroupConfig::default() });
    two(&mut world);
    script.iter().for_each(|line| world.play(line));
    assert_eq!(world.said, expect, "{script:#?}");
}

const TWO: [&str; 9] = [
    "a join v=3",
    "b join v=3",
    "a join",
    "a sync +a=x +b=y",
    "b sync",
    "a heartbeat",
    "b heartbeat",
    "state",
    "wait 1",
];

fn two(world: &mut World) {
    TWO.iter().for_each(|line| world.play(line));
    let expect = [
        "a: joined 1 range leader=a [a:s]",
        "a: joined 2 range leader=a [a:s b:s]",
        "b: joined 2 range leader=a []",
        "a: gets x",
        "b: gets y",
        "a: heartbeat None",
        "b: heartbeat None",
        "Stable",
    ];
    assert_eq!(world.said, expect);
    world.said.clear();
}

#[test]
fn a_member_is_given_an_id_and_joins_with_it() {
    check(
        &["a join", "state", "a join", "a heartbeat", "a sync +a=x", "state"],
        &[
            "a: join MemberIdRequired",
            "Empty",
            "a: joined 1 range leader=a [a:s]",
            "a: heartbeat None",
            "a: gets x",
            "Stable",
        ],
    );
    // An id that is not used is forgotten after its session.
    check(
        &["a join", "wait 10000", "state", "a join"],
        &["a: join MemberIdRequired", "Dead", "a: join UnknownMemberId"],
    );
    // Static members, and clients before version 4, have it at once.
    check(&["a join instance=i"], &["a: joined 1 range leader=a [a:s]"]);
}

#[test]
fn ids_that_are_given_out_have_a_bound_over_all_groups() {
    let mut world = World::new(GroupConfig::default());
    for number in 0..MAX_PENDING_MEMBERS {
        world.play(&format!("a join new group=g{}", number % 100));
    }
    world.said.clear();
    world.play("b join group=h");
    world.play("wait 10000");
    world.play("b join group=h");
    assert_eq!(world.said, ["b: join CoordinatorLoadInProgress", "b: join MemberIdRequired"]);
}

#[test]
fn an_empty_group_waits_for_more_members() {
    let config = GroupConfig::default();
    check_with(
        config.clone(),
        &["a join v=3", "wait 2999", "b join v=3", "wait 1", "wait 2999", "state", "wait 1"],
        &["PreparingRebalance", "a: joined 1 range leader=a [a:s b:s]", "b: joined 1 range leader=a []"],
    );
    // But no longer than the rebalance timeout.
    let script = [
        "a join v=3 rebalance=4000",
        "wait 2000",
        "b join v=3 rebalance=4000",
        "wait 1000",
        "c join v=3 rebalance=4000",
        "wait 999",
        "state",
        "wait 1",
    ];
    let expect = [
        "PreparingRebalance",
        "a: joined 1 range leader=a [a:s b:s c:s]",
        "b: joined 1 range leader=a []",
        "c: joined 1 range leader=a []",
    ];
    check_with(config, &script, &expect);
}

#[test]
fn a_join_waits_for_all_members_but_not_for_ever() {
    check_two(
        &["b join speaks=range:t", "a heartbeat", "a sync", "a join"],
        &[
            "a: heartbeat RebalanceInProgress",
            "a: sync RebalanceInProgress",
            "a: joined 3 range leader=a [a:s b:t]",
            "b: joined 3 range leader=a []",
        ],
    );
    // `a` keeps its session and does not come: it is out, and `b` leads.
    check_two(
        &[
            "b join speaks=range:t",
            "wait 9000",
            "a heartbeat",
            "wait 9000",
            "a heartbeat",
            "wait 1999",
            "state",
            "wait 1",
            "a heartbeat",
        ],
        &[
            "a: heartbeat RebalanceInProgress",
            "a: heartbeat RebalanceInProgress",
            "PreparingRebalance",
            "b: joined 3 range leader=b [b:t]",
            "a: heartbeat UnknownMemberId",
        ],
    );
}

#[test]
fn a_join_that_changes_nothing_is_answered_with_the_current_generation() {
    check_two(&["b join", "state"], &["b: joined 2 range leader=a []", "Stable"]);
    // A leader may know a reason that is not seen.
    check_two(&["a join", "b heartbeat"], &["b: heartbeat RebalanceInProgress"]);
    check_two(
        &["a join", "b join", "b join", "a join"],
        &[
            "a: joined 3 range leader=a [a:s b:s]",
            "b: joined 3 range leader=a []",
            "b: joined 3 range leader=a []",
            "a: joined 3 range leader=a [a:s b:s]",
        ],
    );
    // A second request of the same member: the first is answered, too.
    check_two(
        &["b join speaks=range:t", "b join speaks=range:u", "a join"],
        &[
            "b: join RebalanceInProgress",
            "a: joined 3 range leader=a [a:s b:u]",
            "b: joined 3 range leader=a []",
        ],
    );
}

#[test]
fn a_sync_waits_for_the_leader() {
    check_two(
        &["a join", "b join", "b sync", "b sync gen=2", "a sync +b=z", "b sync", "a sync"],
        &[
            "a: joined 3 range leader=a [a:s b:s]",
            "b: joined 3 range leader=a []",
            "b: sync IllegalGeneration",
            "a: gets ",
            "b: gets z",
            "b: gets z",
            "a: gets ",
        ],
    );
    check_two(
        &["b sync type=connect", "b sync protocol=sticky", "b sync type=consumer protocol=range", "c sync"],
        &[
            "b: sync InconsistentGroupProtocol",
            "b: sync InconsistentGroupProtocol",
            "b: gets y",
            "c: sync UnknownMemberId",
        ],
    );
    // A rebalance in the middle sends everybody back.
    check_two(
        &["a join", "b join", "b sync", "c join v=3"],
        &[
            "a: joined 3 range leader=a [a:s b:s]",
            "b: joined 3 range leader=a []",
            "b: sync RebalanceInProgress",
        ],
    );
}

#[test]
fn who_never_asks_for_its_assignment_is_out() {
    check_two(
        &[
            "a join",
            "b join",
            "b sync",
            "wait 9000",
            "a heartbeat",
            "wait 9000",
            "a heartbeat",
            "wait 1999",
            "state",
            "wait 1",
            "state",
        ],
        &[
            "a: joined 3 range leader=a [a:s b:s]",
            "b: joined 3 range leader=a []",
            "a: heartbeat None",
            "a: heartbeat None",
            "CompletingRebalance",
            "b: sync RebalanceInProgress",
            "PreparingRebalance",
        ],
    );
}

#[test]
fn an_assignment_that_cannot_be_written_is_made_again() {
    check_two(
        &[
            "a join",
            "b join",
            "b sync",
            "fail",
            "a sync +a=p +b=q",
            "state",
            "a join",
            "b join",
            "a sync +a=p",
            "state",
        ],
        &[
            "a: joined 3 range leader=a [a:s b:s]",
            "b: joined 3 range leader=a []",
            "a: sync CoordinatorNotAvailable",
            "b: sync CoordinatorNotAvailable",
            "PreparingRebalance",
            "a: joined 4 range leader=a [a:s b:s]",
            "b: joined 4 range leader=a []",
            "a: gets p",
            "Stable",
        ],
    );
}

#[test]
fn who_falls_silent_is_out() {
    check_two(
        &["wait 5000", "a heartbeat", "wait 4998", "b heartbeat gen=1", "state", "wait 1", "state", "a join"],
        &[
            "a: heartbeat None",
            "b: heartbeat IllegalGeneration",
            "Stable",
            "PreparingRebalance",
            "a: joined 3 range leader=a [a:s]",
        ],
    );
    check_two(&["wait 10000", "state", "a heartbeat"], &["Dead", "a: heartbeat UnknownMemberId"]);
    // A log that refuses to say so is asked again: else a restart would find them.
    check_two(&["fail", "wait 10000", "state", "wait 1000", "state"], &["PreparingRebalance", "Dead"]);
    check(
        &["a join v=3 session=5999", "a join v=3 session=1800001", "a join v=3 group="],
        &["a: join InvalidSessionTimeout", "a: join InvalidSessionTimeout", "a: join InvalidGroupId"],
    );
}

#[test]
fn members_agree_on_a_protocol_that_all_speak() {
    check(
        &[
            "a join v=3 speaks=range:r,sticky:t",
            "b join v=3 speaks=sticky:u,range:v",
            "c join v=3 speaks=sticky:w,range:x",
            "a join v=3 speaks=range:r,sticky:t",
            "d join v=3 speaks=cooperative:z",
            "d join v=3 type=connect",
        ],
        &[
            "a: joined 1 range leader=a [a:r]",
            "a: joined 2 sticky leader=a [a:t b:u c:w]",
            "b: joined 2 sticky leader=a []",
            "c: joined 2 sticky leader=a []",
            "d: join InconsistentGroupProtocol",
            "d: join InconsistentGroupProtocol",
        ],
    );
}

#[test]
fn a_group_has_a_largest_size() {
    let config = GroupConfig { initial_rebalance_delay_ms: 0, max_size: 1, ..GroupConfig::default() };
    check_with(
        config,
        &["a join v=3", "b join v=3", "a sync +a=x", "b join v=3", "a leave", "b join v=3"],
        &[
            "a: joined 1 range leader=a [a:s]",
            "b: join GroupMaxSizeReached",
            "a: gets x",
            "b: join GroupMaxSizeReached",
            "a: leave None None",
            "b: joined 3 range leader=b [b:s]",
        ],
    );
}

#[test]
fn members_leave() {
    check_two(
        &["a leave", "a heartbeat", "b heartbeat", "b join", "b leave", "state", "b leave"],
        &[
            "a: leave None None",
            "a: heartbeat UnknownMemberId",
            "b: heartbeat RebalanceInProgress",
            "b: joined 3 range leader=b [b:s]",
            "b: leave None None",
            "Dead",
            "b: leave None UnknownMemberId",
        ],
    );
    // Whoever waits in the barrier hears of it.
    check_two(
        &["a join", "a leave", "b join"],
        &["a: join UnknownMemberId", "a: leave None None", "b: joined 3 range leader=b [b:s]"],
    );
}

const STATIC_TWO: [&str; 5] =
    ["a join instance=i", "b join instance=j", "a join", "a sync +a=x +b=y", "b sync"];

#[test]
fn a_static_member_that_comes_back_gets_what_it_had() {
    let check_static = |script: &[&str], expect: &[&str]| {
        let mut world = World::new(GroupConfig { initial_rebalance_delay_ms: 0, ..GroupConfig::default() });
        STATIC_TWO.iter().for_each(|line| world.play(line));
        world.said.clear();
        script.iter().for_each(|line| world.play(line));
        assert_eq!(world.said, expect, "{script:#?}");
    };
    // A follower.
    check_static(
        &["b join new", "b sync", "b heartbeat", "state"],
        &["b: joined 2 range leader=a []", "b: gets y", "b: heartbeat None", "Stable"],
    );
    // The leader is told to leave the assignment alone; before version 9 it is told that another one leads.
    check_static(
        &["a join new", "a sync", "state"],
        &["a: joined 2 range leader=a- [a-:s b:s] skip", "a: gets x", "Stable"],
    );
    check_static(&["a join new v=8", "a sync"], &["a: joined 2 range leader=a []", "a: gets x"]);
    // Another process with the same name fences the first.
    check_static(
        &["c join instance=j", "b heartbeat", "b join", "b sync", "b leave", "c sync"],
        &[
            "c: joined 2 range leader=a []",
            "b: heartbeat FencedInstanceId",
            "b: join FencedInstanceId",
            "b: sync FencedInstanceId",
            "b: leave None FencedInstanceId",
            "c: gets y",
        ],
    );
    // With other words it takes a rebalance, and so in the middle of one.
    check_static(&["b join new speaks=range:t", "a heartbeat"], &["a: heartbeat RebalanceInProgress"]);
    check_static(
        &["a join", "b join", "b sync", "c join instance=j", "state"],
        &[
            "a: joined 3 range leader=a [a:s b:s]",
            "b: joined 3 range leader=a []",
            "b: sync FencedInstanceId",
            "PreparingRebalance",
        ],
    );
    // What cannot be written has not happened.
    check_static(
        &["fail", "c join instance=j", "b heartbeat", "c heartbeat"],
        &["c: join CoordinatorNotAvailable", "b: heartbeat None", "c: heartbeat FencedInstanceId"],
    );
    // An operator takes them out by name.
    check_static(&["x leave names=i,j,k", "state"], &["x: leave None None,None,UnknownMemberId", "Dead"]);
    // It is not missed in a rebalance until its session ends.
    check_static(
        &["b join speaks=range:t", "wait 9999", "state", "wait 1", "state"],
        &["PreparingRebalance", "b: joined 3 range leader=b [b:t]", "CompletingRebalance"],
    );
}

#[test]
fn members_go_on_after_a_restart() {
    check_two(
        &[
            "restart",
            "state",
            "a heartbeat",
            "b sync",
            "b heartbeat",
            "wait 9999",
            "state",
            "wait 1",
            "state",
        ],
        &["Stable", "a: heartbeat None", "b: gets y", "b: heartbeat None", "Stable", "Dead"],
    );
    // What the log carries forward is all of it.
    check_two(
        &["carry", "restart", "a heartbeat", "b sync", "b join", "a join"],
        &["a: heartbeat None", "b: gets y", "b: joined 2 range leader=a []"],
    );
    // A generation that never got its assignment is forgotten.
    check_two(
        &["a join", "b join", "restart", "a heartbeat", "a join", "b join", "a sync +a=p"],
        &[
            "a: joined 3 range leader=a [a:s b:s]",
            "b: joined 3 range leader=a []",
            "a: heartbeat IllegalGeneration",
            "a: joined 3 range leader=a [a:s b:s]",
            "b: joined 3 range leader=a []",
            "a: gets p",
        ],
    );
    check_two(
        &["a leave", "b leave", "restart", "state", "c join v=3"],
        &["a: leave None None", "b: leave None None", "Dead", "c: joined 4 range leader=c [c:s]"],
    );
}
