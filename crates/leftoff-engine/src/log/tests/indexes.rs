//! Indexes are hints: whatever happens to them between a stop and a start, the same is read.

use super::*;

type Harm = fn(Vec<u8>) -> Option<Vec<u8>>;

const HARMS: [(&str, Harm); 8] = [
    ("deleted", |_| None),
    ("empty", |_| Some(Vec::new())),
    ("zeros", |bytes| Some(vec![0; bytes.len()])),
    ("ones", |bytes| Some(vec![0xff; bytes.len()])),
    ("cut", |bytes| Some(bytes[..bytes.len() / 2].to_vec())),
    ("cut by one", |bytes| Some(bytes[..bytes.len().saturating_sub(1)].to_vec())),
    ("longer by zeros", |bytes| Some([bytes, vec![0; 100]].concat())),
    ("turned round", |bytes| Some(bytes.into_iter().rev().collect())),
];

const CONFIG: LogConfig = LogConfig { segment_bytes: 3000, index_interval_bytes: 100 };

/// Everything that can be asked.
fn picture(log: &Log) -> Vec<String> {
    let mut picture = read(log, 0);
    let end = log.high_watermark().get();
    picture.extend((0..end).map(|offset| format!("{:?}", fetched(log, offset, 400).0)));
    picture.extend((0..end + 2).map(|time| format!("{time}: {:?}", log.offset_for_time(time).unwrap())));
    picture.push(format!("{:?}", log.max_timestamp().unwrap()));
    picture
}

#[test]
fn harmed_indexes_change_nothing() {
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut log = filled(&shared, CONFIG, 60);
    let mark = log.high_mark();
    log.close().unwrap();
    let expect = picture(&log);
    let bases: Vec<_> = log.segments().unwrap().iter().map(|segment| segment.base.get()).collect();
    assert!(bases.len() > 2);
    for (name, harm) in HARMS {
        for kind in [segment::INDEX, segment::TIME_INDEX] {
            for base in &bases {
                for access in [Access::Reader, Access::Writer] {
                    let disk: Arc<dyn Disk> = Arc::new(disk.image());
                    let path = segment_path(*base, kind);
                    match harm(content(&disk, &path)) {
                        Some(bytes) => replace(&disk, &path, &bytes),
                        None => disk.remove_file(&path).unwrap(),
                    }
                    let mut log = Log::open(&disk, &dir(), ID, CONFIG, mark, Offset::ZERO, access).unwrap();
                    assert!(picture(&log) == expect, "{name} {kind} {base} {access:?}");
                    if access == Access::Writer {
                        log.append(batch(&[120, 121]), EPOCH).unwrap();
                        sync(&disk, &mut log);
                        assert_eq!(read(&log, 0), pairs(0..122));
                        assert_eq!(log.offset_for_time(120).unwrap(), Some((at(120), 120)));
                    }
                }
            }
        }
    }
}

#[test]
fn a_reader_writes_nothing() {
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let log = filled(&shared, CONFIG, 60);
    shared.remove_file(&segment_path(0, segment::INDEX)).unwrap();
    let operations = disk.operations();
    let reader = Log::open(&shared, &dir(), ID, CONFIG, log.high_mark(), Offset::ZERO, Access::Reader);
    picture(&reader.unwrap());
    assert_eq!(disk.operations(), operations);
}

#[test]
fn entries_are_those_that_kafka_would_make() {
    let disk = mem();
    let mut log = filled(&disk, LogConfig { segment_bytes: 1 << 20, index_interval_bytes: 150 }, 7);
    log.close().unwrap();
    let size = batch(&[1, 2]).size_bytes() as u32;
    assert!(size < 150 && 2 * size > 150);
    // The first batch with more than 150 bytes before it is the third one, then each second one.
    let entry = |batch: u32| [(2 * batch + 1).to_be_bytes(), (batch * size).to_be_bytes()].concat();
    assert_eq!(content(&disk, &segment_path(0, "index")), [entry(2), entry(4), entry(6)].concat());
    let time = |offset: u32| [&i64::from(offset).to_be_bytes()[..], &offset.to_be_bytes()[..]].concat();
    assert_eq!(content(&disk, &segment_path(0, "timeindex")), [time(5), time(9), time(13)].concat());
}

#[test]
fn entries_go_to_their_file_before_too_many_wait() {
    let disk = mem();
    let log = filled(&disk, LogConfig { segment_bytes: 1 << 20, index_interval_bytes: 1 }, 600);
    assert!(content(&disk, &segment_path(0, "index")).len() >= 500 * 8);
    assert!(log.verify(&mut |finding| panic!("{finding:?}")).is_ok());
    assert_eq!(fetched(&log, 1001, 1).0[0].base_offset, at(1000));
}
