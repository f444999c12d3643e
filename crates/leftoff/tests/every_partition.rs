//! What one partition says holds for that partition: an empty first one does not end a run.
#![allow(missing_docs, clippy::unwrap_used)]

use leftoff::{Leftoff, Record};

#[test]
fn a_run_until_the_end_handles_every_partition_although_the_first_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let log = Leftoff::open(dir.path()).unwrap();
    log.create_topic("empty", 1).unwrap();
    log.create_topic("orders", 4).unwrap();
    let events: Vec<Record<'_>> = ["a", "b", "c"].iter().map(Record::value).collect();
    log.append("orders", 2, &events).unwrap();
    log.append("orders", 3, &events).unwrap();
    let mut seen = Vec::new();
    let mut handle = |event: &leftoff::consumer::source::Event| {
        seen.push(event.value.clone().unwrap());
        Ok::<_, String>(())
    };
    assert_eq!(log.consume("g", "orders", &mut handle).unwrap().handled, 6);
    assert_eq!(log.consume("g", "orders", &mut handle).unwrap().handled, 0);
    let topics = ["empty".to_owned(), "orders".to_owned()];
    let options = leftoff::consumer::runner::RunOptions { until_end: true, ..Default::default() };
    let report = log.consume_with("h", &topics, &options, &Default::default(), &mut handle).unwrap();
    assert_eq!((report.handled, seen.len()), (6, 12));
}

#[test]
fn a_topic_with_the_longest_name_can_be_deleted_and_the_directory_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let name = "n".repeat(249);
    let log = Leftoff::open(dir.path()).unwrap();
    log.create_topic(&name, 3).unwrap();
    log.append(&name, 0, &[Record::value("a")]).unwrap();
    let request = leftoff::engine::broker::Request::DeleteTopic { name: name.clone() };
    log.store().request(request).unwrap();
    log.create_topic(&name, 1).unwrap();
    log.close().unwrap();
    let log = Leftoff::open(dir.path()).unwrap();
    assert_eq!(log.read(&name, 0, leftoff::Offset::ZERO).unwrap().events.len(), 0);
}

#[test]
fn a_folder_that_only_looks_deleted_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    Leftoff::open(dir.path()).unwrap().close().unwrap();
    std::fs::create_dir(dir.path().join("precious-delete")).unwrap();
    std::fs::write(dir.path().join("precious-delete/file"), "mine").unwrap();
    Leftoff::open(dir.path()).unwrap().close().unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join("aside/precious-delete/file")).unwrap(), "mine");
}
