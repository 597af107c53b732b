//! The gateway's own responses: short, with the reason; the connection closes after them.

use crate::Reason;
use std::time::SystemTime;
use weir_http1::Method;

/// Writes the response for `reason`, if it has one. A response to HEAD has no body (RFC 9110 section 9.3.2).
pub(crate) fn write(reason: &Reason, method: Option<Method>, out: &mut Vec<u8>) {
    let Some(status) = reason.status() else { return };
    let phrase = phrase(status);
    let body = format!("{status} {phrase}: {}\n", reason.as_str());
    let head = format!(
        "HTTP/1.1 {status} {phrase}\r\nDate: {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        httpdate::fmt_http_date(SystemTime::now()),
        body.len()
    );
    out.extend_from_slice(head.as_bytes());
    if method != Some(Method::Head) {
        out.extend_from_slice(body.as_bytes());
    }
}

/// RFC 9110 section 15, RFC 6585 section 5.
fn phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
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

    #[test]
    fn every_answer_is_a_response_that_parses_and_says_close() {
        let reasons = [
            Reason::BadRequest(RequestError::MissingHost),
            Reason::BodyTooLarge,
            Reason::ConnectMethod,
            Reason::HeadTimeout,
            Reason::UpstreamClosed,
            Reason::UpstreamTimeout,
            Reason::DrainTimeout,
        ];
        for reason in reasons {
            let (mut out, mut head) = (Vec::new(), ResponseHead::new());
            write(&reason, Some(Method::Get), &mut out);
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
        write(&Reason::UpstreamClosed, Some(Method::Head), &mut out);
        assert!(out.ends_with(b"\r\n\r\n"));
        out.clear();
        write(&Reason::ClientClosed, None, &mut out);
        assert_eq!(out, b"");
    }
}
