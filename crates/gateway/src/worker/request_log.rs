//! Records of requests that have ended: counters, and lines in the log and the access log.

use super::Worker;
use crate::config::Route;
use crate::exchange::Exchange;
use crate::grpc::Status;
use crate::keys::{ClientId, ExchangeId, OfServer, OfService, OfUpstream, Store};
use crate::observe::Context;
use crate::observe::access::{Entry, Line};
use crate::reason::Reason;
use crate::upstream::{Server, Service, Upstream};
use std::borrow::Cow;
use std::rc::Rc;
use weir_http1::Version;
use weir_reactor::Net;

/// The head of a request without an exchange.
pub(super) enum Head<'a> {
    /// The bytes of the head that was parsed last.
    Parsed(&'a [u8]),
    /// The received bytes of a head that was not parsed.
    Fragment(&'a [u8]),
}

/// The gateway's own response to a request, for the records.
pub(super) struct Own<'a> {
    pub status: u16,
    pub grpc: Option<Status>,
    pub reason: Option<&'a Reason>,
    pub route: Option<&'a Route>,
    /// The lengths of the request's and the response's body.
    pub received: u64,
    pub sent: u64,
}

impl<N: Net> Worker<N> {
    /// Records the end of an exchange: an early end with its reason, or a switch of protocols (`None`). Call before
    /// releasing its connections. `own`: body bytes of the gateway's own response.
    pub(super) fn record(&mut self, id: ExchangeId, reason: Option<&Reason>, own: u64) {
        let Some(exchange) = self.exchanges.present_mut(id) else { return };
        let status = match exchange.status {
            0 => reason.and_then(Reason::status).unwrap_or_default(),
            status => status,
        };
        let client = self.clients.get(exchange.client);
        let grpc = client.and_then(|client| client.grpc_status(exchange.stream, status));
        if let (Some(call), Some(grpc)) = (&mut exchange.grpc, grpc) {
            call.status = Some(grpc);
            self.core.counters.grpc.0[grpc.index()] += 1;
        }
        // A tunnel's response was counted when the tunnel opened.
        if !exchange.is_tunnel {
            self.core.count_response(exchange, status, &self.services);
        }
        // A switch of protocols does not count towards the server's responses.
        if reason.is_some()
            && let Some(upstream) = exchange.upstream().and_then(|id| self.upstreams.get(id))
            && let Some(server) = self.servers.get_mut(upstream.server)
        {
            server.count(status);
        }
        if self.core.access.is_some() {
            self.log_exchange(id, status, reason, own);
        }
    }

    #[cold]
    pub(super) fn log_exchange(&mut self, id: ExchangeId, status: u16, reason: Option<&Reason>, own: u64) {
        let now = self.core.net.now();
        let (Some(access), Some(exchange)) = (&mut self.core.access, self.exchanges.present(id)) else {
            return;
        };
        let Some(client) = self.clients.present(exchange.client) else { return };
        // Each exchange begins with an entry if there is a log.
        let Some(entry) = exchange.entry.as_deref() else { return };
        let (service, server) = names(exchange, &self.services, &self.upstreams, &self.servers);
        let line = Line {
            entry,
            client: client.client_address,
            listener: &client.frontend.name,
            protocol: protocol(exchange.stream.is_some(), exchange.version),
            tls: client.transport.facts(),
            status,
            grpc: exchange.grpc.as_ref().and_then(|call| call.status),
            reason: reason.map(Reason::as_str),
            received: exchange.received,
            sent: exchange.response.passed() + own,
            service,
            server: &server,
            retries: exchange.retries,
            times: Some(exchange.times),
            now,
        };
        access.record(&line, now);
    }

    /// Counts and logs an early end of an exchange.
    pub(super) fn note_end_of_exchange(&mut self, id: ExchangeId, reason: &Reason) {
        let Some(exchange) = self.exchanges.present(id) else { return };
        let (service, server) = names(exchange, &self.services, &self.upstreams, &self.servers);
        let context = Context {
            client: self.clients.get(exchange.client).and_then(|client| client.peer),
            request: Some(exchange.line.as_str()),
            host: &exchange.host(),
            route: Some(exchange.route),
            service,
            server: &server,
            times: Some(exchange.times),
        };
        self.core.note_end(reason, context);
    }

    /// Counts and logs an early end of a client's connection that has no exchange.
    pub(super) fn note_end_of_client(&mut self, id: ClientId, reason: &Reason) {
        let Some(client) = self.clients.present(id) else { return };
        // Frames are not text, and another protocol may begin with a password: neither is logged.
        let is_text = client.h2.is_none() && client.frontend.tcp.is_none();
        let held = if is_text { &client.held[..] } else { b"" };
        let entry = Entry::of_fragment(held);
        let line = entry.line();
        let request = Some(&*line).filter(|line| !line.is_empty());
        let context = Context { client: client.peer, request, host: entry.host(), ..Context::default() };
        self.core.note_end(reason, context);
    }

    /// Records a request that ended before it became an exchange, with the gateway's response, if any.
    pub(super) fn record_own(&mut self, id: ClientId, head: Head<'_>, own: Own<'_>) {
        let Own { status, grpc, reason, route, received, sent } = own;
        if let Some(grpc) = grpc {
            self.core.counters.grpc.0[grpc.index()] += 1;
        }
        let now = self.core.net.now();
        // After a reload, the connections of a removed listener keep their routes.
        let current = &self.core.plan;
        let plan = Rc::clone(self.clients.get(id).map_or(current, |client| client.frontend.plan(current)));
        self.core.count_own_response(status, route.map(|route| (route, &*plan)), &self.services);
        let (Some(access), Some(client)) = (&mut self.core.access, self.clients.present(id)) else { return };
        let request = &self.core.request;
        let (entry, protocol) = match head {
            Head::Parsed(buf) => (Entry::of(request, buf), protocol(client.h2.is_some(), request.version)),
            Head::Fragment(bytes) => (Entry::of_fragment(bytes), ""),
        };
        let line = Line {
            entry: &entry,
            client: client.client_address,
            listener: &client.frontend.name,
            protocol,
            tls: client.transport.facts(),
            status,
            grpc,
            reason: reason.map(Reason::as_str),
            received,
            sent,
            service: "",
            server: "",
            retries: 0,
            times: None,
            now,
        };
        access.record(&line, now);
    }
}

/// The protocol of a request. The `version` of an HTTP/2 request only selects the rules for its fields.
fn protocol(is_http2: bool, version: Version) -> &'static str {
    match (is_http2, version) {
        (true, _) => "HTTP/2.0",
        (false, Version::Http11) => "HTTP/1.1",
        (false, Version::Http10) => "HTTP/1.0",
    }
}

/// The names of an exchange's service and server for the logs; empty if there is none.
fn names<'a, S>(
    exchange: &Exchange,
    services: &'a Store<OfService, Service>,
    upstreams: &Store<OfUpstream, Upstream<S>>,
    servers: &'a Store<OfServer, Server>,
) -> (&'a str, Cow<'a, str>) {
    let service = services.get(exchange.service).map_or("", |service| &service.config.name);
    let upstream = exchange.upstream().and_then(|id| upstreams.get(id));
    let server = upstream.and_then(|upstream| servers.get(upstream.server));
    (service, server.map(|server| server.config.label()).unwrap_or_default())
}
