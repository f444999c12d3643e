//! What was found wrong at the edges, each under the name of what went wrong.

use std::process::Command;

use tempfile::TempDir;

use crate::process::folder;
use crate::script::{check, check_in};

/// `produce` made a topic for lines that it then refused.
#[test]
fn no_topic_is_made_for_lines_that_go_nowhere() {
    check(
        r#"
        $ produce t -p 3 <<< 'a\n'
        ! error: there is no topic "t", and one that is made now has no partition 3
        ! hint: `leftoff topics create t -p 4` makes it with enough
        = 2
        $ produce t --source missing
        ! error: cannot read missing: No such file or directory (os error 2)
        = 2
        $ topics ls --no-headers -q
        $ produce t -q -p 0 <<< 'a\n'
        $ topics ls --no-headers
        > t  1 [..]
        "#,
    );
}

/// `consume -o 3` failed if one of several partitions had no offset 3.
#[test]
fn an_offset_that_some_partitions_lack_is_passed_with_a_note() {
    check(
        r"
        $ topics create t -q -p 2
        $ produce t -q -p 0 <<< 'a0\na1\na2\na3\na4\n'
        $ produce t -q -p 1 <<< 'b0\n'
        $ consume t -o 3
        > a3
        > a4
        ! t/1: offset 3 is not there; the partition has offset 0
        $ consume t -o 3:4
        > a3
        ! t/1 ends at 1, before 4; --follow waits for the rest
        ! t/1: offset 3 is not there; the partition has offset 0
        $ topics trim t -p 1 -o 1 --noconfirm -q
        $ consume t -o 0 -q
        > a0
        > a1
        > a2
        > a3
        > a4
        $ consume t -o 9
        ! error: t/0: offset 9 is not there; the partition has offsets 0 to 4 (5)
        ! hint: -o start, -o end or -o -10 fit any partition; -p chooses partitions
        = 2
        ",
    );
}

/// They waited for ever for somebody at the other end.
#[test]
fn a_fifo_in_the_place_of_a_file_is_named() {
    let dir = folder(1);
    for name in ["fifo", "other.leftoff"] {
        assert!(Command::new("mkfifo").arg(dir.path().join(name)).status().unwrap().success());
    }
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    check_in(
        &dir,
        r"
        $ produce t --source fifo
        ! error: fifo is not a plain file, so no place in it can be remembered
        ! hint: leave out --source and send the lines to stdin
        = 2
        $ produce t --source folder
        ! error: folder is not a plain file, so no place in it can be remembered
        ! hint: leave out --source and send the lines to stdin
        = 2
        $ run -t t -g g -q --out file:fifo -- sh copy.sh
        ! error: fifo is no regular file; what is written there could not be cut back
        = 4
        $ run -t t -g g -q --out file:folder -- sh copy.sh
        ! error: folder is no regular file; what is written there could not be cut back
        = 4
        $ run -t t -g g -q --out file:other -- sh copy.sh
        ! error: other.leftoff is no regular file; what is written there could not be cut back
        = 4
        $ run -t t -g g -q --out sqlite:fifo -- sh copy.sh
        ! error: fifo is not a plain file
        ! hint: name the file of a database, or one that does not exist yet
        = 2
        $ run -t t -g h -q --max 1 --out file:out -- sh copy.sh
        $ check -g h --out file:fifo
        ! error: fifo is not a plain file
        = 2
        ",
    );
    let segment = dir.path().join("d/t-0/00000000000000000000.log");
    std::fs::remove_file(&segment).unwrap();
    assert!(Command::new("mkfifo").arg(&segment).status().unwrap().success());
    check_in(&dir, "$ consume t\n! error: [..]it is not a plain file[..]\n= 5");
}

/// A file of many GiB without a byte in it was read whole.
#[test]
fn a_file_of_marks_that_cannot_be_one_is_not_read() {
    let dir = folder(1);
    let marks = std::fs::OpenOptions::new().write(true).open(dir.path().join("d/marks")).unwrap();
    marks.set_len(1 << 40).unwrap();
    check_in(&dir, "$ topics ls\n! error: [..]1099511627776 bytes, more than all partitions take[..]\n= 5");
}

/// The two logs of Leftoff itself were counted, too.
#[test]
fn a_backup_counts_what_a_person_has() {
    let dir = TempDir::new().unwrap();
    check_in(
        &dir,
        r"
        $ produce t -q <<< 'a\n'
        $ backup copy
        ! 1 topic with 1 partition, [..] bytes, copied to copy; it is a data directory, for --data
        $ topics create u -q -p 2
        $ backup other
        ! 2 topics with 3 partitions, [..] bytes, copied to other; it is a data directory, for --data
        ",
    );
}

#[test]
fn the_help_of_wait_tells_what_its_exit_codes_mean() {
    let output =
        crate::script::leftoff(TempDir::new().unwrap().path()).args(["wait", "--help"]).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("1 it is not after --timeout"));
}

/// The repair of the metadata log took a topic out without a word.
#[test]
fn a_repair_names_the_topics_that_it_loses() {
    let dir = TempDir::new().unwrap();
    check_in(&dir, "$ produce t -q <<< 'a\\n'\n$ produce lost -q <<< 'a\\n'");
    let path = dir.path().join("d/__leftoff_metadata-0/00000000000000000000.log");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|four| four == b"lost").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    check_in(
        &dir,
        "
        $ doctor --repair --no-headers --format csv
        > __leftoff_metadata-0,damage,\"damaged bytes in segment 0 at position [..], offset 1\",\"taken out, and kept in [..]\"
        ! before the repair: [..]
        ! looked at [..]
        ! warning: no record of a topic claims lost-0 any more; its events are kept in aside/lost-0
        ! hint: make the topic again with `leftoff topics create` and append them anew, or bring back a backup
        ",
    );
}

/// The words after a repair that cannot help named a checksum, and no way on.
#[test]
fn a_lost_log_of_leftoff_itself_is_named_with_what_was_in_it() {
    for (name, lost) in [
        ("__consumer_offsets-0", "the offsets and the history of all groups were in"),
        ("__leftoff_metadata-0", "the names and settings of all topics were in"),
    ] {
        let dir = folder(1);
        check_in(&dir, "$ consume t -g g -n 1 -q\n> {\"id\":\"k0\"}");
        std::fs::remove_dir_all(dir.path().join("d").join(name)).unwrap();
        let output = crate::script::leftoff(dir.path()).args(["doctor", "--repair"]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(5), "{stderr}");
        assert!(stderr.contains(&format!("hint: {lost} {name}: bring that folder back")), "{stderr}");
    }
}
