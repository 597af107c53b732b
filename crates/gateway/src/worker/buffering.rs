//! Requests whose bodies the gateway buffers before it sends them, so that slow clients do not occupy server
//! connections. For these requests, the gateway itself sends `100 Continue`.

use super::Worker;
use crate::exchange::{HeldBody, Stage};
use crate::keys::ExchangeId;
use crate::reason::Reason;
use weir_http1::BodyDecoder;
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// Starts to buffer a request, until its body is complete or fills the route's buffer. Ends it if memory is short.
    #[cold]
    pub(super) fn hold(&mut self, id: ExchangeId) {
        if self.core.is_short {
            return self.end_exchange(id, Reason::NoMemory);
        }
        let Some(exchange) = self.exchanges.get_mut(id) else {
            return self.broken(id, "a client without its exchange");
        };
        let leg = exchange.leg();
        let (Some(head), Some(client)) = (&exchange.head, self.clients.get_mut(leg.client)) else {
            return self.broken(id, "a request without its head or its client");
        };
        let framing = head.request.framing;
        let core = &mut self.core;
        if exchange.awaits_continue.take() {
            client.say_continue(leg.stream, &mut core.wire);
        }
        let decoder = BodyDecoder::new(leg.framing(framing), &client.frontend.limits);
        let policy = exchange.policy();
        let (most, max_body) = (policy.request_buffer, policy.max_body);
        exchange.moved = true;
        exchange.stage =
            Stage::Holding(Box::new(HeldBody { body: Vec::new(), decoder, most, max_body, passed: 0 }));
        self.touch_leg(leg);
    }

    /// Buffers the part of the body at the start of `input`, and sends the request once its body is complete or the
    /// buffer is full. Returns the length of the part; 0 if the request waits in a queue, or its body is invalid.
    #[cold]
    pub(super) fn hold_body(&mut self, id: ExchangeId, input: &[u8]) -> usize {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            self.broken(id, "a client without its exchange");
            return 0;
        };
        let Stage::Holding(held) = &mut exchange.stage else { return 0 };
        let taken = match held.take(input) {
            Ok(taken) => taken,
            Err(error) => {
                self.end_exchange(id, Reason::BadRequestBody(error));
                return 0;
            }
        };
        exchange.received = held.passed;
        exchange.moved = true;
        let (is_too_large, is_due) = (held.passed > held.max_body, held.is_due());
        if is_too_large {
            self.end_exchange(id, Reason::BodyTooLarge);
        } else if is_due {
            self.send_held(id);
        }
        taken
    }

    pub(super) fn send_held(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            return self.broken(id, "a client without its exchange");
        };
        let leg = exchange.leg();
        let Stage::Holding(held) = std::mem::replace(&mut exchange.stage, Stage::Forwarding) else {
            return self.broken(id, "a request without its buffered body");
        };
        let mut body = held.body;
        exchange.was_held = true;
        self.start_delayed(id, false);
        if leg.stream.is_some() {
            return self.hold_again(leg, body);
        }
        let client_id = leg.client;
        let taken = self.take_some(client_id, &mut body, 0);
        if let Some(client) = self.clients.get_mut(client_id)
            && client.phase != crate::downstream::Phase::Closing
        {
            client.held.extend_from_slice(&body[taken..]);
        }
    }
}
