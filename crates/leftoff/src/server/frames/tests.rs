#![allow(clippy::unwrap_used)]

use tokio::io::AsyncWriteExt;

use super::*;

const LIMITS: FrameLimits =
    FrameLimits { max_bytes: 1024 * 1024, patience: Duration::from_secs(5), idle: Duration::from_secs(60) };

/// What comes of these bytes, sent in pieces of this size, and then the end: each frame's length, and how it ended.
fn check(sent: &[u8], piece: usize, budget_bytes: usize, expect: &[&str]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let told: Vec<String> = runtime.unwrap().block_on(async {
        let (mut client, server) = tokio::io::duplex(piece.max(1));
        let mut frames = Frames::new(server, Budget::new(budget_bytes), LIMITS);
        let reading = async {
            let mut told = Vec::new();
            loop {
                match frames.next().await {
                    Ok(Some(frame)) => told.push(format!("frame of {}", frame.bytes.len())),
                    Ok(None) => break told.push("end".to_owned()),
                    Err(error) => break told.push(error.to_string()),
                }
            }
            told
        };
        let sending = async {
            // The other end may have had enough.
            let _ = client.write_all(sent).await;
            let _ = client.shutdown().await;
        };
        tokio::join!(reading, sending).0
    });
    assert_eq!(told, expect);
}

fn framed(lengths: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for length in lengths {
        bytes.extend_from_slice(&i32::try_from(*length).unwrap().to_be_bytes());
        bytes.resize(bytes.len() + length, 7);
    }
    bytes
}

#[test]
fn frames_come_whole_however_they_are_cut() {
    for piece in [1, 3, 4, 5, 64, 100_000] {
        check(&framed(&[1, 20, 3]), piece, 1 << 20, &["frame of 1", "frame of 20", "frame of 3", "end"]);
        check(&framed(&[70_000, 1]), piece, 1 << 20, &["frame of 70000", "frame of 1", "end"]);
    }
    check(&[], 1, 1 << 20, &["end"]);
}

#[test]
fn what_is_no_request_ends_the_connection_with_its_reason() {
    let too_large = "a request of 2147483647 bytes; socket.request.max.bytes is 1048576";
    check(&[0x7f, 0xff, 0xff, 0xff, 1], 9, 1 << 20, &[too_large]);
    let negative = "a request of -1 bytes; socket.request.max.bytes is 1048576";
    check(&[0xff; 8], 9, 1 << 20, &[negative]);
    check(&[0; 8], 9, 1 << 20, &["a request of 0 bytes; socket.request.max.bytes is 1048576"]);
    check(b"GET / HTTP/1.1\r\n", 9, 1 << 20, &["not Kafka's protocol: it begins with an HTTP request"]);
    check(&[0x16, 3, 1, 2, 0, 1], 9, 1 << 20, &["not Kafka's protocol: it begins with a TLS handshake"]);
    check(&framed(&[5])[..7], 9, 1 << 20, &["the connection ended within a request: 7 of 9 bytes came"]);
    check(&[0, 0], 9, 1 << 20, &["the connection ended within a request: 2 of 4 bytes came"]);
}

#[test]
fn a_request_that_finds_no_room_is_not_waited_for_without_end() {
    let no_room = "no room for a request of 100004 bytes: requests of other connections take all of \
                   queued.max.request.bytes";
    check(&framed(&[100_000]), 200_000, 32 * 1024, &[no_room]);
}

/// A slow sender holds what it has sent, and not for ever.
#[test]
fn a_request_that_stops_in_its_midst_ends_the_connection() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let (mut client, server) = tokio::io::duplex(100);
        let mut frames = Frames::new(server, Budget::new(1 << 20), LIMITS);
        client.write_all(&[0, 15, 0, 0, 1]).await.unwrap();
        let stalled = frames.next().await.unwrap_err().to_string();
        assert_eq!(stalled, "a request stopped in its midst: 5 of 983044 bytes came, and none for 5s");
        assert!(frames.buffer.capacity() <= 2 * STEP_BYTES, "{}", frames.buffer.capacity());
        drop(client);
    });
}
