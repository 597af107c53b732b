//! What is kept of requests that have ended: counts, and their lines in the access log.

use super::Worker;
use crate::keys::{ClientId, ExchangeId};
use crate::observe::access::{Entry, Line};
use crate::reason::Reason;
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// An exchange ends, for a reason if it does so early. Call before its connections let go of it.
    pub(super) fn record(&mut self, id: ExchangeId, reason: Option<&Reason>) {
        let Some(exchange) = self.exchanges.get(id) else { return };
        let status = match exchange.status {
            0 => reason.and_then(Reason::status).unwrap_or_default(),
            status => status,
        };
        let now = self.core.net.now();
        self.core.counters.answer(status, now.saturating_duration_since(exchange.times.head));
        // Of an end in good order the server learns when its connection is released.
        if reason.is_some()
            && let Some(upstream) = self.upstreams.get(exchange.attempt.upstream)
            && let Some(server) = self.servers.get_mut(upstream.server)
        {
            server.count(status);
        }
        if self.core.access.is_some() {
            self.log_exchange(id, status, reason);
        }
    }

    #[cold]
    fn log_exchange(&mut self, id: ExchangeId, status: u16, reason: Option<&Reason>) {
        let now = self.core.net.now();
        let (Some(access), Some(exchange)) = (&mut self.core.access, self.exchanges.get(id)) else { return };
        let Some(client) = self.clients.get(exchange.client) else { return };
        let upstream = self.upstreams.get(exchange.attempt.upstream);
        let server = upstream.and_then(|upstream| self.servers.get(upstream.server));
        let server = server.map(|server| server.config.label()).unwrap_or_default();
        let line = Line {
            entry: exchange.entry.as_deref(),
            client: client.origin,
            listener: &client.frontend.name,
            tls: client.transport.facts(),
            status,
            reason: reason.map(Reason::as_str),
            received: exchange.received,
            sent: exchange.answer.passed(),
            service: self.services.get(exchange.service).map_or("", |service| &service.config.name),
            server: &server,
            retries: exchange.retries,
            times: Some(exchange.times),
            now,
        };
        access.record(&line, now);
    }

    /// A request has an answer without having become an exchange. `head`: the bytes that its head was parsed from, if it was.
    pub(super) fn record_own(
        &mut self,
        id: ClientId,
        head: Option<&[u8]>,
        status: u16,
        reason: Option<&Reason>,
    ) {
        let now = self.core.net.now();
        self.core.counters.answer(status, std::time::Duration::ZERO);
        let (Some(access), Some(client)) = (&mut self.core.access, self.clients.get(id)) else { return };
        let entry = head.map(|buf| Entry::of(&self.core.request, buf));
        let line = Line {
            entry: entry.as_ref(),
            client: client.origin,
            listener: &client.frontend.name,
            tls: client.transport.facts(),
            status,
            reason: reason.map(Reason::as_str),
            received: 0,
            sent: 0,
            service: "",
            server: "",
            retries: 0,
            times: None,
            now,
        };
        access.record(&line, now);
    }

    /// The entry of the request that was parsed last, from `buf`, if there is an access log.
    pub(super) fn entry(&self, buf: &[u8]) -> Option<Box<Entry>> {
        self.core.access.as_ref().map(|_| Box::new(Entry::of(&self.core.request, buf)))
    }
}
