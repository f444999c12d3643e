//! Damage below the mark: kept, reported, never renumbered.

use super::*;

const ONE_SEGMENT: LogConfig = LogConfig { segment_bytes: 1 << 20, index_interval_bytes: 200 };

#[test]
fn a_flipped_bit_takes_one_batch() {
    // OF-122: ten batches, a bit flipped in the fourth.
    let disk = mem();
    let log = filled(&disk, ONE_SEGMENT, 10);
    let size = log.bytes().unwrap() as usize / 10;
    let mut bytes = content(&disk, &segment_path(0, "log"));
    bytes[3 * size + size / 2] ^= 1;
    replace(&disk, &segment_path(0, "log"), &bytes);
    let log = reopen(&disk, ONE_SEGMENT, log.high_mark());
    let expect = [pairs(0..6), vec!["damaged 6..8".into()], pairs(8..20)].concat();
    assert_eq!(read(&log, 0), expect);
    assert_eq!(log.tail_bytes(), 0);
}

/// Offsets that reading says something about, each batch as it was.
fn covered(log: &Log, original: &[u8], size: usize) -> Vec<String> {
    log.read_batches(Offset::ZERO)
        .map(|read| match read.unwrap() {
            ReadBatch::Batch { header, bytes } => {
                let number = header.base_offset.get() as usize / 2;
                let mut expect = original[number * size..][..size].to_vec();
                // Neither the leader epoch is in the checksum.
                expect[12..16].copy_from_slice(&bytes[12..16]);
                assert_eq!(bytes, expect);
                format!("{}..{}", header.base_offset, header.next_offset())
            }
            ReadBatch::Damaged(damaged) => format!("{}..{}", damaged.from, damaged.to),
            ReadBatch::Gap { from, to } => panic!("gap {from}..{to}"),
        })
        .collect()
}

#[test]
fn wherever_a_bit_flips_what_is_read_and_what_is_reported_is_everything() {
    let disk = mem();
    let log = filled(&disk, ONE_SEGMENT, 4);
    let (mark, path) = (log.high_mark(), segment_path(0, "log"));
    let original = content(&disk, &path);
    let size = original.len() / 4;
    for bit in 0..original.len() * 8 {
        let mut bytes = original.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        replace(&disk, &path, &bytes);
        let log = Log::open(&disk, &dir(), ID, ONE_SEGMENT, mark, Offset::ZERO, Access::Reader).unwrap();
        assert_eq!(covered(&log, &original, size), pairs(0..8), "bit {bit}");
        // A fetch finds every batch but the harmed one.
        let harmed = (bit / 8 / size) as i64;
        for offset in (0..8).filter(|offset| offset / 2 != harmed) {
            let range = log.fetch(at(offset), 1).unwrap().ranges.remove(0);
            assert_eq!(range.position_bytes, (offset / 2) as u64 * size as u64, "bit {bit} offset {offset}");
        }
    }
}

#[test]
fn overwritten_stretches_hide_only_what_they_cover() {
    let disk = mem();
    let log = filled(&disk, ONE_SEGMENT, 10);
    let (mark, path) = (log.high_mark(), segment_path(0, "log"));
    let original = content(&disk, &path);
    let size = original.len() / 10;
    for from in (0..original.len()).step_by(7) {
        let to = (from + 2 * size + 3).min(original.len());
        let mut bytes = original.clone();
        bytes[from..to].fill(0x55);
        replace(&disk, &path, &bytes);
        let log = reopen(&disk, ONE_SEGMENT, mark);
        let (first, last) = ((from / size) as i64, (to - 1) as i64 / size as i64);
        let damaged = format!("damaged {}..{}", 2 * first, 2 * last + 2);
        let expect = [pairs(0..2 * first), vec![damaged], pairs(2 * last + 2..20)].concat();
        assert_eq!(read(&log, 0), expect, "{from}");
    }
}

/// What `doctor` says.
fn findings(log: &Log) -> Vec<String> {
    let mut findings = Vec::new();
    log.verify(&mut |found| findings.push(found)).unwrap();
    findings.iter().map(|found| format!("{:?} {}..{}", found.kind, found.from, found.to)).collect()
}

#[test]
fn a_marked_segment_that_is_too_short_or_gone_is_told() {
    let disk = mem();
    let log = filled(&disk, ONE_SEGMENT, 3);
    let (mark, path) = (log.high_mark(), segment_path(0, "log"));
    let original = content(&disk, &path);
    let size = original.len() / 3;
    let cases = [
        (2 * size, vec!["0..2", "2..4", "damaged 4..6"], vec!["Short 4..6"]),
        (2 * size + 1, vec!["0..2", "2..4", "damaged 4..6"], vec!["Damage 4..6"]),
        (0, vec!["damaged 0..6"], vec!["Short 0..6"]),
    ];
    for (left, reads, finds) in cases {
        replace(&disk, &path, &original[..left]);
        let mut log = reopen(&disk, ONE_SEGMENT, mark);
        let damage = log.mark_damage().unwrap();
        assert_eq!((damage.marked_bytes, damage.found_bytes), (mark.position_bytes, Some(left as u64)));
        assert_eq!(read(&log, 0), reads);
        assert_eq!(findings(&log), finds);
        assert!(matches!(log.append(batch(&[1]), EPOCH), Err(LogError::MarkDamaged { .. })));
        assert!(matches!(log.settle_tail(at(6)), Err(LogError::MarkDamaged { .. })));
    }
    disk.remove_file(&path).unwrap();
    let log = reopen(&disk, ONE_SEGMENT, mark);
    assert_eq!(log.mark_damage().unwrap().found_bytes, None);
    assert_eq!(read(&log, 1), ["damaged 1..6"]);
    assert_eq!(findings(&log), ["Short 0..6"]);
}

