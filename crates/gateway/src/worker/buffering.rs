//! Requests that the gateway holds until their bodies are here, so that slow clients occupy no server's connection.

use super::Worker;
use crate::exchange::{Exchange, HeldBody, Stage};
use crate::keys::ExchangeId;
use crate::reason::Reason;
use weir_http1::BodyDecoder;
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// Holds a request until all of its body is here, or as much as its route buffers.
    #[cold]
    pub(super) fn hold(&mut self, mut exchange: Exchange) {
        if self.core.is_short {
            return self.give_up(exchange, Reason::NoMemory);
        }
        let id = exchange.client;
        let Some(client) = self.clients.get_mut(id) else { return };
        let core = &mut self.core;
        let Some(framing) = exchange.head.as_ref().map(|head| head.request.framing) else {
            return self.broken_client(id, "a request without its head");
        };
        if exchange.awaits_continue {
            client.transport.stage(&mut core.wire).extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        client.moved = true;
        let decoder = BodyDecoder::new(framing, &client.frontend.limits);
        let policy = exchange.policy();
        let (most, max_body) = (policy.request_buffer, policy.max_body);
        exchange.awaits_continue = false;
        exchange.stage =
            Stage::Holding(Box::new(HeldBody { body: Vec::new(), decoder, most, max_body, passed: 0 }));
        self.insert(exchange);
        self.touch_client(id);
    }

    /// Takes the part of the body that `input` begins with, and sends the request once that is due. Returns its length: 0 if
    /// the request waits in a queue.
    #[cold]
    pub(super) fn hold_body(&mut self, id: ExchangeId, input: &[u8]) -> usize {
        let Some(exchange) = self.exchanges.get_mut(id) else { return 0 };
        let client_id = exchange.client;
        let Stage::Holding(held) = &mut exchange.stage else { return 0 };
        let taken = match held.take(input) {
            Ok(taken) => taken,
            Err(error) => {
                self.end_exchange(id, Reason::BadRequestBody(error));
                return 0;
            }
        };
        exchange.received = held.passed;
        let (is_too_large, is_due) = (held.passed > held.max_body, held.is_due());
        if let Some(client) = self.clients.get_mut(client_id) {
            client.moved = true;
        }
        if is_too_large {
            self.end_exchange(id, Reason::BodyTooLarge);
        } else if is_due {
            self.send_held(id);
        }
        taken
    }

    fn send_held(&mut self, id: ExchangeId) {
        let Some(mut exchange) = self.take(id) else { return };
        let client_id = exchange.client;
        let Stage::Holding(held) = std::mem::replace(&mut exchange.stage, Stage::Forwarding) else {
            self.insert(exchange);
            return self.broken_client(client_id, "a request without its buffered body");
        };
        let mut body = held.body;
        exchange.was_held = true;
        self.start(exchange, false);
        let taken = self.take_some(client_id, &mut body, 0);
        if let Some(client) = self.clients.get_mut(client_id)
            && client.phase != crate::downstream::Phase::Closing
        {
            client.held.extend_from_slice(&body[taken..]);
        }
    }
}
