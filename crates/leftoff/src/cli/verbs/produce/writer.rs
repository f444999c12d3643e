//! Units go into the store, and are told when they are on disk.
//!
//! Three threads: one makes units of lines, this one submits them, and one waits for the answers, which is where the
//! syncs are done. So reading, writing and syncing overlap. Between two units another process may have its turn.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use leftoff::store::{LockError, Store, StoreError, Ticket, host_name};
use leftoff_engine::broker::{CommitSet, PartitionId, Position, Refusal, Reply, Request, Topic};
use leftoff_engine::coordinator::Who;
use leftoff_wire::consumer_offsets::SourceProgress;

use super::unit::Unit;
use crate::cli::args::Global;
use crate::cli::failure::{Exit, Failure};
use crate::cli::progress::Progress;
use crate::cli::session::{from_store, open_existing};

/// So many units are written and not yet known to be on disk; with units of 4 MiB, 64 MiB.
const UNITS_IN_FLIGHT: usize = 16;
/// How often a writer without work looks whether another process waits.
const IDLE: Duration = Duration::from_millis(20);

/// What is on disk.
#[derive(Debug, Default)]
pub struct Acknowledged {
    events: AtomicU64,
    lines: AtomicU64,
    perhaps_more: AtomicBool,
}

impl Acknowledged {
    /// How many events of this run.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::SeqCst)
    }

    /// Whether events behind those may be on disk, too: storage failed, and only a start can tell.
    pub fn perhaps_more(&self) -> bool {
        self.perhaps_more.load(Ordering::SeqCst)
    }

    /// How many lines, counted from the beginning of the input.
    pub fn lines(&self) -> u64 {
        self.lines.load(Ordering::SeqCst)
    }
}

/// Writes units to a topic.
pub struct Writer {
    global: Global,
    root: PathBuf,
    /// Closed while there is nothing to write and another process wants to.
    store: Option<Store>,
    topic: Topic,
    source: Option<SourceWriter>,
    stop: Arc<AtomicBool>,
    sent: SyncSender<Sent>,
    waiter: JoinHandle<Result<(), Failure>>,
    acknowledged: Arc<Acknowledged>,
}

/// What is saved with the units of a source.
struct SourceWriter {
    name: String,
    who: Who,
    /// As it must be in the store when nobody else reads the same source.
    last: Option<SourceProgress>,
}

enum Sent {
    Unit {
        ticket: Ticket,
        events: u64,
        input_bytes: u64,
        lines: u64,
    },
    /// Everything sent before has its answer.
    Flush(SyncSender<()>),
}

impl Writer {
    /// Starts the thread that waits for answers.
    pub fn start(
        global: &Global,
        store: Store,
        topic: Topic,
        stop: Arc<AtomicBool>,
        progress: Progress,
    ) -> Writer {
        let (sent, receiver) = sync_channel(UNITS_IN_FLIGHT);
        let acknowledged = Arc::new(Acknowledged::default());
        let root = store.root().to_owned();
        let waiter = {
            let (root, name, acknowledged) = (root.clone(), topic.name.clone(), acknowledged.clone());
            std::thread::spawn(move || wait_for_answers(&receiver, &root, &name, &acknowledged, &progress))
        };
        let (global, store) = (global.clone(), Some(store));
        Writer { global, root, store, topic, source: None, stop, sent, waiter, acknowledged }
    }

    /// The units carry the progress of this source.
    pub fn with_source(mut self, name: &str, saved: Option<SourceProgress>) -> Writer {
        let host = format!("{}:{}", host_name(), std::process::id());
        let who = Who::new("", "leftoff-produce", &host, concat!("leftoff/", env!("CARGO_PKG_VERSION")));
        self.source = Some(SourceWriter { name: name.to_owned(), who, last: saved });
        self
    }

    /// What is on disk, also while this works.
    pub fn acknowledged(&self) -> Arc<Acknowledged> {
        self.acknowledged.clone()
    }

    /// Writes what comes until nothing comes any more, and waits until it is on disk.
    pub fn run(mut self, units: &Receiver<Unit>) -> Result<(), Failure> {
        let written = self.write_all(units);
        // The waiter knows why a write was refused; a failure of ours comes behind what it still has to tell.
        drop(self.sent);
        let answered = self.waiter.join().expect("the thread that waits for answers does not panic");
        answered.and(written)?;
        match self.store {
            Some(store) => store.close().map_err(|error| from_store(&self.root, error)),
            None => Ok(()),
        }
    }

