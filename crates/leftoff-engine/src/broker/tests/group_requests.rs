//! Offsets and groups over the wire: who may commit what, what is told, what is deleted.

use std::sync::Arc;

use leftoff_wire::Uuid;

use super::members::{Rig, disk, join, member_id, subscription, sync};
use super::rig::{TOPIC, batch, partition};
use crate::broker::Request;
use crate::coordinator::Who;
use crate::coordinator::classic::{
    Client, CommitOffsets, ErrorCode, FetchOffsets, GroupReply, GroupRequest, ListGroups, OffsetToSave,
};
use crate::disk::Disk;
use crate::types::TopicPartition;

/// A broker with topic `t`, two partitions, ten events in the first.
fn with_topic(disk: &Arc<dyn Disk>, strict: bool) -> Rig {
    let mut rig = Rig::open_with(disk, 1_000, strict);
    let (name, settings) = ("t".to_owned(), Vec::new());
    rig.ask(Request::CreateTopic { name, topic_id: TOPIC, partitions: 2, settings });
    rig.ask(Request::Append { appends: vec![(partition(0), batch(&["e"; 10], -1))] });
    rig.settle();
    rig.take_said();
    rig
}

/// `TOPIC/PARTITION=OFFSET`, separated by blanks.
fn commit(rig: &mut Rig, (member, generation): (&str, i32), offsets: &str) -> String {
    let offset = |text: &str| {
        let (place, committed) = text.split_once('=').unwrap();
        let (topic, number) = place.split_once('/').unwrap();
        let metadata = if committed == "9" { "m".repeat(4097) } else { "words".to_owned() };
        OffsetToSave {
            topic: topic.to_owned(),
            partition: number.parse().unwrap(),
            committed: committed.parse().unwrap(),
            leader_epoch: 3,
            metadata,
        }
    };
    let request = CommitOffsets {
        group: "g".to_owned(),
        generation,
        member_id: if member.is_empty() { String::new() } else { member_id(member) },
        group_instance_id: None,
        client: Client { client_id: "c".to_owned(), host: "/h".to_owned(), software: "rdkafka".to_owned() },
        offsets: offsets.split_whitespace().map(offset).collect(),
    };
    let GroupReply::Commit(reply) = rig.group(GroupRequest::Commit(request)) else { panic!() };
    let words = |one: &Result<_, _>| match one {
        Ok(flags) => format!("ok{flags}"),
        Err(error) => format!("{error}"),
    };
    reply.iter().map(words).collect::<Vec<_>>().join(" ")
}

fn fetch(rig: &mut Rig, topics: Option<Vec<(String, Vec<i32>)>>) -> String {
    let request = GroupRequest::Fetch(vec![FetchOffsets { group: "g".to_owned(), topics }]);
    let GroupReply::Fetch(groups) = rig.group(request) else { panic!() };
    let mut said = Vec::new();
    for (topic, offsets) in &groups[0].topics {
        for offset in offsets {
            let (number, at) = (offset.partition, offset.committed);
            said.push(format!("{topic}/{number}={at},{},{}", offset.leader_epoch, offset.metadata));
        }
    }
    said.join(" ")
}

fn describe(rig: &mut Rig, group: &str) -> String {
    let GroupReply::Describe(groups) = rig.group(GroupRequest::Describe(vec![group.to_owned()])) else {
        panic!()
    };
    let group = &groups[0];
    let members = group.members.iter().map(|m| {
        let id = m.member_id.split('-').next().unwrap();
        format!("{id},{},{}", m.metadata.len(), String::from_utf8_lossy(&m.assignment))
    });
    let members = members.collect::<Vec<_>>().join(" ");
    format!("{} {} {}/{} [{members}]", group.error, group.state.as_str(), group.protocol_type, group.protocol)
}

fn list(rig: &mut Rig, states: &[&str], types: &[&str]) -> String {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let filter = ListGroups { states: words(states), types: words(types) };
    let GroupReply::List(groups) = rig.group(GroupRequest::List(filter)) else { panic!() };
    let words = |group: &crate::coordinator::classic::ListedGroup| {
        format!("{}:{}:{}", group.group, group.protocol_type, group.state.as_str())
    };
    groups.iter().map(words).collect::<Vec<_>>().join(" ")
}

fn delete(rig: &mut Rig, groups: &[&str]) -> Vec<ErrorCode> {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    let GroupReply::Delete(reply) = rig.group(GroupRequest::Delete { groups, who: Who::unknown() }) else {
        panic!()
    };
    reply
}

fn delete_offsets(rig: &mut Rig, partitions: &[(&str, i32)]) -> Result<Vec<ErrorCode>, ErrorCode> {
    let partition = |(topic, partition): &(&str, i32)| TopicPartition {
        topic: (*topic).to_owned(),
        partition: *partition,
    };
    let partitions = partitions.iter().map(partition).collect();
    let request = GroupRequest::DeleteOffsets { group: "g".to_owned(), partitions, who: Who::unknown() };
    let GroupReply::DeleteOffsets(reply) = rig.group(request) else { panic!() };
    reply
}

