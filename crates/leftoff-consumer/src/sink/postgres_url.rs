//! The address of a PostgreSQL database: `postgres://USER@HOST/DATABASE?table=NAME`, taken apart without a connection.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How long a server that went away in mid run is waited for, unless the address says otherwise.
const RECONNECT: Duration = Duration::from_secs(30);
/// No more seconds may be asked for.
const MAX_RECONNECT_S: u64 = 86_400;

/// What an address may say behind `?`, beside what is ours.
const PARAMETERS: &[&str] = &[
    "host",
    "hostaddr",
    "port",
    "user",
    "dbname",
    "password",
    "connect_timeout",
    "application_name",
    "options",
    "target_session_attrs",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
];

/// Where a database is. Its `Display` and `Debug` have no password; the `Display` reads back as the same place without it.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    /// All of it, without our own parameters. May hold a password.
    full: String,
    shown: String,
    table: Option<String>,
    reconnect: Duration,
    sslmode: SslMode,
    sslrootcert: Option<String>,
}

/// Whether a connection is encrypted, and to whom, in PostgreSQL's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    /// In clear.
    Disable,
    /// Encrypted if the server can; only for servers on this machine.
    Prefer,
    /// Encrypted, to whoever answers; to whom the authority of `sslrootcert` vouches for, if that is named.
    Require,
    /// Encrypted, to a server that the authority vouches for.
    VerifyCa,
    /// Encrypted, to the server of that name that the authority vouches for.
    VerifyFull,
}

impl PostgresUrl {
    /// The address for the client. It may hold a password: never to be shown.
    pub fn with_password(&self) -> &str {
        &self.full
    }

    /// The table of records that name none, if it is not the usual one.
    pub fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    /// How long a server that went away in mid run is waited for.
    pub fn reconnect(&self) -> Duration {
        self.reconnect
    }

    /// Whether connections are encrypted: what the address says, else `prefer` on this machine and `verify-full` elsewhere.
    pub fn sslmode(&self) -> SslMode {
        self.sslmode
    }

    /// The file with the certificates of authorities, or `system`.
    pub fn sslrootcert(&self) -> Option<&str> {
        self.sslrootcert.as_deref()
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({})", self.shown)
    }
}

impl FromStr for PostgresUrl {
    type Err = String;

    /// The error has nothing of the address but the names of parameters: what is not understood could be a password.
    fn from_str(text: &str) -> Result<PostgresUrl, String> {
        let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
        let rest = rest.ok_or("an address of PostgreSQL begins with postgres://")?;
        let (before, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (user, place) =
            before.rsplit_once('@').map_or((None, before), |(user, place)| (Some(user), place));
        // A client would take what is behind such a character for the host, and show it.
        let is_split = user.is_some_and(|user| user.contains(['@', '/']) || user.matches(':').count() > 1);
        if is_split || parameters.contains('@') {
            return Err(
                "a '@', ':', '/' or '?' in a user, password or parameter is written %40, %3A, %2F or %3F"
                    .to_owned(),
            );
        }
        let name = user.map(|user| user.split_once(':').map_or(user, |(name, _)| name));
        let name = name.map(|name| format!("{name}@")).unwrap_or_default();
        let (mut full, mut shown) = (Vec::new(), Vec::new());
        let (mut table, mut reconnect) = (None, RECONNECT);
        let (mut sslmode, mut sslrootcert) = (None, None);
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').ok_or("a parameter is written NAME=VALUE")?;
            match key {
                "table" => {
                    table = Some(
                        decoded(value).filter(|table| !table.is_empty()).ok_or("table= names no table")?,
                    )
                }
                "reconnect" => reconnect = seconds(value)?,
                "password" => full.push(parameter),
                "sslmode" => sslmode = Some(mode(value)?),
                "sslrootcert" => {
                    let named = decoded(value).filter(|file| !file.is_empty());
                    sslrootcert = Some(named.ok_or("sslrootcert= names no file")?);
                }
                key if PARAMETERS.contains(&key) => full.push(parameter),
                key if key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
                    && key.len() < 40 =>
                {
                    return Err(format!("'{key}' is not a parameter of postgres:"));
                }
                _ => return Err("a parameter has a name that is not known".to_owned()),
            }
            if key != "password" {
                shown.push(parameter);
            }
        }
        let sslmode = encryption(sslmode, sslrootcert.as_deref(), is_far(place, &full))?;
        let with = |parameters: &[&str]| match parameters {
            [] => String::new(),
            all => format!("?{}", all.join("&")),
        };
        Ok(PostgresUrl {
            full: format!("postgres://{before}{}", with(&full)),
            shown: format!("postgres://{name}{place}{}", with(&shown)),
            table,
            reconnect,
            sslmode,
            sslrootcert,
        })
    }
}

