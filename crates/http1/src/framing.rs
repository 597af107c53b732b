//! Framing: the rule by which a recipient finds the end of a body.

/// The end of one message's body (RFC 9112, section 6.3). It is decided only once, from the head.
///
/// [`crate::framing_field`] writes a forwarded message's framing from this value. The received
/// `Content-Length` and `Transfer-Encoding` lines are not copied, since a folded `Content-Length: 5, 5` must
/// not be forwarded (RFC 9110, section 8.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    #[default]
    None,
    /// The body has this many bytes.
    Length(u64),
    /// The body consists of chunks and ends with an empty chunk.
    Chunked,
    /// The body ends with the connection; never in a request.
    UntilClose,
}

impl Framing {
    /// Whether there is no body, or an empty one.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }
}