/// The member `m` in generation 1, subscribed to `t`.
fn join_and_sync(rig: &mut Rig) {
    rig.ask(join("m"));
    rig.ask(sync("m", 1, "part"));
    rig.settle();
    rig.take_said();
}

#[test]
fn a_consumer_that_is_no_member_commits_each_partition_for_itself() {
    let mut rig = with_topic(&disk(), false);
    let said = commit(&mut rig, ("", -1), "t/0=4 t/1=9 t/2=1 u/0=1 t/1=-1 t/0=5");
    let expect =
        "ok OffsetMetadataTooLarge UnknownTopicOrPartition UnknownTopicOrPartition InvalidRequest ok";
    assert_eq!(said, expect);
    let asked = |topic: &str, partitions: &[i32]| (topic.to_owned(), partitions.to_vec());
    let topics = vec![asked("t", &[0, 1]), asked("u", &[0])];
    assert_eq!(fetch(&mut rig, Some(topics)), "t/0=5,3,words t/1=-1,-1, u/0=-1,-1,");
    assert_eq!(fetch(&mut rig, None), "t/0=5,3,words");
    // What is odd is taken, and kept with who did it.
    assert_eq!(commit(&mut rig, ("", -1), "t/0=11 t/1=0"), "okabove-end ok");
    assert_eq!(commit(&mut rig, ("", -1), "t/0=2"), "okbackwards");
    let entry = rig.broker.state().coordinator().group("g").unwrap().entry_by_name("t", 0).unwrap();
    assert_eq!(entry.who.to_string(), "- c /h rdkafka");
    let mut rig = with_topic(&disk(), true);
    assert_eq!(commit(&mut rig, ("", -1), "t/0=11 t/1=0 t/0=5"), "OffsetOutOfRange ok ok");
    assert_eq!(commit(&mut rig, ("", -1), "t/0=4"), "PolicyViolation");
}

#[test]
fn a_commit_is_on_disk_before_it_is_acknowledged() {
    let mut rig = with_topic(&disk(), false);
    let offset = OffsetToSave {
        topic: "t".to_owned(),
        partition: 0,
        committed: 1,
        leader_epoch: -1,
        metadata: String::new(),
    };
    let commit = CommitOffsets {
        group: String::new(),
        generation: -1,
        member_id: String::new(),
        group_instance_id: None,
        client: Client::default(),
        offsets: vec![offset],
    };
    rig.ask(Request::Group(GroupRequest::Commit(commit)));
    assert!(rig.take_said().is_empty());
    rig.settle();
    // The group without a name is one, for commits alone, as in Kafka.
    assert_eq!(rig.take_said(), ["3 Group(Commit([Ok(Flags(0))]))"]);
}

#[test]
fn a_member_commits_in_its_generation() {
    let mut rig = with_topic(&disk(), false);
    assert_eq!(commit(&mut rig, ("m", 1), "t/0=1"), "IllegalGeneration");
    rig.ask(join("m"));
    assert_eq!(commit(&mut rig, ("m", 1), "t/0=1"), "RebalanceInProgress");
    rig.ask(sync("m", 1, "part"));
    rig.settle();
    assert_eq!(commit(&mut rig, ("m", 1), "t/0=1"), "ok");
    assert_eq!(commit(&mut rig, ("m", 2), "t/0=1"), "IllegalGeneration");
    assert_eq!(commit(&mut rig, ("m", -1), "t/0=1"), "IllegalGeneration");
    assert_eq!(commit(&mut rig, ("n", 1), "t/0=1 t/1=1"), "UnknownMemberId UnknownMemberId");
    assert_eq!(commit(&mut rig, ("", -1), "t/0=1"), "UnknownMemberId");
    // It counts as a heartbeat, and goes on while the next generation gathers.
    rig.now += 9_000;
    assert_eq!(commit(&mut rig, ("m", 1), "t/0=2"), "ok");
    rig.now += 9_000;
    rig.deadline(rig.now);
    rig.ask(join("n"));
    assert_eq!(commit(&mut rig, ("m", 1), "t/0=3"), "ok");
    // A topic made anew starts over.
    rig.ask(Request::DeleteTopic { name: "t".to_owned() });
    rig.settle();
    let topic_id = Uuid::from_bytes([8; 16]);
    let (name, settings) = ("t".to_owned(), Vec::new());
    rig.ask(Request::CreateTopic { name, topic_id, partitions: 1, settings });
    rig.settle();
    assert_eq!(fetch(&mut rig, Some(vec![("t".to_owned(), vec![0])])), "t/0=-1,-1,");
    assert_eq!(fetch(&mut rig, None), "");
}