/// `30s` or `30`.
fn seconds(value: &str) -> Result<Duration, String> {
    let number = value.strip_suffix('s').unwrap_or(value).parse().ok();
    let number = number.filter(|number| *number <= MAX_RECONNECT_S);
    number.map(Duration::from_secs).ok_or_else(|| "reconnect= takes seconds, as in reconnect=30s".to_owned())
}

fn mode(word: &str) -> Result<SslMode, String> {
    match word {
        "disable" => Ok(SslMode::Disable),
        "prefer" => Ok(SslMode::Prefer),
        "require" => Ok(SslMode::Require),
        "verify-ca" => Ok(SslMode::VerifyCa),
        "verify-full" => Ok(SslMode::VerifyFull),
        _ => Err("sslmode= takes disable, prefer, require, verify-ca or verify-full".to_owned()),
    }
}

/// Nobody sends events or a password in clear over a network, or to an unknown server, without having said so.
fn encryption(asked: Option<SslMode>, roots: Option<&str>, is_far: bool) -> Result<SslMode, String> {
    let mode = match (asked, roots) {
        (Some(mode), _) => mode,
        (None, None) if !is_far => SslMode::Prefer,
        (None, _) => SslMode::VerifyFull,
    };
    match (mode, roots) {
        (SslMode::Prefer, _) if is_far => Err("sslmode=prefer would send in clear to another machine if that has no TLS: write verify-full, verify-ca or require, or disable if clear is meant".to_owned()),
        (SslMode::Disable | SslMode::Prefer, Some(_)) => {
            Err("sslrootcert= is of no use where no certificate is checked: write sslmode=verify-full, verify-ca or require".to_owned())
        }
        // Whoever has a certificate for any name would do.
        (SslMode::Require | SslMode::VerifyCa, Some("system")) => {
            Err("sslrootcert=system goes with sslmode=verify-full alone".to_owned())
        }
        _ => Ok(mode),
    }
}

/// Whether one of the hosts is another machine.
fn is_far(place: &str, parameters: &[&str]) -> bool {
    let authority = place.split('/').next().unwrap_or_default();
    let named = parameters.iter().filter_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        matches!(key, "host" | "hostaddr").then_some(value)
    });
    let mut hosts = std::iter::once(authority).chain(named).flat_map(|hosts| hosts.split(','));
    hosts.any(|host| !host.is_empty() && !is_near(host))
}

