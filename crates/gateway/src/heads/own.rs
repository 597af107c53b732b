//! The gateway's own responses. Without a configured page, the response for a [`Reason`] names the reason.

use super::rewrite::Connection;
use super::writer::HeadWriter;
use crate::Reason;
use crate::config::Pages;
use crate::grpc::{self, Status};
use crate::route::Edits;
use std::borrow::Cow;
use weir_http1::{Framing, decimal, framing_field};

/// The properties of a response that depend on its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// Whether the request is a HEAD: its response has no body (RFC 9110 section 9.3.2).
    pub is_head: bool,
    pub connection: Connection,
    pub edits: Option<&'a Edits>,
    pub date: &'a [u8],
}

#[derive(Debug)]
pub(crate) struct Own<'a> {
    pub status: u16,
    pub content_type: &'a str,
    /// The body; `None`: the status and its reason phrase.
    pub body: Option<Cow<'a, [u8]>>,
    /// An additional field, such as `Location`.
    pub field: Option<(&'static str, &'a [u8])>,
}

pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

impl<'a> Own<'a> {
    /// The response for `reason`, if the reason maps to a status.
    pub(crate) fn of_reason(reason: &Reason, pages: &'a Pages) -> Option<Self> {
        let status = reason.status()?;
        Some(match pages.get(&status) {
            Some(_) => Self::error(status, pages, None),
            None => {
                let words = in_words(status, reason).into_bytes();
                Self { status, content_type: "text/plain", body: Some(words.into()), field: None }
            }
        })
    }

    /// An error response, with the configured page if there is one, else with `body`.
    pub(crate) fn error(status: u16, pages: &'a Pages, body: Option<&'a [u8]>) -> Self {
        let plain = Self { status, content_type: PLAIN, body: body.map(Cow::Borrowed), field: None };
        match pages.get(&status) {
            Some(page) => {
                Self { content_type: page.content_type, body: Some(Cow::Borrowed(&page.body)), ..plain }
            }
            None => plain,
        }
    }

    /// Writes the response as HTTP/1.1 text. Returns the length of the body that it has written.
    pub(crate) fn write(&self, terms: &Terms<'_>, out: &mut Vec<u8>) -> u64 {
        let body = self.body();
        self.head(&body, terms, out);
        let sent = self.sent(&body, terms);
        out.extend_from_slice(sent);
        sent.len() as u64
    }

    /// The whole body. A response to HEAD needs its length.
    pub(crate) fn body(&self) -> Cow<'_, [u8]> {
        match (self.has_body(), &self.body) {
            (false, _) => Cow::Borrowed(b""),
            (true, Some(body)) => Cow::Borrowed(body),
            (true, None) => format!("{} {}\n", self.status, phrase(self.status)).into_bytes().into(),
        }
    }

    /// The part of the body that is sent: none for HEAD.
    pub(crate) fn sent<'b>(&self, body: &'b [u8], terms: &Terms<'_>) -> &'b [u8] {
        if terms.is_head { b"" } else { body }
    }

    pub(crate) fn head(&self, body: &[u8], terms: &Terms<'_>, out: &mut impl HeadWriter) {
        let Terms { connection, edits, date, .. } = *terms;
        let drops = |name: &[u8]| edits.is_some_and(|edits| edits.drops_name(name));
        out.status(self.status, phrase(self.status).as_bytes());
        out.lines(|out| {
            if !drops(b"date") {
                out.extend_from_slice(date);
            }
            if let Some((name, value)) = self.field {
                for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                    out.extend_from_slice(part);
                }
            }
            if self.has_body() {
                if !drops(b"content-type") {
                    out.extend_from_slice(format!("Content-Type: {}\r\n", self.content_type).as_bytes());
                }
                framing_field(Framing::Length(body.len() as u64), out);
            }
            out.extend_from_slice(connection.field());
            if let Some(edits) = edits {
                edits.write_fixed(out);
            }
        });
        out.end();
    }

    /// Writes a gRPC response with this status. The status message is the body or, in place of a page for browsers, the
    /// reason phrase.
    pub(crate) fn grpc_head(
        &self,
        body: &[u8],
        status: Status,
        terms: &Terms<'_>,
        out: &mut impl HeadWriter,
    ) {
        out.status(200, b"OK");
        out.lines(|out| {
            out.extend_from_slice(terms.date);
            out.extend_from_slice(b"Content-Type: application/grpc\r\nGrpc-Status: ");
            decimal(status.number().into(), out);
            out.extend_from_slice(b"\r\nGrpc-Message: ");
            match self.content_type.starts_with("text/plain") {
                true => grpc::write_message(&body[..body.len().min(MESSAGE)], out),
                // The body may be a page for browsers.
                false => grpc::write_message(phrase(self.status).as_bytes(), out),
            }
            out.extend_from_slice(b"\r\n");
            if let Some(edits) = terms.edits {
                edits.write_fixed(out);
            }
        });
        out.end();
    }

    /// Whether the response has a body: a 204 or 304 has none (RFC 9110 sections 15.3.5 and 15.4.5).
    fn has_body(&self) -> bool {
        !matches!(self.status, 204 | 304)
    }
}

