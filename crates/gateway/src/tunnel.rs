//! Bytes both ways, unread: after a switch of protocols, and for the floor target, which is this and nothing else.

use crate::exchange::{RequestLine, Times};
use crate::keys::{ClientId, ServiceId, UpstreamId};
use std::time::Duration;

/// A client's connection and an upstream connection that belong together. Each direction ends for itself: the end of one
/// stream is passed on behind its last byte, and the other flows on.
#[derive(Debug)]
pub(crate) struct Tunnel {
    pub client: ClientId,
    pub upstream: UpstreamId,
    pub service: ServiceId,
    /// How long it may be silent.
    pub idle: Duration,
    /// The request that it grew out of, for the log.
    pub request: Option<(RequestLine, Times)>,
}

impl Tunnel {
    /// Both connections.
    pub(crate) fn ends(&self) -> (ClientId, UpstreamId) {
        (self.client, self.upstream)
    }
}
