//! The workloads.

/// Name and script, on a disk with nothing on it: making a directory is part of it.
pub const FROM_NOTHING: &[(&str, &str)] = &[("make", "topic t 1; append t/0 1")];

/// Name and script, on a new directory.
pub const SCRIPTS: &[(&str, &str)] = &[
    (
        "append",
        "topic t 2; append t/0 1; append t/0 2 & append t/1 1,2 & append t/0 1; ask; append t/1 3 t/0 1,1",
    ),
    (
        "roll",
        "topic t 1 segment.bytes=300; append t/0 2; append t/0 3; append t/0 1 & append t/0 2 & append t/0 3; rest; append t/0 4; append t/0 1",
    ),
    (
        "retention-bytes",
        "topic t 1 segment.bytes=250 retention.bytes=400; append t/0 1; append t/0 1; append t/0 1 & append t/0 1 & append t/0 1; append t/0 1; retention; append t/0 1; append t/0 2; retention; append t/0 1",
    ),
    (
        "retention-unread",
        "topic t 1 segment.bytes=250 retention.bytes=300 leftoff.retention.unread=keep; append t/0 1; append t/0 1; append t/0 1 & append t/0 1 & append t/0 1; append t/0 1; commit g t/0 1; retention; commit g t/0 +2 & retention; append t/0 2; commit g t/0 +2 & due & trim t/0 +1; retention; append t/0 1",
    ),
    (
        "retention-age",
        "topic t 2 segment.bytes=250 retention.ms=200000; append t/0 2; append t/0 2; append t/1 1; append t/0 2; retention; append t/0 1; append t/0 2; retention; restart; append t/0 1; retention",
    ),
    (
        "segment-age",
        "topic t 1 segment.ms=1500; append t/0 1; rest; rest; append t/0 1; append t/0 1; rest; rest; append t/0 2",
    ),
    (
        "trim",
        "topic t 2 segment.bytes=250; append t/0 2; append t/0 2; append t/0 2; append t/1 3; trim t/0 3; append t/0 1 & trim t/0 +2 & append t/0 2; trim t/1 3; append t/1 1; ! trim t/1 9; rest; trim t/0 +1; restart; append t/0 1",
    ),
    (
        "delete-topic",
        "topic t 2; append t/0 2; append t/1 1; topic u 1; append u/0 1; delete-topic t; append u/0 1; ! append t/0 1; ask",
    ),
    (
        "recreate",
        "topic t 1; append t/0 3; commit g t/0 2; delete-topic t; topic t 2; append t/0 1; append t/1 1; commit g t/0 1; restart; delete-topic t; topic t 1; append t/0 1",
    ),
    (
        "marks-entry-reused",
        "topic t 2; append t/0 1; rest; append t/0 1; rest; append t/0 1 ; append t/1 1; rest; delete-topic t; restart; topic u 2; restart; append u/0 1; append u/1 1; kill",
    ),
    (
        "commits",
        "topic t 2; append t/0 5; append t/1 3; commit g t/0 2 & commit h t/0 1 & commit g t/1 3; commit g t/0 4; commit g t/0 1; ! commit g t/0 9; delete-offsets g t/1; ask; delete-group h; commit h t/0 5",
    ),
    (
        "sets",
        "topic t 1; topic out 2; append t/0 6; set g t/0 2 -> out/0 2 out/1 1; set g t/0 +1 -> out/1 1 & set g t/0 +1 -> out/0 3 & append out/0 1 & set g t/0 +1 -> out/1 2 out/0 1; ask; set g t/0 +1 -> out/0 1",
    ),
    (
        "sets-and-old-marks",
        "topic t 1; topic out 2; append t/0 6; rest; set g t/0 +1 -> out/0 1 out/1 1; set g t/0 +1 -> out/0 1; append out/1 1; set g t/0 +1 -> out/1 1; commit h t/0 3; rest; set g t/0 +1 -> out/0 1 out/1 1; kill; set g t/0 +1 -> out/1 1",
    ),
    (
        "sets-roll",
        "config offsets.segment=900; topic t 1; topic out 2 segment.bytes=300; append t/0 9; set g t/0 +1 -> out/0 1 out/1 1; set g t/0 +1 -> out/0 2; set g t/0 +1 -> out/1 2 out/0 1 & set g t/0 +1 -> out/1 1 & set g t/0 +1 -> out/0 1; set g t/0 +1 -> out/0 1; kill; set g t/0 +1 -> out/1 1",
    ),
    (
        "source",
        "topic t 2; source f 120 -> t/0 2 t/1 1; source f 80 -> t/1 1 & source f 10 -> t/0 1 & source e 5 -> t/0 1; append t/0 1; source f 30 -> t/0 1; restart; source f 1 -> t/1 1",
    ),
    (
        "new-topic-in-one-round",
        "topic t 1; append t/0 3; append t/0 1 & topic out 1 & set g t/0 2 -> out/0 2 & append out/0 1; set g t/0 +1 -> out/0 1",
    ),
    (
        "carry",
        "config offsets.segment=500 offsets.retention=900; topic t 1; append t/0 9; commit g t/0 +1; join m; commit h t/0 3; commit g t/0 +1; commit g t/0 +1; commit g t/0 +1; commit g t/0 +1; retention; commit g t/0 +1; commit g t/0 +1; commit g t/0 +1; retention; source f 5 -> t/0 1; restart; commit g t/0 +1; leave m",
    ),
    (
        "carry-sets",
        "config offsets.segment=600 offsets.retention=700; topic t 1; topic out 1; append t/0 9; set g t/0 +1 -> out/0 1; set g t/0 +1 -> out/0 1; commit h t/0 2; commit h t/0 3; commit h t/0 4; set g t/0 +1 -> out/0 1; retention; commit h t/0 5; set g t/0 +1 -> out/0 1; retention",
    ),
    (
        "carry-lone-set",
        "config offsets.segment=600 offsets.retention=700; topic t 1; topic out 1; append t/0 9; rest; later; set g t/0 +1 -> out/0 1; commit h t/0 2; commit h t/0 3; commit h t/0 4; commit h t/0 5; commit h t/0 6; commit h t/0 7; due; append t/0 1",
    ),
    (
        "carry-tombstones",
        "config offsets.segment=500 offsets.retention=600; topic t 1; append t/0 9; commit g t/0 2; delete-offsets g t/0; join h; leave h; delete-group h; commit f t/0 1; commit f t/0 2; commit f t/0 3; commit f t/0 4; retention; ask; commit g t/0 3; join h; restart; commit f t/0 5",
    ),
    (
        "join-leave",
        "topic t 1; append t/0 3; join g; commit g t/0 1; join g; commit g t/0 2 & leave g & commit g t/0 3; restart; join g; kill; commit g t/0 2; leave g; ask",
    ),
    ("grow", "topic t 1; append t/0 1; grow t 3; append t/2 1; append t/1 1; kill; append t/2 1"),
    (
        "many-partitions",
        "topic t 4; append t/3 1 & append t/0 1 & append t/1 1 & append t/2 1; restart; append t/0 1",
    ),
    (
        "killed-often",
        "topic t 2 segment.bytes=300; append t/0 1; append t/1 2 & append t/0 2 & kill; append t/0 1 & append t/0 1 & append t/1 1 & kill; commit g t/0 1 & commit g t/0 2 & kill; append t/1 1; append t/0 1",
    ),
    (
        "made-while-marks-are-synced",
        "topic t 1; append t/0 1; append t/0 1; rest & topic u 1; append u/0 1; rest & append t/0 1 & topic v 1 & append t/0 1; rest; append v/0 1",
    ),
    (
        "set-into-a-topic-that-goes",
        "topic t 1; topic out 1; append t/0 3; append t/0 1 & set g t/0 +1 -> out/0 1 & delete-topic out; set g t/0 +1 -> t/0 1; restart",
    ),
    (
        "marks-sync-fails-beside-another",
        "topic t 1; append t/0 1; append t/0 1 & rest & append t/0 1 | topic v 1; append t/0 1",
    ),
    (
        "asked-before-the-sync",
        "topic t 1 & ask & append t/0 3; commit g t/0 1 & ask & commit g t/0 2 & ask; delete-topic t & ask",
    ),
    (
        "snapshot",
        "config snapshot.every=5 snapshot.at-stop=4 offsets.segment=900 offsets.retention=1500; topic t 1; append t/0 40; commit g t/0 +1; commit g t/0 +1; commit g t/0 +1; commit g t/0 +1; commit g t/0 +1 & commit g t/0 +1; commit g t/0 +1; restart; commit g t/0 +1; commit g t/0 +1; retention; commit g t/0 +1 & commit g t/0 +1 & kill; commit g t/0 +1; delete-topic t; topic t 1; append t/0 2; commit g t/0 +1",
    ),
    (
        "epochs",
        "topic t 1; append t/0 1 & append t/0 1 & append t/0 1; kill; append t/0 2; rest; append t/0 1; restart; append t/0 1",
    ),
    // A refused append is cut back; the process ends before the cut is synced.
    (
        "refused-and-ended",
        "topic t 2; topic out 2; append t/0 5; ? append t/1 1& ? append t/0 1 out/0 1,1 t/1 1&",
    ),
    (
        "refused-behind-a-roll-and-ended",
        "topic t 2 segment.bytes=400; topic out 2; append t/0 5; append t/0 1; ? commit g t/0 +1& ? append t/0 1 out/0 1,1 t/1 1&",
    ),
];
