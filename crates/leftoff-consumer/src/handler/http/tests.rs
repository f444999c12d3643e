#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use super::*;
use crate::testing::{event, id};

/// The connection ends without an answer.
const CUT: &str = "cut";

/// What one connection is sent, request by request; an empty text closes it.
type Script = Vec<Vec<String>>;

/// A server that answers by a script, and gives back what it was sent: head and body of each request.
fn server(script: Script) -> (String, JoinHandle<Vec<(String, String)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let serve = move || {
        let mut heard = Vec::new();
        for connection in script {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            for answer in connection.into_iter().filter(|answer| !answer.is_empty()) {
                let Some(request) = request(&mut reader) else { break };
                heard.push(request);
                if answer == CUT {
                    break;
                }
                // Whoever asks may have had enough.
                let _ = stream.write_all(answer.as_bytes());
            }
            let _ = TcpStream::shutdown(&stream, std::net::Shutdown::Both);
        }
        heard
    };
    (url, std::thread::spawn(serve))
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_ascii_lowercase();
    let length =
        head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Some((head, String::from_utf8(body).unwrap()))
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn http(url: &str) -> Http {
    Http::new(HttpConfig {
        endpoint: url.parse().unwrap(),
        group: "al erts".to_owned(),
        timeout: Duration::from_secs(60),
        drain: Duration::from_secs(60),
        stop: None,
    })
}

fn give(http: &mut Http, offset: i64, attempt: u32) -> Answer {
    http.handle(&Delivery { topic: "quakes", id: id(0), event: &event(offset), attempt }).unwrap()
}

/// What becomes of an event that is answered so.
fn answered(answer: &str) -> Result<Vec<String>, String> {
    let (url, server) = server(vec![vec![answer.to_owned()]]);
    let answer = give(&mut http(&url), 1, 1);
    server.join().unwrap();
    match answer {
        Answer::Handled { records } => Ok(records.iter().map(|record| record.json().to_owned()).collect()),
        Answer::Filtered => Ok(vec!["filtered".to_owned()]),
        Answer::Failed { error, retry: true } => Err(error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_status_and_the_body_are_the_answer() {
    let handled = |answer: &str, records: &[&str]| assert_eq!(answered(answer).unwrap(), records, "{answer}");
    handled(&ok(""), &[]);
    handled("HTTP/1.1 204 No Content\r\n\r\n", &[]);
    handled("HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", &[]);
    handled(&ok("{\"ok\": true}"), &[]);
    handled(&ok("{\"records\": [\n{\"a\": 1.10},\r\n2\n]}\n"), &["{\"a\": 1.10}", "2"]);
    handled(&ok("{\"filtered\": true}"), &["filtered"]);
    let failed = |answer: &str, word: &str| {
        let error = answered(answer).unwrap_err();
        assert!(error.contains(word), "{word:?} is not in: {error}");
    };
    failed(
        "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nboom",
        "answered 500 Internal Server Error: boom",
    );
    failed("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answered 404 Not Found");
    let long = format!("HTTP/1.1 400 Bad Request\r\nContent-Length: 100000\r\n\r\n{}", "x".repeat(100_000));
    failed(&long, "answered 400 Bad Request: xxx");
    assert!(answered(&long).unwrap_err().len() < 500);
    failed(
        "HTTP/1.1 302 Found\r\nLocation: http://[::1]:1/\r\nContent-Length: 0\r\n\r\n",
        "leads to http://[::1]:1/; redirects are not followed",
    );
    failed(
        "HTTP/1.1 308 Permanent Redirect\r\nLocation: /hook\r\nContent-Length: 0\r\n\r\n",
        "redirects are not followed",
    );
    failed(&ok("<html>"), "neither empty nor an answer object: <html>");
    failed(&ok("{\"records\": {}}"), "neither empty nor an answer object");
    failed(&ok("{\"records\": [\"a\nb\"]}"), "neither empty nor an answer object");
    failed(&ok("{\"error\": \"no such place\"}"), "no such place");
    failed(&ok(&"x".repeat(9_000_000)), "more than 8388608 bytes");
    failed("what?\r\n\r\n", "POST http://127.0.0.1:");
    failed("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}", "POST http://127.0.0.1:");
}

#[test]
fn each_attempt_has_the_same_key_over_one_connection() {
    let no = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_owned();
    let (url, server) = server(vec![vec![no, ok(""), ok("")]]);
    let mut http = http(&url.replace("http://", "http://me:pass%20word@"));
    let failed = give(&mut http, 41, 1);
    assert!(matches!(&failed, Answer::Failed { error, .. } if error.contains("answered 503")), "{failed:?}");
    assert!(!format!("{failed:?} {http:?}").contains("word"));
    assert!(matches!(give(&mut http, 41, 2), Answer::Handled { .. }));
    assert!(matches!(give(&mut http, 42, 1), Answer::Handled { .. }));
    drop(http);
    let heard = server.join().unwrap();
    let key = |offset: i64| {
        format!("idempotency-key: {}/0/{offset}/al%20erts\r\n", id(0).topic_id).to_ascii_lowercase()
    };
    for ((head, body), (offset, attempt)) in heard.iter().zip([(41, 1), (41, 2), (42, 1)]) {
        assert!(head.starts_with("post /hook http/1.1\r\n"), "{head}");
        assert!(
            head.contains(&key(offset)) && head.contains(&format!("leftoff-attempt: {attempt}\r\n")),
            "{head}"
        );
        assert!(head.contains("authorization: basic bwu6cgfzcyb3b3jk\r\n"), "{head}");
        assert!(body.starts_with(&format!("{{\"id\":\"quakes/0/{offset}#{attempt}\"")), "{body}");
    }
    assert_eq!(heard.len(), 3);
}

/// The other end may close a kept connection at any time: that is not the failure of an event.
#[test]
fn a_kept_connection_that_was_closed_is_made_anew() {
    let cut = || CUT.to_owned();
    let (url, server) = server(vec![vec![ok("")], vec![ok(""), cut()], vec![ok(""), cut()], vec![cut()]]);
    let mut http = http(&url);
    (1..=3).for_each(|offset| assert!(matches!(give(&mut http, offset, 1), Answer::Handled { .. })));
    // Once; a new one that is cut as well is a failure.
    assert!(matches!(give(&mut http, 4, 1), Answer::Failed { .. }));
    assert_eq!(server.join().unwrap().len(), 6);
}

#[test]
fn nobody_there_and_nobody_who_answers() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let failed = give(&mut http(&format!("http://127.0.0.1:{port}")), 1, 1);
    assert!(matches!(&failed, Answer::Failed { error, .. } if error.contains("refused")), "{failed:?}");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut http = http(&format!("http://{}", silent.local_addr().unwrap()));
    http.config.timeout = Duration::from_millis(100);
    let failed = give(&mut http, 1, 1);
    assert!(
        matches!(&failed, Answer::Failed { error, .. } if error.contains("no answer within 100ms") || error.contains("timeout")),
        "{failed:?}"
    );
    http.config.timeout = Duration::from_secs(60);
    http.poster = None;
    let stop = Arc::new(AtomicBool::new(false));
    stop.store(true, Ordering::SeqCst);
    (http.config.stop, http.config.drain) = (Some(stop), Duration::from_millis(20));
    let given_back = http.handle(&Delivery { topic: "quakes", id: id(0), event: &event(1), attempt: 1 });
    assert!(matches!(given_back, Err(HandlerError::GivenBack { .. })));
}

#[test]
fn what_is_a_url_to_post_to() {
    let shown = |url: &str| {
        url.parse::<Endpoint>().map(|endpoint| endpoint.to_string()).map_err(|bad| bad.to_string())
    };
    let good = [
        ("http://localhost", "http://localhost/"),
        ("HTTPS://example.org:8443/a/b?token=x", "https://example.org:8443/a/b?…"),
        ("http://me:pw@h/x", "http://h/x"),
        ("http://me@h?q", "http://h/?…"),
        ("http://[::1]:80/", "http://[::1]:80/"),
        ("http://[::1]/", "http://[::1]/"),
    ];
    good.iter().for_each(|(url, expect)| assert_eq!(shown(url).as_deref(), Ok(*expect), "{url}"));
    let bad = [
        ("", "begin with"),
        ("localhost:80", "begin with"),
        ("ftp://h/", "begin with"),
        ("http://", "URL"),
        ("http:///x", "URL"),
        ("http://h:0/", "port"),
        ("http://h:99999/", "port"),
        ("http://h:/", "port"),
        ("http://h/a b", "%xx"),
        ("http://h/ä", "%xx"),
        ("http://h/#a", "fragment"),
        ("http://a:%zz@h/", "hex"),
        ("http://[::1/", "URL"),
    ];
    for (url, word) in bad {
        let error = shown(url).unwrap_err();
        assert!(error.contains(word), "{url}: {error}");
    }
}
