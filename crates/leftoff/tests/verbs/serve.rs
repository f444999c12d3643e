//! `serve`, by bytes on a socket: the messages are those of the wire crate, the process is real, and is killed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use leftoff_wire::messages::{
    ApiKey, RequestHeader, ResponseHeader, api_versions, create_topics, fetch, metadata, offset_commit,
    offset_fetch, produce,
};
use leftoff_wire::record_batch::{Batch, BatchBuilder, Limits};
use tempfile::TempDir;

use crate::process::{Background, until};

pub(crate) struct Server {
    pub(crate) process: Background,
    pub(crate) address: String,
}

impl Server {
    /// Starts it at a free port, which it tells.
    pub(crate) fn start(dir: &Path, more: &str) -> Server {
        let before = std::fs::read_to_string(dir.join("stderr")).unwrap_or_default().len();
        let process = Background::start(dir, &format!("serve --listen 127.0.0.1:0 {more}"));
        let address = until("its address", || {
            let told = std::fs::read_to_string(dir.join("stderr")).ok()?;
            let line = told.get(before..)?.lines().find_map(|line| line.strip_prefix("listens at "))?;
            told.ends_with('\n').then(|| line.to_owned())
        });
        Server { process, address }
    }

    pub(crate) fn connect(&self) -> Client {
        Client { stream: TcpStream::connect(&self.address).unwrap(), asked: 0 }
    }
}

pub(crate) struct Client {
    stream: TcpStream,
    asked: i32,
}

impl Client {
    pub(crate) fn send(&mut self, api: ApiKey, version: i16, encode: impl FnOnce(&mut Vec<u8>)) {
        self.asked += 1;
        let mut frame = vec![0; 4];
        let header = RequestHeader {
            api_key: api as i16,
            api_version: version,
            correlation_id: self.asked,
            client_id: Some("test"),
        };
        header.encode(&mut frame);
        encode(&mut frame);
        let length = i32::try_from(frame.len() - 4).unwrap();
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.stream.write_all(&frame).unwrap();
    }

    /// The message behind the header of the answer to the request of this number.
    pub(crate) fn answer(&mut self, number: i32, api: ApiKey, version: i16) -> Vec<u8> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut frame = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
        self.stream.read_exact(&mut frame).unwrap();
        let (header, body) = ResponseHeader::decode(&frame, api, version).unwrap();
        assert_eq!(header.correlation_id, number);
        body.to_vec()
    }

    pub(crate) fn ask(&mut self, api: ApiKey, version: i16, encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        self.send(api, version, encode);
        self.answer(self.asked, api, version)
    }

    pub(crate) fn create(&mut self, name: &str) -> i16 {
        self.create_with(name, 1)
    }

    pub(crate) fn create_with(&mut self, name: &str, num_partitions: i32) -> i16 {
        let topic = create_topics::CreatableTopic {
            name,
            num_partitions,
            replication_factor: 1,
            ..Default::default()
        };
        let request = create_topics::Request { topics: vec![topic], ..Default::default() };
        let body = self.ask(ApiKey::CreateTopics, 7, |out| request.encode(out, 7).unwrap());
        create_topics::Response::decode(&body, 7).unwrap().topics[0].error_code
    }

    pub(crate) fn produce(&mut self, topic: &str, values: &[&str]) -> (i16, i64) {
        self.send_produce(topic, values);
        self.produced()
    }

    fn send_produce(&mut self, topic: &str, values: &[&str]) {
        let mut batch = BatchBuilder::new(leftoff_wire::Compression::None);
        for value in values {
            batch.push(1_000, None, Some(value.as_bytes()), &[]);
        }
        let batch = batch.build().unwrap();
        let partition = produce::PartitionProduceData { index: 0, records: Some(&batch) };
        let data = produce::TopicProduceData { name: topic, partition_data: vec![partition] };
        let request =
            produce::Request { acks: -1, timeout_ms: 1_000, topic_data: vec![data], ..Default::default() };
        self.send(ApiKey::Produce, 9, |out| request.encode(out, 9).unwrap());
    }

    fn produced(&mut self) -> (i16, i64) {
        let body = self.answer(self.asked, ApiKey::Produce, 9);
        let response = produce::Response::decode(&body, 9).unwrap();
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    }

    /// Values from an offset on; waits up to `max_wait_ms` for one.
    fn fetch(&mut self, topic: &str, from: i64, max_wait_ms: i32) -> (i16, Vec<String>) {
        let partition =
            fetch::FetchPartition { fetch_offset: from, partition_max_bytes: 1 << 20, ..Default::default() };
        let topics = vec![fetch::FetchTopic { topic, partitions: vec![partition], ..Default::default() }];
        let request = fetch::Request { max_wait_ms, min_bytes: 1, topics, ..Default::default() };
        let body = self.ask(ApiKey::Fetch, 12, |out| request.encode(out, 12).unwrap());
        let response = fetch::Response::decode(&body, 12).unwrap();
        let partition = &response.responses[0].partitions[0];
        let mut rest = partition.records.unwrap();
        let mut values = Vec::new();
        while !rest.is_empty() {
            let (batch, behind) = Batch::parse(rest).unwrap();
            for record in batch.records(&Limits::default()).unwrap().iter() {
                let record = record.unwrap();
                if record.offset(batch.header()).get() >= from {
                    values.push(String::from_utf8(record.value.unwrap().to_vec()).unwrap());
                }
            }
            rest = behind;
        }
        (partition.error_code, values)
    }

    pub(crate) fn commit(&mut self, group: &str, topic: &str, offset: i64) -> i16 {
        let partition = offset_commit::OffsetCommitRequestPartition {
            committed_offset: offset,
            committed_metadata: Some("words"),
            ..Default::default()
        };
        let topics =
            vec![offset_commit::OffsetCommitRequestTopic { name: topic, partitions: vec![partition] }];
        let request = offset_commit::Request {
            group_id: group,
            generation_id_or_member_epoch: -1,
            topics,
            ..Default::default()
        };
        let body = self.ask(ApiKey::OffsetCommit, 8, |out| request.encode(out, 8).unwrap());
        offset_commit::Response::decode(&body, 8).unwrap().topics[0].partitions[0].error_code
    }

    pub fn committed(&mut self, group: &str, topic: &str) -> (i64, String) {
        let wanted = offset_fetch::OffsetFetchRequestTopics { name: topic, partition_indexes: vec![0] };
        let groups = vec![offset_fetch::OffsetFetchRequestGroup {
            group_id: group,
            topics: Some(vec![wanted]),
            ..Default::default()
        }];
        let request = offset_fetch::Request { groups, ..Default::default() };
        let body = self.ask(ApiKey::OffsetFetch, 8, |out| request.encode(out, 8).unwrap());
        let response = offset_fetch::Response::decode(&body, 8).unwrap();
        let partition = &response.groups[0].topics[0].partitions[0];
        (partition.committed_offset, partition.metadata.unwrap_or_default().to_owned())
    }
}

