use super::{Dump, DumpedRecord};

const BATCH: &str = "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 \
                     partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty \
                     position: 0 CreateTime: 7 size: 173 magic: 2 compresscodec: none crc: 2582057806 isvalid: ";

/// What the tool says, and how many complaints that makes.
fn check(printed: &str, complaints: usize) -> Dump {
    let dump = Dump::parse(printed);
    assert_eq!(dump.complaints.len(), complaints, "{dump:#?}");
    dump
}

fn record(key: Option<&str>, value: Option<&str>, headers: &[&str]) -> DumpedRecord {
    DumpedRecord {
        offset: 0,
        timestamp_ms: 7,
        key: key.map(str::to_owned),
        value: value.map(str::to_owned),
        header_keys: headers.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[test]
fn records_are_read() {
    let lines: &[(&str, DumpedRecord)] = &[
        (
            "keySize: 2 valueSize: 5 sequence: -1 headerKeys: [a,b] key: k1 payload: v: 1",
            record(Some("k1"), Some("v: 1"), &["a", "b"]),
        ),
        ("keySize: -1 valueSize: 2 sequence: -1 headerKeys: [] payload: v1", record(None, Some("v1"), &[])),
        ("keySize: 2 valueSize: -1 sequence: -1 headerKeys: [] key: k1", record(Some("k1"), None, &[])),
        (
            "keySize: 0 valueSize: 0 sequence: -1 headerKeys: [] key:  payload: ",
            record(Some(""), Some(""), &[]),
        ),
    ];
    for (line, expected) in lines {
        let printed =
            format!("Dumping a.log\nLog starting offset: 0\n{BATCH}true\n| offset: 0 CreateTime: 7 {line}\n");
        let dump = check(&printed, 0);
        assert_eq!((dump.files[0].batches, &dump.files[0].records[..]), (1, std::slice::from_ref(expected)));
    }
}

#[test]
fn what_a_sound_file_does_not_lead_to_is_a_complaint() {
    for (printed, complaints) in [
        (format!("Dumping a.log\n{BATCH}false\n"), 1),
        ("Dumping a.log\nFound 170 invalid bytes at the end of a.log\n".to_owned(), 1),
        ("Dumping a.index\nMismatches in :a.index\n  Index offset: 1, log offset: 2\n".to_owned(), 2),
        ("Dumping a.log\n| offset: x CreateTime: 7\n".to_owned(), 1),
        ("Dumping a/0000750.log\nNon-consecutive offsets in a/0000750.log\n  -1 is followed by 751\n".to_owned(), 1),
        ("Dumping a/0000750.log\nNon-consecutive offsets in a/0000750.log\n  -1 is followed by 750\n  752 is followed by 754\n".to_owned(), 1),
        ("[main] WARN something\n".to_owned(), 1),
        ("Dumping a.index\nb.index is empty.\n".to_owned(), 1),
        (
            "Dumping a.index\na.index is empty.\nDumping b.timeindex\nb.timeindex passed sanity check.\n"
                .to_owned(),
            0,
        ),
    ] {
        let dump = check(&printed, complaints);
        assert_eq!(
            dump.files.iter().filter(|file| file.is_empty || file.is_sane).count(),
            if complaints == 0 { 2 } else { 0 }
        );
    }
}
