use super::*;
use crate::testing::{at, event, id};

const NOW: fn() -> Duration = || Duration::ZERO;

fn work(partition: i32, offset: i64) -> Work {
    let ticket = Ticket { id: id(partition), ownership: 1, offset: at(offset) };
    Work::new(ticket, event(offset), Tries::default(), Order::Partition)
}

fn lanes(events: &[(i32, i64)]) -> Lanes {
    let mut lanes = Lanes::new(1, 1);
    events.iter().for_each(|(partition, offset)| lanes.push(work(*partition, *offset)));
    lanes
}

fn take(lanes: &mut Lanes, now_s: u64) -> Option<(i32, i64)> {
    let work = lanes.take(0, || Duration::from_secs(now_s))?;
    Some((work.ticket.id.partition, work.event.offset.get()))
}

#[test]
fn lanes_take_turns_and_each_has_one_event_in_hand() {
    let mut lanes = lanes(&[(0, 0), (0, 1), (1, 5)]);
    assert_eq!(take(&mut lanes, 0), Some((0, 0)));
    assert_eq!(take(&mut lanes, 0), Some((1, 5)));
    assert_eq!(take(&mut lanes, 0), None);
    lanes.push(work(0, 2));
    assert_eq!(take(&mut lanes, 0), None);
    lanes.finished(&work(0, 0));
    assert_eq!(take(&mut lanes, 0), Some((0, 1)));
    lanes.finished(&work(1, 5));
    lanes.finished(&work(0, 1));
    assert_eq!(take(&mut lanes, 0), Some((0, 2)));
    assert!(!lanes.is_empty(), "one is in hand");
    lanes.finished(&work(0, 2));
    assert!(lanes.is_empty());
    assert_eq!(lanes.size(), (0, 0));
}

#[test]
fn an_event_that_waits_holds_up_its_own_lane_only() {
    let mut lanes = lanes(&[(0, 0), (0, 1), (1, 5)]);
    let first = lanes.take(0, NOW).expect("there is one");
    lanes.again(first, Some(Duration::from_secs(9)));
    assert_eq!(lanes.next_due(), Some(Duration::from_secs(9)));
    assert_eq!(take(&mut lanes, 8), Some((1, 5)));
    assert_eq!(take(&mut lanes, 8), None);
    assert_eq!(take(&mut lanes, 9), Some((0, 0)));
    assert_eq!(lanes.next_due(), None);
    lanes.finished(&work(0, 0));
    assert_eq!(take(&mut lanes, 9), Some((0, 1)));
}

#[test]
fn a_partition_that_is_dropped_leaves_nothing() {
    let mut lanes = lanes(&[(0, 0), (0, 1), (1, 5), (2, 7), (2, 8)]);
    let first = lanes.take(0, NOW).expect("there is one");
    let second = lanes.take(0, NOW).expect("there is one");
    lanes.again(second, Some(Duration::from_secs(9)));
    [0, 1, 2].iter().for_each(|partition| lanes.drop_partition(id(*partition)));
    assert!(lanes.is_empty() && lanes.free.is_empty() && lanes.next_due().is_none());
    assert_eq!(lanes.size(), (0, 0));
    // What is still in hand comes back to nothing.
    lanes.finished(&first);
    lanes.again(first, Some(Duration::ZERO));
    assert!(lanes.is_empty());
}
