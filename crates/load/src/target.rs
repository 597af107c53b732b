//! The URL under load, and other hosts and ports in flags.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use weir_transport::{Endpoint, ascii_host};

/// The target of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Scheme, host and port.
    pub endpoint: Endpoint,
    /// Path and query; at least `/`.
    pub path: String,
}

/// A host and port, and the address to use for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolve {
    /// As in the URL.
    pub host: String,
    /// As in the URL.
    pub port: u16,
    /// The address to use instead of resolving.
    pub address: IpAddr,
}

/// Valid weights.
pub(crate) const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=1_000_000;

/// The first character that is invalid in a path or query (RFC 9112 section 3.2.1).
pub(crate) fn misplaced(path: &str) -> Option<char> {
    path.chars().find(|c| !c.is_ascii_graphic() || *c == '#')
}

/// The expected body length for the test server's `/bytes/N`.
pub(crate) fn known_length(path: &str) -> Option<u64> {
    let path = path.split('?').next()?;
    path.strip_prefix("/bytes/")?.parse().ok()
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let authority = text.find("://").map_or(0, |at| at + 3);
        let end = text[authority..].find(['/', '?', '#']).map_or(text.len(), |at| authority + at);
        let endpoint: Endpoint = text[..end].parse().map_err(|error: String| format!("{error}[/PATH]"))?;
        if endpoint.port == 0 {
            return Err(format!("`{text}`: invalid port 0: expected 1 to 65535"));
        }
        let path = match &text[end..] {
            "" => "/".to_string(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_string(),
        };
        match misplaced(&path) {
            Some(c) => Err(format!("`{text}`: {c:?} is invalid in a path; percent-encode it")),
            None => Ok(Self { endpoint, path }),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.endpoint, self.path)
    }
}

impl FromStr for Resolve {
    type Err = String;

    /// Parses `HOST:PORT:ADDRESS`; an IPv6 address may be in brackets.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}`: expected HOST:PORT:ADDRESS, such as example.org:443:127.0.0.1");
        let host_end = if text.starts_with('[') { text.find(']').ok_or_else(wrong)? } else { 0 };
        let port_at = text[host_end..].find(':').ok_or_else(wrong)? + host_end + 1;
        let address_at = text[port_at..].find(':').ok_or_else(wrong)? + port_at + 1;
        let (host, port) = host_port(&text[..address_at - 1]).map_err(|_| wrong())?;
        let address = unbracketed(&text[address_at..]);
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        Ok(Self { host, port, address })
    }
}

/// Parses `HOST:PORT` for `--connect-to`; an IPv6 address must be in brackets.
pub(crate) fn host_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("`{text}`: expected HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    let bare = unbracketed(host);
    let in_brackets = bare.len() < host.len();
    if bare.is_empty() || in_brackets != bare.contains(':') || bare.contains(['/', '@', ' ', '[', ']']) {
        return Err(wrong());
    }
    let host = ascii_host(bare).map_err(|why| format!("`{text}`: {why}"))?;
    Ok((host.into_owned(), port))
}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (text, shown, length) in [
            ("http://a:81", "http://a:81/", None),
            ("https://a/bytes/1000?chunked=1", "https://a/bytes/1000?chunked=1", Some(1000)),
            ("http://[::1]:8080/x", "http://[::1]:8080/x", None),
            ("http://a?q", "http://a/?q", None),
            ("http://a/bytes/x", "http://a/bytes/x", None),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!((target.to_string().as_str(), known_length(&target.path)), (shown, length));
        }
    }

    #[test]
    fn urls_that_cannot_be_asked_for_name_what_is_wrong() {
        for (text, why) in [
            ("ftp://a/", "unknown scheme"),
            ("a/b", "missing scheme"),
            ("http://a:70000/", "0 to 65535"),
            ("http://a:0/", "port 0"),
            ("http://a/b c", "' '"),
            ("http://a/b#c", "'#'"),
            ("http:///b", "host"),
        ] {
            let error = text.parse::<Target>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn hosts_ports_and_addresses_as_people_write_them() {
        for (text, host, port, address) in [
            ("a:443:127.0.0.1", "a", 443, "127.0.0.1"),
            ("a.b:1:::1", "a.b", 1, "::1"),
            ("a.b:1:[fd00::2]", "a.b", 1, "fd00::2"),
            ("[::1]:65535:10.0.0.1", "::1", 65535, "10.0.0.1"),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(text.parse(), Ok(Resolve { host: host.into(), port, address }), "{text}");
        }
        for text in [
            "",
            "a",
            "a:1",
            "a:1:",
            "a:x:::1",
            "a:0:::1",
            ":1:::1",
            "a:1:b",
            "[::1:1:::1",
            "é:1",
            "a:70000:::1",
        ] {
            assert!(text.parse::<Resolve>().unwrap_err().contains("HOST:PORT:ADDRESS"), "{text}");
        }
        for (text, host, port) in [("a:1", "a", 1), ("[::1]:8080", "::1", 8080)] {
            assert_eq!(host_port(text), Ok((host.to_string(), port)));
        }
        for text in ["", "a", ":1", "a:0", "a:b", "::1", "::1:80", "[a]:1", "[]:1", "http://a:1", "a b:1"] {
            assert!(host_port(text).unwrap_err().contains("HOST:PORT,"), "{text}");
        }
    }
}
