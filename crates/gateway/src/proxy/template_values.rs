//! The values of template variables.

use crate::downstream::Client;
use crate::route::Values;
use weir_http1::RequestHead;
use weir_reactor::Socket;

/// The values of template variables for one request. `upstream`: the authority of the server. The caller adds the IDs.
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
