//! What administrators ask of `serve` about places in logs, and what they delete.

use std::io::Write;

use leftoff_wire::messages::{
    ApiKey, delete_records, describe_log_dirs, describe_topic_partitions, fetch, incremental_alter_configs,
    list_config_resources, list_offsets, list_partition_reassignments, metadata, offset_delete,
    offset_for_leader_epoch,
};
use tempfile::TempDir;

use crate::serve::{Client, Server};

fn delete_before(client: &mut Client, topic: &str, partition: i32, offset: i64) -> (i16, i64) {
    let partition = delete_records::DeleteRecordsPartition { partition_index: partition, offset };
    let topics = vec![delete_records::DeleteRecordsTopic { name: topic, partitions: vec![partition] }];
    let request = delete_records::Request { topics, timeout_ms: 1_000 };
    let body = client.ask(ApiKey::DeleteRecords, 2, |out| request.encode(out, 2).unwrap());
    let response = delete_records::Response::decode(&body, 2).unwrap();
    let partition = &response.topics[0].partitions[0];
    (partition.error_code, partition.low_watermark)
}

/// Error, offset and leader epoch.
fn list_offset(client: &mut Client, topic: &str, timestamp: i64, believed_epoch: i32) -> (i16, i64, i32) {
    let partition = list_offsets::ListOffsetsPartition {
        partition_index: 0,
        current_leader_epoch: believed_epoch,
        timestamp,
    };
    let topics = vec![list_offsets::ListOffsetsTopic { name: topic, partitions: vec![partition] }];
    let request = list_offsets::Request { replica_id: -1, topics, ..Default::default() };
    let body = client.ask(ApiKey::ListOffsets, 7, |out| request.encode(out, 7).unwrap());
    let response = list_offsets::Response::decode(&body, 7).unwrap();
    let partition = &response.topics[0].partitions[0];
    (partition.error_code, partition.offset, partition.leader_epoch)
}

/// Error, epoch and end.
fn epoch_end(client: &mut Client, topic: &str, epoch: i32, believed_epoch: i32) -> (i16, i32, i64) {
    let partition = offset_for_leader_epoch::OffsetForLeaderPartition {
        partition: 0,
        current_leader_epoch: believed_epoch,
        leader_epoch: epoch,
    };
    let topics = vec![offset_for_leader_epoch::OffsetForLeaderTopic { topic, partitions: vec![partition] }];
    let request = offset_for_leader_epoch::Request { replica_id: -2, topics };
    let body = client.ask(ApiKey::OffsetForLeaderEpoch, 4, |out| request.encode(out, 4).unwrap());
    let response = offset_for_leader_epoch::Response::decode(&body, 4).unwrap();
    let end = &response.topics[0].partitions[0];
    (end.error_code, end.leader_epoch, end.end_offset)
}

