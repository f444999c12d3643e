//! The bytes of a slot.

use std::collections::BTreeMap;

use crc_fast::CrcAlgorithm;
use leftoff_wire::{Committed, Offset, Uuid};

use crate::sink::{LastEvent, Mark, Move};
use crate::source::PartitionId;

/// The room for a slot, in bytes. The sidecar has two.
pub const SLOT_BYTES: usize = 65_536;
/// The most partitions that one file can hold.
pub const MAX_PARTITIONS: usize = 2_000;
/// With more partitions than so many there is no room for the marks: the slot is of version 1 then.
pub const MAX_MARKED: usize = 1_300;
/// The longest name of a group, in bytes.
pub const MAX_GROUP_BYTES: usize = 1_024;

const MAGIC: &[u8; 8] = b"LEFTOFFS";
/// Offsets alone.
const PLAIN: u32 = 1;
/// Offsets, and the mark of each.
const MARKED: u32 = 2;
/// In place of an offset that there is not.
const NONE: i64 = -1;

/// Which slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    A,
    B,
}

impl Place {
    pub(super) fn other(self) -> Place {
        match self {
            Place::A => Place::B,
            Place::B => Place::A,
        }
    }

    pub(super) fn position_bytes(self) -> u64 {
        match self {
            Place::A => 0,
            Place::B => SLOT_BYTES as u64,
        }
    }
}

/// What a slot says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// One more with each write of a slot.
    pub(super) seq: u64,
    pub(super) group: String,
    /// One more with each claim.
    pub(super) claim_epoch: u64,
    /// How much of the data file counts.
    pub(super) data_bytes: u64,
    /// How much of the outcomes file counts.
    pub(super) outcomes_bytes: u64,
    pub(super) next: BTreeMap<PartitionId, Committed>,
    /// What else is known of a partition. None where there are too many of them.
    pub(super) marks: BTreeMap<PartitionId, Mark>,
}

impl State {
    /// Before the first claim.
    pub(super) fn new(group: &str) -> State {
        State {
            seq: 1,
            group: group.to_owned(),
            claim_epoch: 0,
            data_bytes: 0,
            outcomes_bytes: 0,
            next: BTreeMap::new(),
            marks: BTreeMap::new(),
        }
    }

    pub(super) fn claimed(&self) -> State {
        State { seq: self.seq + 1, claim_epoch: self.claim_epoch + 1, ..self.clone() }
    }

    /// The state behind a write.
    pub(super) fn after(&self, moves: &[Move], data_bytes: usize, outcomes_bytes: usize) -> State {
        let mut state = self.clone();
        state.seq += 1;
        state.data_bytes += data_bytes as u64;
        state.outcomes_bytes += outcomes_bytes as u64;
        state.next.extend(moves.iter().map(|m| (m.id, m.next)));
        if state.next.len() <= MAX_MARKED {
            state.marks.extend(moves.iter().map(|m| (m.id, m.mark)));
        } else {
            state.marks.clear();
        }
        state
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        assert!(
            self.next.len() <= MAX_PARTITIONS && self.group.len() <= MAX_GROUP_BYTES,
            "checked when claimed"
        );
        let mut body = Vec::new();
        body.extend_from_slice(MAGIC);
        let is_marked = self.next.len() <= MAX_MARKED;
        body.extend_from_slice(&(if is_marked { MARKED } else { PLAIN }).to_be_bytes());
        body.extend_from_slice(&self.seq.to_be_bytes());
        body.extend_from_slice(&self.claim_epoch.to_be_bytes());
        body.extend_from_slice(&self.data_bytes.to_be_bytes());
        body.extend_from_slice(&self.outcomes_bytes.to_be_bytes());
        body.extend_from_slice(&(self.group.len() as u16).to_be_bytes());
        body.extend_from_slice(self.group.as_bytes());
        body.extend_from_slice(&(self.next.len() as u32).to_be_bytes());
        for (id, next) in &self.next {
            body.extend_from_slice(id.topic_id.as_bytes());
            body.extend_from_slice(&id.partition.to_be_bytes());
            body.extend_from_slice(&next.next().get().to_be_bytes());
            if is_marked {
                let Mark { last, reset } = self.marks.get(id).copied().unwrap_or_default();
                let offset = |offset: Option<Offset>| offset.map_or(NONE, Offset::get).to_be_bytes();
                body.extend_from_slice(&offset(last.map(|last| last.offset)));
                body.extend_from_slice(&last.map_or(0, |last| last.fingerprint).to_be_bytes());
                body.extend_from_slice(&offset(reset));
            }
        }
        let slot = seal(&body);
        assert!(slot.len() <= SLOT_BYTES, "the bounds above keep a slot within its room");
        slot
    }
}

