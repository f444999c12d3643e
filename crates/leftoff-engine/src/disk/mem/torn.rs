//! The states in which a power cut may leave one write: pages reach the disk in any order, and a page may be torn.

use super::change::{ContentEdit, Fate};
use super::rng::SplitMix64;

const PAGE_BYTES: usize = 4096;

/// A write over more pages than this has only some of its holes counted.
const PAGES_WITH_HOLES: usize = 16;

/// How many states [`all`] gives.
pub(super) fn count(edit: &ContentEdit) -> usize {
    let Some((len, pages)) = shape(edit) else { return 0 };
    let k = pages.len().min(PAGES_WITH_HOLES);
    (len - 1) + len + k + k * k.saturating_sub(1) / 2
}

/// A prefix of any length, a suffix of any length (none of it: only the file's length), a hole of whole pages.
pub(super) fn all(edit: &ContentEdit) -> impl Iterator<Item = Fate> {
    let (len, mut pages) = shape(edit).unwrap_or((0, Vec::new()));
    pages.truncate(PAGES_WITH_HOLES);
    let prefixes = (1..len).map(prefix);
    let suffixes = (1..=len).map(suffix);
    let zero_tails = pages.clone().into_iter().map(move |head| Fate::Torn { head, tail: Some(len) });
    let holes = (0..pages.len()).flat_map(move |i| {
        let pages = pages.clone();
        (i + 1..pages.len()).map(move |j| Fate::Torn { head: pages[i], tail: Some(pages[j]) })
    });
    prefixes.chain(suffixes).chain(zero_tails).chain(holes)
}

/// At most `limit` of them, of different kinds.
pub(super) fn some(edit: &ContentEdit, limit: usize, rng: &mut SplitMix64) -> Vec<Fate> {
    if count(edit) <= limit {
        return all(edit).collect();
    }
    let Some((len, _)) = shape(edit) else { return Vec::new() };
    let kinds =
        [any_prefix(len, rng), suffix(len), suffix(1 + rng.below(len)), any(edit, rng), prefix(len - 1)];
    let more = (0..limit).map(|_| any(edit, rng)).collect::<Vec<_>>();
    let mut states: Vec<Fate> = Vec::with_capacity(limit);
    for state in kinds.into_iter().chain(more) {
        if states.len() < limit && !states.contains(&state) {
            states.push(state);
        }
    }
    states
}

/// One of them, each kind as often as the others. What cannot be torn is there or not.
pub(super) fn any(edit: &ContentEdit, rng: &mut SplitMix64) -> Fate {
    let Some((len, pages)) = shape(edit) else {
        return if rng.chance(4) { Fate::Whole } else { Fate::Missing };
    };
    match rng.below(5) {
        0 => any_prefix(len, rng),
        1 => suffix(1 + rng.below(len)),
        2 => suffix(len),
        _ if pages.is_empty() => any_prefix(len, rng),
        3 => suffix(pages[rng.below(pages.len())]),
        _ => {
            let (a, b) = (rng.below(pages.len()), rng.below(pages.len() + 1));
            let tail = pages.get(a.max(b)).copied().unwrap_or(len);
            Fate::Torn { head: pages[a.min(b)], tail: Some(tail) }
        }
    }
}

fn prefix(head: usize) -> Fate {
    Fate::Torn { head, tail: None }
}

fn suffix(tail: usize) -> Fate {
    Fate::Torn { head: 0, tail: Some(tail) }
}

fn any_prefix(len: usize, rng: &mut SplitMix64) -> Fate {
    prefix(rng.below(len))
}

/// The length of a write and where, within it, pages begin; `None` for what cannot be torn.
fn shape(edit: &ContentEdit) -> Option<(usize, Vec<usize>)> {
    match edit {
        ContentEdit::Write { position, bytes } => {
            let first = PAGE_BYTES - position % PAGE_BYTES;
            Some((bytes.len(), (first..bytes.len()).step_by(PAGE_BYTES).collect()))
        }
        ContentEdit::SetLen(_) => None,
    }
}
