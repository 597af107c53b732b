//! Server connections: reading, and the exchange steps that follow.

use super::Worker;
use super::core::{Core, HEADROOM};
use super::handshakes::EventSource;
use super::server_connections::note_stray;
use crate::exchange::{Event, Exchange};
use crate::keys::{ExchangeId, OfExchange, OfMirror, Store, UpstreamId};
use crate::mirror::{Fate, Mirror};
use crate::proxy::Next;
use crate::reason::Reason;
use crate::upstream::{Upstream, Use};
use weir_http1::Limits;
use weir_reactor::{Net, Ready};
use weir_transport::{End, Fault, Received};

impl<N: Net> Worker<N> {
    pub(super) fn upstream_ready(&mut self, id: UpstreamId, ready: Ready, source: EventSource) {
        // An event may belong to a connection that was closed in this turn.
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        if source == EventSource::Poller && upstream.transport.is_in_handshake() {
            return self.dialling.push(ready);
        }
        upstream.touch(id, &mut self.core.touched.upstreams);
        if ready.writable && (!upstream.transport.is_open() || upstream.transport.pending() > 0) {
            return self.upstream_writable(id, ready);
        }
        if ready.readable && !upstream.transport.is_connecting() {
            let received = receive(upstream, &self.exchanges, &self.mirrors, &mut self.core);
            self.take_received(id, received, true);
        }
    }

    /// A server's connection is established, or accepts more of the request.
    fn upstream_writable(&mut self, id: UpstreamId, ready: Ready) {
        let Some(upstream) = self.upstreams.present_mut(id) else { return };
        let transport = &mut upstream.transport;
        let connecting = transport.is_connecting();
        let mut asked = true;
        if connecting || transport.pending() > 0 {
            // Bytes received before the request's first byte was sent are not a response to it.
            let may_be_early = connecting && ready.readable && !ready.hangup;
            asked = !may_be_early || transport.is_quiet();
            match transport.advance(&mut self.core.wire) {
                Ok(()) => self.request_moved(id, connecting),
                // The server has closed the connection, but may have sent a response first, which the gateway can still
                // read.
                Err(Fault::Socket(_)) if ready.readable && !connecting => self.discard_request(id),
                Err(fault) => return self.lose_upstream(id, fault),
            }
        }
        // The exchange may have ended, and its connection with it.
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        if ready.readable && !upstream.transport.is_connecting() {
            let received = receive(upstream, &self.exchanges, &self.mirrors, &mut self.core);
            self.take_received(id, received, asked);
        }
    }

    /// The server read more of the request, or its connection was established (`connected`).
    fn request_moved(&mut self, id: UpstreamId, connected: bool) {
        let Some(upstream) = self.upstreams.present_mut(id) else { return };
        upstream.moved = true;
        let client = match upstream.used_for {
            Use::Exchange(exchange) => {
                let now = self.core.net.now();
                let Some(mut flow) = self.flow(exchange) else {
                    return self.broken(exchange, "a request without its connections");
                };
                flow.exchange.moved = true;
                flow.touch_client();
                match (connected, flow.upstream.transport.is_open()) {
                    (false, _) => {}
                    (true, true) => {
                        flow.exchange.times.connected = Some(now);
                        flow.opened();
                    }
                    // The TCP connection is established, and a handshake follows.
                    (true, false) => flow.exchange.times.reached = Some(now),
                }
                return;
            }
            // Nothing to do: a stream records its own progress when its bytes are written to the connection.
            Use::Streams if !connected => None,
            Use::Streams => return self.connection_moved(id),
            Use::Tunnel(tunnel) => {
                if connected {
                    self.tunnel_connected(tunnel, id);
                }
                self.tunnels.get(tunnel).map(|tunnel| tunnel.client)
            }
            Use::Idle | Use::Mirror(_) | Use::Closing => None,
        };
        if let Some(id) = client
            && let Some(client) = self.clients.get_mut(id)
        {
            client.moved = true;
            client.touch(id, &mut self.core.touched.clients);
        }
    }

    /// The upstream stopped reading the request: drops the rest of the body, and waits for a response.
    fn discard_request(&mut self, id: UpstreamId) {
        let Some(Use::Exchange(exchange)) = self.upstreams.get(id).map(|upstream| upstream.used_for) else {
            return;
        };
        if let Some(exchange) = self.exchanges.get_mut(exchange) {
            exchange.request.discard();
        }
    }

