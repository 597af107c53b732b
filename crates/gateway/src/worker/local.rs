//! Answers of the gateway's own, by configuration: redirects, fixed ones, and that nothing is here.

use super::Worker;
use crate::config::{Action, Route};
use crate::downstream::{Client, Phase};
use crate::exchange::RequestLine;
use crate::heads::own::{self, Own};
use crate::heads::rewrite::Connection;
use crate::keys::ClientId;
use crate::observe::Context;
use crate::reason::Reason;
use crate::route::{Edits, Values};
use std::rc::Rc;
use weir_http1::{Framing, Method, RequestHead, Version};
use weir_reactor::{Net, Socket};

impl<N: Net> Worker<N> {
    /// Answers the request whose head was parsed from `buf` with what its route says.
    pub(super) fn answer_self(&mut self, id: ClientId, buf: &[u8], route: &Route) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let mut location = Vec::new();
        let own = match &route.action {
            Action::Redirect { status, to } => {
                to.write(&values(client, &self.core.request, buf, b""), &mut location);
                let field = Some(("Location", &location[..]));
                Own { status: *status, content_type: own::PLAIN, body: None, field }
            }
            Action::Respond { status, content_type, body } => {
                Own { status: *status, content_type, body: body.as_deref(), field: None }
            }
            Action::Pass { .. } => return self.broken(id, "a route to a service has no answer of its own"),
        };
        self.give(id, buf, &own, Some(&route.response), None);
    }

    /// Answers the request whose head was parsed from `buf` with what is against it. Unlike after
    /// [`refuse`](Worker::refuse), the client may go on: its request was in order.
    pub(super) fn decline(&mut self, id: ClientId, buf: &[u8], reason: &Reason) {
        let status = reason.status().unwrap_or(500);
        let wait;
        let field = match reason {
            Reason::RateLimited(time) => {
                wait = time.as_secs_f64().ceil().to_string();
                Some(("Retry-After", wait.as_bytes()))
            }
            _ => None,
        };
        let plan = Rc::clone(&self.core.plan);
        let (content_type, body) = match plan.snapshot.pages.get(&status) {
            Some(page) => (page.content_type, Some(&page.body[..])),
            None => (own::PLAIN, None),
        };
        self.give(id, buf, &Own { status, content_type, body, field }, None, Some(reason));
    }

    /// The connection persists, unless a body follows.
    fn give(
        &mut self,
        id: ClientId,
        buf: &[u8],
        own: &Own<'_>,
        edits: Option<&Edits>,
        reason: Option<&Reason>,
    ) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let core = &mut self.core;
        let head = &core.request;
        let has_body = !matches!(head.framing, Framing::None | Framing::Length(0));
        let persists = head.persistent && !has_body && !core.draining;
        let connection = match (persists, head.version) {
            (false, _) => Connection::Closes,
            (true, Version::Http11) => Connection::Persists,
            (true, Version::Http10) => Connection::PersistsByConsent,
        };
        let is_head = head.method == Method::Head;
        own::respond(own, is_head, connection, edits, client.transport.stage(&mut core.wire));
        core.counters.requests += 1;
        client.phase = Phase::Head { started: false };
        client.moved = true;
        if let Some(reason) = reason {
            let line = RequestLine::of(head, buf);
            let context = Context { client: client.peer, request: Some(line.as_str()), times: None };
            core.note_end(reason, context);
        }
        self.record_own(id, Some(buf), own.status, reason);
        if !persists {
            return self.close(id);
        }
        self.touch_client(id);
    }
}

/// What the variables of a template stand for.
pub(super) fn values<'a, S: Socket>(
    client: &'a Client<S>,
    head: &RequestHead,
    buf: &'a [u8],
    upstream: &'a [u8],
) -> Values<'a> {
    Values {
        client: client.origin.as_ref(),
        scheme: if client.frontend.tls.is_some() { "https" } else { "http" },
        host: head.host.map_or(&b""[..], |host| host.of(buf)),
        method: head.method_span.of(buf),
        target: head.path.of(buf),
        upstream,
        certificate: client.certificate.as_deref(),
        chain: client.transport.client_chain().unwrap_or_default(),
        request_id: b"",
        traceparent: b"",
    }
}
