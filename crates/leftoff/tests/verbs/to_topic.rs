//! `run --out topic:NAME` and what the other verbs say of it.

use crate::process::folder;
use crate::script::{check, check_in};

#[test]
fn records_go_to_topics_and_the_audit_finds_them_there() {
    let dir = folder(1);
    check_in(
        &dir,
        r#"
        $ topics create other -q
        $ run -t t -g g --out topic:out --require exactly-once --until-end -- sh pick.sh
        ! made out with 1 partition
        ! topic:out: exactly once: each event's records are in the topic once, for every reader
        ! t/0: --on-no-offset earliest: starts at offset 0
        ! t/0 starts at offset 0
        ! nothing left: 10 handled (1 filtered), 9 written
        ! t/0 goes on at offset 10
        $ consume out
        > k0
        > k4
        > k5
        > k6
        > k7
        > k8
        > k9
        $ consume other -f '%k %v\n'
        > k3 {"from":"k3"}
        > k4 {"from":"k4"}
        $ check -g g --out topic:out --drained
        > filtered: ['t/0/1']
        > handled without output: ['t/0/2']
        > nothing left
        > lost: [] | handled twice: []
        $ groups describe g --no-headers
        > g  t  0  9  10  10  0  -  -  group, in one step with topic:out
        "#,
    );
}

#[test]
fn a_reset_repeats_what_it_says_and_the_audit_names_it() {
    let dir = folder(1);
    check_in(
        &dir,
        "
        $ run -t t -g g -q --out topic:out --until-end -- sh copy.sh
        $ groups reset g -t t --to-offset 8 --execute -q
        > TOPIC  PARTITION  NEXT(before)  NEXT(after)  REPEATED  SKIPPED  NOTE
        > t              0            10            8         2        0  their records are written to topic:out again
        >
        > t/0: handled again: [..]
        >   8  k8  [..]
        >   9  k9  [..]
        $ run -t t -g g -q --out topic:out --until-end -- sh copy.sh
        $ check -g g --out topic:out
        > nothing left
        > lost: [] | handled twice: ['t/0/8-9']
        ! error: the check failed: 2 handled twice
        = 1
        ",
    );
}

#[test]
fn what_a_decision_skips_is_not_lost() {
    let dir = folder(1);
    check_in(
        &dir,
        "
        $ run -t t -g g -q --out topic:out --max 3 -- sh copy.sh
        $ groups reset g -t t --to-offset 6 --execute -q --format csv --no-headers
        > t,0,3,6,0,3,,,,3,5,0,0,0
        $ run -t t -g g -q --out topic:out --until-end -- sh copy.sh
        $ check -g g --out topic:out --drained
        > skipped by decision: ['t/0/3-5']
        > nothing left
        > lost: [] | handled twice: []
        $ run -t t -g late -q --out topic:out --on-no-offset latest --until-end -- sh copy.sh
        $ check -g late --out topic:out --drained
        > skipped by decision: ['t/0/0-9']
        > nothing left
        > lost: [] | handled twice: []
        $ run -t t -g file -q --out file:file --on-no-offset latest --until-end -- sh copy.sh
        $ check -g file --out file:file --drained
        > skipped by decision: ['t/0/0-9']
        > nothing left
        > lost: [] | handled twice: []
        ",
    );
}

/// What lies below is in another place, and what retention took cannot be judged: neither is called lost.
#[test]
fn only_what_the_topic_can_tell_is_judged() {
    let dir = folder(1);
    check_in(
        &dir,
        "
        $ run -t t -g g -q --max 4 -- sh copy.sh
        > [..]k0[..]
        > [..]k1[..]
        > [..]k2[..]
        > [..]k3[..]
        $ run -t t -g g --out topic:out --until-end -- sh copy.sh
        ! made out with 1 partition
        ! topic:out: exactly once: [..]
        ! t/0: what was handled before offset 4 is not in topic out
        ! t/0 starts at offset 4
        ! nothing left: 6 handled, 6 written
        ! t/0 goes on at offset 10
        $ check -g g --out topic:out --drained
        > cannot tell: t/0/0-3 is not judged: topic:out has not all of what came of it
        > nothing left
        > lost: [] | handled twice: []
        $ topics trim out -o 2 --noconfirm -q
        $ check -g g --out topic:out --drained
        > cannot tell: t/0/0-5 is not judged: topic:out has not all of what came of it
        > nothing left
        > lost: [] | handled twice: []
        ",
    );
}

#[test]
fn what_cannot_be_promised_or_done_is_refused() {
    let dir = folder(1);
    check_in(
        &dir,
        r#"
        $ run -t t -g g --require exactly-once --until-end -- sh copy.sh
        ! error: stdout promises at least once, and exactly once is required
        ! hint: [..]
        = 4
        $ run -t t -g g --require exactly-once --explain
        ! error: stdout promises at least once, and exactly once is required
        ! hint: [..]
        = 4
        $ run -t t -g g -q --require at-least-once --max 1 -- sh copy.sh
        > [..]k0[..]
        $ run -t t -g g --out topic:t -- sh copy.sh
        ! error: topic t is read: the run would handle its own records for ever
        ! hint: name another topic with --out
        = 4
        $ check -g g --out topic:t
        ! error: group 'g' does not write what it reads of t/0 to a topic
        ! hint: [..]
        = 4
        $ run -t t -g h -q --out topic:out -- sh pick.sh
        ! error: t/0 offset 3 was not handled: record 0 of the answer: it names topic "other", which does not exist; `leftoff topics create other` makes it [..]
        !   key:   k3
        !   value: [..]
        ! everything before it is saved, nothing past it; once the cause is mended, the same command goes on with this event
        ! hint: to try it more often: --on-fail retry; to pass it by: --on-fail skip; to keep it for later: --on-fail dlq
        = 1
        $ run -t t -g h --out topic:out --explain --format csv --no-headers
        > t,0,3,10,saved,topic:out,exactly once
        "#,
    );
    check("$ run -t t -g g --out topic:a/b -- true\n! error: [..]\n! hint: [..]\n= 2");
}

/// The evidence for an event that was given up goes with the others, into each place.
#[test]
fn what_a_policy_skips_is_not_lost_in_any_place() {
    let dir = folder(1);
    let places = [
        "topic:out",
        "file:out",
        #[cfg(feature = "sqlite")]
        "sqlite:db",
    ];
    for (number, place) in places.iter().enumerate() {
        check_in(
            &dir,
            &format!(
                "
                $ run -t t -g g{number} -q --out {place} --on-fail skip --until-end -- sh bad_at.sh k3 error
                $ check -g g{number} --out {place} --drained
                > skipped by decision: ['t/0/3']
                > nothing left
                > lost: [] | handled twice: []
                "
            ),
        );
    }
}