/// A socket of this machine, or its own address.
fn is_near(host: &str) -> bool {
    let bare = if host.starts_with('[') {
        host.split_inclusive(']').next().unwrap_or(host)
    } else {
        host.split(':').next().unwrap_or(host)
    };
    bare.is_empty()
        || host.starts_with('/')
        || host.to_ascii_lowercase().starts_with("%2f")
        || matches!(bare, "localhost" | "[::1]")
        || host == "::1"
        || bare.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

/// `%20` is a space; `None` if it is not so written, or not UTF-8.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (text, shown) in [
            ("postgres://u:hunter2@localhost/db", "postgres://u@localhost/db"),
            (
                "postgresql://u:hunter2@localhost:5433/db?table=a%20b",
                "postgres://u@localhost:5433/db?table=a%20b",
            ),
            (
                "postgres://localhost/db?user=u&password=hunter2&reconnect=5s",
                "postgres://localhost/db?user=u&reconnect=5s",
            ),
            ("postgres://u:hunter%402@%2Ftmp/db", "postgres://u@%2Ftmp/db"),
            ("postgres://u:hunter2@far,near/db?sslmode=disable", "postgres://u@far,near/db?sslmode=disable"),
            ("postgres:///db?host=/tmp", "postgres:///db?host=/tmp"),
        ] {
            let url: PostgresUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?}").contains("hunter"), "{url:?}");
            let again: PostgresUrl = shown.parse().unwrap();
            assert_eq!(again.to_string(), shown);
            assert_eq!(again.table(), url.table());
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_and_not_repeated() {
        for (text, why) in [
            ("postgres://u:hun@ter2@localhost/db", "is written %40"),
            ("postgres://u:hun/ter2@localhost/db", "is written %40"),
            ("postgres://u:hun?ter2@localhost/db", "is written %40"),
            ("postgres://u:hun:ter2@localhost/db", "%3A"),
            ("postgres://localhost/db?Hunter2=1", "is not known"),
            ("postgres://localhost/db?colour=hunter2", "'colour' is not a parameter"),
            ("postgres://localhost/db?sslmode=allow", "takes disable, prefer"),
            ("postgres://localhost/db?sslmode=hunter2", "takes disable, prefer"),
            ("postgres://far/db?sslmode=prefer", "would send in clear"),
            ("postgres://localhost,far/db?sslmode=prefer", "would send in clear"),
            ("postgres:///db?sslmode=prefer&hostaddr=10.0.0.1", "would send in clear"),
            ("postgres://far/db?sslmode=disable&sslrootcert=/ca", "is of no use"),
            ("postgres://far/db?sslmode=require&sslrootcert=system", "verify-full alone"),
            ("postgres://far/db?sslrootcert=", "names no file"),
            ("postgres://localhost/db?table=", "names no table"),
            ("postgres://localhost/db?table=%zz", "names no table"),
            ("postgres://localhost/db?reconnect=hunter2", "takes seconds"),
            ("postgres://localhost/db?reconnect=99999999", "takes seconds"),
        ] {
            let error = text.parse::<PostgresUrl>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
            assert!(!error.to_lowercase().contains("hunter") && !error.contains("ter2"), "{text}: {error}");
        }
    }

    #[test]
    fn ours_is_taken_out_of_what_the_client_reads() {
        let url: PostgresUrl =
            "postgres://u:p@localhost/db?table=t&reconnect=7&sslmode=disable".parse().unwrap();
        assert_eq!(url.with_password(), "postgres://u:p@localhost/db");
        assert_eq!((url.table(), url.reconnect()), (Some("t"), Duration::from_secs(7)));
    }
    #[test]
    fn what_leaves_the_machine_is_encrypted_to_a_server_that_is_known_unless_the_address_says_otherwise() {
        for (rest, mode) in [
            ("localhost/db", SslMode::Prefer),
            ("%2Ftmp/db", SslMode::Prefer),
            ("[::1]:5/db", SslMode::Prefer),
            ("localhost/db?sslrootcert=/ca", SslMode::VerifyFull),
            ("db.example/db", SslMode::VerifyFull),
            ("127.0.0.1.example/db", SslMode::VerifyFull),
            ("localhost,far/db", SslMode::VerifyFull),
            ("/db?host=far", SslMode::VerifyFull),
            ("/db?host=localhost&hostaddr=10.0.0.1", SslMode::VerifyFull),
            ("far/db?sslrootcert=system", SslMode::VerifyFull),
            ("far/db?sslmode=require", SslMode::Require),
            ("far/db?sslmode=verify-ca&sslrootcert=/ca", SslMode::VerifyCa),
            ("far/db?sslmode=disable", SslMode::Disable),
        ] {
            let url: PostgresUrl = format!("postgres://{rest}").parse().unwrap();
            assert_eq!(url.sslmode(), mode, "{rest}");
            assert!(!url.with_password().contains("ssl"), "{rest}");
            assert_eq!(url.to_string(), format!("postgres://{rest}"));
        }
    }
}
