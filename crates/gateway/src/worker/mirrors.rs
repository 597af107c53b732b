//! Mirrored copies of requests, from the request's first byte to the end of the response. No client waits for them.

use super::Worker;
use super::core::HEADROOM;
use crate::config::MirrorTo;
use crate::config::document::Failure;
use crate::exchange::HeldHead;
use crate::heads::rewrite::{self, RequestEdits};
use crate::keys::{ExchangeId, MirrorId, UpstreamId};
use crate::mirror::{Copied, Fate, Mirror, MirrorResponse};
use crate::proxy::{note_recovered, rules_of, upgrade, values};
use crate::upstream::{Counted, PickContext, Use, mix};
use weir_http1::{BodyDecoder, Framing, Parse, Repaired};
use weir_http2::Scheme;
use weir_reactor::Net;
use weir_transport::End;

impl<N: Net> Worker<N> {
    /// Prepares the copy of a request, if the request is in the mirrored share and can be mirrored.
    #[cold]
    pub(super) fn copy(&mut self, id: ExchangeId, to: MirrorTo) {
        let copy = self.copy_of(id, to);
        if let Some(exchange) = self.exchanges.get_mut(id) {
            exchange.copy = copy;
        }
    }

    fn copy_of(&mut self, id: ExchangeId, to: MirrorTo) -> Option<Box<Copied>> {
        self.core.drawn = self.core.drawn.wrapping_add(1);
        if self.core.drain.is_on() || !to.takes(mix(self.core.drawn)) {
            return None;
        }
        let exchange = self.exchanges.get(id)?;
        let found = exchange.plan.snapshot.routes.get(exchange.route)?;
        let HeldHead { bytes: buf, request: head } = exchange.head.as_deref()?;
        // Not mirrored: a client can switch protocols with one server only.
        if upgrade(head, buf).is_some() {
            self.core.counters.mirror(Fate::Upgrade);
            return None;
        }
        if self.core.is_short {
            self.core.counters.mirror(Fate::NoMemory);
            return None;
        }
        let framing = head.framing;
        if matches!(framing, Framing::Length(length) if length > to.max_body as u64) {
            self.core.counters.mirror(Fate::TooLarge);
            return None;
        }
        let service = *self.core.plan.services.get(to.service)?;
        let client = self.clients.get(exchange.client)?;
        let chosen = self.services.get_mut(service)?;
        let context =
            PickContext::of(&chosen.config, head, buf, client.client_address.map(|client| client.ip()));
        let Some(server) = chosen.choose(&mut self.servers, self.core.net.now(), context) else {
            self.core.counters.mirror(Fate::NoServer);
            return None;
        };
        let authority = self.servers.get(server)?.config.authority.as_bytes();
        let values = values(client, head, buf, authority);
        let changes = RequestEdits {
            forwarded: &client.forwarded,
            proxy: client.proxy(),
            forms: self.core.plan.snapshot.forms,
            upgrade: None,
            path: found.path.as_ref(),
            scheme: Scheme::Http,
            // The copy is sent once its body is complete.
            was_buffered: true,
            announces_trailers: false,
            via: self.core.plan.snapshot.via.requests.as_deref(),
            underscores: client.frontend.underscores,
            edits: &found.request,
            values: &values,
            is_http2: exchange.stream.is_some(),
        };
        let mut written = Vec::new();
        rewrite::request(buf, head, &changes, &mut written);
        Some(Box::new(Copied {
            service,
            server,
            head: written,
            body: Vec::new(),
            chunked: framing == Framing::Chunked,
            max_body: to.max_body,
            most: to.most,
        }))
    }

    /// An exchange's request is complete: sends its copy, or drops it and counts the cause.
    #[cold]
    pub(super) fn settle_copy(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.present_mut(id) else { return };
        let (client, method) = (exchange.client, exchange.method);
        let Some(copied) = exchange.copy.take() else { return };
        if !exchange.request.is_passed_on() {
            return self.core.counters.mirror(Fate::Incomplete);
        }
        if copied.body.len() > copied.max_body {
            return self.core.counters.mirror(Fate::TooLarge);
        }
        if self.mirrors.len() >= copied.most {
            return self.core.counters.mirror(Fate::Busy);
        }
        let (service, server) = (copied.service, copied.server);
        let Some(limits) = self.services.get(service).map(|service| service.config.limits) else {
            return self.core.counters.mirror(Fate::NoServer);
        };
        let Ok(attempt) = self.attempt(server, client) else {
            return self.core.counters.mirror(Fate::Failed);
        };
        let bytes = copied.bytes();
        let upstream = attempt.upstream;
        let mirror = self.mirrors.insert(Mirror { upstream, service, method, limits, response: None });
        self.assign(upstream, Use::Mirror(mirror));
        if let Some(upstream) = self.upstreams.get_mut(upstream) {
            upstream.transport.stage(&mut self.core.wire).extend_from_slice(&bytes);
            upstream.moved = true;
        }
        self.touch_upstream(upstream);
    }

