//! Forwarded heads: unchanged lines are copied verbatim, and only changes are written.

use super::forwarded::{self, Proxy};
use super::imitations::{is_imitation, is_known_when_folded};
use super::max_forwards::MaxForwards;
use super::set_cookie::Cookie;
use super::websocket;
use super::writer::HeadWriter;
use crate::config::Forms;
use crate::config::document::Underscores;
use crate::route::{Edits, PathEdit, Values};
use crate::text;
use std::borrow::Cow;
use std::net::SocketAddr;
use weir_http::{Field, FieldName, Method, Span};
use weir_http1::{
    Framing, RequestHead, ResponseHead, TargetForm, Version, copy_fields, decimal, framing_field,
};
use weir_http2::Scheme;

/// The field lines about the client's connection, the same for all of its requests.
///
/// They replace the client's own `X-Forwarded-*`, which cannot be trusted.
pub(crate) fn forwarded(peer: Option<SocketAddr>, tls: bool) -> Box<[u8]> {
    let scheme: &[u8] = if tls { b"https" } else { b"http" };
    let mut lines = Vec::with_capacity(64);
    if let Some(peer) = peer {
        lines.extend_from_slice(b"X-Forwarded-For: ");
        text::ip(peer.ip(), &mut lines);
        lines.extend_from_slice(b"\r\n");
    }
    line(b"X-Forwarded-Proto: ", scheme, &mut lines);
    lines.into_boxed_slice()
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestEdits<'a> {
    /// The output of [`forwarded()`].
    pub forwarded: &'a [u8],
    /// The trusted proxy in front, if any: the gateway forwards the proxy's reports about the client.
    pub proxy: Option<Proxy>,
    /// The forms in which the gateway describes the client: `X-Forwarded-*`, `Forwarded`, or both.
    pub forms: Forms,
    /// The protocol to switch to, if the client asks for one.
    pub upgrade: Option<Span>,
    pub path: Option<&'a PathEdit>,
    pub scheme: Scheme,
    /// Whether the gateway has buffered the body, which makes `Expect` pointless.
    pub was_buffered: bool,
    /// Whether to forward the `Trailer` field, since the gateway forwards the trailers that it announces.
    pub announces_trailers: bool,
    /// The gateway's name in `Via`.
    pub via: Option<&'a str>,
    pub underscores: Underscores,
    pub edits: &'a Edits,
    /// The values of variables. `upstream` is also the `Host` of a request by an HTTP/1.0 client that sent no `Host`.
    pub values: &'a Values<'a>,
    pub is_http2: bool,
}

