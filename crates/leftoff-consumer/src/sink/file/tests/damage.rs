//! What is found is told apart: missing, empty, damaged, good; and what is doubtful is left as it is.

use super::super::slot::{self, Found, Place, SLOT_BYTES, State};
use super::*;

/// A folder in which events 0 to 2 were written and saved, one save each.
fn used() -> TempDir {
    let folder = tempdir().unwrap();
    let (mut sink, _) = claimed(folder.path(), &[0]);
    for offset in 0..3 {
        let outcome = if offset == 1 { nothing() } else { records(&["{}"]) };
        sink.write(&[output(0, offset, outcome)], &[moved(0, (offset > 0).then_some(offset), offset + 1)])
            .unwrap();
    }
    folder
}

fn images(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// After `spoil`, a claim is refused with `words` and changes nothing.
#[track_caller]
fn refused(spoil: impl FnOnce(&Path), words: &[&str]) {
    let folder = used();
    spoil(folder.path());
    refused_as(folder.path(), "alerts", words);
}

#[track_caller]
fn refused_as(folder: &Path, group: &str, words: &[&str]) {
    let before = images(folder);
    let mut sink = FileSink::with_ops(folder.join("out"), group.to_owned(), Box::new(Unsynced));
    let SinkError::Refused(text) = sink.claim(&[claim_of(0)]).unwrap_err() else { panic!("not refused") };
    words.iter().for_each(|word| assert!(text.contains(word), "{word:?} is not in: {text}"));
    assert_eq!(images(folder), before, "nothing is changed");
}

fn write(name: &'static str, bytes: &'static [u8]) -> impl FnOnce(&Path) {
    move |folder| fs::write(folder.join(name), bytes).unwrap()
}

fn remove(name: &'static str) -> impl FnOnce(&Path) {
    move |folder| fs::remove_file(folder.join(name)).unwrap()
}

#[test]
fn four_states_are_told_apart() {
    refused(remove("out.leftoff"), &["out exists", "out.leftoff", "does not"]);
    refused(write("out.leftoff", b""), &["out.leftoff is damaged", "nothing was changed"]);
    refused(write("out.leftoff", b"rubbish"), &["damaged"]);
    refused(write("out.leftoff", &[0; 2 * SLOT_BYTES]), &["damaged"]);
    refused(write("out", b"{}\n"), &["out has 3 bytes", "cut or exchanged"]);
    refused(write("out.outcomes", b""), &["out.outcomes has 0 bytes"]);
    refused(remove("out"), &["out is missing"]);
    refused_as(used().path(), "others", &["belongs to group alerts, not to others", "-g alerts"]);
    // The sidecar is gone, and so are the lines, but not the outcomes.
    refused(
        |folder| {
            remove("out.leftoff")(folder);
            write("out", b"")(folder);
        },
        &["out.outcomes exists"],
    );
    // A slot of the future.
    let newer = [b"LEFTOFFS", &3u32.to_be_bytes()[..], b"whatever"].concat();
    refused(
        move |folder| fs::write(folder.join("out.leftoff"), slot::seal(&newer)).unwrap(),
        &["format version 3"],
    );
}

#[test]
fn nothing_and_empty_files_are_a_first_run() {
    for names in [&[][..], &["out"], &["out", "out.outcomes"], &["out.leftoff.new"]] {
        let folder = tempdir().unwrap();
        names.iter().for_each(|name| write(name, b"")(folder.path()));
        let (_sink, found) = claimed(folder.path(), &[0]);
        assert_eq!(found.next[&id(0)], None, "{names:?}");
    }
}

#[test]
fn a_path_that_cannot_be_cut_back_is_refused() {
    let folder = tempdir().unwrap();
    let of = |path: &Path| {
        let mut sink = FileSink::with_ops(path.to_owned(), "alerts".to_owned(), Box::new(Unsynced));
        sink.claim(&[claim_of(0)]).unwrap_err().to_string()
    };
    assert!(of(Path::new("/dev/null")).contains("no regular file"));
    assert!(of(folder.path()).contains("no regular file"), "{}", of(folder.path()));
    let missing = of(&folder.path().join("no/such/out"));
    assert!(missing.contains("no/such/out"), "{missing}");
}

#[test]
fn a_tail_that_was_not_saved_is_cut_and_said() {
    let folder = used();
    let (data, outcomes) = (read(folder.path(), "out"), read(folder.path(), "out.outcomes"));
    fs::write(folder.path().join("out"), format!("{data}{{\"torn")).unwrap();
    fs::write(folder.path().join("out.outcomes"), format!("{outcomes}torn")).unwrap();
    let (_sink, found) = claimed(folder.path(), &[0]);
    assert!(found.notices[0].contains("cut 6 bytes"), "{:?}", found.notices);
    assert_eq!((read(folder.path(), "out"), read(folder.path(), "out.outcomes")), (data, outcomes));
    assert_eq!(found.next[&id(0)], Some(next(3)));
}

/// Whatever happened to the sidecar: either it is refused, or it gives a state that was once saved, with the files cut to it.
#[track_caller]
fn once_saved_or_refused(folder: &Path, what: &str) {
    let mut sink = sink(folder);
    match sink.claim(&[claim_of(0)]) {
        Err(SinkError::Refused(_)) => {}
        Err(other) => panic!("{what}: {other}"),
        Ok(found) => {
            let at = found.next[&id(0)].map_or(0, |at| at.next().get());
            assert!((2..=3).contains(&at), "{what}: {at} is not one of the last two saves");
            assert_eq!(read(folder, "out").lines().count(), if at == 3 { 2 } else { 1 }, "{what}");
            assert_eq!(read(folder, "out.outcomes").lines().count(), 1, "{what}");
        }
    }
}

/// The sidecar, and how many bytes of each slot are used.
fn sidecar(folder: &Path) -> (Vec<u8>, usize) {
    let state = State { next: [(id(0), next(3))].into(), ..State::new("alerts") };
    (fs::read(folder.join("out.leftoff")).unwrap(), state.encode().len())
}

#[test]
fn the_sidecar_cut_at_every_byte() {
    let folder = used();
    let (bytes, slot_bytes) = sidecar(folder.path());
    let copies = images(folder.path());
    let cuts = (0..slot_bytes + 8).chain(SLOT_BYTES - 2..SLOT_BYTES + slot_bytes + 8);
    for cut in cuts {
        copies.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
        fs::write(folder.path().join("out.leftoff"), &bytes[..cut]).unwrap();
        once_saved_or_refused(folder.path(), &format!("cut at {cut}"));
    }
}

#[test]
fn every_byte_of_the_sidecar_flipped_or_zeroed() {
    let folder = used();
    let (bytes, slot_bytes) = sidecar(folder.path());
    let copies = images(folder.path());
    for position in (0..slot_bytes).chain(SLOT_BYTES..SLOT_BYTES + slot_bytes) {
        for (what, byte) in [("flipped", bytes[position] ^ 0x40), ("zeroed", 0)] {
            copies.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
            let mut spoiled = bytes.clone();
            spoiled[position] = byte;
            fs::write(folder.path().join("out.leftoff"), spoiled).unwrap();
            once_saved_or_refused(folder.path(), &format!("byte {position} {what}"));
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(500))]
    /// A slot with a right checksum and any body is read or refused, never a panic, and never reserves by a count.
    #[test]
    fn any_body_is_read_or_refused(body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..120)) {
        for version in [1u32, 2] {
            let whole = [b"LEFTOFFS", &version.to_be_bytes()[..], &body[..]].concat();
            let _ = slot::parse(&slot::seal(&whole));
        }
        let _ = slot::parse(&body);
    }
}

