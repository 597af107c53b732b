//! The two halves of an exchange: the request on its way to the server, the response on its way to the client.

use super::body::Body;

#[derive(Debug)]
pub(crate) enum RequestHalf {
    /// The gateway forwards the body as it arrives.
    Forwarding(Body),
    /// The server no longer reads the body: the gateway drops the rest, and waits for the server's response.
    Discarding(Body),
    /// The client has sent the whole request. `passed_on`: the gateway has forwarded all of it.
    Done { passed_on: bool },
}

#[derive(Debug)]
pub(crate) enum ResponseHalf {
    /// The gateway has forwarded no final head yet.
    Awaiting,
    /// The gateway has forwarded the final head. `upstream_persists`: the server's connection persists after the
    /// response.
    Forwarding { body: Body, upstream_persists: bool },
}

impl RequestHalf {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }

    pub(crate) fn is_passed_on(&self) -> bool {
        matches!(self, Self::Done { passed_on: true })
    }

    /// The upstream stopped reading: drops the rest of the body.
    pub(crate) fn discard(&mut self) {
        *self = match std::mem::replace(self, Self::Done { passed_on: false }) {
            Self::Forwarding(body) | Self::Discarding(body) => Self::Discarding(body),
            Self::Done { .. } => Self::Done { passed_on: false },
        };
    }

    /// A further attempt sends the request from its start: stops discarding the body, and forwards the remainder.
    pub(crate) fn resume(&mut self) {
        *self = match std::mem::replace(self, Self::Done { passed_on: true }) {
            Self::Forwarding(body) | Self::Discarding(body) => Self::Forwarding(body),
            Self::Done { .. } => Self::Done { passed_on: true },
        };
    }

    pub(crate) fn settle(&mut self) {
        match self {
            Self::Forwarding(body) if body.is_complete() => *self = Self::Done { passed_on: true },
            Self::Discarding(body) if body.is_complete() => *self = Self::Done { passed_on: false },
            Self::Forwarding(_) | Self::Discarding(_) | Self::Done { .. } => {}
        }
    }
}

impl ResponseHalf {
    pub(crate) fn is_awaiting(&self) -> bool {
        matches!(self, Self::Awaiting)
    }

    /// The length of the body so far, without framing; 0 before the head.
    pub(crate) fn passed(&self) -> u64 {
        match self {
            Self::Awaiting => 0,
            Self::Forwarding { body, .. } => body.passed(),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        matches!(self, Self::Forwarding { body, .. } if body.is_complete())
    }
}
