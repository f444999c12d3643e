#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use leftoff_consumer::handler::Record;
use leftoff_consumer::source::Source;
use leftoff_engine::broker::{RESERVED_PRODUCER_ID, Request};
use leftoff_engine::log::ReadBatch;
use leftoff_wire::record_batch::{Batch, Limits};
use tempfile::TempDir;

use super::*;
use crate::embed::{Leftoff, Record as NewRecord};
use crate::store::Store;

const GROUP: &str = "g";

/// A directory in memory, where the system offers that, with topic `t` of one partition and four events, and topic `out` of two.
struct Rig {
    _dir: TempDir,
    log: Leftoff,
    id: SourceId,
}

impl Rig {
    fn new() -> Rig {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap();
        let log = Leftoff::open(dir.path()).unwrap();
        log.create_topic("t", 1).unwrap();
        log.create_topic("out", 2).unwrap();
        for value in ["e0", "e1", "e2", "e3"] {
            log.append("t", 0, &[NewRecord::value(value)]).unwrap();
        }
        let id = SourceId { topic_id: log.store().topic("t").unwrap().topic_id, partition: 0 };
        Rig { _dir: dir, log, id }
    }

    fn store(&self) -> &Store {
        self.log.store()
    }

    fn join(&self) -> StoreSource {
        StoreSource::join(self.store(), GROUP, &["t".to_owned()], "test", Arc::default()).unwrap()
    }

    fn claimed(&self, source: &StoreSource) -> TopicSink {
        let mut sink = TopicSink::new(source, "out", false).unwrap();
        sink.claim(&[self.claim()]).unwrap();
        sink
    }

    fn claim(&self) -> ClaimPartition {
        ClaimPartition { id: self.id, topic: "t".to_owned() }
    }

    /// One output for each text: records separated by blanks, `-` for none, `f` for filtered.
    fn outputs(&self, from: i64, texts: &[&str]) -> Vec<Output> {
        let outcome = |text: &str| match text {
            "f" => Outcome::Filtered,
            "-" => Outcome::Handled { records: Vec::new() },
            text => {
                let record = |json: &str| Record::from_json(json.to_owned()).unwrap();
                Outcome::Handled { records: text.split(' ').map(record).collect() }
            }
        };
        let offsets = (from..).map(|offset| Offset::new(offset).unwrap());
        let outputs = offsets.zip(texts);
        outputs
            .map(|(offset, text)| Output { id: self.id, offset, event_id: None, outcome: outcome(text) })
            .collect()
    }

    fn moved(&self, expected: Option<i64>, next: i64) -> Move {
        let committed = |offset| Committed::from_wire(offset).unwrap();
        Move {
            id: self.id,
            expected: expected.map(committed),
            next: committed(next),
            leader_epoch: -1,
            skips: None,
            mark: leftoff_consumer::sink::Mark::default(),
        }
    }

    /// `PARTITION: VALUE | HEADER=VALUE …` for each record of a topic, with `!` for a control record. Topic ids are written
    /// as `T`.
    fn read(&self, topic: &str) -> Vec<String> {
        let topic = self.store().topic(topic).unwrap();
        let mut all = Vec::new();
        for partition in 0..topic.partitions {
            let id = PartitionId { topic_id: topic.topic_id, partition };
            let steps: Vec<_> =
                self.store().with_state(|state| state.log(&id).unwrap().read_batches(Offset::ZERO).collect());
            for step in steps {
                let ReadBatch::Batch { bytes, header } = step.unwrap() else { panic!("a hole") };
                assert!(header.producer_id >= RESERVED_PRODUCER_ID);
                let (batch, _) = Batch::parse(&bytes).unwrap();
                for record in batch.records(&Limits::default()).unwrap().iter() {
                    let record = record.unwrap();
                    let text = |bytes: Option<&[u8]>| {
                        bytes.map_or("-".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned())
                    };
                    let mark = if header.attributes.is_control() { "!" } else { "" };
                    let mut line = format!("{mark}{partition}: {}", text(record.value));
                    for (name, value) in record.headers.iter() {
                        line += &format!(" {}={}", String::from_utf8_lossy(name), text(value));
                    }
                    all.push(line.replace(&self.id.topic_id.to_string(), "T"));
                }
            }
        }
        all
    }

    fn committed(&self) -> Option<i64> {
        self.log.committed(GROUP, "t", 0).map(|committed| committed.next().get())
    }
}

#[test]
fn records_evidence_and_offset_are_one_step() {
    let rig = Rig::new();
    rig.log.create_topic("other", 1).unwrap();
    let source = rig.join();
    let mut sink = rig.claimed(&source);
    let texts = [
        r#"{"a":1} {"topic":"out","key":"k","value":"v"}"#,
        "f",
        r#"{"topic":"other","key":"k","value":null}"#,
    ];
    let outputs = rig.outputs(0, &texts);
    outputs.iter().for_each(|output| sink.check(output).unwrap());
    assert_eq!(sink.write(&outputs, &[rig.moved(None, 3)]).unwrap(), Written::Written);
    assert_eq!(rig.committed(), Some(3));
    let mut out = rig.read("out");
    let evidence = out.iter().position(|line| line.starts_with('!')).map(|at| out.remove(at)).unwrap();
    let other = rig.store().topic("other").unwrap().topic_id;
    let lines = "T 0 1-1 filtered\nT 0 2-2 handled\n";
    assert_eq!(evidence[3..], format!(" {lines} leftoff_group=g leftoff_topics={other}"));
    out.iter_mut().for_each(|line| drop(line.drain(..3)));
    out.sort();
    assert_eq!(out, ["v leftoff_id=T/0/0/1 leftoff_group=g", "{\"a\":1} leftoff_id=T/0/0/0 leftoff_group=g"]);
    assert_eq!(rig.read("other"), ["0: - leftoff_id=T/0/2/0 leftoff_group=g"]);
    let entry = rig.store().group(GROUP).unwrap().unwrap().entry_by_name("t", 0).unwrap().clone();
    let outlet: Outlet = entry.metadata.parse().unwrap();
    assert_eq!((outlet.topic.as_str(), outlet.from), ("out", Offset::ZERO));
}