fn fetch_error(client: &mut Client, topic: &str, believed_epoch: i32) -> i16 {
    let partition = fetch::FetchPartition {
        current_leader_epoch: believed_epoch,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let topics = vec![fetch::FetchTopic { topic, partitions: vec![partition], ..Default::default() }];
    let request = fetch::Request { max_wait_ms: 0, topics, ..Default::default() };
    let body = client.ask(ApiKey::Fetch, 12, |out| request.encode(out, 12).unwrap());
    fetch::Response::decode(&body, 12).unwrap().responses[0].partitions[0].error_code
}

fn told_epoch(client: &mut Client, topic: &str) -> i32 {
    let topics = Some(vec![metadata::MetadataRequestTopic { name: Some(topic), ..Default::default() }]);
    let request = metadata::Request { topics, ..Default::default() };
    let body = client.ask(ApiKey::Metadata, 9, |out| request.encode(out, 9).unwrap());
    metadata::Response::decode(&body, 9).unwrap().topics[0].partitions[0].leader_epoch
}

#[test]
fn records_are_deleted_up_to_an_offset_and_stay_deleted() {
    let dir = TempDir::new().unwrap();
    let mut server = Server::start(dir.path(), "");
    let mut client = server.connect();
    assert_eq!(client.create("t"), 0);
    assert_eq!(client.produce("t", &["a", "b", "c", "d"]), (0, 0));
    let script: &[(&str, i32, i64, (i16, i64))] = &[
        ("t", 0, 2, (0, 2)),
        ("t", 0, 1, (0, 2)),
        ("t", 0, 5, (1, -1)),
        ("t", 0, -2, (1, -1)),
        ("t", 1, 0, (3, -1)),
        ("nobody", 0, 0, (3, -1)),
        ("__consumer_offsets", 0, 0, (17, -1)),
    ];
    for (topic, partition, offset, answer) in script {
        assert_eq!(delete_before(&mut client, topic, *partition, *offset), *answer, "{topic} {offset}");
    }
    assert_eq!(list_offset(&mut client, "t", -2, -1), (0, 2, 0));
    server.process.signal("-KILL");
    assert_eq!(server.process.end(), None);
    let server = Server::start(dir.path(), "");
    let mut client = server.connect();
    assert_eq!(list_offset(&mut client, "t", -2, -1), (0, 2, 0));
    assert_eq!(delete_before(&mut client, "t", 0, -1), (0, 4), "-1 is the end");
    assert_eq!(client.commit("g", "t", 4), 0);
}

#[test]
fn a_client_of_an_earlier_leader_epoch_is_told_so() {
    let dir = TempDir::new().unwrap();
    let mut server = Server::start(dir.path(), "");
    let mut client = server.connect();
    assert_eq!(client.create("t"), 0);
    assert_eq!(client.produce("t", &["a", "b"]), (0, 0));
    assert_eq!(told_epoch(&mut client, "t"), 0);
    assert_eq!(epoch_end(&mut client, "t", 0, 0), (0, 0, 2));
    server.process.signal("-KILL");
    assert_eq!(server.process.end(), None);
    // What a power cut leaves of an unacknowledged batch is cut, and that is a new epoch.
    let log = dir.path().join("d/t-0/00000000000000000000.log");
    std::fs::OpenOptions::new().append(true).open(log).unwrap().write_all(b"half a batch").unwrap();
    let server = Server::start(dir.path(), "");
    let mut client = server.connect();
    assert_eq!(told_epoch(&mut client, "t"), 1);
    assert_eq!(client.produce("t", &["c"]), (0, 2));
    let believed = [(-1, 0), (0, 74), (1, 0), (2, 75)];
    for (epoch, error) in believed {
        assert_eq!(fetch_error(&mut client, "t", epoch), error, "fetch in epoch {epoch}");
        assert_eq!(list_offset(&mut client, "t", -1, epoch).0, error, "list offsets in epoch {epoch}");
        assert_eq!(epoch_end(&mut client, "t", 0, epoch).0, error, "end of an epoch, in epoch {epoch}");
    }
    assert_eq!(epoch_end(&mut client, "t", 0, 1), (0, 0, 2));
    assert_eq!(epoch_end(&mut client, "t", 1, 1), (0, 1, 3));
    assert_eq!(epoch_end(&mut client, "t", 9, 1), (0, -1, -1));
    assert_eq!(epoch_end(&mut client, "nobody", 0, -1), (3, -1, -1));
    assert_eq!(list_offset(&mut client, "t", -2, 1), (0, 0, 0));
    assert_eq!(list_offset(&mut client, "t", -1, 1), (0, 3, 1));
}

/// Names, limit and cursor; what is told, and the next cursor.
type Paged<'a> = (&'a [&'a str], i32, Option<(&'a str, i32)>, &'a [&'a str], &'a str);

