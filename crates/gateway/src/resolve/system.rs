//! The system's files for name resolution: `/etc/hosts` and `/etc/resolv.conf`.

use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf::parse_resolv_conf;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// The files' contents. A missing file counts as an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Files {
    pub hosts: Vec<u8>,
    pub resolv: Vec<u8>,
}

impl Files {
    pub(super) fn read() -> Self {
        let read = |path: &str| fs::read(Path::new(path)).unwrap_or_default();
        Self { hosts: read("/etc/hosts"), resolv: read("/etc/resolv.conf") }
    }

    /// The addresses of a name in the hosts file, in the order of the file (hosts(5)).
    pub(super) fn addresses(&self, name: &str) -> Vec<IpAddr> {
        let text = String::from_utf8_lossy(&self.hosts);
        let name = name.strip_suffix('.').unwrap_or(name);
        let address = |line: &str| {
            let mut words = line.split('#').next()?.split_whitespace();
            // Skips addresses with a zone (`fe80::1%eth0`): they do not parse, and are useless without the zone.
            let address = words.next()?.parse().ok()?;
            words.any(|word| word.eq_ignore_ascii_case(name)).then_some(address)
        };
        let mut found = Vec::new();
        for address in text.lines().filter_map(address) {
            if !found.contains(&address) {
                found.push(address);
            }
        }
        found
    }
}

/// Resolver settings: the name servers, and the search list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub servers: Vec<SocketAddr>,
    pub timeout: Duration,
    /// The number of rounds through all servers.
    pub attempts: usize,
    pub edns0: bool,
    pub search: Search,
}

/// The domains to append to incomplete names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Search {
    domains: Vec<Name>,
    /// A name with at least this many dots is looked up without a domain first.
    ndots: usize,
}

impl Settings {
    /// Settings for these servers alone, without the system's search list.
    pub(super) fn of(servers: Vec<SocketAddr>) -> Self {
        Self { servers, timeout: TIMEOUT, attempts: ATTEMPTS, edns0: true, search: Search::default() }
    }

    /// The settings of `/etc/resolv.conf` (resolv.conf(5)). Errors: the file is invalid.
    pub(super) fn parse(resolv: &[u8]) -> Result<Self, String> {
        let mut text = resolv.to_vec();
        if !String::from_utf8_lossy(resolv).lines().any(|line| line.trim_start().starts_with("nameserver")) {
            text.extend_from_slice(b"\nnameserver 127.0.0.1\n");
        }
        let (config, options) =
            parse_resolv_conf(text).map_err(|error| format!("/etc/resolv.conf: {error}"))?;
        let servers = config.name_servers();
        let domains = match config.search() {
            [] => config.domain().filter(|domain| !domain.is_root()).cloned().into_iter().collect(),
            domains => domains.to_vec(),
        };
        Ok(Self {
            servers: servers.iter().map(|server| SocketAddr::new(server.ip, PORT)).collect(),
            // The C library has the same bounds.
            timeout: options.timeout.clamp(Duration::from_secs(1), Duration::from_secs(30)),
            attempts: options.attempts.clamp(1, 5),
            edns0: options.edns0,
            search: Search { domains, ndots: options.ndots.min(15) },
        })
    }
}

impl Search {
    /// The fully qualified names to look up for a host, in order. Errors: the host is not a valid name.
    pub(super) fn candidates(&self, host: &str) -> Result<Vec<Name>, String> {
        let name = Name::from_str_relaxed(host).map_err(|error| format!("invalid name: {error}"))?;
        let mut own = name.clone();
        own.set_fqdn(true);
        if name.is_fqdn() || name.is_localhost() {
            return Ok(vec![own]);
        }
        // Skips names that become too long.
        let mut names: Vec<_> =
            self.domains.iter().filter_map(|domain| name.clone().append_domain(domain).ok()).collect();
        let dots = host.bytes().filter(|byte| *byte == b'.').count();
        names.insert(if dots >= self.ndots { 0 } else { names.len() }, own);
        Ok(names)
    }
}

/// The port of DNS (RFC 1035 section 4.2).
const PORT: u16 = 53;

/// The default of the C library, as is [`ATTEMPTS`].
const TIMEOUT: Duration = Duration::from_secs(5);
const ATTEMPTS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(resolv: &str, host: &str) -> Vec<String> {
        let search = Settings::parse(resolv.as_bytes()).unwrap().search;
        search.candidates(host).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn hosts_have_the_addresses_of_all_their_lines() {
        let hosts = "127.0.0.1 localhost\n# 192.0.2.9 app\n192.0.2.1\tApp.internal  app # the old one\n\n\
            2001:db8::1 app\nfe80::1%eth0 app\n192.0.2.1 app\nnonsense app\n192.0.2.2 other my_app";
        let files = Files { hosts: hosts.into(), resolv: Vec::new() };
        let found =
            |name: &str| files.addresses(name).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(found("app"), "192.0.2.1 2001:db8::1");
        assert_eq!(found("APP.internal."), "192.0.2.1");
        assert_eq!(found("my_app"), "192.0.2.2");
        assert_eq!(found("the"), "");
        assert_eq!(found("192.0.2.1"), "");
        assert_eq!(Files::default().addresses("app"), Vec::<IpAddr>::new());
    }

    #[test]
    fn names_without_enough_dots_are_searched_for_first() {
        let cluster = "nameserver 10.96.0.10\nsearch ns.svc.cluster.local svc.cluster.local\noptions ndots:5";
        let all = ["app.ns.svc.cluster.local.", "app.svc.cluster.local.", "app."];
        assert_eq!(candidates(cluster, "app"), all);
        assert_eq!(candidates(cluster, "app."), ["app."]);
        assert_eq!(candidates(cluster, "api.example.org")[2], "api.example.org.");
        assert_eq!(candidates("search lan", "api.example.org"), ["api.example.org.", "api.example.org.lan."]);
        assert_eq!(candidates("search lan", "app"), ["app.lan.", "app."]);
        assert_eq!(candidates("search lan", "localhost"), ["localhost."]);
        assert_eq!(candidates("search lan", "my_app"), ["my_app.lan.", "my_app."]);
        let long = "a".repeat(64);
        assert!(Search::default().candidates(&long).unwrap_err().starts_with("invalid name: "));
    }

    #[test]
    fn the_options_are_those_of_resolv_conf() {
        let settings = Settings::parse(
            b"nameserver 192.0.2.53\nnameserver 2001:db8::53\noptions timeout:1 attempts:3 edns0",
        )
        .unwrap();
        let servers: Vec<SocketAddr> =
            ["192.0.2.53:53", "[2001:db8::53]:53"].map(|at| at.parse().unwrap()).into();
        assert_eq!((settings.servers, settings.timeout.as_secs(), settings.attempts), (servers, 1, 3));
        assert!(settings.edns0);
        let none = Settings::parse(b"").unwrap();
        assert_eq!(none.servers, ["127.0.0.1:53".parse::<SocketAddr>().unwrap()]);
        assert_eq!((none.timeout, none.attempts), (TIMEOUT, ATTEMPTS));
    }
}
