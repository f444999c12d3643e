//! What is known of a save whose `COMMIT` had no answer, by the rows that hold the offsets.

use std::collections::BTreeMap;

use crate::sink::Move;
use crate::source::PartitionId;

/// A row of `leftoff_offsets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stand {
    pub(super) next: Option<i64>,
    pub(super) epoch: i64,
}

/// What became of a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All of it is there.
    Committed,
    /// None of it is: it may be written.
    NotCommitted,
    /// Another runner was here since.
    Anothers(PartitionId),
}

/// Decides by rows that nobody else can change meanwhile: they are locked, so that a server which is still at work on the old
/// `COMMIT` has ended it.
pub(super) fn decide(
    moves: &[Move],
    stands: &BTreeMap<PartitionId, Stand>,
    epochs: &BTreeMap<PartitionId, i64>,
) -> Verdict {
    let mut verdict = None;
    for m in moves {
        let stand = stands.get(&m.id).filter(|stand| epochs.get(&m.id) == Some(&stand.epoch));
        let Some(stand) = stand else { return Verdict::Anothers(m.id) };
        let expected = m.expected.map(|expected| expected.next().get());
        let next = Some(m.next.next().get());
        let here = match stand.next {
            // It stays where it is, and tells nothing.
            found if expected == next && found == next => continue,
            found if found == expected => Verdict::NotCommitted,
            found if found == next => Verdict::Committed,
            _ => return Verdict::Anothers(m.id),
        };
        // One transaction moves all of them.
        if verdict.is_some_and(|verdict| verdict != here) {
            return Verdict::Anothers(m.id);
        }
        verdict = Some(here);
    }
    verdict.unwrap_or(Verdict::NotCommitted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use leftoff_wire::{Committed, Uuid};

    use super::*;
    use crate::sink::Mark;

    #[test]
    fn the_rows_tell_what_became_of_a_commit() {
        use Verdict::{Anothers, Committed as Done, NotCommitted};
        let id = |partition| PartitionId { topic_id: Uuid::from_bytes([7; 16]), partition };
        // Each partition: expected, next; what its row says: next, epoch. Ours is 3.
        type Case<'a> = (&'a [(Option<i64>, i64, Option<i64>, i64)], Verdict);
        let cases: &[Case<'_>] = &[
            (&[(Some(4), 6, Some(6), 3)], Done),
            (&[(Some(4), 6, Some(4), 3)], NotCommitted),
            (&[(None, 6, None, 3)], NotCommitted),
            (&[(None, 6, Some(6), 3)], Done),
            (&[(Some(4), 6, Some(6), 4)], Anothers(id(0))),
            (&[(Some(4), 6, Some(4), 4)], Anothers(id(0))),
            (&[(Some(4), 6, Some(9), 3)], Anothers(id(0))),
            (&[(Some(4), 6, None, 3)], Anothers(id(0))),
            (&[(Some(4), 6, Some(6), 3), (Some(1), 2, Some(2), 3)], Done),
            (&[(Some(4), 6, Some(6), 3), (Some(1), 2, Some(1), 3)], Anothers(id(1))),
            (&[(Some(4), 6, Some(4), 3), (Some(1), 2, Some(2), 3)], Anothers(id(1))),
            (&[(Some(4), 4, Some(4), 3), (Some(1), 2, Some(2), 3)], Done),
            (&[], NotCommitted),
        ];
        for (rows, expect) in cases {
            let committed = |next| Committed::from_wire(next).unwrap();
            let numbered = (0..).zip(*rows);
            let moves: Vec<Move> = numbered
                .clone()
                .map(|(number, (expected, next, _, _))| Move {
                    id: id(number),
                    expected: expected.map(committed),
                    next: committed(*next),
                    leader_epoch: -1,
                    skips: None,
                    mark: Mark::default(),
                })
                .collect();
            let stands =
                numbered.map(|(number, row)| (id(number), Stand { next: row.2, epoch: row.3 })).collect();
            let epochs = moves.iter().map(|m| (m.id, 3)).collect();
            assert_eq!(decide(&moves, &stands, &epochs), *expect, "{rows:?}");
        }
        assert_eq!(decide(&[], &BTreeMap::new(), &BTreeMap::new()), NotCommitted);
    }
}
