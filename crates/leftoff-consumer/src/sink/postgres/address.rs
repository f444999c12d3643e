//! What the client is given: the address, and the password from where PostgreSQL's own programs take it.

use std::path::{Path, PathBuf};

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::sink::PostgresUrl;
use crate::sink::postgres_url::SslMode;

/// The longest file of passwords that is read.
const MAX_PASSFILE_BYTES: u64 = 1 << 20;

/// The settings of a connection. Errors have nothing of the address.
pub(super) fn config(url: &PostgresUrl) -> Result<Config, String> {
    let parsed: Result<Config, _> = url.with_password().parse();
    let mut config =
        parsed.map_err(|_| "its address cannot be read: postgres://USER@HOST:PORT/DATABASE".to_owned())?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(
            "its address names no host: postgres://USER@HOST/DATABASE, or ?host=/FOLDER for a socket"
                .to_owned(),
        );
    }
    if config.get_hosts().is_empty() {
        // The client takes the name that a certificate is held against from here alone.
        for address in config.get_hostaddrs().to_vec() {
            config.host(address.to_string());
        }
    }
    config.ssl_mode(encryption(url.sslmode(), &config));
    if config.get_application_name().is_none() {
        config.application_name("leftoff");
    }
    if config.get_user().is_none()
        && let Some(user) = variable("PGUSER").or_else(|| variable("USER"))
    {
        config.user(user);
    }
    if config.get_password().is_none()
        && let Some(password) = password(&config)
    {
        config.password(password);
    }
    Ok(config)
}

/// A socket never leaves the machine: as with PostgreSQL's own programs, nothing on it is encrypted.
fn encryption(mode: SslMode, config: &Config) -> tokio_postgres::config::SslMode {
    use tokio_postgres::config::SslMode as How;

    let is_socket = |host: &Host| matches!(host, Host::Unix(_));
    match mode {
        _ if config.get_hosts().iter().all(is_socket) => How::Disable,
        SslMode::Disable => How::Disable,
        SslMode::Prefer => How::Prefer,
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => How::Require,
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn password(config: &Config) -> Option<String> {
    variable("PGPASSWORD").or_else(|| {
        let file = variable("PGPASSFILE").map(PathBuf::from);
        let file = file.or_else(|| Some(Path::new(&variable("HOME")?).join(".pgpass")))?;
        let lines = private_text(&file)?;
        let host = match config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            _ => "localhost".to_owned(),
        };
        let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
        let user = config.get_user().unwrap_or_default();
        in_passfile(&lines, &[&host, &port, config.get_dbname().unwrap_or(user), user])
    })
}

/// The file, if nobody else may read it: libpq passes others by, too.
fn private_text(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;

    let found = std::fs::metadata(path).ok()?;
    let is_private = found.permissions().mode().trailing_zeros() >= 6;
    (found.is_file() && is_private && found.len() <= MAX_PASSFILE_BYTES)
        .then(|| std::fs::read_to_string(path).ok())?
}

/// The password in the first line `HOST:PORT:DATABASE:USER:PASSWORD` that fits; `*` fits all.
fn in_passfile(lines: &str, wanted: &[&str; 4]) -> Option<String> {
    lines.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let (password, keys) = fields.split_last()?;
        let fits =
            keys.len() == 4 && keys.iter().zip(wanted).all(|(key, wanted)| key == "*" || key == wanted);
        fits.then(|| password.clone())
    })
}

/// Split at `:`, where `\` makes the next character an ordinary one.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let last = fields.last_mut().expect("there is one from the start");
        match character {
            '\\' => last.extend(characters.next()),
            ':' => fields.push(String::new()),
            other => last.push(other),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let lines = "# a:1:b:c:no\nh:1:d:u:one\n*:*:d\\:x:u:t\\:wo\n*:*:*:*:three\n";
        let find = |host, dbname| in_passfile(lines, &[host, "1", dbname, "u"]);
        assert_eq!(find("h", "d").as_deref(), Some("one"));
        assert_eq!(find("g", "d:x").as_deref(), Some("t:wo"));
        assert_eq!(find("g", "d").as_deref(), Some("three"));
        assert_eq!(in_passfile("h:1:d:u", &["h", "1", "d", "u"]), None);
    }
}
