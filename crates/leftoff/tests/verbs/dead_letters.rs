//! Dead letters: events that could not be handled are kept, shown, produced again and dropped.

use crate::process::{folder, stdout};
use crate::script::check_in;

/// The same for every place: what `dlq` says does not depend on where the letters are.
fn lives(out: &str, kept_in: &str) {
    let dir = folder(1);
    let flags = format!("-t t -g g --out {out} --until-end --on-fail dlq --attempts 2 --backoff 1ms -q");
    stdout(dir.path(), &format!("run {flags} -- sh bad_at.sh k3 error"));
    check_in(
        &dir,
        "
            $ dlq ls g
            > EVENT  ATTEMPTS  GIVEN-UP                  STATE  WHY
            > t/0/3         2  [..]  open   the handler reports: no such place
            $ dlq replay g --all
            > t/0/3 would be produced again to t
            > 1 event; nothing was done: --execute does it
            $ dlq replay g t/0/4
            ! error: t/0/4 is no open dead letter of group g
            ! hint: `leftoff dlq ls g` lists them; --again takes what was replayed or dropped
            = 3
            $ dlq replay g
            ! error: which dead letters?
            ! hint: name events as TOPIC/PARTITION/OFFSET, or --all, --reason TEXT, -t TOPIC
            = 2
            $ dlq replay g --reason 'such place' --execute
            > t/0/3 is produced again to t
            ! 1 event produced again
            $ dlq replay g --all --execute
            $ dlq drop g t/0/3 --execute
            ! error: t/0/3 is no open dead letter of group g
            ! hint: `leftoff dlq ls g` lists them; --again takes what was replayed or dropped
            = 3
            $ consume t -o 10 -f '%o %k %v %h\\n'
            > 10 k3 {\"id\":\"k3\"} leftoff_replay_of=[..]/0/3
            ",
    );
    // The event is handled now, and the check knows of both.
    stdout(dir.path(), &format!("run {flags} -- sh bad_at.sh k4 error"));
    check_in(
        &dir,
        &format!(
            "
            $ dlq ls g --format csv --no-headers
            > t/0/3,2,[..],replayed,the handler reports: no such place,[..]/0/3,{kept_in}
            $ dlq ls nobody
            > EVENT  ATTEMPTS  GIVEN-UP  STATE  WHY
            ! group nobody has no dead letters here
            "
        ),
    );
    let shown: serde_json::Value = serde_json::from_str(&stdout(dir.path(), "dlq show g t/0/3")).unwrap();
    assert_eq!((&shown["key"], &shown["value"]), (&"k3".into(), &"{\"id\":\"k3\"}".into()));
    assert_eq!((&shown["attempts"], &shown["state"]), (&2.into(), &"replayed".into()));
}

#[test]
fn beside_a_file() {
    lives("file:out", "file:[..]/out.dead");
}

#[test]
#[cfg(feature = "sqlite")]
fn in_a_database() {
    lives("sqlite:out", "sqlite:[..]/out");
}

#[test]
fn in_a_topic_beside_records_in_another() {
    lives("topic:out", "topic:g.dead");
}

#[test]
fn in_a_topic_where_records_go_to_stdout() {
    lives("stdout", "topic:g.dead");
}

#[test]
fn an_event_that_is_given_up_for_good_is_tried_once() {
    let dir = folder(1);
    let run = "run -t t -g g --out file:out --until-end --on-fail dlq --attempts 5 -q -- sh sevens.sh";
    stdout(dir.path(), run);
    check_in(
        &dir,
        "
        $ dlq ls g --format csv --no-headers
        > t/0/7,1,[..],open,the handler reports: a seven,[..]
        $ check -g g --out file:out --drained
        > dead: ['t/0/7']
        > nothing left
        > lost: [] | handled twice: []
        $ dlq drop g --all --execute
        > t/0/7 is dropped
        ! 1 event marked as dropped
        $ dlq ls g --format csv --no-headers
        > t/0/7,1,[..],dropped,the handler reports: a seven,[..]
        ",
    );
}

#[test]
fn a_file_of_letters_that_is_gone_is_told() {
    let dir = folder(1);
    stdout(dir.path(), "run -t t -g g --out file:out --until-end --on-fail dlq -q -- sh sevens.sh");
    std::fs::remove_file(dir.path().join("out.dead")).unwrap();
    check_in(
        &dir,
        "
        $ dlq ls g
        ! error: 1 dead letters are not in [..]/out.dead, [..]/0/7 first: the file was lost or damaged
        ! hint: their events are in their topic for as long as that keeps them
        = 5
        ",
    );
}

#[test]
fn a_group_whose_name_is_no_topics_name_names_the_topic() {
    let dir = folder(1);
    check_in(
        &dir,
        "
        $ run -t t -g 'a b' --until-end --on-fail dlq -q -- sh sevens.sh
        ! error: the name of group 'a b' cannot be part of a topic's name
        ! hint: name the topic of its dead letters with --dlq-topic
        = 2
        $ run -t t -g 'a b' --until-end --on-fail dlq --dlq-topic t -q -- sh sevens.sh
        ! error: topic t is read: dead letters would be handled again for ever
        ! hint: name another topic with --dlq-topic
        = 4
        ",
    );
}

#[test]
fn a_letter_that_cannot_be_kept_stops_the_run_before_its_event() {
    let dir = folder(1);
    check_in(&dir, "$ topics create g.dead -q -c max.message.bytes=100");
    check_in(
        &dir,
        "
        $ run -t t -g g --until-end --on-fail dlq -q -- sh sevens.sh
        > [..]\n> [..]\n> [..]\n> [..]\n> [..]\n> [..]\n> [..]
        ! error: [..]
        = 4
        "
        .replace("\\n", "\n        ")
        .as_str(),
    );
    let described = stdout(dir.path(), "groups export g");
    assert!(described.contains("t,0,7"), "{described}");
}
