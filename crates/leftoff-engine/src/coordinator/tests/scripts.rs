//! What the coordinator decides, as scripts.

use super::world::check;

#[test]
fn a_member_commits_and_goes_on() {
    check(
        "topic t 1 2 0..10
         show g => no group
         join a g => generation 1
         commit a g t/0=5 t/1=7 => ok ok
         show g => generation 1 (a client host leftoff/0.1) t/0=5 last 4 commit t/1=7 last 6 commit
         leave a g => ok
         show g => generation 1 t/0=5 last 4 commit t/1=7 last 6 commit
         join a g => generation 2
         commit a g t/0=6 => ok
         history g t/0 => commit 5>6, commit ->5",
    );
}

#[test]
fn only_the_current_hold_commits() {
    check(
        "topic t 1 1 0..10
         commit a g t/0=5 => fenced: member a of generation 0 is not current in group g, which has generation 0 and no member
         join a g => generation 1
         join b g => generation 2
         commit a g t/0=5 => fenced: member a of generation 1 is not current in group g, which is held by member b of generation 2
         leave a g => fenced: member a of generation 1 is not current in group g, which is held by member b of generation 2
         commit b g t/0=3 => ok
         leave b g
         commit b g t/0=5 => fenced: member b of generation 2 is not current in group g, which has generation 2 and no member
         leave b g => fenced: member b of generation 2 is not current in group g, which has generation 2 and no member
         history g t/0 => commit ->3",
    );
}

#[test]
fn nobody_moves_an_offset_under_a_member() {
    check(
        "topic t 1 1 0..10
         join a g => generation 1
         commit a g t/0=5
         commit - g t/0=6 => group g is held by member a of generation 1: stop it first
         reset - g t/0=0 => group g is held by member a of generation 1: stop it first
         delete g t/0 => group g is held by member a of generation 1: stop it first
         delete g => group g is held by member a of generation 1: stop it first
         leave a g
         reset - g t/0=0
         show g => generation 1 t/0=0 last - reset",
    );
}

#[test]
fn a_group_without_members_commits_by_name() {
    check(
        "topic t 1 1 0..10
         commit - g t/0=5
         show g => generation 0 t/0=5 last 4 commit
         commit - g => 
         commit - g t/0=0 => backwards
         show g => generation 0 t/0=0 last - commit",
    );
}

#[test]
fn odd_offsets_are_kept_and_flagged() {
    check(
        "topic t 1 1 5..10
         commit - g t/0=10
         commit - g t/0=11 => above-end
         commit - g t/0=5 => backwards
         commit - g t/0=4 => below-start,backwards
         reset - g t/0=2 => below-start
         commit - g t/0=3 => below-start
         import - g t/0=1000 => above-end
         undo - g t/0=7 => ok
         show g => generation 0 t/0=7 last - undo",
    );
}

#[test]
fn a_strict_commit_above_the_end_is_refused() {
    check(
        "topic t 1 1 5..10
         strict - g t/0=10
         strict - g t/0=11 => t/0: cannot commit 11, which lies above the end; readable is 5 to 10
         strict - g t/0=4 => below-start,backwards
         history g t/0 => commit 10>4, commit ->10",
    );
}

#[test]
fn one_bad_offset_refuses_the_whole_commit() {
    check(
        "topic t 1 2 0..10
         commit - g t/0=5 t/2=1 => unknown partition t/2 (topic id AQEBAQEBAQEBAQEBAQEBAQ)
         commit - g t/0=5 u/0=1 => unknown partition u/0 (topic id AAAAAAAAAAAAAAAAAAAAAA)
         commit - g t/0=5 t/1=1*4097 => t/1: metadata of 4097 bytes, at most 4096 fit
         commit - g t/0=5 t/0=6 => t/0 is named twice
         strict - g t/0=5 t/1=11 => t/1: cannot commit 11, which lies above the end; readable is 0 to 10
         show g => no group
         commit - g t/0=5 t/1=1*4096 => ok ok",
    );
}

/// OF-050.
#[test]
fn a_topic_made_anew_starts_over() {
    check(
        "topic t 1 1 0..20
         commit - g t/0=10
         topic t 2 1 0..15
         commit - g t/0@1=11 => unknown partition t/0 (topic id AQEBAQEBAQEBAQEBAQEBAQ)
         commit - g t/0=3 => ok
         commit - g t/0=4 => ok
         history g t/0 => commit 3>4, commit ->3, commit ->10",
    );
}

#[test]
fn history_goes_through_a_deletion() {
    check(
        "topic t 1 2 0..20
         commit - g t/0=10 t/1=1 => ok ok
         delete g t/0 => was [Committed(next 10)]
         show g => generation 0 t/1=1 last 0 commit
         delete g t/0 => group g has no offset for t/0
         delete g t/1 t/0 => group g has no offset for t/0
         delete g t/1 t/1 => t/1 is named twice
         commit - g t/0=4
         history g t/0 => commit ->4, deleted 10>-, commit ->10
         delete g => was [Committed(next 4), Committed(next 1)]
         delete g => there is no group g
         show g => no group
         history g t/0 => deleted 4>-, commit ->4, deleted 10>-, commit ->10",
    );
}

#[test]
fn the_generation_survives_the_deletion_of_its_group() {
    check(
        "topic t 1 1 0..20
         join a g => generation 1
         join a g => generation 2
         leave a g
         delete g => was []
         show g => no group
         join a g => generation 3",
    );
}

#[test]
fn what_is_live_is_carried_and_the_rest_forgotten() {
    check(
        "topic t 1 3 0..20
         join a g => generation 1
         commit a g t/0=10 t/1=1 => ok ok
         commit a g t/0=3 => backwards
         leave a g
         reset - g t/2=9
         commit - h t/0=1
         delete h => was [Committed(next 1)]
         progress file 100
         progress file 200
         carry 5 => 3 carried
         history g t/0 => carried 3>3, commit 10>3, commit ->10
         trim 5
         history g t/0 => carried 3>3, …
         history g t/2 => reset ->9
         history h t/0 => deleted 1>-, commit ->1
         carry 100 => 5 carried
         carry 12 => 0 carried
         show g => generation 1 t/0=3 last 2 commit t/1=1 last 0 commit t/2=9 last - reset
         trim 12
         history g t/2 => carried 9>9, …
         commit - g t/2=10
         history g t/2 => commit 9>10, carried 9>9, …
         commit - h t/0=2
         history h t/0 => commit ->2
         join a g => generation 2",
    );
}

#[test]
fn a_member_is_carried() {
    check(
        "topic t 1 1 0..20
         join a g => generation 1
         carry 1 => 1 carried
         trim 1
         show g => generation 1 (a client host leftoff/0.1)
         commit a g t/0=1
         join b g => generation 2
         commit a g t/0=2 => fenced: member a of generation 1 is not current in group g, which is held by member b of generation 2",
    );
}

/// A place that keeps the offset is moved by a reset once: the number is what it remembers, so it must be the same when the value is
/// carried, and greater for each later one, of whatever key.
#[test]
fn a_reset_has_a_number_that_outlives_its_record_and_is_never_given_again() {
    check(
        "topic t 1 2 0..10
         commit - g t/0=5
         number g t/0 => none
         reset - g t/0=2 t/1=3 => ok ok
         number g t/0 => 1
         number g t/1 => 2
         roll
         number g t/0 => 1
         undo - g t/0=5
         number g t/0 => 5
         import - g t/0=4
         number g t/0 => 6
         roll
         number g t/0 => 6
         join a g => generation 1
         reset a g t/0=7
         number g t/0 => none
         commit a g t/0=8
         number g t/0 => none",
    );
}
