#![allow(clippy::unwrap_used)]

use leftoff_wire::Uuid;
use proptest::prelude::*;

use super::*;

const ID: PartitionId = PartitionId { topic_id: Uuid::ZERO, partition: 0 };

fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

/// One step of a script, and what may be saved behind it.
enum Step {
    Fetch(&'static [i64], i64),
    HandOut(usize),
    Handled(i64),
}
use Step::{Fetch, HandOut, Handled as Done};

fn check(start: i64, script: &[(Step, i64)]) {
    let mut ledger = Ledger::new();
    ledger.assign(ID, 1, Committed::from_wire(start).unwrap());
    for (number, (step, committed)) in script.iter().enumerate() {
        match step {
            Fetch(offsets, next) => {
                assert!(ledger.fetched(ID, 1, offsets.iter().map(|&o| at(o)), at(*next)).unwrap())
            }
            HandOut(count) => (0..*count).for_each(|_| assert!(ledger.hand_out(ID).is_some())),
            Done(offset) => {
                ledger.handled(Ticket { id: ID, ownership: 1, offset: at(*offset) });
            }
        }
        assert_eq!(ledger.committed(ID).unwrap().next(), at(*committed), "step {number}");
    }
}

#[test]
fn what_may_be_saved() {
    // In order.
    check(0, &[(Fetch(&[0, 1, 2], 3), 0), (HandOut(3), 0), (Done(0), 1), (Done(1), 2), (Done(2), 3)]);
    // A later one first: nothing is passed that is not handled.
    check(0, &[(Fetch(&[0, 1, 2], 3), 0), (HandOut(3), 0), (Done(2), 0), (Done(1), 0), (Done(0), 3)]);
    // Just one missing at the head.
    check(5, &[(Fetch(&[5, 6], 7), 5), (HandOut(2), 5), (Done(6), 5), (Done(5), 7)]);
    // Holes inside and behind: 7, 8 are markers, 10 to 14 too.
    check(5, &[(Fetch(&[5, 6, 9], 15), 5), (HandOut(3), 5), (Done(5), 6), (Done(6), 7), (Done(9), 15)]);
    // A batch of nothing but markers, with nothing outstanding, and with an event before it that is.
    check(5, &[(Fetch(&[], 9), 9), (Fetch(&[], 9), 9)]);
    check(5, &[(Fetch(&[5], 6), 5), (Fetch(&[], 9), 5), (HandOut(1), 5), (Done(5), 9)]);
    // Markers behind an event that is handled already.
    check(5, &[(Fetch(&[5], 6), 5), (HandOut(1), 5), (Done(5), 6), (Fetch(&[], 9), 9)]);
    // Fetched and handed out is not handled.
    check(0, &[(Fetch(&[0, 1], 2), 0), (HandOut(1), 0), (Fetch(&[2], 3), 0), (Done(0), 1), (HandOut(2), 1)]);
}

#[test]
fn late_results_are_dropped_and_counted() {
    let mut ledger = Ledger::new();
    ledger.assign(ID, 1, Committed::log_start(at(0)));
    assert!(ledger.fetched(ID, 1, [at(0), at(1)].into_iter(), at(2)).unwrap());
    let old = ledger.hand_out(ID).unwrap();
    ledger.end(ID, 1);
    assert_eq!(ledger.handled(old), Handled::Late);
    ledger.assign(ID, 2, Committed::log_start(at(0)));
    ledger.end(ID, 1); // The end of an old ownership does not end a new one.
    assert!(!ledger.fetched(ID, 1, [at(0)].into_iter(), at(1)).unwrap());
    assert_eq!(ledger.handled(old), Handled::Late);
    assert_eq!((ledger.late(), ledger.committed(ID)), (2, Some(Committed::log_start(at(0)))));
}

#[test]
fn a_source_that_goes_back_is_named() {
    let mut ledger = Ledger::new();
    ledger.assign(ID, 1, Committed::log_start(at(5)));
    for (offsets, next) in [(&[4][..], 5), (&[5, 5], 6), (&[6, 5], 7), (&[5, 6], 6), (&[], 4)] {
        let offsets: Vec<_> = offsets.iter().map(|&o| at(o)).collect();
        let error = ledger.fetched(ID, 1, offsets.into_iter(), at(next)).unwrap_err();
        assert!(matches!(error, LedgerError::Backwards { .. }));
        assert_eq!(ledger.position(ID), Some(at(5)));
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// Gaps before each event, and behind the last.
    Fetch(Vec<u8>, u8),
    HandOut,
    /// Finish one of those in flight.
    Finish(prop::sample::Index),
    /// Give it back, take it again where it stands saved.
    Reassign,
    /// A result of an earlier ownership.
    Late,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (prop::collection::vec(0u8..3, 0..6), 0u8..3).prop_map(|(gaps, tail)| Op::Fetch(gaps, tail)),
        6 => Just(Op::HandOut),
        6 => any::<prop::sample::Index>().prop_map(Op::Finish),
        1 => Just(Op::Reassign),
        1 => Just(Op::Late),
    ]
}

/// The model keeps every event that was ever delivered and asks all of them each time.
#[derive(Default)]
struct Model {
    delivered: Vec<(Offset, bool)>,
    position: i64,
    start: i64,
}

impl Model {
    /// Everything delivered below it is handled, and it is not needlessly low: the next thing is unhandled or unread.
    fn assert_holds(&self, committed: Offset) {
        let unhandled = self.delivered.iter().find(|(_, handled)| !handled).map(|(offset, _)| *offset);
        match unhandled {
            Some(first) => {
                assert!(committed <= first, "{committed} passes {first}");
                let before = self.delivered.iter().rev().find(|(offset, _)| *offset < first);
                assert!(committed >= before.map_or(at(self.start), |(offset, _)| offset.next()));
            }
            None => assert_eq!(committed, at(self.position)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn never_passes_an_unhandled_event_and_never_lags(ops in prop::collection::vec(op(), 0..120)) {
        let (mut ledger, mut model, mut in_flight, mut old) = (Ledger::new(), Model::default(), Vec::new(), Vec::new());
        let mut ownership = 1;
        ledger.assign(ID, ownership, Committed::log_start(at(0)));
        for op in ops {
            let late_before = ledger.late();
            match op {
                Op::Fetch(gaps, tail) => {
                    let mut offsets = Vec::new();
                    for gap in gaps {
                        let offset = model.position + i64::from(gap);
                        offsets.push(at(offset));
                        model.position = offset + 1;
                    }
                    model.position += i64::from(tail);
                    model.delivered.extend(offsets.iter().map(|&offset| (offset, false)));
                    prop_assert!(ledger.fetched(ID, ownership, offsets.into_iter(), at(model.position)).unwrap());
                }
                Op::HandOut => in_flight.extend(ledger.hand_out(ID)),
                Op::Finish(index) if !in_flight.is_empty() => {
                    let ticket: Ticket = in_flight.swap_remove(index.index(in_flight.len()));
                    let blocked = ledger.blocked_on(ID).unwrap();
                    let entry = model.delivered.iter_mut().find(|(offset, _)| *offset == ticket.offset).unwrap();
                    entry.1 = true;
                    match ledger.handled(ticket) {
                        Handled::Advanced(committed) => {
                            prop_assert!(ticket.offset < committed.next());
                            prop_assert_eq!(ticket.offset, blocked);
                        }
                        Handled::Waits { for_offset } => prop_assert_eq!(for_offset, blocked),
                        Handled::Late => prop_assert!(false),
                    }
                }
                Op::Finish(_) => {}
                Op::Reassign => {
                    let saved = ledger.committed(ID).unwrap();
                    ledger.end(ID, ownership);
                    prop_assert!(ledger.committed(ID).is_none());
                    old.append(&mut in_flight);
                    ownership += 1;
                    ledger.assign(ID, ownership, saved);
                    model = Model { position: saved.next().get(), start: saved.next().get(), ..Model::default() };
                }
                Op::Late => if let Some(ticket) = old.pop() {
                    prop_assert_eq!(ledger.handled(ticket), Handled::Late);
                    prop_assert_eq!(ledger.late(), late_before + 1);
                }
            }
            model.assert_holds(ledger.committed(ID).unwrap().next());
            prop_assert_eq!(ledger.position(ID), Some(at(model.position)));
        }
    }
}
