//! Upstream connections for requests: taken from the pool or dialled, tried again, put back.

use super::Worker;
use crate::config::document::Failure;
use crate::downstream::Client;
use crate::exchange::{Attempt, Budget, Replay};
use crate::keys::{ClientId, ExchangeId, ServerId, ServiceId, UpstreamId};
use crate::limits::{Descriptor, Exhausted};
use crate::observe::{Bytes, Context};
use crate::reason::Reason;
use crate::upstream::{Counted, Job, Life, Pooled, Upstream, Wish};
use std::io;
use std::sync::Arc;
use weir_preface::proxy;
use weir_reactor::Net;
use weir_transport::{Fault, Transport};

impl<N: Net> Worker<N> {
    /// A connection for a request.
    pub(super) fn attempt(&mut self, server: ServerId, client: ClientId) -> Result<Attempt, Unavailable> {
        while let Some(Pooled { id: upstream, is_settled }) = self.take_idle(server) {
            // Nothing was reported of it at the begin of this turn, and upstreams' events come first.
            let is_known = is_settled && self.core.knows_all && !self.has_partial_record(upstream);
            if is_known || self.is_quiet(upstream) {
                return Ok(Attempt { upstream, reused: true });
            }
            self.drop_upstream(upstream);
        }
        Ok(Attempt { upstream: self.dial(server, client)?, reused: false })
    }

    /// Takes an idle connection out of a server's pool.
    pub(super) fn take_idle(&mut self, server: ServerId) -> Option<Pooled> {
        let turn = self.core.turn;
        self.servers.get_mut(server).and_then(|server| server.pool.take(turn, &mut self.upstreams))
    }

    /// The server for a request. Errors: the service has none, or is gone.
    pub(super) fn choose(&mut self, service: ServiceId, wish: Wish) -> Result<ServerId, Fault> {
        let now = self.core.net.now();
        let service = self.services.get_mut(service);
        service.and_then(|service| service.choose(&mut self.servers, now, wish)).ok_or_else(no_server)
    }

    /// The server for a request that goes to another one than those that have responded to it. Errors: there is none.
    fn choose_other(&mut self, service: ServiceId, wish: Wish) -> Result<ServerId, Fault> {
        let chosen = self.choose(service, wish)?;
        if wish.asked.contains(&Some(chosen)) { Err(no_server()) } else { Ok(chosen) }
    }

    /// Starts a connection for a client.
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

    /// Starts a connection to a server's address, for which an idle one is closed if that is what it takes.
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

    /// Sends the request of an exchange again, on a new connection to the same server, or to another one if that is down or
    /// ejected by now, or another configuration has replaced it.
    pub(super) fn retry(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let client = exchange.client;
        let Some(mut bytes) = exchange.replay.take() else {
            return self.broken(client, "a retry without the request");
        };
        let (service, key) = (exchange.service, exchange.key);
        let route = exchange.plan.snapshot.routes.get(exchange.route);
        // Its head says which server it is for.
        let is_bound = route.is_some_and(|route| route.request.names_upstream());
        let retries = self.services.get_mut(service).map(|service| &mut service.retries);
        if !retries.is_some_and(Budget::spend) {
            self.core.wire.give_back(bytes);
            return self.end(client, Reason::UpstreamClosed);
        }
        let lost = exchange.attempt.upstream;
        let mut server = None;
        if let Some(upstream) = self.upstreams.get_mut(lost) {
            // What would have left at the turn's end.
            bytes.append(upstream.transport.stage(&mut self.core.wire));
            server = Some(upstream.server);
        }
        self.drop_upstream(lost);
        let now = self.core.net.now();
        let mut is_good = |id| self.servers.get_mut(id).is_some_and(|server| server.is_available(now));
        let server = match server {
            Some(server) if is_bound || is_good(server) => Ok(server),
            avoid => self.choose(service, Wish { key, avoid, ..Wish::default() }),
        };
        let dialled = match server.map_err(Unavailable::Failed).and_then(|server| self.dial(server, client)) {
            Ok(dialled) => dialled,
            Err(unavailable) => return self.end(client, unavailable.into()),
        };
        let (Some(exchange), Some(upstream)) = (self.exchanges.get_mut(id), self.upstreams.get_mut(dialled))
        else {
            return self.broken(client, "a retry without its connection");
        };
        upstream.transport.stage(&mut self.core.wire).extend_from_slice(&bytes);
        exchange.attempt = Attempt { upstream: dialled, reused: false };
        exchange.retries += 1;
        exchange.request.resume();
        exchange.times.attempt = self.core.net.now();
        exchange.times.connected = None;
        self.core.wire.give_back(bytes);
        self.core.counters.retries += 1;
        self.assign(dialled, Job::Exchange(id));
        self.touch_upstream(dialled);
        self.touch_client(client);
    }