/// Writes the request head for the upstream. `head` was parsed from `buf`. Returns the number of fields dropped because
/// their names contain an underscore.
pub(crate) fn request<W: HeadWriter>(
    buf: &[u8],
    head: &RequestHead,
    changes: &RequestEdits<'_>,
    out: &mut W,
) -> u64 {
    let RequestEdits { forwarded, proxy, upgrade, edits, values, .. } = *changes;
    let host = head.host.map_or(&b""[..], |host| host.of(buf));
    let host_or_own = if host.is_empty() { values.upstream } else { host };
    let authority: Cow<'_, [u8]> = match () {
        () if W::IS_TEXT => Cow::Borrowed(b""),
        () if edits.drops_name(b"host") => edits.host(values).unwrap_or_default().into(),
        () => host_or_own.into(),
    };
    // Over HTTP/2, a tunnel begins with an extended CONNECT, which needs no key (RFC 8441 section 5).
    let is_connect = !W::IS_TEXT && upgrade.is_some();
    let method = if is_connect { b"CONNECT" } else { head.method_span.of(buf) };
    out.request(method, changes.scheme, &authority, |out| {
        path(buf, head, changes.path, out);
    });
    if is_connect {
        out.protocol(websocket::PROTOCOL);
    }
    // In absolute form the target's authority overrides Host (RFC 9112 section 3.2.2).
    let host_replaced = head.target_form == TargetForm::Absolute;
    if W::IS_TEXT && (host_replaced || head.host.is_none()) && !edits.drops_name(b"host") {
        out.lines(|out| line(b"Host: ", host_or_own, out));
    }
    let max_forwards = MaxForwards::of(head, buf);
    let replaced = Replaced {
        host: host_replaced || !W::IS_TEXT,
        // An HTTP/1.0 client cannot receive the upstream's 100, and a buffered body needs none.
        expect: head.version != Version::Http11 || changes.was_buffered,
        max_forwards: max_forwards != MaxForwards::Any,
    };
    let is_trusted = proxy.is_some();
    let mut underscored = 0;
    let keep = |field: &Field| {
        if field.underscore && drops_underscore(buf, field, changes.underscores) {
            underscored += 1;
            return false;
        }
        keep_in_request(buf, field, replaced, is_trusted)
            && !edits.drops_spelling(buf, field)
            && !(is_connect && websocket::is_key(buf, field))
    };
    out.fields(buf, &head.fields, keep);
    if changes.announces_trailers {
        out.fields(buf, &head.fields, |field| field.known == FieldName::Trailer);
    }
    out.lines(|out| {
        if let MaxForwards::AndThen(more) = max_forwards
            && !edits.drops_name(b"max-forwards")
        {
            out.extend_from_slice(b"Max-Forwards: ");
            decimal(more, out);
            out.extend_from_slice(b"\r\n");
        }
        if W::IS_TEXT || head.framing != Framing::Chunked {
            framing_field(head.framing, out);
        }
        match (upgrade, head.accepts_trailers) {
            (None, false) => {}
            (_, true) if !W::IS_TEXT => out.extend_from_slice(b"TE: trailers\r\n"),
            (Some(_), false) if !W::IS_TEXT => {}
            (None, true) => out.extend_from_slice(b"Connection: TE\r\nTE: trailers\r\n"),
            (Some(protocol), false) => line(b"Connection: Upgrade\r\nUpgrade: ", protocol.of(buf), out),
            (Some(protocol), true) => {
                line(b"Connection: Upgrade, TE\r\nTE: trailers\r\nUpgrade: ", protocol.of(buf), out);
            }
        }
        if proxy.is_some() || changes.forms != Forms::USUAL {
            let client = values.client.map(SocketAddr::ip);
            let lines = forwarded::lines((head, buf), changes.forms, proxy, client, (values.scheme, host));
            forwarded_and_edits::<W>(&lines, b"", edits, values, out);
        } else if edits.is_empty() {
            out.extend_from_slice(forwarded);
            if !host.is_empty() {
                line(b"X-Forwarded-Host: ", host, out);
            }
        } else {
            forwarded_and_edits::<W>(forwarded, host, edits, values, out);
        }
        match changes.is_http2 {
            false => via(changes.via, head.version, Some(edits), out),
            true => {
                if let Some(name) = changes.via {
                    named_via(name, "2", Some(edits), out);
                }
            }
        }
    });
    out.end();
    underscored
}

/// Appends the path for the upstream: the client's path, changed by the route's edit if there is one.
#[inline(always)]
fn path(buf: &[u8], head: &RequestHead, edit: Option<&PathEdit>, out: &mut Vec<u8>) {
    let path = head.path.of(buf);
    match (edit, path.first()) {
        (Some(edit), Some(b'/' | b'?')) => edit.write(path, out),
        // An OPTIONS request in absolute form without a path concerns the whole server (RFC 9112 section 3.2.4).
        (_, None) if head.method == Method::Options => out.push(b'*'),
        (Some(edit), None) => edit.write(path, out),
        (None, None) => out.push(b'/'),
        (None, Some(b'?')) => {
            out.push(b'/');
            out.extend_from_slice(path);
        }
        (_, Some(_)) => out.extend_from_slice(path),
    }
}

