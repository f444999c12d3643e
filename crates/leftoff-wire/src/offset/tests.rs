#![allow(clippy::unwrap_used)]

use super::*;

fn offset(number: i64) -> Offset {
    Offset::new(number).unwrap()
}

#[test]
fn an_offset_is_never_negative() {
    let cases = [(0, true), (1, true), (i64::MAX, true), (-1, false), (i64::MIN, false)];
    for (number, is_offset) in cases {
        assert_eq!(Offset::new(number).is_some(), is_offset, "{number}");
        assert_eq!(Committed::from_wire(number).is_some(), is_offset, "{number}");
    }
}

#[test]
fn steps_end_where_numbers_do() {
    assert_eq!(Offset::ZERO.next(), offset(1));
    assert_eq!(offset(5).plus(0), offset(5));
    assert_eq!(offset(5).plus(7), offset(12));
    assert_eq!(offset(i64::MAX - 1).checked_plus(1), Some(offset(i64::MAX)));
    assert_eq!(offset(i64::MAX).checked_plus(1), None);
    assert_eq!(Offset::ZERO.checked_plus(u64::MAX), None);
}

#[test]
#[should_panic(expected = "offsets end at 2^63 - 1")]
fn nothing_is_behind_the_last_offset() {
    offset(i64::MAX).next();
}

#[test]
fn distance_is_zero_when_the_start_is_behind() {
    let cases = [(10, 3, 7), (3, 3, 0), (3, 10, 0), (i64::MAX, 0, i64::MAX as u64)];
    for (end, start, expect) in cases {
        assert_eq!(offset(end).since(offset(start)), expect, "from {start} to {end}");
    }
}

#[test]
fn each_constructor_says_where_the_next_offset_comes_from() {
    let cases = [
        (Committed::after(offset(41)), 42),
        (Committed::end_of_batch(offset(42)), 42),
        (Committed::log_start(Offset::ZERO), 0),
        (Committed::resolved_reset(offset(7)), 7),
        (Committed::from_wire(9).unwrap(), 9),
    ];
    for (committed, next) in cases {
        assert_eq!(committed.next(), offset(next));
        assert_eq!(committed.to_string(), next.to_string());
        assert_eq!(committed.before(), Offset::new(next - 1));
    }
}

#[test]
fn order_is_that_of_the_numbers() {
    assert!(offset(2) < offset(10));
    assert!(Committed::after(offset(2)) > Committed::from_wire(2).unwrap());
    assert_eq!(
        format!("{:>4}|{:<4}|{:?}", offset(3), Committed::after(offset(3)), offset(3)),
        "   3|4   |Offset(3)"
    );
    assert_eq!(format!("{:?}", Committed::after(offset(3))), "Committed(next 4)");
}

/// One message counted its end in, the next one left it out.
#[test]
fn a_run_is_shown_from_the_first_to_the_last() {
    let at = |offset| Offset::new(offset).unwrap();
    for (from, to, shown) in [
        (3, 10, "offsets 3 to 9 (7)"),
        (3, 5, "offsets 3 to 4 (2)"),
        (8, 9, "offset 8"),
        (8, 8, "no offsets"),
        (9, 8, "no offsets"),
        (0, 1, "offset 0"),
    ] {
        assert_eq!(Run::new(at(from), at(to)).to_string(), shown);
    }
}
