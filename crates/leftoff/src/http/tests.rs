//! Bytes on a socket against what comes back.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use axum::routing::{get, post};

use super::*;

fn start(limits: HttpLimits) -> SocketAddr {
    let pages = Router::new()
        .route("/page", get(|| async { "a page\n" }))
        .route("/echo", post(|body: String| async move { body }));
    let routes = Routes { probes: probes(|| Err("not yet".to_owned()), || "a 1\n".to_owned()), pages };
    serve_in_thread(TcpListener::bind("127.0.0.1:0").unwrap(), routes, limits).unwrap()
}

fn ask(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // It may answer and close before it has all.
    let _ = stream.write_all(request);
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// A request in words, and how the answer begins and ends.
#[test]
fn who_asks_by_a_right_name_is_answered_and_nobody_else() {
    let address = start(HttpLimits::default());
    let close = "Connection: close\r\n\r\n";
    let table = [
        ("GET /metrics HTTP/1.1|Host: 127.0.0.1:1", "200 OK", "a 1\n"),
        ("GET /metrics?a=b HTTP/1.0", "200 OK", "a 1\n"),
        ("HEAD /metrics HTTP/1.1|Host: localhost", "200 OK", "\r\n\r\n"),
        ("GET /healthz HTTP/1.1|Host: [::1]:80", "200 OK", "ok\n"),
        ("GET /readyz HTTP/1.1|Host: LocalHost:80", "503 ", "not yet\n"),
        ("GET /page HTTP/1.1|Host: localhost", "200 OK", "a page\n"),
        ("GET /page HTTP/1.1|Host: localhost|Origin: http://localhost", "200 OK", "a page\n"),
        // Pages of strangers.
        ("GET /page HTTP/1.1|Host: rebound.example", "421 ", "--ui-host names it\n"),
        ("GET /metrics HTTP/1.1|Host: rebound.example", "421 ", "--ui-host names it\n"),
        ("GET /page HTTP/1.1|Host: localhost.evil.example:80", "421 ", "--ui-host names it\n"),
        ("GET /page HTTP/1.1|Host: localhost|Origin: http://evil.example", "403 ", "may not ask\n"),
        ("GET /page HTTP/1.1|Host: localhost|Origin: null", "403 ", "may not ask\n"),
        ("GET /page HTTP/1.1|Host: a b", "400 ", "is none\n"),
        // Changes without the token, and with a wrong one.
        ("POST /echo HTTP/1.1|Host: localhost|Content-Length: 0", "401 ", "where it is\n"),
        (
            "POST /echo HTTP/1.1|Host: localhost|Authorization: Bearer |Content-Length: 0",
            "401 ",
            "where it is\n",
        ),
        (
            "POST /echo HTTP/1.1|Host: localhost|Authorization: Bearer x|Content-Length: 0",
            "401 ",
            "where it is\n",
        ),
        ("POST /metrics HTTP/1.1|Host: localhost|Content-Length: 0", "401 ", "where it is\n"),
        // Nothing, and nonsense.
        ("GET / HTTP/1.1|Host: localhost", "404 ", "docs/serve.md has the rest\n"),
        ("\u{1}\u{2}", "400 ", "\r\n\r\n"),
    ];
    for (words, begins, ends) in table {
        let request = format!("{}\r\n{close}", words.replace('|', "\r\n"));
        let text = ask(address, request.as_bytes());
        let status = text.split_once(' ').map(|(_, rest)| rest).unwrap_or_default();
        assert!(status.starts_with(begins) && text.ends_with(ends), "{words}: {text}");
    }
}

fn with_runtime<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn the_token_opens_and_a_name_that_was_given_is_served() {
    with_runtime(async {
        let names = vec!["broker.example".to_owned()];
        let limits = HttpLimits { body_bytes: 8, ..HttpLimits::default() };
        let server = HttpServer::bind("127.0.0.1:0", names, limits).await.unwrap();
        let (address, token) = (server.address().unwrap(), server.token().to_owned());
        let pages = Router::new().route("/echo", post(|body: String| async move { body }));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(server.run(Routes { pages, ..Routes::default() }, async {
            let _either_way = stopped.await;
        }));
        for (body, status, ends) in [("eight888", "200", "eight888"), ("nine99999", "413", "8 bytes\n")] {
            let request = format!(
                "POST /echo HTTP/1.1\r\nHost: broker.example\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let text = tokio::task::spawn_blocking(move || ask(address, request.as_bytes())).await.unwrap();
            assert!(text.starts_with(&format!("HTTP/1.1 {status}")) && text.ends_with(ends), "{text}");
        }
        stop.send(()).unwrap();
        running.await.unwrap();
        assert!(TcpStream::connect(address).is_err(), "it has stopped");
    });
}

/// They would hold a place each, without end.
#[test]
fn silent_clients_are_cut_off_and_take_no_more_than_their_share() {
    let patience = Duration::from_millis(30);
    let address = start(HttpLimits { connections: 2, head_patience: patience, ..HttpLimits::default() });
    for begun in ["", "GET /healthz HTTP/1.1\r\nHost: lo"] {
        let mut one = TcpStream::connect(address).unwrap();
        one.write_all(begun.as_bytes()).unwrap();
        let mut rest = Vec::new();
        // Ends because the other side ends it; else the test would not.
        let _ = one.read_to_end(&mut rest);
    }
    let long = [b"GET /healthz HTTP/1.1\r\nX: ".as_slice(), &[b'a'; 100_000]].concat();
    let answer = ask(address, &long);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[test]
fn beyond_the_limit_a_connection_is_closed_and_served_again_when_there_is_room() {
    let address = start(HttpLimits { connections: 2, ..HttpLimits::default() });
    let silent: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(address).unwrap()).collect();
    let healthz = b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n";
    // The queue is served in order: when this one is closed without a word, the others were accepted.
    assert_eq!(ask(address, healthz), "");
    drop(silent);
    while !ask(address, healthz).ends_with("ok\n") {
        std::thread::yield_now();
    }
}
