//! What a data directory is: making one, and telling ours from anybody else's before anything is touched.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use leftoff_wire::Uuid;

use crate::disk::{Disk, OpenHow};

/// The format that this version writes.
pub const FORMAT: u32 = 1;
/// The file whose presence makes a directory ours.
pub const META_PROPERTIES: &str = "meta.properties";
/// Where things go that recovery or a repair took out of the way.
pub const ASIDE: &str = "aside";
/// Names in the directory that are the shell's business, not the engine's.
const NOT_OURS_TO_JUDGE: [&str; 6] = ["lock", "lock.token", "lock.wait", "handlers", ASIDE, "lost+found"];
/// `meta.properties` is a few lines; whatever is longer is something else.
const META_LIMIT_BYTES: u64 = 64 * 1024;

/// What a directory turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing in it that matters: it can become ours.
    Empty,
    /// Ours, with its cluster id.
    Ours {
        /// The cluster id.
        cluster_id: Uuid,
    },
}

/// Why a directory is not opened.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// It belongs to Apache Kafka.
    #[error(
        "this directory was written by Apache Kafka ({META_PROPERTIES} has {key}={value}); Leftoff does not open it, choose another directory"
    )]
    ApacheKafka {
        /// The key that gave it away.
        key: String,
        /// Its value.
        value: String,
    },
    /// It has things in it that are not ours.
    #[error(
        "this directory is not empty and not Leftoff's: it has {name:?} and no {META_PROPERTIES}; choose an empty or new directory"
    )]
    Foreign {
        /// One thing that is in it.
        name: String,
    },
    /// A format of a later version.
    #[error(
        "{META_PROPERTIES} says leftoff.format={found}; this version reads format {FORMAT}; use the version of leftoff that wrote it"
    )]
    Format {
        /// What it says.
        found: String,
    },
    /// `meta.properties` cannot be understood.
    #[error("{META_PROPERTIES} is damaged: {what}; run `leftoff doctor`")]
    Damaged {
        /// How.
        what: String,
    },
    /// The disk failed.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Looks at a directory without changing it.
///
/// # Errors
/// [`DirectoryError`] when it is somebody else's, of a later format, or damaged.
pub fn inspect(disk: &Arc<dyn Disk>) -> Result<Found, DirectoryError> {
    let path = Path::new(META_PROPERTIES);
    if disk.metadata(path).map_err(io(path))?.is_none() {
        let entries = disk.list(Path::new("")).map_err(io(Path::new("")))?;
        // What an interrupted creation leaves behind is ours to use again; META_PROPERTIES comes last.
        let leftovers = ["marks", "reserve", "meta.properties.tmp", METADATA_DIR, OFFSETS_DIR];
        let foreign = entries
            .into_iter()
            .find(|entry| !NOT_OURS_TO_JUDGE.contains(&&*entry.name) && !leftovers.contains(&&*entry.name));
        return match foreign {
            Some(entry) => Err(DirectoryError::Foreign { name: entry.name }),
            None => Ok(Found::Empty),
        };
    }
    let text = read_small(disk, path)?;
    let mut properties =
        text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    let get = |wanted: &str| {
        text.lines()
            .filter_map(|line| line.split_once('='))
            .find(|(key, _)| key.trim() == wanted)
            .map(|(_, v)| v.trim())
    };
    let Some(format) = get("leftoff.format") else {
        return match properties.find(|(key, _)| matches!(key.trim(), "node.id" | "broker.id")) {
            Some((key, value)) => Err(DirectoryError::ApacheKafka {
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
            }),
            None => Err(DirectoryError::Damaged { what: "it has no leftoff.format".to_owned() }),
        };
    };
    if format.parse() != Ok(FORMAT) {
        return Err(DirectoryError::Format { found: format.to_owned() });
    }
    let id = get("cluster.id").unwrap_or_default();
    let cluster_id = id.parse().map_err(|_| DirectoryError::Damaged {
        what: format!("cluster.id={id} is not an id of 22 characters"),
    })?;
    Ok(Found::Ours { cluster_id })
}

/// The folder of the metadata log.
pub const METADATA_DIR: &str = "__leftoff_metadata-0";
/// The folder of the offsets log.
pub const OFFSETS_DIR: &str = "__consumer_offsets-0";

/// Writes `meta.properties`, the last step of making a directory.
///
/// # Errors
/// When the disk fails.
pub fn write_meta(disk: &Arc<dyn Disk>, cluster_id: Uuid) -> Result<(), DirectoryError> {
    let text = format!("leftoff.format={FORMAT}\ncluster.id={cluster_id}\n");
    let path = Path::new(META_PROPERTIES);
    write_whole(disk, path, text.as_bytes()).map_err(io(path))
}

/// Replaces a small file in one step: temporary file, sync, rename, sync of the folder.
///
/// # Errors
/// When the disk fails.
pub fn write_whole(disk: &Arc<dyn Disk>, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    let file = disk.open(&temporary, OpenHow::CreateOrTruncate)?;
    file.write_all_at(bytes, 0)?;
    file.sync_data()?;
    disk.rename(&temporary, path)?;
    disk.sync_dir(path.parent().unwrap_or(Path::new("")))
}

fn read_small(disk: &Arc<dyn Disk>, path: &Path) -> Result<String, DirectoryError> {
    let file = disk.open(path, OpenHow::Read).map_err(io(path))?;
    let len = file.len().map_err(io(path))?;
    if len > META_LIMIT_BYTES {
        return Err(DirectoryError::Damaged { what: format!("it has {len} bytes") });
    }
    let mut bytes = vec![0; len as usize];
    let got = file.read_at(&mut bytes, 0).map_err(io(path))?;
    bytes.truncate(got);
    String::from_utf8(bytes).map_err(|_| DirectoryError::Damaged { what: "it is not text".to_owned() })
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |source| DirectoryError::Io { path, source }
}
