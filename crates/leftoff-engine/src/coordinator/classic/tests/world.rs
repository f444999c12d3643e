//! Clients of one group `g`, a log in memory, and a clock that a script moves.
//!
//! A script is lines `CLIENT VERB ARG…`; what it leads to is said in lines `CLIENT: …`, with clients' names for member ids. A client's second
//! member id is its name with a dash, and so on.

use std::collections::BTreeMap;

use leftoff_wire::{Offset, Uuid};

use crate::coordinator::classic::{
    Answer, Classic, Client, GroupConfig, Heartbeat, JoinGroup, JoinReply, LeaveGroup, Leaving, MemberReply,
    MemberRequest, Protocol, Step, SyncGroup, Waiter,
};
use crate::coordinator::{Coordinator, Record};
use crate::types::Timestamp;

pub struct World {
    pub lasting: Coordinator,
    pub classic: Classic,
    pub log: Vec<Record>,
    pub now: i64,
    config: GroupConfig,
    clients: BTreeMap<String, Known>,
    labels: BTreeMap<String, String>,
    asked: u64,
    /// Who waits for an answer, and whether it was a join.
    pub waiting: BTreeMap<Waiter, String>,
    pub said: Vec<String>,
    pub fails: bool,
}

#[derive(Clone, Default)]
struct Known {
    member_id: String,
    generation: i32,
    instance: Option<String>,
    ids: usize,
}

impl World {
    pub fn new(config: GroupConfig) -> World {
        let lasting = Coordinator::default();
        let classic = Classic::load(Timestamp::from_ms(0), config.clone(), &lasting);
        World {
            lasting,
            classic,
            log: Vec::new(),
            now: 0,
            config,
            clients: BTreeMap::new(),
            labels: BTreeMap::new(),
            asked: 0,
            waiting: BTreeMap::new(),
            said: Vec::new(),
            fails: false,
        }
    }

