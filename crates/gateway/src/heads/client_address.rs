//! The client's address, for a request that came through proxies.

use super::elements;
use crate::config::document::ProxyField;
use crate::downstream::Frontend;
use std::net::{IpAddr, SocketAddr};
use weir_http::FieldName;
use weir_http1::RequestHead;

/// The client's address: the last one in the proxies' reports that does not belong to a trusted proxy. The client may
/// have forged all addresses before it. `peer` is the last proxy.
pub(crate) fn client_address(
    head: &RequestHead,
    buf: &[u8],
    peer: Option<SocketAddr>,
    frontend: &Frontend,
) -> Option<SocketAddr> {
    match frontend.proxy_field {
        ProxyField::XForwardedFor => {
            let fields = head.fields.iter().rev().filter(|field| field.known == FieldName::XForwardedFor);
            let elements = fields.flat_map(|field| field.value.of(buf).rsplit(|byte| *byte == b','));
            // Empty elements are ignored (RFC 9110 section 5.6.1.2).
            let senders = elements.map(<[u8]>::trim_ascii).filter(|sender| !sender.is_empty());
            last_foreign(senders.map(Some), peer, frontend)
        }
        ProxyField::Forwarded => {
            let lines = elements::lines(head, buf).into_iter().rev();
            let hops = lines.flat_map(|(_, hops)| hops.into_iter().rev());
            last_foreign(hops.map(|hop| hop.sender), peer, frontend)
        }
    }
}

/// The nearest sender that is not a trusted proxy; `senders` begins with the nearest. Without one, the last address
/// before the end, or before an element that is not an address; else `peer`.
fn last_foreign<'a>(
    senders: impl Iterator<Item = Option<&'a [u8]>>,
    peer: Option<SocketAddr>,
    frontend: &Frontend,
) -> Option<SocketAddr> {
    let mut found = peer;
    for text in senders {
        let Some(address) = text.and_then(address) else { break };
        found = Some(SocketAddr::new(address, 0));
        if !frontend.trusts(Some(address)) {
            break;
        }
    }
    found
}

