//! Which images a power cut may leave.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crc_fast::CrcAlgorithm;

use super::change::{Content, ContentEdit, Entries, Fate, InodeId, NameChange, Reach};
use super::rng::SplitMix64;
use super::state::{FileNode, FolderNode, Inode, ROOT, State};
use super::torn;

/// How many torn states of a write are tried in all combinations, from the most to the fewest that the budget allows.
const TORN_STATES_TRIED: [usize; 4] = [8, 3, 1, 0];

/// Samples that turn out to be known images are not counted, up to this many for each image of the budget.
const SAMPLES_PER_IMAGE: usize = 2;

pub(super) fn survivors(state: &State, budget: usize, seed: u64) -> Vec<State> {
    let mut rng = SplitMix64::new(seed);
    let mut images = Images::of(state);
    if images.torn_states_all().is_some_and(|counts| combinations(counts) <= budget) {
        images.add_combinations(|edit| torn::all(edit).collect());
        return images.done;
    }
    images.add_corners();
    images.add_all_but_one(budget / 2, &mut rng);
    images.add_combinations_within(budget, &mut rng);
    images.add_samples(budget, &mut rng);
    images.done
}

/// The images so far, no two the same.
struct Images<'a> {
    state: &'a State,
    changes: Vec<Change<'a>>,
    index_of_seq: HashMap<u64, usize>,
    /// For each file with unsynced changes: each of them, with its place in a plan if it is not durable anyway.
    of_file: HashMap<InodeId, Vec<(&'a ContentEdit, Option<usize>)>>,
    known: HashSet<BTreeMap<InodeId, Piece>>,
    done: Vec<State>,
}

/// A change that may survive or not. A plan has a fate for each.
struct Change<'a> {
    seq: u64,
    what: What<'a>,
}

