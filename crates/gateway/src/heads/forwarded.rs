//! Fields about a request's client, as proxies in front send them and servers receive them: `X-Forwarded-*`,
//! `Forwarded` (RFC 7239), or both.

use super::client_address::address;
use super::elements::{self, Hop};
use crate::config::Forms;
use crate::config::document::ProxyField;
use std::net::IpAddr;
use weir_http::{FieldName, is_token};
use weir_http1::RequestHead;

/// A trusted proxy in front of the gateway.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proxy {
    /// The proxy's address; `None` on a Unix socket.
    pub address: Option<IpAddr>,
    /// The client's address, as the proxies in front report it.
    pub client: Option<IpAddr>,
    /// The field in which the proxy reports the client.
    pub field: ProxyField,
}

/// The proxies' reports about a request's client.
#[derive(Debug, Default)]
struct Known<'a> {
    /// The senders along the way, the client first.
    senders: Vec<&'a [u8]>,
    proto: Option<Vec<u8>>,
    host: Option<Vec<u8>>,
}

/// The field lines about the client, for a request whose head was parsed from `buf`. `peer` is the client's own address
/// if no proxy is trusted. `scheme` and `host` are those of the request itself; they apply if no proxy in front reports
/// others.
#[cold]
pub(crate) fn lines(
    (head, buf): (&RequestHead, &[u8]),
    forms: Forms,
    proxy: Option<Proxy>,
    peer: Option<IpAddr>,
    (scheme, host): (&str, &[u8]),
) -> Vec<u8> {
    let sender = proxy.map_or(peer, |proxy| proxy.address);
    let sender = sender.map(|sender| sender.to_canonical().to_string());
    let mut known = match proxy {
        None => Known::default(),
        Some(Proxy { field: ProxyField::XForwardedFor, .. }) => said_in_x_forwarded(head, buf),
        Some(Proxy { field: ProxyField::Forwarded, client, .. }) => said_in_forwarded(head, buf, client),
    };
    known.senders.extend(sender.as_ref().map(String::as_bytes));
    let proto = known.proto.unwrap_or_else(|| scheme.as_bytes().to_vec());
    let host = known.host.unwrap_or_else(|| host.to_vec());
    let mut out = Vec::new();
    if forms.x_forwarded {
        if !known.senders.is_empty() {
            line("X-Forwarded-For", &known.senders.join(&b", "[..]), &mut out);
        }
        line("X-Forwarded-Proto", &proto, &mut out);
        if !host.is_empty() {
            line("X-Forwarded-Host", &host, &mut out);
        }
    }
    if forms.forwarded {
        let verbatim = matches!(proxy, Some(Proxy { field: ProxyField::Forwarded, .. }));
        let mut elements: Vec<Vec<u8>> = match verbatim {
            true => elements::lines(head, buf).iter().map(|(line, _)| line.to_vec()).collect(),
            false => Vec::new(),
        };
        let own = if verbatim { known.senders.len().saturating_sub(1) } else { 0 };
        for (index, sender) in known.senders.iter().enumerate().skip(own) {
            let mut element = format!("for={}", node(sender)).into_bytes();
            // The first element of a translated or new list contains the scheme and host that the client used.
            if index == own && !verbatim {
                describe(&proto, &host, &mut element);
            } else if verbatim {
                describe(scheme.as_bytes(), b"", &mut element);
            }
            elements.push(element);
        }
        if elements.is_empty() {
            let mut element = b"for=unknown".to_vec();
            describe(&proto, &host, &mut element);
            elements.push(element);
        }
        line("Forwarded", &elements.join(&b", "[..]), &mut out);
    }
    out
}

fn said_in_x_forwarded<'a>(head: &'a RequestHead, buf: &'a [u8]) -> Known<'a> {
    let joined = |name| {
        let values: Vec<_> = values(head, buf, name).collect();
        (!values.is_empty()).then(|| values.join(&b", "[..]))
    };
    let senders =
        values(head, buf, FieldName::XForwardedFor).flat_map(|value| value.split(|byte| *byte == b','));
    Known {
        senders: senders.map(<[u8]>::trim_ascii).filter(|sender| !sender.is_empty()).collect(),
        proto: joined(FieldName::XForwardedProto),
        host: joined(FieldName::XForwardedHost),
    }
}

