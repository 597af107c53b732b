//! The address on which a server listens: a URL or a path.

use crate::{Address, Endpoint};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

/// A URL, or a Unix domain socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    Url(Endpoint),
    /// `tcp://HOST:PORT` or, with TLS, `tls://HOST:PORT`: a protocol other than HTTP.
    Stream(Endpoint),
    /// `unix:PATH`: any protocol in cleartext.
    Unix(PathBuf),
}

impl Place {
    /// Whether the scheme is `https` or `tls`.
    pub fn tls(&self) -> bool {
        self.endpoint().is_some_and(|endpoint| endpoint.tls)
    }

    /// Whether the host is a name, which must be resolved again from time to time.
    pub fn is_named(&self) -> bool {
        self.endpoint().is_some_and(|endpoint| !endpoint.is_address())
    }

    /// Host and port; `None` for a path.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::Url(endpoint) | Self::Stream(endpoint) => Some(endpoint),
            Self::Unix(_) => None,
        }
    }

    /// The same place with another port; a path has no port and stays the same.
    #[must_use]
    pub fn at_port(&self, port: u16) -> Self {
        let at_port = |endpoint: &Endpoint| Endpoint { port, ..endpoint.clone() };
        match self {
            Self::Url(endpoint) => Self::Url(at_port(endpoint)),
            Self::Stream(endpoint) => Self::Stream(at_port(endpoint)),
            Self::Unix(_) => self.clone(),
        }
    }

    /// The first address. Errors: those of [`Endpoint::resolve`].
    pub fn resolve(&self) -> io::Result<Address> {
        match self {
            Self::Url(endpoint) | Self::Stream(endpoint) => endpoint.resolve().map(Address::Tcp),
            Self::Unix(path) => Ok(Address::Unix(path.clone())),
        }
    }

    /// Host and port as in a `Host` field; `localhost` for a path, since HTTP has no authority for a Unix socket.
    pub fn authority(&self) -> String {
        match self {
            Self::Url(endpoint) => endpoint.authority(),
            Self::Stream(endpoint) => endpoint.host_and_port(),
            Self::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl From<Endpoint> for Place {
    fn from(endpoint: Endpoint) -> Self {
        Self::Url(endpoint)
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix(UNIX) {
            return unix_path(path).map(Self::Unix).map_err(|why| format!("`{text}`: {why}"));
        }
        match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(TCP) => stream(text, rest, false),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(TLS) => stream(text, rest, true),
            Some(_) | None => text.parse().map(Self::Url),
        }
    }
}

/// Parses `rest`, the part of `text` after the scheme. Errors: a message that quotes `text`.
fn stream(text: &str, rest: &str, tls: bool) -> Result<Place, String> {
    Endpoint::with_port(rest, tls)
        .map(Place::Stream)
        .map_err(|why| format!("`{text}`: {why}: expected {}://HOST:PORT", stream_scheme(tls)))
}

fn stream_scheme(tls: bool) -> &'static str {
    if tls { TLS } else { TCP }
}

/// Checks that a socket's path is absolute and fits into a socket address. Errors: a message.
pub fn unix_path(path: &str) -> Result<PathBuf, String> {
    let expected = "expected unix:PATH, such as unix:/run/app.sock";
    match path.len() {
        0 => Err(format!("missing path: {expected}")),
        _ if path.starts_with('/') && path.len() <= LONGEST => Ok(path.into()),
        _ if path.starts_with('/') => Err(format!("a socket's path has at most {LONGEST} bytes")),
        _ => Err(format!("the path is relative: {expected}")),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(endpoint) => endpoint.fmt(f),
            Self::Stream(endpoint) => {
                write!(f, "{}://{}", stream_scheme(endpoint.tls), endpoint.host_and_port())
            }
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

/// The prefix of a Unix domain socket's path.
pub const UNIX: &str = "unix:";

/// The schemes of protocols other than HTTP, without and with TLS.
const TCP: &str = "tcp";
const TLS: &str = "tls";

/// The size of `sun_path` without its NUL (unix(7)).
const LONGEST: usize = 107;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_urls_or_paths() {
        for text in
            ["http://192.0.2.1", "https://a:81", "unix:/run/app.sock", "tcp://a:80", "tls://[::1]:443"]
        {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        let socket: Place = "unix:/run/app.sock".parse().unwrap();
        assert_eq!(socket.resolve().unwrap(), Address::Unix("/run/app.sock".into()));
        assert_eq!(
            (socket.authority().as_str(), socket.tls(), socket.is_named()),
            ("localhost", false, false)
        );
        assert!("http://app".parse::<Place>().unwrap().is_named());
        let db: Place = "TLS://db:5432".parse().unwrap();
        assert_eq!((db.authority().as_str(), db.tls(), db.is_named()), ("db:5432", true, true));
        assert_eq!(db.at_port(1).to_string(), "tls://db:1");
    }

    #[test]
    fn what_is_no_path_is_refused() {
        let long = format!("unix:/{}", "a".repeat(107));
        for (text, why) in [
            ("unix:", "`unix:`: missing path: expected unix:PATH"),
            ("unix:run/a", "`unix:run/a`: the path is relative"),
            (long.as_str(), "a socket's path has at most 107 bytes"),
            ("tcp://db", "`tcp://db`: missing port: expected tcp://HOST:PORT"),
            ("tls://db:1/a", "`tls://db:1/a`: invalid port `1/a` (0 to 65535): expected tls://HOST:PORT"),
            ("tcp://:1", "`tcp://:1`: missing host: expected tcp://HOST:PORT"),
        ] {
            let error = text.parse::<Place>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
