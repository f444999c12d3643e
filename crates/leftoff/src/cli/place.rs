//! The one grammar for places: where effects go (`run --out`) and where the audit looks for them (`check
//! --out`).

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use leftoff_consumer::sink::PostgresUrl;

use super::args::value::topic_name;
use super::bad_value::{BadValue, shorten};

/// What the help of every flag that takes a place says.
pub const PLACE_FORMS: &str =
    "file:PATH, sqlite:FILE[?table=NAME], postgres://USER@HOST/DATABASE[?table=NAME], topic:NAME or stdout";

/// Where effects are written. Its `Display` is safe to show and to keep: passwords never appear in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file of one effect per line, which keeps its own offset beside it.
    File(PathBuf),
    /// An SQLite database, which keeps the offset in the same transaction.
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The table of records that name none; the usual one without it.
        table: Option<String>,
    },
    /// A PostgreSQL database, which keeps the offset in the same transaction.
    Postgres(PostgresUrl),
    /// A topic of the same directory.
    Topic(String),
    /// The command's own stdout: seen by whoever reads it, kept by nobody.
    Stdout,
}

impl FromStr for Place {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Place, BadValue> {
        if text == "stdout" || text == "-" {
            return Ok(Place::Stdout);
        }
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(BadValue::refuse(
                format!("'{}' is not a place", shorten(&hide_password(text))),
                format!("write {PLACE_FORMS}, for example file:alerts.ndjson"),
            ));
        };
        match scheme {
            "file" if rest.is_empty() => Err(BadValue::refuse(
                "'file:' names no file",
                "write the path behind it, for example file:alerts.ndjson",
            )),
            "file" => Ok(Place::File(PathBuf::from(rest))),
            "sqlite" => sqlite(rest),
            "topic" => topic_name(rest).map(Place::Topic),
            "postgres" | "postgresql" => postgres(text),
            "http" | "https" | "cmd" => Err(BadValue::refuse(
                format!("places of the kind '{scheme}:' are not in this version"),
                format!("write {PLACE_FORMS}, for example file:alerts.ndjson"),
            )),
            _ => Err(BadValue::refuse(
                format!("'{}' is not a place", shorten(&hide_password(text))),
                format!("write {PLACE_FORMS}, for example file:alerts.ndjson"),
            )),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => write!(f, "file:{}", path.display()),
            Place::Sqlite { path, table: None } => write!(f, "sqlite:{}", path.display()),
            Place::Sqlite { path, table: Some(table) } => {
                write!(f, "sqlite:{}?table={table}", path.display())
            }
            Place::Postgres(url) => write!(f, "{url}"),
            Place::Topic(name) => write!(f, "topic:{name}"),
            Place::Stdout => f.write_str("stdout"),
        }
    }
}

/// `FILE` or `FILE?table=NAME`
fn sqlite(text: &str) -> Result<Place, BadValue> {
    let (path, table) = match text.split_once('?') {
        None => (text, None),
        Some((path, parameter)) => match parameter.strip_prefix("table=").filter(|name| !name.is_empty()) {
            Some(name) => (path, Some(name.to_owned())),
            None => {
                return Err(BadValue::refuse(
                    format!("'{}' is not a parameter of sqlite:", shorten(&hide_password(parameter))),
                    "write the table as in sqlite:orders.db?table=alerts",
                ));
            }
        },
    };
    if path.is_empty() || path == ":memory:" {
        return Err(BadValue::refuse(
            format!("'sqlite:{path}' names no file"),
            "write the path behind it, for example sqlite:orders.db",
        ));
    }
    Ok(Place::Sqlite { path: PathBuf::from(path), table })
}

/// The error has nothing of the text: what is not understood could be a password.
fn postgres(text: &str) -> Result<Place, BadValue> {
    text.parse().map(Place::Postgres).map_err(|why| {
        BadValue::refuse(
            why,
            "write postgres://USER@HOST:PORT/DATABASE, and the password into PGPASSWORD or ~/.pgpass",
        )
    })
}

/// What stands in place of a password.
const HIDDEN: &str = "***";

/// `text` without what could be a password: that of a user in a URL, and the values of parameters with a
/// telling name. In doubt it hides too much.
pub fn hide_password(text: &str) -> String {
    hide_parameters(&hide_user_password(text))
}

/// `scheme://user:PASSWORD@host`. A password may itself hold `@`, `/` and `?` where the user did not encode
/// them, so everything up to the last `@` is hidden.
fn hide_user_password(text: &str) -> String {
    let start = text.find("//").map_or(0, |at| at + 2);
    match (text[start..].find(':'), text[start..].rfind('@')) {
        (Some(colon), Some(at)) if colon < at => {
            format!("{}:{HIDDEN}{}", &text[..start + colon], &text[start + at..])
        }
        _ => text.to_string(),
    }
}

/// `?password=…&token=…` and libpq's `password=… user=…`.
fn hide_parameters(text: &str) -> String {
    let is_end = |c: char| c == '&' || c == ';' || c.is_whitespace();
    let mut shown = String::new();
    for part in text.split_inclusive(|c: char| c == '?' || is_end(c)) {
        match part.split_once('=') {
            Some((name, value)) if is_secret(name) => {
                shown.extend([name, "=", HIDDEN]);
                shown.extend(value.chars().next_back().filter(|c| is_end(*c)));
            }
            _ => shown.push_str(part),
        }
    }
    shown
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["pass", "pwd", "secret", "token", "key", "auth"].iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests;
