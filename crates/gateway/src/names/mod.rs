//! The names of servers: resolved in the background, whenever the TTL of an answer is over. Requests never wait for it.

mod ask;
mod choice;
mod keeper;
mod schedule;
mod system;

pub(crate) use keeper::Keeping;

use crate::config::document::{Dns, Prefer};
use ask::Resolver;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use weir_transport::Place;

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// At least one, in the order of the answers.
    addresses: Vec<IpAddr>,
    /// How long that holds.
    pub ttl: Duration,
    /// The family about which no server said anything, and why.
    unknown: Option<(Family, String)>,
}

impl Found {
    /// The address that a server begins with.
    pub(crate) fn first(&self, prefer: Prefer) -> Option<IpAddr> {
        choice::begin(self, prefer)
    }
}

/// A kind of addresses.
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

/// The name that has to be resolved, in lower case; `None` if there is none.
pub(crate) fn name_of(place: &Place) -> Option<String> {
    match place {
        Place::Url(endpoint) if !endpoint.is_address() => Some(endpoint.host.to_ascii_lowercase()),
        Place::Url(_) | Place::Unix(_) => None,
    }
}

/// Resolves names, all at the same time, and waits for it: half a minute at most. Errors: the system is out of file descriptors,
/// say; of a name: why it has no address.
pub(crate) fn resolve(
    dns: &Dns,
    names: BTreeSet<String>,
) -> io::Result<BTreeMap<String, Result<Found, String>>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(async {
        let resolver = Resolver::new(dns);
        let mut lookups = JoinSet::new();
        for name in names {
            let find = resolver.find(&name);
            lookups.spawn(async move { (name, find.await) });
        }
        lookups.join_all().await.into_iter().collect()
    }))
}
