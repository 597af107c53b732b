//! The values of variables in templates.

use crate::downstream::Client;
use crate::route::Values;
use weir_http1::RequestHead;
use weir_reactor::Socket;

/// What the variables of a template stand for.
#[inline]
pub(crate) fn values<'a, S: Socket>(
    client: &'a Client<S>,
    head: &RequestHead,
    buf: &'a [u8],
    upstream: &'a [u8],
) -> Values<'a> {
    Values {
        client: client.client_address.as_ref(),
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
