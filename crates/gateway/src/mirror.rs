//! Copies of requests for a second service; the gateway drops the responses.

use crate::config::MirrorTo;
use crate::keys::{ServerId, ServiceId, UpstreamId};
use weir_http::Method;
use weir_http1::{BodyDecoder, Limits, chunk, last_chunk};

/// A copy that was sent to a server.
#[derive(Debug)]
pub(crate) struct Mirror {
    pub upstream: UpstreamId,
    pub service: ServiceId,
    pub method: Method,
    pub limits: Limits,
    /// The response; `None` before its head is complete.
    pub response: Option<MirrorResponse>,
}

#[derive(Debug)]
pub(crate) struct MirrorResponse {
    pub status: u16,
    pub body: BodyDecoder,
    /// Whether the connection may be pooled after the response.
    pub persists: bool,
}

/// A copy of a request that is still being received.
#[derive(Debug)]
pub(crate) struct Copied {
    pub service: ServiceId,
    pub server: ServerId,
    /// The head as sent to the server.
    pub head: Vec<u8>,
    /// The body without framing.
    pub body: Vec<u8>,
    pub chunked: bool,
    /// The maximum size of the body, in bytes.
    pub max_body: usize,
    /// The maximum number of copies in flight.
    pub most: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Responded,
    /// The request's body is too large.
    TooLarge,
    /// The exchange ended before the gateway had forwarded the whole request.
    Incomplete,
    /// The maximum number of copies was in flight.
    Busy,
    NoServer,
    /// The connection failed, or the response was invalid.
    Failed,
    Late,
    /// Memory for connections was exhausted.
    NoMemory,
    Drained,
    /// The request asks to switch protocols.
    Upgrade,
}

/// The names of all fates, in the order of the enum.
pub(crate) const FATES: [&str; 10] = [
    "responded",
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
    /// Appends part of the body, up to one byte beyond the limit: that byte marks the body as too large.
    pub(crate) fn take(&mut self, data: &[u8]) {
        let room = (self.max_body + 1).saturating_sub(self.body.len());
        self.body.extend_from_slice(&data[..data.len().min(room)]);
    }

    /// The bytes of the complete request, with a chunked body if the head declares one.
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
    /// Whether to copy a request; `drawn` is uniformly random.
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
        assert_eq!(FATES[Fate::Responded as usize], "responded");
        assert_eq!(FATES[Fate::Upgrade as usize], "upgrade");
        assert_eq!(Fate::Upgrade as usize + 1, FATES.len());
    }
}
