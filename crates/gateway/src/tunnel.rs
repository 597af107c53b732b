//! Tunnels, which forward bytes both ways unparsed: after a protocol switch, for TLS passthrough, for listeners of
//! protocols other than HTTP, and for `Role::Tunnel`.

use crate::exchange::{RequestLine, Times};
use crate::keys::{ClientId, ServerId, ServiceId, UpstreamId};
use crate::observe::access::Entry;
use std::time::{Duration, Instant};

/// A joined pair of a client connection and an upstream connection. Each direction ends independently: the gateway
/// forwards the end of one stream after its last byte, and the other stream continues.
#[derive(Debug)]
pub(crate) struct Tunnel {
    pub client: ClientId,
    pub upstream: UpstreamId,
    pub service: ServiceId,
    pub idle: Duration,
    pub origin: Origin,
}

/// The event that opened a tunnel. It determines the tunnel's line in the access log.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A TLS connection that the gateway forwards undecrypted.
    Passed,
    /// A request that switched protocols. Its access log line was written at the switch.
    Request(RequestLine, Times),
    Tcp(Box<TcpConnection>),
}

#[derive(Debug)]
pub(crate) struct TcpConnection {
    /// The part of the connection's access log line that is known at the start; `None`: no access log.
    pub entry: Option<Entry>,
    pub times: Times,
    /// Bytes from and to the client, without TLS.
    pub received: u64,
    pub sent: u64,
    /// The server of the last attempt.
    pub server: Option<ServerId>,
    /// Attempts after the first.
    pub retries: u8,
    /// The servers that the gateway could not connect to.
    pub failed: [Option<ServerId>; MOST_OTHERS],
}

/// The maximum number of further servers to try for one connection: each attempt may take the full connect timeout.
const MOST_OTHERS: usize = 2;

impl Tunnel {
    pub(crate) fn ends(&self) -> (ClientId, UpstreamId) {
        (self.client, self.upstream)
    }

    /// The state of a connection to a listener with `tcp`; `None` for other tunnels.
    pub(crate) fn tcp_mut(&mut self) -> Option<&mut TcpConnection> {
        match &mut self.origin {
            Origin::Tcp(connection) => Some(connection),
            Origin::Passed | Origin::Request(..) => None,
        }
    }

    /// The server of the last attempt; `None` for tunnels that do not retry.
    pub(crate) fn last_server(&self) -> Option<ServerId> {
        match &self.origin {
            Origin::Tcp(connection) => connection.server,
            Origin::Passed | Origin::Request(..) => None,
        }
    }

    /// The times of the tunnel's steps; `None` for a connection forwarded undecrypted, whose steps are not timed.
    pub(crate) fn times(&self) -> Option<Times> {
        match &self.origin {
            Origin::Passed => None,
            Origin::Request(_, times) => Some(*times),
            Origin::Tcp(connection) => Some(connection.times),
        }
    }

    /// The request that switched protocols, for the log.
    pub(crate) fn request(&self) -> Option<&str> {
        match &self.origin {
            Origin::Request(line, _) => Some(line.as_str()),
            Origin::Passed | Origin::Tcp(_) => None,
        }
    }
}

impl TcpConnection {
    /// A connection that was accepted at `accepted`, and starts its first attempt at `now`.
    pub(crate) fn new(entry: Option<Entry>, accepted: Instant, now: Instant) -> Self {
        let times = Times::new(accepted, now, now);
        Self { entry, times, received: 0, sent: 0, server: None, retries: 0, failed: [None; MOST_OTHERS] }
    }

    /// Records a failed attempt. Returns whether the gateway may try another server: at most [`MOST_OTHERS`] times.
    pub(crate) fn note_failed(&mut self, server: ServerId) -> bool {
        let free = self.failed.iter_mut().find(|failed| failed.is_none());
        free.map(|free| *free = Some(server)).is_some()
    }

    /// Records the server and the start of an attempt. Clears the times of the previous attempt's steps.
    pub(crate) fn note_attempt(&mut self, server: ServerId, now: Instant) {
        self.server = Some(server);
        (self.times.attempt, self.times.reached, self.times.connected) = (now, None, None);
    }

    /// Records that the server's connection is established; `is_open`: the connection needs no handshake, or has
    /// completed it.
    pub(crate) fn note_connected(&mut self, is_open: bool, now: Instant) {
        match is_open {
            true => self.times.connected = Some(now),
            false => self.times.reached = Some(now),
        }
    }
}
