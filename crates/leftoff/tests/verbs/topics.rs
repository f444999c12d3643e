use crate::script::check;

#[test]
fn topics_come_and_go() {
    check(
        r"
        $ topics ls
        ! error: there is no data in d
        ! hint: `leftoff produce TOPIC` makes it; another directory is named with --data or LEFTOFF_DATA
        = 3
        $ topics create a b -p 2
        ! made a with 2 partitions
        ! made b with 2 partitions
        $ topics create a
        ! error: topic [..]a[..] exists already
        = 2
        $ topics create a --if-not-exists
        ! a exists already, with 2 partitions
        $ produce a -q -p 1 <<< 'x\ny\n'
        $ topics ls --format csv --no-headers
        > a,2,2,[..],[..]Z,[..]
        > b,2,0,0,[..]Z,[..]
        $ topics delete a
        ! error: delete a with 2 events? nobody can be asked here
        ! hint: add --noconfirm if you are sure
        = 4
        $ topics delete c
        ! error: there is no topic [..]c[..]
        ! hint: [..]
        = 3
        $ topics delete a --noconfirm
        ! deleted a
        $ topics ls --format csv --no-headers
        > b,2,0,0,[..]Z,[..]
        # The name can be used again, and nothing of the old one is there.
        $ produce a -q <<< 'z\n'
        $ consume a
        > z
        ",
    );
}

#[test]
fn events_are_kept_for_ever_unless_asked_otherwise() {
    check(
        r"
        $ topics create a -q
        $ topics create b -q --retention 7d -c segment.bytes=1000
        $ topics create c -q --retention 7d -c retention.ms=5
        ! error: --retention and -c retention.ms say the same thing twice
        ! hint: leave one of them out
        = 2
        $ topics create c -q -c colour=red
        ! error: unknown topic setting [..]colour[..]; known are retention.ms, [..]
        = 2
        $ topics describe a b
        > TOPIC  PARTITION  START  END  EVENTS  BYTES  SEGMENTS  EARLIEST  LATEST
        > a              0      0    0       0      0         1  -         -
        > b              0      0    0       0      0         1  -         -
        >
        > a was made at [..]Z, its id is [..]
        > SETTING                 VALUE  FROM
        > retention.ms               -1  given
        > retention.bytes            -1  default
        > segment.bytes      1073741824  default
        > segment.ms          604800000  default
        > max.message.bytes     1048588  default
        >
        > b was made at [..]Z, its id is [..]
        > SETTING                VALUE  FROM
        > retention.ms       604800000  given
        > retention.bytes           -1  default
        > segment.bytes           1000  given
        > segment.ms         604800000  default
        > max.message.bytes    1048588  default
        ",
    );
}

#[test]
fn settings_and_partitions_change_while_there_are_events() {
    check(
        r#"
        $ produce t -q <<< 'a\nb\n'
        $ topics alter t -p 1
        ! error: t has 1 partition already, 1 are not more
        ! hint: partitions can be added, never taken away: their events would be lost
        = 2
        $ topics alter t -p 3 -c segment.bytes=100
        ! t has 3 partitions now; new events of a key may go to another one than its old 1
        $ produce t -q -p 2 <<< 'c\n'
        $ produce t -q -p 0 <<< 'd\n'
        $ topics describe t --format jsonl
        > {[..]"partition":0,"log_start":0,"end":3,"events":3,"bytes":[..],"segments":2,[..]"segment.bytes":{"value":100,"given":true}[..]}
        $ topics alter t -c segment.bytes=
        $ topics describe t --format jsonl
        > {[..]"segment.bytes":{"value":1073741824,"given":false}[..]}
        $ consume t
        > a
        > b
        > d
        > c
        "#,
    );
}

#[test]
fn trim_deletes_what_lies_before_an_offset() {
    check(
        r"
        $ produce t -q <<< '0\n1\n2\n3\n4\n'
        $ topics trim t -o 2
        ! error: delete 2 events of t before 2? nobody can be asked here
        ! hint: add --noconfirm if you are sure
        = 4
        $ topics trim t -o 6 --noconfirm
        ! error: t/0: offset 6 is above the end, 5
        ! hint: -o end deletes everything there is
        = 2
        $ topics trim t -o 2 --noconfirm
        ! t/0 begins at offset 2 now
        $ topics trim t -o 1 --noconfirm
        ! nothing of t lies before 1
        $ consume t
        > 2
        > 3
        > 4
        $ consume t -o 1
        ! error: t/0: offset 1 is not there; the partition has offsets 2 to 4 (3)
        ! hint: [..]
        = 2
        $ topics trim t -o -1 --noconfirm
        ! t/0 begins at offset 4 now
        $ topics trim t -o end --noconfirm
        ! t/0 begins at offset 5 now
        $ consume t
        $ consume t -o 4
        ! error: t/0: offset 4 is not there; the partition is empty, its next offset is 5
        ! hint: [..]
        = 2
        ",
    );
}
