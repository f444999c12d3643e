//! Between a runner and the server: a socket that passes all on, and now and then cuts a connection around a `COMMIT`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context as _;

/// `COMMIT` as a simple query.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
/// Making the tables, and the claim.
const FIRST: usize = 2;
/// Each so many commits one is cut.
const EVERY: usize = 20;

/// The proxy, until the judge's process ends.
pub struct Proxy {
    folder: PathBuf,
    commits: Arc<AtomicUsize>,
}

impl Proxy {
    /// Listens in `folder`, for the server whose socket is in `server`.
    pub fn start(folder: PathBuf, server: &Path) -> anyhow::Result<Proxy> {
        fs::create_dir(&folder).context("cannot make the proxy's folder")?;
        let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).context("cannot listen")?;
        let commits = Arc::new(AtomicUsize::new(0));
        let (seen, server) = (commits.clone(), server.join(".s.PGSQL.5432"));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (seen, server) = (seen.clone(), server.clone());
                // A failure ends the connection, which is what the other side is to see.
                std::thread::spawn(move || {
                    UnixStream::connect(server).and_then(|server| pass(&client, &server, &seen))
                });
            }
        });
        Ok(Proxy { folder, commits })
    }

    /// The folder of its socket.
    pub fn socket(&self) -> &Path {
        &self.folder
    }

    /// How many connections it has cut.
    pub fn cuts(&self) -> usize {
        self.commits.load(Ordering::SeqCst).saturating_sub(FIRST) / EVERY
    }
}

/// Passes all on, until one side ends or a commit is to be cut: before it is sent, after it was answered, or at once.
fn pass(client: &UnixStream, server: &UnixStream, commits: &AtomicUsize) -> std::io::Result<()> {
    let (mut from, mut to) = (server.try_clone()?, client.try_clone()?);
    let answers = std::thread::spawn(move || {
        // The other side may be gone.
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut reader, mut writer) = (client, server);
    let mut buffer = [0; 65_536];
    loop {
        let bytes = match reader.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(bytes) => &buffer[..bytes],
        };
        if bytes.ends_with(COMMIT) {
            let number = (commits.fetch_add(1, Ordering::SeqCst) + 1).saturating_sub(FIRST);
            if number > 0 && number.is_multiple_of(EVERY) {
                match number / EVERY % 3 {
                    0 => {}
                    1 => {
                        // Nobody hears the answer, which comes.
                        client.shutdown(Shutdown::Write)?;
                        writer.write_all(bytes)?;
                        writer.shutdown(Shutdown::Write)?;
                    }
                    _ => writer.write_all(bytes)?,
                }
                break;
            }
        }
        writer.write_all(bytes)?;
    }
    // One of them is shut by now.
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    answers.join().expect("it does not panic");
    Ok(())
}
