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

#[test]
fn a_hole_in_a_log_stops_a_consumer_and_is_named() {
    use leftoff::consumer::runner::{OnGap, RunOptions};
    let dir = tempfile::tempdir().unwrap();
    let log = Leftoff::open(dir.path()).unwrap();
    let settings = [("segment.bytes".to_owned(), "150".to_owned())];
    log.store().create_topic("t", 1, &settings).unwrap();
    for value in ["a", "b", "c", "d", "e", "f"] {
        log.append("t", 0, &[Record::value(value)]).unwrap();
    }
    log.close().unwrap();
    std::fs::remove_file(dir.path().join("t-0/00000000000000000002.log")).unwrap();

    let log = Leftoff::open(dir.path()).unwrap();
    let mut seen = Vec::new();
    let mut handle = |event: &leftoff::consumer::source::Event| {
        seen.push(event.offset.get());
        Ok::<_, String>(())
    };
    let stopped = log.consume("g", "t", &mut handle).unwrap_err().to_string();
    assert!(stopped.contains("offsets 2 to 3 (2)"), "{stopped}");
    assert_eq!(log.committed("g", "t", 0).unwrap().next().get(), 2, "nothing is passed without a word");
    let options = RunOptions { until_end: true, on_gap: OnGap::Earliest, ..RunOptions::default() };
    log.consume_with("g", &["t".to_owned()], &options, &Default::default(), &mut handle).unwrap();
    assert_eq!(seen, [0, 1, 4, 5]);
}
