//! Requests, serialised once and sent repeatedly.

pub(crate) mod file;
pub(crate) mod mix;

use crate::check::Expect;
use crate::options::{Options, PerConnection, RequestOptions};
use crate::target::{Target, WEIGHTS, known_length};
use crate::usage::Usage;
use std::borrow::Cow;
use weir_http::{FieldName, Method};
use weir_http1::{Framing, chunk, framing_field, last_chunk};
use weir_transport::Endpoint;

/// One request per URL, with these weights or, without weights, equal ones.
///
/// # Errors
/// When the URLs differ in scheme, host or port, the number of weights is not that of URLs, or a weight is not
/// 1 to 1000000.
pub fn requests_of(urls: &[Target], weights: &[u32]) -> Result<(Endpoint, Vec<RequestOptions>), Usage> {
    let Some(first) = urls.first() else {
        return Err(Usage::new("URL", "", "at least one"));
    };
    let same = |url: &&Target| {
        let (one, other) = (&url.endpoint, &first.endpoint);
        (one.tls, one.port) == (other.tls, other.port) && one.host.eq_ignore_ascii_case(&other.host)
    };
    if let Some(other) = urls.iter().find(|url| !same(url)) {
        let expected = format!("the scheme, host and port of the first URL, {first}");
        return Err(Usage::new("URL", &other.to_string(), &expected));
    }
    if !weights.is_empty() && weights.len() != urls.len() {
        let shown: Vec<String> = weights.iter().map(u32::to_string).collect();
        let expected = format!("one weight per URL, {} in total", urls.len());
        return Err(Usage::new("--weights", &shown.join(","), &expected));
    }
    if let Some(weight) = weights.iter().find(|weight| !WEIGHTS.contains(*weight)) {
        return Err(Usage::new("--weights", &weight.to_string(), "1 to 1000000"));
    }
    let weights = weights.iter().copied().chain(std::iter::repeat(1));
    let request = |(url, weight): (&Target, u32)| {
        let path = url.path.clone();
        RequestOptions { weight, ..RequestOptions::new(path) }
    };
    Ok((first.endpoint.clone(), urls.iter().zip(weights).map(request).collect()))
}

/// A serialised request and its expected response.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) expect: Expect,
    keep: Vec<u8>,
    last: Vec<u8>,
}

impl Request {
    /// Serialises a request, and rejects methods and fields that cannot be sent.
    pub(crate) fn new(asked: &RequestOptions, options: &Options) -> Result<Self, Usage> {
        let name = asked.method.as_deref().unwrap_or(if asked.body.is_some() { "POST" } else { "GET" });
        check_method(name).map_err(|expected| Usage::new("-X", name, expected))?;
        let method = Method::of(name.as_bytes());
        let mut head = format!("{name} {} HTTP/1.1\r\n", asked.path).into_bytes();
        if !asked.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.extend_from_slice(format!("Host: {}\r\n", options.endpoint.authority()).as_bytes());
        }
        let mut closes = false;
        for (name, value) in &asked.fields {
            let refused = |expected| Usage::new("-H", &format!("{name}: {value}"), expected);
            check_field(name, value).map_err(refused)?;
            let known = FieldName::of(name.as_bytes());
            closes |= known == FieldName::Connection && value.eq_ignore_ascii_case("close");
            head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        let body = match (&asked.body, asked.chunk) {
            (None, _) => Cow::default(),
            (Some(body), None) => {
                framing_field(Framing::Length(body.len() as u64), &mut head);
                Cow::from(body)
            }
            (Some(body), Some(size)) => {
                framing_field(Framing::Chunked, &mut head);
                Cow::from(chunks(body, size))
            }
        };
        let build = |head: &[u8], close: &[u8]| [head, close, b"\r\n", &body].concat();
        let per_connection = options.policy.per_connection;
        let asks = if closes { &b""[..] } else { b"Connection: close\r\n" };
        // Keep only the variants that are sent: bodies may be large.
        let ends = matches!(per_connection, PerConnection::Requests { .. });
        let last = if ends { build(&head, asks) } else { Vec::new() };
        let keep = if per_connection.is_single() { Vec::new() } else { build(&head, b"") };
        Ok(Self { method, expect: expect(asked, method), keep, last })
    }

