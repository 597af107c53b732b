//! Requests, encoded once and sent repeatedly.

use crate::check::Expect;
use crate::options::{Grpc, Options, RequestOptions};
use crate::request::{check_field, check_method, expect};
use crate::usage::Usage;
use weir_http::{Authority, FieldName, Method};
use weir_http2::Scheme;
use weir_http2::grpc::{CONTENT_TYPE, is_content_type, prefix};
use weir_http2::hpack::Encoder;

/// A serialised request and its expected response.
#[derive(Debug)]
pub(crate) struct Request {
    pub(super) method: Method,
    pub(super) expect: Expect,
    /// The fields of the head as HPACK, valid in every block.
    pub(super) fields: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// The terms of a gRPC call; `None` for another request.
    pub(super) call: Option<CallTerms>,
}

/// The messages of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallTerms {
    /// Bytes of each sent message with its prefix.
    message_bytes: usize,
    /// Messages in a correct response.
    pub(super) expected: u64,
}

impl CallTerms {
    /// The number of messages that end after more than `from` and up to `to` bytes of the body.
    pub(super) fn sent(self, from: usize, to: usize) -> u64 {
        (to / self.message_bytes - from / self.message_bytes) as u64
    }
}

impl Request {
    /// Serialises a request, and rejects methods and fields that cannot be sent.
    pub(super) fn new(asked: &RequestOptions, options: &Options) -> Result<Self, Usage> {
        let posts = asked.body.is_some() || options.grpc.is_some();
        let name = asked.method.as_deref().unwrap_or(if posts { "POST" } else { "GET" });
        check_method(name).map_err(|expected| Usage::new("-X", name, expected))?;
        let method = Method::of(name.as_bytes());
        if method == Method::Connect {
            return Err(Usage::new(
                "-X",
                name,
                "--http 1.1, or another method: CONNECT has no path in HTTP/2",
            ));
        }
        let scheme = if options.endpoint.tls { Scheme::Https } else { Scheme::Http };
        let authority = authority(asked, options)?;
        let mut fields = Vec::new();
        let mut encoder = Encoder::new(&mut fields);
        encoder.request(name.as_bytes(), scheme, authority.as_bytes(), asked.path.as_bytes());
        for (name, value) in &asked.fields {
            let refused = |expected| Usage::new("-H", &format!("{name}: {value}"), expected);
            check_field(name, value).and_then(|()| check_own(name, value)).map_err(refused)?;
            if !is_host(name) {
                encoder.field(name.as_bytes(), value.trim().as_bytes());
            }
        }
        if let Some(grpc) = options.grpc {
            call_fields(asked, &mut encoder)?;
            return Ok(Self::call(asked, grpc, fields));
        }
        let body = asked.body.clone().unwrap_or_default();
        if asked.body.is_some() {
            encoder.field(b"content-length", body.len().to_string().as_bytes());
        }
        Ok(Self { method, expect: expect(asked, method), fields, body, call: None })
    }

    fn call(asked: &RequestOptions, grpc: Grpc, fields: Vec<u8>) -> Self {
        let data = asked.body.as_deref().unwrap_or_default();
        let message = [&prefix(data.len() as u32), data].concat();
        let call = CallTerms { message_bytes: message.len(), expected: grpc.expect_messages };
        let expect = Expect { status: Some(200), ..Expect::default() };
        let body = message.repeat(grpc.messages as usize);
        Self { method: Method::Post, expect, fields, body, call: Some(call) }
    }
}

/// The fields of every call that are not given.
fn call_fields(asked: &RequestOptions, encoder: &mut Encoder<'_>) -> Result<(), Usage> {
    let given = |wanted: &str| asked.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    match given("content-type") {
        None => encoder.field(b"content-type", CONTENT_TYPE),
        Some((_, value)) if is_content_type(value.trim().as_bytes()) => {}
        Some((name, value)) => {
            let expected = "application/grpc, or application/grpc+NAME, with --grpc";
            return Err(Usage::new("-H", &format!("{name}: {value}"), expected));
        }
    }
    if given("te").is_none() {
        encoder.field(b"te", b"trailers");
    }
    Ok(())
}

fn is_host(name: &str) -> bool {
    FieldName::of(name.as_bytes()) == FieldName::Host
}

/// `Host` replaces the URL's authority.
fn authority(asked: &RequestOptions, options: &Options) -> Result<String, Usage> {
    let mut hosts = asked.fields.iter().filter(|(name, _)| is_host(name)).map(|(_, value)| value.trim());
    let (host, another) = (hosts.next(), hosts.next());
    let wrong = |value: &str, expected| Err(Usage::new("-H", &format!("Host: {value}"), expected));
    match (host, another) {
        (None, _) => Ok(options.endpoint.authority()),
        (Some(_), Some(another)) => wrong(another, "one Host, which becomes :authority"),
        (Some(host), None) if Authority::parse(host.as_bytes()).is_none() => {
            wrong(host, "a host, or a host and port, which becomes :authority")
        }
        (Some(host), None) => Ok(host.to_string()),
    }
}

