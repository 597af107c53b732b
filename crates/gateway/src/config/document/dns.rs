//! The table `[dns]`: the resolution of server names.

pub use crate::resolve::Prefer;

use super::value_schemas;
use super::values::{duration, texts};
use crate::resolve::NameServers;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// Resolution of server names, at startup and whenever the TTL of a response has expired.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dns {
    /// Name servers, queried in this order over UDP, and over TCP after a truncated response. If one does not respond
    /// or reports an error, the gateway queries the next. They replace `/etc/resolv.conf`, so names must be complete,
    /// such as `web.service.consul`. Default: those of `/etc/resolv.conf`.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<NameServer>")]
    pub servers: Vec<NameServer>,
    /// Minimum time between two queries for a name, whatever its TTL. Raise it to spare a name server with TTLs of 0.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time", transform = value_schemas::lasting(Dns::MIN_TTL))]
    pub min_ttl: Duration,
    /// Maximum time between two queries for a name, at least `min_ttl`: servers often move before a TTL of hours
    /// expires.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time", transform = value_schemas::lasting(*Dns::MIN_TTL.start()..=Dns::MAX_TTL))]
    pub max_ttl: Duration,
    /// Timeout of one query to a name server. The gateway makes two attempts, or `attempts` of `/etc/resolv.conf`. A
    /// lookup takes at most 30 s with all retries. Default: that of `/etc/resolv.conf`, or 5 s.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time", transform = value_schemas::lasting(Dns::TIMEOUT))]
    pub timeout: Option<Duration>,
    /// The preferred address family for names with both IPv4 and IPv6 addresses.
    pub prefer: Prefer,
}

/// The address of a name server: `IP` or `IP:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameServer(pub SocketAddr);

impl Dns {
    pub(crate) const MIN_TTL: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);
    pub(crate) const MAX_TTL: Duration = Duration::from_secs(86_400);
    pub(crate) const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(30);

    /// The name servers to query.
    pub(crate) fn name_servers(&self) -> NameServers {
        let addresses = self.servers.iter().map(|server| server.0).collect();
        NameServers { addresses, timeout: self.timeout }
    }
}

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

/// The port of DNS (RFC 1035 section 4.2).
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
