//! Name resolution for servers, in the background, whenever a TTL expires. Requests never wait for it.

mod ask;
mod choice;
mod schedule;
mod system;

pub(crate) use ask::Resolver;
pub(crate) use choice::{Choice, choose};
pub(crate) use schedule::Schedule;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use weir_transport::Place;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NameServers {
    /// The addresses, in order; empty: those of `/etc/resolv.conf`.
    pub addresses: Vec<SocketAddr>,
    /// The timeout of one server; `None`: that of `/etc/resolv.conf`.
    pub timeout: Option<Duration>,
}

/// The preferred address family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prefer {
    /// At startup the system's preference, or IPv6 with `dns.servers`; then the family in use.
    #[default]
    Any,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// At least one address, in the order of the responses.
    addresses: Vec<IpAddr>,
    /// The TTL of the addresses.
    pub ttl: Duration,
    /// The family whose lookup failed, and the reason.
    unknown: Option<(Family, String)>,
}

impl Found {
    /// The address that a server starts with.
    pub(crate) fn first(&self, prefer: Prefer) -> Option<IpAddr> {
        choice::begin(self, prefer)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::Ipv4 } else { Self::Ipv6 }
    }
}

/// The name to resolve, in lower case; `None` for an address or a Unix socket.
pub(crate) fn name_of(place: &Place) -> Option<String> {
    let endpoint = place.endpoint().filter(|endpoint| !endpoint.is_address())?;
    Some(endpoint.host.to_ascii_lowercase())
}

/// Resolves names concurrently, and blocks until all lookups are complete, for at most half a minute. Errors: a fault
/// of the system, such as too many open files. A name without addresses maps to the reason.
pub(crate) fn resolve(
    servers: &NameServers,
    names: BTreeSet<String>,
) -> io::Result<BTreeMap<String, Result<Found, String>>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(async {
        let resolver = Resolver::new(servers);
        let mut lookups = JoinSet::new();
        for name in names {
            let find = resolver.find(&name);
            lookups.spawn(async move { (name, find.await) });
        }
        lookups.join_all().await.into_iter().collect()
    }))
}
