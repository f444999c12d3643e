//! The two locks of a data directory, both `flock(2)`.
//!
//! `lock` is the writer's: one at a time, close-on-exec. Whoever waits for it holds `lock.wait` (shared), which a writer that
//! can pause looks at, to give way. `handlers/GROUP.lock` is a runner's and is inherited by its
//! handler process: a runner killed with SIGKILL leaves it held for as long as its handler lives, so that an old handler
//! never works beside a new one.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// How often a waiting process looks whether a lock is free. `flock` has no time-out of its own.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Of those that a killed runner left behind, so many are named.
const MAX_NAMED_HEIRS: usize = 4;
/// A lock file's text is a line; more is not read.
const TEXT_LIMIT_BYTES: u64 = 4096;

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else has it.
    #[error("{path} is held by {holder}", path = path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// What the holder wrote into it: `pid 4711 (run)`.
        holder: String,
    },
    /// The file cannot be used.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The writer's lock of a directory; given back when dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    file: File,
}

impl DirectoryLock {
    /// Takes the lock, waiting up to `wait` for whoever has it.
    ///
    /// # Errors
    /// [`LockError::Held`] with the holder's pid and verb.
    pub fn take(root: &Path, verb: &str, wait: Duration) -> Result<DirectoryLock, LockError> {
        let path = root.join("lock");
        match take(&path, verb, Duration::ZERO) {
            Err(LockError::Held { .. }) if !wait.is_zero() => {
                let _waiting = Waiting::announce(root)?;
                Ok(DirectoryLock { file: take(&path, verb, wait)? })
            }
            taken => Ok(DirectoryLock { file: taken? }),
        }
    }

    /// Says of the holder what is given, in place of the verb alone.
    pub(super) fn say(&mut self, root: &Path, text: &str) -> Result<(), LockError> {
        write_holder(&mut self.file, text).map_err(|source| LockError::Io { path: root.join("lock"), source })
    }