    /// Sends the request of an exchange to another server in place of passing this one's response on. Returns whether it does:
    /// without another server, or a retry left, the client gets this response.
    #[cold]
    pub(super) fn ask_another(&mut self, id: ExchangeId, status: u16) -> bool {
        let Some(exchange) = self.exchanges.get_mut(id) else { return false };
        if !exchange.is_to_ask_another(status) {
            return false;
        }
        let (client, service, key) = (exchange.client, exchange.service, exchange.key);
        let lost = exchange.attempt.upstream;
        let before = exchange.asked;
        let Some(server) = self.upstreams.get(lost).map(|upstream| upstream.server) else { return false };
        let asked = [Some(server), before];
        let Ok(chosen) = self.choose_other(service, Wish { key, asked, ..Wish::default() }) else {
            return false;
        };
        let retries = self.services.get_mut(service).map(|service| &mut service.retries);
        if !retries.is_some_and(Budget::spend) {
            return false;
        }
        let Ok(dialled) = self.dial(chosen, client) else { return false };
        let (Some(exchange), Some(upstream)) = (self.exchanges.get_mut(id), self.upstreams.get_mut(dialled))
        else {
            return false;
        };
        if let Some(bytes) = exchange.replay.take() {
            upstream.transport.stage(&mut self.core.wire).extend_from_slice(&bytes);
            self.core.wire.give_back(bytes);
            // They are kept as they leave.
            exchange.replay = Replay::Kept(Vec::new());
        }
        exchange.attempt = Attempt { upstream: dialled, reused: false };
        exchange.asked = Some(server);
        exchange.others -= 1;
        exchange.retries += 1;
        exchange.times.attempt = self.core.net.now();
        (exchange.times.connected, exchange.times.first_byte) = (None, None);
        self.core.counters.retries += 1;
        self.assign(dialled, Job::Exchange(id));
        if !self.note_failure(service, server, status)
            && let Some(server) = self.servers.get_mut(server)
        {
            server.succeeded();
            server.count(status);
        }
        self.drop_upstream(lost);
        self.touch_upstream(dialled);
        self.touch_client(client);
        true
    }

    /// Counts a response whose status may be a failure, and blames its server if it is one. Returns whether it is.
    #[cold]
    fn note_failure(&mut self, service: ServiceId, server: ServerId, status: u16) -> bool {
        let failure = Failure::Status(status);
        let is_failure = self.services.get(service).is_some_and(|of| of.config.eject.on.has(failure));
        if is_failure {
            if let Some(server) = self.servers.get_mut(server) {
                server.count(status);
            }
            self.blame(service, server, failure, Counted::Yes);
        }
        is_failure
    }

