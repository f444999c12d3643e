//! The file sink stopped at every step, for every image that may survive: afterwards each output below a partition's next is there
//! once, nothing that was acknowledged is gone, and the work can be done to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::*;

/// Events in each of two partitions.
const EVENTS: i64 = 5;

/// What came of an event is decided by its offset alone, as with a handler that returns the same each time.
fn outcome(offset: i64) -> Outcome {
    match offset % 3 {
        0 => records(&["{\"n\":1}", "{\"n\":2}"]),
        1 => nothing(),
        _ => Outcome::Filtered,
    }
}

/// Works from where the sink stands to the end, two partitions in turns. Notes in `acknowledged` what the sink confirmed.
fn work(sink: &mut FileSink, acknowledged: &mut [i64; 2]) -> Result<(), SinkError> {
    let found = sink.claim(&[claim_of(0), claim_of(1)])?;
    let mut stands = [0, 1].map(|partition| found.next[&id(partition)]);
    while stands.iter().any(|at| at.map_or(0, |at| at.next().get()) < EVENTS) {
        let mut outputs = Vec::new();
        let mut moves = Vec::new();
        for (partition, stand) in (0..).zip(stands) {
            let from = stand.map_or(0, |at| at.next().get());
            // One event at a time in the one, two in the other.
            let to = EVENTS.min(from + 1 + i64::from(partition));
            if from < to {
                outputs.extend((from..to).map(|offset| output(partition, offset, outcome(offset))));
                moves.push(Move {
                    id: id(partition),
                    expected: stand,
                    next: next(to),
                    leader_epoch: -1,
                    skips: None,
                    mark: mark_at(to),
                });
            }
        }
        assert_eq!(sink.write(&outputs, &moves)?, Written::Written);
        for m in moves {
            stands[m.id.partition as usize] = Some(m.next);
            acknowledged[m.id.partition as usize] = m.next.next().get();
        }
    }
    Ok(())
}

/// What goes with a move to `to`.
fn mark_at(to: i64) -> Mark {
    let last = LastEvent { offset: at(to - 1), fingerprint: 0x8000_0000 + to as u32 };
    Mark { last: Some(last), reset: (to > 2).then(|| at(to)) }
}

/// What the files must hold if partition `partition` stands at `at`.
fn expected(partition: i32, at: i64) -> (Vec<String>, Vec<String>) {
    let topic = id(partition).topic_id;
    let (mut lines, mut ranges) = (Vec::new(), Vec::new());
    for offset in 0..at {
        match offset % 3 {
            0 => lines.extend([0, 1].map(|n| format!("{topic}/{partition}/{offset}/{n}"))),
            1 => ranges.push(format!("{offset} handled")),
            _ => ranges.push(format!("{offset} filtered")),
        }
    }
    (lines, ranges)
}

/// Once the sink is claimed: outputs and outcomes are exactly those below where each partition stands, which is no less than
/// what was acknowledged.
fn assert_holds(folder: &Path, acknowledged: [i64; 2], what: &str) {
    let state = FileSink::inspect(folder.join("out")).unwrap().unwrap();
    let (data, outcomes) = (read(folder, "out"), read(folder, "out.outcomes"));
    assert_eq!(
        (state.data_bytes, state.outcomes_bytes),
        (data.len() as u64, outcomes.len() as u64),
        "{what}"
    );
    for partition in [0, 1] {
        let at = state.next.get(&id(partition)).map_or(0, |at| at.next().get());
        assert!(at >= acknowledged[partition as usize], "{what}: {partition} went back to {at}");
        let mark = state.marks.get(&id(partition)).copied().unwrap_or_default();
        assert_eq!(
            mark,
            if at == 0 { Mark::default() } else { mark_at(at) },
            "{what}: moved with the offset"
        );
        let (lines, ranges) = expected(partition, at);
        let place = format!("{}/{partition}/", id(partition).topic_id);
        let ids = data.lines().map(|line| {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            object["leftoff_id"].as_str().unwrap().to_owned()
        });
        assert_eq!(ids.filter(|id| id.starts_with(&place)).collect::<Vec<_>>(), lines, "{what}");
        assert_eq!(offsets_of(&outcomes, partition), ranges, "{what}");
    }
}

fn offsets_of(outcomes: &str, partition: i32) -> Vec<String> {
    let mut offsets = Vec::new();
    for line in outcomes.lines() {
        let [_, of, range, kind] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (from, to) = range.split_once('-').unwrap();
        if of == partition.to_string() {
            let range = from.parse::<i64>().unwrap()..=to.parse().unwrap();
            offsets.extend(range.map(|offset| format!("{offset} {kind}")));
        }
    }
    offsets
}

