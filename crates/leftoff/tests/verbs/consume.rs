use tempfile::TempDir;

use crate::script::{check, check_in};

#[test]
fn places_to_start_and_to_stop() {
    check(
        r#"
        $ produce t -q --input json-envelope <<< '{"value":"0","timestamp_ms":1000000000000}\n{"value":"1","timestamp_ms":1000000001000}\n{"value":"2","timestamp_ms":1000000002000}\n{"value":"3","timestamp_ms":1000000003000}\n{"value":"4","timestamp_ms":1000000004000}\n'
        $ consume t -f '%s '
        > 0 1 2 3 4
        $ consume t -f '%s ' -o 3
        > 3 4
        $ consume t -f '%s ' -o +1
        > 1 2 3 4
        $ consume t -f '%s ' -o -2
        > 3 4
        $ consume t -f '%s ' -o -20
        > 0 1 2 3 4
        $ consume t -f '%s ' -o end
        $ consume t -f '%s ' -o 1:3
        > 1 2
        $ consume t -f '%s ' -o :2
        > 0 1
        $ consume t -f '%s ' -o -2:end
        > 3 4
        $ consume t -f '%s ' -o @1000000002000
        > 2 3 4
        $ consume t -f '%s ' -o @1000000001500:@1000000003000
        > 2
        $ consume t -f '%s ' -o @2030-01-01
        $ consume t -f '%s ' -o 4:9
        > 4
        ! t/0 ends at 5, before 9; --follow waits for the rest
        $ consume t -o 5
        $ consume t -o 6
        ! error: t/0: offset 6 is not there; the partition has offsets 0 to 4 (5)
        ! hint: -o start, -o end or -o -10 fit any partition; -p chooses partitions
        = 2
        $ consume t -o +6
        ! error: t/0: offset 6 is not there; the partition has offsets 0 to 4 (5)
        ! hint: [..]
        = 2
        $ consume t -o stored
        ! error: -o stored: there is no group to ask
        ! hint: name it with -g GROUP
        = 2
        $ consume t -n 2 -f '%s '
        > 0 1
        $ consume t -o 1 -n 1
        > 1
        $ consume t --follow -n 5 -f '%s '
        > 0 1 2 3 4
        $ consume t --follow -o 2:4 -f '%s '
        > 2 3
        "#,
    );
}

#[test]
fn forms_of_the_output() {
    check(
        r#"
        $ produce t -q --input json-envelope <<< '{"key":"k","value":"a,b","timestamp_ms":7,"headers":[["h","v"]]}\n{"value_base64":"/w==","timestamp_ms":8}\n'
        $ consume t -n 1
        > a,b
        $ consume t -n 1 --format wide
        > t:0:0	7	k	a,b
        $ consume t --format jsonl
        > {"topic":"t","partition":0,"offset":0,"timestamp_ms":7,"key":"k","value":"a,b","headers":[["h","v"]]}
        > {"topic":"t","partition":0,"offset":1,"timestamp_ms":8,"key":null,"value_base64":"/w==","headers":[]}
        $ consume t -n 1 --format csv
        > topic,partition,offset,timestamp_ms,key,value
        > t,0,0,7,k,"a,b"
        $ consume t -n 1 --format csv --no-headers
        > t,0,0,7,k,"a,b"
        $ consume t -n 1 -f '%t/%p@%o %T %k(%K) %s(%S) %h%%\n'
        > t/0@0 7 k(1) a,b(3) h=v%
        "#,
    );
}

#[test]
fn topics_and_partitions() {
    check(
        r"
        $ topics create a b -q -p 2
        $ produce a -q -p 0 <<< 'a0\n'
        $ produce a -q -p 1 <<< 'a1\n'
        $ produce b -q -p 1 <<< 'b1\n'
        $ consume b a b -f '%s '
        > b1 a0 a1
        $ consume a b -p 1 -f '%s '
        > a1 b1
        $ consume a -p 2
        ! error: a has no partition 2
        ! hint: it has 0 to 1; `leftoff topics alter` gives it more
        = 2
        $ consume ab
        ! error: there is no topic [..]ab[..]
        ! hint: [..]
        = 3
        ",
    );
}

#[test]
fn a_group_goes_on_behind_what_was_printed() {
    check(
        r"
        $ produce t -q <<< '0\n1\n2\n3\n'
        $ consume t -g g -n 2
        > 0
        > 1
        ! t/0: [..] starts at offset 0
        $ consume t -g g --no-commit
        > 2
        > 3
        $ consume t -g g --no-commit -o 1 -n 1
        > 1
        $ consume t -g g -o 1
        ! error: -o with -g would move g when its offset is saved
        ! hint: move it with `leftoff groups reset g`, or only look with --no-commit
        = 2
        $ consume t -g g
        > 2
        > 3
        $ consume t -g g
        $ topics trim t -o end --noconfirm -q
        $ consume t -g g
        $ consume t -g new --no-commit
        ! t/0: new has no offset yet, so it begins at 4
        ",
    );
}

/// Never a silent jump: what retention took before the group had read it is named.
#[test]
fn a_group_behind_the_log_start_is_told() {
    check(
        r"
        $ produce t -q <<< '0\n1\n2\n3\n'
        $ consume t -g g -n 1 -q
        > 0
        $ topics trim t -o 3 --noconfirm -q
        $ consume t -g g --no-commit
        ! error: t/0: g goes on with offset 1, and the partition has offset 3
        ! hint: name the place to go on, for example -o 3, or see `leftoff groups describe g`
        = 4
        $ consume t -g g --no-commit -o 3
        > 3
        ",
    );
}

#[test]
fn damage_stops_with_its_name() {
    let dir = TempDir::new().unwrap();
    check_in(
        &dir,
        r"
        $ produce t -q <<< 'good\n'
        $ produce t -q <<< 'bad one\n'
        $ produce t -q <<< 'good again\n'
        ",
    );
    let log = dir.path().join("d/t-0/00000000000000000000.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.windows(7).position(|window| window == b"bad one").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    check_in(
        &dir,
        r"
        $ consume t
        > good
        ! error: t/0: damage at offset 1: [..]
        ! hint: go on behind them with -p 0 -o 2; `leftoff doctor` tells what can be done
        = 5
        $ consume t -p 0 -o 2
        > good again
        ",
    );
}
