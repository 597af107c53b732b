//! Text with variables: field values and redirect targets.

use super::hosts::path_of;
use crate::text;
use crate::variables::{self, Piece};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::SocketAddr;
use std::str::FromStr;
use weir_tls::{CertificateDer, ClientCertificate};

/// Text with variables such as `{host}`; `{{` and `}}` stand for single braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'a> {
    Text(&'a str),
    Variable(Variable),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    ClientIp,
    ClientPort,
    Scheme,
    Host,
    Authority,
    Method,
    Path,
    Target,
    Upstream,
    ClientSubject,
    ClientSerial,
    ClientFingerprint,
    ClientCert,
    ClientCertChain,
    RequestId,
    Traceparent,
}

/// The values of variables. The parsers have rejected control characters, including line breaks, in all values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<'a> {
    /// The client's address; behind trusted proxies, the address that they report.
    pub client: Option<&'a SocketAddr>,
    pub scheme: &'static str,
    /// The host as the client sent it, with or without a port.
    pub host: &'a [u8],
    pub method: &'a [u8],
    pub target: &'a [u8],
    /// Host and port of the server, as in a `Host` field.
    pub upstream: &'a [u8],
    pub certificate: Option<&'a ClientCertificate>,
    /// All certificates that the client presented, leaf first.
    pub chain: &'a [CertificateDer<'static>],
    /// The request's ID; empty without `tracing`, and on a redirect.
    pub request_id: &'a [u8],
    pub traceparent: &'a [u8],
}

impl Values<'_> {
    /// Empty values, for text without variables.
    pub(crate) fn none() -> Self {
        Self {
            client: None,
            scheme: "",
            host: b"",
            method: b"",
            target: b"",
            upstream: b"",
            certificate: None,
            chain: &[],
            request_id: b"",
            traceparent: b"",
        }
    }
}

const VARIABLES: [(&str, Variable); 16] = [
    ("client_ip", Variable::ClientIp),
    ("client_port", Variable::ClientPort),
    ("scheme", Variable::Scheme),
    ("host", Variable::Host),
    ("authority", Variable::Authority),
    ("method", Variable::Method),
    ("path", Variable::Path),
    ("target", Variable::Target),
    ("upstream", Variable::Upstream),
    ("client_subject", Variable::ClientSubject),
    ("client_serial", Variable::ClientSerial),
    ("client_fingerprint", Variable::ClientFingerprint),
    ("client_cert", Variable::ClientCert),
    ("client_cert_chain", Variable::ClientCertChain),
    ("request_id", Variable::RequestId),
    ("traceparent", Variable::Traceparent),
];

impl Template {
    /// Appends the text, with variables replaced by their values.
    pub(crate) fn write(&self, values: &Values<'_>, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Variable(at) => {
                    if let Some((_, variable)) = VARIABLES.get(*at) {
                        variable.write(values, out);
                    }
                }
            }
        }
    }

    pub(super) fn parts(&self) -> impl DoubleEndedIterator<Item = Part<'_>> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(Part::Text(text)),
            Piece::Variable(at) => VARIABLES.get(*at).map(|(_, variable)| Part::Variable(*variable)),
        })
    }

    /// Whether every request gets the same text.
    pub(crate) fn is_constant(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, Piece::Text(_)))
    }
}