/// Each topic that is told, with the partitions of it; then the cursor.
fn page(
    client: &mut Client,
    names: &[&str],
    limit: i32,
    cursor: Option<(&str, i32)>,
) -> (Vec<String>, String) {
    use describe_topic_partitions::{Request, RequestCursor, RequestTopicRequest, Response};
    let request = Request {
        topics: names.iter().map(|name| RequestTopicRequest { name }).collect(),
        response_partition_limit: limit,
        cursor: cursor.map(|(topic_name, partition_index)| RequestCursor { topic_name, partition_index }),
    };
    let body = client.ask(ApiKey::DescribeTopicPartitions, 0, |out| request.encode(out, 0).unwrap());
    let response = Response::decode(&body, 0).unwrap();
    let told = response.topics.iter().map(|topic| {
        let numbers: Vec<String> =
            topic.partitions.iter().map(|one| one.partition_index.to_string()).collect();
        let error = if topic.error_code == 0 { String::new() } else { format!("!{}", topic.error_code) };
        format!("{}:{}{error}", topic.name.unwrap(), numbers.join(","))
    });
    let cursor = response.next_cursor.as_ref();
    (told.collect(), cursor.map_or("end".into(), |at| format!("{}:{}", at.topic_name, at.partition_index)))
}

#[test]
fn topics_are_described_page_by_page() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), "");
    let mut client = server.connect();
    client.create("a");
    client.create_with("b", 3);
    let script: &[Paged<'_>] = &[
        (&[], 2000, None, &["__consumer_offsets:0", "a:0", "b:0,1,2"], "end"),
        (&["b", "a"], 2000, None, &["a:0", "b:0,1,2"], "end"),
        (&["a", "b"], 1, None, &["a:0"], "b:0"),
        (&["a", "b"], 2, None, &["a:0", "b:0"], "b:1"),
        (&["a", "b"], 2, Some(("b", 1)), &["b:1,2"], "end"),
        (&["a", "b"], 1, Some(("b", 1)), &["b:1"], "b:2"),
        (&["a", "nobody", "no/name"], 9, None, &["a:0", "no/name:!17", "nobody:!3"], "end"),
        (&["a"], -1, None, &["a:0"], "end"),
    ];
    for (names, limit, cursor, told, next) in script {
        let got = page(&mut client, names, *limit, *cursor);
        assert_eq!(
            got,
            (told.iter().map(|one| (*one).to_owned()).collect(), (*next).to_owned()),
            "{names:?}"
        );
    }
    let (_, next) = page(&mut client, &["nobody"], 9, None);
    assert_eq!(next, "end");
    assert_eq!(page(&mut client, &["nobody"], 9, None).0, ["nobody:!3"], "it was not made");
}

#[test]
fn the_data_directory_is_described_with_sizes() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), "");
    let mut client = server.connect();
    client.create("t");
    client.produce("t", &["a"]);
    let topic = describe_log_dirs::DescribableLogDirTopic { topic: "t", partitions: vec![0, 7] };
    for (wanted, told) in [(Some(vec![topic]), 1), (None, 2)] {
        let request = describe_log_dirs::Request { topics: wanted };
        let body = client.ask(ApiKey::DescribeLogDirs, 4, |out| request.encode(out, 4).unwrap());
        let response = describe_log_dirs::Response::decode(&body, 4).unwrap();
        let at = &response.results[0];
        assert!(at.log_dir.starts_with('/') && at.total_bytes >= at.usable_bytes && at.usable_bytes > 0);
        assert_eq!(at.topics.len(), told);
        let topic = at.topics.iter().find(|topic| topic.name == "t").unwrap();
        let file = dir.path().join("d/t-0/00000000000000000000.log");
        let bytes = i64::try_from(std::fs::metadata(file).unwrap().len()).unwrap();
        assert_eq!((topic.partitions.len(), topic.partitions[0].partition_size), (1, bytes));
    }
    let request = list_partition_reassignments::Request::default();
    let body = client.ask(ApiKey::ListPartitionReassignments, 0, |out| request.encode(out, 0).unwrap());
    let response = list_partition_reassignments::Response::decode(&body, 0).unwrap();
    assert_eq!((response.error_code, response.topics.len()), (0, 0));
}