    /// Processes a server's response to a copy, in `inbox` after the headroom.
    #[cold]
    pub(super) fn take_mirrored(&mut self, from: UpstreamId, id: MirrorId, inbox: &[u8], end: Option<End>) {
        let mut at = HEADROOM;
        loop {
            let Some(mirror) = self.mirrors.present_mut(id) else { return };
            let Some(response) = &mut mirror.response else {
                match self.core.response.parse(&inbox[at..], &mirror.limits) {
                    Ok(Parse::Complete(len)) => at += len,
                    Ok(Parse::Partial) => break,
                    Err(error) => {
                        let rules = rules_of(&self.services, mirror.service);
                        let core = &mut self.core;
                        let input = &inbox[at..];
                        match core.response.repair(input, &mirror.limits, rules, error, &mut Vec::new()) {
                            Ok(Some(Repaired { length, broken })) => {
                                note_recovered(core, &self.services, mirror.service, broken);
                                at += length;
                            }
                            Ok(None) => break,
                            Err(_) => return self.drop_mirror(id, Fate::Failed),
                        }
                    }
                }
                let Some(mirror) = self.mirrors.present_mut(id) else { return };
                let head = &self.core.response;
                match head.status {
                    101 => return self.drop_mirror(id, Fate::Failed),
                    100..200 => continue,
                    _ => {}
                }
                mirror.response = Some(MirrorResponse {
                    status: head.status,
                    body: BodyDecoder::new(head.framing(mirror.method), &mirror.limits),
                    persists: head.persistent
                        && !head.authenticates_connection
                        && !head.announces_absent_body(mirror.method),
                });
                continue;
            };
            match response.body.decode(&inbox[at..]) {
                Ok(step) if step.consumed > 0 => at += step.consumed,
                Ok(_) => break,
                Err(_) => return self.drop_mirror(id, Fate::Failed),
            }
        }
        let rest = &inbox[at..];
        let response = self.mirrors.get_mut(id).and_then(|mirror| mirror.response.as_mut());
        if let Some(response) = response {
            let is_complete = response.body.is_complete()
                || (end == Some(End::Clean) && response.body.end_of_input().is_ok());
            if is_complete {
                let (persists, status) =
                    (response.persists && rest.is_empty() && end.is_none(), response.status);
                let Some(service) = self.mirrors.take(id).map(|mirror| mirror.service) else { return };
                self.core.counters.mirror(Fate::Responded);
                return self.release(from, service, persists, status);
            }
        }
        if end.is_some() {
            return self.drop_mirror(id, Fate::Failed);
        }
        if let Some(upstream) = self.upstreams.get_mut(from)
            && !rest.is_empty()
        {
            upstream.part = self.core.note_part(rest);
            upstream.held = rest.to_vec();
        }
    }

    /// Abandons a copy and its connection. Counts its `fate`, which may also be a failure of the server.
    #[cold]
    pub(super) fn drop_mirror(&mut self, id: MirrorId, fate: Fate) {
        let Some(mirror) = self.mirrors.take(id) else { return };
        self.core.counters.mirror(fate);
        let failure = match fate {
            Fate::Failed => Some(Failure::Invalid),
            Fate::Late => Some(Failure::Timeout),
            _ => None,
        };
        if let Some(failure) = failure
            && let Some(upstream) = self.upstreams.get(mirror.upstream)
        {
            self.record_failure(mirror.service, upstream.server, failure, Counted::No);
        }
        self.drop_upstream(mirror.upstream);
    }

    pub(super) fn drop_mirrors(&mut self) {
        for id in self.mirrors.ids() {
            self.drop_mirror(id, Fate::Drained);
        }
    }
}
