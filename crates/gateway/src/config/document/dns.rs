//! How servers' names are resolved.

use super::values::{duration, texts};
use serde::Deserialize;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

/// How servers' names are resolved, at the start and again whenever an answer's TTL is over.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dns {
    /// The name servers, asked in this order; default: those of `/etc/resolv.conf`.
    #[serde(deserialize_with = "texts")]
    pub servers: Vec<NameServer>,
    /// The least time between two lookups of a name, 1 s to 1 h.
    #[serde(deserialize_with = "duration")]
    pub min_ttl: Duration,
    /// The most time, `min_ttl` to 1 d.
    #[serde(deserialize_with = "duration")]
    pub max_ttl: Duration,
    /// How long a name server's answer is waited for, 100 ms to 30 s; default: as `/etc/resolv.conf` has it, else 5 s.
    #[serde(deserialize_with = "duration")]
    pub timeout: Option<Duration>,
    /// Which addresses come first if a name has both kinds.
    pub prefer: Prefer,
}

/// A kind of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefer {
    /// At the start the kind that the system prefers, then the kind in use.
    #[default]
    Any,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// The address of a name server: `IP` or `IP:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameServer(pub SocketAddr);

impl Default for Dns {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            min_ttl: Duration::from_secs(1),
            max_ttl: Duration::from_secs(60),
            timeout: None,
            prefer: Prefer::default(),
        }
    }
}

impl FromStr for NameServer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        let address = bare.parse().map(|ip: IpAddr| SocketAddr::new(ip, PORT)).or_else(|_| text.parse());
        address.ok().filter(|address| address.port() > 0).map(Self).ok_or_else(|| {
            format!("invalid address `{text}`: expected that of a name server, such as 10.0.0.53, 10.0.0.53:5353 or [2001:db8::53]:5353")
        })
    }
}

impl fmt::Display for NameServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// DNS (RFC 1035 section 4.2).
const PORT: u16 = 53;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_a_name_server_may_be_left_out() {
        for (text, address) in [
            ("10.0.0.53", "10.0.0.53:53"),
            ("10.0.0.53:5353", "10.0.0.53:5353"),
            ("2001:db8::53", "[2001:db8::53]:53"),
            ("[2001:db8::53]", "[2001:db8::53]:53"),
            ("[2001:db8::53]:5353", "[2001:db8::53]:5353"),
        ] {
            assert_eq!(text.parse::<NameServer>().unwrap().to_string(), address);
        }
        for text in ["", "ns.example", "10.0.0.53:0", "10.0.0.53:", "[10.0.0.53", "10.0.0.53:99999"] {
            let error = text.parse::<NameServer>().unwrap_err();
            assert!(error.starts_with(&format!("invalid address `{text}`: expected")), "{error}");
        }
    }
}
