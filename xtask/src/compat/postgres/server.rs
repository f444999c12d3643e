//! A PostgreSQL server of the judge's own: in a temporary folder, on a socket there, without a network.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

/// Longer than a start after a kill takes.
const START: Duration = Duration::from_secs(60);
/// The ids of Debian's `nobody` and `nogroup`: PostgreSQL does not run as root.
const NOBODY: u32 = 65_534;
const USUAL_PORT: u16 = 5432;

/// The server and where it lives.
pub struct Server {
    programs: PathBuf,
    folder: PathBuf,
    /// Part of the name of its socket.
    port: u16,
    /// What it is started with beside that.
    settings: Vec<String>,
    child: Option<Child>,
}

impl Server {
    /// Where PostgreSQL's programs are; installed by the system's package client if they are missing. The inner error says
    /// why they are not there.
    pub fn programs() -> anyhow::Result<Result<PathBuf, String>> {
        if let Some(found) = find() {
            return Ok(Ok(found));
        }
        let apt_get = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
            command.stdout(Stdio::null()).status()
        };
        // Lists of packages that are old do not keep it from trying.
        let _ = apt_get(&["update", "-qq"]);
        let install = apt_get(&["install", "-y", "-qq", "postgresql"]);
        match (install, find()) {
            (_, Some(found)) => Ok(Ok(found)),
            (status, None) => {
                Ok(Err(format!("there is no PostgreSQL, and apt-get install postgresql gave {status:?}")))
            }
        }
    }

    /// Makes a database cluster below `folder` and starts it.
    pub fn start(programs: PathBuf, folder: &Path) -> anyhow::Result<Server> {
        let folder = folder.join("server");
        fs::create_dir(&folder).context("cannot make the server's folder")?;
        if is_root() {
            chown(&folder, Some(NOBODY), Some(NOBODY)).context("cannot give the folder to nobody")?;
            let above = folder.parent().context("the folder is in another")?;
            fs::set_permissions(above, fs::Permissions::from_mode(0o755))
                .context("cannot open the folder")?;
        }
        let settings = vec!["listen_addresses=".to_owned()];
        let server = Server { programs, folder, port: USUAL_PORT, settings, child: None };
        let data = server.data();
        let made = server
            .command("initdb")
            .args(["--username=judge", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync", "-D"])
            .arg(&data)
            .output()
            .context("cannot run initdb")?;
        ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        // Only one role has a password. Over the network nobody gets in without TLS.
        let access =
            "local all guarded scram-sha-256\nlocal all all trust\nhostssl all all 127.0.0.1/32 trust\n";
        fs::write(data.join("pg_hba.conf"), access).context("cannot write pg_hba.conf")?;
        let mut server = server;
        server.start_again()?;
        Ok(server)
    }

    /// Starts it anew on a port of this machine, with TLS if there is a certificate (`PATH.crt` and `PATH.key`). The port.
    pub fn listen(&mut self, certificate: Option<&Path>) -> anyhow::Result<u16> {
        self.end("-QUIT")?;
        self.settings = vec!["listen_addresses=127.0.0.1".to_owned()];
        if let Some(path) = certificate {
            let data = self.data();
            for (ending, name) in [("crt", "server.crt"), ("key", "server.key")] {
                let to = data.join(name);
                fs::copy(path.with_extension(ending), &to).context("cannot copy a certificate")?;
                fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).context("cannot close a file")?;
                if is_root() {
                    chown(&to, Some(NOBODY), Some(NOBODY)).context("cannot give a file to nobody")?;
                }
            }
            self.settings.push("ssl=on".to_owned());
        }
        // PostgreSQL takes no port 0: one that is free now.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        self.port = free.context("no free port")?.port();
        self.start_again()?;
        Ok(self.port)
    }

    /// Starts it anew, without a network.
    pub fn hide(&mut self) -> anyhow::Result<()> {
        self.end("-QUIT")?;
        (self.port, self.settings) = (USUAL_PORT, vec!["listen_addresses=".to_owned()]);
        self.start_again()
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The folder of its socket.
    pub fn socket(&self) -> &Path {
        &self.folder
    }

    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    /// Starts the server on what is there. What a killed one has left in memory may have to end first.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        while began.elapsed() < START {
            let log = fs::File::create(self.folder.join("log")).context("cannot make the server's log")?;
            let mut command = self.command("postgres");
            command.arg("-D").arg(self.data()).arg("-k").arg(&self.folder);
            command.args(["-p", &self.port.to_string()]);
            command.args(self.settings.iter().flat_map(|setting| ["-c", setting.as_str()]));
            command.stdout(log.try_clone().context("cannot share the server's log")?).stderr(log);
            self.child = Some(command.spawn().context("cannot start postgres")?);
            while !self.has_ended()? && began.elapsed() < START {
                if self.sql("SELECT 1").is_ok() {
                    return Ok(());
                }
            }
        }
        bail!("postgres does not start: {}", fs::read_to_string(self.folder.join("log")).unwrap_or_default())
    }

    fn has_ended(&mut self) -> anyhow::Result<bool> {
        let child = self.child.as_mut().context("the server was started")?;
        Ok(child.try_wait().context("cannot wait for postgres")?.is_some())
    }

    /// Ends the server at once: `-KILL` as a crash would, `-QUIT` as an operator in a hurry.
    pub fn end(&mut self, signal: &str) -> anyhow::Result<()> {
        let mut child = self.child.take().context("the server runs")?;
        super::signal(signal, child.id())?;
        child.wait().context("cannot wait for postgres")?;
        Ok(())
    }

    /// What a statement prints, without decoration.
    pub fn sql(&self, sql: &str) -> anyhow::Result<String> {
        let output = self.psql(sql)?;
        ensure!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn psql(&self, sql: &str) -> anyhow::Result<Output> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "judge",
            "-d",
            "postgres",
            "-c",
            sql,
            "-h",
        ]);
        psql.arg(&self.folder).args(["-p", &self.port.to_string()]).output().context("cannot run psql")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It is the judge's own, and its folder goes next.
            let _ = super::signal("-QUIT", child.id());
            let _ = child.wait();
        }
    }
}

/// The newest of Debian's folders, or that of the `PATH`.
fn find() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    versions.sort();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut all = versions.into_iter().rev().chain(std::env::split_paths(&paths));
    all.find(|folder| ["postgres", "initdb", "psql"].iter().all(|program| folder.join(program).exists()))
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;

    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