    /// Processes a server's input. `asked`: the request was sent before the input arrived, so the input can be a
    /// response.
    #[inline]
    fn take_received(
        &mut self,
        id: UpstreamId,
        (used_for, mut inbox, received): (Use, Vec<u8>, Result<Received, Fault>),
        mut asked: bool,
    ) {
        match received {
            Ok(received) => {
                if received.handshake_finished {
                    if let Some(upstream) = self.upstreams.get(id) {
                        self.core.counters.upstream_handshake(upstream.transport.facts());
                    }
                    // The request is sent after the handshake, so bytes received with its end cannot be a response.
                    asked &= received.bytes == 0;
                    self.request_moved(id, true);
                }
                match used_for {
                    Use::Exchange(exchange) if asked || received.bytes == 0 => {
                        self.take_response(id, exchange, &mut inbox, received.end);
                    }
                    Use::Exchange(exchange) => {
                        self.end_exchange(exchange, Reason::UpstreamUnsolicited);
                    }
                    Use::Streams => {
                        self.take_server_frames(id, &mut inbox, HEADROOM, received.end.is_some());
                    }
                    Use::Tunnel(tunnel) => self.pass_down(tunnel, &mut inbox, HEADROOM),
                    Use::Mirror(mirror) => self.take_mirrored(id, mirror, &inbox, received.end),
                    // The server closed a pooled connection, or sent bytes without a request: the connection cannot be
                    // reused.
                    Use::Idle => {
                        if received.bytes > 0 {
                            note_stray(received.bytes, &mut self.core);
                        }
                        if received.bytes > 0 || received.end.is_some() {
                            self.forget_pooled(id);
                        }
                    }
                    Use::Closing => {}
                }
            }
            Err(fault) => self.lose_upstream(id, fault),
        }
        self.core.put_inbox(inbox);
    }

    /// Processes a server's input for an exchange: the part of `inbox` after the headroom.
    fn take_response(&mut self, from: UpstreamId, id: ExchangeId, inbox: &mut [u8], end: Option<End>) {
        let mut at = HEADROOM;
        loop {
            let Some(mut flow) = self.flow(id) else {
                return self.broken(id, "a response without its connections");
            };
            match flow.take_response(inbox, at, end) {
                Next::Wait => {}
                Next::AskAnother { at: head, status } => {
                    if !self.ask_another(id, status) {
                        at = head;
                        continue;
                    }
                }
                Next::Switch { at } => self.switch(id, inbox, at),
                Next::Complete(completed) => self.complete(from, id, completed),
                Next::On(event) => self.on(id, event),
                Next::End(reason) => self.end_exchange(id, reason),
                Next::LoseClient(fault) => {
                    let client = flow.exchange.client;
                    self.lose_client(client, fault);
                }
            }
            return;
        }
    }

    /// The upstream's connection failed: informs the exchanges, tunnel or mirrored copy that use it, or drops it.
    pub(super) fn lose_upstream(&mut self, id: UpstreamId, fault: Fault) {
        let Some(upstream) = self.upstreams.present(id) else { return };
        match upstream.used_for {
            Use::Idle => self.forget_pooled(id),
            Use::Closing => self.drop_upstream(id),
            Use::Mirror(mirror) => self.drop_mirror(mirror, Fate::Failed),
            Use::Streams => self.lose_streams(id, &fault),
            Use::Exchange(exchange) => {
                let event = match (upstream.transport.is_open(), fault) {
                    (false, fault @ Fault::Connect(_)) => Event::NotConnected(Reason::UpstreamConnect(fault)),
                    (false, fault @ Fault::Tls(_)) => Event::NotConnected(Reason::UpstreamTls(fault)),
                    (_, fault) => Event::UpstreamFailed { fault, partial: !upstream.held.is_empty() },
                };
                self.on(exchange, event);
            }
            Use::Tunnel(tunnel) => self.end_tunnel(
                tunnel,
                match fault {
                    Fault::Connect(_) => Reason::UpstreamConnect(fault),
                    Fault::Tls(_) => Reason::UpstreamTls(fault),
                    Fault::Socket(_) => Reason::UpstreamTruncated,
                },
            ),
        }
    }
}

/// Receives from a server; returns the purpose of the connection, and the input after the headroom.
#[inline]
fn receive<N: Net>(
    upstream: &mut Upstream<N::Socket>,
    exchanges: &Store<OfExchange, Exchange>,
    mirrors: &Store<OfMirror, Mirror>,
    core: &mut Core<N>,
) -> (Use, Vec<u8>, Result<Received, Fault>) {
    let Upstream { transport, held, part, .. } = upstream;
    let limits = match held.is_empty() {
        true => None,
        false => limits_of_part(upstream.used_for, exchanges, mirrors),
    };
    let (inbox, received) = match &limits {
        Some(limits) => core.receive_more(transport, held, *part, limits),
        None => {
            let mut inbox = core.take_inbox(held);
            let received = transport.receive(&mut core.wire, &mut inbox);
            (inbox, received)
        }
    };
    if let Ok(received) = &received {
        upstream.may_have_more = received.is_full;
        upstream.ended |= received.end.is_some();
    }
    (upstream.used_for, inbox, received)
}

/// The limits for a response head that has arrived in part; `None` if the connection awaits no head.
#[cold]
fn limits_of_part(
    used_for: Use,
    exchanges: &Store<OfExchange, Exchange>,
    mirrors: &Store<OfMirror, Mirror>,
) -> Option<Limits> {
    match used_for {
        Use::Exchange(id) => {
            let exchange = exchanges.get(id).filter(|exchange| exchange.response.is_awaiting())?;
            Some(exchange.limits)
        }
        Use::Mirror(id) => {
            mirrors.get(id).filter(|mirror| mirror.response.is_none()).map(|mirror| mirror.limits)
        }
        Use::Idle | Use::Streams | Use::Tunnel(_) | Use::Closing => None,
    }
}
