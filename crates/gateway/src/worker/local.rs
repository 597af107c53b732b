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
use crate::route::Values;
use weir_http1::{Framing, Method, RequestHead, Version};
use weir_reactor::{Net, Socket};

impl<N: Net> Worker<N> {
    /// Answers the request whose head was parsed from `buf`; without an action, that no route is for it. The connection
    /// persists, unless a body follows.
    pub(super) fn answer_self(&mut self, id: ClientId, buf: &[u8], route: Option<&Route>) {
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
        let mut location = Vec::new();
        let own = match route.map(|route| &route.action) {
            Some(Action::Redirect { status, to }) => {
                to.write(&values(client, head, buf, b""), &mut location);
                Own { status: *status, content_type: own::PLAIN, body: None, location: &location }
            }
            Some(Action::Respond { status, content_type, body }) => {
                Own { status: *status, content_type, body: body.as_deref(), location: b"" }
            }
            Some(Action::Pass { .. }) | None => match core.plan.snapshot.pages.get(&404) {
                Some(page) => Own {
                    status: 404,
                    content_type: page.content_type,
                    body: Some(&page.body),
                    location: b"",
                },
                None => Own { status: 404, content_type: own::PLAIN, body: None, location: b"" },
            },
        };
        let (status, is_head) = (own.status, head.method == Method::Head);
        let edits = route.map(|route| &route.response);
        let date = core.date.line(core.net.now());
        own::respond(&own, is_head, connection, edits, date, client.transport.stage(&mut core.wire));
        core.counters.requests += 1;
        client.phase = Phase::Head { started: false };
        client.moved = true;
        if route.is_none() {
            let line = RequestLine::of(head, buf);
            let context = Context { client: client.peer, request: Some(line.as_str()), times: None };
            core.note_end(&Reason::NoRoute, context);
        }
        let reason = if route.is_none() { Some(&Reason::NoRoute) } else { None };
        self.record_own(id, Some(buf), status, reason);
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
