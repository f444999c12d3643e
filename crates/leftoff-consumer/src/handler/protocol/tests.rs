#![allow(clippy::unwrap_used)]

use super::*;
use crate::source::Event;
use crate::testing::{event, id};

fn text(line: Vec<u8>) -> String {
    String::from_utf8(line).unwrap()
}

#[test]
fn the_lines_to_a_child() {
    assert_eq!(
        text(hello("quakes", "al\"erts")),
        "{\"leftoff\":1,\"topic\":\"quakes\",\"group\":\"al\\\"erts\"}\n"
    );
    assert_eq!(text(stop()), "{\"stop\":true}\n");
    let topic_id = id(0).topic_id;
    let line = |event: &Event| {
        let delivery = Delivery { topic: "quakes", id: id(0), event, attempt: 2 };
        text(super::event(&event_id(&delivery), &delivery))
    };
    let mut plain = event(41);
    plain.headers = vec![("h".to_owned(), Some(b"v".to_vec())), ("h".to_owned(), None)];
    assert_eq!(
        line(&plain),
        format!(
            "{{\"id\":\"quakes/0/41#2\",\"topic\":\"quakes\",\"topic_id\":\"{topic_id}\",\"partition\":0,\"offset\":41,\
             \"timestamp_ms\":1041,\"key\":\"k41\",\"value\":\"v41\",\"headers\":[[\"h\",\"v\"],[\"h\",null]],\"attempt\":2}}\n"
        )
    );
    let odd = Event {
        key: None,
        value: Some(vec![0xff, 0x00]),
        headers: vec![("h".to_owned(), Some(vec![0xff]))],
        ..event(41)
    };
    let line = line(&odd);
    assert!(
        line.contains(r#""key":null,"value_base64":"/wA=","headers":[["h",{"base64":"/w=="}]]"#),
        "{line}"
    );
    // Whatever is in an event, it is one line.
    let lines = Event { value: Some(b"a\nb\r\n\0\x1b".to_vec()), ..event(41) };
    let delivery = Delivery { topic: "quakes", id: id(0), event: &lines, attempt: 1 };
    let line = super::event("x", &delivery);
    assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(500))]
    /// Bytes from a child are an answer or a typed error, never a panic.
    #[test]
    fn any_bytes_are_answered_for(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80)) {
        let expected = Expected { in_flight: Some("a"), answered: Some("b"), greeted: false };
        let _ = answer(&bytes, expected);
    }

    #[test]
    fn mangled_answers_are_answered_for(cut in 0usize..60, byte in proptest::prelude::any::<u8>()) {
        let mut line = br#"{"id":"a","records":[{"k":[1,2]}],"error":null,"retry":true}"#.to_vec();
        line[cut.min(59)] = byte;
        let expected = Expected { in_flight: Some("a"), answered: Some("b"), greeted: true };
        let _ = answer(&line, expected);
        let _ = answer(&line[..cut], expected);
    }
}