/// Appends the route's fields, and the gateway's unless the route replaces them.
#[cold]
fn forwarded_and_edits<W: HeadWriter>(
    forwarded: &[u8],
    host: &[u8],
    edits: &Edits,
    values: &Values<'_>,
    out: &mut Vec<u8>,
) {
    for own in forwarded.split_inclusive(|byte| *byte == b'\n') {
        let name = own.split(|byte| *byte == b':').next().unwrap_or_default();
        if !edits.drops_name(name) {
            out.extend_from_slice(own);
        }
    }
    if !host.is_empty() && !edits.drops_name(b"x-forwarded-host") {
        line(b"X-Forwarded-Host: ", host, out);
    }
    match W::IS_TEXT {
        true => edits.write(values, out),
        false => edits.write_without_host(values, out),
    }
}

/// Writes the head of an interim response (1xx) for the client.
pub(crate) fn interim(
    buf: &[u8],
    head: &ResponseHead,
    name: Option<&str>,
    edits: Option<&Edits>,
    out: &mut impl HeadWriter,
) {
    out.status(head.status, head.reason.of(buf));
    let keep = |field: &Field| !field.hop_by_hop && !is_for_this_hop(field.known);
    out.fields(buf, &head.fields, keep);
    out.lines(|out| via(name, head.version, edits, out));
    out.end();
}

/// Writes the head of a response that opens a tunnel on a stream (RFC 8441 section 5), in place of the server's
/// response that switched protocols.
pub(crate) fn tunnel(
    buf: &[u8],
    head: &ResponseHead,
    name: Option<&str>,
    edits: Option<&Edits>,
    out: &mut impl HeadWriter,
) {
    out.status(200, b"OK");
    let keep = |field: &Field| {
        !field.hop_by_hop && !is_for_this_hop(field.known) && !websocket::is_accept(buf, field)
    };
    out.fields(buf, &head.fields, keep);
    out.lines(|out| via(name, head.version, edits, out));
    out.end();
}

/// Writes the head of a response that switches protocols (101) for the client.
pub(crate) fn switching(
    buf: &[u8],
    head: &ResponseHead,
    name: Option<&str>,
    edits: Option<&Edits>,
    out: &mut Vec<u8>,
) {
    out.status(head.status, head.reason.of(buf));
    let keep = |field: &Field| match field.known {
        FieldName::Upgrade => true,
        known => !field.hop_by_hop && !is_for_this_hop(known),
    };
    copy_fields(buf, &head.fields, keep, out);
    out.extend_from_slice(b"Connection: Upgrade\r\n");
    via(name, head.version, edits, out);
    out.end();
}

/// A response's signal about the persistence of the client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// The HTTP/1.1 default: nothing to write.
    Persists,
    /// An HTTP/1.0 client asked for keep-alive and needs a confirmation (RFC 9112 section 9.3).
    PersistsByConsent,
    Closes,
}

impl Connection {
    /// The signal for a client of this version.
    #[inline]
    pub(crate) fn of(persists: bool, version: Version) -> Self {
        match (persists, version) {
            (false, _) => Self::Closes,
            (true, Version::Http11) => Self::Persists,
            (true, Version::Http10) => Self::PersistsByConsent,
        }
    }

    #[inline]
    pub(super) fn field(self) -> &'static [u8] {
        match self {
            Self::Persists => b"",
            Self::PersistsByConsent => b"Connection: keep-alive\r\n",
            Self::Closes => b"Connection: close\r\n",
        }
    }
}

#[derive(Debug)]
pub(crate) struct ResponseEdits<'a> {
    pub framing: Framing,
    pub trailers: bool,
    pub connection: Connection,
    pub edits: Option<&'a Edits>,
    pub cookie: Option<Cookie<'a>>,
    /// The `Date` field line, for a response without one.
    pub date: &'a [u8],
    pub via: Option<&'a str>,
}

