//! A data directory opened for writing: the broker behind a mutex, a clock, and the disk.
//!
//! There is no thread of its own. Whoever waits for an answer and finds that no sync is under way does it for everybody
//! who waits; the others sleep until their answer is there. A caller that wants appends to overlap with the sync submits
//! on one thread and waits for the [`Ticket`]s on another. One that may not wait at all, a server, gives its threads to
//! the store ([`Store::keep_syncing`]) and is called back ([`Store::submit_then`]).

mod lock;
mod read;
mod upkeep;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use leftoff_consumer::crash_point;
use leftoff_engine::broker::{
    Broker, BrokerConfig, Input, OpenError, Output, PartitionId, Recovered, Refusal, Reply, Request,
    RequestId, State, SyncJob, Topic,
};
use leftoff_engine::coordinator::Group;
use leftoff_engine::disk::Disk;
use leftoff_engine::disk::os::{OsDisk, SyncScope};
use leftoff_engine::log::LogError;
use leftoff_engine::types::Timestamp;
use leftoff_wire::Uuid;

pub use lock::{DirectoryLock, HandlerLock, LockError, ServerAt, TokenFile};
pub use read::{Chunk, Event, ReadError, events_in};

/// A writer keeps a directory for at least so long before it gives way: opening it costs a millisecond or two.
const LEAST_TURN: Duration = Duration::from_millis(50);
/// A writer looks so often whether another one waits: a look is a file that is opened and locked.
const LOOK_FOR_OTHERS: Duration = Duration::from_millis(5);
/// How often a writer that gave way looks whether it is asked to stop.
const LOOK_FOR_STOP: Duration = Duration::from_millis(100);
/// How long a writer that gave way and is asked to stop still waits, to save what it has to save.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// How a directory is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// What the lock file says of us: the verb.
    pub verb: String,
    /// How long to wait for another writer to end.
    pub wait_for_lock: Duration,
    /// What one sync may cover.
    pub sync_scope: SyncScope,
    /// How the broker treats its own logs, and groups.
    pub broker: BrokerConfig,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            verb: "embedded".to_owned(),
            wait_for_lock: Duration::ZERO,
            sync_scope: SyncScope::default(),
            broker: BrokerConfig::default(),
        }
    }
}

/// What can go wrong with a directory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process writes it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Another process works for the group.
    #[error("group {group:?} is in use by {holder}, or by a handler that it left behind")]
    GroupInUse {
        /// Which group.
        group: String,
        /// What the holder wrote into the group's lock file: `pid 4711 (run)`.
        holder: String,
    },
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The request was refused; nothing has changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The operating system failed.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A directory, open for writing. Clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    disk: Arc<dyn Disk>,
    inner: Mutex<Inner>,
    changed: Condvar,
    verb: String,
    config: BrokerConfig,
}

#[derive(Debug)]
struct Inner {
    /// Taken out by [`Store::close`] and when the last clone is dropped.
    broker: Option<Broker>,
    /// Held for as long as there is a broker.
    lock: Option<DirectoryLock>,
    replies: HashMap<RequestId, Reply>,
    /// Who is to be called with the reply to a request that nobody waits for.
    then: HashMap<RequestId, Then>,
    /// Requests whose tickets were dropped: their replies are thrown away.
    abandoned: HashSet<RequestId>,
    /// A sync that nobody does yet.
    job: Option<SyncJob>,
    /// How long the last sync took.
    last_sync: Duration,
    /// Whether [`Store::keep_syncing`] is to end.
    stops_syncing: bool,
    next_id: u64,
    held_since: Instant,
    /// When it was looked last whether somebody waits.
    looked: Instant,
}

