//! A handler behind a URL: each event is posted to it, and the status is the answer.
//!
//! The request may reach the endpoint and its answer be lost, so an event may be posted more than once, always with the same
//! `Idempotency-Key`. A thread of its own does the waiting, so that a stop is noticed meanwhile.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ureq::Agent;

use super::deadline::Deadline;
use super::protocol::{self, Parsed};
use super::{Answer, Delivery, Handler, HandlerError};
use crate::shorten;

mod endpoint;
#[cfg(test)]
mod tests;

pub use endpoint::{BadEndpoint, Endpoint};

/// The longest body of an answer that is read, in bytes.
pub const MAX_BODY_BYTES: usize = 8 << 20;
/// How long a request may take when nothing else is said: a peer that is gone without a word would hold us up for ever.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// So much is read of a body that goes with a failure.
const SHOWN_BODY_BYTES: u64 = 4 << 10;

/// How events are posted.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Where to.
    pub endpoint: Endpoint,
    /// The group, a part of the idempotency key.
    pub group: String,
    /// How long a request may take, from the connection to the last byte.
    pub timeout: Duration,
    /// How long it may go on after a stop.
    pub drain: Duration,
    /// The flag that asks the runner to stop.
    pub stop: Option<Arc<AtomicBool>>,
}

/// Posts each event to a URL, over a connection that is kept.
///
/// A status of 2xx: handled; an answer object in the body may bring records. All else is a failed attempt. Redirects are not
/// followed, and no proxy is used.
#[derive(Debug)]
pub struct Http {
    config: HttpConfig,
    poster: Option<Poster>,
}

impl Http {
    /// Connects to nothing yet.
    pub fn new(config: HttpConfig) -> Http {
        Http { config, poster: None }
    }

    fn post(&mut self, delivery: &Delivery<'_>) -> Result<Answer, HandlerError> {
        let config = &self.config;
        let mut deadline = Deadline::new(Some(config.timeout));
        let id = protocol::event_id(delivery);
        let job = Job {
            body: protocol::event(&id, delivery),
            key: idempotency_key(delivery, &config.group),
            attempt: delivery.attempt,
        };
        let poster = self.poster.take().unwrap_or_else(|| Poster::start(config));
        let failed =
            |why: &str| Answer::Failed { error: format!("POST {}: {why}", config.endpoint), retry: true };
        if poster.jobs.send(job).is_err() {
            return Ok(failed("the thread for it has ended"));
        }
        let reply = loop {
            let wait = deadline.next_tick().saturating_duration_since(Instant::now());
            match poster.replies.recv_timeout(wait) {
                Ok(reply) => break reply,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(failed("the thread for it has ended")),
            }
            // With that the thread and its connection are left alone; it ends by its own time-out.
            match deadline.check(Some(config.timeout), config.drain, config.stop.as_deref()) {
                Err(HandlerError::TimedOut { after }) => {
                    return Ok(failed(&format!("no answer within {after:?}")));
                }
                checked => checked?,
            }
        };
        self.poster = Some(poster);
        Ok(reply.and_then(Reply::answer).unwrap_or_else(|why| failed(&why)))
    }
}

impl Handler for Http {
    fn handle(&mut self, delivery: &Delivery<'_>) -> Result<Answer, HandlerError> {
        self.post(delivery)
    }
}

/// The same at every attempt, whoever makes it. What a header cannot hold is `%xx`.
fn idempotency_key(delivery: &Delivery<'_>, group: &str) -> String {
    let Delivery { id, event, .. } = delivery;
    let mut key = format!("{}/{}/{}/", id.topic_id, id.partition, event.offset);
    for byte in group.bytes() {
        match byte {
            b'%' => key.push_str("%25"),
            0x21..=0x7e => key.push(char::from(byte)),
            other => key.push_str(&format!("%{other:02x}")),
        }
    }
    key
}

/// What is posted.
struct Job {
    body: Vec<u8>,
    key: String,
    attempt: u32,
}

/// What came back.
struct Reply {
    status: ureq::http::StatusCode,
    location: Option<String>,
    /// All of it with a 2xx, its beginning else.
    body: Vec<u8>,
}