    fn write_all(&mut self, units: &Receiver<Unit>) -> Result<(), Failure> {
        loop {
            match units.recv_timeout(IDLE) {
                Ok(unit) => {
                    self.give_way()?;
                    if self.write(unit)? == Flow::Refused {
                        return Ok(());
                    }
                }
                // It has met a failure, which is not to wait for the next line to be told.
                Err(RecvTimeoutError::Timeout) if self.waiter.is_finished() => return Ok(()),
                Err(RecvTimeoutError::Timeout) => self.idle()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn write(&mut self, unit: Unit) -> Result<Flow, Failure> {
        // First, because it looks whether the source is where we left it.
        let store = self.opened()?;
        let Unit { appends, events, input_bytes, lines, progress } = unit;
        let topic_id = self.topic.topic_id;
        let appends = appends
            .into_iter()
            .map(|(partition, batches)| (PartitionId { topic_id, partition }, batches))
            .collect();
        let request = match (&mut self.source, progress) {
            (Some(source), Some(progress)) => {
                source.last = Some(progress);
                let (name, who) = (source.name.clone(), source.who.clone());
                let position = Position::Source { name, progress, who };
                Request::CommitSet(CommitSet { appends, position })
            }
            _ => Request::Append { appends },
        };
        let ticket = store.submit(request);
        // Nothing goes in behind what did not.
        let flow = if ticket.is_refused() { Flow::Refused } else { Flow::GoOn };
        match self.sent.send(Sent::Unit { ticket, events, input_bytes, lines }) {
            Ok(()) => Ok(flow),
            // The waiter has met a refusal and ended; it tells why.
            Err(_) => Ok(Flow::Refused),
        }
    }

    /// Nothing to write: what is due is done, and the directory left to who waits for it.
    fn idle(&mut self) -> Result<(), Failure> {
        let Some(store) = &self.store else { return Ok(()) };
        store.tick();
        if self.must_give_way()? && self.flush() == Flow::GoOn {
            let store = self.store.take().expect("looked at above");
            store.close().map_err(|error| from_store(&self.root, error))?;
        }
        Ok(())
    }

    /// In the midst of work another process has a turn.
    fn give_way(&mut self) -> Result<(), Failure> {
        if self.must_give_way()? && self.flush() == Flow::GoOn {
            let store = self.opened()?;
            match store.give_way(&self.stop) {
                Ok(true) => self.must_be_alone()?,
                Ok(false) => {}
                Err(StoreError::Lock(LockError::Held { .. })) => {
                    return Err(Failure::new(Exit::Interrupted, "interrupted while another process wrote"));
                }
                Err(error) => return Err(from_store(&self.root, error)),
            }
        }
        Ok(())
    }

    fn must_give_way(&self) -> Result<bool, Failure> {
        let Some(store) = &self.store else { return Ok(false) };
        store.must_give_way().map_err(|error| from_store(&self.root, error))
    }

    /// Waits until everything sent has its answer.
    fn flush(&self) -> Flow {
        let (done, is_done) = sync_channel(1);
        let flushed = self.sent.send(Sent::Flush(done)).is_ok() && is_done.recv().is_ok();
        if flushed { Flow::GoOn } else { Flow::Refused }
    }

    fn opened(&mut self) -> Result<Store, Failure> {
        if self.store.is_none() {
            self.store = Some(open_existing(&self.global, "produce")?);
            self.must_be_alone()?;
        }
        Ok(self.store.clone().expect("opened just now"))
    }

    /// While others had the directory, nobody may have read our source on: its lines would come twice.
    fn must_be_alone(&self) -> Result<(), Failure> {
        let (Some(store), Some(source)) = (&self.store, &self.source) else { return Ok(()) };
        let saved = saved_progress(store, &source.name)?;
        if saved != source.last {
            return Err(Failure::refused("another process reads the same source into the same topic")
                .hint("stop one of them; then run again, it goes on with the next line"));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    GoOn,
    /// Something was refused; who waits for the answers has it.
    Refused,
}

/// How far the store says that a source was read.
pub fn saved_progress(store: &Store, name: &str) -> Result<Option<SourceProgress>, Failure> {
    let request = Request::Progress { source: name.to_owned() };
    match store.request(request).map_err(|error| from_store(store.root(), error))? {
        Reply::Progress(progress) => Ok(progress),
        other => unreachable!("progress is answered with progress, not {other:?}"),
    }
}

fn wait_for_answers(
    sent: &Receiver<Sent>,
    root: &std::path::Path,
    topic: &str,
    acknowledged: &Acknowledged,
    progress: &Progress,
) -> Result<(), Failure> {
    for sent in sent {
        match sent {
            Sent::Unit { ticket, events, input_bytes, lines } => {
                ticket.wait().map_err(|error| {
                    let failed = matches!(error, StoreError::Refused(Refusal::Latched(_) | Refusal::Log(_)));
                    acknowledged.perhaps_more.store(failed, Ordering::SeqCst);
                    from_store(root, error)
                })?;
                let total = acknowledged.events.fetch_add(events, Ordering::SeqCst) + events;
                acknowledged.lines.store(lines, Ordering::SeqCst);
                progress.advance(input_bytes);
                progress.say(format!("{total} events in {topic}"));
            }
            // Whoever asked may have given up.
            Sent::Flush(done) => drop(done.send(())),
        }
    }
    Ok(())
}
