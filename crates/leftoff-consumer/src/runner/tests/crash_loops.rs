//! Runners that are killed again and again by one event: it is found, and its attempts come to an end.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::*;
use crate::source::Save;

/// What outlives the runs.
#[derive(Default)]
struct Group {
    committed: Option<i64>,
    words: String,
    /// The last run gave the group back.
    left: bool,
    /// Decisions that were saved.
    decisions: Vec<String>,
}

struct GroupSource<'a> {
    group: &'a mut Group,
    stop: Arc<AtomicBool>,
    polls: u32,
    from: i64,
}

const END: i64 = 12;

impl Source for GroupSource<'_> {
    fn event_at(&mut self, _: PartitionId, _: Offset) -> Result<Option<crate::source::Event>, SourceError> {
        Ok(None)
    }

    fn poll(&mut self, _wait: Duration) -> Result<SourceEvent, SourceError> {
        self.polls += 1;
        match self.polls {
            1 => Ok(SourceEvent::Assigned {
                topic: "quakes".to_owned(),
                id: id(0),
                ownership: 1,
                committed: self.group.committed.map(next),
                metadata: self.group.words.clone(),
                unclean: !self.group.left && self.group.committed.is_some(),
                added: false,
                reset: None,
                log_start: at(0),
                end: at(END),
            }),
            2 => Ok(batch(0, &(self.from..END).collect::<Vec<_>>(), END)),
            _ => {
                self.stop.store(true, Ordering::SeqCst);
                Ok(SourceEvent::Idle)
            }
        }
    }

    fn seek(&mut self, _id: PartitionId, to: Offset) -> Result<(), SourceError> {
        self.from = to.get();
        Ok(())
    }

    fn save(&mut self, saves: &[Save]) -> Result<(), SourceError> {
        for save in saves {
            self.group.committed = Some(save.committed.next().get());
            self.group.words = save.metadata.clone();
            self.group.decisions.extend(save.decision.as_ref().map(ToString::to_string));
        }
        Ok(())
    }
}

/// How many runs it takes, each but the last killed by event 7, and how often each event was given to the handler.
fn lives(options: &RunOptions, group: &mut Group) -> (u32, BTreeMap<i64, u32>) {
    let mut given = BTreeMap::new();
    for life in 1..100 {
        let stop = Arc::new(AtomicBool::new(false));
        group.left = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut source = GroupSource { group: &mut *group, stop: stop.clone(), polls: 0, from: 0 };
            let answer = |offset, _| {
                *given.entry(offset).or_default() += 1;
                // As if the process had been killed.
                if offset == 7 { std::panic::resume_unwind(Box::new("killed")) } else { one_record() }
            };
            Runner::new(Parts {
                source: &mut source,
                handlers: Handlers::One(&mut FnHandler { answer, trace: Trace::default() }),
                sink: &mut MemSink::default(),
                progress: &mut NoProgress,
                clock: &StepClock { now: Cell::default(), step: Duration::ZERO },
                stop: &stop,
                options,
            })
            .run()
            .unwrap();
        }))
        .is_ok();
        if group.left {
            return (life, given);
        }
    }
    panic!("it never comes to an end")
}

fn skipping(save: SavePolicy) -> RunOptions {
    RunOptions { on_fail: OnFail::Skip, attempts: NonZeroU32::new(3), save, ..RunOptions::default() }
}

#[test]
fn an_event_that_ends_its_runner_is_skipped_in_the_end() {
    let mut group = Group::default();
    let (_, given) = lives(&skipping(SavePolicy::EveryEvent), &mut group);
    assert_eq!(group.committed, Some(END));
    // The first time it could have been any; from then on each start without progress counts.
    assert_eq!(given[&7], 4);
    assert!(given.iter().all(|(offset, times)| *offset == 7 || *times == 1), "{given:?}");
    assert_eq!(group.decisions.len(), 2, "the start, and the skip");
    assert!(
        group.decisions[1].contains("skip after 3 attempts: the runner was killed"),
        "{:?}",
        group.decisions
    );
}

/// With one save for many events nobody knows which it was, until each is recorded before it is handed out.
#[test]
fn it_is_found_where_many_are_saved_at_once() {
    let mut group = Group::default();
    let (_, given) = lives(&skipping(SavePolicy::AtStop), &mut group);
    assert_eq!(group.committed, Some(END));
    let skipped: Vec<_> = group.decisions.iter().filter(|text| text.contains("--on-fail skip")).collect();
    assert_eq!(skipped.len(), 1);
    assert!(skipped[0].contains("skips offset 7"), "{skipped:?}");
    assert!(given[&7] <= 8, "{given:?}");
    assert!(given.iter().all(|(offset, times)| *offset >= 7 || *times <= 6), "{given:?}");
}

#[test]
fn a_stop_is_not_an_attempt() {
    let mut group = Group { committed: Some(8), left: true, ..Group::default() };
    for _ in 0..5 {
        let (life, _) = lives(&skipping(SavePolicy::EveryEvent), &mut group);
        assert_eq!((life, group.words.as_str()), (1, ""));
        group.committed = Some(8);
    }
}
