//! The gateway's own responses: redirects, fixed responses, 404 without a route, OPTIONS and TRACE.

use super::Worker;
use super::request_log::{self, Head};
use crate::config::{Action, Redirect, Route};
use crate::exchange::{Leg, RequestLine};
use crate::heads::max_forwards::MaxForwards;
use crate::heads::own::{self, Own, Terms};
use crate::heads::rewrite::Connection;
use crate::observe::Context;
use crate::proxy::values;
use crate::reason::Reason;
use std::borrow::Cow;
use std::time::Duration;
use weir_http::{Field, FieldName, Method};
use weir_http1::{RequestHead, Version, copy_fields};
use weir_reactor::Net;

/// A response that the gateway sends itself, without a server.
#[derive(Clone, Copy, Debug)]
pub(super) enum LocalResponse<'a> {
    /// The redirect or fixed response of the route.
    Set(&'a Route),
    /// The listener's `redirect` to `https`.
    Redirected(&'a Redirect),
    /// 404: no route matches the request.
    NoRoute,
    /// 429: the client exceeds the rate of the route; with the time until the client may send its next request.
    TooMany(&'a Route, Duration),
    /// 405: the route does not allow TRACE.
    NoTrace(&'a Route),
    /// For OPTIONS with `Max-Forwards: 0`: the methods that the route allows.
    Allowed(&'a Route),
    /// For TRACE with `Max-Forwards: 0`: the request itself.
    Reflected(&'a Route),
}

impl<N: Net> Worker<N> {
    /// Responds to the request whose head was parsed from `buf`. Over HTTP/1.1, closes the connection if a body
    /// follows, since the gateway does not read the body.
    pub(super) fn respond_locally(&mut self, leg: Leg, buf: &[u8], response: LocalResponse<'_>) {
        let Some(client) = self.clients.present_mut(leg.client) else { return };
        let core = &mut self.core;
        let head = &core.request;
        let persists = head.persistent && head.framing.is_empty() && !client.drain.is_on();
        let connection = Connection::of(persists, head.version);
        let pages = &core.plan.snapshot.pages;
        let (methods, seconds, words);
        let mut location = Vec::new();
        let own = match response {
            LocalResponse::Redirected(Redirect { status, to, .. })
            | LocalResponse::Set(Route { action: Action::Redirect(Redirect { status, to, .. }), .. }) => {
                if let Err(error) = to.write(&values(client, head, buf, b""), &mut location) {
                    let route = if let LocalResponse::Set(route) = response { Some(route) } else { None };
                    return self.refuse(leg, buf, Reason::BadRequest(error, None), route);
                }
                let field = Some(("Location", &location[..]));
                Own { status: *status, content_type: own::PLAIN, body: None, field }
            }
            LocalResponse::Set(route) => match &route.action {
                Action::Respond { status, content_type, body } => Own {
                    status: *status,
                    content_type,
                    body: body.as_deref().map(Cow::Borrowed),
                    field: None,
                },
                Action::Pass { .. } | Action::Split(_) | Action::Redirect(_) => Own::error(404, pages, None),
            },
            LocalResponse::NoRoute => Own::error(404, pages, None),
            LocalResponse::TooMany(_, wait) => {
                seconds = wait.as_secs_f64().ceil().to_string();
                Own { field: Some(("Retry-After", seconds.as_bytes())), ..Own::error(429, pages, None) }
            }
            LocalResponse::NoTrace(route) => {
                methods = allowed(route);
                words = own::in_words(405, &Reason::TraceMethod);
                let own = Own::error(405, pages, Some(words.as_bytes()));
                Own { field: Some(("Allow", &methods)), ..own }
            }
            LocalResponse::Allowed(route) => {
                methods = allowed(route);
                Own { status: 204, content_type: "", body: None, field: Some(("Allow", &methods)) }
            }
            LocalResponse::Reflected(_) => {
                let body = Some(Cow::Owned(reflected(leg, head, buf)));
                Own { status: 200, content_type: "message/http", body, field: None }
            }
        };
        let (status, is_head) = (own.status, head.method == Method::Head);
        let (route, reason) = match response {
            LocalResponse::Set(route) | LocalResponse::Allowed(route) | LocalResponse::Reflected(route) => {
                (Some(route), None)
            }
            LocalResponse::Redirected(_) => (None, None),
            LocalResponse::NoRoute => (None, Some(Reason::NoRoute)),
            LocalResponse::TooMany(route, wait) => (Some(route), Some(Reason::RateLimited(wait))),
            LocalResponse::NoTrace(route) => (Some(route), Some(Reason::TraceMethod)),
        };
        let edits = route.map(|route| &route.response);
        let date = core.date.line(core.net.now());
        let terms = Terms { is_head, connection, edits, date };
        let sent = client.respond(leg.stream, &own, &terms, &mut core.wire, &mut core.lines);
        core.counters.requests += 1;
        if let Some(reason) = &reason {
            let line = RequestLine::of(head, buf);
            let host = String::from_utf8_lossy(head.host.map_or(&b""[..], |host| host.of(buf)));
            let request = Some(line.as_str());
            let context = Context { client: client.peer, request, host: &host, ..Context::default() };
            core.note_end(reason, context);
        }
        let grpc = client.grpc_status(leg.stream, status);
        let own = request_log::Own { status, grpc, reason: reason.as_ref(), route, received: 0, sent };
        self.record_own(leg.client, Head::Parsed(buf), own);
        self.has_responded(leg, persists);
    }
}

/// The gateway's own response to OPTIONS or TRACE; `None` if the route's action applies. Errors: the reason to reject
/// the request.
#[cold]
pub(super) fn stopped<'a>(
    head: &RequestHead,
    buf: &[u8],
    route: &'a Route,
) -> Result<Option<LocalResponse<'a>>, Reason> {
    let is_trace = head.method == Method::Trace;
    if is_trace && !route.trace {
        return Ok(Some(LocalResponse::NoTrace(route)));
    }
    match (MaxForwards::of(head, buf), route.action.is_forwarded()) {
        (MaxForwards::Invalid, _) => Err(Reason::BadMaxForwards),
        (MaxForwards::None, true) if is_trace => Ok(Some(LocalResponse::Reflected(route))),
        (MaxForwards::None, true) => Ok(Some(LocalResponse::Allowed(route))),
        (MaxForwards::None | MaxForwards::Any | MaxForwards::AndThen(_), _) => Ok(None),
    }
}

/// The methods that a route allows. Its servers may support fewer or other methods.
fn allowed(route: &Route) -> Vec<u8> {
    const USUAL: [&[u8]; 8] = [b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE"];
    let named: Vec<&[u8]> = route.conditions.methods.iter().map(|method| &**method).collect();
    let methods = if named.is_empty() { &USUAL[..] } else { &named };
    let methods: Vec<_> =
        methods.iter().copied().filter(|method| route.trace || *method != b"TRACE").collect();
    methods.join(&b", "[..])
}

/// A request as received, without its credentials and cookies (RFC 9110 section 9.3.8).
fn reflected(leg: Leg, head: &RequestHead, buf: &[u8]) -> Vec<u8> {
    let line = [head.method_span.of(buf), head.target.of(buf)].join(&b' ');
    let version: &[u8] = match (leg.stream, head.version) {
        (Some(_), _) => b" HTTP/2\r\n",
        (None, Version::Http10) => b" HTTP/1.0\r\n",
        (None, Version::Http11) => b" HTTP/1.1\r\n",
    };
    let mut out = [&line, version].concat();
    let keep = |field: &Field| match field.known {
        FieldName::Authorization | FieldName::ProxyAuthorization => false,
        _ => !field.name.of(buf).eq_ignore_ascii_case(b"cookie"),
    };
    copy_fields(buf, &head.fields, keep, &mut out);
    out.extend_from_slice(b"\r\n");
    out
}
