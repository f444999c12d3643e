//! Random scripts against a list of records.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<i64>),
    Roll,
    Sync,
    Undo(Vec<Vec<i64>>),
    Retain {
        per_mille: u64,
    },
    /// A clean stop, a killed process, or a power cut, and a start.
    Restart(Stop),
}

#[derive(Debug, Clone, Copy)]
enum Stop {
    Clean,
    Killed,
    PowerCut,
}

fn timestamps() -> impl Strategy<Value = Vec<i64>> {
    prop_oneof![
        proptest::collection::vec(0..60i64, 1..4),
        (0..60i64, 1..6i64).prop_map(|(from, count)| (from..from + count).collect()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => timestamps().prop_map(Step::Append),
        1 => Just(Step::Roll),
        4 => Just(Step::Sync),
        1 => proptest::collection::vec(timestamps(), 0..6).prop_map(Step::Undo),
        1 => (0..1000u64).prop_map(|per_mille| Step::Retain { per_mille }),
        1 => Just(Step::Restart(Stop::Clean)),
        1 => Just(Step::Restart(Stop::Killed)),
        1 => Just(Step::Restart(Stop::PowerCut)),
    ]
}

/// The log and what it should be.
struct Both {
    mem: MemDisk,
    disk: Arc<dyn Disk>,
    config: LogConfig,
    log: Log,
    /// The timestamp of each record, from offset 0 on.
    model: Vec<i64>,
    high: usize,
    start: usize,
    epoch: i32,
    /// Whether something was undone that no sync has covered: a power cut may bring it back.
    undone: bool,
    /// Whether a stop left it so: the next process does not know.
    left_undone: bool,
}

impl Both {
    fn new(config: LogConfig) -> Both {
        let mem = MemDisk::new();
        let disk: Arc<dyn Disk> = Arc::new(mem.clone());
        let log = create(&disk, config);
        Both {
            mem,
            disk,
            config,
            log,
            model: Vec::new(),
            high: 0,
            start: 0,
            epoch: 0,
            undone: false,
            left_undone: false,
        }
    }

    fn append(&mut self, timestamps: &[i64]) {
        let appended = self.log.append(batch(timestamps), self.epoch).unwrap();
        assert_eq!(appended.base.get() as usize, self.model.len());
        self.model.extend(timestamps);
        assert_eq!(appended.next.get() as usize, self.model.len());
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Append(timestamps) => self.append(timestamps),
            Step::Roll => drop(self.log.roll().unwrap()),
            Step::Sync => {
                sync(&self.disk, &mut self.log);
                self.high = self.model.len();
                self.undone = false;
            }
            Step::Undo(batches) => {
                let (savepoint, len) = (self.log.savepoint(), self.model.len());
                batches.iter().for_each(|timestamps| self.append(timestamps));
                self.log.undo_to(savepoint).unwrap();
                self.model.truncate(len);
                self.undone = true;
            }
            Step::Retain { per_mille } => {
                self.start = self.start.max(self.high * *per_mille as usize / 1000);
                self.log.advance_log_start(at(self.start as i64));
                for removed in self.log.take_removable() {
                    removed.unlink(&self.disk).unwrap();
                }
                self.disk.sync_dir(&dir()).unwrap();
            }
            Step::Restart(Stop::PowerCut) if self.undone || self.left_undone => self.restart(Stop::Killed),
            Step::Restart(stop) => self.restart(*stop),
        }
        assert_eq!(self.log.end().get() as usize, self.model.len());
    }

    fn restart(&mut self, stop: Stop) {
        let mark = self.log.high_mark();
        self.left_undone |= self.undone;
        match stop {
            Stop::Clean => self.log.close().unwrap(),
            Stop::Killed => {}
            Stop::PowerCut => {
                let survivors = self.mem.survivors(6, self.model.len() as u64);
                self.mem = survivors[self.model.len() % survivors.len()].clone();
                self.disk = Arc::new(self.mem.clone());
            }
        }
        let start = at(self.start as i64);
        self.log = Log::open(&self.disk, &dir(), ID, self.config, mark, start, Access::Writer).unwrap();
        assert_eq!(self.log.mark_damage(), None);
        let tail = self.log.read_tail(&mut |_| ()).unwrap();
        self.log.settle_tail(tail.valid_end).unwrap();
        let end = tail.valid_end.get() as usize;
        assert!(self.high <= end && end <= self.model.len());
        if !matches!(stop, Stop::PowerCut) {
            assert_eq!(end, self.model.len());
        }
        self.model.truncate(end);
        self.high = end;
        self.epoch += 1;
    }

    /// Asks everything.
    fn check(&self) {
        assert_eq!(self.log.high_watermark().get() as usize, self.high);
        let mark = self.log.high_mark();
        let start = at(self.start as i64);
        let reader = Log::open(&self.disk, &dir(), ID, self.config, mark, start, Access::Reader).unwrap();
        for log in [&self.log, &reader] {
            let mut at_offset = self.start;
            for read in log.read_batches(start) {
                let ReadBatch::Batch { header, bytes } = read.unwrap() else { panic!("damage or a gap") };
                let (batch, _) = leftoff_wire::record_batch::Batch::parse(&bytes).unwrap();
                for record in batch.records(&Default::default()).unwrap().iter() {
                    let record = record.unwrap();
                    let offset = record.offset(&header).get() as usize;
                    assert_eq!(record.timestamp(&header), self.model[offset]);
                    at_offset = at_offset.max(offset + 1);
                }
            }
            assert_eq!(at_offset, self.high);
            for offset in self.start..self.high {
                let first = fetched(log, offset as i64, 200).0[0];
                assert!(first.base_offset.get() as usize <= offset);
                assert!(first.next_offset().get() as usize > offset);
            }
            for time in 0..66 {
                let found = log.offset_for_time(time).unwrap();
                let expect = (self.start..self.high).find(|offset| self.model[*offset] >= time);
                assert_eq!(found.map(|(offset, _)| offset.get() as usize), expect, "time {time}");
            }
        }
        let verified = self.log.verify(&mut |finding| panic!("{finding:?}")).unwrap();
        assert_eq!(verified.findings, 0);
    }
}

