//! How verbs reach a data directory: as its one writer, or beside whoever writes it; and what failures become.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leftoff::store::{LockError, OpenOptions, ReadError, Store, StoreError};
use leftoff_engine::broker::directory::{self, Found};
use leftoff_engine::broker::{BrokerConfig, OpenError, Refusal, Topic, View};
use leftoff_engine::coordinator::{CommitError, GroupError};
use leftoff_engine::disk::Disk;
use leftoff_engine::disk::os::{FilesystemKind, OsDisk};
use leftoff_engine::log::LogError;

use super::args::Global;
use super::failure::Failure;
use super::nearest::did_you_mean;

/// Some verbs look more than once; a person is told once.
static TOLD_OF_MOMENTS: AtomicBool = AtomicBool::new(false);

/// How long a verb waits for another writer by default: `run` and `produce` give way within a moment.
pub const WAIT_FOR_LOCK: Duration = Duration::from_secs(5);

/// Opens the directory as its writer, making it if there is none. Says on stderr what the start found.
///
/// # Errors
/// Exit 3 if another process writes it, 4 if it is somebody else's, 5 if it is damaged.
pub fn open_writer(global: &Global, verb: &str) -> Result<Store, Failure> {
    open_writer_with(global, verb, BrokerConfig::default())
}

/// The same with settings of the broker.
///
/// # Errors
/// As [`open_writer`].
pub fn open_writer_with(global: &Global, verb: &str, broker: BrokerConfig) -> Result<Store, Failure> {
    if global.data.exists() && !global.data.is_dir() {
        return Err(not_a_directory(&global.data));
    }
    warn_of_filesystem(global, &global.data);
    let wait_for_lock = global.timeout.unwrap_or(WAIT_FOR_LOCK);
    let options = OpenOptions { verb: verb.to_owned(), wait_for_lock, broker, ..OpenOptions::default() };
    let store = Store::open(&global.data, &options).map_err(|error| from_store(&global.data, error))?;
    let recovered = store.recovered();
    if recovered.cut_bytes > 0 {
        let cut = recovered.cut_bytes;
        note(
            global,
            &format!("the last stop left {cut} bytes that were never acknowledged; they were cut off"),
        );
    }
    for path in &recovered.set_aside {
        let path = path.display();
        note(
            global,
            &format!("a folder that no topic claims was moved to {path} in {}", global.data.display()),
        );
    }
    for damage in &recovered.damaged {
        note(global, &format!("damaged: {damage}; see `leftoff doctor`"));
    }
    Ok(store)
}

/// Opens a directory that must exist as its writer.
///
/// # Errors
/// As [`open_writer`]; exit 3 if there is no directory.
pub fn open_existing(global: &Global, verb: &str) -> Result<Store, Failure> {
    if !global.data.exists() {
        return Err(no_data(&global.data));
    }
    open_writer(global, verb)
}

/// Looks whether the directory is ours, without opening it.
///
/// # Errors
/// Exit 3 if there is no data, 4 if it is somebody else's.
pub fn check_ours(global: &Global) -> Result<(), Failure> {
    match directory::inspect(&disk(&global.data)?) {
        Ok(Found::Ours { .. }) => Ok(()),
        Ok(Found::Empty) => Err(no_data(&global.data)),
        Err(error) => Err(from_open(&global.data, error.into())),
    }
}

/// Reads the directory beside whoever writes it.
///
/// # Errors
/// Exit 3 if there is no data, 4 if it is somebody else's, 5 if it is damaged.
pub fn open_view(global: &Global) -> Result<View, Failure> {
    let view = View::open(&disk(&global.data)?).map_err(|error| from_open(&global.data, error))?;
    if !view.is_of_one_moment() && !TOLD_OF_MOMENTS.swap(true, Ordering::SeqCst) {
        note(
            global,
            "warning: the last writer was stopped in the midst of a save, so some partitions may be shown as they were \
             a moment before others; the next verb that writes settles it",
        );
    }
    Ok(view)
}

/// The disk of an existing directory.
///
/// # Errors
/// Exit 3 if there is none.
pub fn disk(data: &Path) -> Result<Arc<dyn Disk>, Failure> {
    match OsDisk::open(data) {
        Ok(disk) => Ok(Arc::new(disk)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(no_data(data)),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Err(not_a_directory(data)),
        Err(error) => Err(Failure::cannot_reach(format!("cannot open {}: {error}", data.display()))),
    }
}

/// A topic by name, or a failure that names the nearest one.
///
/// # Errors
/// Exit 3.
pub fn find_topic<'a>(
    mut topics: impl Iterator<Item = &'a Topic> + Clone,
    name: &str,
) -> Result<Topic, Failure> {
    if let Some(topic) = topics.clone().find(|topic| topic.name == name) {
        return Ok(topic.clone());
    }
    let failure = Failure::cannot_reach(format!("there is no topic {name:?}"));
    Err(match did_you_mean(name, topics.clone().map(|topic| topic.name.as_str())) {
        Some(hint) => failure.hint(hint),
        None if topics.next().is_none() => {
            failure.hint(format!("there is none yet; `leftoff produce {name}` makes it"))
        }
        None => failure.hint("`leftoff topics ls` lists them"),
    })
}

