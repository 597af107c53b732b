//! Tunnels, which forward bytes both ways unparsed: after a protocol switch, for TLS passthrough, and for the floor
//! target.

use crate::exchange::{RequestLine, Times};
use crate::keys::{ClientId, ServiceId, UpstreamId};
use std::time::Duration;

/// A joined pair of a client connection and an upstream connection. Each direction ends independently: the gateway
/// forwards the end of one stream after its last byte, and the other stream continues.
#[derive(Debug)]
pub(crate) struct Tunnel {
    pub client: ClientId,
    pub upstream: UpstreamId,
    pub service: ServiceId,
    /// The idle timeout.
    pub idle: Duration,
    /// The request that switched protocols, for the log.
    pub request: Option<(RequestLine, Times)>,
}

impl Tunnel {
    /// Both connections.
    pub(crate) fn ends(&self) -> (ClientId, UpstreamId) {
        (self.client, self.upstream)
    }
}
