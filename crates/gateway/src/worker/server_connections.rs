//! Server connections for requests: from the pool or dialled, and back into the pool.

use super::{Core, Worker};
use crate::config::document::Failure;
use crate::downstream::Client;
use crate::exchange::Attempt;
use crate::keys::{ClientId, ServerId, ServiceId, UpstreamId};
use crate::limits::{Descriptor, Exhausted, Kind};
use crate::observe::{Bytes, Context};
use crate::reason::Reason;
use crate::upstream::{Counted, Life, PickContext, Pooled, Upstream, Use, join};
use std::io;
use std::sync::Arc;
use weir_preface::proxy;
use weir_reactor::Net;
use weir_transport::{Fault, Transport};

impl<N: Net> Worker<N> {
    /// A connection for a request: to an HTTP/1.1 server, a pooled one without pending input, or a new one; to an
    /// HTTP/2 server, one with room for another stream, or a new one.
    pub(super) fn attempt(&mut self, server: ServerId, client: ClientId) -> Result<Attempt, Unavailable> {
        while let Some(Pooled { id: upstream, is_settled }) = self.take_idle(server) {
            // The poller reported all events of this turn, and the worker handles events of server connections before
            // requests. So a connection that is still in the pool has no pending input.
            let is_known = is_settled && self.core.knows_all;
            if is_known
                || self.upstreams.get_mut(upstream).is_some_and(|upstream| is_quiet(upstream, &mut self.core))
            {
                return Ok(Attempt { upstream, stream: None, reused: true });
            }
            self.drop_upstream(upstream);
        }
        self.further_attempt(server, client)
    }

    /// A connection for a further attempt: a new one or, to an HTTP/2 server, one with room for another stream.
    pub(super) fn further_attempt(
        &mut self,
        server: ServerId,
        client: ClientId,
    ) -> Result<Attempt, Unavailable> {
        match self.servers.get(server).is_some_and(|server| server.config.http2) {
            true => self.attempt_on_stream(server, client),
            false => Ok(Attempt { upstream: self.dial(server, client)?, stream: None, reused: false }),
        }
    }

    /// Ends the use of a connection by an exchange whose attempt has failed: closes the connection, or its stream.
    pub(super) fn abandon(&mut self, attempt: Attempt) {
        match attempt.stream {
            Some(no) => self.abort_stream(attempt.upstream, no),
            None => self.drop_upstream(attempt.upstream),
        }
    }

    pub(super) fn take_idle(&mut self, server: ServerId) -> Option<Pooled> {
        let turn = self.core.turn;
        self.servers.get_mut(server).and_then(|server| server.pool.take(turn, &mut self.upstreams))
    }

    /// The server for a request. Errors: no server can take the request, or the service was removed.
    pub(super) fn choose(&mut self, service: ServiceId, context: PickContext) -> Result<ServerId, Fault> {
        let now = self.core.net.now();
        let service = self.services.get_mut(service);
        service.and_then(|service| service.choose(&mut self.servers, now, context)).ok_or_else(no_server)
    }

    /// A server that is not in `context.asked`. Errors: there is none.
    pub(super) fn choose_other(
        &mut self,
        service: ServiceId,
        context: PickContext,
    ) -> Result<ServerId, Fault> {
        let chosen = self.choose(service, context)?;
        if context.asked.contains(&Some(chosen)) { Err(no_server()) } else { Ok(chosen) }
    }

    /// Dials a server for a client. A server that expects the PROXY protocol gets a header with the client's addresses.
    pub(super) fn dial(&mut self, id: ServerId, client: ClientId) -> Result<UpstreamId, Unavailable> {
        let server = self.servers.get(id).ok_or_else(no_server)?;
        let slot = match &server.slots {
            Some(slots) => Some(slots.take().ok_or(Unavailable::Full)?),
            None => None,
        };
        let (socket, descriptor) = self.open(id)?;
        let server = self.servers.get(id).ok_or_else(no_server)?;
        let session = server.tls.as_ref().map(|(connector, name)| connector.connect(name));
        self.core.counters.upstream_connections += 1;
        let mut transport = Transport::dialled(socket, session);
        if let Some(version) = server.config.announces {
            let mut header = Vec::new();
            proxy::write(version, self.clients.get(client).and_then(Client::addresses), &mut header);
            transport.announce(&header);
        }
        let life = Life::begins(self.core.counters.upstream_connections, self.core.net.now());
        let upstream = Upstream::new(transport, id, life);
        Ok(self.upstreams.insert(Upstream { slot, descriptor: Some(descriptor), ..upstream }))
    }