enum What<'a> {
    Content(InodeId, &'a ContentEdit),
    Name(&'a NameChange),
}

/// What tells two images apart.
#[derive(PartialEq, Eq, Hash)]
enum Piece {
    Folder(Entries),
    /// Length and checksum. Were two contents to share them, an image would be taken for a known one and left out.
    Changed(usize, u64),
    Unchanged,
}

impl<'a> Images<'a> {
    fn of(state: &'a State) -> Images<'a> {
        let named = named_inodes(state);
        let mut changes: Vec<Change<'a>> = Vec::new();
        let mut of_file = HashMap::new();
        for (inode, file) in files(state).filter(|(inode, _)| named.contains(inode)) {
            let dirty = file.unsynced.iter().filter(|c| c.reach != Reach::Durable);
            changes.extend(dirty.map(|c| Change { seq: c.seq, what: What::Content(inode, &c.edit) }));
            if !file.unsynced.is_empty() {
                of_file.insert(inode, file);
            }
        }
        changes.extend(state.names.iter().map(|name| Change { seq: name.seq, what: What::Name(name) }));
        changes.sort_by_key(|change| change.seq);
        let index_of_seq: HashMap<u64, usize> =
            changes.iter().enumerate().map(|(index, change)| (change.seq, index)).collect();
        let of_file = of_file
            .into_iter()
            .map(|(inode, file)| {
                let edits = file.unsynced.iter().map(|c| (&c.edit, index_of_seq.get(&c.seq).copied()));
                (inode, edits.collect())
            })
            .collect();
        Images { state, changes, index_of_seq, of_file, known: HashSet::new(), done: Vec::new() }
    }

    // Which plans

    /// For each change, the number of states it can be left in; `None` if that is beyond counting.
    fn torn_states_all(&self) -> Option<Vec<usize>> {
        self.changes
            .iter()
            .map(|change| match change.what {
                What::Content(_, edit) => torn::count(edit).checked_add(2),
                What::Name(_) => Some(2),
            })
            .collect()
    }

    fn add_corners(&mut self) {
        let n = self.changes.len();
        self.add(vec![Fate::Missing; n]);
        self.add(vec![Fate::Whole; n]);
        if n > 0 {
            self.add(self.only(n - 1));
            self.add(self.all_but(0));
            self.add(self.all_but(n - 1));
        }
    }

    fn add_all_but_one(&mut self, limit: usize, rng: &mut SplitMix64) {
        let mut order: Vec<usize> = (0..self.changes.len()).collect();
        if order.len() > limit {
            (1..order.len()).rev().for_each(|i| order.swap(i, rng.below(i + 1)));
        }
        order.into_iter().take(limit).for_each(|index| self.add(self.all_but(index)));
    }

    fn add_combinations_within(&mut self, budget: usize, rng: &mut SplitMix64) {
        let left = budget.saturating_sub(self.done.len());
        let fits = |limit: &usize| {
            combinations(self.changes.iter().map(|change| match change.what {
                What::Content(_, edit) => 2 + torn::count(edit).min(*limit),
                What::Name(_) => 2,
            })) <= left
        };
        if let Some(limit) = TORN_STATES_TRIED.into_iter().find(fits) {
            self.add_combinations(|edit| torn::some(edit, limit, rng));
        }
    }

    fn add_samples(&mut self, budget: usize, rng: &mut SplitMix64) {
        let attempts = budget.saturating_sub(self.done.len()).saturating_mul(SAMPLES_PER_IMAGE);
        for _ in 0..attempts {
            if self.done.len() >= budget {
                return;
            }
            let plan = match rng.below(3) {
                0 => self.sample_cut_in_time(rng),
                1 => self.sample_each_on_its_own(rng),
                _ => self.sample_by_file(rng),
            };
            self.add(plan);
        }
    }

    /// Everything up to a moment, the change of that moment torn, nothing behind it.
    fn sample_cut_in_time(&self, rng: &mut SplitMix64) -> Vec<Fate> {
        let cut = rng.below(self.changes.len() + 1);
        let mut plan = vec![Fate::Whole; cut];
        plan.resize(self.changes.len(), Fate::Missing);
        if cut < plan.len() {
            plan[cut] = self.torn_at(cut, rng);
        }
        plan
    }

    fn sample_each_on_its_own(&self, rng: &mut SplitMix64) -> Vec<Fate> {
        let survive = [1, 4, 7][rng.below(3)];
        let tear = [0, 1, 4][rng.below(3)];
        (0..self.changes.len())
            .map(|index| match (rng.chance(survive), rng.chance(tear)) {
                (_, true) => self.torn_at(index, rng),
                (true, false) => Fate::Whole,
                (false, false) => Fate::Missing,
            })
            .collect()
    }

    /// Some files were written back, others not; the names up to a moment.
    fn sample_by_file(&self, rng: &mut SplitMix64) -> Vec<Fate> {
        let mut lucky: HashMap<InodeId, bool> = HashMap::new();
        let names_until = rng.below(self.changes.len() + 1);
        (0..self.changes.len())
            .map(|index| match self.changes[index].what {
                What::Name(_) if index < names_until => Fate::Whole,
                What::Name(_) => Fate::Missing,
                What::Content(inode, _) if *lucky.entry(inode).or_insert_with(|| rng.chance(4)) => {
                    Fate::Whole
                }
                What::Content(..) if rng.chance(1) => self.torn_at(index, rng),
                What::Content(..) => Fate::Missing,
            })
            .collect()
    }

    fn torn_at(&self, index: usize, rng: &mut SplitMix64) -> Fate {
        match self.changes[index].what {
            What::Content(_, edit) => torn::any(edit, rng),
            What::Name(_) => Fate::Missing,
        }
    }

    fn all_but(&self, index: usize) -> Vec<Fate> {
        let mut plan = vec![Fate::Whole; self.changes.len()];
        plan[index] = Fate::Missing;
        plan
    }

    /// One change, and what it cannot be without.
    fn only(&self, index: usize) -> Vec<Fate> {
        let mut plan = vec![Fate::Missing; self.changes.len()];
        plan[index] = Fate::Whole;
        for later in (0..=index).rev() {
            if let (What::Name(name), Fate::Whole) = (&self.changes[later].what, plan[later]) {
                name.needs()
                    .filter_map(|seq| self.index_of_seq.get(&seq))
                    .for_each(|i| plan[*i] = Fate::Whole);
            }
        }
        plan
    }

    fn add_combinations(&mut self, mut torn_states: impl FnMut(&ContentEdit) -> Vec<Fate>) {
        let options: Vec<Vec<Fate>> = self
            .changes
            .iter()
            .map(|change| {
                let torn = match change.what {
                    What::Content(_, edit) => torn_states(edit),
                    What::Name(_) => Vec::new(),
                };
                [Fate::Missing, Fate::Whole].into_iter().chain(torn).collect()
            })
            .collect();
        let mut digits = vec![0; options.len()];
        loop {
            self.add(digits.iter().zip(&options).map(|(digit, fates)| fates[*digit]).collect());
            if !count_up(&mut digits, &options) {
                return;
            }
        }
    }

    // From a plan to an image

    fn add(&mut self, mut plan: Vec<Fate>) {
        self.drop_names_without_what_they_need(&mut plan);
        let inodes = self.inodes(&plan);
        let key = inodes.iter().map(|(id, inode)| (*id, self.piece(*id, inode))).collect();
        if self.known.insert(key) {
            self.done.push(State::from_inodes(inodes));
        }
    }

    fn drop_names_without_what_they_need(&self, plan: &mut [Fate]) {
        for (index, change) in self.changes.iter().enumerate() {
            let What::Name(name) = &change.what else { continue };
            let lost = |seq| self.index_of_seq.get(&seq).is_some_and(|i| plan[*i] == Fate::Missing);
            if name.needs().any(lost) {
                plan[index] = Fate::Missing;
            }
        }
    }

    /// All that a walk from the root meets.
    fn inodes(&self, plan: &[Fate]) -> BTreeMap<InodeId, Inode> {
        let mut folders: HashMap<InodeId, Entries> =
            folders(self.state).map(|(inode, folder)| (inode, folder.synced.clone())).collect();
        for (change, fate) in self.changes.iter().zip(plan) {
            if let (What::Name(name), Fate::Whole) = (&change.what, fate) {
                name.apply(&mut folders);
            }
        }
        let mut inodes = BTreeMap::new();
        let mut waiting = vec![ROOT];
        while let Some(inode) = waiting.pop() {
            let found = match (&self.state.inodes[&inode], folders.get(&inode)) {
                (Inode::File(file), _) => {
                    let content = self.content(inode, file, plan);
                    Inode::File(FileNode { seen: content.clone(), synced: content, unsynced: Vec::new() })
                }
                (Inode::Folder(folder), entries) => {
                    let entries = entries.unwrap_or(&folder.synced);
                    waiting.extend(entries.values());
                    Inode::Folder(FolderNode { seen: entries.clone(), synced: entries.clone() })
                }
            };
            inodes.insert(inode, found);
        }
        inodes
    }

    fn content(&self, inode: InodeId, file: &FileNode, plan: &[Fate]) -> Content {
        let Some(edits) = self.of_file.get(&inode) else { return file.synced.clone() };
        let fate = |index: &Option<usize>| index.map_or(Fate::Whole, |index| plan[index]);
        if edits.iter().all(|(_, index)| fate(index) == Fate::Missing) {
            return file.synced.clone();
        }
        if edits.iter().all(|(_, index)| fate(index) == Fate::Whole) {
            return file.seen.clone();
        }
        let mut content = Vec::with_capacity(file.synced.len().max(file.seen.len()));
        content.extend_from_slice(&file.synced);
        edits.iter().for_each(|(edit, index)| edit.apply(fate(index), &mut content));
        Arc::new(content)
    }

    fn piece(&self, inode: InodeId, node: &Inode) -> Piece {
        match node {
            Inode::Folder(folder) => Piece::Folder(folder.seen.clone()),
            Inode::File(file) if self.of_file.contains_key(&inode) => {
                Piece::Changed(file.seen.len(), crc_fast::checksum(CrcAlgorithm::Crc64Nvme, &file.seen))
            }
            Inode::File(_) => Piece::Unchanged,
        }
    }
}

/// Inodes that some image may have a name for. Changes of others cannot be told apart.
fn named_inodes(state: &State) -> HashSet<InodeId> {
    let on_disk = folders(state).flat_map(|(_, folder)| folder.synced.values().copied());
    on_disk.chain(state.names.iter().map(|name| name.inode)).collect()
}

fn files(state: &State) -> impl Iterator<Item = (InodeId, &FileNode)> {
    state.inodes.iter().filter_map(|(id, inode)| match inode {
        Inode::File(file) => Some((*id, file)),
        Inode::Folder(_) => None,
    })
}

fn folders(state: &State) -> impl Iterator<Item = (InodeId, &FolderNode)> {
    state.inodes.iter().filter_map(|(id, inode)| match inode {
        Inode::Folder(folder) => Some((*id, folder)),
        Inode::File(_) => None,
    })
}

fn combinations(counts: impl IntoIterator<Item = usize>) -> usize {
    counts.into_iter().fold(1, usize::saturating_mul)
}

/// The next number whose digits have these bases; false after the last.
fn count_up(digits: &mut [usize], options: &[Vec<Fate>]) -> bool {
    for (digit, options) in digits.iter_mut().zip(options) {
        *digit += 1;
        if *digit < options.len() {
            return true;
        }
        *digit = 0;
    }
    false
}