/// Rejects fields that control an HTTP/1.1 connection (RFC 9113, section 8.2.2). The error is the expected value.
fn check_own(name: &str, value: &str) -> Result<(), &'static str> {
    match FieldName::of(name.as_bytes()) {
        FieldName::Te if value.trim() != "trailers" => Err("TE: trailers, the only TE in HTTP/2"),
        FieldName::Connection | FieldName::KeepAlive | FieldName::ProxyConnection => {
            Err("--http 1.1, or another field: HTTP/2 has no fields about the connection")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::HttpVersion;
    use weir_http2::{Head, Limits, Section, hpack::Decoder};

    fn built(url: &str, change: impl FnOnce(&mut RequestOptions)) -> Result<Request, Usage> {
        let mut options = Options::new(url.parse().unwrap());
        options.http = HttpVersion::Http2.into();
        let mut request = options.requests.remove(0);
        change(&mut request);
        Request::new(&request, &options)
    }

    /// The lines that a server decodes.
    fn lines(request: &Request) -> String {
        let mut head = Head::new();
        let section = Section::Request { extended_connect: false };
        let decoded = Decoder::new(0).decode(&request.fields, section, &Limits::default(), &mut head);
        assert_eq!(decoded.unwrap(), Ok(()));
        String::from_utf8(head.bytes).unwrap().replace("\r\n", ";")
    }

    #[test]
    fn the_fields_of_a_request() {
        let request = built("http://127.0.0.1:8080/x?y", |_| {}).unwrap();
        let line = ":method: GET;:scheme: http;:authority: 127.0.0.1:8080;:path: /x?y;";
        assert_eq!((lines(&request).as_str(), request.body.len()), (line, 0));
        let request = built("https://a/bytes/7", |request| {
            request.fields = [("HOST", "b:1"), ("X-Run", " 1"), ("te", "trailers"), ("Cookie", "a=b")]
                .map(|(name, value)| (name.into(), value.into()))
                .into();
            request.body = Some(b"hello".to_vec());
        })
        .unwrap();
        let line = ":method: POST;:scheme: https;:authority: b:1;:path: /bytes/7;\
                    x-run: 1;te: trailers;cookie: a=b;content-length: 5;";
        assert_eq!((lines(&request).as_str(), request.body.as_slice()), (line, &b"hello"[..]));
        assert_eq!((request.method, request.expect.length), (Method::Post, Some(7)));
        let empty = built("https://a/", |request| request.body = Some(Vec::new())).unwrap();
        assert!(lines(&empty).ends_with(":path: /;content-length: 0;"));
    }

    fn called(grpc: Grpc, change: impl FnOnce(&mut RequestOptions)) -> Result<Request, Usage> {
        let mut options = Options::new("http://a/bytes/7".parse().unwrap());
        (options.http, options.grpc) = (HttpVersion::Http2.into(), Some(grpc));
        let mut request = options.requests.remove(0);
        change(&mut request);
        Request::new(&request, &options)
    }

    #[test]
    fn a_call_has_its_fields_and_messages() {
        let request = called(Grpc::default(), |_| {}).unwrap();
        let line = ":method: POST;:scheme: http;:authority: a;:path: /bytes/7;";
        assert_eq!(lines(&request), format!("{line}content-type: application/grpc;te: trailers;"));
        assert_eq!((request.body.as_slice(), request.expect.length), (&[0; 5][..], None));
        let request = called(Grpc { messages: 2, expect_messages: 3 }, |request| {
            request.fields = [("Content-Type", "application/grpc+x"), ("TE", "trailers")]
                .map(|(name, value)| (name.into(), value.into()))
                .into();
            request.body = Some(b"hi".to_vec());
        })
        .unwrap();
        assert_eq!(lines(&request), format!("{line}content-type: application/grpc+x;te: trailers;"));
        assert_eq!(request.body, b"\0\0\0\0\x02hi\0\0\0\0\x02hi");
        let call = request.call.unwrap();
        let sent = [(0, 6), (6, 7), (7, 13), (0, 14)].map(|(from, to)| call.sent(from, to));
        assert_eq!((call.expected, sent), (3, [0, 1, 0, 2]));
        assert!(called(Grpc { messages: 0, ..Grpc::default() }, |_| {}).unwrap().body.is_empty());
        let error = called(Grpc::default(), |request| {
            request.fields = vec![("content-type".into(), "text/plain".into())];
        });
        assert!(error.unwrap_err().to_string().contains("expected application/grpc"));
    }

    #[test]
    fn methods_and_fields_that_cannot_be_sent_are_rejected() {
        for (method, name, value, why) in [
            ("CONNECT", "a", "b", "-X: invalid value `CONNECT`"),
            ("G T", "a", "b", "-X: invalid value `G T`"),
            ("GET", "Connection", "close", "no fields about the connection"),
            ("GET", "keep-alive", "5", "no fields about the connection"),
            ("GET", "TE", "gzip", "TE: trailers"),
            ("GET", "Transfer-Encoding", "chunked", "follow from the body"),
            ("GET", "Upgrade", "h2c", "-H"),
            ("GET", "Host", "a b", "becomes :authority"),
            ("GET", "a b", "c", "-H"),
        ] {
            let error = built("http://a/", |request| {
                request.method = Some(method.into());
                request.fields = vec![(name.into(), value.into())];
            })
            .unwrap_err();
            assert!(error.to_string().contains(why), "{name}: {error}");
        }
        let host = |value: &str| ("Host".to_string(), value.to_string());
        let two = built("http://a/", |request| request.fields = vec![host("a"), host("b")]).unwrap_err();
        assert!(two.to_string().contains("`Host: b`: expected one Host"), "{two}");
    }
}