impl Store {
    /// Opens a directory, or makes it.
    ///
    /// # Errors
    /// [`StoreError::Lock`] if another process writes it, [`StoreError::Open`] if it is not ours or damaged.
    pub fn open(root: &Path, options: &OpenOptions) -> Result<Store, StoreError> {
        let io = |source| StoreError::Io { path: root.to_owned(), source };
        std::fs::create_dir_all(root).map_err(io)?;
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::open_with(root, options.sync_scope).map_err(io)?);
        // Whose directory it is comes first: nothing is written into somebody else's, not even a lock.
        leftoff_engine::broker::directory::inspect(&disk).map_err(OpenError::from)?;
        let lock = DirectoryLock::take(root, &options.verb, options.wait_for_lock)?;
        let broker = Broker::open(disk.clone(), now(), random_id(), options.broker.clone())?;
        let inner = Inner {
            broker: Some(broker),
            lock: Some(lock),
            held_since: Instant::now(),
            looked: Instant::now(),
            replies: HashMap::new(),
            then: HashMap::new(),
            abandoned: HashSet::new(),
            job: None,
            last_sync: Duration::ZERO,
            stops_syncing: false,
            next_id: 0,
        };
        let shared = Shared {
            root: root.to_owned(),
            disk,
            inner: Mutex::new(inner),
            changed: Condvar::new(),
            verb: options.verb.clone(),
            config: options.broker.clone(),
        };
        Ok(Store { shared: Arc::new(shared) })
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.shared.root
    }

    /// How the broker treats its own logs, and groups.
    pub fn broker_config(&self) -> &BrokerConfig {
        &self.shared.config
    }

    /// Says more of us in the lock file than the verb, for whoever finds the directory taken: a server says where it is.
    ///
    /// # Errors
    /// [`StoreError::Lock`].
    pub fn say_in_lock(&self, text: &str) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let lock = inner.lock.as_mut().expect("a closed store is not used any more");
        Ok(lock.say(&self.shared.root, text)?)
    }

    /// What the start found and did.
    pub fn recovered(&self) -> Recovered {
        self.lock().broker().recovered().clone()
    }

    /// Asks for something and does not wait: the reply comes with the ticket.
    pub fn submit(&self, request: Request) -> Ticket {
        let mut inner = self.lock();
        let id = inner.name_request();
        let now = now();
        let broker = inner.broker_mut();
        if broker.next_deadline().is_some_and(|deadline| deadline <= now) {
            broker.handle_deadline(now);
        }
        broker.handle(now, Input::Request { id, request });
        self.take_outputs(&mut inner);
        Ticket { store: self.clone(), id, taken: false }
    }

    /// Asks for something and waits until it is on disk.
    ///
    /// # Errors
    /// [`StoreError::Refused`].
    pub fn request(&self, request: Request) -> Result<Reply, StoreError> {
        self.submit(request).wait()
    }

    /// Does what is due: call it now and then while idle, so that marks are synced and retention runs.
    pub fn tick(&self) {
        let mut inner = self.lock();
        let now = now();
        let broker = inner.broker_mut();
        if broker.next_deadline().is_some_and(|deadline| deadline <= now) {
            broker.handle_deadline(now);
            self.take_outputs(&mut inner);
            while inner.job.is_some() {
                inner = self.do_sync(inner);
            }
        }
    }

    /// Waits until something new can be read, or for so long.
    pub fn wait_for_change(&self, wait: Duration) {
        let inner = self.lock();
        let (_guard, _timed_out) =
            self.shared.changed.wait_timeout(inner, wait).expect("no one panics while holding the lock");
    }

    /// Looks at the state under the lock. What it says may not be on disk yet; ask for [`Request::Topics`] and its like
    /// where that matters.
    pub fn with_state<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(self.lock().broker().state())
    }

    /// Eyes of another thread on this store; they keep nothing open.
    pub fn glimpses(&self) -> Glimpses {
        Glimpses(Arc::downgrade(&self.shared))
    }

    /// A live topic by name.
    pub fn topic(&self, name: &str) -> Option<Topic> {
        self.with_state(|state| state.topic(name).cloned())
    }

    /// A group as it is on disk; `None` if there is none of that name.
    ///
    /// # Errors
    /// [`StoreError::Refused`] when storage failed earlier.
    pub fn group(&self, name: &str) -> Result<Option<Group>, StoreError> {
        match self.request(Request::Groups)? {
            Reply::Groups(groups) => Ok(groups.into_iter().find(|group| group.name() == name)),
            other => unreachable!("groups are answered with groups, not {other:?}"),
        }
    }

    /// Makes a topic with a fresh id.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the name is taken or breaks Kafka's rules, or a setting is unknown.
    pub fn create_topic(
        &self,
        name: &str,
        partitions: i32,
        settings: &[(String, String)],
    ) -> Result<Topic, StoreError> {
        let request = Request::CreateTopic {
            name: name.to_owned(),
            topic_id: random_id(),
            partitions,
            settings: settings.to_vec(),
        };
        match self.request(request)? {
            Reply::Topic(topic) => Ok(topic),
            other => unreachable!("a topic is answered with a topic, not {other:?}"),
        }
    }

    /// Reads events of a partition from an offset on, up to about `max_bytes`; the first batch is always whole.
    ///
    /// # Errors
    /// [`ReadError`]: out of range, or damaged.
    pub fn read(
        &self,
        partition: &PartitionId,
        from: leftoff_wire::Offset,
        max_bytes: u64,
    ) -> Result<Chunk, StoreError> {
        let fetched = self.with_state(|state| {
            let log = state.log(partition).ok_or(Refusal::UnknownPartition(*partition))?;
            log.fetch(from, max_bytes).map_err(StoreError::from)
        })?;
        // The files are read outside the lock.
        Ok(events_in(&fetched, from)?)
    }

    /// Whether another process waits to write and this one has had its turn: time for [`Store::give_way`].
    ///
    /// # Errors
    /// When the lock files cannot be used.
    pub fn must_give_way(&self) -> Result<bool, StoreError> {
        Ok(self.lock().held_since.elapsed() >= LEAST_TURN && DirectoryLock::is_wanted(&self.shared.root)?)
    }

    /// Lets another process write, if one waits and this one has had its turn: closes the directory, gives the lock away,
    /// and opens it again when it is free. A long-running verb calls this between two steps, with no ticket open; so
    /// `run` and `produce` work side by side on one directory. Returns whether it gave way.
    ///
    /// `stop` ends the waiting, but for five seconds in which the other may still give way; the store is then closed, and
    /// this returns [`StoreError::Lock`].
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn give_way(&self, stop: &AtomicBool) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        let at = Instant::now();
        if at - inner.held_since < LEAST_TURN || at - inner.looked < LOOK_FOR_OTHERS {
            return Ok(false);
        }
        inner.looked = at;
        if !DirectoryLock::is_wanted(&self.shared.root)? {
            return Ok(false);
        }
        while inner.job.is_some() {
            inner = self.do_sync(inner);
        }
        // Another thread is in the middle of a sync: its turn comes first.
        if inner.broker().is_syncing() {
            return Ok(false);
        }
        if let Some(broker) = inner.broker.take() {
            broker.close()?;
        }
        if let Some(lock) = inner.lock.take() {
            lock.give_way();
        }
        inner.lock = Some(self.take_back(stop)?);
        inner.broker =
            Some(Broker::open(self.shared.disk.clone(), now(), random_id(), self.shared.config.clone())?);
        inner.held_since = Instant::now();
        Ok(true)
    }

    /// False once it was closed, or could not be opened again after [`Store::give_way`]: it must not be used then.
    pub fn is_open(&self) -> bool {
        self.lock().broker.is_some()
    }

    fn take_back(&self, stop: &AtomicBool) -> Result<DirectoryLock, LockError> {
        let mut stopping: Option<Instant> = None;
        loop {
            match DirectoryLock::take(&self.shared.root, &self.shared.verb, LOOK_FOR_STOP) {
                Err(LockError::Held { .. }) if !stop.load(Ordering::SeqCst) => {}
                Err(LockError::Held { .. }) if stopping.is_none_or(|since| since.elapsed() < LAST_WAIT) => {
                    stopping.get_or_insert_with(Instant::now);
                }
                taken => return taken,
            }
        }
    }

    /// A clean stop: the next start has nothing to check. Other clones must not be used any more.
    ///
    /// # Errors
    /// When the disk fails; nothing acknowledged is at risk.
    pub fn close(self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        while inner.job.is_some() {
            inner = self.do_sync(inner);
        }
        let closed = inner.broker.take().map_or(Ok(()), Broker::close);
        inner.lock = None;
        Ok(closed?)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.inner.lock().expect("no one panics while holding the lock")
    }

    fn take_outputs(&self, inner: &mut Inner) {
        while let Some(output) = inner.broker_mut().poll_output() {
            match output {
                Output::Reply { id, reply } => {
                    if let Some(then) = inner.then.remove(&id) {
                        then.0(reply);
                    } else if !inner.abandoned.remove(&id) {
                        inner.replies.insert(id, reply);
                    }
                }
                Output::Sync(job) => inner.job = Some(job),
            }
        }
    }

    /// Does the sync that waits, outside the lock, for everybody.
    fn do_sync<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        let Some(job) = inner.job.take() else { return inner };
        drop(inner);
        crash_point::pass("sync-before");
        let began = Instant::now();
        let result = job.run(&*self.shared.disk);
        let took = began.elapsed();
        crash_point::pass("sync-after");
        let mut inner = self.lock();
        inner.last_sync = took;
        inner.broker_mut().handle(now(), Input::Synced { round: job.round, result });
        self.take_outputs(&mut inner);
        self.shared.changed.notify_all();
        inner
    }
}

