//! Members through the broker: what waits for the disk, what does not, and who waits when the disk fails.

use std::sync::Arc;

use leftoff_wire::Uuid;

use crate::broker::{Broker, BrokerConfig, Input, Output, Refusal, Reply, Request, RequestId, SyncJob};
use crate::coordinator::Who;
use crate::coordinator::classic::{
    Client, GroupConfig, GroupReply, GroupRequest, Heartbeat, JoinGroup, MemberReply, MemberRequest,
    Protocol, SyncGroup,
};
use crate::disk::Disk;
use crate::disk::mem::MemDisk;
use crate::types::Timestamp;

pub struct Rig {
    disk: Arc<dyn Disk>,
    pub broker: Broker,
    pub now: i64,
    asked: u64,
    sync: Option<SyncJob>,
    said: Vec<String>,
    /// The last answer about groups.
    about: Option<GroupReply>,
}

impl Rig {
    fn open(disk: &Arc<dyn Disk>, now: i64) -> Rig {
        Rig::open_with(disk, now, false)
    }

    pub fn open_with(disk: &Arc<dyn Disk>, now: i64, strict_commits: bool) -> Rig {
        let groups = GroupConfig { initial_rebalance_delay_ms: 0, strict_commits, ..GroupConfig::default() };
        let config = BrokerConfig { groups, ..BrokerConfig::default() };
        let id = Uuid::from_bytes([1; 16]);
        let broker = Broker::open(disk.clone(), Timestamp::from_ms(now), id, config).unwrap();
        let mut rig =
            Rig { disk: disk.clone(), broker, now, asked: 0, sync: None, said: Vec::new(), about: None };
        rig.settle();
        rig
    }

    /// A group `g` with the member `m` in generation 1, whose assignment `part` is on disk.
    fn stable(disk: &Arc<dyn Disk>) -> Rig {
        let mut rig = Rig::open(disk, 1_000);
        rig.ask(join("m"));
        rig.ask(sync("m", 1, "part"));
        rig.settle();
        assert_eq!(rig.take_said(), ["1 joined 1 m", "2 gets part"]);
        rig
    }

    pub fn ask(&mut self, request: Request) {
        self.asked += 1;
        let request = Input::Request { id: RequestId(self.asked), request };
        self.broker.handle(Timestamp::from_ms(self.now), request);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.broker.poll_output() {
            match output {
                Output::Sync(job) => assert!(self.sync.replace(job).is_none()),
                Output::Reply { reply: Reply::Group(reply), id } => {
                    self.said.push(format!("{} {:?}", id.0, Reply::Group(reply.clone())));
                    self.about = Some(reply);
                }
                Output::Reply { id, reply } => self.said.push(format!("{} {}", id.0, words(reply))),
            }
        }
    }

    /// Asks about groups, and has the answer as soon as the disk has.
    pub fn group(&mut self, request: GroupRequest) -> GroupReply {
        self.ask(Request::Group(request));
        self.settle();
        self.take_said();
        self.about.take().unwrap()
    }

    fn synced(&mut self, result: std::io::Result<()>) {
        let round = self.sync.take().unwrap().round;
        self.broker.handle(Timestamp::from_ms(self.now), Input::Synced { round, result });
        self.drain();
    }

    pub fn settle(&mut self) {
        self.drain();
        while let Some(job) = self.sync.take() {
            let result = job.run(&*self.disk);
            let input = Input::Synced { round: job.round, result };
            self.broker.handle(Timestamp::from_ms(self.now), input);
            self.drain();
        }
    }

    pub fn deadline(&mut self, heard_until: i64) {
        let (now, heard) = (Timestamp::from_ms(self.now), Timestamp::from_ms(heard_until));
        self.broker.handle_deadline_heard(now, heard);
        self.drain();
    }

    pub fn take_said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }
}

fn words(reply: Reply) -> String {
    match reply {
        Reply::Member(MemberReply::Join(reply)) if reply.error.is_none() => {
            format!("joined {} {}", reply.generation, name(&reply.member_id))
        }
        Reply::Member(MemberReply::Join(reply)) => format!("join {}", reply.error),
        Reply::Member(MemberReply::Sync(reply)) if reply.error.is_none() => {
            format!("gets {}", String::from_utf8_lossy(&reply.assignment))
        }
        Reply::Member(MemberReply::Sync(reply)) => format!("sync {}", reply.error),
        Reply::Member(MemberReply::Heartbeat(error)) => format!("heartbeat {error}"),
        Reply::Joined(ownership) => format!("owns {}", ownership.generation),
        Reply::Refused(Refusal::Latched(_)) => "latched".to_owned(),
        other => format!("{other:?}"),
    }
}