    /// Sends the request of an exchange to another server: nothing of it has left.
    pub(super) fn elsewhere(&mut self, id: ExchangeId, reason: Reason) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let (client, service, lost) = (exchange.client, exchange.service, exchange.attempt.upstream);
        let (key, asked) = (exchange.key, [exchange.asked, None]);
        let avoid = self.upstreams.get(lost).map(|upstream| upstream.server);
        let retries = self.services.get_mut(service).map(|service| &mut service.retries);
        if !retries.is_some_and(Budget::spend) {
            return self.end(client, reason);
        }
        let dialled = self
            .choose_other(service, Wish { key, avoid, asked, sticky: None })
            .map_err(Unavailable::Failed)
            .and_then(|server| self.dial(server, client));
        let (Ok(dialled), Some(upstream)) = (dialled, self.upstreams.get_mut(lost)) else {
            // Which blames the server, too.
            return self.end(client, reason);
        };
        let bytes = upstream.transport.take_staged();
        self.drop_upstream(lost);
        let (Some(exchange), Some(upstream)) = (self.exchanges.get_mut(id), self.upstreams.get_mut(dialled))
        else {
            return self.broken(client, "a request without its next connection");
        };
        upstream.transport.stage(&mut self.core.wire).extend_from_slice(&bytes);
        self.core.wire.give_back(bytes);
        exchange.attempt = Attempt { upstream: dialled, reused: false };
        exchange.retries += 1;
        exchange.times.attempt = self.core.net.now();
        self.core.counters.retries += 1;
        if let Some(server) = avoid
            && let Some(failure) = reason.failure()
        {
            self.blame(service, server, failure, Counted::No);
        }
        self.assign(dialled, Job::Exchange(id));
        self.touch_upstream(dialled);
        self.touch_client(client);
    }

    /// A server has failed, and may be ejected. Once for each attempt.
    pub(super) fn blame(&mut self, service: ServiceId, server: ServerId, failure: Failure, counted: Counted) {
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

    /// Whether a part of a TLS record has come on an upstream connection.
    fn has_partial_record(&self, id: UpstreamId) -> bool {
        self.upstreams.get(id).is_none_or(|upstream| upstream.transport.has_partial_record())
    }

    /// Whether nothing has come on an upstream connection since its last response. What has come may be its end, which the
    /// poller reports too late for the next request, or bytes that the next client must not get.
    pub(super) fn is_quiet(&mut self, id: UpstreamId) -> bool {
        let Some(upstream) = self.upstreams.get_mut(id) else { return false };
        if upstream.transport.is_quiet() {
            return true;
        }
        let mut inbox = self.core.wire.buffer();
        let received = upstream.transport.receive(&mut self.core.wire, &mut inbox);
        let is_open = matches!(&received, Ok(received) if received.end.is_none());
        let stray = inbox.len();
        // A TLS ticket is no response.
        let is_quiet = is_open && stray == 0 && upstream.transport.is_quiet();
        self.core.wire.give_back(inbox);
        if stray > 0 {
            self.note_stray(stray);
        }
        is_quiet
    }

    /// Bytes came on an upstream connection that works for no request; it is closed.
    pub(super) fn note_stray(&mut self, bytes: usize) {
        self.core.note_end(&Reason::UpstreamStray(bytes), Context::default());
    }

    /// The exchange of a connection is complete: puts it into the pool, if it is `reusable` as far as the exchange knows.
    pub(super) fn release(&mut self, id: UpstreamId, service: ServiceId, reusable: bool, status: u16) {
        let has_failed = status >= 400
            && self
                .upstreams
                .get(id)
                .map(|upstream| upstream.server)
                .is_some_and(|server| self.note_failure(service, server, status));
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        let now = self.core.net.now();
        upstream.life.requests = upstream.life.requests.saturating_add(1);
        let mut is_limited = false;
        let may_go_on = self.servers.get_mut(upstream.server).is_some_and(|server| {
            if !has_failed {
                server.succeeded();
                server.count(status);
            }
            is_limited = server.slots.is_some();
            // The header on a connection is about one client.
            server.config.announces.is_none()
                && server.has_place_in_pool()
                && !upstream.life.is_used_up(&server.config.pool, now)
        });
        let reusable = reusable
            && !upstream.ended
            && may_go_on
            && upstream.transport.pending() == 0
            && !upstream.transport.has_partial_record();
        let may_have_more = upstream.may_have_more;
        if !reusable || (may_have_more && !self.is_quiet(id)) {
            return self.drop_upstream(id);
        }
        if is_limited && self.is_wanted_elsewhere(id) {
            return;
        }
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        upstream.job = Job::Idle;
        if let Some(server) = self.servers.get_mut(upstream.server) {
            server.in_flight -= 1;
            server.pool.put(id, self.core.turn, &mut self.upstreams);
        }
        self.touch_upstream(id);
    }

    /// Gives a connection its job, and counts those that have one.
    pub(super) fn assign(&mut self, id: UpstreamId, job: Job) {
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        let before = std::mem::replace(&mut upstream.job, job);
        if let Some(server) = self.servers.get_mut(upstream.server) {
            server.in_flight =
                server.in_flight + usize::from(job != Job::Idle) - usize::from(before != Job::Idle);
        }
    }

    /// Closes an idle connection that is of no use any more.
    pub(super) fn retire_pooled(&mut self, id: UpstreamId) {
        // A clean close is a courtesy.
        if let Some(upstream) = self.upstreams.get_mut(id) {
            let _ = upstream.transport.finish(&mut self.core.wire);
        }
        self.forget_pooled(id);
    }

    /// Closes an idle connection.
    pub(super) fn forget_pooled(&mut self, id: UpstreamId) {
        let server = self.upstreams.get(id).map(|upstream| upstream.server);
        if let Some(server) = server.and_then(|server| self.servers.get_mut(server)) {
            server.pool.forget(id, &mut self.upstreams);
        }
        self.drop_upstream(id);
    }

    /// Closes a connection, which is not in the pool.
    pub(super) fn drop_upstream(&mut self, id: UpstreamId) {
        self.assign(id, Job::Idle);
        if let Some(mut upstream) = self.upstreams.remove(id) {
            self.core.counters.server_bytes(Bytes::of(&upstream.transport));
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

/// Why there is no connection to a server.
#[derive(Debug)]
pub(super) enum Unavailable {
    /// There are as many as there may be.
    Full,
    /// The process has no descriptor for one.
    NoDescriptors,
    /// None can be started, as connect(2) says; or the server is gone.
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

/// All servers are down or drained, or gone from the configuration.
fn no_server() -> Fault {
    Fault::Connect(io::Error::other("no server is left"))
}
