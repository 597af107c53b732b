//! State shared by a worker's connections.

use crate::Settings;
use crate::log::{Context, Log};
use crate::reason::Reason;
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
    /// The input buffer. Taken out while in use, so that the worker can be borrowed.
    pub inbox: Vec<u8>,
    /// The output buffer for a single send call.
    pub outbox: Vec<u8>,
    pub request: RequestHead,
    pub response: ResponseHead,
    pub log: Log,
    pub counts: Counts,
    pub draining: bool,
}

impl Core {
    /// Counts an early end, and logs it.
    pub(crate) fn note_end(&mut self, reason: &Reason, context: Context<'_>) {
        *self.counts.ended.entry(reason.as_str()).or_default() += 1;
        self.log.ended(self.reactor.now(), reason, context);
    }
}

/// The resolved upstream.
#[derive(Debug)]
pub(crate) struct UpstreamAddress {
    pub address: SocketAddr,
    /// Host and port as in a `Host` field.
    pub authority: String,
    pub tls: Option<(Connector, PeerName)>,
}

/// Counters of one worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub connections: u64,
    pub upstream_connections: u64,
    pub requests: u64,
    /// Handshakes with clients, by kind.
    pub handshakes: Tally,
    pub upstream_handshakes: Tally,
    /// Early ends, by reason.
    pub ended: Tally,
}

/// Counts by name.
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