fn mark(partition: i32) -> Mark {
    let last = LastEvent { offset: at((1 << 50) - 1), fingerprint: u32::MAX - partition as u32 };
    Mark { last: (partition != 3).then_some(last), reset: (partition > 10).then(|| at(9)) }
}

/// Slots of version 1, byte by byte: what runs wrote before marks were kept.
#[test]
fn a_slot_without_marks_is_read_and_goes_on_with_them() {
    let body = [
        &b"LEFTOFFS\0\0\0\x01"[..],
        &7u64.to_be_bytes(),
        &3u64.to_be_bytes(),
        &40u64.to_be_bytes(),
        &5u64.to_be_bytes(),
        b"\0\x07billing",
        &1u32.to_be_bytes(),
        id(2).topic_id.as_bytes(),
        &2i32.to_be_bytes(),
        &812i64.to_be_bytes(),
    ]
    .concat();
    let Found::Good(state) = slot::parse(&slot::seal(&body)) else { panic!("it is a good slot") };
    assert_eq!((state.next[&id(2)], state.marks.len()), (next(812), 0));
    let claimed = state.claimed().encode();
    assert_eq!(claimed[8 + 8..8 + 12], 2u32.to_be_bytes(), "written as version 2");
    let Found::Good(state) = slot::parse(&claimed) else { panic!("it is a good slot") };
    assert_eq!(state.marks[&id(2)], Mark::default(), "nothing is made up");
}

/// More would not fit into the room, so they are left out, all of them, and the slot says so by its version.
#[test]
fn a_file_of_very_many_partitions_keeps_offsets_and_no_marks() {
    for (count, version) in [(slot::MAX_MARKED, 2u32), (slot::MAX_MARKED + 1, 1), (slot::MAX_PARTITIONS, 1)] {
        let partitions = || 0..i32::try_from(count).unwrap();
        let moves = partitions().map(|partition| Move { mark: mark(0), ..moved(partition, None, 9) });
        let state = State::new(&"g".repeat(slot::MAX_GROUP_BYTES)).after(&moves.collect::<Vec<_>>(), 0, 0);
        let encoded = state.encode();
        assert_eq!(encoded[16..20], version.to_be_bytes(), "{count}");
        let Found::Good(read) = slot::parse(&encoded) else { panic!("{count}: it is a good slot") };
        assert_eq!(read, state);
        assert_eq!(read.marks.len(), if version == 2 { count } else { 0 });
    }
}

#[test]
fn what_is_written_is_read() {
    let state = State {
        seq: 7,
        group: "größe".to_owned(),
        claim_epoch: 3,
        data_bytes: 1 << 40,
        outcomes_bytes: 5,
        next: (0..50).map(|partition| (id(partition), next(1 << 50))).collect(),
        marks: (0..50).map(|partition| (id(partition), mark(partition))).collect(),
    };
    assert_eq!(slot::parse(&state.encode()), Found::Good(state.clone()));
    let mut room = state.encode();
    room.resize(SLOT_BYTES, 0xaa); // What an earlier, longer slot left behind.
    assert_eq!(slot::parse(&room), Found::Good(state));
    assert_eq!(slot::parse(&[]), Found::Empty);
    assert_eq!(Place::A.other(), Place::B);
}
