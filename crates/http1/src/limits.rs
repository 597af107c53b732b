//! Limits on a head, and parse progress.

/// Limits on a head and on the framing of a chunked body. The parser accepts a message at a limit and rejects
/// one beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole head with its empty line, or of a trailer section. Values above 4 GiB act as 4 GiB.
    pub head_bytes: usize,
    /// Number of field lines.
    pub fields: usize,
    /// Bytes of the request line, the status line or one field line, each with its CRLF. Values above
    /// `head_bytes` have no effect.
    pub line_bytes: usize,
    /// Bytes of one chunk's extensions, with separators and white space.
    pub extension_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Cookies of large sites take 8 to 16 KiB, and tokens may take as much again.
            head_bytes: HEAD_BYTES,
            // Browsers send 15 to 25 fields, and a chain of proxies adds a dozen. This number also bounds the cost of
            // connection options, each of which is compared with all fields.
            fields: 100,
            // The limit on the head is enough, since its lines share it. RFC 9112 section 3 recommends at
            // least 8000 bytes for a request line; a field with a Kerberos token takes 16 KiB and more.
            line_bytes: HEAD_BYTES,
            // Extensions are ignored; the longest in use are signatures of less than 100 bytes.
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

    /// Whether a completely parsed window has reached the maximum size of a head.
    #[inline]
    pub(crate) fn head_is_full(&self, window: &[u8]) -> bool {
        self.is_reached_by(window.len())
    }

    /// Whether a head of `length` bytes has no room for another byte.
    #[inline]
    pub(crate) fn is_reached_by(&self, length: usize) -> bool {
        length >= self.head_bytes.min(u32::MAX as usize)
    }
}

/// Parse progress of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parse {
    /// The head is not complete. No complete line violates a rule, no byte of the incomplete line is invalid, and no
    /// limit is reached. Receive more and parse again from the start of the head; the spans are not valid yet.
    Partial,
    /// The head is complete and has this many bytes, including its empty line; the body starts after them.
    Complete(usize),
}
