//! Encrypted connections to a server with a certificate that is made here: who is believed, who is refused, and what is said.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::{EVENTS, Judge};

impl Judge {
    /// A server that takes nothing in clear over the network, then one without TLS.
    pub(super) fn encrypted(&mut self) -> anyhow::Result<()> {
        self.make_table("encrypted")?;
        let made = Certificates::make(&self.folder.join("tls"))?;
        let port = self.server.listen(Some(&made.server()))?;
        let ca = made.path("ca.crt");
        let at = |host: &str, more: &str| {
            let more = if more.is_empty() { String::new() } else { format!("?{more}") };
            format!("postgres://judge@{host}:{port}/postgres{more}")
        };
        let far = |name: &str, more: &str| at(name, &format!("hostaddr=127.0.0.1&{more}"));
        let (named, other) = (format!("sslrootcert={ca}"), format!("sslrootcert={}", made.path("other.crt")));

        // Nobody has to say anything on this machine; elsewhere the server must be known.
        self.ends("encrypted", &at("localhost", ""), 0, "nothing left")?;
        let counted =
            self.server.sql("SELECT sum(next) FROM leftoff_offsets WHERE \"group\" = 'encrypted'")?;
        let is_all = counted.parse::<usize>().is_ok_and(|next| next >= EVENTS);
        self.expect("encrypted", is_all, &format!("{counted} events were handled"));
        for (place, code, with) in [
            (at("localhost", "sslmode=disable"), 3, "no encryption"),
            (far("db.example", &named), 0, "nothing left"),
            (far("db.example", "sslmode=verify-full"), 3, "sslrootcert=FILE"),
            (far("db.example", "sslmode=verify-ca"), 3, "name its file with sslrootcert=FILE"),
            (far("db.example", &other), 3, "sslrootcert=FILE"),
            (far("elsewhere.example", &named), 3, "subjectAltName"),
            (at("127.0.0.1", &named), 3, "subjectAltName"),
            (far("elsewhere.example", &format!("sslmode=verify-ca&{named}")), 0, "nothing left"),
            (far("elsewhere.example", &format!("sslmode=verify-ca&{other}")), 3, "sslrootcert=FILE"),
            (far("elsewhere.example", "sslmode=require"), 0, "nothing left"),
            (far("elsewhere.example", &format!("sslmode=require&{other}")), 3, "sslrootcert=FILE"),
            (far("db.example", "sslrootcert=/nowhere/ca.crt"), 3, "cannot read sslrootcert /nowhere/ca.crt"),
            (far("db.example", &format!("sslrootcert={}", made.path("ca.key"))), 3, "holds no certificate"),
        ] {
            self.ends("encrypted", &place, code, with)?;
        }
        // A certificate that is its own authority.
        let port = self.server.listen(Some(&made.alone()))?;
        let alone = made.path("alone.crt");
        for (name, code, with) in
            [("db.example", 0, "nothing left"), ("elsewhere.example", 3, "subjectAltName")]
        {
            let place =
                format!("postgres://judge@{name}:{port}/postgres?hostaddr=127.0.0.1&sslrootcert={alone}");
            self.ends("encrypted", &place, code, with)?;
        }
        let place = format!("postgres://judge@db.example:{port}/postgres?hostaddr=127.0.0.1&{named}");
        self.ends("encrypted", &place, 3, "sslrootcert=FILE")?;

        let port = self.server.listen(None)?;
        for more in [&format!("hostaddr=127.0.0.1&{named}"), "hostaddr=127.0.0.1&sslmode=require"] {
            let place = format!("postgres://judge@db.example:{port}/postgres?{more}");
            self.ends("encrypted", &place, 3, "the server has no TLS")?;
        }
        self.server.hide()?;
        self.audit("encrypted")
    }
}

/// Keys and certificates, made by `openssl`.
struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    fn make(folder: &Path) -> anyhow::Result<Certificates> {
        fs::create_dir(folder).context("cannot make a folder for certificates")?;
        let made = Certificates { folder: folder.to_owned() };
        let names = "subjectAltName=DNS:db.example,DNS:localhost";
        for (name, subject) in [("ca", "/CN=an authority"), ("other", "/CN=an authority")] {
            made.openssl(
                &format!("req -x509 -newkey rsa:2048 -nodes -days 2 -keyout {name}.key -out {name}.crt"),
                &["-subj", subject],
            )?;
        }
        made.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout alone.key -out alone.crt",
            &["-subj", "/CN=db.example", "-addext", names],
        )?;
        made.openssl(
            "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -out server.csr",
            &["-subj", "/CN=db.example"],
        )?;
        fs::write(made.folder.join("names"), names).context("cannot write the names")?;
        made.openssl(
            "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out server.crt -extfile names",
            &[],
        )?;
        Ok(made)
    }

    fn openssl(&self, line: &str, more: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new("openssl");
        command.args(line.split(' ')).args(more).current_dir(&self.folder);
        let ended = command.output().context("cannot run openssl")?;
        ensure!(ended.status.success(), "openssl {line}: {}", String::from_utf8_lossy(&ended.stderr));
        Ok(())
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// A certificate that the authority signed, without its ending.
    fn server(&self) -> PathBuf {
        self.folder.join("server")
    }

    fn alone(&self) -> PathBuf {
        self.folder.join("alone")
    }
}
