//! Reads a topic and what came of it, with nothing of ours, and holds one against the other.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// A line of the source.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) id: String,
    pub(super) key: String,
    pub(super) n: u64,
    pub(super) is_bad: bool,
}

impl Line {
    pub(super) fn text(&self) -> String {
        let Line { id, key, n, is_bad } = self;
        format!("{{\"id\":\"{id}\",\"key\":\"{key}\",\"n\":{n},\"bad\":{is_bad}}}\n")
    }
}

/// A partition and an offset.
type Place = (u64, u64);

/// The events that are to be handled, and those that cannot be.
pub(super) struct Log {
    good: BTreeMap<Place, String>,
    bad: BTreeSet<Place>,
}

/// What is to keep its order.
#[derive(Clone, Copy)]
pub(super) enum By {
    Partition,
    Key,
}

/// `PARTITION OFFSET KEY VALUE` a line: each line of the source once, and those of a key in their order.
pub(super) fn log(text: &str, source: &[Line], has_ids: bool) -> anyhow::Result<Log> {
    let mut log = Log { good: BTreeMap::new(), bad: BTreeSet::new() };
    let (mut keys, mut seen) = (BTreeMap::<String, Vec<String>>::new(), BTreeSet::new());
    for line in text.lines() {
        let [partition, offset, key, value] = line.splitn(4, ' ').collect::<Vec<_>>()[..] else {
            anyhow::bail!("not an event: {line}");
        };
        let place = (partition.parse().context("a partition")?, offset.parse().context("an offset")?);
        let value: Value = serde_json::from_str(value).context("a value")?;
        let id = value["id"].as_str().context("an id")?.to_owned();
        keys.entry(key.to_owned()).or_default().push(id.clone());
        // The second of two with an id is absorbed.
        let is_first = seen.insert(id.clone());
        if value["bad"] == true {
            // One that was given up has not been taken: its copy is tried as well.
            log.bad.insert(place);
        } else if is_first || !has_ids {
            log.good.insert(place, id);
        }
    }
    let mut expect = BTreeMap::<String, Vec<String>>::new();
    source.iter().for_each(|line| expect.entry(line.key.clone()).or_default().push(line.id.clone()));
    ensure!(keys == expect, "the topic does not have the source's lines once each: {keys:?}, not {expect:?}");
    Ok(log)
}

/// An output: the place of its event, and the event's id as the handler had it.
pub(super) struct Effect {
    place: Place,
    id: String,
    /// The part of the place that keeps an order: what one process printed, a partition.
    part: usize,
}

fn effect(json: &str, leftoff_id: Option<&str>, part: usize) -> anyhow::Result<Effect> {
    let value: Value = serde_json::from_str(json).with_context(|| format!("not a record: {json}"))?;
    let leftoff_id = leftoff_id.or(value["leftoff_id"].as_str()).context("a record without leftoff_id")?;
    let [_, partition, offset, "0"] = leftoff_id.split('/').collect::<Vec<_>>()[..] else {
        anyhow::bail!("not the id of an event's first record: {leftoff_id}");
    };
    let place = (partition.parse().context("a partition")?, offset.parse().context("an offset")?);
    Ok(Effect { place, id: value["id"].as_str().context("an id")?.to_owned(), part })
}

pub(super) fn lines(text: &str) -> anyhow::Result<Vec<Effect>> {
    text.lines().map(|line| effect(line, None, 0)).collect()
}

/// What each run printed; the last line of one that was killed may be torn.
pub(super) fn printed(runs: &[String]) -> anyhow::Result<Vec<Effect>> {
    let mut all = Vec::new();
    for (run, text) in runs.iter().enumerate() {
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for line in whole.lines() {
            all.push(effect(line, None, run)?);
        }
    }
    Ok(all)
}

/// `PARTITION<tab>HEADERS<tab>VALUE` a line: each partition keeps an order of its own.
pub(super) fn topic(text: &str) -> anyhow::Result<Vec<Effect>> {
    let one = |line: &str| {
        let [partition, headers, value] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else {
            anyhow::bail!("not a record: {line}");
        };
        let partition = partition.parse().context("a partition")?;
        let id = headers.split(',').find_map(|header| header.strip_prefix("leftoff_id="));
        effect(value, Some(id.context("a record without its header")?), partition)
    };
    text.lines().map(one).collect()
}

/// Each event that can be handled has its output, its own, once where that is promised, those of a partition in order.
pub(super) fn effects(log: &Log, outputs: &[Effect], is_exact: bool) -> anyhow::Result<()> {
    let mut count = BTreeMap::<Place, usize>::new();
    let mut last = BTreeMap::<(usize, u64), u64>::new();
    for Effect { place, id, part } in outputs {
        let expect =
            log.good.get(place).with_context(|| format!("an output of {place:?}, which has none"))?;
        ensure!(expect == id, "the output of {place:?} is that of {id}, not {expect}");
        *count.entry(*place).or_default() += 1;
        let before = last.insert((*part, place.0), place.1);
        ensure!(before.is_none_or(|before| before < place.1), "{place:?} was written after {before:?}");
    }
    let lost: Vec<_> = log.good.keys().filter(|place| !count.contains_key(place)).collect();
    ensure!(lost.is_empty(), "lost: {lost:?}");
    let twice: Vec<_> = count.iter().filter(|(_, count)| **count > 1).collect();
    ensure!(!is_exact || twice.is_empty(), "twice: {twice:?}");
    Ok(())
}

/// What cannot be handled is a dead letter, and nothing else is.
pub(super) fn dead(log: &Log, text: &str) -> anyhow::Result<()> {
    let mut dead = BTreeSet::new();
    for line in text.lines() {
        let [_, partition, offset] =
            line.split(',').next().unwrap_or_default().split('/').collect::<Vec<_>>()[..]
        else {
            anyhow::bail!("not a dead letter: {line}");
        };
        dead.insert((partition.parse().context("a partition")?, offset.parse().context("an offset")?));
    }
    ensure!(dead == log.bad, "dead letters: {dead:?}, not {:?}", log.bad);
    Ok(())
}

/// `START PARTITION OFFSET KEY` a line: within one start of the runner none is handled before one that comes before it.
pub(super) fn handled_in_order(text: &str, by: By) -> anyhow::Result<()> {
    let mut last = BTreeMap::new();
    for line in text.lines() {
        let [start, partition, offset, key] = line.split(' ').collect::<Vec<_>>()[..] else {
            anyhow::bail!("not a line of the handler's: {line}");
        };
        let offset: u64 = offset.parse().context("an offset")?;
        let lane = match by {
            By::Partition => (start, partition, ""),
            By::Key => (start, partition, key),
        };
        let before = last.insert(lane, offset);
        // One that is tried again after its answer was not taken is the same one.
        ensure!(before.is_none_or(|before| before <= offset), "{line} was handled after offset {before:?}");
    }
    Ok(())
}
