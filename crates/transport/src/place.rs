//! The place where a server listens: a URL or a path.

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
    /// `unix:PATH`: HTTP in cleartext.
    Unix(PathBuf),
}

impl Place {
    /// Whether the scheme is `https`.
    pub fn tls(&self) -> bool {
        matches!(self, Self::Url(endpoint) if endpoint.tls)
    }

    /// Whether the host is a name, which has to be resolved again from time to time.
    pub fn is_named(&self) -> bool {
        matches!(self, Self::Url(endpoint) if !endpoint.is_address())
    }

    /// The first address. Errors: as [`Endpoint::resolve`].
    pub fn resolve(&self) -> io::Result<Address> {
        match self {
            Self::Url(endpoint) => endpoint.resolve().map(Address::Tcp),
            Self::Unix(path) => Ok(Address::Unix(path.clone())),
        }
    }

    /// Host and port as in a `Host` field; `localhost` for a path, for which HTTP has no form.
    pub fn authority(&self) -> String {
        match self {
            Self::Url(endpoint) => endpoint.authority(),
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
        match text.strip_prefix(UNIX) {
            Some(path) => unix_path(path).map(Self::Unix).map_err(|why| format!("`{text}`: {why}")),
            None => text.parse().map(Self::Url),
        }
    }
}

/// Checks that a path fits into a socket address. Errors: the reason why it does not.
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
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

/// The prefix of a path.
pub const UNIX: &str = "unix:";

/// The size of `sun_path` without its NUL (unix(7)).
const LONGEST: usize = 107;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_urls_or_paths() {
        for text in ["http://192.0.2.1", "https://a:81", "unix:/run/app.sock"] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        let socket: Place = "unix:/run/app.sock".parse().unwrap();
        assert_eq!(socket.resolve().unwrap(), Address::Unix("/run/app.sock".into()));
        assert_eq!(
            (socket.authority().as_str(), socket.tls(), socket.is_named()),
            ("localhost", false, false)
        );
        assert!("http://app".parse::<Place>().unwrap().is_named());
    }

    #[test]
    fn what_is_no_path_is_refused() {
        let long = format!("unix:/{}", "a".repeat(107));
        for (text, why) in [
            ("unix:", "`unix:`: missing path: expected unix:PATH"),
            ("unix:run/a", "`unix:run/a`: the path is relative"),
            (long.as_str(), "a socket's path has at most 107 bytes"),
        ] {
            let error = text.parse::<Place>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
