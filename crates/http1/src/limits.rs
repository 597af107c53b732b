//! Limits on a head, and its parse progress.

/// Limits on a head, and on the trailer section of a chunked body. A head at a limit is accepted, one past it rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole head, its empty line included, or of a trailer section. Values above 4 GiB act as 4 GiB.
    pub head_bytes: usize,
    /// Number of field lines.
    pub fields: usize,
    /// Bytes of the request line, the status line or one field line, each with its CRLF.
    pub line_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Cookies of large sites reach 8 to 16 KiB; four times the line limit leaves room for them beside tokens.
            head_bytes: 32 * 1024,
            // Browsers send 15 to 25 fields, a chain of proxies adds a dozen; the cost of nominated fields is bounded
            // by this number too.
            fields: 100,
            // RFC 9112 section 3 asks for at least 8000 bytes of request line; common servers allow 8 KiB.
            line_bytes: 8 * 1024,
        }
    }
}

impl Limits {
    /// The part of `buf` that a head may occupy.
    #[inline]
    pub(crate) fn window<'a>(&self, buf: &'a [u8]) -> &'a [u8] {
        &buf[..buf.len().min(self.head_bytes).min(u32::MAX as usize)]
    }

    /// Whether an exhausted window is at its maximum size.
    #[inline]
    pub(crate) fn head_is_full(&self, window: &[u8]) -> bool {
        window.len() >= self.head_bytes.min(u32::MAX as usize)
    }
}

/// Parse progress of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parse {
    /// The head is not complete. No rule is broken up to the last complete line, nor by a byte of the line after it,
    /// and no limit is reached. Read more and parse again from the start of the head; the spans mean nothing yet.
    Partial,
    /// The head is complete and is this many bytes long, its empty line included; the body starts there.
    Complete(usize),
}
