//! What must hold of a directory that is opened again, given what was asked, acknowledged and seen before.

use std::collections::BTreeSet;

use leftoff_engine::broker::{OFFSETS_LOG, PartitionId, Recovered, State, View};
use leftoff_engine::log::{FindingKind, Log, ReadBatch};
use leftoff_wire::Uuid;

use crate::history::{Events, History, Key, TopicChange, Topics, Value, Values, least, topics_of, values_of};

/// How much must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expect {
    /// A writer has recovered it.
    pub is_settled: bool,
    /// Nobody has recovered it after a power cut: the marks may be old, so each log may end earlier. What is there is as it
    /// was written.
    pub has_old_marks: bool,
    /// The marks are of more than one moment, and the reader is told so: one log does not fit the other.
    pub has_mixed_marks: bool,
}

impl Expect {
    /// A writer has recovered it: everything that was acknowledged or seen is there.
    pub const SETTLED: Expect = Expect { is_settled: true, has_old_marks: false, has_mixed_marks: false };
    /// A reader beside a writer that lives, or was killed: the same.
    pub const READER: Expect = Expect { is_settled: false, ..Expect::SETTLED };
    /// A reader of what a power cut left.
    pub const READER_AFTER_POWER_CUT: Expect = Expect { has_old_marks: true, ..Expect::READER };

    /// What a view can be held to.
    pub fn of(self, view: &View) -> Expect {
        Expect { has_mixed_marks: !view.is_of_one_moment(), ..self }
    }
}

/// How much of what was asked for is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// So many changes of topics.
    pub topics: usize,
    /// So many changes of offsets.
    pub offsets: usize,
}

/// Holds a state to a history.
///
/// # Errors
/// What is wrong.
pub fn check(history: &History, state: &State, expect: Expect) -> Result<Found, String> {
    let (_, topics) = topics_prefix(history, &topics_of(state.topics()), expect)?;
    let live = history.topics_after(topics);
    for (topic_id, (name, partitions)) in &live {
        for partition in 0..*partitions {
            let id = PartitionId { topic_id: *topic_id, partition };
            let log = state.log(&id).ok_or_else(|| format!("{name}/{partition} has no log"))?;
            let nothing = Events::default();
            let events = history.partitions.get(&id).unwrap_or(&nothing);
            check_events(events, log, expect).map_err(|what| format!("{name}/{partition}: {what}"))?;
        }
    }
    let offsets_log = state.log(&OFFSETS_LOG).ok_or("there is no offsets log")?;
    check_undamaged(offsets_log).map_err(|what| format!("offsets log: {what}"))?;
    if expect.has_mixed_marks && expect.has_old_marks {
        return Ok(Found { topics, offsets: 0 });
    }
    let offsets = offsets_prefix(history, state, topics, expect)?;
    if !expect.has_mixed_marks {
        check_committed(state)?;
    }
    Ok(Found { topics, offsets })
}

/// Holds what a start did to a history.
///
/// # Errors
/// What is wrong.
pub fn check_recovered(history: &History, recovered: &Recovered) -> Result<(), String> {
    if !recovered.damaged.is_empty() {
        return Err(format!("damage, and nothing was damaged: {:?}", recovered.damaged));
    }
    // Only folders of a topic that was being made have nobody who claims them.
    let begun = history.topics[least(&history.topics)..].iter().filter_map(|fact| match &fact.what {
        TopicChange::Made { name, .. } => Some(name.clone()),
        TopicChange::Deleted { .. } => None,
    });
    let begun: BTreeSet<String> = begun.collect();
    let is_begun = |path: &std::path::PathBuf| {
        let folder = path.file_name().unwrap_or_default().to_string_lossy();
        folder.rsplit_once('-').is_some_and(|(topic, _)| begun.contains(topic))
    };
    match recovered.set_aside.iter().find(|path| !is_begun(path)) {
        Some(path) => Err(format!("{path:?} was set aside, and no topic of that name was being made")),
        None => Ok(()),
    }
}

/// How many changes of topics lead to these topics: the fewest, and the most (a topic may have been made and deleted
/// between them).
///
/// # Errors
/// If no number does that is not below what was acknowledged.
pub fn topics_prefix(history: &History, found: &Topics, expect: Expect) -> Result<(usize, usize), String> {
    let from = if expect.has_old_marks { 0 } else { least(&history.topics) };
    let fits: Vec<usize> =
        (from..=history.topics.len()).filter(|count| history.topics_after(*count) == *found).collect();
    let fewest = *fits.first().ok_or_else(|| {
        format!("topics {found:?} are what no end of {:?} leads to, from change {from} on", history.topics)
    })?;
    Ok((fewest, fits.last().copied().unwrap_or(fewest)))
}

/// How many changes of the offsets log lead to these groups, sources aside.
///
/// # Errors
/// If no number does that is not below what was acknowledged.
pub fn groups_prefix(history: &History, found: &Values) -> Result<usize, String> {
    let from = least(&history.offsets);
    let groups = |count: usize| -> Values {
        let values = history.values_after(count).into_iter();
        values.filter(|(key, _)| !matches!(key, Key::Source(_))).collect()
    };
    (from..=history.offsets.len()).find(|count| groups(*count) == *found).ok_or_else(|| {
        format!("groups {found:?} are what no end of {:?} leads to, from change {from} on", history.offsets)
    })
}