/// Writes the head of a final response for the client.
pub(crate) fn response(
    buf: &[u8],
    head: &ResponseHead,
    changes: ResponseEdits<'_>,
    out: &mut impl HeadWriter,
) {
    let ResponseEdits { framing, trailers, connection, edits, cookie, date, via: name } = changes;
    out.status(head.status, head.reason.of(buf));
    let mut is_dated = false;
    let keep = |field: &Field| {
        let keep = (!field.hop_by_hop || (trailers && field.known == FieldName::Trailer))
            && !is_for_this_hop(field.known)
            && !edits.is_some_and(|edits| edits.drops(buf, field));
        is_dated |= keep && field.known == FieldName::Date;
        keep
    };
    out.fields(buf, &head.fields, keep);
    out.lines(|out| {
        // RFC 9110 section 6.6.1: a recipient that forwards a response without `Date` adds the time of receipt.
        if !is_dated && !edits.is_some_and(|edits| edits.drops_name(b"date")) {
            out.extend_from_slice(date);
        }
        match head.content_length() {
            // In a response without a body (HEAD, 304), the length is that of the response to GET; a 204 carries none.
            Some(length) if framing == Framing::None && head.status != 204 => {
                framing_field(Framing::Length(length), out);
            }
            _ => framing_field(framing, out),
        }
        out.extend_from_slice(connection.field());
        if let Some(edits) = edits {
            edits.write_fixed(out);
        }
        if let Some(cookie) = cookie {
            cookie.write(out);
        }
        via(name, head.version, edits, out);
    });
    out.end();
}

/// Whether to drop a response field: `Content-Length`, which the gateway writes from the framing, and the fields of
/// proxy authentication, which are only for the gateway as the next hop (RFC 9110 section 11.7).
#[inline]
pub(super) fn is_for_this_hop(name: FieldName) -> bool {
    matches!(
        name,
        FieldName::ContentLength | FieldName::ProxyAuthenticate | FieldName::ProxyAuthenticationInfo
    )
}

/// Whether the gateway replaces these request fields, or drops them because they have served their purpose.
#[derive(Clone, Copy)]
struct Replaced {
    host: bool,
    expect: bool,
    max_forwards: bool,
}

// Inlined: with two instances of `request`, each HTTP/1.1 head would otherwise pay for a call per field.
#[inline(always)]
fn keep_in_request(buf: &[u8], field: &Field, by: Replaced, is_trusted: bool) -> bool {
    let replaced = match field.known {
        FieldName::XForwardedFor
        | FieldName::Forwarded
        | FieldName::XForwardedProto
        | FieldName::XForwardedHost => true,
        FieldName::Host => by.host,
        // The gateway writes this field from the framing, so that a repeated value is sent only once.
        FieldName::ContentLength => true,
        FieldName::Expect => by.expect,
        FieldName::MaxForwards => by.max_forwards,
        // These credentials are for the gateway, which requests none; servers must not receive them (RFC 9110 section
        // 11.7.2).
        FieldName::ProxyAuthorization => true,
        // Servers do not need `Proxy`, and CGI programs would read its value from `HTTP_PROXY` as the address of their
        // proxy.
        FieldName::Proxy => true,
        FieldName::Other => is_imitation(field.name.of(buf), is_trusted),
        _ => false,
    };
    !(replaced || field.hop_by_hop)
}

/// Whether to drop a field because its name contains an underscore. With [`Underscores::Pass`], only if servers may
/// read the name as that of a field in [`FieldName`], such as `Content_Length`; [`keep_in_request`] then also drops
/// imitations of the gateway's own fields.
#[cold]
fn drops_underscore(buf: &[u8], field: &Field, underscores: Underscores) -> bool {
    underscores != Underscores::Pass || is_known_when_folded(field.name.of(buf))
}

/// Appends `Via` with the received version, if the configuration sets the gateway's name for it (RFC 9110 section
/// 7.6.3).
#[inline]
pub(super) fn via(name: Option<&str>, received: Version, edits: Option<&Edits>, out: &mut Vec<u8>) {
    if let Some(name) = name {
        let received = match received {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
        };
        named_via(name, received, edits, out);
    }
}

/// Appends `Via`, unless the route replaces or removes it.
#[cold]
fn named_via(name: &str, received: &str, edits: Option<&Edits>, out: &mut Vec<u8>) {
    if edits.is_some_and(|edits| edits.drops_name(b"via")) {
        return;
    }
    for part in ["Via: ", received, " "] {
        out.extend_from_slice(part.as_bytes());
    }
    line(name.as_bytes(), b"", out);
}

fn line(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
