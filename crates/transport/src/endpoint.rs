//! Where to listen or connect: `http://host:port` or `https://host:port`.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// A scheme, a host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether TLS is spoken: `https`.
    pub tls: bool,
    /// A name, an IPv4 address, or an IPv6 address without its brackets.
    pub host: String,
    /// The port; 80 or 443 where the text names none.
    pub port: u16,
}

impl Endpoint {
    /// The first address that the system's resolver gives for the host.
    ///
    /// # Errors
    /// When it gives none.
    pub fn resolve(&self) -> io::Result<SocketAddr> {
        let unknown = |why: String| io::Error::other(format!("`{}` cannot be resolved: {why}", self.host));
        let mut addresses =
            (self.host.as_str(), self.port).to_socket_addrs().map_err(|e| unknown(e.to_string()))?;
        addresses.next().ok_or_else(|| unknown("it has no address".into()))
    }

    /// Host and port as a `Host` field has them: without the scheme's own port.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default_port(self.tls) { host } else { format!("{host}:{}", self.port) }
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}`: {why}; write http://HOST:PORT or https://HOST:PORT");
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("there is no scheme"))?;
        let tls = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("the scheme is neither http nor https")),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, rest)) => {
                (host, Some(rest.strip_prefix(':').ok_or_else(|| wrong("no `:` after `]`"))?))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() || host.contains(['/', '?', '#', '@', ' ', '[', ']']) {
            return Err(wrong("the host is missing or holds what a host cannot hold"));
        }
        let port = match port {
            None => default_port(tls),
            Some(port) => port.parse().map_err(|_| wrong("the port is no number from 0 to 65535"))?,
        };
        Ok(Self { tls, host: host.to_string(), port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}

const fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        let ok = |text: &str, tls, host: &str, port| {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint, Endpoint { tls, host: host.into(), port }, "{text}");
        };
        ok("http://127.0.0.1:8080", false, "127.0.0.1", 8080);
        ok("https://example.com", true, "example.com", 443);
        ok("https://example.com/", true, "example.com", 443);
        ok("http://[::1]:81", false, "::1", 81);
        ok("http://[::1]", false, "::1", 80);
        for text in [
            "",
            "127.0.0.1:80",
            "ftp://a",
            "http://",
            "http://:80",
            "http://a:b",
            "http://a:70000",
            "http://a/b",
        ] {
            assert!(text.parse::<Endpoint>().unwrap_err().contains("http://HOST:PORT"), "{text}");
        }
    }

    #[test]
    fn authority_leaves_the_schemes_own_port_out() {
        for (text, authority) in [
            ("http://a:80", "a"),
            ("https://a:80", "a:80"),
            ("http://[::1]:8080", "[::1]:8080"),
            ("https://a", "a"),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().authority(), authority);
        }
    }

    #[test]
    fn a_name_that_does_not_exist_is_told() {
        let endpoint: Endpoint = "http://no-such-host.invalid:1".parse().unwrap();
        assert!(endpoint.resolve().unwrap_err().to_string().contains("no-such-host.invalid"));
    }
}
