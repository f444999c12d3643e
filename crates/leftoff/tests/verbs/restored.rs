//! A data directory that was brought back from an older copy, beside a place that has gone on.

use std::fs;
use std::path::Path;

use crate::process::folder;
use crate::script::check_in;

/// OF-077: events 7 to 9 of the directory that was brought back are others than those that the place has passed. They were
/// skipped, in silence, as soon as the log had come past the place's offset.
#[test]
fn events_of_a_restored_directory_are_not_skipped_because_a_newer_place_has_passed_others() {
    for place in PLACES {
        let dir = brought_back_at_seven(place);
        check_in(&dir, "$ produce t -q --key-field id --source others");
        check_in(
            &dir,
            &format!(
                r#"
                $ run -t t -g g -q --out {place} --until-end -- sh copy.sh
                ! error: {place} has passed the event at offset 9 of t/0, and the log has another event there
                ! the log was brought back from an older copy, and has taken other events since: what it has below offset 10, where {place} goes on, may never have been handled
                ! to go on: [..]
                = 4
                $ run -t t -g g --out {place} --explain --no-headers --format csv
                > t,0,,12,"{place} has passed the event at offset 9 of t/0, and the log has another event there",{place},exactly once
                ! error: [..]
                ! the log was brought back [..]
                ! to go on: [..]
                = 4
                $ groups reset g -t t --to-offset 8 --execute
                ! error: {kind}:[..] has passed the event at offset 9 of t/0, and the log has another event there: this is not the log that its offset counts in, and events of this one may never have been handled
                ! hint: bring the newer log back, or handle this one with another group and place
                = 4
                $ groups skip g -t t --execute
                ! error: {kind}:[..] has passed the event at offset 9 of t/0, and the log has another event there: this is not the log that its offset counts in, and events of this one may never have been handled
                ! hint: [..]
                = 4
                $ check -g g --out {place}
                ! error: {bare} has passed the event at offset 9 of t/0, and the log has another event there: its effects cannot be judged by this log
                ! hint: the data directory was brought back from an older copy; check against the newer one
                = 4
                $ run -t t -g g --out {place} --on-other-log accept --until-end -- sh copy.sh
                ! {place}: exactly once: [..]
                ! t/0: --on-other-log accept: starts at offset 10
                ! t/0 starts at offset 10
                ! nothing left: 2 handled, 2 written
                ! t/0 goes on at offset 12
                $ run -t t -g g -q --out {place} --until-end -- sh copy.sh
                "#,
                bare = place.split_once(':').unwrap().1,
                kind = place.split_once(':').unwrap().0,
            ),
        );
    }
}

/// What the refusal says to do: with the newer directory it goes on, and each event is handled once.
#[test]
fn with_the_newer_directory_back_in_its_place_it_goes_on() {
    for place in PLACES {
        let dir = brought_back_at_seven(place);
        let (old, newer) = (dir.path().join("d"), dir.path().join("gone-on"));
        fs::remove_dir_all(&old).unwrap();
        fs::rename(newer, old).unwrap();
        check_in(
            &dir,
            &format!(
                "$ run -t t -g g -q --out {place} --until-end -- sh copy.sh\n\
                 $ check -g g --out {place} --drained\n> nothing left\n> lost: [] | handled twice: []"
            ),
        );
    }
}

#[cfg(feature = "sqlite")]
const PLACES: &[&str] = &["file:out", "sqlite:db"];
#[cfg(not(feature = "sqlite"))]
const PLACES: &[&str] = &["file:out"];

/// Ten events, all handled into the place; the directory is then as it was at seven, and the newer one is called `gone-on`.
fn brought_back_at_seven(place: &str) -> tempfile::TempDir {
    let dir = folder(1);
    let ten = fs::read_to_string(dir.path().join("ten")).unwrap();
    let lines: Vec<&str> = ten.lines().collect();
    fs::remove_dir_all(dir.path().join("d")).unwrap();
    write(dir.path(), "seven", &lines[..7]);
    write(dir.path(), "three", &lines[7..]);
    write(
        dir.path(),
        "others",
        &["{\"id\":\"x0\"}", "{\"id\":\"x1\"}", "{\"id\":\"x2\"}", "{\"id\":\"x3\"}", "{\"id\":\"x4\"}"],
    );
    check_in(
        &dir,
        &format!(
            "$ produce t -q --key-field id --source seven\n\
             $ run -t t -g g -q --out {place} --until-end -- sh copy.sh\n\
             $ backup copy\n\
             ! [..]\n\
             ! not in it are the places that keep offsets of their own: {kind}:[..]; copy those before the directory, so that none is ahead of the log\n\
             $ produce t -q --key-field id --source three\n\
             $ run -t t -g g -q --out {place} --until-end -- sh copy.sh",
            kind = place.split_once(':').unwrap().0,
        ),
    );
    fs::rename(dir.path().join("d"), dir.path().join("gone-on")).unwrap();
    fs::rename(dir.path().join("copy"), dir.path().join("d")).unwrap();
    dir
}

fn write(dir: &Path, name: &str, lines: &[&str]) {
    fs::write(dir.join(name), lines.join("\n") + "\n").unwrap();
}