/// Parses an address as proxies write it, with or without a port.
pub(super) fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let with_port = || text.parse().ok().map(|address: SocketAddr| address.ip());
    bare.parse().ok().or_else(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document::{HalfClose, Underscores};
    use crate::config::{ListenerId, Role};
    use std::cell::OnceCell;
    use std::sync::Arc;
    use weir_http1::{Limits, Parse, Rules};

    #[test]
    fn the_last_address_that_is_no_proxys_is_taken() {
        let trusted = ["10.0.0.0/8", "192.0.2.1"].map(|network| network.parse().unwrap());
        let mut frontend = Frontend {
            id: ListenerId(0),
            services: Vec::new(),
            name: "web".into(),
            role: Role::Gateway,
            trusted: trusted.into(),
            proxy_field: ProxyField::XForwardedFor,
            announced_by: [].into(),
            allow: [].into(),
            deny: [].into(),
            half_close: HalfClose::default(),
            underscores: Underscores::default(),
            http2: true,
            http2_config: Arc::default(),
            accept: Rules::NONE,
            limits: Limits::default(),
            passthrough: Arc::default(),
            tcp: None,
            tls: None,
            last_plan: OnceCell::default(),
        };
        for (fields, expected) in [
            ("", "10.0.0.1"),
            ("X-Forwarded-For: 203.0.113.7\r\n", "203.0.113.7"),
            ("X-Forwarded-For: 1.1.1.1, 203.0.113.7, 10.1.1.1\r\n", "203.0.113.7"),
            (
                "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 203.0.113.7\r\nx-forwarded-for: 192.0.2.1\r\n",
                "203.0.113.7",
            ),
            ("X-Forwarded-For: 10.2.2.2, 10.1.1.1\r\n", "10.2.2.2"),
            ("X-Forwarded-For: 203.0.113.7, unknown\r\n", "10.0.0.1"),
            ("X-Forwarded-For: unknown, 10.1.1.1\r\n", "10.1.1.1"),
            ("X-Forwarded-For: 203.0.113.7:4711\r\n", "203.0.113.7"),
            ("X-Forwarded-For: [2001:db8::7]:4711\r\n", "2001:db8::7"),
            ("X-Forwarded-For: [2001:db8::7]\r\n", "2001:db8::7"),
            // Regression test: an empty element after the last comma made the gateway take the proxy for the client.
            ("X-Forwarded-For: 203.0.113.7,10.0.0.1,\r\n", "203.0.113.7"),
            ("X-Forwarded-For: 203.0.113.7, ,\t,10.1.1.1\r\n", "203.0.113.7"),
            ("X-Forwarded-For: ,203.0.113.7\r\nX-Forwarded-For:\r\nX-Forwarded-For: ,\r\n", "203.0.113.7"),
            ("X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-For: 10.1.1.1,\r\n", "203.0.113.7"),
            ("X-Forwarded-For:\r\n", "10.0.0.1"),
            ("X-Forwarded-For: ,,\r\n", "10.0.0.1"),
            ("X-Forwarded-For:  203.0.113.7 \t,\t10.1.1.1 \r\n", "203.0.113.7"),
            ("X-Forwarded-For: 203.0.113.7:80,::ffff:10.1.1.1\r\n", "203.0.113.7"),
            ("X-Forwarded-For: 1.1.1.1, [2001:db8::7]:80, 10.1.1.1:443,\r\n", "2001:db8::7"),
            // An element that is not an address hides all earlier ones.
            ("X-Forwarded-For: 203.0.113.7, unknown, 10.1.1.1\r\n", "10.1.1.1"),
            ("X-Forwarded-For: 203.0.113.7, _hidden\r\n", "10.0.0.1"),
            ("X-Forwarded-For: 203.0.113.7 10.1.1.1\r\n", "10.0.0.1"),
            ("X-Forwarded-For: 203.0.113.7, \"10.1.1.1\"\r\n", "10.0.0.1"),
            ("X-Forwarded-For: 203.0.113.7, 010.1.1.1\r\n", "10.0.0.1"),
            ("X-Forwarded-For: 203.0.113.7, 10.1.1.1;x, 10.2.2.2\r\n", "10.2.2.2"),
            ("X-Forwarded-For: 203.0.113.7, 10.1.1.1:99999\r\n", "10.0.0.1"),
        ] {
            let buf = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
            let mut head = RequestHead::new();
            assert_eq!(head.parse(buf.as_bytes(), &Limits::default()), Ok(Parse::Complete(buf.len())));
            let found = client_address(&head, buf.as_bytes(), "10.0.0.1:5".parse().ok(), &frontend);
            assert_eq!(found.map(|at| at.ip()), expected.parse().ok(), "{fields}");
        }
        frontend.proxy_field = ProxyField::Forwarded;
        for (fields, expected) in [
            ("X-Forwarded-For: 203.0.113.7\r\n", "10.0.0.1"),
            ("Forwarded: for=1.1.1.1, for=\"203.0.113.7:1\";proto=https, for=10.1.1.1\r\n", "203.0.113.7"),
            ("Forwarded: for=203.0.113.7, proto=https\r\n", "10.0.0.1"),
            ("Forwarded: for=203.0.113.7,, for=10.1.1.1,\r\n", "203.0.113.7"),
            ("Forwarded: for=203.0.113.7, for=unknown, for=10.1.1.1\r\n", "10.1.1.1"),
            // Regression test: a client opened a quote, and the proxy's element became part of the quoted text.
            ("Forwarded: for=203.0.113.7;by=\"x\r\n", "10.0.0.1"),
            ("Forwarded: for=203.0.113.7;by=\"x, for=192.0.2.7\r\n", "10.0.0.1"),
            ("Forwarded: for=203.0.113.7;by=\"x, for=\"[2001:db8::7]\"\r\n", "10.0.0.1"),
            ("Forwarded: for=203.0.113.7;by=\"x\r\nForwarded: for=192.0.2.7\r\n", "192.0.2.7"),
            ("Forwarded: for=203.0.113.7;by=\"x\r\nForwarded: for=10.1.1.1\r\n", "10.1.1.1"),
            ("Forwarded: for=203.0.113.7\r\nForwarded: for=10.1.1.1;by=\"\r\n", "10.0.0.1"),
            ("Forwarded: for=203.0.113.7\r\nForwarded: for=10.1.1.1\r\n", "203.0.113.7"),
        ] {
            let buf = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
            let mut head = RequestHead::new();
            assert_eq!(head.parse(buf.as_bytes(), &Limits::default()), Ok(Parse::Complete(buf.len())));
            let found = client_address(&head, buf.as_bytes(), "10.0.0.1:5".parse().ok(), &frontend);
            assert_eq!(found.map(|at| at.ip()), expected.parse().ok(), "{fields}");
        }
    }
}
