//! HTTP/2 heads in the form of HTTP/1.1 heads, with the same spans and without a second parse.

use crate::heads::own::phrase;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use weir_http::{Field, FieldName, Method, Span};
use weir_http1::{Framing, RequestHead, ResponseHead, TargetForm, Version, authenticates_connection};
use weir_http2::Head;

/// Turns `head` into `request`, whose spans point into the head's bytes. `ended`: the request has no body. Swaps the
/// storage of fields, to avoid an allocation.
pub(crate) fn adopt(head: &mut Head, ended: bool, request: &mut RequestHead) {
    let bytes = &head.bytes;
    let authenticates = |field: &Field| {
        matches!(field.known, FieldName::Authorization) && authenticates_connection(field.value.of(bytes))
    };
    request.authenticates_connection = head.fields.iter().any(authenticates);
    request.method = head.method;
    request.method_span = head.method_span;
    request.target = head.path;
    // The authority replaces `Host`, as for a target in absolute form.
    request.target_form = TargetForm::Absolute;
    request.path = head.path;
    request.version = Version::Http11;
    request.host = head.host;
    request.framing = match (ended, head.content_length) {
        (_, Some(length)) => Framing::Length(length),
        // Servers may insist on a length for these methods, as RFC 9110 section 8.6 recommends.
        (true, None) if matches!(head.method, Method::Post | Method::Put | Method::Patch) => {
            Framing::Length(0)
        }
        (true, None) => Framing::None,
        (false, None) => Framing::Chunked,
    };
    request.persistent = true;
    request.expect_continue = head.expect_continue && !ended;
    request.upgrade = None;
    if head.protocol.is_some_and(|protocol| protocol.of(&head.bytes) == b"websocket") {
        adopt_websocket(head, request);
    }
    request.accepts_trailers = head.accepts_trailers;
    std::mem::swap(&mut request.fields, &mut head.fields);
}

/// Turns a WebSocket request by extended CONNECT (RFC 8441) into its HTTP/1.1 form: a GET that asks to switch
/// protocols, with a key. The key only proves that the server has understood the request (RFC 6455 section 1.3).
#[cold]
fn adopt_websocket(head: &mut Head, request: &mut RequestHead) {
    const KEY: &[u8] = b"sec-websocket-key";
    let bytes = &mut head.bytes;
    head.fields.retain(|field| field.name.of(bytes) != KEY);
    let mut append = |text: &[u8]| {
        let from = bytes.len();
        bytes.extend_from_slice(text);
        Span::new(from, bytes.len())
    };
    request.method = Method::Get;
    request.method_span = append(b"GET");
    request.upgrade = head.protocol;
    request.framing = Framing::None;
    request.expect_continue = false;
    let random = || RandomState::new().build_hasher().finish().to_le_bytes();
    let (name, value) = (append(KEY), STANDARD.encode([random(), random()].concat()));
    append(b": ");
    let value = append(value.as_bytes());
    append(b"\r\n");
    let line = Span::new(name.range().start, value.range().end + 2);
    let known = FieldName::Other;
    head.fields.push(Field {
        name,
        value,
        line,
        known,
        hop_by_hop: false,
        underscore: false,
        never_indexed: false,
    });
}

/// Turns `head` into `response`, whose spans point into the head's bytes. `ended`: the response has no body. Swaps the
/// storage of fields. Appends a reason phrase to the bytes, since some HTTP/1.1 clients insist on one.
pub(crate) fn adopt_response(head: &mut Head, ended: bool, response: &mut ResponseHead) {
    let declared = match (ended, head.content_length) {
        (_, Some(length)) => Framing::Length(length),
        (true, None) => Framing::None,
        (false, None) => Framing::UntilClose,
    };
    let from = head.bytes.len();
    head.bytes.extend_from_slice(phrase(head.status).as_bytes());
    response.adopt(head.status, Span::new(from, head.bytes.len()), declared);
    std::mem::swap(&mut response.fields, &mut head.fields);
}

/// The field lines of received trailers.
pub(crate) fn trailer_lines(trailers: &Head) -> Vec<u8> {
    let mut lines = Vec::with_capacity(trailers.bytes.len());
    for field in &trailers.fields {
        lines.extend_from_slice(field.line.of(&trailers.bytes));
    }
    lines
}