impl Variable {
    fn write(self, values: &Values<'_>, out: &mut Vec<u8>) {
        match self {
            Self::ClientIp => match values.client {
                Some(client) => text::ip(client.ip(), out),
                None => out.extend_from_slice(b"unix"),
            },
            Self::ClientPort => {
                weir_http1::decimal(values.client.map_or(0, |client| client.port().into()), out);
            }
            Self::Scheme => out.extend_from_slice(values.scheme.as_bytes()),
            Self::Host => out.extend_from_slice(without_port(values.host)),
            Self::Authority => out.extend_from_slice(values.host),
            Self::Method => out.extend_from_slice(values.method),
            Self::Path => out.extend_from_slice(path_of(values.target)),
            Self::Target => out.extend_from_slice(values.target),
            Self::Upstream => out.extend_from_slice(values.upstream),
            Self::RequestId => out.extend_from_slice(values.request_id),
            Self::Traceparent => out.extend_from_slice(values.traceparent),
            Self::ClientCert => write_certificates(&values.chain[..values.chain.len().min(1)], out),
            Self::ClientCertChain => {
                write_certificates(values.chain.split_first().map_or(&[], |(_, rest)| rest), out);
            }
            Self::ClientSubject | Self::ClientSerial | Self::ClientFingerprint => {
                let Some(certificate) = values.certificate else { return };
                let text = match self {
                    Self::ClientSubject => &certificate.subject,
                    Self::ClientSerial => &certificate.serial,
                    _ => &certificate.fingerprint,
                };
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
}

/// Appends certificates in the form of RFC 9440 section 2: a list of byte sequences (RFC 8941 section 3.3.5).
#[cold]
fn write_certificates(certificates: &[CertificateDer<'_>], out: &mut Vec<u8>) {
    for (index, certificate) in certificates.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b":" } else { b", :" });
        out.extend_from_slice(STANDARD.encode(certificate).as_bytes());
        out.push(b':');
    }
}

/// The host of an authority, with the brackets of an IPv6 address.
fn without_port(authority: &[u8]) -> &[u8] {
    match authority.iter().rposition(|byte| matches!(byte, b':' | b']')) {
        Some(at) if authority[at] == b':' => &authority[..at],
        _ => authority,
    }
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(variables::parse(text, &VARIABLES.map(|(name, _)| name))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let values = Values {
            client: Some(&"[::ffff:192.0.2.1]:4711".parse().unwrap()),
            scheme: "https",
            host: b"a.org:1",
            method: b"GET",
            target: b"/a?b",
            upstream: b"b.org",
            ..Values::none()
        };
        let mut out = Vec::new();
        text.parse::<Template>().unwrap().write(&values, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn variables_are_replaced() {
        assert_eq!(written("{scheme}://{host}{target}"), "https://a.org/a?b");
        assert_eq!(written("{scheme}://{authority}{target}"), "https://a.org:1/a?b");
        assert_eq!(
            written("{client_ip}:{client_port} {method} {path} {upstream}"),
            "192.0.2.1:4711 GET /a b.org"
        );
        assert_eq!(written("{{host}} is {host}"), "{host} is a.org");
        assert_eq!(written(""), "");
    }

    #[test]
    fn hosts_have_no_port() {
        for (authority, host) in
            [("a", "a"), ("a:80", "a"), ("a:", "a"), ("[::1]", "[::1]"), ("[::1]:80", "[::1]")]
        {
            assert_eq!(without_port(authority.as_bytes()), host.as_bytes());
        }
    }

    #[test]
    fn certificates_are_byte_sequences() {
        let chain = [&b"leaf"[..], b"ca1", b"ca2"].map(|der| CertificateDer::from(der.to_vec()));
        for (presented, expected) in [(0, "|"), (1, ":bGVhZg==:|"), (3, ":bGVhZg==:|:Y2Ex:, :Y2Ey:")] {
            let values = Values { chain: &chain[..presented], ..Values::none() };
            let mut out = Vec::new();
            let template: Template = "{client_cert}|{client_cert_chain}".parse().unwrap();
            template.write(&values, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for (text, why) in [
            ("{hots}", "unknown variable `{hots}`: expected one of {client_ip}, {client_port}"),
            ("{", "a brace alone"),
            ("a}", "a brace alone"),
            ("a\r\nb", "control characters"),
        ] {
            let error = text.parse::<Template>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!("a".parse::<Template>().unwrap().is_constant());
        assert!(!"{host}".parse::<Template>().unwrap().is_constant());
    }
}