/// What is called with a reply. It must not block, nor come back into the store: it runs under the store's lock.
struct Then(Box<dyn FnOnce(Reply) + Send>);

impl std::fmt::Debug for Then {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Then")
    }
}

/// Looks at a store's state from another thread, and never waits for it.
#[derive(Debug, Clone)]
pub struct Glimpses(Weak<Shared>);

impl Glimpses {
    /// As [`Store::with_state`]; `None` while the store is busy, given to another process, or closed.
    pub fn state<T>(&self, look: impl FnOnce(&State) -> T) -> Option<T> {
        let shared = self.0.upgrade()?;
        let inner = shared.inner.try_lock().ok()?;
        inner.broker.as_ref().map(|broker| look(broker.state()))
    }
}

impl Inner {
    fn name_request(&mut self) -> RequestId {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        id
    }

    fn broker(&self) -> &Broker {
        self.broker.as_ref().expect("a closed store is not used any more")
    }

    fn broker_mut(&mut self) -> &mut Broker {
        self.broker.as_mut().expect("a closed store is not used any more")
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().expect("no one panics while holding the lock");
        if let Some(broker) = inner.broker.take() {
            // Nobody waits for an answer any more, and nothing acknowledged depends on it: the next start checks a tail.
            let _nothing_is_lost = broker.close();
        }
    }
}