    /// Whether another process waits for the lock.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn is_wanted(root: &Path) -> Result<bool, LockError> {
        let path = root.join("lock.wait");
        let file = open(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(LockError::Io { path, source: error.into() }),
        }
    }

    /// Gives the lock to whoever waits: released, and left alone for long enough that a waiting process takes it.
    pub fn give_way(self) {
        drop(self);
        std::thread::sleep(3 * LOOK_AGAIN);
    }

    /// Who has the directory's lock now, if anybody.
    ///
    /// # Errors
    /// When the lock file cannot be read.
    pub fn holder(root: &Path) -> Result<Option<String>, LockError> {
        match take(&root.join("lock"), "", Duration::ZERO) {
            Ok(_) => Ok(None),
            Err(LockError::Held { holder, .. }) => Ok(Some(holder)),
            Err(LockError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A server that has a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAt {
    /// Where it speaks Kafka's protocol: `127.0.0.1:9092`.
    pub kafka: String,
    /// Where it speaks HTTP, if it does.
    pub http: Option<String>,
}

impl ServerAt {
    /// What a server says in the lock file.
    pub fn to_text(&self) -> String {
        let http = self.http.as_ref().map_or_else(String::new, |http| format!(", http at {http}"));
        format!("serve, listens at {}{http}", self.kafka)
    }

    /// The server that has a directory, if one does and says so.
    ///
    /// # Errors
    /// When the lock file cannot be read.
    pub fn of(root: &Path) -> Result<Option<ServerAt>, LockError> {
        let path = root.join("lock");
        Ok(holder_of(&path)?.as_deref().and_then(ServerAt::in_text))
    }

    fn in_text(text: &str) -> Option<ServerAt> {
        let (_, words) = text.strip_suffix(')')?.split_once(" (serve, listens at ")?;
        let (kafka, http) = match words.split_once(", http at ") {
            Some((kafka, http)) => (kafka, Some(http.to_owned())),
            None => (words, None),
        };
        Some(ServerAt { kafka: kafka.to_owned(), http })
    }
}

/// What a server's HTTP side asks of whoever changes something, for those who may read the directory's files as its owner.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    /// Writes it beside the lock, which must be held; it is removed when this is dropped.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(root: &Path, token: &str) -> Result<TokenFile, LockError> {
        let path = root.join("lock.token");
        let io = |source| LockError::Io { path: path.clone(), source };
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
        // Made anew, so that its mode is ours from the first byte on, whoever made one before.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(io)?;
        file.write_all(token.as_bytes()).map_err(io)?;
        Ok(TokenFile { path })
    }

    /// The token of the server that has the directory.
    ///
    /// # Errors
    /// When there is none, or it is not ours to read.
    pub fn read(root: &Path) -> Result<String, LockError> {
        let path = root.join("lock.token");
        let mut text = String::new();
        let read = File::open(&path).and_then(|file| file.take(TEXT_LIMIT_BYTES).read_to_string(&mut text));
        read.map_err(|source| LockError::Io { path, source })?;
        Ok(text)
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        // What is left behind opens nothing: the next server has another token.
        let _left = std::fs::remove_file(&self.path);
    }
}

/// Says that this process waits for a directory's lock, for as long as it lives.
#[derive(Debug)]
struct Waiting {
    _file: File,
}

impl Waiting {
    fn announce(root: &Path) -> Result<Waiting, LockError> {
        let path = root.join("lock.wait");
        let file = open(&path)?;
        // Whoever looks whether somebody waits holds it for a moment only.
        flock(&file, FlockOperation::LockShared)
            .map_err(|error| LockError::Io { path, source: error.into() })?;
        Ok(Waiting { _file: file })
    }
}

/// A group's runner lock, whose descriptor goes to the handler process, too.
#[derive(Debug)]
pub struct HandlerLock {
    file: File,
}

impl HandlerLock {
    /// Takes a group's lock for a verb, waiting up to `wait` for an old handler to end.
    ///
    /// # Errors
    /// [`LockError::Held`] with the pid of the runner that had it.
    pub fn take(root: &Path, group: &str, verb: &str, wait: Duration) -> Result<HandlerLock, LockError> {
        let dir = root.join("handlers");
        let made = || {
            std::fs::create_dir_all(&dir).map_err(|source| LockError::Io { path: dir.clone(), source })?;
            take(&dir.join(file_name(group)), verb, wait)
        };
        match made() {
            // The reserve is there so that offsets can be saved on a full disk, and that begins with this lock.
            Err(LockError::Io { source, .. }) if source.kind() == ErrorKind::StorageFull => {
                let reserve = root.join("reserve");
                std::fs::remove_file(&reserve).map_err(|source| LockError::Io { path: reserve, source })?;
                Ok(HandlerLock { file: made()? })
            }
            taken => Ok(HandlerLock { file: taken? }),
        }
    }

    /// Who has a group's lock now: what the holder wrote into it. `None` if it is free. Nothing is made or written.
    ///
    /// # Errors
    /// When the lock file is there and cannot be used.
    pub fn holder(root: &Path, group: &str) -> Result<Option<String>, LockError> {
        holder_of(&root.join("handlers").join(file_name(group)))
    }

    /// A descriptor of the same lock, for a child to inherit: the lock is held until all of them are closed.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn share(&self) -> std::io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }
}

/// Who has a lock: what the holder wrote into its file. Nothing is made or written.
fn holder_of(path: &Path) -> Result<Option<String>, LockError> {
    let io = |source| LockError::Io { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(io(source)),
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(None),
        Err(rustix::io::Errno::WOULDBLOCK) => read_holder(file).map(Some).map_err(io),
        Err(error) => Err(io(error.into())),
    }
}

fn take(path: &Path, verb: &str, wait: Duration) -> Result<File, LockError> {
    let io = |source| LockError::Io { path: path.to_owned(), source };
    let mut file = open(path)?;
    let deadline = Instant::now() + wait;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(LOOK_AGAIN),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let holder = read_holder(file).map_err(io)?;
                return Err(LockError::Held { path: path.to_owned(), holder });
            }
            Err(error) => return Err(io(error.into())),
        }
    }
    if !verb.is_empty() {
        write_holder(&mut file, verb).map_err(io)?;
    }
    Ok(file)
}

