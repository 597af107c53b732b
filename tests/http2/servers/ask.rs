//! One request of an HTTP/1.1 or HTTP/2 client, and its response.

use super::{Client, Http1, Weir};
use crate::common::Ending;
use crate::http2::client::Upload;
use weir_http::Method;
use weir_http2::ErrorCode;

/// The client's HTTP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// Both versions.
pub(super) const BOTH: [Version; 2] = [Version::Http1, Version::Http2];

/// The content of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'a> {
    /// No body: END_STREAM on HEADERS.
    None,
    /// With `content-length`.
    Length(&'a [u8]),
    /// Without a length: chunked, or only DATA.
    Unknown(&'a [u8]),
    /// As [`Self::Unknown`], with one trailer field.
    Trailers(&'a [u8], &'a str, &'a str),
}

/// A response as received by its client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    pub status: u16,
    /// The lines of the fields, with names in lower case.
    pub fields: Vec<String>,
    pub body: Vec<u8>,
    /// The lines of the trailers, with names in lower case.
    pub trailers: String,
    /// The statuses of interim responses.
    pub interim: Vec<u16>,
    /// Whether the body is complete.
    pub complete: bool,
    /// The code of RST_STREAM, from HTTP/2.
    pub reset: Option<ErrorCode>,
    /// The close of the connection within the response, from HTTP/1.1.
    pub ending: Option<Ending>,
}

impl Reply {
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The value of a field; empty if absent.
    pub(super) fn field(&self, name: &str) -> &str {
        let lines = self.fields.iter().filter_map(|line| line.split_once(": "));
        lines.filter(|(field, _)| *field == name).map(|(_, value)| value).next().unwrap_or_default()
    }

    /// Whether the client can detect that the response is incomplete.
    pub(super) fn is_cut(&self) -> bool {
        !self.complete && (self.reset.is_some() || self.ending.is_some())
    }
}

/// Sends one request to the gateway on a new connection, and reads the response.
pub(super) fn ask(
    weir: &Weir,
    version: Version,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
    content: Content<'_>,
) -> Reply {
    match version {
        Version::Http1 => ask_http1(weir, method, path, fields, content),
        Version::Http2 => ask_http2(weir, method, path, fields, content),
    }
}

fn ask_http1(weir: &Weir, method: &str, path: &str, fields: &[(&str, &str)], content: Content<'_>) -> Reply {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\nHost: h\r\n").into_bytes();
    for (name, value) in fields {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    let chunked = |body: &[u8], trailers: String| {
        let mut bytes = b"Transfer-Encoding: chunked\r\n\r\n".to_vec();
        // Two chunks, so that the body does not end with the first one.
        for piece in body.chunks(body.len().div_ceil(2).max(1)) {
            bytes.extend_from_slice(&[format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
        }
        bytes.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
        bytes
    };
    bytes.extend(match content {
        Content::None => b"\r\n".to_vec(),
        Content::Length(body) => {
            [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
        }
        Content::Unknown(body) => chunked(body, String::new()),
        Content::Trailers(body, name, value) => chunked(body, format!("{name}: {value}\r\n")),
    });
    let mut client = Http1::connect(weir.address(), None);
    client.send(&bytes);
    let mut reply = Reply::default();
    let answer = loop {
        let answer = client.answer(Method::of(method.as_bytes()));
        match answer.status {
            100..200 => reply.interim.push(answer.status),
            _ => break answer,
        }
    };
    let lines = answer.head.lines().skip(1).filter(|line| !line.is_empty());
    // The last chunk starts a line; the first one may be the last.
    let raw = format!("\r\n{}", String::from_utf8_lossy(&answer.raw_body));
    let trailers = match answer.fields("transfer-encoding").is_empty() {
        false => raw.split_once("\r\n0\r\n").map_or("", |(_, trailers)| trailers).trim_end().to_owned(),
        true => String::new(),
    };
    Reply {
        status: answer.status,
        fields: lines.map(lower_case).collect(),
        body: answer.body,
        trailers: trailers.lines().map(lower_case).collect::<Vec<_>>().join("\n"),
        complete: answer.complete,
        ending: answer.ending,
        ..reply
    }
}

fn ask_http2(weir: &Weir, method: &str, path: &str, fields: &[(&str, &str)], content: Content<'_>) -> Reply {
    let mut client = Client::connect(weir.address());
    let mut head = super::request(method, path).to_vec();
    head.extend(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    let length;
    let body = match content {
        Content::None => None,
        Content::Length(body) => {
            length = body.len().to_string();
            head.push((b"content-length", length.as_bytes()));
            Some(body)
        }
        Content::Unknown(body) | Content::Trailers(body, ..) => Some(body),
    };
    client.headers(1, &head, body.is_none());
    if let Some(body) = body {
        match content {
            Content::Trailers(_, name, value) => {
                client.data(1, body, false);
                client.headers(1, &[(name.as_bytes(), value.as_bytes())], true);
            }
            _ if body.len() < 60_000 => {
                client.data(1, body, true);
            }
            _ => {
                client.upload(1, body, &mut Upload::default());
            }
        }
    }
    let received = client.response(1);
    let status = |head: &String| head.split_whitespace().nth(1).unwrap().parse().unwrap();
    Reply {
        status: received.status(),
        fields: received.head.lines().skip(1).map(str::to_owned).collect(),
        trailers: received.trailers.lines().collect::<Vec<_>>().join("\n"),
        interim: received.interim.iter().map(status).collect(),
        complete: received.ended,
        reset: received.reset,
        body: received.body,
        ending: client.ending,
    }
}

/// A line with the field name in lower case.
fn lower_case(line: &str) -> String {
    let (name, value) = line.split_once(": ").unwrap_or((line, ""));
    format!("{}: {value}", name.to_ascii_lowercase())
}
