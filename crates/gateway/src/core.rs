//! What a worker's connections share.

use crate::Settings;
use crate::log::Log;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use weir_http1::{RequestHead, ResponseHead};
use weir_reactor::Reactor;
use weir_tls::{Connector, Facts, PeerName};
use weir_transport::Wire;

/// One core's loop, buffers and settings.
#[derive(Debug)]
pub(crate) struct Core {
    pub reactor: Reactor,
    pub settings: Settings,
    pub upstream: UpstreamAddress,
    pub wire: Wire,
    /// What was read and is being looked at. Taken out while it is, so that the worker can be used beside it.
    pub inbox: Vec<u8>,
    /// What is being put together to be sent in one call.
    pub outbox: Vec<u8>,
    pub request: RequestHead,
    pub response: ResponseHead,
    pub log: Log,
    pub counts: Counts,
    pub draining: bool,
}

/// Where requests go, resolved.
#[derive(Debug)]
pub(crate) struct UpstreamAddress {
    pub address: SocketAddr,
    /// Host and port as a `Host` field has them.
    pub authority: String,
    pub tls: Option<(Connector, PeerName)>,
}

/// What one worker has done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub connections: u64,
    pub upstream_connections: u64,
    pub requests: u64,
    /// Handshakes with clients, by kind.
    pub handshakes: Tally,
    pub upstream_handshakes: Tally,
    /// What ended early, by reason.
    pub ended: Tally,
}

/// How often each name came.
pub(crate) type Tally = BTreeMap<&'static str, u64>;

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.upstream_connections += other.upstream_connections;
        self.requests += other.requests;
        for (mine, theirs) in [
            (&mut self.handshakes, &other.handshakes),
            (&mut self.upstream_handshakes, &other.upstream_handshakes),
            (&mut self.ended, &other.ended),
        ] {
            for (name, count) in theirs {
                *mine.entry(name).or_default() += count;
            }
        }
    }
}

/// Counts a handshake by its kind.
pub(crate) fn count_handshake(handshakes: &mut Tally, facts: Option<&Facts>) {
    if let Some(facts) = facts {
        *handshakes.entry(facts.kind.name()).or_default() += 1;
    }
}