/// Stands for a reply that is still to come. Dropped, the reply is not wanted; the request goes through all the same.
#[derive(Debug)]
pub struct Ticket {
    store: Store,
    id: RequestId,
    taken: bool,
}

impl Ticket {
    /// Whether the request was refused at once. A caller that submits without waiting looks, so that nothing goes in behind
    /// what did not.
    pub fn is_refused(&self) -> bool {
        let inner = self.store.lock();
        matches!(inner.replies.get(&self.id), Some(Reply::Refused(_))) || inner.broker().is_refused(self.id)
    }

    /// Waits until the answer is on disk; does the sync for everybody if nobody else does.
    ///
    /// # Errors
    /// [`StoreError::Refused`].
    pub fn wait(mut self) -> Result<Reply, StoreError> {
        self.taken = true;
        let mut inner = self.store.lock();
        loop {
            if let Some(reply) = inner.replies.remove(&self.id) {
                // Somebody else may be asleep whose sync nobody does yet.
                self.store.shared.changed.notify_all();
                return match reply {
                    Reply::Refused(refusal) => Err(refusal.into()),
                    reply => Ok(reply),
                };
            }
            inner = if inner.job.is_some() {
                self.store.do_sync(inner)
            } else {
                self.store.shared.changed.wait(inner).expect("no one panics while holding the lock")
            };
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let mut inner = self.store.lock();
        if inner.replies.remove(&self.id).is_none() {
            inner.abandoned.insert(self.id);
        }
    }
}

/// The wall clock.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A fresh random id (version 4), never one of Kafka's reserved ones.
pub fn random_id() -> Uuid {
    let mut bytes = [0u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .expect("Linux has random bytes");
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    // Kafka avoids ids whose text begins with a dash, which command lines take for a flag.
    if bytes[0] >> 2 == 62 {
        bytes[0] ^= 0x80;
    }
    Uuid::from_bytes(bytes)
}