fn name(member_id: &str) -> &str {
    member_id.split('-').next().unwrap_or_default()
}

pub fn member_id(client: &str) -> String {
    format!("{client}-{}", Uuid::from_bytes([9; 16]))
}

pub fn join(client: &str) -> Request {
    Request::Member(MemberRequest::Join(JoinGroup {
        group: "g".to_owned(),
        member_id: String::new(),
        group_instance_id: None,
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 20_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![Protocol { name: "range".to_owned(), metadata: subscription("t") }],
        client: Client { client_id: client.to_owned(), ..Client::default() },
        fresh_id: Uuid::from_bytes([9; 16]),
        requires_known_member_id: false,
        can_skip_assignment: true,
    }))
}

fn rejoin(client: &str) -> Request {
    let Request::Member(MemberRequest::Join(join)) = join(client) else { panic!() };
    Request::Member(MemberRequest::Join(JoinGroup { member_id: member_id(client), ..join }))
}

pub fn sync(client: &str, generation: i32, part: &str) -> Request {
    Request::Member(MemberRequest::Sync(SyncGroup {
        group: "g".to_owned(),
        generation,
        member_id: member_id(client),
        group_instance_id: None,
        protocol_type: None,
        protocol: None,
        assignments: vec![(member_id(client), part.as_bytes().to_vec())],
    }))
}

/// `ConsumerProtocolSubscription` version 0 of one topic.
pub fn subscription(topic: &str) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 0, 1, 0, topic.len() as u8];
    bytes.extend(topic.as_bytes());
    bytes.extend([0xff; 4]);
    bytes
}

fn heartbeat(client: &str, generation: i32) -> Request {
    let (group, member_id) = ("g".to_owned(), member_id(client));
    Request::Member(MemberRequest::Heartbeat(Heartbeat {
        group,
        generation,
        member_id,
        group_instance_id: None,
    }))
}

fn embedded(group: &str) -> Request {
    Request::Join { group: group.to_owned(), who: Who::new("run", "", "", "") }
}

pub fn disk() -> Arc<dyn Disk> {
    Arc::new(MemDisk::new())
}

#[test]
fn an_assignment_waits_for_the_disk_and_a_heartbeat_does_not() {
    let mut rig = Rig::open(&disk(), 1_000);
    rig.ask(join("m"));
    rig.ask(sync("m", 1, "part"));
    rig.ask(heartbeat("m", 1));
    // Who asks again sees it no sooner.
    rig.ask(sync("m", 1, "part"));
    assert_eq!(rig.take_said(), ["1 joined 1 m", "3 heartbeat None"]);
    // However long that takes: it is the broker that owes an answer.
    rig.now += 60_000;
    rig.deadline(rig.now);
    rig.synced(Ok(()));
    assert_eq!(rig.take_said(), ["2 gets part", "4 gets part"]);
    rig.settle();
    rig.now += 9_999;
    rig.deadline(rig.now);
    rig.ask(heartbeat("m", 1));
    assert_eq!(rig.take_said(), ["5 heartbeat None"]);
}

#[test]
fn what_has_arrived_counts_before_a_time_out_does() {
    let mut rig = Rig::stable(&disk());
    rig.now += 60_000;
    // A heartbeat has lain in the queue since the session was young.
    rig.deadline(rig.now - 55_000);
    rig.ask(heartbeat("m", 1));
    assert_eq!(rig.take_said(), ["3 heartbeat None"]);
    rig.now += 60_000;
    rig.deadline(rig.now);
    rig.ask(heartbeat("m", 1));
    assert_eq!(rig.take_said(), ["4 heartbeat UnknownMemberId"]);
}

#[test]
fn whoever_waits_hears_that_storage_has_failed() {
    let mut rig = Rig::stable(&disk());
    rig.ask(join("n"));
    rig.ask(Request::Leave {
        group: "other".to_owned(),
        ownership: crate::coordinator::Ownership { member_id: "x".to_owned(), generation: 1 },
    });
    rig.take_said();
    rig.ask(embedded("other"));
    rig.synced(Err(std::io::Error::other("broken")));
    let mut said = rig.take_said();
    said.sort();
    assert_eq!(said, ["3 latched", "5 latched"]);
    rig.ask(heartbeat("m", 1));
    assert_eq!(rig.take_said(), ["6 latched"]);
    assert_eq!(rig.broker.next_deadline(), None);
}

