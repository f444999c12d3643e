use crate::process::{Background, folder};
use crate::script::check_in;

#[test]
fn a_wait_ends_when_the_group_is_there_or_the_time_is_over() {
    let dir = folder(1);
    check_in(
        &dir,
        "
        $ wait -g g --timeout 50ms
        ! error: there is no group 'g' with an offset, after [..]ms
        ! hint: [..]
        = 1
        $ run -t t -g g -q --out file:out --max 4 -- sh copy.sh
        $ wait -g g --until 4
        ! group 'g' is there
        $ wait -g g --until 2001-01-01 -q
        $ wait -g g --timeout 50ms
        ! error: group 'g' has not come so far: t/0 has offset 4 as the next to read, and not yet 10, after [..]ms
        ! hint: `leftoff groups describe g` shows where it is and who holds it
        = 1
        ",
    );
    // It can begin before there is a group, and sees what a runner does.
    let mut waiting = Background::start(dir.path(), "wait -g h -t t --until 10");
    check_in(&dir, "$ run -t t -g h -q --out file:h --until-end -- sh copy.sh");
    assert_eq!(waiting.end(), Some(0));
}
