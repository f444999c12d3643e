use super::*;
use crate::testing::{at, event, id};

const NOW: fn() -> Duration = || Duration::ZERO;

fn work(partition: i32, offset: i64) -> Work {
    let ticket = Ticket { id: id(partition), ownership: 1, offset: at(offset) };
    Work::new(ticket, event(offset), Tries::default(), Order::Partition)
}

fn lanes(events: &[(i32, i64)]) -> Lanes {
    let mut lanes = Lanes::new(2);
    events.iter().for_each(|(partition, offset)| lanes.push(work(*partition, *offset)));
    lanes
}

fn take(lanes: &mut Lanes, now_s: u64) -> Option<(i32, i64)> {
    let work = lanes.take(0, || Duration::from_secs(now_s))?;
    Some((work.ticket.id.partition, work.event.offset.get()))
}

fn take_by(worker: usize, lanes: &mut Lanes) -> Option<(i32, i64)> {
    let work = lanes.take(worker, NOW)?;
    Some((work.ticket.id.partition, work.event.offset.get()))
}

#[test]
fn lanes_take_turns_and_each_has_one_event_in_hand() {
    let mut lanes = lanes(&[(0, 0), (0, 1), (1, 5)]);
    assert_eq!(take(&mut lanes, 0), Some((0, 0)));
    assert_eq!(take_by(1, &mut lanes), Some((1, 5)));
    assert_eq!(take_by(1, &mut lanes), None, "the other lane is the first worker's");
    lanes.push(work(0, 2));
    assert_eq!(take_by(1, &mut lanes), None);
    lanes.finished(&work(0, 0));
    assert_eq!(take_by(1, &mut lanes), Some((0, 1)), "now it is anybody's");
    assert_eq!(take(&mut lanes, 0), None);
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
    let again = lanes.take(0, || Duration::from_secs(9)).expect("its time has come");
    assert_eq!(again.event.offset, at(0));
    assert_eq!(lanes.next_due(), None);
    lanes.finished(&again);
    assert_eq!(take(&mut lanes, 9), Some((0, 1)));
}

#[test]
fn after_a_failure_a_lane_waits_for_what_is_in_hand() {
    let mut lanes = lanes(&[(0, 0), (0, 1), (0, 2), (0, 3)]);
    let [first, second, third] = [0, 1, 2].map(|_| lanes.take(0, NOW).expect("a worker may have several"));
    lanes.again(first, Some(Duration::ZERO));
    assert_eq!(take(&mut lanes, 0), None, "offset 3 would come before offset 1");
    assert!(!lanes.is_current(&second));
    lanes.again(third, None);
    assert_eq!(take(&mut lanes, 0), None);
    lanes.again(second, None);
    assert_eq!(
        [0; 5].map(|_| take(&mut lanes, 0)),
        [Some((0, 0)), Some((0, 1)), Some((0, 2)), Some((0, 3)), None]
    );
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