/// Puts checksum and length before the body.
pub(super) fn seal(body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    let crc = crc(&length, body).to_be_bytes();
    [&crc[..], &length[..], body].concat()
}

/// What was found in a slot.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Good(State),
    /// Nothing but zeros, or nothing at all: never written.
    Empty,
    /// Torn, cut or overwritten.
    Damaged,
    /// Whole, but of a version that is not known here.
    Version(u32),
}

/// Reads a slot from its room, which may be cut.
pub(super) fn parse(room: &[u8]) -> Found {
    if room.iter().all(|&byte| byte == 0) {
        return Found::Empty;
    }
    match checked_body(room) {
        None => Found::Damaged,
        Some(body) => match (Cursor(body)).state() {
            None => Found::Damaged,
            Some(found) => found,
        },
    }
}

fn checked_body(room: &[u8]) -> Option<&[u8]> {
    let (crc_bytes, rest) = room.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let body = rest.get(..u32::from_be_bytes(*length) as usize)?;
    (crc(length, body) == u32::from_be_bytes(*crc_bytes)).then_some(body)
}

fn crc(length: &[u8; 4], body: &[u8]) -> u32 {
    let mut digest = crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(length);
    digest.update(body);
    digest.finalize() as u32
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn state(mut self) -> Option<Found> {
        if self.array::<8>()? != MAGIC {
            return None;
        }
        let version = self.u32()?;
        if !matches!(version, PLAIN | MARKED) {
            return Some(Found::Version(version));
        }
        let (seq, claim_epoch) = (self.u64()?, self.u64()?);
        let (data_bytes, outcomes_bytes) = (self.u64()?, self.u64()?);
        let group_bytes = u16::from_be_bytes(*self.array()?);
        let group = std::str::from_utf8(self.take(group_bytes.into())?).ok()?.to_owned();
        let count = self.u32()?;
        let (mut next, mut marks) = (BTreeMap::new(), BTreeMap::new());
        for _ in 0..count {
            let topic_id = Uuid::from_bytes(*self.array()?);
            let partition = i32::from_be_bytes(*self.array()?);
            let committed = Committed::from_wire(i64::from_be_bytes(*self.array()?))?;
            let id = PartitionId { topic_id, partition };
            next.insert(id, committed);
            if version == MARKED {
                let (last, fingerprint, reset) = (self.maybe_offset()?, self.u32()?, self.maybe_offset()?);
                let last = last.map(|offset| LastEvent { offset, fingerprint });
                marks.insert(id, Mark { last, reset });
            }
        }
        let whole = self.0.is_empty() && next.len() == count as usize;
        let state = State { seq, group, claim_epoch, data_bytes, outcomes_bytes, next, marks };
        whole.then_some(Found::Good(state))
    }

    /// `None` in the outer one: what is there cannot be.
    fn maybe_offset(&mut self) -> Option<Option<Offset>> {
        match i64::from_be_bytes(*self.array()?) {
            NONE => Some(None),
            offset => Offset::new(offset).map(Some),
        }
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(|bytes| u32::from_be_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(|bytes| u64::from_be_bytes(*bytes))
    }
}
