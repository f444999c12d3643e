//! Source, child, file and group together, over one life after another.

use std::collections::BTreeMap;
use std::path::Path;

use tempfile::tempdir;

use super::*;
use crate::handler::{Child, ChildConfig};
use crate::sink::{FileSink, StdoutSink};
use crate::source::Save;

/// A log of two partitions with holes, and what the group has saved; it outlives the runs.
#[derive(Default)]
struct Log {
    group: BTreeMap<PartitionId, Committed>,
}

const END: i64 = 12;

/// Offsets 3 and 4 of partition 0, and the last of both, hold no event.
fn is_event(partition: i32, offset: i64) -> bool {
    offset < END - 1 && (partition == 1 || !(3..=4).contains(&offset))
}

/// One run's view of it: batches of at most three, the partitions in turns.
struct LogSource<'a> {
    log: &'a mut Log,
    assigned: i32,
    positions: BTreeMap<PartitionId, Offset>,
    turn: i32,
}

impl<'a> LogSource<'a> {
    fn new(log: &'a mut Log) -> LogSource<'a> {
        LogSource { log, assigned: 0, positions: BTreeMap::new(), turn: 0 }
    }
}

impl Source for LogSource<'_> {
    fn event_at(&mut self, _: PartitionId, _: Offset) -> Result<Option<crate::source::Event>, SourceError> {
        Ok(None)
    }

    fn poll(&mut self, _wait: Duration) -> Result<SourceEvent, SourceError> {
        if self.assigned < 2 {
            self.assigned += 1;
            let partition = self.assigned - 1;
            let committed = self.log.group.get(&id(partition)).map(|committed| committed.next().get());
            return Ok(assigned(partition, committed, 0, END));
        }
        self.turn = 1 - self.turn;
        let position = self.positions.get_mut(&id(self.turn)).unwrap();
        let (from, to) = (position.get(), END.min(position.get() + 3));
        *position = at(to);
        let offsets: Vec<_> = (from..to).filter(|&offset| is_event(self.turn, offset)).collect();
        Ok(batch(self.turn, &offsets, to))
    }

    fn seek(&mut self, id: PartitionId, to: Offset) -> Result<(), SourceError> {
        self.positions.insert(id, to);
        Ok(())
    }

    fn save(&mut self, saves: &[Save]) -> Result<(), SourceError> {
        self.log.group.extend(saves.iter().map(|save| (save.id, save.committed)));
        Ok(())
    }
}

fn life(
    log: &mut Log,
    handler: &mut dyn Handler,
    sink: &mut dyn Sink,
    save: SavePolicy,
) -> Result<Report, Box<RunFailure>> {
    Runner::new(Parts {
        source: &mut LogSource::new(log),
        handlers: Handlers::One(handler),
        sink,
        progress: &mut NoProgress,
        clock: &SystemClock::new(),
        stop: &AtomicBool::new(false),
        options: &RunOptions { save, until_end: true, ..RunOptions::default() },
    })
    .run()
}

/// Answers with one record; dies on reaching one of `dies_at`, but for those whose marker file exists already: each kills once.
fn mortal(folder: &Path, dies_at: &[(i32, i64)]) -> Child {
    let cases: Vec<String> = dies_at.iter().map(|(p, o)| format!("quakes/{p}/{o}#1")).collect();
    let script = format!(
        r#"while IFS= read -r line; do
            case $line in '{{"leftoff"'*) continue;; '{{"stop"'*) exit 0;; esac
            id=${{line#*'"id":"'}}; id=${{id%%'"'*}}
            for death in {}; do
                mark="{}/$(echo $death | tr / _)"
                if [ "${{id%.*}}" = "$death" ] && ! [ -e "$mark" ]; then : > "$mark"; kill -9 $$; fi
            done
            printf '{{"id":"%s","records":[{{"of":"%s"}}]}}\n' "$id" "$id"
        done"#,
        cases.join(" "),
        folder.display()
    );
    Child::new(ChildConfig::new("sh", ["-c", &script]))
}

fn ids(bytes: &str, partition: i32) -> Vec<String> {
    let place = format!("{}/{partition}/", id(partition).topic_id);
    let id_of = |line: &str| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        object["leftoff_id"].as_str().unwrap().to_owned()
    };
    bytes.lines().map(id_of).filter_map(|id| id.strip_prefix(&place).map(str::to_owned)).collect()
}

fn expected(partition: i32) -> Vec<String> {
    (0..END).filter(|&offset| is_event(partition, offset)).map(|offset| format!("{offset}/0")).collect()
}

const DEATHS: [(i32, i64); 6] = [(0, 0), (0, 2), (1, 1), (1, 5), (0, 10), (1, 10)];

#[test]
fn a_file_has_each_event_once_however_often_the_handler_dies() {
    for save in [SavePolicy::EveryEvent, SavePolicy::Events(NonZeroU64::new(4).unwrap()), SavePolicy::AtStop]
    {
        let (folder, mut log) = (tempdir().unwrap(), Log::default());
        let mut lives = 0;
        loop {
            lives += 1;
            let mut sink = FileSink::new(folder.path().join("out"), "alerts");
            let mut handler = mortal(folder.path(), &DEATHS);
            match life(&mut log, &mut handler, &mut sink, save) {
                Ok(report) => {
                    assert_eq!(report.stopped, Some(StopReason::End));
                    break;
                }
                Err(failure) => {
                    assert!(failure.to_string().contains("killed by signal 9"), "{failure}");
                    assert_eq!(failure.error.exit_code(), 1);
                }
            }
        }
        assert_eq!(lives, DEATHS.len() + 1, "each death is one life");
        let out = std::fs::read_to_string(folder.path().join("out")).unwrap();
        for partition in [0, 1] {
            assert_eq!(ids(&out, partition), expected(partition), "{save:?}");
            assert_eq!(log.group[&id(partition)], next(END), "behind the markers at the end");
        }
    }
}

#[test]
fn the_loss_of_the_files_is_noticed() {
    let (folder, mut log) = (tempdir().unwrap(), Log::default());
    let run = |log: &mut Log| {
        let mut sink = FileSink::new(folder.path().join("out"), "alerts");
        life(log, &mut mortal(folder.path(), &[]), &mut sink, SavePolicy::EveryEvent)
    };
    run(&mut log).unwrap();
    for name in ["out", "out.outcomes", "out.leftoff"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    let failure = run(&mut log).unwrap_err();
    assert!(matches!(failure.error, RunError::Refused(Refusal::LostState { .. })), "{failure}");
    assert_eq!(failure.error.exit_code(), 4);
    assert_eq!(log.group[&id(0)], next(END), "the group is left alone");
}

#[test]
fn stdout_repeats_nothing_as_long_as_nobody_dies_between_write_and_save() {
    let (folder, mut log) = (tempdir().unwrap(), Log::default());
    let path = folder.path().join("stdout");
    for _ in 0..=DEATHS.len() {
        let stream = std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let mut sink = StdoutSink::to(Box::new(stream));
        let _ = life(&mut log, &mut mortal(folder.path(), &DEATHS), &mut sink, SavePolicy::EveryEvent);
    }
    let out = std::fs::read_to_string(&path).unwrap();
    [0, 1].iter().for_each(|&partition| assert_eq!(ids(&out, partition), expected(partition)));
}
