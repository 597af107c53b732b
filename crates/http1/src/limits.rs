//! Limits on a head, and its parse progress.

/// Limits on a head, and on the framing of a chunked body. What is at a limit is accepted, what is past it rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole head, its empty line included, or of a trailer section. Values above 4 GiB act as 4 GiB.
    pub head_bytes: usize,
    /// Number of field lines.
    pub fields: usize,
    /// Bytes of the request line, the status line or one field line, each with its CRLF. No more than a head has room for
    /// anyway.
    pub line_bytes: usize,
    /// Bytes of the extensions of one chunk, separators and white space included.
    pub extension_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Cookies of large sites reach 8 to 16 KiB, and tokens as much again.
            head_bytes: HEAD_BYTES,
            // Browsers send 15 to 25 fields, a chain of proxies adds a dozen; the cost of nominated fields is bounded
            // by this number too.
            fields: 100,
            // One limit for the head is enough: what a line needs, the others have not. RFC 9112 section 3 asks for at least
            // 8000 bytes of request line; a Kerberos token in a field has 16 KiB and more.
            line_bytes: HEAD_BYTES,
            // Extensions are ignored; the longest in use are signatures of under 100 bytes.
            extension_bytes: 256,
        }
    }
}

const HEAD_BYTES: usize = 32 * 1024;

impl Limits {
    /// The part of `buf` that a head may occupy.
    #[inline]
    pub(crate) fn window<'a>(&self, buf: &'a [u8]) -> &'a [u8] {
        &buf[..buf.len().min(self.head_bytes).min(u32::MAX as usize)]
    }

    /// Whether an exhausted window is at its maximum size.
    #[inline]
    pub(crate) fn head_is_full(&self, window: &[u8]) -> bool {
        self.is_reached_by(window.len())
    }

    /// Whether so many bytes leave no room in a head for another one.
    #[inline]
    pub(crate) fn is_reached_by(&self, length: usize) -> bool {
        length >= self.head_bytes.min(u32::MAX as usize)
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
