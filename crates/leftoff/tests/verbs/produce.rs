use tempfile::TempDir;

use crate::script::{check, check_in};

#[test]
fn lines_are_events() {
    check(
        r"
        $ produce t <<< 'a\r\n\n b \nlast'
        ! made t with 1 partition
        ! 4 events in t, on disk
        $ consume t -f '%o:%S:%s|'
        > 0:1:a|1:0:|2:3: b |3:4:last|
        $ produce t <<< ''
        ! 0 events in t, on disk
        $ produce t <<< 'one\n'
        ! 1 event in t, on disk
        ",
    );
}

#[test]
fn a_slip_in_a_name_is_pointed_out() {
    check(
        r"
        $ produce quakes -q <<< 'a\n'
        $ produce quake <<< 'a\n'
        ! made quake with 1 partition (there is also quakes)
        ! 1 event in quake, on disk
        ",
    );
}

#[test]
fn keys_headers_and_partitions() {
    check(
        r#"
        $ topics create t -q -p 4
        $ produce t -q -k 21 -H 'origin:usgs' -H 'n: 1' <<< 'a\n'
        $ produce t -q --key-field id.0 <<< '{"id":7}\n'
        ! error: line 1: no field 'id.0': {"id":7}; no event was written
        ! hint: every line needs the field; without --key-field events have no key
        = 2
        $ produce t -q --key-field id <<< '{"id":"abc"}\n{"id":21}\n{"id":null}\n'
        $ produce t -q -p 2 <<< 'two\n'
        $ produce t -q -p 4 <<< 'five\n'
        ! error: t has no partition 4
        ! hint: it has 0 to 3; `leftoff topics alter` gives it more
        = 2
        $ consume t -p 0 -n 2 -f '%p %k %s %h\n'
        > 0 21 a origin=usgs,n=1
        > 0 21 {"id":21}
        $ consume t -p 3 -n 1 -f '%p %k %s %h.\n'
        > 3 abc {"id":"abc"} .
        $ consume t -p 2 -o -1
        > two
        "#,
    );
}

#[test]
fn what_consume_prints_as_json_is_read_back() {
    check(
        r#"
        $ produce a -q --input json-envelope <<< '{"key":"k","value":{"n":1.50},"headers":[["h","v"],["h",null]],"timestamp_ms":5}\n{"value":null}\n{"value":"a","partition":0}\n'
        $ produce a -q --input json-envelope <<< '{"value":"a","partition":3}\n'
        ! error: line 1: a has no partition 3; no event was written
        ! hint: it has 1, counted from 0
        = 2
        $ consume a -n 1 --format json
        > {"topic":"a","partition":0,"offset":0,"timestamp_ms":5,"key":"k","value":"{\"n\":1.50}","headers":[["h","v"],["h",null]]}
        $ consume a -o 1 -f '%o %S\n'
        > 1 -1
        > 2 1
        $ produce b -q -k x --input json-envelope <<< ''
        ! error: with --input json-envelope the key is in the envelope
        ! hint: leave out -k and --key-field, or use --input json-each-row
        = 2
        "#,
    );
}

#[test]
fn a_bad_line_stops_and_what_is_before_it_is_acknowledged() {
    check(
        r#"
        $ produce t --input json-each-row <<< '{"a":1}\n\n{"a":2}\nnope\n{"a":3}\n'
        ! made t with 1 partition
        ! error: line 4: not JSON (expected ident, column 2): nope; 2 events before it on disk, go on with line 4 (tail -n +4)
        ! hint: write one JSON object per line, for example {"id": "e1"}
        = 2
        $ consume t
        > {"a":1}
        > {"a":2}
        "#,
    );
}

#[test]
fn an_event_must_fit_into_a_batch_of_the_topic() {
    check(
        r"
        $ topics create t -q -c max.message.bytes=150
        $ produce t -q <<< '0123456789012345678901234567890123456789\n0123456789012345678901234567890123456789\n0123456789012345678901234567890123456789012345678901234567890123456789\n'
        ! error: line 3: the event takes up to 110 bytes, and a batch of t at most 150; 2 events before it on disk, go on with line 3 (tail -n +3)
        ! hint: raise it with `leftoff topics alter t -c max.message.bytes=[..]`, or split the event
        = 2
        $ consume t -f '%o '
        > 0 1
        ",
    );
}

#[test]
fn lines_up_to_a_mebibyte_and_many_of_them() {
    let dir = TempDir::new().unwrap();
    let longest = "x".repeat(1024 * 1024 - 1024);
    let many: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    std::fs::write(dir.path().join("long"), format!("{longest}\n{longest}\n{longest}y\n")).unwrap();
    std::fs::write(dir.path().join("many"), &many).unwrap();
    check_in(
        &dir,
        r"
        $ produce t -q --source long
        ! error: line 3 is longer than 1047552 bytes; 2 events before it on disk, run again to go on
        ! hint: split the event, or keep its bytes elsewhere and produce a reference
        = 2
        $ consume t -f '%o:%S '
        > 0:1047552 1:1047552
        $ topics create m -q -p 3
        $ produce m --source many
        ! 200000 events in m, on disk; many is read up to line 200000
        ",
    );
    let output = crate::script::leftoff(dir.path()).args(["consume", "m"]).output().unwrap();
    let mut got: Vec<u32> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    got.sort_unstable();
    assert!(got.into_iter().eq(0..200_000));
}

#[test]
fn a_directory_of_somebody_else_stays_as_it_is() {
    let dir = TempDir::new().unwrap();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    std::fs::write(dir.path().join("d/diary.txt"), "dear diary").unwrap();
    check_in(
        &dir,
        r"
        $ produce t <<< 'a\n'
        ! error: d: [..]
        = 4
        $ consume t
        ! error: d: [..]
        = 4
        ",
    );
    assert_eq!(std::fs::read_dir(dir.path().join("d")).unwrap().count(), 1);
}