impl Reply {
    fn answer(self) -> Result<Answer, String> {
        let (status, body) = (self.status, self.body.trim_ascii());
        if status.is_success() {
            return if body.is_empty() { Ok(Answer::done()) } else { answer_in(body) };
        }
        let mut why = format!("answered {status}");
        if status.is_redirection() {
            let to = self.location.as_deref().unwrap_or("nowhere");
            why += &format!(", which leads to {}; redirects are not followed", shorten(to.as_bytes()));
        } else if !body.is_empty() {
            why += &format!(": {}", shorten(body));
        }
        Err(why)
    }
}

/// The answer object in a body, which may stand on several lines.
fn answer_in(body: &[u8]) -> Result<Answer, String> {
    let bad = |why: String| {
        format!("the body of its answer is neither empty nor an answer object: {}\n  ({why})", shorten(body))
    };
    let parsed = |body| match Parsed::new(body) {
        Ok(parsed) => Ok(parsed),
        Err(HandlerError::NoAnswer { why, .. }) => Err(bad(why)),
        Err(error) => Err(bad(error.to_string())),
    };
    // Parsed as it is, line breaks can only stand between tokens; a record is one line.
    parsed(body)?;
    let line: Vec<u8> =
        body.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).collect();
    parsed(&line)?.only_answer().map_err(|why| bad(why.to_owned()))
}

/// A thread that posts one event after the other.
struct Poster {
    jobs: Sender<Job>,
    replies: Receiver<Result<Reply, String>>,
}

impl Poster {
    fn start(config: &HttpConfig) -> Poster {
        let (jobs, waiting) = channel::<Job>();
        let (done, replies) = channel();
        let endpoint = config.endpoint.clone();
        let agent = agent(config.timeout);
        let work = move || {
            let mut is_first = true;
            for job in waiting {
                let reply = match send(&agent, &endpoint, &job) {
                    // A connection that was kept may have been closed at the other end. That is nobody's failure.
                    Err(error) if !is_first && is_cut(&error) => send(&agent, &endpoint, &job),
                    reply => reply,
                };
                is_first = false;
                if done.send(reply.map_err(|error| in_words(&error))).is_err() {
                    return;
                }
            }
        };
        // Without a thread both channels are closed, which is what the caller then finds.
        drop(std::thread::Builder::new().name("http".to_owned()).spawn(work));
        Poster { jobs, replies }
    }
}

impl fmt::Debug for Poster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poster").finish_non_exhaustive()
    }
}

fn agent(timeout: Duration) -> Agent {
    Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .user_agent(concat!("leftoff/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

fn send(agent: &Agent, endpoint: &Endpoint, job: &Job) -> Result<Reply, ureq::Error> {
    let mut request = agent
        .post(endpoint.target())
        .header("Content-Type", "application/json")
        .header("Accept", "application/json")
        .header("Idempotency-Key", &job.key)
        .header("Leftoff-Attempt", job.attempt.to_string());
    if let Some(authorization) = endpoint.authorization() {
        request = request.header("Authorization", authorization);
    }
    let mut response = request.send(&job.body[..])?;
    let status = response.status();
    let location =
        response.headers().get("location").map(|to| String::from_utf8_lossy(to.as_bytes()).into_owned());
    let body = if status.is_success() {
        response.body_mut().with_config().limit(MAX_BODY_BYTES as u64).read_to_vec()?
    } else {
        let mut body = Vec::new();
        // The status is what counts; what can be read of the body is shown.
        let _cut = response.body_mut().as_reader().take(SHOWN_BODY_BYTES).read_to_end(&mut body);
        body
    };
    Ok(Reply { status, location, body })
}

fn is_cut(error: &ureq::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match error {
        ureq::Error::Io(error) => {
            matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
        }
        _ => false,
    }
}

fn in_words(error: &ureq::Error) -> String {
    match error {
        ureq::Error::BodyExceedsLimit(limit) => format!("the body of its answer has more than {limit} bytes"),
        error => shorten(error.to_string().as_bytes()),
    }
}