/// A remark for a person, on stderr; nothing with `-q`.
pub fn note(global: &Global, text: &str) {
    if !global.quiet {
        super::notes::say(text);
    }
}

/// What a store's error means to a person.
pub fn from_store(data: &Path, error: StoreError) -> Failure {
    match error {
        StoreError::Lock(LockError::Held { holder, .. }) => {
            Failure::cannot_reach(format!("{} is being written by {holder}", data.display()))
                .hint("one process writes a directory at a time; wait for it with --timeout 1m, or stop it")
        }
        StoreError::GroupInUse { .. } => Failure::refused(error.to_string())
            .hint("one process works for a group at a time; stop it first, or use another group"),
        StoreError::Open(error) => from_open(data, error),
        StoreError::Refused(refusal) => from_refusal(refusal),
        StoreError::Read(ReadError::Log(error)) | StoreError::Log(error) => from_log(&error),
        StoreError::Read(error) => damaged(error.to_string()),
        error @ (StoreError::Lock(LockError::Io { .. }) | StoreError::Io { .. }) => {
            Failure::storage(error.to_string()).because(error)
        }
    }
}

/// What an error of opening means to a person.
pub fn from_open(data: &Path, error: OpenError) -> Failure {
    let at = data.display();
    match error {
        OpenError::Empty => no_data(data),
        OpenError::Directory(error) => Failure::refused(format!("{at}: {error}")),
        error => Failure::storage(format!("{at}: {error}")).because(error),
    }
}

/// What a refusal means to a person.
pub fn from_refusal(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::UnknownTopic(name) => Failure::cannot_reach(format!("there is no topic {name:?}"))
            .hint("`leftoff topics ls` lists them"),
        Refusal::UnknownPartition(_) => Failure::cannot_reach(refusal.to_string()),
        Refusal::TopicExists(_)
        | Refusal::InvalidTopic { .. }
        | Refusal::InvalidPartitions { .. }
        | Refusal::Setting(_)
        | Refusal::TooManyKept { .. }
        | Refusal::OutOfRange { .. }
        | Refusal::ProducerId { .. }
        | Refusal::Sequence(_) => Failure::usage(refusal.to_string()),
        Refusal::TooLarge { .. } => Failure::usage(refusal.to_string())
            .hint("raise it with `leftoff topics alter TOPIC -c max.message.bytes=…`"),
        Refusal::Commit(CommitError::Group(GroupError::MemberPresent { .. }))
        | Refusal::Group(GroupError::MemberPresent { .. }) => {
            Failure::refused(refusal.to_string()).hint("stop the runner first")
        }
        Refusal::Commit(_) | Refusal::Group(_) => Failure::refused(refusal.to_string()),
        Refusal::DiskFull(_) => Failure::storage(refusal.to_string())
            .hint("free some space; reading and saving offsets go on, nothing acknowledged is lost"),
        Refusal::Log(error) => from_log(&error),
        Refusal::Latched(_) => Failure::storage(refusal.to_string()),
    }
}

fn from_log(error: &LogError) -> Failure {
    match error {
        LogError::OutOfRange { .. } => Failure::usage(error.to_string()),
        LogError::Damaged { .. } | LogError::MarkDamaged { .. } => damaged(error.to_string()),
        error => Failure::storage(error.to_string()),
    }
}

fn damaged(what: String) -> Failure {
    Failure::storage(what).hint("`leftoff doctor` tells what is damaged and what can be done")
}

fn not_a_directory(data: &Path) -> Failure {
    Failure::cannot_reach(format!("{} is not a directory", data.display())).hint("--data names a directory")
}

fn no_data(data: &Path) -> Failure {
    Failure::cannot_reach(format!("there is no data in {}", data.display()))
        .hint("`leftoff produce TOPIC` makes it; another directory is named with --data or LEFTOFF_DATA")
}

/// Warns where what is written to `path` may not last.
pub fn warn_of_filesystem(global: &Global, path: &Path) {
    let existing = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    match OsDisk::filesystem_kind(existing) {
        Ok(FilesystemKind::Memory) => {
            note(
                global,
                &format!(
                    "warning: {} is in memory: nothing in it survives a restart of the machine",
                    path.display()
                ),
            );
        }
        Ok(FilesystemKind::Network(name)) => {
            note(
                global,
                &format!(
                    "warning: {} is on a network file system ({name}): whether a sync reaches the disk is up to it",
                    path.display()
                ),
            );
        }
        Ok(FilesystemKind::Local) => {}
        // Only a warning depends on it.
        Err(_) => {}
    }
}
