//! Copies of requests for a second service, whose responses the gateway drops.

use crate::config::MirrorTo;
use crate::keys::{ServerId, ServiceId, UpstreamId};
use weir_http1::{BodyDecoder, Limits, Method, chunk, last_chunk};

/// A copy on its way.
#[derive(Debug)]
pub(crate) struct Mirror {
    pub upstream: UpstreamId,
    pub service: ServiceId,
    pub method: Method,
    pub limits: Limits,
    /// Its response's; `None` before the head.
    pub response: Option<MirrorResponse>,
}

/// A response to a copy.
#[derive(Debug)]
pub(crate) struct MirrorResponse {
    pub status: u16,
    pub body: BodyDecoder,
    /// Whether the connection may carry another request after it.
    pub persists: bool,
}

/// A copy of a request that is still coming.
#[derive(Debug)]
pub(crate) struct Copied {
    pub service: ServiceId,
    pub server: ServerId,
    /// As the server gets it.
    pub head: Vec<u8>,
    /// Without framing.
    pub body: Vec<u8>,
    pub chunked: bool,
    /// Bytes that the body may have.
    pub max_body: usize,
    /// Copies at the same time.
    pub most: usize,
}

/// What became of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its response came.
    Answered,
    /// Its request has a body that is too large.
    TooLarge,
    /// Its request did not become complete.
    Incomplete,
    /// As many as there may be were on their way.
    Busy,
    /// No server was available.
    NoServer,
    /// Its connection failed, or its response was invalid.
    Failed,
    /// Its response did not come in time.
    Late,
    /// Connections had as much memory as they may have.
    NoMemory,
    /// The gateway is drained.
    Drained,
    /// Its request asks its server to switch protocols.
    Upgrade,
}

/// All fates by their names, in the order of the enum.
pub(crate) const FATES: [&str; 10] = [
    "answered",
    "too_large",
    "incomplete",
    "busy",
    "no_server",
    "failed",
    "late",
    "no_memory",
    "drained",
    "upgrade",
];

impl Copied {
    /// Takes a part of the body, as far as it is needed to see that it is too large.
    pub(crate) fn take(&mut self, data: &[u8]) {
        let room = (self.max_body + 1).saturating_sub(self.body.len());
        self.body.extend_from_slice(&data[..data.len().min(room)]);
    }

    /// The complete request.
    pub(crate) fn bytes(mut self) -> Vec<u8> {
        match self.chunked {
            true => {
                chunk(&self.body, &mut self.head);
                last_chunk(&mut self.head);
            }
            false => self.head.append(&mut self.body),
        }
        self.head
    }
}

impl MirrorTo {
    /// Whether the request is one that is copied; `drawn` is any number.
    pub(crate) fn takes(&self, drawn: u64) -> bool {
        (drawn >> 11) as f64 / ((1_u64 << 53) as f64) < self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken() {
        let mirror = |share| MirrorTo { service: 0, share, max_body: 0, most: 0 };
        let taken = |share| (0..10_000).filter(|n| mirror(share).takes(crate::hash::mix(*n))).count();
        assert_eq!((taken(0.0), taken(1.0)), (0, 10_000));
        assert!((900..1100).contains(&taken(0.1)), "{}", taken(0.1));
    }

    #[test]
    fn every_fate_has_a_name() {
        assert_eq!(FATES[Fate::Answered as usize], "answered");
        assert_eq!(FATES[Fate::Upgrade as usize], "upgrade");
        assert_eq!(Fate::Upgrade as usize + 1, FATES.len());
    }
}