    /// The bytes; with `last`, the variant that asks to close.
    pub(crate) fn bytes(&self, last: bool) -> &[u8] {
        if last { &self.last } else { &self.keep }
    }
}

/// A body as a sequence of chunks (RFC 9112 section 7.1), the last one possibly shorter.
fn chunks(body: &[u8], size: u64) -> Vec<u8> {
    let mut framed = Vec::with_capacity(body.len());
    body.chunks(size as usize).for_each(|piece| chunk(piece, &mut framed));
    last_chunk(&mut framed);
    framed
}

/// The expected response, with the length from the path.
pub(crate) fn expect(asked: &RequestOptions, method: Method) -> Expect {
    let good = asked.expect.status.is_none_or(|status| status == 200) && method != Method::Head;
    let length = known_length(&asked.path).filter(|_| good);
    Expect { length: asked.expect.length.or(length), ..asked.expect }
}

/// Splits `Name: value`.
pub(crate) fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected `Name: value`")?;
    Ok((name.trim().to_string(), value.trim().to_string()))
}

/// The error is the expected value.
pub(crate) fn check_method(name: &str) -> Result<(), &'static str> {
    let good = !name.is_empty() && name.bytes().all(is_token);
    if good { Ok(()) } else { Err("a method: letters, digits and !#$%&'*+-.^_`|~") }
}