    pub fn play(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["wait", ms] => self.wait(ms.parse().unwrap()),
            ["restart"] => self.restart(),
            ["carry"] => self.carry(),
            ["fail"] => self.fails = true,
            ["state"] => {
                let state = self.classic.state("g").map_or("Dead", |state| state.as_str());
                self.said.push(state.to_owned());
            }
            [client, verb, ref args @ ..] => self.ask(client, verb, args),
            _ => panic!("{line}"),
        }
    }

    fn ask(&mut self, client: &str, verb: &str, args: &[&str]) {
        let arg = |name: &str| args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='));
        let number = |name: &str, default: i32| arg(name).map_or(default, |value| value.parse().unwrap());
        let known = self.clients.entry(client.to_owned()).or_default();
        if let Some(instance) = arg("instance") {
            known.instance = Some(instance.to_owned());
        }
        if args.contains(&"new") {
            known.member_id.clear();
        }
        let known = known.clone();
        self.asked += 1;
        let waiter = Waiter(self.asked);
        let mut fresh = [0; 16];
        fresh[8..].copy_from_slice(&self.asked.to_be_bytes());
        let (group, group_instance_id) = (arg("group").unwrap_or("g").to_owned(), known.instance.clone());
        let member_id = known.member_id.clone();
        let generation = number("gen", known.generation);
        let request = match verb {
            "join" => {
                let version = number("v", 9);
                let protocols = arg("speaks").unwrap_or("range:s");
                let protocol = |text: &str| {
                    let (name, metadata) = text.split_once(':').unwrap();
                    Protocol { name: name.to_owned(), metadata: metadata.as_bytes().to_vec() }
                };
                MemberRequest::Join(JoinGroup {
                    group,
                    member_id,
                    requires_known_member_id: version >= 4 && group_instance_id.is_none(),
                    can_skip_assignment: version >= 9,
                    group_instance_id,
                    session_timeout_ms: number("session", 10_000),
                    rebalance_timeout_ms: number("rebalance", 20_000),
                    protocol_type: arg("type").unwrap_or("consumer").to_owned(),
                    protocols: protocols.split(',').map(protocol).collect(),
                    client: Client {
                        client_id: client.to_owned(),
                        host: "/h".to_owned(),
                        software: "s".to_owned(),
                    },
                    fresh_id: Uuid::from_bytes(fresh),
                })
            }
            "sync" => {
                let id_of =
                    |name: &str| self.clients.get(name).map_or(String::new(), |k| k.member_id.clone());
                let assignments = args.iter().filter_map(|arg| arg.strip_prefix('+')?.split_once('='));
                MemberRequest::Sync(SyncGroup {
                    group,
                    generation,
                    member_id,
                    group_instance_id,
                    protocol_type: arg("type").map(str::to_owned),
                    protocol: arg("protocol").map(str::to_owned),
                    assignments: assignments
                        .map(|(name, part)| (id_of(name), part.as_bytes().to_vec()))
                        .collect(),
                })
            }
            "heartbeat" => {
                MemberRequest::Heartbeat(Heartbeat { group, generation, member_id, group_instance_id })
            }
            "leave" => MemberRequest::Leave(LeaveGroup {
                group,
                members: match arg("names") {
                    None => vec![Leaving { member_id, group_instance_id }],
                    Some(names) => names
                        .split(',')
                        .map(|name| Leaving {
                            member_id: String::new(),
                            group_instance_id: Some(name.to_owned()),
                        })
                        .collect(),
                },
            }),
            _ => panic!("{verb}"),
        };
        self.waiting.insert(waiter, client.to_owned());
        let step = self.classic.handle(Timestamp::from_ms(self.now), &self.lasting, waiter, request);
        self.take(step);
    }

    pub fn wait(&mut self, ms: i64) {
        let end = self.now + ms;
        while let Some(at) = self.classic.next_deadline().map(Timestamp::as_ms).filter(|at| *at <= end) {
            self.now = self.now.max(at);
            let now = Timestamp::from_ms(self.now);
            while let Some(step) = self.classic.handle_deadline(now, now, &self.lasting) {
                self.take(step);
            }
        }
        self.now = end;
    }

    /// The process dies: who waits never hears of it, and what lasts comes from the log.
    pub fn restart(&mut self) {
        self.waiting.clear();
        let fresh = self.replayed();
        assert_eq!(fresh, self.lasting, "a fresh coordinator fed the log equals the live one");
        self.lasting = fresh;
        self.classic = Classic::load(Timestamp::from_ms(self.now), self.config.clone(), &self.lasting);
    }

    /// The log's oldest segment is about to go: what lives in it is appended anew.
    fn carry(&mut self) {
        let end = Offset::new(self.log.len() as i64).unwrap();
        for record in self.lasting.carry(end) {
            let at = Offset::new(self.log.len() as i64).unwrap();
            self.lasting.replay_record(at, &record).unwrap();
            self.log.push(record);
        }
    }

    pub fn replayed(&self) -> Coordinator {
        let mut fresh = Coordinator::default();
        for (at, record) in (0..).zip(&self.log) {
            fresh.replay_record(Offset::new(at).unwrap(), record).unwrap();
        }
        fresh
    }

    fn take(&mut self, step: Step) {
        let now = Timestamp::from_ms(self.now);
        self.hear(step.replies);
        if let Some(write) = step.write {
            let is_in = !std::mem::take(&mut self.fails);
            if is_in {
                let at = Offset::new(self.log.len() as i64).unwrap();
                self.lasting.replay_record(at, &write.record).unwrap();
                self.log.push(write.record.clone());
            }
            let then = self.classic.written(now, &self.lasting, write, is_in);
            assert!(then.write.is_none());
            self.hear(then.replies);
        }
    }

    fn hear(&mut self, answers: Vec<Answer>) {
        for Answer { waiter, reply, .. } in answers {
            let client = self.waiting.remove(&waiter).expect("every request is answered once");
            if matches!(reply, MemberReply::Sync(_)) {
                self.classic.sent(Timestamp::from_ms(self.now), waiter);
            }
            let said = match reply {
                MemberReply::Join(reply) => self.joined(&client, &reply),
                MemberReply::Sync(reply) if reply.error.is_none() => {
                    format!("gets {}", String::from_utf8(reply.assignment).unwrap())
                }
                MemberReply::Sync(reply) => format!("sync {}", reply.error),
                MemberReply::Heartbeat(error) => format!("heartbeat {error}"),
                MemberReply::Leave(reply) => {
                    let errors = reply.members.iter().map(|(_, error)| error.to_string());
                    format!("leave {} {}", reply.error, errors.collect::<Vec<_>>().join(","))
                }
            };
            self.said.push(format!("{client}: {said}"));
        }
    }

    fn joined(&mut self, client: &str, reply: &JoinReply) -> String {
        let known = self.clients.get_mut(client).unwrap();
        if !reply.member_id.is_empty() && !self.labels.contains_key(&reply.member_id) {
            self.labels.insert(reply.member_id.clone(), format!("{client}{}", "-".repeat(known.ids)));
            known.ids += 1;
        }
        let is_mine = !reply.member_id.is_empty();
        if is_mine {
            known.member_id = reply.member_id.clone();
        }
        if !reply.error.is_none() {
            return format!("join {}", reply.error);
        }
        known.generation = reply.generation;
        let label = |id: &String| {
            self.labels.get(id).cloned().unwrap_or_else(|| id.split('-').next().unwrap().to_owned())
        };
        let members: Vec<String> = reply
            .members
            .iter()
            .map(|m| format!("{}:{}", label(&m.member_id), String::from_utf8_lossy(&m.metadata)))
            .collect();
        let skip = if reply.skip_assignment { " skip" } else { "" };
        let protocol = reply.protocol.as_deref().unwrap_or("-");
        format!(
            "joined {} {protocol} leader={} [{}]{skip}",
            reply.generation,
            label(&reply.leader),
            members.join(" ")
        )
    }
}
