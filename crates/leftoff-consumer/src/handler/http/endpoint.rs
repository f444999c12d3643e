//! Where events are posted to: a URL, which may hold a password that is shown nowhere.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ureq::http::Uri;

/// A URL that events can be posted to. Its `Display` form is without user, password and query.
#[derive(Clone)]
pub struct Endpoint {
    target: String,
    authorization: Option<String>,
    shown: String,
}

/// Why a text is no URL to post to. The text itself is not in here: it may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadEndpoint(&'static str);

impl Endpoint {
    /// What is asked for, without user and password.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// The header for user and password.
    pub(super) fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }

    /// Whether what is sent can be read on the way.
    pub fn is_encrypted(&self) -> bool {
        self.target.starts_with("https:")
    }
}

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Endpoint, BadEndpoint> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadEndpoint("it has a character that a URL writes as %xx"));
        }
        if text.contains('#') {
            return Err(BadEndpoint("it has a fragment (#), which is never sent"));
        }
        let (scheme, rest) =
            text.split_once("://").ok_or(BadEndpoint("it does not begin with http:// or https://"))?;
        let scheme = scheme.to_ascii_lowercase();
        if !matches!(scheme.as_str(), "http" | "https") {
            return Err(BadEndpoint("it does not begin with http:// or https://"));
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        let target = format!("{scheme}://{place}{slash}{path}");
        let uri: Uri = target.parse().map_err(|_| BadEndpoint("it is not a URL"))?;
        if uri.host().is_none_or(str::is_empty) {
            return Err(BadEndpoint("it names no host"));
        }
        let port = place.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.contains(']'));
        if port.is_some_and(|port| port.parse::<u16>().ok().is_none_or(|port| port == 0)) {
            return Err(BadEndpoint("its port is not a number from 1 to 65535"));
        }
        let query = if uri.query().is_some() { "?…" } else { "" };
        let shown = format!("{scheme}://{place}{}{query}", uri.path());
        let authorization = user.map(basic).transpose()?;
        Ok(Endpoint { target, authorization, shown })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.shown).finish()
    }
}

/// `user:password`, each with `%xx` where it needs it, as a header.
fn basic(user: &str) -> Result<String, BadEndpoint> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let mut plain = decoded(name)?;
    plain.push(b':');
    plain.extend(decoded(password)?);
    Ok(format!("Basic {}", STANDARD.encode(plain)))
}

fn decoded(text: &str) -> Result<Vec<u8>, BadEndpoint> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => return Err(BadEndpoint("a % in its user or password is not followed by two hex digits")),
        }
    }
    Ok(bytes)
}