    /// Connects to a server's address. Evicts idle connections while descriptors are exhausted.
    fn open(&mut self, id: ServerId) -> Result<(N::Socket, Descriptor), Unavailable> {
        let descriptor = match self.peers.descriptors.upstream() {
            Ok(descriptor) => descriptor,
            Err(_) => self.place_for_upstream().map_err(|_| Unavailable::NoDescriptors)?,
        };
        loop {
            let server = self.servers.get(id).ok_or_else(no_server)?;
            match self.core.net.connect(&server.config.address) {
                Ok(socket) => return Ok((socket, descriptor)),
                Err(error) if !Exhausted::is(&error) => return Err(Fault::Connect(error).into()),
                Err(_) if self.evict_upstream(Exhausted::System) => {}
                Err(_) => {
                    self.ask_for_room(Exhausted::System);
                    return Err(Unavailable::NoDescriptors);
                }
            }
        }
    }

    /// If `eject.on` of the service includes this status, counts the response and records a failure of the server.
    /// Returns whether the response is such a failure.
    #[cold]
    pub(super) fn note_failure(&mut self, service: ServiceId, server: ServerId, status: u16) -> bool {
        let failure = Failure::Status(status);
        let is_failure = self.services.get(service).is_some_and(|of| of.config.eject.on.has(failure));
        if is_failure {
            if let Some(server) = self.servers.get_mut(server) {
                server.count(status);
            }
            self.record_failure(service, server, failure, Counted::Yes);
        }
        is_failure
    }

    /// Records a failure of a server, if `eject.on` of the service includes it; this may eject the server. A service's
    /// only server is exempt. Call at most once per attempt.
    pub(super) fn record_failure(
        &mut self,
        service: ServiceId,
        server: ServerId,
        failure: Failure,
        counted: Counted,
    ) {
        let now = self.core.net.now();
        let (Some(service), Some(server)) = (self.services.get(service), self.servers.get_mut(server)) else {
            return;
        };
        if service.servers.len() < 2 || !service.config.eject.on.has(failure) {
            return;
        }
        if let Some(period) = server.failed(now, &service.config.eject, counted) {
            self.core.counters.ejections += 1;
            self.core.log.line(format_args!(
                "weir: {}: {} keeps failing; it gets no requests for {} s",
                service.config.name,
                server.config.place,
                period.as_secs_f64()
            ));
        }
    }

    /// Releases the connection of a complete exchange: pools it, hands it to a waiting worker, or closes it. Counts the
    /// response's `status`. `reusable`: the exchange permits reuse.
    pub(super) fn release(&mut self, id: UpstreamId, service: ServiceId, reusable: bool, status: u16) {
        let has_failed = status >= 400 && self.has_failed(id, service, status);
        let Some(upstream) = self.upstreams.present_mut(id) else { return };
        // A reload may have removed the server.
        let Some(server) = self.servers.get_mut(upstream.server) else { return self.drop_upstream(id) };
        let now = self.core.net.now();
        upstream.life.requests = upstream.life.requests.saturating_add(1);
        if !has_failed {
            server.succeeded();
            server.count(status);
        }
        // A PROXY protocol header ties the connection to one client.
        let may_go_on = server.config.announces.is_none()
            && server.has_place_in_pool()
            && !upstream.life.is_used_up(&server.config.pool, now);
        let reusable = reusable
            && !upstream.ended
            && may_go_on
            && upstream.transport.pending() == 0
            && !upstream.transport.has_partial_record();
        if !reusable || (upstream.may_have_more && !is_quiet(upstream, &mut self.core)) {
            return self.drop_upstream(id);
        }
        if server.slots.is_some() {
            return self.put_back(id);
        }
        upstream.used_for = Use::Idle;
        upstream.touch(id, &mut self.core.touched.upstreams);
        server.in_flight.end();
        let older = server.pool.put(id, upstream, self.core.turn);
        join(older, id, &mut self.upstreams);
    }

    /// Pools a connection to a server with a shared connection limit, or hands it to another worker that waits for one.
    fn put_back(&mut self, id: UpstreamId) {
        if self.is_wanted_elsewhere(id) {
            return;
        }
        self.assign(id, Use::Idle);
        self.put_into_pool(id);
    }

    /// Counts a response, as a success or a failure of the connection's server.
    pub(super) fn note_response(&mut self, id: UpstreamId, service: ServiceId, status: u16) {
        if status >= 400 && self.has_failed(id, service, status) {
            return;
        }
        let server = self.upstreams.get(id).map(|upstream| upstream.server);
        // A reload may have removed the server.
        if let Some(server) = server.and_then(|server| self.servers.get_mut(server)) {
            server.succeeded();
            server.count(status);
        }
    }

    pub(super) fn put_into_pool(&mut self, id: UpstreamId) {
        let Some(upstream) = self.upstreams.present_mut(id) else { return };
        upstream.touch(id, &mut self.core.touched.upstreams);
        if let Some(server) = self.servers.get_mut(upstream.server) {
            let older = server.pool.put(id, upstream, self.core.turn);
            join(older, id, &mut self.upstreams);
        }
    }

