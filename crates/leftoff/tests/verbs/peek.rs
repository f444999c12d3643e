//! `groups peek` and `groups skip`.

use crate::process::folder;
use crate::script::check_in;

#[test]
fn the_events_around_a_group_are_shown_with_which_is_which() {
    let dir = folder(1);
    check_in(
        &dir,
        r#"
        $ run -t t -g g -q --out file:out --max 4 -- sh copy.sh
        $ groups peek g -B 2 -A 2 --format csv
        > topic,partition,offset,is,time,key,value
        > t,0,2,,[..],k2,"{""id"":""k2""}"
        > t,0,3,last handled,[..],k3,"{""id"":""k3""}"
        > t,0,4,next,[..],k4,"{""id"":""k4""}"
        > t,0,5,,[..],k5,"{""id"":""k5""}"
        $ groups peek g -B 0 -A 1 --no-headers
        > t  0  4  next  [..]  k4  {"id":"k4"}
        $ run -t t -g g -q --out file:out --until-end -- sh copy.sh
        $ groups peek g -B 1 --no-headers
        > t  0  9  last handled  [..]  k9  {"id":"k9"}
        $ groups peek h
        ! error: there is no group 'h'
        ! hint: `leftoff groups ls` lists them
        = 3
        "#,
    );
}

/// Complaint 17: one event that cannot be handled is passed by without arithmetic, and by name.
#[test]
fn one_event_is_skipped_by_name_and_kept_in_the_history() {
    let dir = folder(2);
    check_in(
        &dir,
        r#"
        $ run -t t -g g -q --max 3 -- sh copy.sh
        > [..]
        > [..]
        > [..]
        $ groups skip g -t t
        ! error: one event is passed by at a time: name one partition of t
        ! hint: as in -t t:0
        = 2
        "#,
    );
    let dir = folder(1);
    check_in(
        &dir,
        r#"
        $ run -t t -g g -q --out file:out --max 3 -- sh copy.sh
        $ groups skip g -t t --offset 5
        ! error: offset 5 of t/0 is not the next event to handle, which is 3: nothing in between is passed by with it
        ! hint: `leftoff groups peek g` shows the events around; reset moves by more than one
        = 4
        $ groups skip g -t t --no-headers
        > t  0  3  4  0  1  reaches file:[..]/out with the next run
        >
        > t/0: passed over and never handled: 3 (1 offset)
        >   3  k3  {"id":"k3"}
        ! nothing was moved; add --execute to do it
        $ groups skip g -t t:0 --offset 3 --execute -q --no-headers --format csv
        > t,0,3,4,0,1,reaches file:[..]/out with the next run,,,3,3,0,0,0
        $ run -t t -g g -q --out file:out --until-end -- sh copy.sh
        $ check -g g --out file:out --drained
        > skipped by decision: ['t/0/3']
        > nothing left
        > lost: [] | handled twice: []
        $ groups skip g -t t
        ! error: group 'g' has handled all of t/0: there is no next event
        = 4
        "#,
    );
}
