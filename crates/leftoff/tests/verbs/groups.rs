use crate::process::{Background, folder, gone, pid_in, stdout, until};
use crate::script::check_in;

#[test]
fn a_group_is_moved_and_moved_back_and_every_move_is_told() {
    let dir = folder(1);
    check_in(
        &dir,
        r#"
        $ run -t t -g g -q --max 4 -- sh copy.sh
        > {"key":"k0",[..]
        > {"key":"k1",[..]
        > {"key":"k2",[..]
        > {"key":"k3",[..]
        $ groups describe g
        > GROUP  TOPIC  PARTITION  LAST-HANDLED  NEXT  END  LAG(events)  LAG(time)  HELD-BY  STORED-IN
        > g      t              0             3     4   10            6  [..]  -        group
        $ groups reset g -t t --shift-by -3
        > TOPIC  PARTITION  NEXT(before)  NEXT(after)  REPEATED  SKIPPED  NOTE
        > t              0             4            1         3        0  -
        >
        > t/0: handled again: 1 to 3 (3 offsets)
        >   1  k1  {"id":"k1"}
        >   2  k2  {"id":"k2"}
        >   3  k3  {"id":"k3"}
        ! nothing was moved; add --execute to do it
        $ groups export g
        > t,0,4
        $ groups reset g -t t --shift-by 5 --execute -q
        > TOPIC  PARTITION  NEXT(before)  NEXT(after)  REPEATED  SKIPPED  NOTE
        > t              0             4            9         0        5  -
        >
        > t/0: passed over and never handled: 4 to 8 (5 offsets)
        >   4  k4  {"id":"k4"}
        >   5  k5  {"id":"k5"}
        >   6  k6  {"id":"k6"}
        >   …
        $ groups describe g --format csv --no-headers
        > g,t,0,,9,10,1,[..],,group,1,0,0,false,0,0,9,[..],reset
        $ groups undo g --execute --format csv --no-headers
        > t,0,9,4,0,0,,,,,,0,5,0
        ! moved 1 partition
        $ groups undo g --execute --format csv --no-headers -q
        > t,0,4,9,0,5,,,,4,8,0,0,0
        $ groups history g
        > TIME [..] TOPIC  PARTITION  NEXT(before)  NEXT(after)  WHY     MOVES  WHO [..] FLAGS  NOTE
        > [..]Z  t              0             -            0  reset       1  run@[..]  -      --on-no-offset earliest: starts at offset 0
        > [..]Z  t              0             0            4  commit      4  run@[..]  -      -
        > [..]Z  t              0             4            9  reset       1  [..]@[..]  -      --shift-by 5
        > [..]Z  t              0             9            4  undo        1  [..]@[..]  -      undo
        > [..]Z  t              0             4            9  undo        1  [..]@[..]  -      undo
        $ groups history g -n 1 --format csv --no-headers
        > [..]Z,t,0,4,9,undo,1,[..],,undo,[..]
        $ groups reset g -t t --to-current --execute -q --format csv --no-headers
        > t,0,9,9,0,0,stays where it is,,,,,0,0,0
        $ groups reset g -t t --to-offset 99 --format csv --no-headers -q
        > t,0,9,10,0,1,"99 is above the end, so 10",,,9,9,0,0,0
        $ groups reset g -t t --to-datetime 2001-01-01 --format csv --no-headers -q
        > t,0,9,0,4,0,,0,3,,,0,5,0
        $ groups reset nobody -t t --shift-by 1
        ! error: t/0: the group has no committed offset here: say where to go instead
        ! hint: for example with --to-earliest or --to-latest
        = 2
        $ groups reset nobody -t t --to-latest
        > TOPIC  PARTITION  NEXT(before)  NEXT(after)  REPEATED  SKIPPED  NOTE
        > t              0  -                      10         0       10  -
        >
        > t/0: passed over and never handled: 0 to 9 (10 offsets)
        >   0  k0  {"id":"k0"}
        >   1  k1  {"id":"k1"}
        >   2  k2  {"id":"k2"}
        >   …
        ! there is no group 'nobody' yet; this would make it
        ! nothing was moved; add --execute to do it
        "#,
    );
}

/// Offsets alone do not say what was handled: the history does.
#[test]
fn what_comes_again_is_told_from_what_comes_for_the_first_time() {
    check_in(
        &folder(1),
        r#"
        $ run -t t -g g -q --max 3 -- sh copy.sh
        > {"key":"k0",[..]
        > {"key":"k1",[..]
        > {"key":"k2",[..]
        $ groups reset g -t t --to-offset 8 --execute -q --format csv --no-headers
        > t,0,3,8,0,5,,,,3,7,0,0,0
        $ run -t t -g g -q --max 1 -- sh copy.sh
        > {"key":"k8",[..]
        $ groups reset g -t t --to-offset 2
        > TOPIC  PARTITION  NEXT(before)  NEXT(after)  REPEATED  SKIPPED  NOTE
        > t              0             9            2         2        0  -
        >
        > t/0: handled again: 2 (1 offset)
        >   2  k2  {"id":"k2"}
        >
        > t/0: handled again: 8 (1 offset)
        >   8  k8  {"id":"k8"}
        >
        > t/0: handled for the first time, since an earlier move passed them over: 3 to 7 (5 offsets)
        >   3  k3  {"id":"k3"}
        >   4  k4  {"id":"k4"}
        >   5  k5  {"id":"k5"}
        >   …
        ! nothing was moved; add --execute to do it
        $ groups reset g -t t --to-earliest --execute -q --format csv --no-headers
        > t,0,9,0,4,0,,0,8,,,0,5,0
        $ groups undo g -q --format csv --no-headers
        > t,0,0,9,0,5,,,,3,7,0,0,4
        "#,
    );
}

#[test]
fn offsets_go_out_and_come_in_again() {
    let dir = folder(2);
    check_in(
        &dir,
        r"
        write offsets '# by hand\nt,0,2\nt,1,1\n'
        $ groups import g offsets --execute -q --format csv --no-headers
        > t,0,,2,0,2,,,,0,1,0,0,0
        > t,1,,1,0,1,,,,0,0,0,0,0
        $ groups export g
        > t,0,2
        > t,1,1
        $ groups export g -t t:1 --format jsonl
        > {[..]topic[..]:[..]t[..],[..]partition[..]:1,[..]next[..]:1}
        $ groups reset h --all-topics --to-group g
        ! error: there is no group 'h'
        ! hint: [..]
        = 3
        $ groups reset h -t t --to-group g --execute -q --format csv --no-headers
        > t,0,,2,0,2,,,,0,1,0,0,0
        > t,1,,1,0,1,,,,0,0,0,0,0
        $ groups reset h --from-file offsets -q --format csv --no-headers
        > t,0,2,2,0,0,stays where it is,,,,,0,0,0
        > t,1,1,1,0,0,stays where it is,,,,,0,0,0
        write wrong 't,5,2\n'
        $ groups import g wrong
        ! error: t has no partition 5
        ! hint: [..]
        = 2
        $ groups delete-offsets g -t t:0
        ! error: delete the offsets of group 'g' for 1 partitions? nobody can be asked here
        ! hint: add --noconfirm if you are sure
        = 4
        $ groups delete-offsets g -t t:0 --noconfirm -q
        $ groups export g
        > t,1,1
        $ groups undo g --execute -q --format csv --no-headers
        > t,0,,2,0,2,,,,0,1,0,0,0
        $ groups delete g h --noconfirm
        ! deleted group 'g'; `leftoff groups undo g` brings its offsets back
        ! deleted group 'h'; `leftoff groups undo h` brings its offsets back
        $ groups ls --no-headers
        $ groups describe g
        ! error: there is no group 'g'
        ! hint: [..]
        = 3
        $ groups undo g --execute -q --format csv --no-headers
        > t,0,,2,0,2,,,,0,1,0,0,0
        > t,1,,1,0,1,,,,0,0,0,0,0
        $ groups export g
        > t,0,2
        > t,1,1
        $ groups history g -t t:1 --format csv --no-headers
        > [..]Z,t,1,,1,import,1,[..],,import of offsets,[..]
        > [..]Z,t,1,1,,deleted,1,[..]
        > [..]Z,t,1,,1,undo,1,[..]
        ",
    );
}

#[test]
fn nobody_is_moved_behind_their_back() {
    let dir = folder(1);
    let mut runner = Background::start(dir.path(), "run -t t -g g --out file:out -- sh copy.sh pid");
    check_in(&dir, "$ wait -g g -t t -q --timeout 60s");
    // It works while the runner does, with all that a person asks first.
    check_in(
        &dir,
        "
        $ groups ls --no-headers
        > g  running  run@[..]:[..]  t  1  0
        $ groups describe g --no-headers
        > g  t  0  9  10  10  0  -  run@[..]:[..]  file:[..]/out[..]
        $ groups delete g --noconfirm
        ! file:[..]/out keeps its own offset; a run with it goes on where the place says
        ! error: group 'g' is in use by pid [..] (run), which would not notice
        ! hint: stop it first, then do this again
        = 4
        $ groups reset g -t t --to-earliest --execute
        ! error: group 'g' is in use by pid [..] (run), which would not notice
        ! hint: stop it first, then do this again
        = 4
        ",
    );
    // The group's copy follows the file within a moment.
    until("the group's copy", || stdout(dir.path(), "groups history g").contains("commit").then_some(()));
    let handler = pid_in(&dir.path().join("pid"));
    runner.signal("-KILL");
    assert_eq!(runner.end(), None);
    // It ends with its input, a moment later.
    gone(handler);
    // What the file keeps is not moved in the group alone: it follows with the next run.
    check_in(
        &dir,
        "
        $ groups ls --no-headers
        > g  member gone  run@[..]:[..] (gone)  t  1  0
        $ groups reset g -t t --to-earliest --format csv --no-headers
        > t,0,10,0,10,0,their lines are appended again; it reaches file:[..]/out with the next run,0,9,,,0,0,0
        ! nothing was moved; add --execute to do it
        ",
    );
    for name in ["out", "out.outcomes", "out.leftoff"] {
        std::fs::rename(dir.path().join(name), dir.path().join(format!("old.{name}"))).unwrap();
    }
    check_in(
        &dir,
        "
        $ groups describe g --no-headers
        > g  t  0  9  10  10  0  -  run@[..]:[..] (gone)  group (nothing is left of file:[..]/out)
        $ groups reset g -t t --to-offset 8 --execute --format csv --no-headers
        > t,0,10,8,2,0,,8,9,,,0,0,0
        ! run@[..]:[..] is gone without having left group 'g'; it was taken out of it
        ! moved 1 partition
        $ run -t t -g g -q --out file:out --until-end --on-lost-state group -- sh copy.sh
        $ groups describe g --no-headers
        > g  t  0  9  10  10  0  -  -  file:[..]/out
        ",
    );
    let text = std::fs::read_to_string(dir.path().join("out")).unwrap();
    assert_eq!(text.lines().count(), 2);
}

/// A runner that is alive and only gave the directory away is not taken for dead.
#[test]
fn a_runner_that_is_busy_is_alive() {
    let dir = folder(1);
    let _runner = Background::start(dir.path(), "run -t t -g g -- sh deaf.sh pid");
    pid_in(&dir.path().join("pid"));
    check_in(
        &dir,
        "
        $ groups reset g -t t --to-latest --execute -q
        ! error: group 'g' is in use by pid [..] (run), which would not notice
        ! hint: [..]
        = 4
        ",
    );
}