    /// As [`Self::note_failure`], for the server of a connection.
    #[cold]
    fn has_failed(&mut self, id: UpstreamId, service: ServiceId, status: u16) -> bool {
        let server = self.upstreams.get(id).map(|upstream| upstream.server);
        server.is_some_and(|server| self.note_failure(service, server, status))
    }

    /// Sets the use of a connection, and counts its server's requests in flight.
    pub(super) fn assign(&mut self, id: UpstreamId, used_for: Use) {
        let Some(upstream) = self.upstreams.present_mut(id) else { return };
        let before = std::mem::replace(&mut upstream.used_for, used_for);
        if let Some(server) = self.servers.get_mut(upstream.server) {
            server.in_flight.change_use(before, used_for);
        }
    }

    /// Closes the idle connections to a server; the others close after their exchanges.
    pub(super) fn close_idle(&mut self, id: ServerId) {
        while let Some(idle) = self.take_idle(id) {
            self.drop_upstream(idle.id);
        }
        let multiplexed = self.servers.get(id).map(|server| server.multiplexed.clone());
        for id in multiplexed.unwrap_or_default() {
            self.retire_multiplexed(id);
        }
    }

    /// Closes a surplus or expired idle connection cleanly.
    pub(super) fn retire_pooled(&mut self, id: UpstreamId) {
        // Best effort: the connection closes either way.
        if let Some(upstream) = self.upstreams.get_mut(id) {
            let _ = upstream.transport.finish(&mut self.core.wire);
        }
        self.forget_pooled(id);
    }

    /// Removes an idle connection from its pool, and closes it.
    pub(super) fn forget_pooled(&mut self, id: UpstreamId) {
        let server = self.upstreams.get(id).map(|upstream| upstream.server);
        if let Some(server) = server.and_then(|server| self.servers.get_mut(server)) {
            server.pool.forget(id, &mut self.upstreams);
        }
        self.drop_upstream(id);
    }

    /// Closes a connection that is not in the pool. Its descriptor and its slot become available to other workers.
    pub(super) fn drop_upstream(&mut self, id: UpstreamId) {
        match self.upstreams.get(id).map(|upstream| upstream.used_for) {
            Some(Use::Streams) => {
                self.forget_multiplexed(id);
                self.end_awaiting(id, |_| Reason::UpstreamClosed);
            }
            _ => self.assign(id, Use::Idle),
        }
        if let Some(mut upstream) = self.upstreams.remove(id) {
            self.core.counters.server_bytes(Bytes::of(&upstream.transport));
            if let Some(h2) = &mut upstream.h2 {
                h2.count(Kind::Upstream, self.core.net.now(), &mut self.core.counters);
            }
            upstream.timer.cancel(self.core.net.wheel());
            drop(upstream.descriptor);
            self.offer_descriptor();
            if let Some(slot) = upstream.slot {
                let slots = Arc::clone(slot.slots());
                drop(slot);
                self.offer_room(&slots);
            }
        }
    }
}

/// Whether a server's connection has received nothing since its last response. Pending input may be the end of the
/// stream, which the poller would report too late for the next request, or stray bytes that the next client must not
/// receive.
pub(super) fn is_quiet<N: Net>(upstream: &mut Upstream<N::Socket>, core: &mut Core<N>) -> bool {
    if upstream.transport.is_quiet() {
        return true;
    }
    let mut inbox = core.wire.buffer();
    let received = upstream.transport.receive(&mut core.wire, &mut inbox);
    let is_open = matches!(&received, Ok(received) if received.end.is_none());
    let stray = inbox.len();
    // Input without application data, such as a TLS ticket, is harmless.
    let is_quiet = is_open && stray == 0 && upstream.transport.is_quiet();
    core.wire.give_back(inbox);
    if stray > 0 {
        note_stray(stray, core);
    }
    is_quiet
}

/// Logs and counts bytes received on an idle server connection, which the caller closes.
pub(super) fn note_stray<N: Net>(bytes: usize, core: &mut Core<N>) {
    core.note_end(&Reason::UpstreamStray(bytes), Context::default());
}

#[derive(Debug)]
pub(super) enum Unavailable {
    /// The server's connections have reached their limit.
    Full,
    /// The process is out of descriptors.
    NoDescriptors,
    /// connect(2) failed, or there is no server.
    Failed(Fault),
}

impl From<Fault> for Unavailable {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

impl From<Unavailable> for Reason {
    fn from(unavailable: Unavailable) -> Self {
        Self::UpstreamConnect(match unavailable {
            Unavailable::Full => Fault::Connect(io::Error::other("all connections to it are in use")),
            Unavailable::NoDescriptors => return Self::NoDescriptors,
            Unavailable::Failed(fault) => fault,
        })
    }
}

/// The error for a service whose servers are all down, drained, or removed from the configuration.
fn no_server() -> Fault {
    Fault::Connect(io::Error::other("no server is left"))
}