#[test]
fn what_a_client_was_told_is_there_after_the_server_was_killed() {
    let dir = TempDir::new().unwrap();
    let mut server = Server::start(dir.path(), "");
    let mut client = server.connect();
    assert_eq!(client.create("t"), 0);
    assert_eq!(client.create("t"), 36, "TOPIC_ALREADY_EXISTS");
    assert_eq!(client.produce("t", &["a", "b"]), (0, 0));
    assert_eq!(client.produce("t", &["c"]), (0, 2));
    assert_eq!(client.produce("nobody", &["c"]).0, 3, "UNKNOWN_TOPIC_OR_PARTITION");
    assert_eq!(client.committed("g", "t"), (-1, String::new()));
    assert_eq!(client.commit("g", "t", 2), 0);
    server.process.signal("-KILL");
    assert_eq!(server.process.end(), None);

    let mut server = Server::start(dir.path(), "");
    let mut client = server.connect();
    assert_eq!(client.committed("g", "t"), (2, "words".to_owned()));
    let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
    assert_eq!(client.fetch("t", 1, 0), (0, values(&["b", "c"])));
    assert_eq!(client.fetch("t", 9, 0), (1, vec![]), "OFFSET_OUT_OF_RANGE");
    server.process.signal("-TERM");
    assert_eq!(server.process.end(), Some(0));
}

#[test]
fn a_fetch_that_waits_is_answered_by_the_next_event_and_answers_keep_their_order() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), "");
    let (mut reader, mut writer) = (server.connect(), server.connect());
    assert_eq!(writer.create("t"), 0);
    let waiting = std::thread::spawn(move || reader.fetch("t", 0, 60_000));
    // Three at once on one connection: each is answered, in order.
    for value in ["a", "b", "c"] {
        writer.send_produce("t", &[value]);
    }
    let last = writer.asked;
    for (number, base) in (last - 2..=last).zip(0..) {
        let body = writer.answer(number, ApiKey::Produce, 9);
        let response = produce::Response::decode(&body, 9).unwrap();
        assert_eq!(response.responses[0].partition_responses[0].base_offset, base);
    }
    let (error, values) = waiting.join().unwrap();
    assert_eq!((error, values.first().map(String::as_str)), (0, Some("a")));
}

#[test]
fn what_is_no_request_ends_its_connection_and_no_other() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), "");
    let mut good = server.connect();
    assert_eq!(good.create("t"), 0);
    let bad: [(&[u8], &str); 5] = [
        (b"GET / HTTP/1.1\r\n\r\n", "it begins with an HTTP request"),
        (b"\x7f\xff\xff\xff", "a request of 2147483647 bytes; socket.request.max.bytes is"),
        (b"\0\0\0\x0a\x7f\x00\0\0\0\0\0\x01\xff\xff", "a request of API 32512, which is not served"),
        (
            b"\0\0\0\x0b\0\x03\0\x63\0\0\0\x01\xff\xff\0",
            "a request of Metadata version 99, which is not served",
        ),
        (
            b"\0\0\0\x0e\0\x03\0\x01\0\0\0\x01\xff\xff\x7f\xff\xff\xff",
            "MetadataRequest version 1, field topics",
        ),
    ];
    for (bytes, why) in bad {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        // Closed without a word, or reset: both end it.
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty(), "{why}: {rest:?}");
        until(why, || std::fs::read_to_string(dir.path().join("stderr")).ok()?.contains(why).then_some(()));
    }
    assert_eq!(good.produce("t", &["still here"]), (0, 0));
}

#[test]
fn a_client_that_asks_too_new_a_question_is_told_the_versions() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), "--auto-create off --node-id 7");
    let mut client = server.connect();
    client.send(ApiKey::ApiVersions, 99, |_| {});
    let body = client.answer(1, ApiKey::ApiVersions, 0);
    let response = api_versions::Response::decode(&body, 0).unwrap();
    assert_eq!(response.error_code, 35);
    let produce = response.api_keys.iter().find(|one| one.api_key == 0).unwrap();
    assert_eq!((produce.min_version, produce.max_version), (0, 11), "told from 0 on for old librdkafka");
    let topics = Some(vec![metadata::MetadataRequestTopic { name: Some("x"), ..Default::default() }]);
    let request = metadata::Request { topics, ..Default::default() };
    let body = client.ask(ApiKey::Metadata, 9, |out| request.encode(out, 9).unwrap());
    let response = metadata::Response::decode(&body, 9).unwrap();
    assert_eq!((response.controller_id, response.topics[0].error_code), (7, 3));
}
