//! Counts everything and remembers the first of it.

use std::collections::{BTreeMap, HashMap};

use super::records::At;
use crate::verdict::{
    Found, LIST_LIMIT, NAME_LIMIT_BYTES, Place, PlaceRange, Produced, ProducedTwice, UnknownEffect,
    UnknownEffects, UnknownWhy,
};

/// How many places are shown of one identity.
const PLACES_SHOWN: usize = 8;

/// The ids of the places that are to be named, as far as events have ids.
pub(super) type Names = HashMap<At, Option<String>>;

/// Events of one kind; they must come in the order of their places.
#[derive(Debug, Default)]
pub(super) struct Tally {
    count: u64,
    surplus: u64,
    ranges: Vec<PlaceRange>,
    places: Vec<At>,
}

impl Tally {
    pub(super) fn add(&mut self, at: At) {
        self.count += 1;
        if self.places.len() < LIST_LIMIT {
            self.places.push(at);
        }
        self.extend(PlaceRange { partition: at.partition, from: at.offset, to: at.offset });
    }

    pub(super) fn add_surplus(&mut self, at: At, surplus: u64) {
        self.surplus += surplus;
        self.add(at);
    }

    /// Offsets of which it is unknown which of them were events.
    pub(super) fn add_offsets(&mut self, range: PlaceRange) {
        self.count += range.offsets();
        self.extend(range);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn places(&self) -> &[At] {
        &self.places
    }

    fn extend(&mut self, range: PlaceRange) {
        let full = self.ranges.len() == LIST_LIMIT;
        match self.ranges.last_mut() {
            Some(last) if last.partition == range.partition && last.to + 1 == range.from => {
                last.to = range.to
            }
            _ if full => {}
            _ => self.ranges.push(range),
        }
    }

    pub(super) fn into_found(self, topic: &str, ids: &Names) -> Found {
        let id_of = |at: &At| ids.get(at).and_then(Option::as_deref);
        let (names, named) = if self.places.iter().any(|at| id_of(at).is_some()) {
            (names_of_places(topic, &self.places, id_of), self.places.len() as u64)
        } else {
            let names = self.ranges.iter().map(|range| range_name(topic, *range)).collect();
            (names, self.ranges.iter().map(PlaceRange::offsets).sum())
        };
        let unnamed = self.count.saturating_sub(named);
        Found { count: self.count, surplus: self.surplus, ranges: self.ranges, names, unnamed }
    }
}

/// Ids where there are some, ranges of places in between.
fn names_of_places<'a>(topic: &str, places: &[At], id_of: impl Fn(&At) -> Option<&'a str>) -> Vec<String> {
    let mut names = Vec::new();
    let mut open: Option<PlaceRange> = None;
    for at in places {
        let one = PlaceRange { partition: at.partition, from: at.offset, to: at.offset };
        open = match (id_of(at), open) {
            (Some(id), before) => {
                names.extend(before.map(|range| range_name(topic, range)));
                names.push(id.to_owned());
                None
            }
            (None, Some(range)) if range.partition == one.partition && range.to + 1 == one.from => {
                Some(PlaceRange { to: one.to, ..range })
            }
            (None, before) => {
                names.extend(before.map(|range| range_name(topic, range)));
                Some(one)
            }
        };
    }
    names.extend(open.map(|range| range_name(topic, range)));
    names
}

/// `TOPIC/PARTITION/OFFSET` or `TOPIC/PARTITION/FROM-TO`.
pub(super) fn range_name(topic: &str, range: PlaceRange) -> String {
    let PlaceRange { partition, from, to } = range;
    if from == to {
        format!("{topic}/{partition}/{from}")
    } else {
        format!("{topic}/{partition}/{from}-{to}")
    }
}

/// At most [`NAME_LIMIT_BYTES`] of a text that came from outside.
pub(super) fn clipped(text: &str) -> String {
    if text.len() <= NAME_LIMIT_BYTES {
        return text.to_owned();
    }
    let end = (0..=NAME_LIMIT_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// Effects without an event.
#[derive(Debug, Default)]
pub(super) struct UnknownTally {
    count: u64,
    no_such_id: u64,
    first: BTreeMap<u64, (UnknownWhy, Option<String>)>,
}

impl UnknownTally {
    /// `times` effects with one name, the first of which is the `seq`-th effect. Without a name it is looked up later.
    pub(super) fn add(&mut self, seq: u64, why: UnknownWhy, name: Option<String>, times: u64) {
        self.count += times;
        if why == UnknownWhy::NoSuchId {
            self.no_such_id += times;
        }
        self.first.insert(seq, (why, name));
        if self.first.len() > LIST_LIMIT {
            self.first.pop_last();
        }
    }

    pub(super) fn append(&mut self, other: UnknownTally) {
        self.count += other.count;
        self.no_such_id += other.no_such_id;
        self.first.extend(other.first);
        while self.first.len() > LIST_LIMIT {
            self.first.pop_last();
        }
    }

    pub(super) fn no_such_id(&self) -> u64 {
        self.no_such_id
    }

    /// The effects whose names are still to be looked up.
    pub(super) fn nameless(&mut self) -> BTreeMap<u64, &mut Option<String>> {
        let nameless = self.first.iter_mut().filter(|(_, (_, name))| name.is_none());
        nameless.map(|(seq, (_, name))| (*seq, name)).collect()
    }

    pub(super) fn into_unknown(self) -> UnknownEffects {
        let named = self.first.into_values();
        let named = named.filter_map(|(why, name)| Some(UnknownEffect { name: name?, why }));
        UnknownEffects { count: self.count, named: named.collect() }
    }
}

/// Identities of more than one event, the first by the first of their places.
#[derive(Debug, Default)]
pub(super) struct ProducedTally {
    count: u64,
    first: BTreeMap<At, (u64, Vec<Place>)>,
}

impl ProducedTally {
    pub(super) fn add(&mut self, group: &Group) {
        let Some(first) = group.first else { return };
        self.count += 1;
        self.first.insert(first, (group.events, group.places.clone()));
        if self.first.len() > LIST_LIMIT {
            self.first.pop_last();
        }
    }

    pub(super) fn places(&self) -> impl Iterator<Item = At> + '_ {
        self.first.keys().copied()
    }

    pub(super) fn into_produced(self, topic: &str, ids: &Names) -> ProducedTwice {
        let name = |at: At| {
            let id = ids.get(&at).cloned().flatten();
            id.unwrap_or_else(|| {
                range_name(topic, PlaceRange { partition: at.partition, from: at.offset, to: at.offset })
            })
        };
        let produced = self.first.into_iter();
        let ids = produced.map(|(at, (events, places))| Produced { id: name(at), events, places }).collect();
        ProducedTwice { count: self.count, ids }
    }
}

/// The events of one identity.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub events: u64,
    pub effects: u64,
    pub first: Option<At>,
    places: Vec<Place>,
}

impl Group {
    pub(super) fn add_event(&mut self, at: At) {
        self.events += 1;
        self.first.get_or_insert(at);
        if self.places.len() < PLACES_SHOWN {
            self.places.push(Place { partition: at.partition, offset: at.offset });
        }
    }
}
