//! Flow control of received DATA. A client gets credit (WINDOW_UPDATE) for a request's body once the body's bytes are
//! forwarded or buffered, a server for a response's body once the client has room. `h2/stream.rs` counts the bytes
//! without credit; `crates/http2/src/window.rs` turns credit into frames.

use super::Worker;
use super::settle::is_full;
use crate::config::MAX_PENDING;
use crate::exchange::{Leg, Stage};
use crate::h2::Stream;
use crate::keys::{ClientId, ExchangeId, UpstreamId};
use std::ops::Range;
use weir_http2::StreamNo;
use weir_reactor::Net;

/// The parts of [`Event::Data`](weir_http2::Event::Data).
pub(super) struct Data {
    pub range: Range<usize>,
    /// Bytes of credit for the client, padding included.
    pub flow: u32,
    pub end: bool,
}

impl<N: Net> Worker<N> {
    /// Forwards as much as possible of a part of a request's body, and stores the rest in the stream.
    pub(super) fn take_data(&mut self, id: ClientId, no: StreamNo, input: &mut [u8], data: &Data) {
        let leg = Leg { client: id, stream: Some(no) };
        let is_first = self.h2_of(id).and_then(|h2| h2.get(no)).is_some_and(|stream| stream.held.is_empty());
        let mut taken = 0;
        if is_first && self.has_room(leg) {
            taken = self.pass_data(leg, &mut input[..data.range.end], data.range.start);
        }
        let Some(h2) = self.h2_of(id) else { return };
        let Some(stream) = h2.get_mut(no).filter(|stream| stream.exchange.is_some()) else {
            // The response is complete, or the exchange has just ended: drops the remaining body.
            h2.connection.credit(no, data.flow);
            if data.end {
                h2.peer_has_ended(no);
            }
            return;
        };
        let rest = &input[data.range.start + taken..data.range.end];
        stream.held.extend_from_slice(rest);
        stream.ended |= data.end;
        h2.connection.credit(no, data.flow - rest.len() as u32);
        h2.touch(no);
        if data.end {
            self.pass_held(leg);
        }
    }

    /// Forwards as much as possible of the held part of a request's body and, after all of it, the body's end.
    pub(super) fn pass_held(&mut self, leg: Leg) {
        let Some(no) = leg.stream else { return };
        let Some(stream) = self.h2_of(leg.client).and_then(|h2| h2.get_mut(no)) else { return };
        let mut held = std::mem::take(&mut stream.held);
        let credited = std::mem::take(&mut stream.credited);
        let mut taken = 0;
        while taken < held.len() && self.has_room(leg) {
            match self.pass_data(leg, &mut held, taken) {
                0 => break,
                bytes => taken += bytes,
            }
        }
        let Some(h2) = self.h2_of(leg.client) else { return };
        let Some(stream) = h2.get_mut(no).filter(|stream| stream.exchange.is_some()) else {
            return h2.connection.credit(no, held.len().saturating_sub(credited) as u32);
        };
        // A buffered body may have been returned to the stream in the meantime.
        stream.held.extend_from_slice(&held[taken..]);
        stream.credited += credited.saturating_sub(taken);
        h2.connection.credit(no, taken.saturating_sub(credited) as u32);
        let Some(stream) = h2.get_mut(no) else { return };
        if let (true, true, Some(exchange)) = (stream.ended, stream.held.is_empty(), stream.exchange) {
            let trailers = std::mem::take(&mut stream.trailers);
            let is_whole = self.end_request_body(exchange, &trailers);
            if !is_whole && let Some(stream) = self.h2_of(leg.client).and_then(|h2| h2.get_mut(no)) {
                stream.trailers = trailers;
            }
        }
    }

    /// Forwards as much as possible of `body`, and puts the remainder back, before the bytes that the stream holds. The
    /// client has already received flow-control credit for the bytes in `body`.
    pub(super) fn hold_again(&mut self, leg: Leg, mut body: Vec<u8>) {
        let mut taken = 0;
        while taken < body.len() {
            match self.pass_data(leg, &mut body, taken) {
                0 => break,
                bytes => taken += bytes,
            }
        }
        let Some(stream) = leg.stream.and_then(|no| self.h2_of(leg.client)?.get_mut(no)) else { return };
        body.drain(..taken);
        stream.credited += body.len();
        body.append(&mut stream.held);
        stream.held = body;
        self.touch_leg(leg);
    }

    /// Forwards held input to server connections that have sent all earlier bytes.
    #[inline(never)]
    pub(super) fn settle_held(&mut self, id: ClientId) {
        let Some(h2) = self.h2_of(id) else { return };
        if !h2.holds_input() {
            return;
        }
        let before = h2.held();
        for no in h2.holding() {
            self.pass_held(Leg { client: id, stream: Some(no) });
        }
        if self.h2_of(id).is_some_and(|h2| h2.held() < before) {
            self.touch_client(id);
        }
    }

    /// Whether the exchange of a stream takes more of its request's body.
    fn has_room(&mut self, leg: Leg) -> bool {
        let Some(exchange) = self.exchange_of(leg).and_then(|id| self.exchanges.get(id)) else {
            return false;
        };
        match (&exchange.stage, exchange.upstream()) {
            (Stage::Holding(_), _) => true,
            (Stage::Queued, _) | (Stage::Forwarding, None) => false,
            (Stage::Forwarding, Some(upstream)) => {
                let upstream = self.upstreams.get(upstream);
                upstream.is_some_and(|upstream| upstream.pending(exchange.upstream_stream()) < MAX_PENDING)
            }
        }
    }

    fn pass_data(&mut self, leg: Leg, input: &mut [u8], at: usize) -> usize {
        self.exchange_of(leg).map_or(0, |exchange| self.pass_request_body(exchange, input, at))
    }

    /// Withholds the server's credit for DATA until the end of the turn, when the client's connection may have accepted
    /// the data. Grants the credit at once if the stream is closed.
    pub(super) fn owe(&mut self, id: UpstreamId, no: StreamNo, flow: u32) {
        let Some(h2) = self.h2_to(id) else { return };
        match h2.get_mut(no) {
            Some(stream) => {
                stream.owed += flow;
                h2.touch(no);
            }
            None => h2.connection.credit(no, flow),
        }
    }

    /// Grants the withheld credit of a stream, unless the client has no room for more of the response.
    #[inline]
    pub(super) fn pay_unless_blocked(&mut self, id: UpstreamId, no: StreamNo, exchange: ExchangeId) {
        if !self.is_blocked(exchange)
            && let Some(h2) = self.h2_to(id)
        {
            h2.pay(no);
        }
    }

    /// Whether the client's pending output of this exchange fills its buffer, so that the server gets no further
    /// credit. For a client's stream, the output of other streams in the connection's buffer does not count.
    pub(super) fn is_blocked(&self, id: ExchangeId) -> bool {
        let Some(exchange) = self.exchanges.get(id) else { return false };
        let Some(client) = self.clients.get(exchange.client) else { return false };
        let pending = match (exchange.stream, &client.h2) {
            (Some(no), Some(h2)) => h2.get(no).map_or(0, Stream::pending),
            _ => client.transport.pending(),
        };
        is_full(pending, Some(exchange))
    }
}