fn run(config: LogConfig, steps: &[Step]) {
    let mut both = Both::new(config);
    for step in steps {
        both.take(step);
    }
    both.check();
    both.take(&Step::Sync);
    both.check();
    both.take(&Step::Restart(Stop::Killed));
    both.check();
}

#[test]
fn a_cut_that_a_killed_process_had_not_synced_does_not_come_back_in_a_closed_segment() {
    let append = |count: i64| Step::Append((0..count).collect());
    let head = [append(2), append(4), append(1), append(2), append(2), Step::Sync];
    let undo = [Step::Undo(vec![vec![0]]), Step::Restart(Stop::Killed)];
    for more in 1..6 {
        for tail in 0..4 {
            let appends = (0..tail).map(append);
            let mut steps = [&head[..], &undo, &[append(more), Step::Roll]].concat();
            steps.extend(appends.map(|_| append(2)));
            steps.push(Step::Sync);
            for unlucky in 0..3 {
                // How many records there are decides what the power cut leaves.
                steps.extend([append(unlucky + 1), Step::Sync]);
                // The model would spare a log with an undone append: what comes back must not be in a closed segment.
                let mut both = Both::new(LogConfig { segment_bytes: 337, index_interval_bytes: 0 });
                steps.iter().for_each(|step| both.take(step));
                both.restart(Stop::PowerCut);
                both.check();
            }
        }
    }
}

#[test]
fn an_index_torn_in_its_middle_is_made_anew() {
    let append = |count: i64| Step::Append((0..count).collect());
    for records in 1..12 {
        let stops = [Step::Restart(Stop::Clean), append(2), Step::Sync, Step::Restart(Stop::Clean)];
        let mut steps = vec![append(1), append(5), append(4), append(4), append(records), Step::Sync];
        steps.extend(stops);
        steps.extend([Step::Restart(Stop::PowerCut), Step::Roll]);
        run(LogConfig { segment_bytes: 1 << 30, index_interval_bytes: 0 }, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_log_is_a_list_of_records(
        steps in proptest::collection::vec(step(), 1..40),
        segment_bytes in prop_oneof![Just(1u64), 200..900u64, Just(1 << 30)],
        index_interval_bytes in prop_oneof![Just(0u32), 80..300u32],
    ) {
        run(LogConfig { segment_bytes, index_interval_bytes }, &steps);
    }
}
