#![allow(clippy::unwrap_used)]

use super::{Fields, MAX_RUNS, Record, Sorted, Sorter};

impl Record for u64 {
    const BYTES: usize = 8;
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn get(fields: &mut Fields<'_>) -> u64 {
        fields.u64()
    }
}

/// `count` numbers in an order that looks random, each of some of them twice.
fn numbers(count: u64) -> Vec<u64> {
    (0..count).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (count * 3 / 4 + 1)).collect()
}

fn check(numbers: &[u64], limit_bytes: usize) {
    let mut sorter = Sorter::new(limit_bytes, None);
    for number in numbers {
        sorter.push(*number).unwrap();
    }
    let sorted = sorter.finish().unwrap();
    if let Sorted::InFile { spill, .. } = &sorted {
        assert!(spill.runs.len() <= MAX_RUNS, "what a reader holds is bounded");
    }
    let mut expect = numbers.to_vec();
    expect.sort_unstable();
    for _pass in 0..2 {
        let mut cursor = sorted.cursor().unwrap();
        let mut read = Vec::new();
        while let Some(peeked) = cursor.peek().copied() {
            assert_eq!(cursor.next().unwrap(), Some(peeked));
            read.push(peeked);
        }
        assert_eq!(read, expect);
        assert_eq!(cursor.next().unwrap(), None);
    }
    assert_eq!(sorted.is_empty(), numbers.is_empty());
}

#[test]
fn sorts_in_memory_and_in_files() {
    for count in [0, 1, 2, 7, 8, 9, 100, 5_000] {
        for limit_bytes in [1, 8, 64, 1 << 20] {
            check(&numbers(count.min(limit_bytes as u64 * 600)), limit_bytes);
        }
    }
}

#[test]
fn merges_its_runs_when_there_are_too_many() {
    check(&numbers(MAX_RUNS as u64 * 3 + 5), 1);
}