#[test]
fn an_earlier_member_writes_nothing_any_more() {
    let rig = Rig::new();
    let first = rig.join();
    let mut old = rig.claimed(&first);
    assert_eq!(old.write(&rig.outputs(0, &["1"]), &[rig.moved(None, 1)]).unwrap(), Written::Written);
    drop(first);
    let second = rig.join();
    let mut new = rig.claimed(&second);
    let fenced = Written::Fenced { id: rig.id };
    assert_eq!(old.write(&rig.outputs(1, &["2"]), &[rig.moved(Some(1), 2)]).unwrap(), fenced);
    assert_eq!(new.write(&rig.outputs(1, &["3"]), &[rig.moved(Some(1), 2)]).unwrap(), Written::Written);
    // Not from where the group stands.
    assert_eq!(new.write(&rig.outputs(3, &["4"]), &[rig.moved(Some(3), 4)]).unwrap(), fenced);
    assert_eq!(rig.committed(), Some(2));
    let out = rig.read("out");
    let values: Vec<&str> = out.iter().map(|line| &line[3..4]).collect();
    assert_eq!(values.iter().filter(|value| "13".contains(**value)).count(), 2, "{values:?}");
    assert_eq!(values.len(), 2, "{values:?}");
}

#[test]
fn what_the_source_saves_afterwards_is_not_saved_twice() {
    let rig = Rig::new();
    let mut source = rig.join();
    let mut sink = rig.claimed(&source);
    sink.write(&rig.outputs(0, &["1"]), &[rig.moved(None, 1)]).unwrap();
    let end = || rig.store().with_state(|state| state.offsets_log().end());
    let (before, save) = (end(), |next| leftoff_consumer::source::Save {
        id: rig.id,
        ownership: crate::source::OWNERSHIP,
        committed: Committed::from_wire(next).unwrap(),
        leader_epoch: -1,
        metadata: String::new(),
        decision: None,
        dead: None,
    });
    source.save(&[save(1)]).unwrap();
    assert_eq!(end(), before);
    source.save(&[save(2)]).unwrap();
    assert_eq!(end(), before.next());
}

#[test]
fn what_the_topic_cannot_take_is_the_events_failure() {
    let rig = Rig::new();
    let source = rig.join();
    let sink = rig.claimed(&source);
    let large = format!("\"{}\"", "x".repeat(2_000_000));
    let table = [
        (r#"{"topic":"nope","value":1}"#, "it names topic \"nope\", which does not exist"),
        (r#"{"topic":7}"#, "its topic is 7, not a text"),
        (&large, "it takes up to 2000"),
    ];
    for (json, expect) in table {
        let bad = sink.check(&rig.outputs(0, &[&format!("1 {json}")])[0]).unwrap_err();
        assert_eq!(bad.number, 1);
        assert!(bad.why.starts_with(expect), "{}", bad.why);
    }
}

#[test]
fn many_records_make_several_batches() {
    let rig = Rig::new();
    let source = rig.join();
    let mut sink = rig.claimed(&source);
    let record = format!("\"{}\"", "x".repeat(400_000));
    let texts = [record.as_str(); 4];
    sink.write(&rig.outputs(0, &texts), &[rig.moved(None, 4)]).unwrap();
    assert_eq!((rig.read("out").len(), rig.committed()), (4, Some(4)));
}

#[test]
fn a_topic_made_anew_or_read_by_the_group_is_refused() {
    let rig = Rig::new();
    let source = rig.join();
    let refused = TopicSink::new(&source, "t", false).unwrap_err().to_string();
    assert!(refused.contains("which would handle its own records for ever"), "{refused}");
    assert!(TopicSink::new(&source, "nope", false).is_err());
    let mut sink = rig.claimed(&source);
    sink.write(&rig.outputs(0, &["1"]), &[rig.moved(None, 1)]).unwrap();
    rig.store().request(Request::DeleteTopic { name: "out".to_owned() }).unwrap();
    let error = sink.write(&rig.outputs(1, &["1"]), &[rig.moved(Some(1), 2)]).unwrap_err();
    assert!(error.to_string().contains("was deleted while records were written"), "{error}");
    rig.log.create_topic("out", 1).unwrap();
    let error = TopicSink::new(&source, "out", false).unwrap().claim(&[rig.claim()]).unwrap_err();
    assert!(error.to_string().contains("was made anew"), "{error}");
    let mut sink = TopicSink::new(&source, "out", true).unwrap();
    let notices = sink.claim(&[rig.claim()]).unwrap().notices;
    assert_eq!(notices, ["t/0: what was handled before offset 1 is not in topic out"]);
    sink.write(&rig.outputs(1, &["1"]), &[rig.moved(Some(1), 2)]).unwrap();
    assert_eq!(rig.committed(), Some(2));
}