/// Takes scheme and host from the client's hop or the trusted hops after it. The client may have forged all earlier
/// hops.
fn said_in_forwarded<'a>(head: &'a RequestHead, buf: &'a [u8], client: Option<IpAddr>) -> Known<'a> {
    let hops: Vec<_> = elements::lines(head, buf).into_iter().flat_map(|(_, hops)| hops).collect();
    let is_clients = |hop: &Hop<'a>| client.is_some() && hop.sender.and_then(address) == client;
    let known = &hops[hops.iter().rposition(is_clients).unwrap_or(hops.len())..];
    let said = |of: fn(&Hop<'a>) -> Option<&'a [u8]>| known.iter().find_map(of).map(<[u8]>::to_vec);
    Known {
        senders: hops.iter().filter_map(|hop| hop.sender).collect(),
        proto: said(|hop| hop.proto),
        host: said(|hop| hop.host),
    }
}

fn values<'a>(head: &'a RequestHead, buf: &'a [u8], name: FieldName) -> impl Iterator<Item = &'a [u8]> {
    head.fields.iter().filter(move |field| field.known == name).map(move |field| field.value.of(buf))
}

/// An address in the form of RFC 7239 section 6; `unknown` for any other text.
fn node(sender: &[u8]) -> String {
    match address(sender) {
        Some(IpAddr::V6(address)) => format!("\"[{address}]\""),
        Some(IpAddr::V4(address)) => address.to_string(),
        None => "unknown".to_owned(),
    }
}

fn describe(proto: &[u8], host: &[u8], element: &mut Vec<u8>) {
    if is_token(proto) {
        element.extend_from_slice(b";proto=");
        element.extend_from_slice(proto);
    }
    if is_token(host) {
        element.extend_from_slice(b";host=");
        element.extend_from_slice(host);
    } else if !host.is_empty() && !host.iter().any(|byte| b"\"\\".contains(byte)) {
        element.extend_from_slice(b";host=\"");
        element.extend_from_slice(host);
        element.push(b'"');
    }
}

fn line(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http1::{Limits, Parse};

    fn parsed(fields: &str) -> (RequestHead, Vec<u8>) {
        let buf = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n").into_bytes();
        let mut head = RequestHead::new();
        assert_eq!(head.parse(&buf, &Limits::default()), Ok(Parse::Complete(buf.len())));
        (head, buf)
    }

    fn written(fields: &str, forms: Forms, field: Option<ProxyField>, sender: &str) -> String {
        let (head, buf) = parsed(fields);
        let client = "2001:db8::7".parse().ok();
        let proxy = field.map(|field| Proxy { address: sender.parse().ok(), client, field });
        let lines = lines((&head, &buf), forms, proxy, sender.parse().ok(), ("http", b"h:81"));
        String::from_utf8(lines).unwrap()
    }

    const RFC: Forms = Forms { x_forwarded: false, forwarded: true };

    #[test]
    fn a_client_is_described_in_either_form() {
        assert_eq!(
            written("Forwarded: for=evil\r\nX-Forwarded-For: evil\r\n", Forms::USUAL, None, "192.0.2.1"),
            "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h:81\r\n"
        );
        assert_eq!(
            written("Forwarded: for=evil\r\n", RFC, None, "::ffff:192.0.2.1"),
            "Forwarded: for=192.0.2.1;proto=http;host=\"h:81\"\r\n"
        );
        assert_eq!(
            written("", RFC, None, "2001:db8::7"),
            "Forwarded: for=\"[2001:db8::7]\";proto=http;host=\"h:81\"\r\n"
        );
        assert_eq!(written("", RFC, None, "none"), "Forwarded: for=unknown;proto=http;host=\"h:81\"\r\n");
    }

    #[test]
    fn what_a_proxy_says_is_passed_on_and_translated() {
        let x = "X-Forwarded-For: 1.1.1.1, 2001:db8::7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a.example\r\n";
        let rfc = "Forwarded: for=1.1.1.1;proto=forged;host=forged\r\nForwarded: for=\"[2001:db8::7]:47\";proto=https;host=\"a.example:1\"\r\n";
        let by = |field| Some(field);
        assert_eq!(
            written(x, Forms::USUAL, by(ProxyField::XForwardedFor), "10.0.0.1"),
            "X-Forwarded-For: 1.1.1.1, 2001:db8::7, 10.0.0.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a.example\r\n"
        );
        assert_eq!(
            written(x, RFC, by(ProxyField::XForwardedFor), "10.0.0.1"),
            "Forwarded: for=1.1.1.1;proto=https;host=a.example, for=\"[2001:db8::7]\", for=10.0.0.1\r\n"
        );
        assert_eq!(
            written(rfc, RFC, by(ProxyField::Forwarded), "10.0.0.1"),
            "Forwarded: for=1.1.1.1;proto=forged;host=forged, for=\"[2001:db8::7]:47\";proto=https;host=\"a.example:1\", for=10.0.0.1;proto=http\r\n"
        );
        assert_eq!(
            written(rfc, Forms::USUAL, by(ProxyField::Forwarded), "10.0.0.1"),
            "X-Forwarded-For: 1.1.1.1, [2001:db8::7]:47, 10.0.0.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a.example:1\r\n"
        );
        assert!(
            written(x, Forms::USUAL, by(ProxyField::Forwarded), "10.0.0.1")
                .starts_with("X-Forwarded-For: 10.0.0.1\r\n")
        );
    }

    /// Regression test: an element that a client had put into a quote reached servers, ahead of the proxy's element.
    #[test]
    fn lines_that_are_no_lists_go_no_further() {
        let quoted = "Forwarded: for=9.9.9.9\r\nForwarded: for=10.1.1.1;by=\"x, for=203.0.113.7\r\n";
        let by = Some(ProxyField::Forwarded);
        assert_eq!(written(quoted, RFC, by, "10.0.0.1"), "Forwarded: for=10.0.0.1;proto=http\r\n");
        assert_eq!(
            written(&format!("{quoted}Forwarded: for=1.1.1.1\r\n"), RFC, by, "10.0.0.1"),
            "Forwarded: for=1.1.1.1, for=10.0.0.1;proto=http\r\n"
        );
        assert!(written(quoted, Forms::USUAL, by, "10.0.0.1").starts_with("X-Forwarded-For: 10.0.0.1\r\n"));
    }
}
