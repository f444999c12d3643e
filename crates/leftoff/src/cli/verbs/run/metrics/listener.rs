//! A few lines of HTTP/1.1 for whoever scrapes: `GET` of two paths, one request per connection. It faces strangers, so
//! each connection costs bounded memory and bounded time, and there are only so many at once.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The most bytes of a request's head; what is longer is refused.
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// A client has so long to ask, and as long to read each part of the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most connections at once; others are closed without an answer.
const MAX_CONNECTIONS: usize = 16;
/// After a failed accept (no descriptor is left) it is tried again so much later.
const PAUSE: Duration = Duration::from_millis(100);

/// Prometheus asks for this form with its name; older parsers read it as well.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Answers on this address until the process ends. `metrics` is called for each scrape, by a thread of its own.
pub fn serve(
    listener: TcpListener,
    metrics: impl Fn() -> String + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let metrics = Arc::new(metrics);
    let open = Arc::new(AtomicUsize::new(0));
    let accept = move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                thread::sleep(PAUSE);
                continue;
            };
            if open.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
                open.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let (metrics, counted) = (metrics.clone(), Counted(open.clone()));
            let answer = move || {
                let _counted = counted;
                // A client that went away has its answer.
                drop(answer(stream, &*metrics));
            };
            // Without a thread to spare the connection is closed, and no longer counted, as the closure is dropped.
            drop(thread::Builder::new().name("metrics-answer".to_owned()).spawn(answer));
        }
    };
    thread::Builder::new().name("metrics".to_owned()).spawn(accept)?;
    Ok(address)
}

/// One of the connections.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn answer(mut stream: TcpStream, metrics: &dyn Fn() -> String) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let (status, kind, body) = match read_head(&mut stream)? {
        Some(head) => respond(&head, metrics),
        None => ("431 Request Header Fields Too Large", PLAIN, "the request is too long\n".to_owned()),
    };
    let is_head_only = status.starts_with("200 HEAD");
    let status = status.replace(" HEAD", "");
    let mut text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if !is_head_only {
        text.push_str(&body);
    }
    stream.write_all(text.as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

/// What is before the empty line; `None` if that is too much.
fn read_head(stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        // One byte now and then does not prolong it.
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut part)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&part[..count]);
        if head.windows(4).any(|four| four == b"\r\n\r\n") {
            return Ok(Some(head));
        }
        if head.len() > MAX_HEAD_BYTES {
            return Ok(None);
        }
    }
}

fn respond(head: &[u8], metrics: &dyn Fn() -> String) -> (&'static str, &'static str, String) {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let ok = match method {
        "GET" => "200 OK",
        "HEAD" => "200 HEAD OK",
        _ => return ("405 Method Not Allowed", PLAIN, "GET /metrics or /healthz\n".to_owned()),
    };
    match path {
        "/metrics" => (ok, OPEN_METRICS, metrics()),
        "/healthz" => (ok, PLAIN, "ok\n".to_owned()),
        _ => ("404 Not Found", PLAIN, "there are /metrics and /healthz\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        // It may answer and close before it has all.
        let _ = stream.write_all(request);
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    #[test]
    fn what_is_asked_is_answered_and_nonsense_is_refused() {
        let address = serve(TcpListener::bind("127.0.0.1:0").unwrap(), || "a 1\n".to_owned()).unwrap();
        let long = [b"GET /metrics HTTP/1.1\r\nX: ".as_slice(), &[b'a'; 2 * MAX_HEAD_BYTES]].concat();
        let table: [(&[u8], &str, &str); 7] = [
            (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\r\n\r\na 1\n"),
            (b"GET /metrics?a=b HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\r\n\r\na 1\n"),
            (
                b"HEAD /metrics HTTP/1.1\r\n\r\n",
                "HTTP/1.1 200 OK\r\n",
                "Content-Length: 4\r\nConnection: close\r\n\r\n",
            ),
            (b"GET /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "ok\n"),
            (b"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", "/healthz\n"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ", "/healthz\n"),
            (b"\xff\x00\r\n\r\n", "HTTP/1.1 405 ", "/healthz\n"),
        ];
        for (request, begins, ends) in table {
            let text = ask(address, request);
            assert!(text.starts_with(begins) && text.ends_with(ends), "{request:?}: {text}");
        }
        // A reset may overtake the answer; what counts is that the next one is served.
        ask(address, &long);
        assert!(ask(address, b"GET /healthz HTTP/1.1\r\n\r\n").ends_with("ok\n"));
    }

    /// They would hold a thread each, without end.
    #[test]
    fn silent_clients_take_no_more_than_their_share() {
        let address = serve(TcpListener::bind("127.0.0.1:0").unwrap(), String::new).unwrap();
        let silent: Vec<TcpStream> =
            (0..MAX_CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
        // The queue is served in order: when this one is closed without a word, the others were accepted.
        assert_eq!(ask(address, b"GET /healthz HTTP/1.1\r\n\r\n"), "");
        drop(silent);
        while !ask(address, b"GET /healthz HTTP/1.1\r\n\r\n").ends_with("ok\n") {
            thread::yield_now();
        }
    }
}
