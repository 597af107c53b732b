//! The opening handshake of a WebSocket, between HTTP/1.1 (RFC 6455 section 4) and HTTP/2 (RFC 8441 section 5).

use super::rewrite::{is_for_this_hop, via};
use super::writer::HeadWriter as _;
use crate::route::Edits;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use weir_http::{Field, Method};
use weir_http1::{RequestHead, ResponseHead, copy_fields};

/// The protocol's name, in `Upgrade` and `:protocol`.
pub(crate) const PROTOCOL: &[u8] = b"websocket";

/// The value of `Sec-WebSocket-Accept`, in base64.
pub(crate) type Accept = [u8; 28];

/// Whether the request whose head was parsed from `buf` opens a WebSocket. The gateway represents an extended CONNECT
/// in the form of HTTP/1.1.
pub(crate) fn is_opening(head: &RequestHead, buf: &[u8]) -> bool {
    let Some(protocols) = head.upgrade else { return false };
    let mut protocols = protocols.of(buf).split(|byte| *byte == b',');
    head.method == Method::Get
        && head.framing.is_empty()
        && protocols.any(|protocol| protocol.trim_ascii().eq_ignore_ascii_case(PROTOCOL))
        && key(head, buf).is_some()
}

/// The `Sec-WebSocket-Accept` that proves that the server has understood the request. `None` without a key.
pub(crate) fn accept(head: &RequestHead, buf: &[u8]) -> Option<Accept> {
    let text = [key(head, buf)?, GUID].concat();
    let mut accept = [0; 28];
    let length = STANDARD.encode_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, &text), &mut accept).ok()?;
    (length == accept.len()).then_some(accept)
}

/// The key of a request, 16 bytes in base64; `None` unless the request contains exactly one.
fn key<'a>(head: &RequestHead, buf: &'a [u8]) -> Option<&'a [u8]> {
    let mut keys = head.fields.iter().filter(|field| is_key(buf, field));
    let (key, None) = (keys.next()?.value.of(buf), keys.next()) else { return None };
    let is_valid = STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16);
    is_valid.then_some(key)
}

/// Whether a field is the client's key, which an extended CONNECT omits.
pub(crate) fn is_key(buf: &[u8], field: &Field) -> bool {
    field.name.of(buf).eq_ignore_ascii_case(b"sec-websocket-key")
}

/// Whether a field is the server's proof, which a response to an extended CONNECT omits.
pub(crate) fn is_accept(buf: &[u8], field: &Field) -> bool {
    field.name.of(buf).eq_ignore_ascii_case(b"sec-websocket-accept")
}

/// Writes the head that switches protocols (101) for an HTTP/1.1 client, in place of the server's response that opened
/// a tunnel on a stream.
pub(crate) fn switched(
    buf: &[u8],
    head: &ResponseHead,
    accept: &Accept,
    name: Option<&str>,
    edits: Option<&Edits>,
    out: &mut Vec<u8>,
) {
    out.status(101, b"Switching Protocols");
    let keep = |field: &Field| !field.hop_by_hop && !is_for_this_hop(field.known) && !is_accept(buf, field);
    copy_fields(buf, &head.fields, keep, out);
    for part in [b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ", &accept[..], b"\r\n"]
    {
        out.extend_from_slice(part);
    }
    via(name, head.version, edits, out);
    out.end();
}

/// The constant that follows the key in the text of the proof (RFC 6455 section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http1::{Limits, Parse};

    fn parsed(fields: &str) -> (RequestHead, Vec<u8>) {
        let bytes = format!("GET /chat HTTP/1.1\r\nHost: h\r\n{fields}\r\n").into_bytes();
        let mut head = RequestHead::default();
        assert_eq!(head.parse(&bytes, &Limits::default()), Ok(Parse::Complete(bytes.len())), "{fields}");
        (head, bytes)
    }

    const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

    #[test]
    fn the_example_of_rfc_6455_section_1_3() {
        let (head, bytes) = parsed(&[UPGRADE, KEY].concat());
        assert_eq!(accept(&head, &bytes), Some(*b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    }

    #[test]
    fn requests_that_open_a_websocket() {
        let listed = "Connection: Upgrade\r\nUpgrade: chat, WebSocket\r\n";
        for (fields, opens) in [
            (&[UPGRADE, KEY][..], true),
            (&[listed, KEY], true),
            (&[UPGRADE], false),
            (&[KEY], false),
            (&[UPGRADE, KEY, KEY], false),
            (&[UPGRADE, "Sec-WebSocket-Key: short\r\n"], false),
            (&["Connection: Upgrade\r\nUpgrade: chat\r\n", KEY], false),
            (&[UPGRADE, KEY, "Content-Length: 1\r\n"], false),
        ] {
            let (head, bytes) = parsed(&fields.concat());
            assert_eq!(is_opening(&head, &bytes), opens, "{fields:?}");
        }
    }
}