#[test]
fn offsets_of_a_group_are_deleted_by_partition() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), "");
    let mut client = server.connect();
    client.create("t");
    client.produce("t", &["a"]);
    assert_eq!(client.commit("g", "t", 1), 0);
    let mut delete = |group: &str, partition: i32| {
        let partitions = vec![offset_delete::OffsetDeleteRequestPartition { partition_index: partition }];
        let topics = vec![offset_delete::OffsetDeleteRequestTopic { name: "t", partitions }];
        let request = offset_delete::Request { group_id: group, topics };
        let body = client.ask(ApiKey::OffsetDelete, 0, |out| request.encode(out, 0).unwrap());
        let response = offset_delete::Response::decode(&body, 0).unwrap();
        let first = response.topics.first().map_or(0, |topic| topic.partitions[0].error_code);
        (response.error_code, first)
    };
    assert_eq!(delete("nobody", 0), (69, 0));
    assert_eq!(delete("g", 4), (0, 3));
    assert_eq!(delete("g", 0), (0, 0));
    assert_eq!(client.committed("g", "t").0, -1);
}

#[test]
fn settings_of_the_broker_and_of_groups_that_mean_nothing_here_are_kept() {
    use incremental_alter_configs::{AlterConfigsResource, AlterableConfig, Request, Response};
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), "");
    let mut client = server.connect();
    let script = [
        (4, "1", "num.io.threads", "9", 0),
        (4, "", "num.io.threads", "7", 0),
        (4, "2", "num.io.threads", "9", 42),
        (4, "1", "num.io.threads", "none", 40),
        (4, "1", "ssl.key.password", "secret", 40),
        (4, "1", "log.retention.ms", "1", 42),
        (32, "g", "consumer.session.timeout.ms", "50000", 0),
        (32, "g", "colour", "red", 40),
        (32, "", "consumer.session.timeout.ms", "50000", 42),
        (16, "metrics", "interval.ms", "1", 42),
    ];
    for (resource_type, resource_name, name, value, error) in script {
        let config = AlterableConfig { name, config_operation: 0, value: Some(value) };
        let resource = AlterConfigsResource { resource_type, resource_name, configs: vec![config] };
        let request = Request { resources: vec![resource], validate_only: false };
        let body = client.ask(ApiKey::IncrementalAlterConfigs, 1, |out| request.encode(out, 1).unwrap());
        let got = &Response::decode(&body, 1).unwrap().responses[0];
        assert_eq!(got.error_code, error, "{resource_type} {resource_name} {name}: {:?}", got.error_message);
    }
    let (_, told) = crate::admin::describe(&mut client, 4, "1", Some(vec!["num.io.threads"]));
    let synonyms = ["num.io.threads=9", "num.io.threads=7", "num.io.threads=8"].map(str::to_owned).to_vec();
    assert_eq!(told["num.io.threads"], ("9".to_owned(), 2, false, synonyms));
    let (_, told) = crate::admin::describe(&mut client, 32, "g", None);
    assert_eq!(told["consumer.session.timeout.ms"].0, "50000");
    assert_eq!(told["consumer.session.timeout.ms"].1, 8);

    let mut list = |resource_types: Vec<i8>| {
        let request = list_config_resources::Request { resource_types };
        let body = client.ask(ApiKey::ListConfigResources, 1, |out| request.encode(out, 1).unwrap());
        let response = list_config_resources::Response::decode(&body, 1).unwrap();
        let listed = response.config_resources.iter();
        let listed: Vec<String> =
            listed.map(|one| format!("{}:{}", one.resource_type, one.resource_name)).collect();
        (response.error_code, listed.join(" "))
    };
    assert_eq!(list(vec![]), (0, "2:__consumer_offsets 4:1 32:g".to_owned()));
    assert_eq!(list(vec![32, 16]), (0, "32:g".to_owned()));
    assert_eq!(list(vec![5]).0, 35);
}