#[test]
fn a_segment_that_is_gone_leaves_a_gap_and_not_silence() {
    let disk = mem();
    let log = filled(&disk, LogConfig { segment_bytes: 1, ..SMALL }, 5);
    disk.remove_file(&segment_path(4, "log")).unwrap();
    let log = reopen(&disk, SMALL, log.high_mark());
    assert_eq!(read(&log, 0), ["0..2", "2..4", "gap 4..6", "6..8", "8..10"]);
    assert_eq!(findings(&log), ["Hole 4..6"]);
    disk.remove_file(&segment_path(0, "log")).unwrap();
    let log = reopen(&disk, SMALL, log.high_mark());
    assert_eq!(read(&log, 1), ["damaged 1..2", "2..4", "gap 4..6", "6..8", "8..10"]);
    assert_eq!(findings(&log), ["Hole 0..2", "Hole 4..6"]);
}

#[test]
fn repair_puts_the_bytes_aside_and_leaves_a_gap() {
    let disk = mem();
    disk.create_dir(Path::new("aside")).unwrap();
    let log = filled(&disk, ONE_SEGMENT, 10);
    let path = segment_path(0, "log");
    let mut bytes = content(&disk, &path);
    let size = bytes.len() / 10;
    for harmed in [3, 7, 8] {
        bytes[harmed * size + 70] ^= 1;
    }
    replace(&disk, &path, &bytes);
    let mut log = reopen(&disk, ONE_SEGMENT, log.high_mark());
    let mut found = Vec::new();
    log.verify(&mut |finding| found.push(finding)).unwrap();
    assert_eq!(findings(&log), ["Damage 6..8", "Damage 14..18"]);
    let refused = log.set_aside(&found[0], Path::new("aside"));
    assert!(matches!(refused, Err(LogError::NotClosed { .. })));
    log.roll().unwrap();
    let mark = sync(&disk, &mut log);
    // An earlier repair left a file of that name; it stays.
    let taken = Path::new("aside").join(format!("t-0.{:020}.{}.bytes", 0, found[0].position_bytes));
    replace(&disk, &taken, b"kept");
    for finding in found.iter().rev() {
        let aside = log.set_aside(finding, Path::new("aside")).unwrap().unwrap();
        assert_eq!(
            content(&disk, &aside),
            bytes[finding.position_bytes as usize..][..finding.len_bytes as usize]
        );
    }
    for mut log in [log, reopen(&disk, ONE_SEGMENT, mark)] {
        let expect =
            [pairs(0..6), vec!["gap 6..8".into()], pairs(8..14), vec!["gap 14..18".into()], pairs(18..20)];
        assert_eq!(read(&log, 0), expect.concat());
        assert_eq!(findings(&log), ["Hole 6..8", "Hole 14..18"]);
        assert_eq!(fetched(&log, 15, 1).0[0].base_offset, at(18));
        assert_eq!(log.offset_for_time(6).unwrap(), Some((at(8), 8)));
        let savepoint = log.savepoint();
        assert_eq!(log.append(batch(&[1, 2]), EPOCH).unwrap().base, at(20));
        log.undo_to(savepoint).unwrap();
    }
}

#[test]
fn repair_makes_wrong_indexes_anew() {
    let disk = mem();
    let log = filled(&disk, LogConfig { segment_bytes: 1000, ..SMALL }, 20);
    let paths = [segment_path(0, "index"), segment_path(0, "timeindex")];
    let original = paths.each_ref().map(|path| content(&disk, path));
    for path in &paths {
        let zeros = vec![0; content(&disk, path).len()];
        replace(&disk, path, &zeros);
    }
    let mut log = reopen(&disk, SMALL, log.high_mark());
    assert_eq!(
        findings(&log),
        ["OffsetIndex 0..16", "TimeIndex 0..16"]
            .map(|text| { text.replace("16", &log.segments().unwrap()[0].next.to_string()) })
    );
    let mut found = Vec::new();
    log.verify(&mut |finding| found.push(finding)).unwrap();
    assert_eq!(log.set_aside(&found[0], Path::new("aside")).unwrap(), None);
    assert!(findings(&log).is_empty());
    assert_eq!(paths.map(|path| content(&disk, &path)), original);
}