/// The error is the expected value.
pub(crate) fn check_field(name: &str, value: &str) -> Result<(), &'static str> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err("a name of letters, digits and !#$%&'*+-.^_`|~ before the colon");
    }
    if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        return Err("a value without control characters");
    }
    match FieldName::of(name.as_bytes()) {
        FieldName::ContentLength | FieldName::TransferEncoding => {
            Err("a field other than Content-Length and Transfer-Encoding, which follow from the body")
        }
        FieldName::Expect => Err("a field other than Expect: the body is sent at once"),
        FieldName::Upgrade => Err("a field other than Upgrade: a connection keeps its protocol"),
        _ => Ok(()),
    }
}

/// RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(change: impl FnOnce(&mut RequestOptions, &mut Options)) -> Result<Request, Usage> {
        let mut options = Options::new("http://127.0.0.1:8080/x?y".parse().unwrap());
        let mut request = options.requests.remove(0);
        change(&mut request, &mut options);
        Request::new(&request, &options)
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_bytes_of_a_request() {
        let request = built(|_, _| {}).unwrap();
        assert_eq!(text(request.bytes(false)), "GET /x?y HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n");
        assert_eq!(request.method, Method::Get);
        let request = built(|request, options| {
            request.fields = vec![("HOST".into(), "a".into()), ("X".into(), "1".into())];
            request.body = Some(b"hello".to_vec());
            options.policy.per_connection = PerConnection::Requests { least: 3, most: 3 };
        })
        .unwrap();
        let head = "POST /x?y HTTP/1.1\r\nHOST: a\r\nX: 1\r\nContent-Length: 5\r\n";
        assert_eq!(text(request.bytes(false)), format!("{head}\r\nhello"));
        assert_eq!(text(request.bytes(true)), format!("{head}Connection: close\r\n\r\nhello"));
    }

    #[test]
    fn the_bytes_of_a_chunked_body() {
        for (body, size, framed) in [
            ("", 5, "0\r\n\r\n"),
            ("a", 5, "1\r\na\r\n0\r\n\r\n"),
            ("hello", 5, "5\r\nhello\r\n0\r\n\r\n"),
            ("hello!", 5, "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"),
            ("hi!", 1, "1\r\nh\r\n1\r\ni\r\n1\r\n!\r\n0\r\n\r\n"),
            ("a body of 26 bytes in hex.", 1 << 30, "1a\r\na body of 26 bytes in hex.\r\n0\r\n\r\n"),
        ] {
            let request = built(|request, options| {
                request.body = Some(body.into());
                request.chunk = Some(size);
                options.policy.per_connection = PerConnection::Requests { least: 2, most: 2 };
            })
            .unwrap();
            let head = "POST /x?y HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nTransfer-Encoding: chunked\r\n";
            assert_eq!(text(request.bytes(false)), format!("{head}\r\n{framed}"));
            assert_eq!(text(request.bytes(true)), format!("{head}Connection: close\r\n\r\n{framed}"));
        }
    }

    /// A HEAD response has no body, and other statuses other bodies.
    #[test]
    fn the_test_servers_path_determines_the_length() {
        type Change = fn(&mut RequestOptions);
        let table: [(Change, Option<u64>); 5] = [
            (|_| {}, Some(7)),
            (|request| request.expect.length = Some(8), Some(8)),
            (|request| request.expect.status = Some(404), None),
            (|request| request.method = Some("HEAD".into()), None),
            (|request| request.path = "/".into(), None),
        ];
        for (change, length) in table {
            let request = built(|request, _| {
                request.path = "/bytes/7".into();
                change(request);
            });
            assert_eq!(request.unwrap().expect.length, length);
        }
    }

    #[test]
    fn only_what_is_sent_is_kept() {
        for (per_connection, keep, last) in [
            (PerConnection::Unlimited, true, false),
            (PerConnection::Requests { least: 1, most: 1 }, false, true),
            (PerConnection::Requests { least: 1, most: 3 }, true, true),
            (PerConnection::Handshake, false, false),
        ] {
            let request = built(|_, options| options.policy.per_connection = per_connection).unwrap();
            let kept = (!request.bytes(false).is_empty(), !request.bytes(true).is_empty());
            assert_eq!(kept, (keep, last), "{per_connection:?}");
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused_by_its_flag() {
        let error = built(|request, _| request.method = Some("GE T".into())).unwrap_err().to_string();
        assert!(error.contains("-X") && error.contains("GE T"), "{error}");
        for (name, value) in
            [("", "x"), ("a b", "x"), ("a", "x\r\ny"), ("Content-Length", "5"), ("expect", "x")]
        {
            let error = built(|request, _| request.fields = vec![(name.into(), value.into())]).unwrap_err();
            assert!(error.to_string().contains("-H"), "{error}");
        }
        assert!(field("no colon").is_err());
        assert_eq!(field("A:  b c ").unwrap(), ("A".to_string(), "b c".to_string()));
    }

    fn targets(urls: &[&str]) -> Vec<Target> {
        urls.iter().map(|url| url.parse().unwrap()).collect()
    }

    #[test]
    fn several_urls_have_their_weights() {
        let urls = targets(&["http://a:81/x", "http://A:81/y?z"]);
        for (weights, expected) in [(&[][..], [1, 1]), (&[3, 1_000_000], [3, 1_000_000])] {
            let (endpoint, requests) = requests_of(&urls, weights).unwrap();
            assert_eq!(endpoint.to_string(), "http://a:81");
            let found: Vec<_> = requests.iter().map(|one| (one.path.as_str(), one.weight)).collect();
            assert_eq!(found, [("/x", expected[0]), ("/y?z", expected[1])]);
        }
    }

    #[test]
    fn several_urls_that_cannot_be_one_run_name_what_is_wrong() {
        let table: [(&[&str], &[u32], &str); 8] = [
            (&[], &[], "URL: missing value: expected at least one"),
            (
                &["http://a/x", "http://a/y", "http://b/z"],
                &[],
                "URL: invalid value `http://b/z`: \
                 expected the scheme, host and port of the first URL, http://a/x",
            ),
            (&["http://a", "https://a"], &[], "`https://a/`"),
            (&["http://a", "http://a:81"], &[], "`http://a:81/`"),
            (
                &["http://a"],
                &[1, 2],
                "--weights: invalid value `1,2`: expected one weight per URL, 1 in total",
            ),
            (&["http://a", "http://a"], &[1], "2 in total"),
            (&["http://a"], &[0], "--weights: invalid value `0`: expected 1 to 1000000"),
            (&["http://a"], &[1_000_001], "--weights: invalid value `1000001`: expected 1 to 1000000"),
        ];
        for (urls, weights, message) in table {
            let error = requests_of(&targets(urls), weights).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