/// What a power cut leaves for certain.
#[derive(Debug, Default)]
struct Durable {
    content: BTreeMap<Part, Vec<u8>>,
    names: BTreeSet<PathBuf>,
}

impl Durable {
    /// The same, after the files were copied.
    fn moved(&self, from: &Path, to: &Path) -> Durable {
        let names = self.names.iter().map(|name| to.join(name.strip_prefix(from).unwrap())).collect();
        Durable { content: self.content.clone(), names }
    }
}

/// The operating system up to a step, and a process that is dead from then on.
#[derive(Debug)]
struct Dying {
    /// Steps still to live.
    left: usize,
    /// The step it dies at is half done, if it is a write.
    torn: bool,
    durable: Arc<Mutex<Durable>>,
}

impl Dying {
    fn step(&mut self) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("dead"))?;
        Ok(())
    }
}

fn content(file: &File) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

impl FileOps for Dying {
    fn create(&mut self, part: Part, path: &Path) -> io::Result<File> {
        self.step()?;
        OsOps.create(part, path)
    }

    fn write_all_at(&mut self, part: Part, file: &File, bytes: &[u8], position_bytes: u64) -> io::Result<()> {
        if self.left == 0 && self.torn {
            OsOps.write_all_at(part, file, &bytes[..bytes.len() / 2], position_bytes)?;
        }
        self.step()?;
        OsOps.write_all_at(part, file, bytes, position_bytes)
    }

    fn append(&mut self, part: Part, file: &File, bytes: &[u8]) -> io::Result<()> {
        if self.left == 0 && self.torn {
            OsOps.append(part, file, &bytes[..bytes.len() / 2])?;
        }
        self.step()?;
        OsOps.append(part, file, bytes)
    }

    fn set_len(&mut self, part: Part, file: &File, bytes: u64) -> io::Result<()> {
        self.step()?;
        OsOps.set_len(part, file, bytes)
    }

    fn sync(&mut self, part: Part, file: &File) -> io::Result<()> {
        self.step()?;
        self.durable.lock().unwrap().content.insert(part, content(file));
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        OsOps.rename(from, to)
    }

    fn sync_folder(&mut self, folder: &Path) -> io::Result<()> {
        self.step()?;
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        self.durable.lock().unwrap().names.extend(names);
        Ok(())
    }
}

const PARTS: [(Part, &str); 3] =
    [(Part::Data, "out"), (Part::Outcomes, "out.outcomes"), (Part::Sidecar, "out.leftoff")];

/// What may be found of one file: its bytes, or nothing.
type Image = Option<Vec<u8>>;

/// What may be left of a file: all that was written; what was synced; the new length with zeros for what was not synced;
/// the new bytes up to the middle of what changed, or from there on; and nothing, while its name is not durable.
fn images_of(folder: &Path, (part, name): (Part, &str), durable: &Durable) -> Vec<Image> {
    let path = folder.join(name);
    let Ok(written) = fs::read(&path) else { return vec![None] };
    let synced = durable.content.get(&part).cloned().unwrap_or_default();
    let mut images = vec![Some(written.clone())];
    if written != synced {
        let mut zeros = synced.clone();
        zeros.resize(written.len(), 0);
        let first = written.iter().zip(&zeros).position(|(a, b)| a != b).unwrap_or(synced.len());
        let last = (0..written.len()).rev().find(|&i| written[i] != zeros[i]).unwrap_or(first);
        let middle = (first + last).div_ceil(2).min(written.len());
        let half = [&written[..middle], &zeros[middle..]].concat();
        let other_half = [&zeros[..middle], &written[middle..]].concat();
        images.extend([Some(synced), Some(zeros), Some(half), Some(other_half)]);
    }
    if !durable.names.contains(&path) {
        images.push(None);
    }
    images.dedup();
    images
}

/// All images of the three files together.
fn surviving(folder: &Path, durable: &Durable) -> Vec<[Image; 3]> {
    let [data, outcomes, sidecar] = PARTS.map(|part| images_of(folder, part, durable));
    let mut all = Vec::new();
    for d in &data {
        for o in &outcomes {
            all.extend(sidecar.iter().map(|s| [d.clone(), o.clone(), s.clone()]));
        }
    }
    all
}

