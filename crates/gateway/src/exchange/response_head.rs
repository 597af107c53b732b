//! The treatment of a response's head: interim, switching or final, with the framing towards the client.

use super::{Body, Exchange, ResponseHalf, Trailers};
use crate::reason::Reason;
use weir_http1::{Framing, Version};

/// The facts of a response head, besides its fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// The length of the head, in bytes.
    pub length: usize,
    pub status: u16,
    /// The framing of the body, as the server declares it.
    pub framing: Framing,
    /// The framing of the bytes that the gateway receives: a stream's bytes arrive without frames.
    pub received: Framing,
    pub persistent: bool,
    pub authenticates_connection: bool,
    pub announces_absent_body: bool,
}

#[derive(Debug)]
pub(crate) enum HeadStep {
    /// The gateway drops the head.
    Skip,
    /// The gateway forwards the interim response, and another head follows.
    Interim,
    /// The protocol is switched: the bytes that follow are not HTTP.
    Switch,
    /// The final response: its body's framing towards the client, and whether the gateway forwards trailers.
    Final { framing: Framing, trailers: bool },
    /// The head ends the exchange.
    End(Reason),
}

impl Exchange {
    /// Decides how to treat a response's head. `draining`: the client's connection must not persist.
    pub(crate) fn on_head(&mut self, head: Head, draining: bool) -> HeadStep {
        match head.status {
            101 if self.asks_upgrade && self.upstream_stream().is_none() => {
                self.status = 101;
                return HeadStep::Switch;
            }
            101 => return HeadStep::End(Reason::UpstreamSwitched),
            // The server has opened the tunnel.
            200..300 if self.asks_upgrade && self.upstream_stream().is_some() => return HeadStep::Switch,
            // On a stream, a 2xx response would tell the client that the tunnel is open (RFC 8441 section 5).
            200..300 if self.asks_upgrade && self.stream.is_some() => {
                return HeadStep::End(Reason::NotSwitched);
            }
            100..200 if !self.may_come_before(head.length) => {
                return HeadStep::End(Reason::TooManyInterims);
            }
            // An HTTP/1.0 client does not understand interim responses (RFC 9110 section 15.2).
            100..200 if self.version == Version::Http10 => return HeadStep::Skip,
            100..200 => {
                self.awaits_continue.on_interim(head.status);
                return HeadStep::Interim;
            }
            _ => {}
        }
        let framing = match (head.framing, self.version) {
            (Framing::None | Framing::Length(_), _) => head.framing,
            // The frames of a stream delimit the body.
            _ if self.stream.is_some() => Framing::UntilClose,
            (Framing::Chunked | Framing::UntilClose, Version::Http11) => Framing::Chunked,
            (Framing::Chunked | Framing::UntilClose, Version::Http10) => Framing::UntilClose,
        };
        self.status = head.status;
        // The server redirected or rejected the request before it was complete: the client's connection closes, instead
        // of waiting for the rest.
        let cut_short = head.status >= 300 && !self.request.is_done();
        self.persistent &= framing != Framing::UntilClose && !cut_short && !draining;
        self.authenticates_connection |= head.authenticates_connection;
        let may_have_trailers = head.framing == Framing::Chunked || self.upstream_stream().is_some();
        let is_chunked = framing == Framing::Chunked || (self.stream.is_some() && may_have_trailers);
        let mut body = Body::new(head.received, is_chunked, &self.limits);
        let trailers = self.accepts_trailers && is_chunked;
        if trailers {
            body.pass_trailers(Trailers::All);
        }
        self.response = ResponseHalf::Forwarding {
            body,
            upstream_persists: head.persistent
                && !self.authenticates_connection
                && !head.announces_absent_body,
        };
        HeadStep::Final { framing, trailers }
    }

    /// Counts an interim response; returns whether it is within the limits.
    fn may_come_before(&mut self, length: usize) -> bool {
        let limits = self.policy().interims;
        self.interims.take(length, limits)
    }
}
