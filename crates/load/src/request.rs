//! The request, built once and sent again and again.

use crate::check::Expect;
use crate::options::{Options, PerConnection};
use crate::target::known_length;
use crate::usage::Usage;
use weir_http1::{FieldName, Method, decimal};

/// The requests in the order in which they are sent.
#[derive(Debug)]
pub(crate) struct Mix {
    only: Request,
}

/// The bytes of a request, and what its answer must be.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) expect: Expect,
    keep: Vec<u8>,
    last: Vec<u8>,
}

impl Mix {
    pub(crate) fn new(options: &Options) -> Result<Self, Usage> {
        Ok(Self { only: Request::new(options)? })
    }

    pub(crate) fn nth(&self, _number: u64) -> &Request {
        &self.only
    }
}

impl Request {
    /// Builds and checks it.
    ///
    /// # Errors
    /// When a method or a field cannot be sent.
    pub(crate) fn new(options: &Options) -> Result<Self, Usage> {
        let Some(asked) = options.requests.first() else {
            return Err(Usage::new("URL", "", "at least one request"));
        };
        let method = asked.method.clone().unwrap_or(if asked.body.is_some() { "POST" } else { "GET" }.into());
        if method.is_empty() || !method.bytes().all(is_token) {
            return Err(Usage::new("-X", &method, "a method: letters, digits and !#$%&'*+-.^_`|~"));
        }
        let mut head = format!("{method} {} HTTP/1.1\r\n", asked.path).into_bytes();
        if !asked.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.extend_from_slice(format!("Host: {}\r\n", options.endpoint.authority()).as_bytes());
        }
        let mut closes = false;
        for (name, value) in &asked.fields {
            check_field(name, value)?;
            let known = FieldName::of(name.as_bytes());
            closes |= known == FieldName::Connection && value.eq_ignore_ascii_case("close");
            head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        if let Some(body) = &asked.body {
            head.extend_from_slice(b"Content-Length: ");
            decimal(body.len() as u64, &mut head);
            head.extend_from_slice(b"\r\n");
        }
        let build = |head: &[u8], close: &[u8]| {
            let body = asked.body.as_deref().unwrap_or_default();
            [head, close, b"\r\n", body].concat()
        };
        let per_connection = options.policy.per_connection;
        let asks = if closes { &b""[..] } else { b"Connection: close\r\n" };
        // Only what is ever sent is kept: bodies may be large.
        let last = if per_connection != PerConnection::Unlimited { build(&head, asks) } else { Vec::new() };
        let keep = if per_connection.is_single() { Vec::new() } else { build(&head, b"") };
        let method = Method::of(method.as_bytes());
        let mut expect = asked.expect;
        let any_ok = expect.status.is_none_or(|status| status == 200);
        if any_ok && method != Method::Head {
            expect.length = expect.length.or_else(|| known_length(&asked.path));
        }
        Ok(Self { method, expect, keep, last })
    }

    /// The bytes; with `last`, those that ask for the connection's end.
    pub(crate) fn bytes(&self, last: bool) -> &[u8] {
        if last { &self.last } else { &self.keep }
    }
}

/// Splits `Name: value`.
///
/// # Errors
/// When there is no colon.
pub fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write it as `Name: value`")?;
    Ok((name.trim().to_string(), value.trim().to_string()))
}

fn check_field(name: &str, value: &str) -> Result<(), Usage> {
    let text = format!("{name}: {value}");
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(Usage::new(
            "-H",
            &text,
            "a name of letters, digits and !#$%&'*+-.^_`|~ before the colon",
        ));
    }
    if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        return Err(Usage::new("-H", &text, "a value without control characters"));
    }
    match FieldName::of(name.as_bytes()) {
        FieldName::ContentLength | FieldName::TransferEncoding => {
            Err(Usage::new("-H", &text, "any field but the body's framing, which --data decides"))
        }
        FieldName::Expect => Err(Usage::new("-H", &text, "any field but Expect: the body is sent at once")),
        FieldName::Upgrade => {
            Err(Usage::new("-H", &text, "any field but Upgrade: only HTTP/1.1 is understood"))
        }
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
    use crate::options::RequestOptions;

    fn built(change: impl FnOnce(&mut RequestOptions, &mut Options)) -> Result<Request, Usage> {
        let mut options = Options::new("http://127.0.0.1:8080/x?y".parse().unwrap());
        let mut request = options.requests.remove(0);
        change(&mut request, &mut options);
        options.requests.push(request);
        Request::new(&options)
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
}
