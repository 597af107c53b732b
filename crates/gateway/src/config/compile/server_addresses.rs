//! Resolution of server addresses, by the configured name servers or the system's resolver.

use super::Fault;
use crate::config::document::{Config, Dns, Prefer};
use crate::config::snapshot::Names;
use crate::resolve::{self, Family, Found, name_of};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use weir_transport::{Address, Endpoint, Place};

/// A resolver for the addresses of servers.
#[derive(Debug)]
pub(super) struct Finder {
    dns: Dns,
    /// The results of the configured name servers; empty if the system's resolver is used.
    found: BTreeMap<String, Result<Found, String>>,
    /// Addresses of servers that are already in use and need no lookup, by place.
    known: HashMap<String, Address>,
}

impl Finder {
    /// Checks the settings, and resolves all names with the configured name servers. Fails if a value is invalid or the
    /// name servers cannot be used.
    pub(super) fn new(config: &Config) -> Result<Self, Fault> {
        check(&config.dns)?;
        let servers = config.services.values().flat_map(|service| &service.servers);
        Self::of(&config.dns, servers.map(|server| &server.url), HashMap::new())
    }

    /// Resolves the names of these places with the configured name servers, except places in `known`. Fails if the name
    /// servers cannot be used.
    pub(super) fn of<'a>(
        dns: &Dns,
        places: impl Iterator<Item = &'a Place>,
        known: HashMap<String, Address>,
    ) -> Result<Self, Fault> {
        let unknown = places.filter(|place| !known.contains_key(&place.to_string()));
        let names: BTreeSet<_> = unknown.filter_map(name_of).collect();
        let found = match dns.servers.is_empty() || names.is_empty() {
            true => BTreeMap::new(),
            false => resolve::resolve(&dns.name_servers(), names)
                .map_err(|error| Fault::new("dns.servers", error))?,
        };
        Ok(Self { dns: dns.clone(), found, known })
    }

    /// Returns the address of a server. Fails if the server's name has no known address.
    pub(super) fn address(&self, place: &Place) -> Result<Address, String> {
        let (Some(endpoint), Some(name)) = (place.endpoint(), name_of(place)) else {
            return place.resolve().map_err(|error| error.to_string());
        };
        if let Some(address) = self.known.get(&place.to_string()) {
            return Ok(address.clone());
        }
        let prefer = self.dns.prefer;
        let ip = match self.found.get(&name) {
            Some(Ok(found)) => found.first(prefer).ok_or("it has no address".to_owned()),
            Some(Err(why)) => Err(why.clone()),
            None => return of_system(endpoint, prefer).map(Address::Tcp).map_err(|error| error.to_string()),
        };
        match ip {
            Ok(ip) => Ok(Address::Tcp(SocketAddr::new(ip, endpoint.port))),
            Err(why) => Err(format!("cannot resolve `{}`: {why}", endpoint.host)),
        }
    }

    /// The settings and TTLs that go into the snapshot.
    pub(super) fn finish(self) -> Names {
        let ttls = self.found.into_iter().filter_map(|(name, found)| Some((name, found.ok()?.ttl)));
        Names { ttls: Arc::new(ttls.collect()), dns: self.dns }
    }
}

/// The first address from the system's resolver, of the preferred family if there is one.
fn of_system(endpoint: &Endpoint, prefer: Prefer) -> io::Result<SocketAddr> {
    let addresses = endpoint.addresses()?;
    let is_preferred = |at: &&SocketAddr| match prefer {
        Prefer::Any => true,
        Prefer::Ipv4 => Family::of(at.ip()) == Family::Ipv4,
        Prefer::Ipv6 => Family::of(at.ip()) == Family::Ipv6,
    };
    Ok(*addresses.iter().find(is_preferred).unwrap_or(&addresses[0]))
}

fn check(dns: &Dns) -> Result<(), Fault> {
    let within = |key: &str, value: Duration, range: RangeInclusive<Duration>| match range.contains(&value) {
        true => Ok(()),
        false => {
            let (least, most) = range.into_inner();
            let why = format!("invalid value {value:?}: expected {least:?} to {most:?}");
            Err(Fault::new(key, why))
        }
    };
    within("dns.min_ttl", dns.min_ttl, Dns::MIN_TTL)?;
    within("dns.max_ttl", dns.max_ttl, dns.min_ttl..=Dns::MAX_TTL)?;
    match dns.timeout {
        Some(timeout) => within("dns.timeout", timeout, Dns::TIMEOUT),
        None => Ok(()),
    }
}
