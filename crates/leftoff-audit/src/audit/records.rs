//! The small records that the audit sorts. Their field order is their sort order.

use std::hash::{BuildHasher, RandomState};

use crate::input::OutcomeKind;
use crate::sort::{Fields, Record};

/// 128 bits that stand for an id. Keyed anew for each audit, so nobody can prepare ids that collide.
pub(super) type IdHash = [u64; 2];

pub(super) struct IdHasher([RandomState; 2]);

impl IdHasher {
    pub(super) fn new() -> IdHasher {
        IdHasher([RandomState::new(), RandomState::new()])
    }

    pub(super) fn hash(&self, id: &str) -> IdHash {
        [self.0[0].hash_one(id), self.0[1].hash_one(id)]
    }
}

/// The place of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct At {
    pub partition: u32,
    pub offset: i64,
}

/// An event and its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IdEvent {
    pub hash: IdHash,
    pub at: At,
}

/// An effect by id; `seq` is its place among the effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IdEffect {
    pub hash: IdHash,
    pub seq: u64,
}

/// An effect by place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PlaceEffect {
    pub at: At,
    pub n: u32,
    pub seq: u64,
}

/// An outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OutcomeRange {
    pub from: At,
    pub to: i64,
    pub kind: OutcomeKind,
}

/// What the effects by id say about the event at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    pub at: At,
    pub kind: MarkKind,
    /// For [`MarkKind::Surplus`] how many effects are too many.
    pub times: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MarkKind {
    /// It has an effect.
    Handled,
    /// There are more effects than events with its identity.
    Surplus,
    /// Another event with its identity has an effect.
    Absorbed,
}

/// The first effect of an event, by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FirstEffect {
    pub seq: u64,
    pub at: At,
    /// 0 by place, 1 by id.
    pub way: u8,
}

/// An event that shares its identity with another and has no effect by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Twin {
    pub at: At,
    pub hash: IdHash,
}

/// The same, when it is known whether it has an effect by place; those that have one come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TwinSeen {
    pub hash: IdHash,
    pub without_effect: bool,
    pub at: At,
}

fn put_hash(hash: &IdHash, out: &mut Vec<u8>) {
    out.extend_from_slice(&hash[0].to_le_bytes());
    out.extend_from_slice(&hash[1].to_le_bytes());
}

fn get_hash(fields: &mut Fields<'_>) -> IdHash {
    [fields.u64(), fields.u64()]
}

impl Record for At {
    const BYTES: usize = 12;
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.partition.to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
    }
    fn get(fields: &mut Fields<'_>) -> At {
        At { partition: fields.u32(), offset: fields.i64() }
    }
}

impl Record for IdEvent {
    const BYTES: usize = 16 + At::BYTES;
    fn put(&self, out: &mut Vec<u8>) {
        put_hash(&self.hash, out);
        self.at.put(out);
    }
    fn get(fields: &mut Fields<'_>) -> IdEvent {
        IdEvent { hash: get_hash(fields), at: At::get(fields) }
    }
}

impl Record for IdEffect {
    const BYTES: usize = 24;
    fn put(&self, out: &mut Vec<u8>) {
        put_hash(&self.hash, out);
        out.extend_from_slice(&self.seq.to_le_bytes());
    }
    fn get(fields: &mut Fields<'_>) -> IdEffect {
        IdEffect { hash: get_hash(fields), seq: fields.u64() }
    }
}

impl Record for PlaceEffect {
    const BYTES: usize = At::BYTES + 12;
    fn put(&self, out: &mut Vec<u8>) {
        self.at.put(out);
        out.extend_from_slice(&self.n.to_le_bytes());
        out.extend_from_slice(&self.seq.to_le_bytes());
    }
    fn get(fields: &mut Fields<'_>) -> PlaceEffect {
        PlaceEffect { at: At::get(fields), n: fields.u32(), seq: fields.u64() }
    }
}

/// In the order of their bytes on file.
const OUTCOME_KINDS: [OutcomeKind; 7] = [
    OutcomeKind::Handled,
    OutcomeKind::Filtered,
    OutcomeKind::Dead,
    OutcomeKind::Skipped,
    OutcomeKind::Deleted,
    OutcomeKind::Absorbed,
    OutcomeKind::Again,
];

impl Record for OutcomeRange {
    const BYTES: usize = At::BYTES + 9;
    fn put(&self, out: &mut Vec<u8>) {
        self.from.put(out);
        out.extend_from_slice(&self.to.to_le_bytes());
        out.push(self.kind as u8);
    }
    fn get(fields: &mut Fields<'_>) -> OutcomeRange {
        let from = At::get(fields);
        OutcomeRange { from, to: fields.i64(), kind: OUTCOME_KINDS[usize::from(fields.u8())] }
    }
}

const MARK_KINDS: [MarkKind; 3] = [MarkKind::Handled, MarkKind::Surplus, MarkKind::Absorbed];

impl Record for Mark {
    const BYTES: usize = At::BYTES + 9;
    fn put(&self, out: &mut Vec<u8>) {
        self.at.put(out);
        out.push(self.kind as u8);
        out.extend_from_slice(&self.times.to_le_bytes());
    }
    fn get(fields: &mut Fields<'_>) -> Mark {
        let at = At::get(fields);
        Mark { at, kind: MARK_KINDS[usize::from(fields.u8())], times: fields.u64() }
    }
}

impl Record for FirstEffect {
    const BYTES: usize = At::BYTES + 9;
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.seq.to_le_bytes());
        self.at.put(out);
        out.push(self.way);
    }
    fn get(fields: &mut Fields<'_>) -> FirstEffect {
        FirstEffect { seq: fields.u64(), at: At::get(fields), way: fields.u8() }
    }
}

impl Record for Twin {
    const BYTES: usize = At::BYTES + 16;
    fn put(&self, out: &mut Vec<u8>) {
        self.at.put(out);
        put_hash(&self.hash, out);
    }
    fn get(fields: &mut Fields<'_>) -> Twin {
        Twin { at: At::get(fields), hash: get_hash(fields) }
    }
}

impl Record for TwinSeen {
    const BYTES: usize = At::BYTES + 17;
    fn put(&self, out: &mut Vec<u8>) {
        put_hash(&self.hash, out);
        out.push(u8::from(self.without_effect));
        self.at.put(out);
    }
    fn get(fields: &mut Fields<'_>) -> TwinSeen {
        TwinSeen { hash: get_hash(fields), without_effect: fields.u8() != 0, at: At::get(fields) }
    }
}