fn lay_out(images: &[Image; 3]) -> TempDir {
    let folder = tempdir().unwrap();
    for ((_, name), image) in PARTS.iter().zip(images) {
        if let Some(bytes) = image {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
    }
    folder
}

/// Everything that is in the folder, for certain: how a machine comes up.
fn durable_as_found(folder: &Path) -> Durable {
    let mut durable = Durable::default();
    for (part, name) in PARTS {
        if let Ok(bytes) = fs::read(folder.join(name)) {
            durable.content.insert(part, bytes);
            durable.names.insert(folder.join(name));
        }
    }
    durable
}

/// Runs until `steps` are done, and dies. False if the work was finished before.
fn die_after(
    steps: usize,
    torn: bool,
    folder: &Path,
    durable: &mut Durable,
    acknowledged: &mut [i64; 2],
) -> bool {
    let shared = Arc::new(Mutex::new(std::mem::take(durable)));
    let ops = Dying { left: steps, torn, durable: shared.clone() };
    let mut sink = FileSink::with_ops(folder.join("out"), "alerts".to_owned(), Box::new(ops));
    let ended = work(&mut sink, acknowledged);
    *durable = std::mem::take(&mut shared.lock().unwrap());
    match ended {
        Ok(()) => false,
        Err(SinkError::Storage { .. }) => true,
        Err(SinkError::Refused(text) | SinkError::Unreachable(text)) => panic!("step {steps}: {text}"),
    }
}

/// The next life, without faults: what it finds holds, and it comes to the end.
fn recover(images: &[Image; 3], acknowledged: [i64; 2], what: &str) {
    let folder = lay_out(images);
    let mut sink = sink(folder.path());
    sink.claim(&[claim_of(0)]).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_holds(folder.path(), acknowledged, what);
    let mut done = acknowledged;
    work(&mut sink, &mut done).unwrap();
    assert_holds(folder.path(), [EVENTS; 2], what);
}

#[test]
fn stopped_after_every_step_for_every_image() {
    let mut steps = 0;
    loop {
        for torn in [false, true] {
            let folder = tempdir().unwrap();
            let (mut durable, mut acknowledged) = (Durable::default(), [0; 2]);
            if !die_after(steps, torn, folder.path(), &mut durable, &mut acknowledged) {
                assert!(steps > 30, "the work has more steps than that");
                return;
            }
            for (number, images) in surviving(folder.path(), &durable).iter().enumerate() {
                recover(images, acknowledged, &format!("step {steps}, torn {torn}, image {number}"));
            }
        }
        steps += 1;
    }
}

/// A first life that dies at each of these steps, and a second that dies soon after. Between the two the power fails, or only
/// the process dies: then the second life sees what the disk may lack.
fn stopped_twice(first_steps: std::ops::Range<usize>, power_cut_between: bool) {
    for steps in first_steps {
        let folder = tempdir().unwrap();
        let (mut durable, mut acknowledged) = (Durable::default(), [0; 2]);
        assert!(die_after(steps, true, folder.path(), &mut durable, &mut acknowledged));
        let between = if power_cut_between {
            // Other ones at each step: all of them would take longer than they are worth.
            surviving(folder.path(), &durable).into_iter().skip(steps % 5).step_by(5).collect()
        } else {
            vec![PARTS.map(|(_, name)| fs::read(folder.path().join(name)).ok())]
        };
        for first in between {
            for second_steps in 0..10 {
                let second = lay_out(&first);
                let mut durable = if power_cut_between {
                    durable_as_found(second.path())
                } else {
                    durable.moved(folder.path(), second.path())
                };
                let mut acknowledged = acknowledged;
                if !die_after(second_steps, true, second.path(), &mut durable, &mut acknowledged) {
                    break;
                }
                for (number, images) in surviving(second.path(), &durable).iter().enumerate() {
                    recover(images, acknowledged, &format!("{steps}, then {second_steps}, image {number}"));
                }
            }
        }
    }
}

#[test]
fn the_power_fails_and_fails_again_in_the_recovery() {
    stopped_twice(0..10, true);
    stopped_twice(20..26, true);
}

#[test]
fn the_process_dies_and_the_power_fails_in_the_recovery() {
    stopped_twice(0..30, false);
}

#[test]
fn after_an_error_nothing_is_written_any_more() {
    // Steps of a first claim, then one write that dies at each of its steps.
    for steps in 12..18 {
        let folder = tempdir().unwrap();
        let ops = Dying { left: steps, torn: true, durable: Arc::default() };
        let mut sink = FileSink::with_ops(folder.path().join("out"), "alerts".to_owned(), Box::new(ops));
        if sink.claim(&[claim_of(0)]).is_err() {
            continue;
        }
        let write = |sink: &mut FileSink, offset: i64| {
            let outputs = [output(0, offset, records(&["{}"]))];
            sink.write(&outputs, &[moved(0, (offset > 0).then_some(offset), offset + 1)])
        };
        let failed = (0..10).find(|&offset| write(&mut sink, offset).is_err()).unwrap();
        let before = read(folder.path(), "out");
        let again = write(&mut sink, failed).unwrap_err().to_string();
        assert!(again.contains("not written any more"), "{again}");
        assert_eq!(read(folder.path(), "out"), before);
    }
}
