//! From the client to the upstream.

use crate::client::State;
use crate::core::count_handshake;
use crate::deadline::Deadline;
use crate::exchange::{Answer, Body, Exchange, RequestLine, flush};
use crate::reason::Reason;
use crate::rewrite;
use crate::upstream::Upstream;
use crate::worker::Worker;
use weir_http1::{Framing, Method, Parse};
use weir_reactor::{Key, Ready};
use weir_transport::{Fault, Transport};

impl Worker {
    pub(crate) fn client_ready(&mut self, key: Key, ready: Ready) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if ready.writable && client.transport.pending() > 0 {
            if let Err(fault) = client.transport.advance(&mut self.core.wire) {
                return self.lose_client(key, fault);
            }
            self.answer_moved(key);
        }
        if ready.hangup && self.clients.get(key).is_some_and(|client| client.ended) {
            // Both directions have ended: the client is gone.
            return self.lose_client(key, Fault::Socket(std::io::ErrorKind::ConnectionReset.into()));
        }
        if ready.readable {
            self.read_client(key);
        }
        self.settle_client(key);
    }

    /// The client read more of its response: the upstream may be read again, and the stall timer restarts.
    fn answer_moved(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        match &client.state {
            State::Closing => self.extend_closing(key),
            State::Head { .. } => {}
            State::Exchange(exchange) => {
                let upstream = exchange.upstream;
                let stalled = self.core.reactor.now() + self.core.settings.timeouts.stall;
                match client.transport.pending() {
                    0 if exchange.request.is_complete() => client.deadline.clear(),
                    _ => client.deadline.set(stalled, &mut self.core.reactor, key),
                }
                // It may have been silent only because we did not read it.
                if let (Answer::Body { .. }, Some(upstream)) =
                    (&exchange.answer, self.upstreams.get_mut(exchange.upstream))
                {
                    upstream.deadline.set(stalled, &mut self.core.reactor, exchange.upstream);
                }
                self.settle_upstream(upstream);
            }
        }
    }

    pub(crate) fn read_client(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let mut inbox = std::mem::take(&mut self.core.inbox);
        inbox.clear();
        if !client.held.is_empty() {
            inbox.append(&mut std::mem::take(&mut client.held));
        }
        match client.transport.receive(&mut self.core.wire, &mut inbox) {
            Ok(received) => {
                client.ended |= received.end.is_some();
                if received.handshake_finished {
                    count_handshake(&mut self.core.counts.handshakes, client.transport.facts());
                    let timeouts = &self.core.settings.timeouts;
                    let within = if self.core.draining { timeouts.drain_idle } else { timeouts.idle };
                    client.deadline.set(self.core.reactor.now() + within, &mut self.core.reactor, key);
                }
                self.take_requests(key, &inbox);
            }
            Err(fault) => self.lose_client(key, fault),
        }
        self.core.inbox = inbox;
    }

    /// Continues with input pipelined before the last response was complete.
    pub(crate) fn resume_client(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let held = std::mem::take(&mut client.held);
        self.take_requests(key, &held);
        self.settle_client(key);
    }

    /// Processes a client's input, up to the next request that must wait.
    fn take_requests(&mut self, key: Key, inbox: &[u8]) {
        let mut at = 0;
        while let Some(client) = self.clients.get_mut(key) {
            let input = &inbox[at..];
            match &mut client.state {
                State::Closing => return,
                State::Head { started } => {
                    if input.is_empty() {
                        break;
                    }
                    match self.core.request.parse(input, &self.core.settings.limits) {
                        Ok(Parse::Complete(len)) => {
                            at += len;
                            self.begin(key, &input[..len]);
                        }
                        Ok(Parse::Partial) => {
                            if !*started {
                                *started = true;
                                let by = self.core.reactor.now() + self.core.settings.timeouts.head;
                                client.deadline.set(by, &mut self.core.reactor, key);
                            }
                            break;
                        }
                        Err(error) => self.refuse(key, Reason::BadRequest(error)),
                    }
                }
                State::Exchange(exchange) if exchange.request.is_complete() => break,
                State::Exchange(_) if input.is_empty() => break,
                State::Exchange(_) => at += self.pass_request_body(key, input),
            }
        }
        if at > 0 {
            self.send_request(key);
        }
        let Some(client) = self.clients.get_mut(key) else { return };
        if at < inbox.len() && !matches!(client.state, State::Closing) {
            client.held = inbox[at..].to_vec();
        }
        if client.ended {
            self.client_ended(key);
        }
    }

    /// A request head is complete: forwards it (into the outbox) or rejects it.
    fn begin(&mut self, key: Key, buf: &[u8]) {
        let head = &self.core.request;
        if head.method == Method::Connect {
            return self.refuse(key, Reason::ConnectMethod);
        }
        let limit = self.core.settings.max_body.unwrap_or(u64::MAX);
        if matches!(head.framing, Framing::Length(length) if length > limit) {
            return self.refuse(key, Reason::BodyTooLarge);
        }
        let upstream = match self.pooled().map_or_else(|| self.dial(), Ok) {
            Ok(upstream) => upstream,
            Err(fault) => return self.refuse(key, Reason::UpstreamConnect(fault)),
        };
        let (Some(client), Some(connection)) = (self.clients.get_mut(key), self.upstreams.get_mut(upstream))
        else {
            return;
        };
        let core = &mut self.core;
        let head = &core.request;
        let authority = core.upstream.authority.as_bytes();
        rewrite::request(buf, head, &client.forwarded, authority, &mut core.outbox);
        let chunked = head.framing == Framing::Chunked;
        client.state = State::Exchange(Exchange {
            upstream,
            method: head.method,
            version: head.version,
            persistent: head.persistent,
            request: Body::new(head.framing, chunked, &core.settings.limits),
            request_discarded: false,
            authenticates_connection: head.authenticates_connection,
            answer: Answer::Awaited,
            line: RequestLine::new(head.method_span.of(buf), head.target.of(buf)),
        });
        client.deadline.clear();
        connection.client = Some(key);
        core.counts.requests += 1;
    }

    /// Forwards the part of the request's body in `input`; returns its length.
    fn pass_request_body(&mut self, key: Key, input: &[u8]) -> usize {
        let Some(client) = self.clients.get_mut(key) else { return 0 };
        let State::Exchange(exchange) = &mut client.state else { return 0 };
        let core = &mut self.core;
        let upstream = self.upstreams.get_mut(exchange.upstream);
        let consumed = match upstream {
            Some(upstream) if !exchange.request_discarded => {
                let to = &mut upstream.transport;
                exchange.request.pass(input, &mut core.outbox, to, &mut core.wire).map(|passed| {
                    exchange.request_discarded = passed.receiver_lost.is_some();
                    passed.consumed
                })
            }
            _ => exchange.request.discard(input),
        };
        match consumed {
            Ok(consumed) => {
                let limit = core.settings.max_body.unwrap_or(u64::MAX);
                if exchange.request.passed() > limit {
                    core.outbox.clear();
                    self.refuse(key, Reason::BodyTooLarge);
                }
                consumed
            }
            Err(error) => {
                core.outbox.clear();
                self.refuse(key, Reason::BadRequestBody(error));
                0
            }
        }
    }

    /// Sends the outbox, and updates the deadlines that progress moves.
    fn send_request(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return self.core.outbox.clear() };
        let State::Exchange(exchange) = &mut client.state else { return self.core.outbox.clear() };
        let core = &mut self.core;
        let Some(upstream) = self.upstreams.get_mut(exchange.upstream) else { return core.outbox.clear() };
        if exchange.request_discarded {
            core.outbox.clear();
        } else if flush(&mut core.outbox, &mut upstream.transport, &mut core.wire).is_err() {
            // The upstream may have responded before it closed: its response, or the lack of one, decides.
            exchange.request_discarded = true;
        }
        let stalled = core.reactor.now() + core.settings.timeouts.stall;
        if !exchange.request.is_complete() {
            client.deadline.set(stalled, &mut core.reactor, key);
        } else if client.transport.pending() == 0 {
            client.deadline.clear();
        }
        let upstream = exchange.upstream;
        self.await_answer(upstream);
        self.settle_upstream(upstream);
    }

    /// The client closed its sending side.
    fn client_ended(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        match &mut client.state {
            State::Closing => {}
            State::Head { .. } => self.close(key),
            State::Exchange(exchange) if exchange.request.is_complete() => {
                exchange.persistent &= !client.held.is_empty();
            }
            State::Exchange(_) => self.abort(key, Reason::ClientClosed),
        }
    }

    /// A pooled connection that can take a request.
    fn pooled(&mut self) -> Option<Key> {
        while let Some(key) = self.pool.take() {
            if self.is_quiet(key) {
                return Some(key);
            }
            self.upstreams.remove(key);
        }
        None
    }

    fn dial(&mut self) -> Result<Key, Fault> {
        let session = self.core.upstream.tls.as_ref().map(|(connector, name)| connector.connect(name));
        let transport = Transport::connect(self.core.upstream.address, session)?;
        self.core.counts.upstream_connections += 1;
        let key = self.upstreams.insert(Upstream {
            transport,
            client: None,
            held: Vec::new(),
            may_have_more: false,
            deadline: Deadline::default(),
        });
        if let Some(upstream) = self.upstreams.get_mut(key) {
            let by = self.core.reactor.now() + self.core.settings.timeouts.connect;
            upstream.deadline.set(by, &mut self.core.reactor, key);
        }
        Ok(key)
    }
}
