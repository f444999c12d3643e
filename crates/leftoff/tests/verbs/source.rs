use crate::script::check;

#[test]
fn a_source_goes_on_where_it_stopped() {
    check(
        r"
        write f 'a\nb\nc'
        $ produce t --source f
        ! made t with 1 partition
        ! 2 events in t, on disk; f is read up to line 2
        ! the last line has no line feed yet; it is left for the next run
        $ produce t --source f
        ! nothing new in f for t
        ! the last line has no line feed yet; it is left for the next run
        append f 'c\nd\n'
        $ produce t --source ./f
        ! 2 events in t, on disk; ./f is read up to line 4
        $ produce t --source f
        ! nothing new in f for t
        # Another topic has its own place in the file.
        $ produce u -q --source f -k key
        $ consume t
        > a
        > b
        > cc
        > d
        $ consume u -f '%k%s '
        > keya keyb keycc keyd
        ",
    );
}

#[test]
fn a_bad_line_is_read_again_when_it_is_mended() {
    check(
        r#"
        write f '{"a":1}\noops\n{"a":3}\n'
        $ produce t -q --input json-each-row --source f
        ! error: line 2: not JSON (expected value, column 1): oops; 1 event before it on disk, run again to go on
        ! hint: [..]
        = 2
        write f '{"a":1}\n{"a":2}\n{"a":3}\n'
        $ produce t --input json-each-row --source f
        ! 2 events in t, on disk; f is read up to line 3
        $ consume t
        > {"a":1}
        > {"a":2}
        > {"a":3}
        "#,
    );
}

/// OF-072 to OF-074: a file that was cut, refilled or replaced is not the one that was read.
#[test]
fn another_file_under_the_same_name_is_refused() {
    check(
        r"
        write f 'a\nb\nc\n'
        $ produce t -q --source f
        write f 'a\n'
        $ produce t --source f
        ! error: f has 2 bytes, but 6 (3 lines) were read from it before
        ! hint: if this is a new file, read it from its beginning with --from-start, or give it another name; if it was changed by mistake, bring the old one back
        = 4
        write f 'x\ny\nz\nmore\nlines\n'
        $ produce t --source f
        ! error: f is not as it was when 3 lines were read from it: it differs at its beginning
        ! hint: [..]
        = 4
        $ consume t
        > a
        > b
        > c
        $ produce t --source f --from-start
        ! reading f from its beginning, as asked
        ! 5 events in t, on disk; f is read up to line 5
        append f 'n\n'
        $ produce t --source f
        ! 1 event in t, on disk; f is read up to line 6
        ",
    );
}

#[test]
fn a_change_in_front_of_the_place_is_seen_behind_the_first_bytes() {
    let lines = |last: &str| format!("{}{last}\n", "the same line again\\n".repeat(400));
    check(&format!(
        r"
        write f '{}'
        $ produce t -q --source f
        write f '{}'
        $ produce t --source f
        ! error: f is not as it was when 401 lines were read from it: it differs just before line 402
        ! hint: [..]
        = 4
        ",
        lines("one").replace('\n', "\\n"),
        lines("two").replace('\n', "\\n"),
    ));
}

#[test]
fn a_topic_made_anew_gets_the_file_from_its_beginning() {
    check(
        r"
        write f 'a\n'
        $ produce t -q --source f
        $ topics delete t -q --noconfirm
        $ produce t --source f
        ! made t with 1 partition
        ! the topic was made anew, so f is read from its beginning
        ! 1 event in t, on disk; f is read up to line 1
        $ produce t --source .
        ! error: . is not a plain file, so no place in it can be remembered
        ! hint: leave out --source and send the lines to stdin
        = 2
        $ produce t --source g
        ! error: cannot read g: [..]
        = 2
        $ produce t --from-start
        ! error: [..]
        !   --source <FILE>
        !
        ! Usage: [..]
        !
        ! For more information, try '--help'.
        = 2
        ",
    );
}
