//! The gateway's own responses: short, with the reason.

use super::rewrite::Connection;
use crate::Reason;
use crate::config::Pages;
use crate::route::Edits;
use weir_http1::{Framing, framing_field};

/// The terms of a response for a reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// A response to HEAD has no body (RFC 9110 section 9.3.2).
    pub is_head: bool,
    pub connection: Connection,
    /// The edits of the request's route, if it has one.
    pub edits: Option<&'a Edits>,
    pub pages: &'a Pages,
    /// The `Date` field line.
    pub date: &'a [u8],
}

/// Writes the response for `reason`, if it has one, and returns the length of its body.
pub(crate) fn write(reason: &Reason, terms: &Terms<'_>, out: &mut Vec<u8>) -> u64 {
    let Some(status) = reason.status() else { return 0 };
    let Terms { is_head, connection, edits, pages, date } = *terms;
    let words = in_words(status, reason);
    let own = match pages.get(&status) {
        Some(_) => Own::error(status, pages, None),
        None => Own { status, content_type: "text/plain", body: Some(words.as_bytes()), field: None },
    };
    respond(&own, is_head, connection, edits, date, out)
}

/// The body of an error response: the reason, and the setting that would change it, if there is one.
pub(crate) fn in_words(status: u16, reason: &Reason) -> String {
    let hint = reason.hint().map_or(String::new(), |hint| format!("; {hint}"));
    format!("{status} {}: {}{hint}\n", phrase(status), reason.as_str())
}

/// A response that the configuration asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own<'a> {
    pub status: u16,
    pub content_type: &'a str,
    /// The body; `None` for the status in words.
    pub body: Option<&'a [u8]>,
    /// An additional field, such as `Location`.
    pub field: Option<(&'static str, &'a [u8])>,
}

impl<'a> Own<'a> {
    /// An error response, with the configured page if there is one, else with `body`.
    pub(crate) fn error(status: u16, pages: &'a Pages, body: Option<&'a [u8]>) -> Self {
        let plain = Self { status, content_type: PLAIN, body, field: None };
        match pages.get(&status) {
            Some(page) => Self { content_type: page.content_type, body: Some(&page.body), ..plain },
            None => plain,
        }
    }
}

/// The content type of a plain-text body.
pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

/// Writes a response that the configuration asks for, and returns the length of its body.
pub(crate) fn respond(
    own: &Own<'_>,
    is_head: bool,
    connection: Connection,
    edits: Option<&Edits>,
    date: &[u8],
    out: &mut Vec<u8>,
) -> u64 {
    let Own { status, content_type, body, field } = *own;
    let phrase = phrase(status);
    let words = format!("{status} {phrase}\n");
    let body = body.unwrap_or(words.as_bytes());
    let drops = |name: &[u8]| edits.is_some_and(|edits| edits.drops_name(name));
    out.extend_from_slice(format!("HTTP/1.1 {status} {phrase}\r\n").as_bytes());
    if !drops(b"date") {
        out.extend_from_slice(date);
    }
    if let Some((name, value)) = field {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    // A 204 or 304 has no body (RFC 9110 sections 15.3.5 and 15.4.5).
    let has_body = !matches!(status, 204 | 304);
    if has_body {
        if !drops(b"content-type") {
            out.extend_from_slice(format!("Content-Type: {content_type}\r\n").as_bytes());
        }
        framing_field(Framing::Length(body.len() as u64), out);
    }
    out.extend_from_slice(connection.field());
    if let Some(edits) = edits {
        edits.write_fixed(out);
    }
    out.extend_from_slice(b"\r\n");
    if !has_body || is_head {
        return 0;
    }
    out.extend_from_slice(body);
    body.len() as u64
}

/// The reason phrase of a status (RFC 9110 section 15, RFC 6585 section 5).
pub(crate) fn phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        414 => "URI Too Long",
        418 => "I'm a teapot",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http1::{Limits, Parse, RequestError, ResponseHead};

    fn terms(pages: &Pages) -> Terms<'_> {
        Terms { is_head: false, connection: Connection::Closes, edits: None, pages, date: b"" }
    }

    #[test]
    fn every_answer_is_a_response_that_parses_and_says_close() {
        let pages = Pages::default();
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
            write(&reason, &Terms { date: b"Date: x\r\n", ..terms(&pages) }, &mut out);
            let Ok(Parse::Complete(len)) = head.parse(&out, &Limits::default()) else { panic!("{reason:?}") };
            assert_eq!(Some(head.status), reason.status());
            assert!(!head.persistent);
            assert_eq!(head.content_length(), Some((out.len() - len) as u64));
            assert!(String::from_utf8(out).unwrap().contains(reason.as_str()));
        }
    }

    #[test]
    fn a_response_to_head_has_no_body_and_a_closed_client_gets_none() {
        let (mut out, pages) = (Vec::new(), Pages::default());
        write(&Reason::UpstreamClosed, &Terms { is_head: true, ..terms(&pages) }, &mut out);
        assert!(out.ends_with(b"\r\n\r\n"));
        out.clear();
        write(&Reason::ClientClosed, &terms(&pages), &mut out);
        assert_eq!(out, b"");
    }
}
