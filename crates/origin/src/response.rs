//! Response heads, built per response.

use weir_http1::{Framing, Version, framing_field};

/// The terms of a response, which the request's head determines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The client's version decides whether chunks are understood.
    pub(crate) version: Version,
    /// The request was HEAD: only the head is sent (RFC 9110 section 9.3.2).
    pub(crate) head_only: bool,
    /// The connection closes after the response.
    pub(crate) close: bool,
}

impl Terms {
    /// The framing of a body of known length. An HTTP/1.0 client cannot take chunks: the end of the connection ends
    /// the body instead.
    pub(crate) fn framing(&mut self, length: u64, chunked: bool) -> Framing {
        match (chunked, self.version) {
            (false, _) => Framing::Length(length),
            (true, Version::Http11) => Framing::Chunked,
            (true, Version::Http10) => {
                self.close = true;
                Framing::UntilClose
            }
        }
    }

    /// Appends a head.
    pub(crate) fn head(&self, status: Status, kind: &str, framing: Framing, date: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(status.line());
        out.extend_from_slice(b"Server: weir-origin\r\nDate: ");
        out.extend_from_slice(date);
        out.extend_from_slice(b"\r\nContent-Type: ");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\r\n");
        framing_field(framing, out);
        match (self.close, self.version) {
            (true, _) => out.extend_from_slice(b"Connection: close\r\n"),
            (false, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
            (false, Version::Http11) => {}
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Appends a complete response.
    pub(crate) fn whole(&self, status: Status, kind: &str, body: &[u8], date: &[u8], out: &mut Vec<u8>) {
        self.head(status, kind, Framing::Length(body.len() as u64), date, out);
        if !self.head_only {
            out.extend_from_slice(body);
        }
    }
}

pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The origin's statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    BadRequest,
    NotFound,
    UriTooLong,
    FieldsTooLarge,
    NotImplemented,
    VersionNotSupported,
}

impl Status {
    /// The status for a request the parser rejected.
    pub(crate) fn of_refusal(number: u16) -> Self {
        match number {
            414 => Self::UriTooLong,
            431 => Self::FieldsTooLarge,
            501 => Self::NotImplemented,
            505 => Self::VersionNotSupported,
            _ => Self::BadRequest,
        }
    }

    /// The number, for a version of HTTP without reason phrases.
    pub(crate) fn number(self) -> u16 {
        match self {
            Self::Ok => 200,
            Self::BadRequest => 400,
            Self::NotFound => 404,
            Self::UriTooLong => 414,
            Self::FieldsTooLarge => 431,
            Self::NotImplemented => 501,
            Self::VersionNotSupported => 505,
        }
    }

    fn line(self) -> &'static [u8] {
        match self {
            Self::Ok => b"HTTP/1.1 200 OK\r\n",
            Self::BadRequest => b"HTTP/1.1 400 Bad Request\r\n",
            Self::NotFound => b"HTTP/1.1 404 Not Found\r\n",
            Self::UriTooLong => b"HTTP/1.1 414 URI Too Long\r\n",
            Self::FieldsTooLarge => b"HTTP/1.1 431 Request Header Fields Too Large\r\n",
            Self::NotImplemented => b"HTTP/1.1 501 Not Implemented\r\n",
            Self::VersionNotSupported => b"HTTP/1.1 505 HTTP Version Not Supported\r\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::TEXT;

    fn head(version: Version, close: bool, chunked: bool) -> String {
        let mut terms = Terms { version, head_only: false, close };
        let framing = terms.framing(5, chunked);
        let mut out = Vec::new();
        terms.head(Status::Ok, TEXT, framing, b"DATE", &mut out);
        String::from_utf8(out).unwrap()
    }

    const START: &str =
        "HTTP/1.1 200 OK\r\nServer: weir-origin\r\nDate: DATE\r\nContent-Type: text/plain\r\n";

    #[test]
    fn heads_of_each_version_and_framing() {
        for (version, close, chunked, fields) in [
            (Version::Http11, false, false, "Content-Length: 5\r\n"),
            (Version::Http11, true, false, "Content-Length: 5\r\nConnection: close\r\n"),
            (Version::Http11, false, true, "Transfer-Encoding: chunked\r\n"),
            (Version::Http10, false, false, "Content-Length: 5\r\nConnection: keep-alive\r\n"),
            (Version::Http10, false, true, "Connection: close\r\n"),
        ] {
            assert_eq!(head(version, close, chunked), format!("{START}{fields}\r\n"));
        }
    }

    #[test]
    fn each_status_line_has_the_statuss_number() {
        for number in [200, 400, 404, 414, 431, 501, 505] {
            let status = if number == 200 { Status::Ok } else { Status::of_refusal(number) };
            let status = if number == 404 { Status::NotFound } else { status };
            assert_eq!(status.number(), number);
            assert!(status.line().starts_with(format!("HTTP/1.1 {number} ").as_bytes()));
        }
    }

    #[test]
    fn a_response_to_head_has_no_body() {
        let terms = Terms { version: Version::Http11, head_only: true, close: false };
        let mut out = Vec::new();
        terms.whole(Status::NotFound, TEXT, b"no", b"DATE", &mut out);
        assert!(out.ends_with(b"Content-Length: 2\r\n\r\n"));
    }
}