/// The maximum length of a gRPC status message before percent-encoding, since it may come from a long body.
const MESSAGE: usize = 1024;

/// The body of an error response: the reason and, if there is one, a hint at the setting that would prevent the error.
pub(crate) fn in_words(status: u16, reason: &Reason) -> String {
    let hint = reason.hint().map_or(String::new(), |hint| format!("; {hint}"));
    format!("{status} {}: {}{hint}\n", phrase(status), reason.as_str())
}

/// The reason phrase of a status (the registry of RFC 9110 section 16.2), or else the name of its class.
pub(crate) fn phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        418 => "I'm a teapot",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        other => match other / 100 {
            1 => "Informational",
            2 => "Successful",
            3 => "Redirection",
            4 => "Client Error",
            5 => "Server Error",
            _ => "Unknown",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http1::{Limits, Parse, RequestError, ResponseHead};

    const TERMS: Terms<'static> =
        Terms { is_head: false, connection: Connection::Closes, edits: None, date: b"" };

    fn write(reason: &Reason, terms: &Terms<'_>, out: &mut Vec<u8>) {
        if let Some(own) = Own::of_reason(reason, &Pages::default()) {
            own.write(terms, out);
        }
    }

    #[test]
    fn every_answer_is_a_response_that_parses_and_says_close() {
        let reasons = [
            Reason::BadRequest(RequestError::MissingHost, None),
            Reason::BodyTooLarge,
            Reason::ConnectMethod,
            Reason::HeadTimeout,
            Reason::UpstreamClosed,
            Reason::UpstreamTimeout,
            Reason::DrainTimeout,
        ];
        for reason in reasons {
            let (mut out, mut head) = (Vec::new(), ResponseHead::new());
            write(&reason, &Terms { date: b"Date: x\r\n", ..TERMS }, &mut out);
            let Ok(Parse::Complete(len)) = head.parse(&out, &Limits::default()) else { panic!("{reason:?}") };
            assert_eq!(Some(head.status), reason.status());
            assert!(!head.persistent);
            assert_eq!(head.content_length(), Some((out.len() - len) as u64));
            assert!(String::from_utf8(out).unwrap().contains(reason.as_str()));
        }
    }

    #[test]
    fn a_response_to_head_has_no_body_and_a_closed_client_gets_none() {
        let mut out = Vec::new();
        write(&Reason::UpstreamClosed, &Terms { is_head: true, ..TERMS }, &mut out);
        assert!(out.ends_with(b"\r\n\r\n"));
        out.clear();
        write(&Reason::ClientClosed, &TERMS, &mut out);
        assert_eq!(out, b"");
    }
}