#[test]
fn a_client_moves_no_offset_under_an_embedded_runner() {
    let disk = disk();
    let mut rig = with_topic(&disk, false);
    rig.ask(Request::Join { group: "g".to_owned(), who: Who::new("run", "", "", "") });
    rig.settle();
    assert_eq!(commit(&mut rig, ("", -1), "t/0=1"), "UnknownMemberId");
    assert_eq!(delete_offsets(&mut rig, &[("t", 0)]), Err(ErrorCode::NonEmptyGroup));
    rig.broker.close().unwrap();
    // It may only wait for the directory: its hold ends before the offset moves, so it cannot miss that.
    let mut rig = Rig::open_with(&disk, 2_000, false);
    let group = |rig: &Rig| rig.broker.state().coordinator().group("g").cloned().unwrap();
    let held = group(&rig).owner().unwrap();
    // What is refused ends nothing.
    assert_eq!(commit(&mut rig, ("", -1), "t/2=1"), "UnknownTopicOrPartition");
    assert!(group(&rig).is_held_by(&held));
    assert_eq!(commit(&mut rig, ("", -1), "t/0=1"), "ok");
    assert!(!group(&rig).is_held_by(&held));
}

#[test]
fn groups_are_described_and_listed() {
    let mut rig = with_topic(&disk(), false);
    assert_eq!(describe(&mut rig, "g"), "GroupIdNotFound Dead / []");
    assert_eq!(commit(&mut rig, ("", -1), "t/0=1"), "ok");
    assert_eq!(describe(&mut rig, "g"), "None Empty / []");
    rig.ask(join("m"));
    assert_eq!(describe(&mut rig, "g"), "None CompletingRebalance consumer/ [m,0,]");
    rig.ask(sync("m", 1, "part"));
    rig.settle();
    let bytes = subscription("t").len();
    assert_eq!(describe(&mut rig, "g"), format!("None Stable consumer/range [m,{bytes},part]"));
    rig.ask(Request::Join { group: "e".to_owned(), who: Who::new("run", "", "", "") });
    rig.settle();
    assert_eq!(
        describe(&mut rig, "e"),
        "None Stable consumer/leftoff [run,10,\0\0\0\0\0\0\u{fffd}\u{fffd}\u{fffd}\u{fffd}]"
    );
    assert_eq!(list(&mut rig, &[], &[]), "e:consumer:Stable g:consumer:Stable");
    assert_eq!(list(&mut rig, &["empty", "STABLE"], &["Classic"]), "e:consumer:Stable g:consumer:Stable");
    assert_eq!(list(&mut rig, &["Empty"], &[]), "");
    assert_eq!(list(&mut rig, &[], &["consumer"]), "");
    rig.now += 10_000;
    rig.deadline(rig.now);
    assert_eq!(describe(&mut rig, "g"), "None Empty consumer/ []");
    assert_eq!(list(&mut rig, &["Empty"], &[]), "g:consumer:Empty");
}

#[test]
fn only_groups_without_members_are_deleted() {
    let disk = disk();
    let mut rig = with_topic(&disk, false);
    join_and_sync(&mut rig);
    assert_eq!(commit(&mut rig, ("m", 1), "t/0=1"), "ok");
    rig.ask(Request::Join { group: "e".to_owned(), who: Who::new("run", "", "", "") });
    let expect = [
        ErrorCode::NonEmptyGroup,
        ErrorCode::NonEmptyGroup,
        ErrorCode::GroupIdNotFound,
        ErrorCode::GroupIdNotFound,
    ];
    assert_eq!(delete(&mut rig, &["g", "e", "x", ""]), expect);
    rig.now += 10_000;
    rig.deadline(rig.now);
    assert_eq!(delete(&mut rig, &["g", "g"]), [ErrorCode::None, ErrorCode::GroupIdNotFound]);
    assert_eq!(fetch(&mut rig, None), "");
    // The generation goes on above the deleted one.
    rig.ask(join("m"));
    assert_eq!(rig.take_said(), ["10 joined 3 m"]);
    rig.settle();
    rig.broker.close().unwrap();
    // The embedded runner is dead by now, and fenced should it come back.
    let mut rig = Rig::open_with(&disk, 20_000, false);
    assert_eq!(delete(&mut rig, &["e"]), [ErrorCode::None]);
}

#[test]
fn offsets_of_a_subscribed_topic_stay() {
    let mut rig = with_topic(&disk(), false);
    let (name, settings) = ("u".to_owned(), Vec::new());
    rig.ask(Request::CreateTopic { name, topic_id: Uuid::from_bytes([8; 16]), partitions: 1, settings });
    rig.settle();
    assert_eq!(delete_offsets(&mut rig, &[("t", 0)]), Err(ErrorCode::GroupIdNotFound));
    join_and_sync(&mut rig);
    assert_eq!(commit(&mut rig, ("m", 1), "t/0=1 u/0=0"), "ok ok");
    let expect = [
        ErrorCode::GroupSubscribedToTopic,
        ErrorCode::None,
        ErrorCode::None,
        ErrorCode::UnknownTopicOrPartition,
        ErrorCode::UnknownTopicOrPartition,
    ];
    let asked = [("t", 0), ("u", 0), ("u", 0), ("u", 1), ("v", 0)];
    assert_eq!(delete_offsets(&mut rig, &asked), Ok(expect.to_vec()));
    assert_eq!(fetch(&mut rig, None), "t/0=1,3,words");
    rig.now += 10_000;
    rig.deadline(rig.now);
    assert_eq!(delete_offsets(&mut rig, &[("t", 0), ("t", 1)]), Ok(vec![ErrorCode::None; 2]));
    assert_eq!(fetch(&mut rig, None), "");
}
