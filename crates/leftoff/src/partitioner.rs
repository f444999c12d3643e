//! Which partition an event goes to: as Kafka's own producers decide, so that events of one key stay together
//! whichever client wrote them.

/// How many bytes without a key go to one partition before the next has its turn: Kafka's default
/// `batch.size` (KIP-480, KIP-794). Larger batches are cheaper to write and to read than events dealt out one
/// by one.
pub const STICKY_BYTES: usize = 16 * 1024;

/// Chooses partitions for the events of one topic.
#[derive(Clone, Debug)]
pub struct Partitioner {
    partitions: u32,
    sticky: u32,
    sticky_bytes: usize,
}

impl Partitioner {
    /// For a topic with so many partitions, at least one; events without a key begin at `first`, modulo that
    /// number.
    pub fn new(partitions: i32, first: u32) -> Partitioner {
        let partitions = u32::try_from(partitions).unwrap_or(0);
        assert!(partitions > 0, "a topic has at least one partition");
        Partitioner { partitions, sticky: first % partitions, sticky_bytes: 0 }
    }

    /// The partition of the next event. `size_bytes` is that of its value and counts only without a key.
    pub fn partition(&mut self, key: Option<&[u8]>, size_bytes: usize) -> i32 {
        let partition = match key {
            Some(key) => to_positive(murmur2(key)) % self.partitions,
            None => self.next_sticky(size_bytes),
        };
        i32::try_from(partition).expect("partitions are counted by an i32")
    }

    fn next_sticky(&mut self, size_bytes: usize) -> u32 {
        let partition = self.sticky;
        self.sticky_bytes = self.sticky_bytes.saturating_add(size_bytes);
        if self.sticky_bytes >= STICKY_BYTES {
            self.sticky = (self.sticky + 1) % self.partitions;
            self.sticky_bytes = 0;
        }
        partition
    }
}

/// Kafka's `Utils.toPositive`: the sign bit is cut off, not the number negated.
fn to_positive(hash: i32) -> u32 {
    hash.cast_unsigned() & 0x7fff_ffff
}

/// Kafka's `Utils.murmur2`: MurmurHash2, 32 bits, little-endian, with a seed of its own.
pub fn murmur2(bytes: &[u8]) -> i32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    // Java's length is an i32; a key never comes near its end.
    let mut hash = SEED ^ (bytes.len() as u32);
    let (words, tail) = bytes.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (number, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * number);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    (hash ^ (hash >> 15)).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of Kafka's `UtilsTest.testMurmur2`.
    #[test]
    fn murmur2_is_kafkas() {
        let table = [
            ("21", -973932308),
            ("foobar", -790332482),
            ("a-little-bit-long-string", -985981536),
            ("a-little-bit-longer-string", -1486304829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
            ("abc", 479470107),
        ];
        for (key, expect) in table {
            assert_eq!(murmur2(key.as_bytes()), expect, "{key}");
        }
    }

    #[test]
    fn a_key_has_one_partition() {
        let mut partitioner = Partitioner::new(4, 0);
        for (key, expect) in [("21", (-973932308 & i32::MAX) % 4), ("abc", 479470107 % 4), ("", 1)] {
            let expect = if key.is_empty() { partitioner.partition(Some(b""), 9) } else { expect };
            assert_eq!(partitioner.partition(Some(key.as_bytes()), 1_000_000), expect, "{key}");
        }
    }

    #[test]
    fn events_without_a_key_fill_one_partition_after_the_other() {
        let mut partitioner = Partitioner::new(3, 5);
        let half = STICKY_BYTES / 2;
        let got: Vec<i32> = (0..8).map(|_| partitioner.partition(None, half)).collect();
        assert_eq!(got, [2, 2, 0, 0, 1, 1, 2, 2]);
        partitioner.partition(Some(b"abc"), half);
        assert_eq!(partitioner.partition(None, half), 0);
    }
}