fn write_holder(file: &mut File, verb: &str) -> std::io::Result<()> {
    let written = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| write!(file, "pid {} ({verb})", std::process::id()));
    // The text is for people, and a short cut for verbs; on a full disk the lock is held without it.
    written.or_else(|error| if error.kind() == ErrorKind::StorageFull { Ok(()) } else { Err(error) })
}

/// What the holder of a lock wrote into its file; and if it is gone, whom it left behind with the lock.
fn read_holder(mut file: File) -> std::io::Result<String> {
    let mut text = String::new();
    (&mut file).take(TEXT_LIMIT_BYTES).read_to_string(&mut text)?;
    let text = text.trim();
    if text.is_empty() {
        return Ok("another process".to_owned());
    }
    Ok(left_behind(&file, text).unwrap_or_else(|| text.to_owned()))
}

/// `pid 4711 (run, gone; its handler, pid 4712, works on)`. `None` if the writer of the text still has the lock, and where
/// it cannot be seen who has a file open.
fn left_behind(file: &File, text: &str) -> Option<String> {
    let (pid, verb) = text.strip_prefix("pid ")?.strip_suffix(')')?.split_once(" (")?;
    let proc = Path::new("/proc");
    let name = std::fs::read_link(proc.join("self/fd").join(file.as_raw_fd().to_string())).ok()?;
    let has_it = |pid: &str| -> std::io::Result<bool> {
        let descriptors = std::fs::read_dir(proc.join(pid).join("fd"))?;
        Ok(descriptors.flatten().any(|fd| std::fs::read_link(fd.path()).is_ok_and(|link| link == name)))
    };
    match has_it(pid) {
        Ok(false) => {}
        Ok(true) => return None,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        // Another user's process cannot be looked into: it may well have it.
        Err(_) => return None,
    }
    let own = std::process::id().to_string();
    let pids =
        std::fs::read_dir(proc).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut heirs: Vec<u32> = pids
        .filter(|pid| *pid != own && pid.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|pid| has_it(pid).unwrap_or(false))
        .filter_map(|pid| pid.parse().ok())
        .collect();
    heirs.sort_unstable();
    heirs.truncate(MAX_NAMED_HEIRS);
    let heirs: Vec<String> = heirs.iter().map(|pid| format!("pid {pid}")).collect();
    let whose = match heirs.len() {
        0 => return None,
        1 => "its handler",
        _ => "its handlers",
    };
    let work = if heirs.len() == 1 { "works" } else { "work" };
    Some(format!("pid {pid} ({verb}, gone; {whose}, {}, {work} on)", heirs.join(" and ")))
}

fn open(path: &Path) -> Result<File, LockError> {
    let mut options = OpenOptions::new();
    // A link is not followed: the text of the lock would go into whatever it leads to.
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    options.read(true).write(true).create(true).truncate(false).custom_flags(no_follow);
    options.open(path).map_err(|source| LockError::Io { path: path.to_owned(), source })
}

/// A file name for any group name: what is not a plain character is written as `%xx`, and a long name ends in a checksum.
fn file_name(group: &str) -> String {
    const LONGEST: usize = 200;
    let mut name = String::new();
    for byte in group.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            other => name.push_str(&format!("%{other:02x}")),
        }
    }
    if name.len() > LONGEST {
        let sum = leftoff_wire::crc32c(group.as_bytes());
        name.truncate(LONGEST);
        name.push_str(&format!("~{sum:08x}"));
    }
    name + ".lock"
}