#[test]
fn members_go_on_with_the_next_broker() {
    let disk = disk();
    let rig = Rig::stable(&disk);
    rig.broker.close().unwrap();
    let mut rig = Rig::open(&disk, 100_000);
    rig.take_said();
    rig.ask(heartbeat("m", 1));
    rig.ask(sync("m", 1, ""));
    assert_eq!(rig.take_said(), ["1 heartbeat None", "2 gets part"]);
    // An embedded runner does not take the group from members that live.
    rig.ask(embedded("g"));
    assert!(rig.take_said()[0].contains("MemberPresent"));
}

#[test]
fn an_assignment_that_was_handed_out_outlives_a_power_cut() {
    let mem = MemDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(mem.clone());
    let mut rig = Rig::stable(&disk);
    for generation in 2..6 {
        rig.ask(rejoin("m"));
        rig.ask(sync("m", generation, &format!("part {generation}")));
        // Nobody knows of it yet, so it may be there or not.
        let known = generation - 1;
        check_survivors(&mem, known..=generation);
        rig.settle();
        let said = rig.take_said();
        assert!(said.contains(&format!("{} gets part {generation}", rig.asked)), "{said:?}");
        check_survivors(&mem, generation..=generation);
    }
}

/// Whatever a power cut leaves now: the member goes on in one of these generations, with its part.
fn check_survivors(disk: &MemDisk, generations: std::ops::RangeInclusive<i32>) {
    for survivor in disk.survivors(12, 7) {
        let disk: Arc<dyn Disk> = Arc::new(survivor);
        let mut rig = Rig::open(&disk, 5_000);
        let group = rig.broker.state().coordinator().group("g").unwrap();
        let generation = group.generation();
        assert!(generations.contains(&generation), "{generation} is not in {generations:?}");
        rig.ask(sync("m", generation, ""));
        rig.settle();
        let part = if generation == 1 { "part".to_owned() } else { format!("part {generation}") };
        assert_eq!(rig.take_said(), [format!("1 gets {part}")]);
    }
}

#[test]
fn a_person_may_take_the_group_from_members_that_are_dead() {
    let disk = disk();
    let mut rig = Rig::stable(&disk);
    let owner = |rig: &Rig| rig.broker.state().coordinator().group("g").and_then(|group| group.owner());
    let leave = |rig: &Rig| Request::Leave { group: "g".to_owned(), ownership: owner(rig).unwrap() };
    rig.ask(leave(&rig));
    assert!(rig.take_said()[0].contains("MemberPresent"));
    rig.broker.close().unwrap();
    let mut rig = Rig::open(&disk, 2_000);
    rig.ask(leave(&rig));
    rig.settle();
    assert_eq!(rig.take_said(), ["1 Done"]);
    assert_eq!(owner(&rig), None);
    rig.ask(heartbeat("m", 1));
    assert_eq!(rig.take_said(), ["2 heartbeat UnknownMemberId"]);
}

#[test]
fn an_embedded_runner_and_members_do_not_meet() {
    let disk = disk();
    let mut rig = Rig::stable(&disk);
    rig.ask(embedded("e"));
    rig.settle();
    rig.broker.close().unwrap();
    // The server that these were members of is dead: its lock was free.
    let mut rig = Rig::open(&disk, 2_000);
    rig.ask(embedded("g"));
    rig.settle();
    assert_eq!(rig.take_said(), ["1 owns 2"]);
    // Clients ask again until it has gone.
    rig.ask(join("n"));
    assert_eq!(rig.take_said(), ["2 join CoordinatorLoadInProgress"]);
    rig.broker.close().unwrap();
    // And so is the runner, when another process has the directory.
    let mut rig = Rig::open(&disk, 3_000);
    rig.ask(join("n"));
    rig.ask(sync("n", 3, "all"));
    rig.settle();
    assert_eq!(rig.take_said(), ["1 joined 3 n", "2 gets all"]);
    let state = rig.broker.state().coordinator();
    assert_eq!(state.group("g").unwrap().owner().unwrap().generation, 3);
    assert!(state.group("e").unwrap().is_held_embedded());
}
