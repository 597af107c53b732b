//! Request lines for the log.

use weir_http1::RequestHead;

/// A request line for the log. Its fixed size saves an allocation for each successful request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLine {
    bytes: [u8; RequestLine::LEN],
    len: u8,
}

impl RequestLine {
    const LEN: usize = 47;

    /// Method and target of the request whose head was parsed from `buf`, separated by one space.
    pub(crate) fn of(head: &RequestHead, buf: &[u8]) -> Self {
        let (method, target) = (head.method_span.range(), head.target.range());
        match method.end + 1 == target.start {
            true => Self::of_text(&buf[method.start..target.end]),
            // An HTTP/2 field block stores method and target apart.
            false => Self::of_text(&[&buf[method], &buf[target]].join(&b' ')),
        }
    }

    fn of_text(line: &[u8]) -> Self {
        let len = line.len().min(Self::LEN);
        let mut bytes = [0; Self::LEN];
        bytes[..len].copy_from_slice(&line[..len]);
        Self { bytes, len: len as u8 }
    }

    pub(crate) fn as_str(&self) -> &str {
        // The parser only accepts ASCII.
        std::str::from_utf8(&self.bytes[..self.len as usize]).unwrap_or("?")
    }
}