/// Offsets are dense and in order, and each batch is the very one that was appended there.
fn check_events(events: &Events, log: &Log, expect: Expect) -> Result<(), String> {
    let (start, end) = (log.log_start().get(), log.high_watermark().get());
    let old = expect.has_old_marks;
    let (least_start, least_end) = if old { (0, 0) } else { (events.seen_start, events.known_end()) };
    if start < least_start || start > events.possible_start {
        let possible = events.possible_start;
        return Err(format!("log start {start} is not in {least_start}..={possible}"));
    }
    if end < least_end || end > events.possible_end() {
        return Err(format!("ends at {end}, not in {least_end}..={}", events.possible_end()));
    }
    if !expect.is_settled && start > end {
        return Ok(());
    }
    check_undamaged(log)?;
    let (mut at, mut epoch) = (None, None);
    for step in log.read_batches(log.log_start()) {
        let (header, bytes) = match step.map_err(|error| error.to_string())? {
            ReadBatch::Batch { header, bytes } => (header, bytes),
            other => return Err(format!("{other:?}")),
        };
        let base = header.base_offset.get();
        if at.is_some_and(|at| at != base) || at.is_none() && base > start {
            return Err(format!("a batch begins at {base}, expected at {at:?}, log start {start}"));
        }
        let batch = events.at(base).find(|batch| is_same(&bytes, &batch.bytes));
        let batch = batch.ok_or_else(|| format!("the batch at {base} is not what was appended there"))?;
        at = Some(batch.next);
        epoch = Some(header.partition_leader_epoch);
    }
    let checkpoint = log.last_epoch().map_err(|error| error.to_string())?;
    if expect.is_settled && epoch.is_some() && epoch != checkpoint {
        return Err(format!("the last batch has leader epoch {epoch:?}, the checkpoint {checkpoint:?}"));
    }
    match at {
        Some(at) if at != end => Err(format!("batches end at {at}, the log at {end}")),
        None if start != end => Err(format!("nothing can be read of {start}..{end}")),
        _ => Ok(()),
    }
}

/// Base offset and leader epoch are the broker's; the rest is the producer's, bit by bit.
fn is_same(found: &[u8], given: &[u8]) -> bool {
    found.len() == given.len() && found[8..12] == given[8..12] && found[16..] == given[16..]
}

fn check_undamaged(log: &Log) -> Result<(), String> {
    let mut wrong = None;
    let verified = log.verify(&mut |finding| match finding.kind {
        FindingKind::Damage | FindingKind::Short | FindingKind::Hole | FindingKind::EpochFell => {
            wrong.get_or_insert(format!("{finding:?}"));
        }
        // Indexes are hints; a power cut may take them.
        FindingKind::OffsetIndex | FindingKind::TimeIndex => {}
    });
    verified.map_err(|error| error.to_string())?;
    let segments = log.segments().map_err(|error| error.to_string())?;
    if let Some(segment) = segments.iter().find(|segment| segment.base > segment.next) {
        wrong.get_or_insert(format!("a segment has a name above its end: {segment:?}"));
    }
    wrong.map_or(Ok(()), Err)
}

/// How many changes of the offsets log lead to what the coordinator says, such that every commit set among them is there
/// as a whole, and nothing of the others.
fn offsets_prefix(history: &History, state: &State, topics: usize, expect: Expect) -> Result<usize, String> {
    let found = values(state);
    let from = if expect.has_old_marks { 0 } else { least(&history.offsets) };
    let fits: Vec<usize> =
        (from..=history.offsets.len()).filter(|count| history.values_after(*count) == found).collect();
    if fits.is_empty() {
        let all = &history.offsets;
        return Err(format!("offsets {found:?} are what no end of {all:?} leads to, from change {from} on"));
    }
    if expect.has_mixed_marks {
        return Ok(fits[0]);
    }
    let deleted = history.deleted_after(topics);
    let checks = fits.iter().map(|count| check_sets(history, state, &deleted, *count).map(|()| *count));
    let checks: Vec<Result<usize, String>> = checks.collect();
    let whole = checks.iter().find_map(|check| check.as_ref().ok().copied());
    whole.ok_or_else(|| checks.into_iter().find_map(Result::err).unwrap_or_default())
}

/// Group offset = k if and only if the outputs of all inputs below k are there.
fn check_sets(
    history: &History,
    state: &State,
    deleted: &BTreeSet<Uuid>,
    count: usize,
) -> Result<(), String> {
    for (number, fact) in history.offsets.iter().enumerate() {
        for partition in &fact.what.outputs {
            if deleted.contains(&partition.topic_id) {
                continue;
            }
            let end = state.log(partition).map_or(0, |log| log.high_watermark().get());
            let next = history.end_of(fact.request, partition);
            let (is_there, should_be) = (next.is_some_and(|next| end >= next), number < count);
            if is_there != should_be {
                let (verb, offsets) = if is_there { ("is", "are not") } else { ("is not", "are") };
                let what = &fact.what.values;
                return Err(format!(
                    "half a commit set: {partition} up to {next:?} {verb} there, its offsets {what:?} {offsets}"
                ));
            }
        }
    }
    Ok(())
}

fn check_committed(state: &State) -> Result<(), String> {
    for (key, value) in values(state) {
        let (Key::Offset(group, topic, number), Value::Next(topic_id, next)) = (key, value) else { continue };
        let Some(log) = state.log(&PartitionId { topic_id, partition: number }) else { continue };
        if next > log.high_watermark().get() {
            let end = log.high_watermark();
            return Err(format!("group {group} is at {next} of {topic}/{number}, which ends at {end}"));
        }
    }
    Ok(())
}

fn values(state: &State) -> Values {
    let mut values = values_of(state.coordinator().groups());
    for (name, source) in state.coordinator().sources() {
        values.insert(Key::Source(name.to_owned()), Value::Bytes(source.progress.position_bytes));
    }
    values
}
